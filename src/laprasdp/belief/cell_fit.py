"""A fit over the cells of a small table: `fit` where all that was released is a belief over cells."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import scipy.optimize

from laprasdp.arrays import Floats
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.factored import FactoredBelief
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.strategy.threads import blas_threads

_LEAST = 0.5  # rows that a level is thought to have at least
_VAGUE = 1e4  # strength of the one-way parts
_BOUNDS = (-12.0, 16.0)  # of the logarithm of the strength


class CellFit:
    r"""
    What a table near the product of its one-way marginals would answer, seen by a belief over its cells.

    Parameters
    ----------
    belief : DenseBelief or FactoredBelief
        That spans all cells.
    domain : Domain
        Of at least two attributes of two levels or more.

    Raises
    ------
    ValueError
        There are no two such attributes, so nothing can be independent.

    Notes
    -----
    With estimates :math:`y` of the cells and their covariance :math:`\Sigma`, N and :math:`p_i` of the
    one-way marginals of y, and the covariance :math:`N(\mathrm{diag}(p)-pp^\top)` of independent counts in
    its one-way part :math:`C_1` and the rest :math:`C_2`: :math:`x\sim N(Np, vC_2+v_1(C_1+Npp^\top))`, where
    v has the largest likelihood of y, and the fit is the posterior mean.  One v for all sets: a small table
    tells little of each.

    **Privacy.**  A function of released numbers: it costs nothing.
    """

    def __init__(self, belief: DenseBelief | FactoredBelief, domain: Domain) -> None:
        if sum(size > 1 for size in domain.shape) < 2:
            raise ValueError("one attribute is independent of nothing")
        counts, errors = belief.mean, belief.inverse
        self._pull = belief.pull
        rows = max(math.fsum(counts), 1.0)
        shares = [_shares(counts.reshape(domain.shape), axis) for axis in range(len(domain.shape))]
        product = np.ones(())
        for share in shares:
            product = np.multiply.outer(product, share)
        middle = rows * product.reshape(-1)
        vague = _VAGUE * _one_way(shares, rows) + np.outer(middle, middle) * (_VAGUE / rows)
        free = np.diag(middle) - np.outer(middle, middle) / rows - _one_way(shares, rows)
        known, surprise = errors + vague, counts - middle

        def unlikely(log: float) -> float:
            lower = np.linalg.cholesky(known + math.exp(log) * free)
            left = scipy.linalg.solve_triangular(lower, surprise, lower=True)
            return 2 * float(np.log(lower.diagonal()).sum()) + float(left @ left)

        with blas_threads(len(known)):
            found = scipy.optimize.minimize_scalar(
                unlikely, bounds=_BOUNDS, method="bounded", options={"xatol": 0.05}
            )
            self.strength = math.exp(float(found.x))
            prior = self.strength * free + vague
            self._cells = middle + prior @ np.linalg.solve(errors + prior, surprise)

    def follows(self, belief: DenseBelief | FactoredBelief) -> bool:
        """Whether the belief has learned nothing since, and is the same."""
        return belief.pull is self._pull

    def estimate(self, query: Query) -> float:
        """The fitted value of a query."""
        return float(query.vector() @ self._cells)


def _shares(counts: Floats, axis: int) -> Floats:
    """The share of each level of an attribute; none is nothing."""
    found = np.maximum(counts.sum(axis=tuple(set(range(counts.ndim)) - {axis})), _LEAST)
    return np.asarray(found / found.sum())


def _one_way(shares: list[Floats], rows: float) -> Floats:
    """(n, n) covariance of the one-way parts of counts of independent attributes."""
    found = np.zeros(())
    for axis, own in enumerate(shares):
        part = np.array(rows)
        for other, share in enumerate(shares):
            alone = np.outer(share, share)
            part = np.kron(part, np.diag(own) - alone if other == axis else alone)
        found = found + part
    return np.asarray(found)
