r"""The dual of the strategy problem: a concave function of multipliers, its ascent, and its certificate.

With one multiplier :math:`\lambda_i` a column and one weight :math:`u_j` a query,

.. math:: t(\lambda, u) = \|\mathrm{diag}(u)^{1/2}\, W\, \mathrm{diag}(\lambda)^{1/2}\|_*

is concave, :math:`2\,\partial t/\partial\lambda_i=K_{ii}`, :math:`2\,\partial t/\partial u_j=v_j`, and
:math:`t^2/\sum_i\lambda_i` is at most :math:`\sum_j u_j v_j` of every strategy.  The solver climbs
:math:`t` by accelerated multiplicative steps and finishes with an interior-point Newton method.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy.linalg

from laprasdp.arrays import Floats

Objective = Literal["squared", "absolute", "largest"]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 8192  # columns handled at a time, so that temporary arrays stay small
_NEWTON = 2500  # most multipliers for which second derivatives are formed
_WARM = 5  # multiplicative steps before Newton's method
_STEP = 1.5  # of the trapezoid rule, in logarithms


class Problem(NamedTuple):
    basis: Floats  # B, (m, r)
    factor: Floats  # F, (r, p): the workload is B F
    weights: Floats  # w, (m,), positive
    objective: Objective


class Frame:
    """What hangs on the weights u alone: diag(√u) B = Q R with orthonormal columns Q, and G = R F."""

    def __init__(self, problem: Problem, u: Floats) -> None:
        self.basis, self.u = problem.basis, u  # (m, r), (m,)
        self.root = triangle(np.sqrt(u)[:, None] * problem.basis)  # R, (r, r)
        self.factor = self.root @ problem.factor  # G, (r, p)

    @cached_property
    def spread(self) -> Floats:
        """B R⁻¹, (m, r)."""
        spread: Floats = scipy.linalg.solve_triangular(
            self.root, self.basis.T, trans="T", check_finite=False
        ).T
        return spread


class Point:
    """Everything that depends on (λ, u): X = G diag(√λ) = U diag(s) Vᵀ."""

    def __init__(self, frame: Frame, lam: Floats) -> None:
        self.frame, self.lam, self.u = frame, lam, frame.u  # λ, (p,)
        factor = frame.factor
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(lam), _BLOCK)]
        inner = np.zeros((len(factor), len(factor)))
        for b in blocks:
            half = factor[:, b] * np.sqrt(lam[b])
            inner += half @ half.T  # one matrix by its own transpose: half the products
        power, self.turn = np.linalg.eigh(inner)  # U, (r, r)
        self.s = np.sqrt(np.maximum(power, 0))  # (r,)
        if self.s[0] < 1e-5 * self.s[-1]:  # squaring loses half the digits: use the factor itself
            narrow = triangle((factor * np.sqrt(lam)).T)
            self.turn, s, _ = np.linalg.svd(narrow.T)
            self.s = np.maximum(s, _EPS * s[0])
        scaled = self.turn.T / np.sqrt(self.s)[:, None]
        self.diagonal = np.concatenate(  # K_ii, (p,)
            [np.einsum("ki,ki->i", y, y) for y in (scaled @ factor[:, b] for b in blocks)]
        )

    @property
    def strategy(self) -> Floats:
        """s^-½ Uᵀ R, (r, r): the strategy is this times F."""
        strategy: Floats = self.turn.T @ self.frame.root / np.sqrt(self.s)[:, None]
        return strategy

    @cached_property
    def left(self) -> Floats:
        """B R⁻¹ U, (m, r)."""
        left: Floats = self.frame.spread @ self.turn
        return left

    @cached_property
    def variances(self) -> Floats:
        """v_j, (m,)."""
        variances: Floats = self.left**2 @ self.s
        return variances


def triangle(matrix: Floats) -> Floats:
    """Give R of a QR factorisation."""
    r: Floats = np.asarray(np.linalg.qr(matrix, mode="r"))
    return r


def value_of(objective: Objective, weights: Floats, variances: Floats) -> float:
    if objective == "absolute":
        return float(np.sqrt(2 / np.pi) * (weights @ np.sqrt(variances)))
    each = weights * variances
    return float(each.max() if objective == "largest" else each.sum())


def _quick_bound(problem: Problem, point: Point) -> float:
    """Lower bound on the value of every strategy, up to rounding."""
    if problem.objective == "absolute":
        w, u, v = problem.weights, point.u, point.variances
        mean = float((w ** (2 / 3) * u ** (1 / 3) * v ** (2 / 3)).sum())
        return float(np.sqrt(2 / np.pi) * mean**1.5 / np.sqrt(point.lam.sum()))
    total = (point.u / problem.weights).sum() if problem.objective == "largest" else 1.0
    return float(point.s.sum() ** 2 / (point.lam.sum() * total))


def bound_of(problem: Problem, point: Point) -> float:
    r"""
    Lower bound that holds in floating point: it needs only some matrix P of spectral norm at most one.

    With :math:`d_j=(W\Lambda^{1/2}P^\top)_{jj}` the nuclear norm is at least :math:`\sum_j\sqrt{u_j}d_j`,
    and :math:`\sum_jw_j\sqrt{v_j}` at least :math:`(\sum_j(w_jd_j)^{2/3})^{3/2}/(\sum_i\lambda_i)^{1/2}`.
    The polar factor computed here is orthonormal to rounding, however ill-conditioned the workload is.
    """
    basis, u = problem.basis, point.u
    reach = problem.factor * np.sqrt(point.lam)
    side, root = np.linalg.qr(np.sqrt(u)[:, None] * basis)
    frame, narrow = np.linalg.qr((root @ reach).T)
    left, _, right = np.linalg.svd(narrow.T)
    d = np.einsum("jk,jk->j", basis @ (reach @ frame) @ (left @ right).T, side)
    margin = 4 * np.sqrt(reach.shape[1]) * _EPS * np.linalg.norm(reach)
    d = np.maximum(d - margin * np.linalg.norm(basis, axis=1), 0) * (1 - 1e-13)
    if problem.objective == "absolute":
        mean = float(((problem.weights * d) ** (2 / 3)).sum())
        return float(np.sqrt(2 / np.pi) * mean**1.5 / np.sqrt(point.lam.sum()))
    total = (u / problem.weights).sum() if problem.objective == "largest" else 1.0
    return float((np.sqrt(u) @ d) ** 2 / (point.lam.sum() * total))


def _reach(problem: Problem, point: Point) -> tuple[float, float]:
    """Value of the strategy of a point and the lower bound it gives, up to rounding."""
    if problem.objective == "squared":  # where the weights are u: the columns of Q U are of length one
        value = float(point.s.sum() * point.diagonal.max())
    else:
        value = value_of(problem.objective, problem.weights, point.variances * point.diagonal.max())
    return value, _quick_bound(problem, point)


def _slopes(problem: Problem, point: Point, free: bool) -> Floats:
    """K_ii, and behind it w_j v_j where the weights are free."""
    return np.concatenate([point.diagonal, *([problem.weights * point.variances] if free else [])])


def solve(problem: Problem, gap: float, limit: int) -> tuple[Point, list[Point], int]:
    """Find a point of good value and points of good bound; the steps taken come third."""
    free = problem.objective == "largest"
    columns, count = problem.factor.shape[1], len(problem.weights)
    newton = columns + (count if free else 0) <= _NEWTON
    moving = np.concatenate(
        [np.full(columns, -np.log(columns)), np.full(count if free else 0, -np.log(count))]
    )
    last, frame = moving, Frame(problem, problem.weights)
    best = top = point = None
    value, bound, before, age, taken = np.inf, 0.0, 0.0, 0, 0
    while taken < limit:
        if newton and taken >= _WARM and top is not None:
            point, steps = _polish(problem, top, 0.9 * gap, limit - taken)
            newton, taken = False, taken + max(steps, 1)
            moving = last = np.log(np.concatenate([point.lam, point.u / problem.weights])[: len(moving)])
        else:
            if free:
                frame = Frame(problem, problem.weights * _simplex(moving[columns:]))
            point, taken = Point(frame, _simplex(moving[:columns])), taken + 1
        here, below = _reach(problem, point)
        if best is None or here < value:
            best, value = point, here
        if top is None or below > bound:
            top, bound = point, below
        if value <= bound * (1 + 0.9 * gap):
            break
        slope = _slopes(problem, point, free)
        if problem.objective == "absolute":
            frame = Frame(problem, problem.weights / np.sqrt(point.variances))
        target = moving + (1 if free else 2) * np.log(np.maximum(slope / point.s.sum(), 1e-300))
        age = 0 if below < before else age + 1  # past the top: drop the momentum
        moving = target + age / (age + 3) * (target - last)
        last, before = target, below
    if best is None or top is None:
        raise AssertionError("no step was taken")
    return best, [top] if best is top else [best, top], taken


def _simplex(logarithm: Floats) -> Floats:
    power: Floats = np.exp(np.maximum(logarithm - logarithm.max(), -60))
    power /= power.sum()
    return power


def _polish(problem: Problem, point: Point, gap: float, limit: int) -> tuple[Point, int]:
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
        point = Point(Frame(problem, problem.weights / np.sqrt(point.variances)), point.lam)
        taken += steps + 1
    return point, taken


def _curvature(rows: Floats, s: Floats) -> Floats:
    r"""
    Second derivative of :math:`-2t` at `rows`, a matrix of columns or queries in the singular basis.

    The kernel is :math:`1/(s_k+s_l)=\int e^{y-e^y(s_k+s_l)}dy`, by the trapezoid rule to 2%, which a
    direction bears: a few products of matrices, not one multiplication for each pair of singular values.
    """
    total = np.zeros((len(rows), len(rows)))
    for scale in np.exp(np.arange(-np.log(2 * s.max()) - 6, 2.5 - np.log(2 * s.min()), _STEP)):
        part = rows * np.sqrt(s * np.exp(-scale * s))
        product = part @ part.T
        product *= product
        product *= _STEP * scale
        total += product
    return total


def _newton(problem: Problem, point: Point, gap: float, limit: int) -> tuple[Point, int]:
    """Maximise 2t - Σλ over λ ≥ 0, and over weights on the simplex when they are free: a log barrier."""
    size, steps, level = float(point.s.sum()) ** 2, 0, 1.0
    scaled = problem._replace(weights=problem.weights / size)
    free = problem.objective == "largest"
    x = np.concatenate([point.lam, *([point.u / problem.weights] if free else [])])
    x = np.maximum(x, 1e-3 / len(x))
    fixed = None if free else Frame(scaled, scaled.weights)
    point = _point_at(scaled, x, fixed)
    slack = np.maximum(1e-2, 1 - _slopes(scaled, point, free))
    while steps < limit:
        value, bound = _reach(scaled, point)
        if value <= bound * (1 + gap):
            break
        barrier = max(0.1 * float(x @ slack), gap / 4) / len(x)
        slope = _slope(scaled, point, level)
        try:
            move, level = _direction(scaled, point, slope + barrier / x, slack / x, level)
        except np.linalg.LinAlgError:
            break
        other = (barrier - x * slack - slack * move) / x
        ahead, tried = _line_search(scaled, fixed, point, slope, x, move, barrier)
        steps += tried
        if ahead is None:
            break
        x, point = ahead
        slack = slack + min(1.0, 0.99 / max(float((-other / slack).max()), 1e-300)) * other
    return Point(Frame(problem, point.u * size), point.lam / point.lam.sum()), steps


def _point_at(problem: Problem, x: Floats, fixed: Frame | None) -> Point:
    """The point of Newton's variables: λ, and behind it u/w where the weights are free."""
    columns = problem.factor.shape[1]
    return Point(fixed or Frame(problem, problem.weights * x[columns:]), x[:columns])


def _slope(problem: Problem, point: Point, level: float) -> Floats:
    """First derivative of 2t - Σλ, for free weights less the multiplier `level` of their sum."""
    slope: Floats = point.diagonal - 1
    if problem.objective == "largest":
        slope = np.concatenate([slope, problem.weights * point.variances - level])
    return slope


def _direction(
    problem: Problem, point: Point, slope: Floats, ridge: Floats, level: float
) -> tuple[Floats, float]:
    """Newton's step, and the next `level`; free weights keep their sum.  LinAlgError where there is none."""
    rows = (point.turn.T @ point.frame.factor / point.s[:, None]).T
    if problem.objective != "largest":
        root = _cholesky(_curvature(rows, point.s), ridge)
        return scipy.linalg.cho_solve(root, slope, check_finite=False), level
    sign = np.concatenate([np.ones(len(rows)), np.full(len(problem.weights), -1.0)])
    rows = np.concatenate([rows, np.sqrt(problem.weights)[:, None] * point.left])
    matrix = _curvature(rows, point.s)
    matrix *= np.outer(sign, sign)
    root, border = _cholesky(matrix, ridge), (sign < 0).astype(np.float64)
    move = scipy.linalg.cho_solve(root, slope, check_finite=False)
    side = scipy.linalg.cho_solve(root, border, check_finite=False)
    rise = float(border @ move / (border @ side))
    return move - rise * side, level + rise


def _cholesky(matrix: Floats, ridge: Floats) -> tuple[Floats, bool]:
    """Factor of a matrix with a ridge on its diagonal, in its place."""
    matrix[np.diag_indices_from(matrix)] += ridge + 1e-14 * matrix.diagonal()
    factor: tuple[Floats, bool] = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    return factor


def _line_search(
    problem: Problem,
    fixed: Frame | None,
    point: Point,
    slope: Floats,
    x: Floats,
    move: Floats,
    barrier: float,
) -> tuple[tuple[Floats, Point] | None, int]:
    """The first of ever shorter steps that rises enough, if one does; how many were tried comes second."""

    def merit(point: Point, x: Floats) -> float:
        return float(2 * point.s.sum() - point.lam.sum() + barrier * np.log(x).sum())

    start, rate, tried = merit(point, x), float((slope + barrier / x) @ move), 0
    stride = min(1.0, 0.99 / max(float((-move / x).max()), 1e-300))
    while stride > 1e-6:
        trial = x + stride * move
        after, tried = _point_at(problem, trial, fixed), tried + 1
        if merit(after, trial) >= start + 1e-4 * stride * rate - 1e-13:
            return (trial, after), tried
        stride /= 2
    return None, tried
