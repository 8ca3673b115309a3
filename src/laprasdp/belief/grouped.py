"""A belief that also knows many groups of one statement, each from its own measurement and from the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.belief.product import ProductBelief
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.group_block import GroupBlock, block_of
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.subspaces import Axes


class GroupedBelief(ProductBelief):
    """
    A belief over queries, with the blocks of groups that are too many to be learned as rows.

    Parameters
    ----------
    prior : Marginals

    Notes
    -----
    The noise of a block is independent of everything else, so what both say of a query is joined by inverse
    variances: unbiased, with the exact variance (docs/proofs/primm.md, theorem 1b).  Of a query that is no
    sum of its groups a block says nothing.
    """

    def __init__(self, prior: Marginals) -> None:
        super().__init__(prior)
        self._blocks: list[GroupBlock] = []
        self._came: list[int] = []  # the age with each of them

    @property
    def released(self) -> dict[Axes, Floats]:
        """Values of the prior's sets that were drawn at once; empty before."""
        return {axes: part for (axes, nodes), part in (self._released or {}).items() if not nodes}

    @property
    def releases(self) -> Sequence[tuple[list[int], Floats, Floats]]:
        """Rows after the prior, by release: places in `queries`, (r, b) rows, (r,) values of unit noise."""
        return self._log

    def beside(self, query: Query) -> list[tuple[float, float]]:
        """Value and variance of a query by each block of groups that it is a sum of; no row says this."""
        found = (block.find(query) for block in self._blocks)
        return [(one.value, one.variance) for one in found if one is not None]

    def beside_each(self, groups: Groups) -> list[tuple[Floats, Floats]]:
        """`beside` of groups; an infinite variance where a group is no sum."""
        return [block.find_each(groups) for block in self._blocks]

    def learn(self, measurement: Measurement, values: Floats | None) -> None:
        if isinstance(measurement, Rows):
            drawn = np.full(measurement.draws, np.nan) if values is None else np.asarray(values, dtype=float)
            block = block_of(measurement, drawn)
            if block is not None:
                self._blocks.append(block)
                self._came.append(self.age)
                return
        super().learn(measurement, values)

    @property
    def age(self) -> int:
        return self.rows + len(self._blocks)

    def covariance(self, queries: Sequence[Query], when: Sequence[int] | None = None) -> Floats:
        ages = np.full(len(queries), self.age) if when is None else np.asarray(when)
        then = np.searchsorted(self._came, ages, side="right")  # blocks that there were
        joint = super().covariance(queries, None if when is None else (ages - then).tolist())
        if not self._blocks:
            return joint
        shares, variances = np.isfinite(joint.diagonal()).astype(float), joint.diagonal().copy()
        noise = list[Floats]()
        for place, block in enumerate(self._blocks):
            weights, wide = _taken(block, queries)
            wide = np.where(then > place, wide, np.inf)
            if np.isinf(wide).all():
                continue
            after = joined(0.0, variances, 0.0, wide)[1]
            kept = np.divide(after, variances, out=np.zeros(len(queries)), where=np.isfinite(variances))
            new = np.divide(after, wide, out=np.zeros(len(queries)), where=np.isfinite(wide))
            shares, noise = shares * kept, [part * kept[:, np.newaxis] for part in noise]
            noise.append(weights * (new * math.sqrt(block.variance))[:, np.newaxis])
            variances = after
        both = np.outer(shares, shares)
        joint = np.where(both > 0, joint, 0.0) * both
        for part in noise:
            joint += part @ part.T
        np.fill_diagonal(joint, variances)
        return joint

    def further(self, queries: Sequence[Query], start: int) -> Floats | None:
        return None if self._blocks else super().further(queries, start)

    def copy(self) -> Self:
        other = super().copy()
        other._blocks, other._came = list(self._blocks), list(self._came)
        return other

    def _told(self, query: Query) -> tuple[float, float]:
        value, variance = super()._told(query)
        for found in (block.find(query) for block in self._blocks):
            if found is not None:
                value, variance = joined(value, variance, found.value, found.variance)
        return value, variance

    def _told_each(self, groups: Sequence[Query]) -> tuple[Floats, Floats]:
        values, variances = super()._told_each(groups)
        for block in self._blocks:
            found = block.find_each(groups) if isinstance(groups, Groups) else block.find_all(groups)
            values, variances = joined(values, variances, *found)
        return values, variances


def joined(one: Any, spread: Any, other: Any, wide: Any) -> tuple[Any, Any]:
    """
    Two independent estimates of the same numbers joined by inverse variances.

    Parameters
    ----------
    one, spread : array or float
        Values and variances; an infinite variance knows nothing.
    other, wide : array or float
        The same of the others.

    Examples
    --------
    >>> value, variance = joined(1.0, 3.0, 5.0, 1.0)
    >>> float(value), float(variance)
    (4.0, 0.75)
    """
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(wide), 1.0, np.where(np.isinf(spread), 0.0, wide / (spread + wide)))
        joint = np.where(np.isinf(spread), wide, np.where(share > 0, spread * share, 0.0))
    return np.where(share > 0, one, 0.0) * share + np.where(share < 1, other, 0.0) * (1 - share), joint


def _taken(block: GroupBlock, queries: Sequence[Query]) -> tuple[Floats, Floats]:
    """(m, n) how often each query takes each group, 0 where it is no sum of them; and its variance there."""
    found = [block.weights(query) for query in queries]
    empty = np.zeros(math.prod(block.groups.shape))
    weights = np.stack([empty if each is None else each for each in found])
    known = np.array([each is not None for each in found])
    return weights, np.where(known, np.einsum("ij,ij->i", weights, weights) * block.variance, np.inf)
