"""Where queries meet, and which rows tell of a query: what a measurement costs those that come after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.subspaces import tensor_of

_SPOTS = 20  # cells looked at in each typical query
_GAIN = 4.0  # most that a row of weights ±1 tells, against one of 0 and 1


@dataclass(frozen=True, eq=False)
class Crowd:
    """
    Where typical queries meet: cells drawn from them, and how many of the queries touch each.

    Attributes
    ----------
    levels : (axes, cells) int array
    share : (cells,) array
        Share of typical queries that touch each cell.
    anywhere : float
        Share of them that is thought to touch any other cell.
    """

    levels: npt.NDArray[np.intp]
    share: Floats
    anywhere: float = 0.0

    def touched(self, query: Query) -> npt.NDArray[np.bool_]:
        """(cells,) whether each cell has a weight in `query`."""
        index = tuple(
            labels[self.levels[axis]] for axis, labels in zip(query.axes, query.labels, strict=True)
        )
        weights = query.weights.reshape(query.weights.shape[: len(query.axes)])
        return np.broadcast_to(np.asarray(weights[index] != 0), self.share.shape)


def crowd_of(
    kinds: Sequence[Sequence[Query]],
    rng: np.random.Generator,
    power: int = 1,
    shares: Floats | None = None,
) -> Crowd:
    """
    Draw cells from queries of several kinds, and see who touches them.

    Parameters
    ----------
    kinds : sequence of sequences of Query
    rng : Generator
    power : int
        The share of a cell is the mean of this power over the kinds: the higher, the more does it go by the
        kind that crowds most.
    shares : (kinds,) array, optional
        Of the stream, by kind; all alike otherwise.
    """
    shape = kinds[0][0].domain.shape
    drawn = []
    for query in (query for queries in kinds for query in queries):
        spots = np.argwhere(query.weights)
        chosen = spots[rng.integers(len(spots), size=_SPOTS)]
        levels = rng.integers(np.array(shape)[:, np.newaxis], size=(len(shape), _SPOTS))
        for axis, labels, classes in zip(query.axes, query.labels, chosen.T, strict=False):
            for spot, wanted in enumerate(classes.tolist()):
                levels[axis, spot] = rng.choice(np.flatnonzero(labels == wanted))
        drawn.append(levels)
    cells = np.concatenate(drawn, axis=1)
    empty = Crowd(cells, np.zeros(cells.shape[1]))
    touched = [np.mean([empty.touched(query) for query in queries], axis=0) for queries in kinds]
    if shares is not None:
        return Crowd(cells, np.average(touched, axis=0, weights=shares))
    return Crowd(cells, np.mean(np.power(touched, power), axis=0) ** (1 / power))


def candidates(query: Query, crowd: Crowd) -> list[Query]:
    """
    Other rows that tell of the query: what a known sum leaves, and the difference of the two sides.

    For each attribute, and for all together, the sum over it is taken as known: the rest of the sum has
    the same error, and the difference of the two sides twice the signal.
    """
    tensor = tensor_of(query)
    own = max(float(crowd.touched(query).mean()), 1e-9)
    found: dict[str, Query] = {}
    sides = [(place,) for place in range(tensor.ndim)]
    for axes in [*sides, tuple(range(tensor.ndim))] if tensor.ndim > 1 else sides:
        high, low = tensor.max(axis=axes, keepdims=True), tensor.min(axis=axes, keepdims=True)
        for weights, most in ((2 * tensor - high - low, _GAIN), (high + low - tensor, 1.0)):
            row = query.spread(weights).canonical()
            if not row.is_zero and float(crowd.touched(row).mean()) < most * own:
                found[row.key] = row
    return list(found.values())
