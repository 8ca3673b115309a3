"""A measurement: which integer combinations of queries a release measures, on an exact grid.

``Ã = matrix · F / 2^bits`` for queries F with integer weights and an integer matrix, so ``Ã x`` is an
integer multiple of 2^-bits for every table.  Column norms are recomputed from the integers; nothing about
the privacy of a release rests on a rounded number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.law import Law
from laprasdp.privacy.noise import LATTICE_BITS, NoiseSource
from laprasdp.queries.columns import Columns
from laprasdp.queries.groups import Groups
from laprasdp.queries.marginal import Read
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.strategy.threads import blas_threads

GRID_BITS = 24
"""Bits of an optimised strategy's grid: fine enough to lose nothing, coarse enough for int64."""

_ANY = 2**20  # a scale from which on whole numbers are as good as any


@dataclass(frozen=True)
class Measurement(ABC):
    """
    What one release measures, on the grid of multiples of 2^-bits.

    Attributes
    ----------
    bits : int
    law : {"gaussian", "laplace"}
        Noise on each row: unit Gaussian on the lattice 2⁻⁵²; or discrete Laplace of `scale` grid steps.
    scale : int
        Scale of Laplace noise in steps of 2^-scale_bits of the grid; 0 for Gaussian noise.
    scale_bits : int
        Of a scale that is no whole number of steps; `scale` is odd then.
    """

    bits: int = field(kw_only=True)
    law: Literal["gaussian", "laplace"] = field(default="gaussian", kw_only=True)
    scale: int = field(default=0, kw_only=True)
    scale_bits: int = field(default=0, kw_only=True)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing changes it

    @property
    @abstractmethod
    def draws(self) -> int:
        """Noise values that the release draws: r, the rows of the strategy."""

    @abstractmethod
    def exact(self, read: Read) -> list[int]:
        """The r exact strategy answers in steps of the grid.  Private."""

    @abstractmethod
    def amounts(self, max_rows: int = 1) -> Query:
        """
        What each cell is charged, in units of 2⁻⁴⁰ μ², rounded up.

        Parameters
        ----------
        max_rows : int
            Rows that one privacy unit may have.

        Notes
        -----
        **Privacy.**  Guarantees at least ``max_rows²`` times the diagonal of ``ÃᵀÃ`` on every cell, by
        integer arithmetic.
        """

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each of `values`: 1 for unit Gaussian noise."""
        if self.law == "gaussian":
            return 1.0
        return 1 / (2 * math.sinh(0.5 / float(self.steps)) ** 2) / 4.0**self.bits

    @property
    def steps(self) -> Fraction:
        """Scale of Laplace noise in steps of the grid."""
        return Fraction(self.scale, 2**self.scale_bits)

    @property
    def discrete(self) -> bool:
        """Whether the noise is Laplace noise on the whole numbers, and far enough from any number."""
        return self.law == "laplace" and self.bits == 0 and self.steps < _ANY

    @property
    def noise_law(self) -> Law:
        """The law of the noise on each row."""
        return "geometric" if self.discrete else self.law

    def release(self, exact: Sequence[int], noise: NoiseSource) -> tuple[int, ...]:
        """
        Noisy strategy answers.

        Parameters
        ----------
        exact : sequence of r int
            From `exact`.  Private.
        noise : NoiseSource

        Returns
        -------
        tuple of r int
            Steps of 2⁻⁵² for Gaussian noise, of 2^-bits for Laplace noise.

        Notes
        -----
        **Privacy.**  Assumes that the charge of this measurement was checked.  Guarantees what
        docs/proofs/noise.md states for a strategy with these column norms: all arithmetic on private
        numbers is on Python integers.
        """
        if self.law == "laplace":
            drawn, shift = noise.laplace(len(exact), self.steps), 0
        else:
            drawn, shift = noise.gaussian(len(exact)), LATTICE_BITS - self.bits
        return tuple((value << shift) + step for value, step in zip(exact, drawn, strict=True))

    def values(self, noisy: Sequence[int]) -> Floats:
        """
        Noisy strategy answers as floats; unit noise for Gaussian measurements.

        Returns
        -------
        (r,) float array
        """
        steps = 2 ** (self.bits if self.law == "laplace" else LATTICE_BITS)
        return np.array([step / steps for step in noisy], dtype=float)


@dataclass(frozen=True)
class Rows(Measurement):
    """
    Integer combinations of queries: ``Ã = matrix · F / 2^bits``.

    Attributes
    ----------
    queries : tuple of b Query, or Groups
        F, whose exact answers are read from the table; the groups of a GROUP BY from one marginal.
    matrix : (r, b) object array of int, or int
        Numerators of the strategy over F; an int stands for that multiple of the identity.
    times : tuple of b int
        With an int, how many times that each query is measured; empty where it is once each.
    """

    queries: tuple[Query, ...] | Groups
    matrix: npt.NDArray[Any] | int
    times: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def draws(self) -> int:
        return len(self.queries) if isinstance(self.matrix, int) else len(self.matrix)

    @property
    def scales(self) -> Floats:
        """(b,) how many times each query is measured, where that is one by one."""
        assert isinstance(self.matrix, int)
        times = np.array(self.times or [1] * len(self.queries), dtype=float)
        return np.asarray(times * (self.matrix / 2.0**self.bits))

    @property
    def laws(self) -> list[Law]:
        """The law of the error of each query, where they are measured one by one."""
        law = self.noise_law  # of a row; that of a query is on the whole numbers if it is measured once
        finer: Law = "laplace" if law == "geometric" else law
        return [law if times == 1 else finer for times in self.times or [1] * len(self.queries)]

    @property
    def coefficients(self) -> Floats:
        """(r, b) the strategy over `queries`."""
        if isinstance(self.matrix, int):
            return np.diag(self.scales)
        return np.asarray(self.matrix.astype(float) / 2.0**self.bits)

    def weaker(self, share: float) -> Rows:
        """
        The same rows with Gaussian noise, for no more than a share of the charge on each cell.

        Parameters
        ----------
        share : float
            Between 0 and 1.

        Notes
        -----
        The multiple, or the matrix, is scaled down by √share, toward 0 on the finest grid.

        Raises
        ------
        BudgetExhausted
            It is too little for the grid.
        """
        up = LATTICE_BITS - self.bits
        scale = Fraction(math.sqrt(share)) * 2**up
        if isinstance(self.matrix, int):
            if (multiple := int(self.matrix * scale)) < 2**8:
                raise BudgetExhausted("the allowance left for this query is too small to measure it")
            return replace(self, matrix=multiple, bits=LATTICE_BITS)
        entries = [[int(entry * scale) for entry in row] for row in self.matrix.tolist()]
        return replace(self, matrix=np.array(entries, dtype=object), bits=LATTICE_BITS)

    def exact(self, read: Read) -> list[int]:
        if isinstance(self.queries, Groups):
            answers = self.queries.answers(read(self.queries.axes))
        else:
            answers = [query.answer(read(query.reads)) for query in self.queries]
        if isinstance(self.matrix, int):
            multiples = self.times or [1] * len(answers)
            return [self.matrix * times * answer for times, answer in zip(multiples, answers, strict=True)]
        return [sum(map(int.__mul__, row, answers)) for row in self.matrix.tolist()]

    @cached_property
    def _squares(self) -> npt.NDArray[Any]:
        """Squared column norms of the integer matrix ``matrix · F``, on classes or distinct columns."""
        if self._alone is not None:
            weights = self._alone.weights
            return weights * weights if self._alone.sensitivity < 2**31 else weights.astype(object) ** 2
        if isinstance(self.matrix, int):
            rows = self._taken
        else:
            rows = _exact_product(self.matrix, self._columns.values)
        top = int(np.abs(rows).max())
        rows = rows.astype(object) if top * top * len(rows) >= 2**62 else rows
        return np.asarray((rows * rows).sum(axis=0))

    @cached_property
    def _columns(self) -> Columns:
        return Workload(self.queries).columns

    @property
    def _taken(self) -> npt.NDArray[Any]:
        """(b, n) distinct columns of F, each query as many times as it is measured; exact."""
        values = self._columns.values
        if not self.times:
            return values
        fits = max(self.times) * int(np.abs(values).max()) < 2**62
        return np.asarray(values * np.array(self.times, dtype=np.int64 if fits else object)[:, np.newaxis])

    @property
    def largest_sum(self) -> int:
        """Largest L1 norm of a column of ``F``, each query as many times as it is measured."""
        if self._alone is not None:
            return self._alone.sensitivity
        return int(np.abs(self._taken).astype(object).sum(axis=0).max())

    @cached_property
    def _alone(self) -> Query | None:
        """The function that gives each cell its one weight, where no cell is in two rows."""
        if not isinstance(self.matrix, int) or self.times:
            return None
        if isinstance(self.queries, Groups):
            return self.queries.union
        return self.queries[0] if len(self.queries) == 1 else None

    @property
    def largest_square(self) -> int:
        """Largest squared column norm of ``F``, or of ``matrix · F``, before the grid is divided out."""
        return int(self._squares.max())

    def largest(self, max_rows: int) -> int:
        """Largest squared norm of what one unit adds to ``F``, or to ``matrix · F``."""
        return self.largest_square * max_rows**2

    def laplace_epsilon(self, max_rows: int = 1) -> Fraction:
        """
        ε of the release under Laplace noise: the largest L1 norm of a column over the scale.

        Parameters
        ----------
        max_rows : int
            Rows that one privacy unit may have.
        """
        assert isinstance(self.matrix, int)
        return self.largest_change(max_rows) * self.matrix / self.steps

    def largest_change(self, max_rows: int) -> int:
        """Largest L1 norm of what one unit adds to ``F``, each query as many times as it is measured."""
        return self.largest_sum * max_rows

    @cached_property
    def decoding(self) -> Floats:
        """
        The linear map from the values of a matrix measurement to its queries' answers.

        Returns
        -------
        (b, r) float array
            D with ``F = D Ã``; a query's variance is the squared norm of its row.
        """
        values = self._columns.values
        assert not isinstance(self.matrix, int)
        strategy = _exact_product(self.matrix, values).astype(float) / 2.0**self.bits
        with blas_threads(min(strategy.shape)):
            basis, triangle = np.linalg.qr(strategy.T)
            right = basis.T @ values.T.astype(float)
            decode: Floats = np.linalg.solve(triangle, right).T
            worst = float(np.abs(decode @ strategy - values).max())
        if worst > 1e-7 * max(1.0, float(np.abs(values).max())):
            raise ArithmeticError(f"the quantised strategy misses its workload by {worst:g}")
        return decode

    def amounts(self, max_rows: int = 1) -> Query:
        factor = max_rows**2 << MU_BITS
        if isinstance(self.matrix, int):
            factor *= self.matrix**2
        squares = self._squares.reshape(-1).tolist()
        charged = {value: -(-value * factor >> 2 * self.bits) for value in set(squares)}
        amounts = np.array([charged[value] for value in squares], dtype=np.int64).reshape(self._squares.shape)
        return self._spread(amounts)

    def _spread(self, amounts: npt.NDArray[Any]) -> Query:
        """The function of the cells with one amount for each of `_squares`."""
        if self._alone is not None:
            return self._alone.spread(amounts)
        return self._columns.spread(self.queries[0], amounts)

    def squares(self) -> Query:
        """Squared column norms of ``F``, or of ``matrix · F``, in exact integers, on every cell."""
        return self._spread(self._squares.astype(object))


def _exact_product(matrix: npt.NDArray[Any], values: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Integer matrix product without rounding: doubles while every partial sum is below 2^53."""
    bound = sum(max(abs(int(entry)) for entry in column) for column in matrix.T.tolist())
    if bound * max(1, int(np.abs(values).max())) < 2**53:
        with blas_threads(len(matrix)):
            rounded = np.rint(matrix.astype(float) @ values.astype(float))
        return np.asarray(rounded, dtype=np.int64)
    return np.asarray(matrix @ values.astype(object))
