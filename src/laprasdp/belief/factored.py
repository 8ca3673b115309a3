r"""What is known after releases of one product strategy: least squares that are a product over attributes."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.privacy.law import Law
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.threads import blas_threads

_NUMBERS = 2**22  # of the queries that are looked at together


class FactoredBelief:
    r"""
    Least squares over the cells, for releases that all measure the same :math:`A=\bigotimes_iA_i`.

    Parameters
    ----------
    domain : Domain
        Of n cells, few enough for a value each.

    Notes
    -----
    With release r of noise variance :math:`1/w_r` and values :math:`z_r`, and :math:`W=\sum_rw_r`, the
    cells are :math:`\bigotimes_iA_i^+\,\sum_rw_rz_r/W`, of covariance
    :math:`\bigotimes_i(A_i^\top A_i)^{-1}/W`: nothing of size n × n is needed.  The error of a query is
    :math:`c^\top\sum_rw_re_r/W` with :math:`c=\bigotimes_iA_i(A_i^\top A_i)^{-1}q`.
    """

    def __init__(self, domain: Domain) -> None:
        self._shape = domain.shape
        self._first: ProductRows | None = None
        self._weights: tuple[float, ...] = ()
        self.pull: Floats = np.zeros(self._shape)

    @property
    def age(self) -> int:
        """Releases that it has learned."""
        return len(self._weights)

    @property
    def measured(self) -> ProductRows | None:
        """The first release; those after it measure the same rows."""
        return self._first

    def learn(self, measurement: ProductRows, values: Floats | None) -> None:
        """
        Condition on a release.

        Parameters
        ----------
        measurement : ProductRows
        values : (r,) array or None
            Noisy values; None for a rehearsal, after which means are meaningless.

        Raises
        ------
        ValueError
            It measures other rows than those before it.
        """
        if self._first is None:
            self._first = measurement
        elif not _alike(self._first, measurement):
            raise ValueError("a product strategy is measured again as it was, or not at all")
        weight = 1 / measurement.noise_variance
        self._weights = (*self._weights, weight)
        if values is None:
            self.pull = np.full(self._shape, np.nan)
            return
        tensor = values.reshape([len(factor) for factor in measurement.factors])
        with blas_threads(max(self._shape)):
            for factor in measurement.rows:
                tensor = np.tensordot(tensor, np.linalg.pinv(factor), axes=(0, 1))
        self.pull = self.pull + weight * tensor

    @property
    def inverse(self) -> Floats:
        """(n, n) covariance of the cells."""
        return np.asarray(reduce(_kron, self._spreads) / sum(self._weights))

    @property
    def mean(self) -> Floats:
        """(n,) unbiased value of each cell."""
        return np.asarray(self.pull / sum(self._weights)).reshape(-1)

    def estimate(self, query: Query) -> tuple[float, float] | None:
        """Unbiased value and exact variance of `query`; None before the first release."""
        return self.estimates([query])[0]

    def estimates(self, queries: Sequence[Query]) -> list[tuple[float, float] | None]:
        """`estimate` of each query."""
        if self._first is None:
            return [None] * len(queries)
        found: list[tuple[float, float] | None] = []
        for stack in self._stacks(queries):
            values = stack @ self.mean
            values = np.rint(values) if self._counts else values
            found += zip(values.tolist(), self._variances(stack).tolist(), strict=True)
        return found

    def variance(self, query: Query) -> float:
        """Exact variance of `query`, in squared records."""
        return float(self._variances(_stacked([query]))[0])

    def law(self, query: Query) -> tuple[Law, float]:
        """The law of the error of `query`, and of how many Laplace variables it is the sum; see `laws`."""
        return self.laws([query])[0]

    def laws(self, queries: Sequence[Query]) -> list[tuple[Law, float]]:
        r"""
        The law of the error of each query, and of how many Laplace variables it is the sum.

        Notes
        -----
        As of `laprasdp.belief.dense.DenseBelief.law`: a sum of whole numbers where each cell was counted
        once, else :math:`v^2/\sum_ic_i^4` Laplace variables, here
        :math:`(\sum_ic_i^2)^2W^2/(\sum_ic_i^4\sum_rw_r^2)`.
        """
        assert self._first is not None
        found: list[tuple[Law, float]] = []
        again = sum(self._weights) ** 2 / math.fsum(one**2 for one in self._weights)
        for stack in self._stacks(queries):
            with blas_threads(max(self._shape)):
                cells = self._along(stack, self._spreads)
                squares = self._along(cells, self._first.rows).reshape(len(stack), -1) ** 2
            parts = squares.sum(axis=1) ** 2 * again / np.einsum("ij,ij->i", squares, squares)
            sizes = np.abs(stack)
            whole = (sizes.max(axis=1) == 1) & self._counts
            for exact, one, other in zip(whole, sizes.sum(axis=1).tolist(), parts.tolist(), strict=True):
                found.append(("geometric", one) if exact else ("laplace", max(other, 1.0)))
        return found

    def covariance(self, queries: list[Query], when: Sequence[int] | None = None) -> Floats:
        """(m, m) joint covariance of the errors of several queries, as of `DenseBelief.covariance`."""
        stack = _stacked(queries)
        with blas_threads(max(self._shape)):
            joint = stack @ self._along(stack, self._spreads).reshape(len(stack), -1).T
        told = np.full(len(queries), self.age) if when is None else np.asarray(when)
        known = np.cumsum([0.0, *self._weights])
        return np.asarray(joint / known[np.maximum.outer(told, told)])

    def copy(self) -> FactoredBelief:
        """An independent belief in the same state."""
        return copy.copy(self)  # arrays are replaced, never changed in place

    def __deepcopy__(self, memo: object) -> FactoredBelief:
        return self.copy()

    @property
    def _counts(self) -> bool:
        """Whether nothing was measured but each cell, with noise that is a whole number."""
        return self.age == 1 and self._first is not None and self._first.discrete and self._first.counts

    @cached_property
    def _spreads(self) -> tuple[Floats, ...]:
        r""":math:`(A_i^\top A_i)^{-1}`."""
        assert self._first is not None
        with blas_threads(max(self._shape)):
            return tuple(np.asarray(np.linalg.inv(factor.T @ factor)) for factor in self._first.rows)

    def _stacks(self, queries: Sequence[Query]) -> Iterator[Floats]:
        """(m, n) vectors of some queries after the others."""
        asked, step = list(queries), max(1, _NUMBERS // math.prod(self._shape))
        for start in range(0, len(asked), step):
            yield _stacked(asked[start : start + step])

    def _variances(self, stack: Floats) -> Floats:
        with blas_threads(max(self._shape)):
            seen = self._along(stack, self._spreads).reshape(len(stack), -1)
        return np.asarray(np.einsum("ij,ij->i", seen, stack) / sum(self._weights))

    def _along(self, stack: Floats, matrices: Sequence[Floats]) -> Floats:
        """Each query, (m, n), as a tensor that one matrix each is applied to, attribute by attribute."""
        tensor = stack.reshape(len(stack), *self._shape)
        for matrix in matrices:  # the first attribute goes to the end each time, so they end in order
            tensor = np.tensordot(tensor, matrix, axes=(1, 1))
        return tensor


def _stacked(queries: Sequence[Query]) -> Floats:
    return np.stack([query.vector() for query in queries]).astype(float)


def _alike(one: ProductRows, other: ProductRows) -> bool:
    return one.bits == other.bits and all(map(np.array_equal, one.factors, other.factors))


def _kron(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.kron(one, other), dtype=float)
