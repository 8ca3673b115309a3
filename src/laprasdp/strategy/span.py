"""What has been measured, as a linear space of queries: is a new query in it, and with what variance?

Measured rows are combinations of basis queries; only inner products of queries over the domain are
needed, so no vector over all cells is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_JOINT
from laprasdp.queries.columns import distinct_columns
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.strategy.group_block import Combination, GroupBlock, block_of
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.threads import blas_threads

_TOLERANCE = 1e-9
_PAIRS, _COLUMNS = 2_000, 20_000
"""Pairs from which on inner products are taken from distinct columns, and the most of these."""


class Span:
    """
    Measured rows with unit noise, and the queries that are combinations of them.

    Notes
    -----
    With basis queries F, rows ``A = H F`` and their values z, query q is answered by the shortest y with
    ``yᵀA = q``: among unbiased linear estimates the one of least variance, ``‖y‖²`` (Gauss–Markov).
    ``y = (H G Hᵀ)⁺ H g`` needs only the Gram matrix ``G = F Fᵀ`` and ``g = F qᵀ``.  A candidate is then
    checked on every distinct column, so that a near miss is never taken for a combination.

    Many groups of one statement are a block of their own: sums of them are found, combinations with other
    rows are not; and many groups are looked for in blocks only.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._basis: list[Query] = []
        self._gram: Floats = np.zeros((0, 0))
        self._rows: Floats = np.zeros((0, 0))
        self._values: Floats = np.zeros(0)
        self._inverse: tuple[Floats, Floats] | None = None
        self._blocks: list[GroupBlock] = []

    def learn(self, measurement: Rows, values: Floats) -> None:
        """Add what a release measured, where its noise has unit variance."""
        block = block_of(measurement, values)
        if block is not None:
            self._blocks.append(block)
        else:
            self.add(measurement.queries, measurement.coefficients, values)

    def add(self, queries: Sequence[Query], rows: Floats, values: Floats) -> None:
        """
        Add measured rows.

        Parameters
        ----------
        queries : sequence of b distinct Query
        rows : (r, b) float array
            Each row's coefficients over `queries`, scaled so that its noise has unit variance.
        values : (r,) float array
            The noisy values.
        """
        places = self._placed(queries)
        wide = np.zeros((len(self._rows) + len(rows), len(self._basis)))
        wide[: len(self._rows), : self._rows.shape[1]] = self._rows
        wide[len(self._rows) :, places] = rows
        self._rows, self._values = wide, np.concatenate([self._values, values])
        self._inverse = None

    def find(self, query: Query) -> Combination | None:
        """The best unbiased combination for `query` that is looked for, or None if there is none."""
        return self._best(query, dots([query], self._basis)[0])

    def _best(self, query: Query, inner: Floats) -> Combination | None:
        """`find` of a query whose inner products with the basis queries are known."""
        each = [self._combined(query, inner), *(block.find(query) for block in self._blocks)]
        found = [one for one in each if one is not None]
        return min(found, key=lambda one: one.variance) if found else None

    def find_each(self, queries: Sequence[Query]) -> dict[Query, Combination | None]:
        """The same for each query of a statement."""
        if not isinstance(queries, Groups) or len(queries) <= MAX_JOINT:
            inner = dots(queries, self._basis) if len(queries) else ()
            return {query: self._best(query, along) for query, along in zip(queries, inner, strict=True)}
        best: dict[Query, Combination | None] = dict.fromkeys(queries)
        for block in self._blocks:
            for query, value, variance in zip(queries, *map(np.ndarray.tolist, block.find_each(queries)),
                                              strict=True):  # fmt: skip
                before = best[query]
                if variance < (np.inf if before is None else before.variance):
                    best[query] = Combination(value, variance)
        return best

    def _combined(self, query: Query, inner: Floats) -> Combination | None:
        """The best combination of the rows that are in no block."""
        if not len(self._values):
            return None
        with blas_threads(len(self._values)):
            vectors, values = self._factor()
            scale = query.dot(query)
            seen = self._rows @ inner
            along = vectors.T @ seen
            if scale - float(along**2 @ (1 / values)) > _TOLERANCE * scale:
                return None
            chosen = vectors @ (along / values)
        weights = chosen @ self._rows
        if not self._exact(query, weights):
            return None
        return Combination(float(chosen @ self._values), float(chosen @ chosen))

    def _factor(self) -> tuple[Floats, Floats]:
        if self._inverse is None:
            values, vectors = np.linalg.eigh(self._rows @ self._gram @ self._rows.T)
            keep = values > 1e-11 * values[-1]
            self._inverse = vectors[:, keep], values[keep]
        return self._inverse

    def _exact(self, query: Query, weights: Floats) -> bool:
        used = np.flatnonzero(np.abs(weights) > 1e-13 * np.abs(weights).max())
        try:
            columns = Workload([query, *(self._basis[i] for i in used)]).columns.values
        except UnsupportedQuery:
            return False
        return bool(np.abs(columns[0] - weights[used] @ columns[1:]).max() <= 1e-8 * query.sensitivity)

    def _placed(self, queries: Sequence[Query]) -> list[int]:
        """The places of queries among the basis queries, which they join."""
        new = [query for query in dict.fromkeys(queries) if query.key not in self._places]
        for query in new:
            self._places[query.key] = len(self._basis)
            self._basis.append(query)
        old = len(self._gram)
        if new:
            grown = np.zeros((len(self._basis), len(self._basis)))
            grown[:old, :old] = self._gram
            grown[old:] = dots(new, self._basis)
            grown[:old, old:] = grown[old:, :old].T
            self._gram = grown
        return [self._places[query.key] for query in queries]


def dots(queries: Sequence[Query], others: Sequence[Query]) -> Floats:
    """
    Sums over all cells of the products of weights.

    Parameters
    ----------
    queries, others : sequence of Query

    Returns
    -------
    (m, n) array
        `Query.dot` of each pair; of many pairs from their distinct columns, where these are not too many.
    """
    if len(queries) * len(others) >= _PAIRS:
        try:
            columns = distinct_columns([*queries, *others], _COLUMNS)
        except UnsupportedQuery:
            pass
        else:
            sizes = queries[0].domain.shape
            rest = math.prod(size for axis, size in enumerate(sizes) if axis not in columns.axes)
            values = columns.values.astype(float)
            wide = values[: len(queries)] * (columns.sizes * float(rest))
            with blas_threads(len(wide)):
                return np.asarray(wide @ values[len(queries) :].T)
    each = [[query.dot(other) for other in others] for query in queries]
    return np.array(each, dtype=float).reshape(len(queries), len(others))
