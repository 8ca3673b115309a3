"""What is known about a small table: a Gaussian belief over its cells, exact after every release."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.privacy.law import Law
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.threads import blas_threads

_KEPT = 512  # releases whose rows are kept, for the joint law of older answers
_REFRESH = 64  # rows after which the inverse is computed afresh, so that rounding does not build up


class DenseBelief:
    """
    Least squares over the cells: precision ``K = Σ AᵀA``, its inverse, and the pull ``Σ Aᵀz``.

    Parameters
    ----------
    cells : int
        n, at most `limits.MAX_CELLS`.

    Notes
    -----
    Nothing is assumed of the table: until the rows measured span a query it has no estimate.  The first
    release must span all cells.
    """

    def __init__(self, cells: int) -> None:
        self.precision: Floats = np.zeros((cells, cells))
        self.inverse: Floats = np.full((cells, cells), np.inf)
        self.pull: Floats = np.zeros(cells)
        self._laplace: Floats = np.zeros((0, cells))  # rows of Laplace noise, as if of unit variance
        self._counts = False  # nothing was measured but each cell, with noise that is a whole number
        self._since = _REFRESH
        self._later: tuple[Floats, ...] = ()  # rows of the last releases after the first one
        self.age = 0  # releases that it has learned

    def learn(self, measurement: Rows, values: Floats | None) -> None:
        """
        Condition on a release.

        Parameters
        ----------
        measurement : Rows
        values : (r,) array or None
            Noisy values; None for a rehearsal, after which means are meaningless.
        """
        rows: Floats = np.stack([query.vector() for query in measurement.queries]).astype(float)
        if isinstance(measurement.matrix, int):
            rows = rows * measurement.scales[:, np.newaxis]
        else:
            rows = measurement.coefficients @ rows
        noise = np.sqrt(measurement.noise_variance)
        if measurement.law == "laplace":
            counted = measurement.discrete and np.array_equal(
                np.sort(rows, axis=0)[-1], np.ones(rows.shape[1])
            )
            self._counts = not self.precision.any() and counted and float(np.abs(rows).sum()) == len(rows)
            self._laplace = np.concatenate([self._laplace, rows / noise])
        self.add(rows / noise, np.full(len(rows), np.nan) if values is None else values / noise)

    def add(self, rows: Floats, values: Floats) -> None:
        """Condition on (r, n) rows measured with unit noise."""
        self._later = (*self._later, rows)[-_KEPT:] if self.age else ()
        self.age += 1
        self.precision = self.precision + rows.T @ rows
        self.pull = self.pull + rows.T @ values
        self._since += len(rows)
        if self._since >= _REFRESH:
            self._refresh()
            return
        for row in rows:
            seen = self.inverse @ row
            self.inverse = self.inverse - np.outer(seen, seen / (1 + row @ seen))

    @property
    def mean(self) -> Floats:
        """(n,) unbiased value of each cell."""
        return np.asarray(self.inverse @ self.pull)

    def estimate(self, query: Query) -> tuple[float, float]:
        """Unbiased value and exact variance of `query`."""
        vector = query.vector().astype(float)
        seen = self.inverse @ vector
        value = float(seen @ self.pull)
        return float(np.rint(value)) if self._counts else value, float(vector @ seen)

    def estimates(self, queries: Sequence[Query]) -> list[tuple[float, float] | None]:
        """`estimate` of each query, all at once."""
        stack = np.stack([query.vector() for query in queries]).astype(float)
        with blas_threads(len(stack)):
            seen = stack @ self.inverse
            values, variances = seen @ self.pull, np.einsum("ij,ij->i", seen, stack)
        if self._counts:  # of whole numbers, but for the rounding of the inverse
            values = np.rint(values)
        return list(zip(values.tolist(), variances.tolist(), strict=True))

    def variance(self, query: Query) -> float:
        """Exact variance of `query`, in squared records."""
        vector = query.vector().astype(float)
        return float(vector @ self.inverse @ vector)

    def law(self, query: Query) -> tuple[Law, float]:
        r"""
        The law of the error of `query`, and of how many Laplace variables it is the sum.

        Notes
        -----
        The error is :math:`\sum_i c_i z_i` over the measured rows.  Where these are the cells it is a sum of
        whole numbers, whose law is exact for a count.  Otherwise it is taken for one of the same variance and
        kurtosis: :math:`v^2/\sum_i c_i^4` Laplace variables, i over their rows and :math:`c_i` in units of
        their deviation.
        """
        if not len(self._laplace):
            return "gaussian", 1.0
        vector = query.vector().astype(float)
        if self._counts and float(np.abs(vector).max()) == 1:
            return "geometric", float(np.abs(vector).sum())
        seen = self.inverse @ vector
        parts = float(vector @ seen) ** 2 / float(((self._laplace @ seen) ** 4).sum())
        return "laplace", max(parts, 1.0)

    def covariance(self, queries: list[Query], when: Sequence[int] | None = None) -> Floats:
        """
        (m, m) joint covariance of the errors of several queries.

        Parameters
        ----------
        queries : list of m Query
        when : sequence of m int, optional
            The age at which each was told; now by default.  NaN where that is too long ago.

        Notes
        -----
        Two of different times have the covariance of the later one (docs/proofs/primm.md, theorem 1c).
        """
        stack = np.stack([query.vector() for query in queries]).astype(float)
        joint: Floats = stack @ self.inverse @ stack.T
        later = np.maximum.outer(*[np.full(len(queries), self.age) if when is None else np.asarray(when)] * 2)
        for age in np.unique(later[later < self.age]).tolist():
            rows = self._later[age - self.age :]
            if len(rows) < self.age - age:
                joint[later == age] = np.nan
                continue
            with blas_threads(len(self.precision)):
                then = self.precision - sum((each.T @ each for each in rows), np.zeros_like(self.precision))
                found = stack @ scipy.linalg.solve(then, stack.T, assume_a="pos", check_finite=False)
            joint[later == age] = found[later == age]
        return joint

    def drift(self) -> float:
        """Largest relative deviation of the inverse from one computed afresh; the drift check."""
        product = self.precision @ self.inverse
        return float(np.abs(product - np.eye(len(product))).max())

    def copy(self) -> DenseBelief:
        """An independent belief in the same state."""
        return copy.copy(self)  # arrays are replaced, never changed in place

    def __deepcopy__(self, memo: object) -> DenseBelief:
        return self.copy()

    def _refresh(self) -> None:
        with blas_threads(len(self.precision)):
            factor = scipy.linalg.cho_factor(self.precision, lower=True, check_finite=False)
            self.inverse = scipy.linalg.cho_solve(factor, np.eye(len(self.precision)), check_finite=False)
        self._since = 0
