"""A measurement whose sensitivity holds by construction: what each record adds is clipped, then summed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import BudgetExhausted
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.noise import LATTICE_BITS
from laprasdp.queries.marginal import Marginal, Read
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import GRID_BITS, Rows
from laprasdp.strategy.threads import blas_threads

_CHUNK = 2**12  # cells looked at together
_EXACT = 2**53  # integers below it are exact in a double
_SURE = 1 - 1e-9  # of the limit: above it a squared norm is computed again, in integers


@dataclass(frozen=True)
class Clipped(Rows):
    """
    Integer combinations of queries, in which no record counts for more than a limit.

    A record of pattern p, the weights of the queries on its cell, adds ``matrix · p``, shortened where its
    squared norm passes `limit`; so the release needs no proof of what the largest norm over all cells is.

    Attributes
    ----------
    limit : int
        Largest squared norm that a record may add, in squared steps of the grid.

    Notes
    -----
    **Privacy.**  Guarantees that one record changes the exact answers by a vector of squared norm at most
    `limit`, and ``max_rows`` records by at most ``max_rows² · limit``, for every table, in exact integers:
    docs/proofs/clipped.md.

    An answer is unbiased unless a cell occurs whose squared norm passes the limit by a factor f; then each
    of its records counts as 1/√f of one.
    """

    limit: int = field(kw_only=True)

    @property
    def axes(self) -> tuple[int, ...]:
        """The attributes that any query names, ascending."""
        return tuple(sorted({axis for query in self.queries for axis in query.axes}))

    def exact(self, read: Read) -> list[int]:
        marginal = read(self.axes)
        matrix = np.asarray(self.matrix)
        total = [0] * len(matrix)
        for start in range(0, len(marginal.counts), _CHUNK):
            part = slice(start, start + _CHUNK)
            levels = {axis: column[part] for axis, column in marginal.levels.items()}
            added = self._added(Marginal(levels, marginal.counts[part]))
            total = list(map(int.__add__, total, _summed(added, marginal.counts[part], self._reach)))
        return total

    def amounts(self, max_rows: int = 1) -> Query:
        charge = math.ceil(Fraction((max_rows**2 * self.limit) << MU_BITS, 4**self.bits))
        return Query.everywhere(self.queries[0].domain, charge)

    @property
    def largest_square(self) -> int:
        return self.limit

    @cached_property
    def decoding(self) -> Floats:
        strategy = self.coefficients
        with blas_threads(1):
            decode: Floats = np.asarray(np.linalg.inv(strategy), dtype=float)
            worst = float(np.abs(decode @ strategy - np.eye(len(strategy))).max())
        if worst > 1e-7:
            raise ArithmeticError(f"the quantised strategy misses its workload by {worst:g}")
        return decode

    @cached_property
    def _reach(self) -> int:
        """No entry of what a record adds is larger; at least 1."""
        rows = np.asarray(self.matrix).tolist()
        weights = [query.sensitivity for query in self.queries]
        return max(1, *(sum(abs(int(e)) * w for e, w in zip(row, weights, strict=True)) for row in rows))

    def _added(self, cells: Marginal) -> npt.NDArray[Any]:
        """(cells, r) what a record of each cell adds, clipped; exact integers, as doubles if they fit."""
        patterns = np.stack([_weights(query, cells) for query in self.queries], axis=1)
        matrix = np.asarray(self.matrix)
        if self._reach >= _EXACT:
            added: npt.NDArray[Any] = patterns.astype(object) @ matrix.T
            passing = np.arange(len(added))
        else:
            with blas_threads(1):
                added = patterns.astype(float) @ matrix.astype(float).T
            passing = np.flatnonzero(np.einsum("ck,ck->c", added, added) > self.limit * _SURE)
        for place in passing.tolist():
            added[place] = _clip([int(value) for value in added[place]], self.limit)
        return added


def quantize_clipped(
    queries: Sequence[Query], encode: Floats, mu_squared: Fraction, max_rows: int = 1
) -> Clipped:
    """
    A searched strategy on the grid, with the limit that `mu_squared` allows.

    Parameters
    ----------
    queries : sequence of m Query
    encode : (m, m) float array
        E, invertible; the limit is at squared norm one.
    mu_squared : Fraction
        Largest squared norm that the release may have, all rows of a unit together.
    max_rows : int
        Rows that one privacy unit may have.

    Raises
    ------
    BudgetExhausted
        The allowance is too small for the lattice.
    """
    target = math.sqrt(mu_squared) / max_rows
    largest = max(query.sensitivity for query in queries)
    finer = max(0, math.frexp(largest / max(target, 2.0**-LATTICE_BITS))[1] - 1)
    bits = min(GRID_BITS + finer, LATTICE_BITS)
    if target * 2.0**bits / largest < 2**10:
        raise BudgetExhausted("the allowance left for the predicted queries is too small to measure them")
    scaled = np.rint(encode * (target * 2.0**bits))
    matrix = np.array([[int(entry) for entry in row] for row in scaled.tolist()], dtype=object)
    limit = (math.floor(mu_squared * 2**MU_BITS) << 2 * bits) // (max_rows**2 << MU_BITS)
    return Clipped(tuple(queries), matrix, bits=bits, limit=limit)


def _weights(query: Query, cells: Marginal) -> Ints:
    """(cells,) weight of a query on each."""
    index = tuple(labels[cells.levels[axis]] for axis, labels in zip(query.axes, query.labels, strict=True))
    return np.broadcast_to(query.weights[index], cells.counts.shape)


def _clip(vector: list[int], limit: int) -> list[int]:
    """The vector, or a shorter one along it whose squared norm is at most `limit`."""
    square = sum(value * value for value in vector)
    if square <= limit:
        return vector
    up, down = math.isqrt(limit << 128), math.isqrt(square << 128) + 1  # up / down < √(limit / square)
    return [abs(value) * up // down * (1 if value > 0 else -1) for value in vector]


def _summed(added: npt.NDArray[Any], counts: Ints, reach: int) -> list[int]:
    """``countsᵀ added``: counts are cut into limbs so short that every sum of products is exact."""
    limb = (_EXACT // (reach * _CHUNK)).bit_length() - 1
    if limb < 4:
        return [int(value) for value in counts.astype(object) @ added.astype(object)]
    total = [0] * added.shape[1]
    for shift in range(0, 63, limb):
        part = (counts >> shift) & (2**limb - 1)
        with blas_threads(1):
            sums = part.astype(float) @ added
        total = [whole + (int(value) << shift) for whole, value in zip(total, sums.tolist(), strict=True)]
    return total
