"""What is known about a small table: a Gaussian belief over its cells, exact after every release."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.threads import blas_threads

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
        self._pull: Floats = np.zeros(cells)
        self._since = _REFRESH

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
            rows = rows * (measurement.matrix / 2.0**measurement.bits)
        else:
            rows = measurement.coefficients @ rows
        noise = np.sqrt(measurement.noise_variance)
        self.add(rows / noise, np.full(len(rows), np.nan) if values is None else values / noise)

    def add(self, rows: Floats, values: Floats) -> None:
        """Condition on (r, n) rows measured with unit noise."""
        self.precision = self.precision + rows.T @ rows
        self._pull = self._pull + rows.T @ values
        self._since += len(rows)
        if self._since >= _REFRESH:
            self._refresh()
            return
        for row in rows:
            seen = self.inverse @ row
            self.inverse = self.inverse - np.outer(seen, seen / (1 + row @ seen))

    def estimate(self, query: Query) -> tuple[float, float]:
        """Unbiased value and exact variance of `query`."""
        vector = query.vector().astype(float)
        seen = self.inverse @ vector
        return float(seen @ self._pull), float(vector @ seen)

    def estimates(self, queries: Sequence[Query]) -> list[tuple[float, float] | None]:
        """`estimate` of each query, all at once."""
        stack = np.stack([query.vector() for query in queries]).astype(float)
        with blas_threads(len(stack)):
            seen = stack @ self.inverse
            values, variances = seen @ self._pull, np.einsum("ij,ij->i", seen, stack)
        return list(zip(values.tolist(), variances.tolist(), strict=True))

    def variance(self, query: Query) -> float:
        """Exact variance of `query`, in squared records."""
        vector = query.vector().astype(float)
        return float(vector @ self.inverse @ vector)

    def covariance(self, queries: list[Query]) -> Floats:
        """(m, m) joint covariance of the errors of several queries."""
        stack = np.stack([query.vector() for query in queries]).astype(float)
        joint: Floats = stack @ self.inverse @ stack.T
        return joint

    def drift(self) -> float:
        """Largest relative deviation of the inverse from one computed afresh; the drift check."""
        product = self.precision @ self.inverse
        return float(np.abs(product - np.eye(len(product))).max())

    def copy(self) -> DenseBelief:
        """An independent belief in the same state."""
        return copy.copy(self)  # arrays are replaced, never changed in place

    def _refresh(self) -> None:
        with blas_threads(len(self.precision)):
            factor = scipy.linalg.cho_factor(self.precision, lower=True, check_finite=False)
            self.inverse = scipy.linalg.cho_solve(factor, np.eye(len(self.precision)), check_finite=False)
        self._since = 0
