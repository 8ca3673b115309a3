r"""The optimal strategy of the matrix mechanism, with a certificate that no strategy is better.

A strategy :math:`A` with precision :math:`K=A^\top A` answers query :math:`q` with variance
:math:`v=q^\top K^+q`; its largest column norm is one when :math:`K_{ii}\le 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from laprasdp.arrays import Flags, Floats
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.strategy.dual import Objective, Problem, bound_of, solve, triangle, value_of
from laprasdp.strategy.threads import blas_threads

_EPS = float(np.finfo(np.float64).eps)
_LARGEST = 1e50  # scales beyond this, or weights further apart than the next, overflow or lose every digit
_RATIO = 1e-16


@dataclass(frozen=True)
class Optimum:
    """A strategy for a workload: ``A = encode @ W``, ``W = decode @ A``, largest column norm of ``A`` one."""

    encode: Floats  # Y, (r, m)
    decode: Floats  # D, (m, r)
    variances: Floats  # (m,), of each query at mu = 1: unit noise, unit sensitivity
    value: float  # objective reached, at mu = 1
    lower_bound: float  # no strategy is better than this
    gap: float  # value / lower_bound - 1
    iterations: int


@dataclass(frozen=True)
class GramOptimum:
    """A strategy for a second moment ``G``: precision ``K = AᵀA`` with unit largest diagonal."""

    precision: Floats  # K, (p, p)
    strategy: Floats  # A, (r, p)
    value: float  # tr(G K⁺), at mu = 1
    lower_bound: float
    gap: float
    iterations: int


def optimize(
    workload: Floats,  # W, (m, p)
    *,
    weights: Floats | None = None,  # w, (m,)
    objective: Objective = "squared",
    gap: float = 1e-6,
    max_iterations: int = 2000,
) -> Optimum:
    r"""
    Strategy of least error for a workload, certified by a lower bound on every strategy's error.

    Parameters
    ----------
    workload : (m, p) array
        One query a row, one cell a column.  Equal columns are merged; zeros are set aside.
    weights : (m,) array, optional
        Not negative; one for each query when absent.
    objective : {"squared", "absolute", "largest"}
        :math:`\sum_j w_jv_j`, :math:`\sqrt{2/\pi}\sum_j w_j\sqrt{v_j}` (the expected absolute error), or
        :math:`\max_j w_jv_j`.
    gap : float
        Stop when the value is within this relative distance of the lower bound.
    max_iterations : int
        Stop after this many steps; the `gap` that was reached is reported.

    Returns
    -------
    Optimum
        Variances in squared records at :math:`\mu=1`; divide by :math:`\mu^2`.  A zero query has variance 0.

    Raises
    ------
    DomainError
        An argument has the wrong shape, is not finite, or is out of range.
    UnsupportedQuery
        No query has both a non-zero row and a positive weight, or a query of weight zero is no combination of
        those.

    Notes
    -----
    Multipliers: :math:`\lambda_i\leftarrow\lambda_iK_{ii}^2` in logarithms with momentum and restarts, then
    Newton steps when the distinct columns are few.  For the absolute error :math:`u_j=w_j/\sqrt{v_j}`,
    and the variances :math:`v` of any :math:`(\lambda,u)` give, by Hölder's inequality, the lower bound
    :math:`(\sum_j w_j^{2/3}u_j^{1/3}v_j^{2/3})^{3/2}/(\sum_i\lambda_i)^{1/2}` of :math:`\sum_jw_j\sqrt{v_j}`.
    Time :math:`O(r^2p)` a step with rank :math:`r\le\min(m,p)`, :math:`O(rp^2+p^3)` a Newton step.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi.  The matrix mechanism.  VLDB J. 24 (2015).
    Yuan, Yang, Zhang, Hao.  Convex optimization for linear query processing.  arXiv:1602.04302 (2016).
    Denisov, McMahan, Rush, Smith, Thakurta.  Improved differential privacy for SGD.  arXiv:2202.08312 (2022).

    Examples
    --------
    >>> found = optimize(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> round(found.value, 5), round(found.lower_bound, 5)
    (2.0, 2.0)
    >>> found = optimize(np.array([[1.0, 0.0], [1.0, 1.0]]))
    >>> round(found.value, 5), found.gap < 1e-6
    (2.61803, True)
    """
    table = _checked(workload, "workload")
    count = table.shape[0]
    weigh = _checked_weights(weights, count)
    if objective not in get_args(Objective):
        raise DomainError(f"objective must be one of {', '.join(get_args(Objective))}")
    _check_stop(gap, max_iterations)
    active = table.any(axis=1) & (weigh > 0)
    if not active.any():
        raise UnsupportedQuery("every query of the workload is zero or has weight zero")
    merged = _merged(table)
    with blas_threads(min(merged.shape)):
        chosen = merged if active.all() else _merged(table[active])
        root = triangle(chosen.T).T
        left, s, _ = np.linalg.svd(root, full_matrices=False)
        basis = left[:, s > max(chosen.shape) * _EPS * s[0]]
        problem = Problem(basis, basis.T @ chosen, weigh[active], objective)
        best, bounds, iterations = solve(problem, gap, max_iterations)
        encode = np.zeros((basis.shape[1], count))
        encode[:, active] = best.strategy @ basis.T
        strategy = encode @ merged
        longest = float(np.sqrt(np.einsum("ki,ki->i", strategy, strategy).max()))
        encode, strategy = encode / longest, strategy / longest
        decode = np.zeros((count, basis.shape[1]))
        decode[active] = best.left * np.sqrt(best.s) * longest
        others = table.any(axis=1) & ~active
        if others.any():
            decode[others] = np.linalg.lstsq(strategy.T, merged[others].T, rcond=None)[0].T
        _check_decoded(merged, decode @ strategy, others)
        variances = np.einsum("jk,jk->j", decode, decode)
        value = value_of(objective, weigh[active], variances[active])
        bound = max(bound_of(problem, point) for point in bounds)
    return Optimum(encode, decode, variances, value, bound, value / bound - 1, iterations)


def _check_decoded(table: Floats, decoded: Floats, others: Flags) -> None:
    exact = np.abs(table - decoded).max(axis=1) <= 1e-9 * np.abs(table).max()
    if not exact[others].all():
        raise UnsupportedQuery("a query of weight zero is no combination of the weighted queries")
    if not exact.all():
        raise UnsupportedQuery("the workload is too ill-conditioned to be answered from one strategy")


def _checked_weights(weights: Floats | None, count: int) -> Floats:
    weigh = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if weigh.shape != (count,) or not np.isfinite(weigh).all() or bool((weigh < 0).any()):
        raise DomainError(f"weights must be {count} finite numbers, none negative")
    if bool(((weigh > 0) & (weigh < _RATIO * weigh.max())).any()) or weigh.max() > _LARGEST:
        raise DomainError(f"positive weights must be below {_LARGEST:g} and within a factor {1 / _RATIO:g}")
    return weigh


def optimize_gram(gram: Floats, *, gap: float = 1e-6, max_iterations: int = 2000) -> GramOptimum:
    r"""
    Strategy of least total variance for a second moment of queries.

    Parameters
    ----------
    gram : (p, p) array
        :math:`G=\sum_j w_jq_jq_j^\top`, symmetric and positive semidefinite; it may be singular.
    gap, max_iterations
        As for `optimize`.

    Returns
    -------
    GramOptimum
        Precision with unit largest diagonal, whose null space is that of `gram`.

    Raises
    ------
    DomainError
        `gram` is not a finite, symmetric, positive semidefinite matrix.
    UnsupportedQuery
        `gram` is zero.

    Notes
    -----
    Time :math:`O(p^3)` a step.  Source as for `optimize`.

    Examples
    --------
    >>> found = optimize_gram(np.eye(3) + np.ones((3, 3)))
    >>> bool(np.isclose(found.precision.diagonal().max(), 1)), round(found.value, 5)
    (True, 5.33333)
    """
    moment = _checked(gram, "gram")
    _check_stop(gap, max_iterations)
    largest = float(np.abs(moment).max())
    if moment.shape[0] != moment.shape[1] or np.abs(moment - moment.T).max() > 1e-9 * largest:
        raise DomainError("gram must be a symmetric matrix")
    if largest == 0:
        raise UnsupportedQuery("gram is zero")
    with blas_threads(len(moment)):
        power, vectors = np.linalg.eigh((moment + moment.T) / 2)
        if power[0] < -1e-9 * power[-1]:
            raise DomainError("gram must be positive semidefinite")
        keep = power > 16 * len(moment) * _EPS * power[-1]
        used = moment.diagonal() > 0
        factor = np.sqrt(power[keep])[:, None] * vectors[used][:, keep].T
    rank = len(factor)
    with blas_threads(rank):
        problem = Problem(np.eye(rank), factor, np.ones(rank), "squared")
        best, bounds, iterations = solve(problem, gap, max_iterations)
        half = best.strategy @ factor
        longest = float(np.sqrt(np.einsum("ki,ki->i", half, half).max()))
        strategy = np.zeros((rank, len(moment)))
        strategy[:, used] = half / longest
        value = float((best.left**2 @ best.s).sum()) * longest**2
        bound = max(bound_of(problem, point) for point in bounds)
    precision = strategy.T @ strategy
    return GramOptimum(precision, strategy, value, bound, value / bound - 1, iterations)


def _checked(matrix: Floats, name: str) -> Floats:
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise DomainError(f"{name} must be a matrix with at least one row and one column")
    if not np.isfinite(array).all():
        raise DomainError(f"{name} must be finite")
    if array.any() and not 1 / _LARGEST < np.abs(array).max() < _LARGEST:
        raise DomainError(f"the largest entry of {name} must lie between {1 / _LARGEST:g} and {_LARGEST:g}")
    return array


def _check_stop(gap: float, max_iterations: int) -> None:
    if not 0 < gap < np.inf:
        raise DomainError("gap must be positive and finite")
    if max_iterations < 1:
        raise DomainError("max_iterations must be at least 1")


def _merged(table: Floats) -> Floats:
    """Keep the distinct non-zero columns, in order of first appearance."""
    first: dict[bytes, int] = {}
    for i in np.flatnonzero(table.any(axis=0)):
        first.setdefault((table[:, i] + 0.0).tobytes(), int(i))
    return table if len(first) == table.shape[1] else table[:, list(first.values())]
