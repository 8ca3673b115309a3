r"""A strategy that is a product of one for each attribute, under Laplace noise of one scale on all its rows.

Rows are :math:`\tilde A_1\otimes\dots\otimes\tilde A_d/2^{bits}`.  The L1 norm of a column of a product is
the product of the norms of the columns, so it is known in exact integers without writing a row out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.limits import MAX_FACTORED, MAX_FACTORED_LEVELS
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Read
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import contract, dense_counts
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.threads import one_thread


@dataclass(frozen=True, eq=False)
class ProductRows(Measurement):
    r"""
    Every product of one row of each factor, measured once.

    Attributes
    ----------
    domain : Domain
    factors : tuple of (rows, levels) int64 array
        :math:`\tilde A_i`, one for each attribute of the domain.

    Raises
    ------
    DomainError
        A factor does not fit its attribute, or does not tell its levels apart.
    UnsupportedQuery
        The domain is larger than any that is measured so; nothing of its size is made then.

    References
    ----------
    McKenna, Miklau, Hay, Machanavajjhala.  Optimizing error of high-dimensional statistical queries under
    differential privacy.  PVLDB 11 (2018), arXiv:1808.03537, section 6.
    """

    domain: Domain
    factors: tuple[Ints, ...]

    def __post_init__(self) -> None:
        if not fits_product(self.domain):
            raise UnsupportedQuery(
                f"a product of strategies is for {MAX_FACTORED:,} cells at most, of attributes of "
                f"{MAX_FACTORED_LEVELS} levels"
            )
        if len(self.factors) != len(self.domain.shape):
            raise DomainError("a product of strategies has a factor for each attribute")
        for name, size, factor in zip(self.domain.names, self.domain.shape, self.factors, strict=True):
            fits = factor.ndim == 2 and factor.shape[1] == size and factor.dtype == np.int64
            if not fits or np.abs(factor).max(initial=0) >= 2**31:
                raise DomainError(f"the factor of {name} is no integer matrix over its levels")
            if not _tells_apart(factor):
                raise DomainError(f"the factor of {name} does not tell its levels apart")

    @property
    def draws(self) -> int:
        return math.prod(map(len, self.factors))

    def exact(self, read: Read) -> list[int]:
        """
        The exact strategy answers, in steps of the grid.  Private.

        Notes
        -----
        **Privacy.**  As of `laprasdp.strategy.kronecker.Marginals.exact`.
        """
        axes = tuple(range(len(self.factors)))
        return contract(dense_counts(read(axes), axes, self.domain.shape), self.factors)

    def amounts(self, max_rows: int = 1) -> Query:
        """
        A constant charge: the product of the factors' largest squared column norms.

        Notes
        -----
        **Privacy.**  Guarantees at least ``max_rows²`` times the diagonal of ``ÃᵀÃ`` on every cell.
        """
        square = math.prod(_largest(factor.astype(object) ** 2) for factor in self.factors)
        charge = math.ceil(Fraction(max_rows**2 * 2**MU_BITS * square, 4**self.bits))
        return Query.everywhere(self.domain, charge)

    def largest_change(self, max_rows: int) -> int:
        """
        Largest L1 norm of what one unit adds, in steps of the grid.

        Notes
        -----
        **Privacy.**  Exact: the column of a cell is the Kronecker product of one column of each factor, whose
        L1 norm is the product of theirs (docs/proofs/noise.md).
        """
        return max_rows * math.prod(_largest(np.abs(factor.astype(object))) for factor in self.factors)

    def laplace_epsilon(self, max_rows: int = 1) -> Fraction:
        """ε of the release under Laplace noise: the largest L1 norm of a column over the scale."""
        return self.largest_change(max_rows) / self.steps

    @property
    def counts(self) -> bool:
        """Whether it counts each cell, and nothing else."""
        return self.bits == 0 and all(
            np.array_equal(factor, np.eye(factor.shape[1])) for factor in self.factors
        )

    @cached_property
    def rows(self) -> tuple[Floats, ...]:
        """The factors as numbers: their product are the rows that are measured."""
        shares = math.ldexp(1.0, -self.bits), *[1.0] * (len(self.factors) - 1)
        pairs = zip(self.factors, shares, strict=True)
        return tuple(np.asarray(factor * share, dtype=float) for factor, share in pairs)


def fits_product(domain: Domain) -> bool:
    """Whether a product of strategies may be measured on a domain."""
    return domain.size <= MAX_FACTORED and max(domain.shape) <= MAX_FACTORED_LEVELS


def _tells_apart(factor: Ints) -> bool:
    """Whether the columns are linearly independent; at once where each level has a row of its own first."""
    levels = factor.shape[1]
    own = factor[:levels]
    if len(own) == levels and np.count_nonzero(own) == levels and own.diagonal().all():
        return True
    with one_thread():
        return bool(np.linalg.matrix_rank(factor.astype(float)) == levels)


def _largest(entries: Ints) -> int:
    """The largest sum of a column."""
    return int(entries.sum(axis=0).max())
