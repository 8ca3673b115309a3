r"""p-identity strategies: every cell and a few weighted sums, for Laplace noise of one scale on all of them.

The strategy :math:`A=[I;\Theta]\,\mathrm{diag}(1/s)`, :math:`s=1+\sum_k\Theta_k`, with p rows
:math:`\Theta\ge 0`, has columns of L1 norm one: one unit moves the answers by at most one in L1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from laprasdp.arrays import Floats
from laprasdp.errors import DomainError
from laprasdp.strategy.threads import one_thread

ROWS = 8
"""p, unless said otherwise: more gain nothing up to a thousand cells."""

_LARGEST = 30.0  # root of a weight of Θ, of either sign: 0 is a stationary point that is no end


@dataclass(frozen=True)
class PIdentity:
    """
    A strategy for a second moment ``G``.

    Attributes
    ----------
    sums : (p, n) array
        Θ, not negative.
    """

    sums: Floats

    @property
    def strategy(self) -> Floats:
        """(n + p, n) A, not negative, with columns of L1 norm one."""
        rows = np.concatenate([np.eye(self.sums.shape[1]), self.sums])
        return np.asarray(rows / self._scales)

    @property
    def covariance(self) -> Floats:
        r"""
        (n, n) covariance of the cells under noise of unit variance: :math:`(A^\top A)^{-1}`.

        Notes
        -----
        :math:`\mathrm{diag}(s)\,(I-\Theta^\top(I+\Theta\Theta^\top)^{-1}\Theta)\,\mathrm{diag}(s)` by
        Woodbury's identity.  Time :math:`O(pn^2)`.
        """
        seen = np.linalg.solve(np.eye(len(self.sums)) + self.sums @ self.sums.T, self.sums)
        inner = np.eye(self.sums.shape[1]) - self.sums.T @ seen
        return np.asarray(inner * np.outer(self._scales, self._scales))

    def value(self, gram: Floats) -> float:
        r""":math:`\mathrm{tr}(G\,(A^\top A)^{-1})`, the error at noise of unit variance."""
        return float(np.sum(gram * self.covariance))

    @property
    def _scales(self) -> Floats:
        return np.asarray(1 + self.sums.sum(axis=0))


def start(cells: int, rows: int = ROWS) -> PIdentity:
    """Where a search begins: sums without a pattern, always the same, and drawn from nothing."""
    places = np.arange(1, rows * cells + 1)
    return PIdentity(np.abs(np.modf(np.sin(places) * 43_758.5453)[0]).reshape(rows, cells))


def optimize_p_identity(
    gram: Floats,  # G, (n, n)
    *,
    first: PIdentity | None = None,
    steps: int = 100,
) -> PIdentity:
    r"""
    A p-identity strategy of small error for a second moment.

    Parameters
    ----------
    gram : (n, n) array
        Symmetric, positive semidefinite; each cell in some query.
    first : PIdentity, optional
        Where to begin; `start` otherwise.
    steps : int
        Of L-BFGS, at most.

    Raises
    ------
    DomainError
        The matrix is none, or not of the size of `first`.

    Notes
    -----
    Minimises :math:`s^\top(G\circ M)s` with :math:`M=(I+\Theta^\top\Theta)^{-1}` over
    :math:`\Theta=T\circ T`; its gradient in :math:`\Theta` is
    :math:`-2\,\Theta M(G\circ ss^\top)M+2\cdot\mathbf 1\,((G\circ M)s)^\top`.  The problem is not convex, so
    there is no certificate; the error of what is found is exact.  Time :math:`O(pn^2)` a step.

    References
    ----------
    McKenna, Miklau, Hay, Machanavajjhala.  Optimizing error of high-dimensional statistical queries under
    differential privacy.  PVLDB 11 (2018), arXiv:1808.03537.

    Examples
    --------
    >>> prefixes = np.tril(np.ones((64, 64)))
    >>> found = optimize_p_identity(prefixes.T @ prefixes)
    >>> bool(np.isclose(found.strategy.sum(axis=0), 1).all())
    True
    >>> bool(found.value(prefixes.T @ prefixes) < 0.6 * np.trace(prefixes.T @ prefixes))
    True
    """
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.isfinite(gram).all():
        raise DomainError(f"a second moment is a finite square matrix, not of shape {gram.shape}")
    begin = first or start(len(gram), min(ROWS, max(1, len(gram) // 4)))
    rows, cells = begin.sums.shape
    if cells != len(gram):
        raise DomainError(f"a strategy for {cells} cells cannot begin one for {len(gram)}")
    diagonal = gram.diagonal()
    unit = float(diagonal.sum()) or 1.0

    def error(flat: Floats) -> tuple[float, Floats]:
        roots = flat.reshape(rows, cells)
        sums = roots**2
        scales = 1 + sums.sum(axis=0)
        seen = np.linalg.solve(np.eye(rows) + sums @ sums.T, sums)  # Θ M
        turned = (seen * scales) @ gram
        moved = diagonal * scales - (sums * turned).sum(axis=0)  # (G ∘ M) s
        pulled = turned * scales
        slope = 2 * (moved - pulled + (pulled @ sums.T) @ seen)
        return float(scales @ moved) / unit, (2 * roots * slope).reshape(-1) / unit

    with one_thread():
        found = scipy.optimize.minimize(
            error,
            np.sqrt(begin.sums).reshape(-1),
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(-_LARGEST, _LARGEST),
            options={"maxiter": steps},
        )
    return PIdentity(np.asarray(found.x.reshape(rows, cells) ** 2))
