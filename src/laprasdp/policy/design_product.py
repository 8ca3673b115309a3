r"""The design of PRIMM's releases on a table of many cells: what to measure before the stream, how strongly.

The background prior and the strategy of the predicted queries are designed once; only their shares of the
budget are compared, by the errors that they lead to for predicted queries and for typical others.  No data
is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.product import ProductBelief
from laprasdp.errors import BudgetExhausted, UnsupportedQuery
from laprasdp.limits import MAX_CLASSES
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.attribute import Booleans, Categories
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.strategy.background import point_moment, range_moment
from laprasdp.strategy.kronecker import Axes, Marginals, design_marginals, subsets, subspace_weights
from laprasdp.strategy.optimize import optimize

_TYPICAL, _SPOTS = 60, 20  # typical queries, and cells looked at in each
_ROWS = 1_000_000  # noise values that the prior may have in all
_WIDEST = 3  # attributes of a typical query where nothing is predicted
_GAP = 1e-2
_BACKGROUND = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_STREAM = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_LEAST = 0.002  # share of the stream where nothing is expected to be measured
_UNKNOWN = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # overlaps that stand for an unknown one
_MOVED = 0.5  # part of the stream's share that later batches bring to the predicted queries, if all are
_SHARP = 1.5  # how much more than the query itself the best candidate row tells


@dataclass(frozen=True)
class Shares:
    """Parts of the budget: for the prior, for the prediction release, for what the stream measures."""

    background: float
    prediction: float
    stream: float


@dataclass(frozen=True, eq=False)
class Crowd:
    """
    Where typical queries meet: cells drawn from them, and how many of the queries touch each.

    Attributes
    ----------
    levels : (axes, cells) int array
    share : (cells,) array
        Share of typical queries that touch each cell.
    """

    levels: npt.NDArray[np.intp]
    share: Floats

    def touched(self, query: Query) -> npt.NDArray[np.bool_]:
        """(cells,) whether each cell has a weight in `query`."""
        index = tuple(
            labels[self.levels[axis]] for axis, labels in zip(query.axes, query.labels, strict=True)
        )
        weights = query.weights.reshape(query.weights.shape[: len(query.axes)])
        return np.broadcast_to(np.asarray(weights[index] != 0), self.share.shape)


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """
    What to release first.

    Attributes
    ----------
    prior : Marginals
        The background release at its share.
    encode : (r, m) array or None
        Strategy over the predicted queries, of largest column norm one; None where there is none.
    shares : Shares
    typical : tuple of Query
        Unpredicted queries that stand for all others.
    crowd : Crowd
    """

    prior: Marginals
    encode: Floats | None
    shares: Shares
    typical: tuple[Query, ...]
    crowd: Crowd


def design_product(setting: Setting, *, seed: int = 0) -> ProductDesign:
    """
    Design both releases and choose the shares.

    Parameters
    ----------
    setting : Setting
    seed : int
        Typical queries are drawn with it.

    Raises
    ------
    BudgetExhausted
        The budget is too small to measure even the number of rows.

    Notes
    -----
    The score is the mean, over the overlaps that are possible, of the fourth power of the error against the
    best candidate's, so that no overlap is given up.  Every cell is touched by a share c of the queries
    measured (`Crowd`), so each of n may use 1/(1+cn) of what is left where it touches.
    """
    domain, rng = setting.domain, np.random.default_rng(seed)
    typical = typical_queries(domain, setting.predictions, _TYPICAL, rng, setting.importance)
    crowd = crowd_of(typical, rng)
    moments = {axis: _moment(setting, axis) for axis in range(len(domain))}
    weights = _weights(setting, typical, moments)
    whole = Fraction(setting.ledger_unit.total, 2**MU_BITS)
    prior = _prior(setting, weights, moments, whole)
    encode = _encode(setting)
    shares = _shares(setting, prior, encode, typical, crowd)
    scaled = _prior(setting, weights, moments, whole * Fraction(shares.background))
    return ProductDesign(scaled, encode, shares, typical, crowd)


def typical_queries(
    domain: Domain,
    predictions: Sequence[Query],
    count: int,
    rng: np.random.Generator,
    importance: Floats | None = None,
) -> tuple[Query, ...]:
    """
    Queries like the predicted ones with other constants; conjunctions over few attributes if there are none.

    Parameters
    ----------
    domain : Domain
    predictions : sequence of m Query
    count : int
    rng : Generator
    importance : (m,) array, optional
        Share of each prediction among those that are taken as models.
    """
    found: list[Query] = []
    for _ in range(count):
        if predictions:
            like = predictions[int(rng.choice(len(predictions), p=importance))]
            labels = {
                name: _redrawn(domain, axis, column, rng)
                for name, axis, column in zip(like.names, like.axes, like.labels, strict=True)
            }
            query = Query(domain, labels, like.weights.reshape(like.weights.shape[: len(like.axes)]))
        else:
            most = min(_WIDEST, len(domain))
            axes = rng.choice(len(domain), size=int(rng.integers(1, most + 1)), replace=False).tolist()
            weights = np.zeros((2,) * len(axes), dtype=np.int64)
            weights[(1,) * len(axes)] = 1
            query = Query(domain, {domain.names[a]: _predicate(domain, a, rng) for a in axes}, weights)
        if not query.is_zero:
            found.append(query)
    return tuple(found) or (Query.constant(domain, 1),)


def crowd_of(queries: Sequence[Query], rng: np.random.Generator) -> Crowd:
    """Draw cells from the queries, and count who touches them."""
    shape = queries[0].domain.shape
    drawn = []
    for query in queries:
        spots = np.argwhere(query.weights)
        chosen = spots[rng.integers(len(spots), size=_SPOTS)]
        levels = rng.integers(np.array(shape)[:, np.newaxis], size=(len(shape), _SPOTS))
        for axis, labels, classes in zip(query.axes, query.labels, chosen.T, strict=False):
            for spot, wanted in enumerate(classes.tolist()):
                levels[axis, spot] = rng.choice(np.flatnonzero(labels == wanted))
        drawn.append(levels)
    cells = np.concatenate(drawn, axis=1)
    empty = Crowd(cells, np.zeros(cells.shape[1]))
    return Crowd(cells, np.mean([empty.touched(query) for query in queries], axis=0))


def posterior(joint: Floats, rows: Floats, power: float) -> Floats:
    """
    Covariance after measuring combinations of the first queries.

    Parameters
    ----------
    joint : (k, k) array
    rows : (r, m) array
        Over the first m of the k queries.
    power : float
        Squared scale of the rows; noise is of unit variance.
    """
    if power <= 0:
        return joint
    along = rows @ joint[: rows.shape[1]]
    inner = along[:, : rows.shape[1]] @ rows.T + np.eye(len(rows)) / power
    left: Floats = joint - along.T @ np.linalg.solve((inner + inner.T) / 2, along)
    return left


def deviations(joint: Floats) -> Floats:
    """Standard deviations, where rounding may have left a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(joint.diagonal(), 0)))


def measured_deviation(deviation: Floats, power: float) -> Floats:
    """Deviations after each typical query was measured with this squared scale."""
    return np.asarray(deviation / np.sqrt(1 + _SHARP * power * deviation**2))


def finite(joint: Floats) -> Floats:
    """A joint covariance in which nothing known has a large variance of its own."""
    known = np.isfinite(joint.diagonal())
    most = float(joint.diagonal()[known].max(initial=1.0))
    result = np.where(np.isnan(joint), 0.0, joint)
    result[~known] = result[:, ~known] = 0.0
    result[~known, ~known] = 1e6 * most
    return np.asarray(result)


def _shares(
    setting: Setting, prior: Marginals, encode: Floats | None, typical: Sequence[Query], crowd: Crowd
) -> Shares:
    known = setting.overlap if setting.predictions else 0.0
    overlaps = _UNKNOWN if known is None else (known,)
    joint = finite(ProductBelief(prior).covariance([*setting.predictions, *typical]))
    power = setting.ledger_unit.total / 2.0**MU_BITS / setting.unit.max_rows**2
    crowded = busy(crowd, typical)
    m = len(setting.predictions)
    table, candidates = [], []
    for shares in _grid(encode is not None, known):
        row: list[float] = []
        free = _deviations(joint, encode, shares, 0.0, power)
        for overlap in overlaps:
            moved = _MOVED * overlap**2 * shares.stream if known is None else 0.0
            after = _deviations(joint, encode, shares, moved, power)[:m] if moved else free[:m]
            each = power * shares.stream / (1 + crowded * (1 - overlap) * setting.length)
            others = float(measured_deviation(free[m:], each).mean())
            row.append(overlap * float(setting.importance @ after) + (1 - overlap) * others)
        table.append(row)
        candidates.append(shares)
    errors = np.array(table)
    return candidates[int(np.argmin(((errors / errors.min(axis=0)) ** 4).mean(axis=1)))]


def busy(crowd: Crowd, queries: Sequence[Query]) -> float:
    """Share of the stream that meets a query in its most crowded cell, on average."""
    return float(np.mean([crowd.share[crowd.touched(query)].max(initial=0.0) for query in queries]))


def _deviations(joint: Floats, encode: Floats | None, shares: Shares, moved: float, power: float) -> Floats:
    scaled = joint / shares.background
    if encode is None:
        return deviations(scaled)
    return deviations(posterior(scaled, encode, power * (shares.prediction + moved)))


def _grid(predicted: bool, overlap: float | None) -> list[Shares]:
    """Shares to compare."""
    found = []
    streams = (*_STREAM, _LEAST) if overlap == 1 else _STREAM
    for stream in streams:
        if not predicted or overlap == 0:
            found.append(Shares(1 - stream, 0.0, stream))
        if predicted:
            found += [Shares(b, 1 - b - stream, stream) for b in _BACKGROUND if b + stream < 0.995]
    return found


def _encode(setting: Setting) -> Floats | None:
    """The optimal strategy for the predicted queries; None where they tell too many cells apart."""
    if not setting.predictions:
        return None
    try:
        columns = Workload(setting.predictions).columns.values.astype(float)
        return optimize(columns, weights=setting.importance, gap=_GAP).encode
    except UnsupportedQuery:
        return None


def _weights(setting: Setting, typical: Sequence[Query], moments: dict[int, Floats]) -> dict[Axes, float]:
    """Expected weight of each set of attributes that queries use, small sets first, within the limits."""
    queries = [*typical, *setting.predictions]
    hoped = setting.importance * len(setting.predictions)
    found = subspace_weights(queries, moments, np.concatenate([np.ones(len(typical)), hoped]))
    widest = max((len(query.axes) for query in setting.predictions), default=_WIDEST)
    axes = tuple(axis for axis, size in enumerate(setting.domain.shape) if size > 1)
    chosen, rows, least = {}, 0, 1e-12 * max(found.values())
    for each in (s for s in subsets(axes) if len(s) <= widest):
        levels = [setting.domain.shape[axis] for axis in each]
        draws = math.prod(size - 1 for size in levels)
        if math.prod(levels) <= MAX_CLASSES and rows + draws <= _ROWS:
            chosen[each], rows = max(found.get(each, 0.0), least), rows + draws
    return chosen


def _prior(
    setting: Setting, weights: dict[Axes, float], moments: dict[int, Floats], mu_squared: Fraction
) -> Marginals:
    """The background release; of fewer attributes at a time where the budget is tiny."""
    while True:
        try:
            return design_marginals(setting.domain, weights, moments, mu_squared, setting.unit.max_rows)
        except BudgetExhausted:
            widest = max(map(len, weights))
            if widest == 0:
                raise
            weights = {axes: weight for axes, weight in weights.items() if len(axes) < widest}


def _moment(setting: Setting, axis: int) -> Floats:
    """Second moment of what is asked of one attribute: half ranges or points, half what is predicted."""
    size = setting.domain.shape[axis]
    family = range_moment(size) if _ordered(setting.domain, axis) else point_moment(size)
    family = family * (size / float(np.trace(family)))
    named = [q.labels[q.axes.index(axis)] for q in setting.predictions if axis in q.axes]
    functions = [(labels[:, np.newaxis] == np.arange(labels.max() + 1)).astype(float) for labels in named]
    if not functions or size < 2:
        return family
    centred = np.concatenate(functions, axis=1)
    centred = centred - centred.mean(axis=0)
    own = centred @ centred.T
    trace = float(np.trace(own))
    return family if trace == 0 else (family + own * (size / trace)) / 2


def _ordered(domain: Domain, axis: int) -> bool:
    return not isinstance(domain[domain.names[axis]], (Booleans, Categories))


def _predicate(domain: Domain, axis: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """A range of an ordered attribute, a value of another; never nothing."""
    size = domain.shape[axis]
    place = np.arange(size)
    if not _ordered(domain, axis):
        return np.asarray(place == rng.integers(size))
    low, high = np.sort(rng.choice(size + 1, 2, replace=False)).tolist()
    return np.asarray((place >= low) & (place < high))


def _redrawn(
    domain: Domain, axis: int, labels: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[Any]:
    """The same classes with other bounds, or other values of an attribute without order."""
    runs = np.flatnonzero(np.diff(labels)) + 1
    if not _ordered(domain, axis) or 2 * len(runs) > len(labels):
        return np.asarray(rng.permutation(labels))
    cuts = np.sort(rng.choice(np.arange(1, len(labels)), len(runs), replace=False))
    kinds = labels[np.concatenate([[0], runs])]
    return np.asarray(kinds[np.searchsorted(cuts, np.arange(len(labels)), side="right")])
