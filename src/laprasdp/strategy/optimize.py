r"""The optimal strategy of the matrix mechanism, with a certificate that no strategy is better.

A strategy :math:`A` with precision :math:`K=A^\top A` answers query :math:`q` with variance
:math:`v=q^\top K^+q`; its largest column norm is one when :math:`K_{ii}\le 1`.  With one multiplier
:math:`\lambda_i` a column and one weight :math:`u_j` a query,

.. math:: t(\lambda, u) = \|\mathrm{diag}(u)^{1/2}\, W\, \mathrm{diag}(\lambda)^{1/2}\|_*

is concave, :math:`2\,\partial t/\partial\lambda_i=K_{ii}`, :math:`2\,\partial t/\partial u_j=v_j`, and
:math:`t^2/\sum_i\lambda_i` is at most :math:`\sum_j u_j v_j` of every strategy.  The solver climbs
:math:`t` by accelerated multiplicative steps and finishes with an interior-point Newton method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import scipy.linalg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from laprasdp.errors import DomainError, UnsupportedQuery

Floats = npt.NDArray[np.float64]
Objective = Literal["squared", "absolute", "largest"]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 8192  # columns handled at a time, so that temporary arrays stay small
_NEWTON = 2500  # most multipliers for which second derivatives are formed
_LARGEST = 1e50  # scales beyond this, or weights further apart than the next, overflow or lose every digit
_RATIO = 1e-16
_WARM = 10  # multiplicative steps before Newton's method
_ONE_THREAD = 512  # below this many queries or columns more BLAS threads only cost time


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


class _Problem(NamedTuple):
    basis: Floats  # B, (m, r)
    factor: Floats  # F, (r, p): the workload is B F
    weights: Floats  # w, (m,), positive
    objective: Objective


class _Point(NamedTuple):
    """Everything that depends on (λ, u): X = diag(√u) B F diag(√λ) has singular values s."""

    lam: Floats  # (p,)
    u: Floats  # (m,)
    s: Floats  # (r,)
    turn: Floats  # Uᵀ R, (r, r): the strategy is s^-½ Uᵀ R F
    left: Floats  # B R⁻¹ U, (m, r)
    diagonal: Floats  # K_ii, (p,)
    variances: Floats  # v_j, (m,)


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
    weigh = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if weigh.shape != (count,) or not np.isfinite(weigh).all() or bool((weigh < 0).any()):
        raise DomainError(f"weights must be {count} finite numbers, none negative")
    if bool(((weigh > 0) & (weigh < _RATIO * weigh.max())).any()) or weigh.max() > _LARGEST:
        raise DomainError(f"positive weights must be below {_LARGEST:g} and within a factor {1 / _RATIO:g}")
    if objective not in get_args(Objective):
        raise DomainError(f"objective must be one of {', '.join(get_args(Objective))}")
    _check_stop(gap, max_iterations)
    active = table.any(axis=1) & (weigh > 0)
    if not active.any():
        raise UnsupportedQuery("every query of the workload is zero or has weight zero")
    merged = _merged(table)
    with threadpool_limits(1 if min(merged.shape) < _ONE_THREAD else None):
        chosen = merged if active.all() else _merged(table[active])
        root = _triangle(chosen.T).T
        left, s, _ = np.linalg.svd(root, full_matrices=False)
        basis = left[:, s > max(chosen.shape) * _EPS * s[0]]
        problem = _Problem(basis, basis.T @ chosen, weigh[active], objective)
        best, bounds, iterations = _solve(problem, gap, max_iterations)
        encode = np.zeros((basis.shape[1], count))
        encode[:, active] = best.turn @ basis.T / np.sqrt(best.s)[:, None]
        strategy = encode @ merged
        longest = float(np.sqrt(np.einsum("ki,ki->i", strategy, strategy).max()))
        encode, strategy = encode / longest, strategy / longest
        decode = np.zeros((count, basis.shape[1]))
        decode[active] = best.left * np.sqrt(best.s) * longest
        others = table.any(axis=1) & ~active
        if others.any():
            decode[others] = np.linalg.lstsq(strategy.T, merged[others].T, rcond=None)[0].T
        exact = np.abs(merged - decode @ strategy).max(axis=1) <= 1e-9 * np.abs(merged).max()
        if not exact[others].all():
            raise UnsupportedQuery("a query of weight zero is no combination of the weighted queries")
        if not exact.all():
            raise UnsupportedQuery("the workload is too ill-conditioned to be answered from one strategy")
        variances = np.einsum("jk,jk->j", decode, decode)
        value = _value(objective, weigh[active], variances[active])
        bound = max(_bound(problem, point) for point in bounds)
    return Optimum(encode, decode, variances, value, bound, max(value / bound - 1, 0.0), iterations)


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
    with threadpool_limits(1 if len(moment) < _ONE_THREAD else None):
        power, vectors = np.linalg.eigh((moment + moment.T) / 2)
        if power[0] < -1e-9 * power[-1]:
            raise DomainError("gram must be positive semidefinite")
        keep = power > len(moment) * _EPS * power[-1]
        used = moment.diagonal() > 0
        factor = np.sqrt(power[keep])[:, None] * vectors[used][:, keep].T
        rank = len(factor)
        problem = _Problem(np.eye(rank), factor, np.ones(rank), "squared")
        best, bounds, iterations = _solve(problem, gap, max_iterations)
        half = best.turn @ factor / np.sqrt(best.s)[:, None]
        longest = float(np.sqrt(np.einsum("ki,ki->i", half, half).max()))
        strategy = np.zeros((rank, len(moment)))
        strategy[:, used] = half / longest
        value = float((best.left**2 @ best.s).sum()) * longest**2
        bound = max(_bound(problem, point) for point in bounds)
    precision = strategy.T @ strategy
    return GramOptimum(precision, strategy, value, bound, max(value / bound - 1, 0.0), iterations)


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


def _triangle(matrix: Floats) -> Floats:
    """Give R of a QR factorisation."""
    r: Floats = np.asarray(np.linalg.qr(matrix, mode="r"))
    return r


def _point(problem: _Problem, lam: Floats, u: Floats) -> _Point:
    """Evaluate the singular values, the diagonal and the variances at (λ, u)."""
    basis, factor = problem.basis, problem.factor
    root = _triangle(np.sqrt(u)[:, None] * basis)
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(lam), _BLOCK)]
    inner = np.zeros((len(factor), len(factor)))
    for b in blocks:
        inner += (factor[:, b] * lam[b]) @ factor[:, b].T
    power, turn = np.linalg.eigh(root @ inner @ root.T)
    s = np.sqrt(np.maximum(power, 0))
    if s[0] < 1e-5 * s[-1]:  # squaring lost half the digits: use the factor itself
        narrow = _triangle((root @ factor * np.sqrt(lam)).T)
        turn, s, _ = np.linalg.svd(narrow.T)
        s = np.maximum(s, _EPS * s[0])
    mix = turn.T @ root
    scaled = mix / np.sqrt(s)[:, None]
    diagonal = np.concatenate([np.einsum("ki,ki->i", y, y) for y in (scaled @ factor[:, b] for b in blocks)])
    left = scipy.linalg.solve_triangular(root, basis.T, trans="T", check_finite=False).T @ turn
    return _Point(lam, u, s, mix, left, diagonal, left**2 @ s)


def _value(objective: Objective, weights: Floats, variances: Floats) -> float:
    if objective == "absolute":
        return float(np.sqrt(2 / np.pi) * (weights @ np.sqrt(variances)))
    each = weights * variances
    return float(each.max() if objective == "largest" else each.sum())


def _quick_bound(problem: _Problem, point: _Point) -> float:
    """Lower bound on the value of every strategy, up to rounding."""
    if problem.objective == "absolute":
        w, u, v = problem.weights, point.u, point.variances
        mean = float((w ** (2 / 3) * u ** (1 / 3) * v ** (2 / 3)).sum())
        return float(np.sqrt(2 / np.pi) * mean**1.5 / np.sqrt(point.lam.sum()))
    total = (point.u / problem.weights).sum() if problem.objective == "largest" else 1.0
    return float(point.s.sum() ** 2 / (point.lam.sum() * total))


def _bound(problem: _Problem, point: _Point) -> float:
    """Lower bound less a margin for rounding, from singular values that were not squared."""
    if problem.objective == "absolute":
        return _quick_bound(problem, point) * (1 - 1e-10)
    root = _triangle(np.sqrt(point.u)[:, None] * problem.basis)
    narrow = _triangle((root @ problem.factor * np.sqrt(point.lam)).T)
    s = np.linalg.svd(narrow, compute_uv=False)
    margin = 4 * len(s) * np.sqrt(len(point.lam)) * _EPS * s[0]
    return _quick_bound(problem, point._replace(s=s - margin / len(s))) * (1 - 1e-13)


def _reach(problem: _Problem, point: _Point) -> tuple[float, float]:
    """Value of the strategy of a point and the lower bound it gives, up to rounding."""
    value = _value(problem.objective, problem.weights, point.variances * point.diagonal.max())
    return value, _quick_bound(problem, point)


def _solve(problem: _Problem, gap: float, limit: int) -> tuple[_Point, list[_Point], int]:
    """Find a point of good value and points of good bound; the steps taken come third."""
    free = problem.objective == "largest"
    columns, count = problem.factor.shape[1], len(problem.weights)
    newton = columns + (count if free else 0) <= _NEWTON
    moving = np.concatenate(
        [np.full(columns, -np.log(columns)), np.full(count if free else 0, -np.log(count))]
    )
    last, u = moving, problem.weights
    best = top = point = None
    value, bound, before, age, taken = np.inf, 0.0, 0.0, 0, 0
    while taken < limit:
        if newton and taken >= _WARM and top is not None:
            point, steps = _polish(problem, top, 0.9 * gap, limit - taken)
            newton, taken = False, taken + max(steps, 1)
            moving = last = np.log(np.concatenate([point.lam, point.u / problem.weights])[: len(moving)])
        else:
            if free:
                u = problem.weights * _simplex(moving[columns:])
            point, taken = _point(problem, _simplex(moving[:columns]), u), taken + 1
        here, below = _reach(problem, point)
        if best is None or here < value:
            best, value = point, here
        if top is None or below > bound:
            top, bound = point, below
        if value <= bound * (1 + 0.9 * gap):
            break
        slope = np.concatenate([point.diagonal, problem.weights * point.variances])[: len(moving)]
        if problem.objective == "absolute":
            u = problem.weights / np.sqrt(point.variances)
        target = moving + (1 if free else 2) * np.log(slope / point.s.sum())
        age = 0 if below < before else age + 1  # past the top: drop the momentum
        moving = target + age / (age + 3) * (target - last)
        last, before = target, below
    if best is None or top is None:
        raise AssertionError("no step was taken")
    return best, [best, top], taken


def _simplex(logarithm: Floats) -> Floats:
    power: Floats = np.exp(np.maximum(logarithm - logarithm.max(), -60))
    power /= power.sum()
    return power


def _polish(problem: _Problem, point: _Point, gap: float, limit: int) -> tuple[_Point, int]:
    """Newton's method; for the absolute error between reweightings, which contract by about four."""
    if problem.objective != "absolute":
        return _newton(problem, point, gap, limit)
    taken = 0
    for _ in range(30):
        value, bound = _reach(problem, point)
        if value <= bound * (1 + gap) or taken >= limit:
            break
        frozen = problem._replace(weights=point.u, objective="squared")
        point, steps = _newton(
            frozen, point, max(gap / 4, min((value / bound - 1) / 20, 1e-3)), limit - taken
        )
        point = _point(problem, point.lam, problem.weights / np.sqrt(point.variances))
        taken += steps + 1
    return point, taken


def _curvature(rows: Floats, s: Floats) -> Floats:
    r"""
    Second derivative of :math:`-2t` at `rows`, a matrix of columns or queries in the singular basis.

    The kernel is :math:`1/(s_k+s_l)=\int e^{y-e^y(s_k+s_l)}dy`, by the trapezoid rule to about 0.1%: a few
    products of matrices instead of one multiplication for each pair of singular values.
    """
    total = np.zeros((len(rows), len(rows)))
    for scale in np.exp(np.arange(-np.log(2 * s.max()) - 7, 3.5 - np.log(2 * s.min()))):
        part = rows * np.sqrt(s * np.exp(-scale * s))
        product = part @ part.T
        product *= product
        total += scale * product
    return total


def _newton(problem: _Problem, point: _Point, gap: float, limit: int) -> tuple[_Point, int]:
    """Maximise 2t - Σλ over λ ≥ 0, and over weights on the simplex when they are free: a log barrier."""
    free = problem.objective == "largest"
    columns = len(point.lam)
    size = float(point.s.sum()) ** 2
    scaled = problem._replace(weights=problem.weights / size)

    def at(x: Floats) -> _Point:
        return _point(scaled, x[:columns], scaled.weights * x[columns:] if free else scaled.weights)

    def merit(point: _Point, x: Floats) -> float:
        return float(2 * point.s.sum() - point.lam.sum() + barrier * np.log(x).sum())

    x = np.concatenate([point.lam, point.u / problem.weights] if free else [point.lam])
    x = np.maximum(x, 1e-3 / len(x))
    sign = np.where(np.arange(len(x)) < columns, 1.0, -1.0)
    border, level = (sign < 0).astype(np.float64), 1.0
    point, steps = at(x), 0
    slack = np.maximum(1e-2, 1 - np.concatenate([point.diagonal, scaled.weights * point.variances])[: len(x)])
    while steps < limit:
        value, bound = _reach(scaled, point)
        if value <= bound * (1 + gap):
            break
        barrier = max(0.1 * float(x @ slack), gap / 4) / len(x)
        rows = (point.turn @ problem.factor / point.s[:, None]).T
        slope = point.diagonal - 1
        if free:
            rows = np.concatenate([rows, np.sqrt(scaled.weights)[:, None] * point.left])
            slope = np.concatenate([slope, scaled.weights * point.variances - level])
        matrix = _curvature(rows, point.s)
        if free:
            matrix *= np.outer(sign, sign)
        matrix[np.diag_indices_from(matrix)] += slack / x + 1e-14 * matrix.diagonal()
        try:
            root = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            break
        move = scipy.linalg.cho_solve(root, slope + barrier / x, check_finite=False)
        if free:
            side = scipy.linalg.cho_solve(root, border, check_finite=False)
            rise = float(border @ move / (border @ side))
            move, level = move - rise * side, level + rise
        other = (barrier - x * slack - slack * move) / x
        stride = min(1.0, 0.99 / max(float((-move / x).max()), 1e-300))
        start, rate = merit(point, x), float((slope + barrier / x) @ move)
        while stride > 1e-6:
            trial = x + stride * move
            after, steps = at(trial), steps + 1
            if merit(after, trial) >= start + 1e-4 * stride * rate - 1e-13:
                break
            stride /= 2
        else:
            break
        x, point = trial, after
        slack = slack + min(1.0, 0.99 / max(float((-other / slack).max()), 1e-300)) * other
    return _point(problem, point.lam / point.lam.sum(), point.u * size), steps
