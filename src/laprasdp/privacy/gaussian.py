r"""Closed forms of Gaussian differential privacy, every result rounded to the safe side.

A release is μ-GDP when telling two neighbouring tables apart from it is no easier than telling
:math:`N(0,1)` from :math:`N(\mu,1)`.  That is the same as being (ε, δ(ε))-DP for every ε ≥ 0 with

.. math:: \delta(\varepsilon) = \Phi(-\varepsilon/\mu+\mu/2) - e^\varepsilon\,\Phi(-\varepsilon/\mu-\mu/2).

Two verbs each way: :func:`delta_of` and :func:`epsilon_of` read a guarantee off μ and round up;
:func:`mu_of` finds what a guarantee allows and rounds down.  docs/proofs/gaussian.md has the proofs.
"""

import math
from collections.abc import Callable

from scipy.special import erfcx, erfinv, log_expit, ndtr, ndtri_exp

from laprasdp.errors import BudgetError

_H = 2.0**-53  # relative error of one rounding
_LIBRARY = 16 * _H  # assumed relative error of erfcx and ndtr where they are used; measured below 9 * _H
_INVERSE = (
    64 * _H
)  # assumed relative error of erfinv and ndtri_exp where they are used; measured below 8 * _H
_TINY = 2.0**-1074
_ROOT_2 = math.sqrt(2.0)


def delta_of(mu: float, epsilon: float) -> float:
    r"""
    Smallest δ such that every μ-GDP release is (ε, δ)-DP, rounded up.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, positive.
    epsilon : float
        Privacy loss ε ≥ 0.

    Returns
    -------
    float
        δ in (0, 1], never below the true value; within 1e-9 of it, relatively, for μ in [1e-3, 60] and δ
        above 1e-290.

    Raises
    ------
    BudgetError
        `mu` is not positive and finite, or `epsilon` is negative or not finite.

    Notes
    -----
    With :math:`u=\varepsilon/\mu-\mu/2`, :math:`v=\varepsilon/\mu+\mu/2` the densities obey
    :math:`\varphi(u)=e^\varepsilon\varphi(v)`, so that for :math:`u\ge 0`

    .. math:: \delta = \tfrac12 e^{-u^2/2}\,[\mathrm{erfcx}(u/\sqrt2)-\mathrm{erfcx}(v/\sqrt2)],

    and for :math:`u<0` the first term is :math:`\Phi(-u)`.  The bracket cancels by a factor of about
    :math:`\max(1,u)/\mu`.  Each term carries its own absolute error bound (docs/proofs/gaussian.md,
    section 3); their sum is added before the result is returned.

    **Privacy.**  Assumes that `erfcx` and `ndtr` are right to 16 units of 2⁻⁵³ and `exp` to 2; the tests
    measure them.  Guarantees an upper bound of δ.

    References
    ----------
    Balle, Wang.  Improving the Gaussian mechanism for differential privacy.  arXiv 1805.06530, Theorem 8.
    Dong, Roth, Su.  Gaussian differential privacy.  arXiv 1905.02383, Corollary 2.13.

    Examples
    --------
    >>> round(delta_of(0.388401, 1.0), 6)
    0.001
    """
    _require_positive("μ", mu)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise BudgetError(f"ε must be a finite number and not negative, got {epsilon!r}")
    ratio = epsilon / mu
    u, v = ratio - mu / 2, ratio + mu / 2
    u_error, v_error = _H * (ratio + abs(u)), _H * (ratio + v)
    if math.isinf(ratio):
        return 4 * _TINY
    if u_error > 2.0**-20:  # the linear error bounds below do not hold; Φ(-u) alone is an upper bound
        return min(1.0, float(ndtr(-u + 2 * u_error)) * (1 + 2 * _LIBRARY) + 4 * _TINY)
    bell = math.exp(-u * u / 2)
    bell_error = 2 * (abs(u) * u_error + u * u * _H) + 4 * _H
    far = float(erfcx(v / _ROOT_2))
    far_error = far * (v_error / max(1.0, v) + _LIBRARY + 4 * _H)
    if u >= 0:
        near = float(erfcx(u / _ROOT_2))
        near_error = near * (u_error / max(1.0, u) + _LIBRARY + 4 * _H)
        upper = bell * (near - far + near_error + far_error) / 2 * (1 + bell_error + 8 * _H)
    else:
        near = float(ndtr(-u))
        near_error = near * (_LIBRARY + 4 * _H) + u_error
        second = bell * far / 2
        second_error = second * (bell_error + 8 * _H) + bell * far_error / 2 * (1 + bell_error)
        upper = (near - second + near_error + second_error) * (1 + 4 * _H)
    return min(1.0, upper + 4 * _TINY)


def mu_of(epsilon: float, delta: float) -> float:
    r"""
    Largest μ such that every μ-GDP release is (ε, δ)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0.
    delta : float
        δ strictly between 0 and 1.

    Returns
    -------
    float
        μ with ``delta_of(mu, epsilon) <= delta``: sound because :func:`delta_of` is an upper bound, whatever
        the bisection does.

    Raises
    ------
    BudgetError
        An argument lies outside its domain, or no positive double satisfies it.

    Notes
    -----
    δ(ε) grows with μ; bisection over doubles, about 60 evaluations.

    References
    ----------
    Balle, Wang.  arXiv 1805.06530, Theorem 9 (the analytic Gaussian mechanism).

    Examples
    --------
    >>> round(mu_of(1.0, 1e-3), 6)
    0.388401
    """
    _require_positive("ε", epsilon)
    _require_delta(delta)
    low = 1.0
    while low > 0 and delta_of(low, epsilon) > delta:
        low /= 2
    if low == 0:
        raise BudgetError(
            f"no Gaussian release is (ε, δ)-DP in double precision for ε = {epsilon!r}, δ = {delta!r}"
        )
    high = 2 * low
    while high < math.inf and delta_of(high, epsilon) <= delta:
        low, high = high, 2 * high
    if math.isinf(high):
        raise BudgetError(f"ε is too large for double precision, got {epsilon!r}")
    return _bisect(low, high, lambda mu: delta_of(mu, epsilon) <= delta)


def epsilon_of(mu: float, delta: float) -> float:
    """
    Smallest ε such that every μ-GDP release is (ε, δ)-DP, rounded up.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, positive.
    delta : float
        δ strictly between 0 and 1.

    Returns
    -------
    float
        ε ≥ 0 with ``delta_of(mu, epsilon) <= delta``; 0 when δ is that large.

    Raises
    ------
    BudgetError
        An argument lies outside its domain, or ε is beyond double precision.

    Notes
    -----
    The inverse of :func:`mu_of` up to rounding.

    Examples
    --------
    >>> round(epsilon_of(0.388401, 1e-3), 5)
    1.0
    """
    _require_positive("μ", mu)
    _require_delta(delta)
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while high < math.inf and delta_of(mu, high) > delta:
        high *= 2
    if math.isinf(high):
        raise BudgetError(f"ε is beyond double precision for μ = {mu!r}, δ = {delta!r}")
    return -_bisect(-high, -0.0, lambda minus: delta_of(mu, -minus) <= delta)


def sigma_of(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """
    Standard deviation of the analytic Gaussian mechanism, rounded up.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0.
    delta : float
        δ strictly between 0 and 1.
    sensitivity : float
        Largest L2 change that one added or removed record makes, in the unit of the answer.

    Returns
    -------
    float
        σ in the unit of `sensitivity`: a release with noise N(0, σ² I) is (ε, δ)-DP.

    Raises
    ------
    BudgetError
        An argument lies outside its domain.

    References
    ----------
    Balle, Wang.  arXiv 1805.06530, Theorem 9.

    Examples
    --------
    >>> round(sigma_of(1.0, 1e-3), 4)
    2.5747
    """
    _require_positive("sensitivity", sensitivity)
    return math.nextafter(sensitivity / mu_of(epsilon, delta), math.inf)


def mu_of_pure(epsilon: float) -> float:
    r"""
    What a pure ε-DP step costs in Gaussian differential privacy, rounded up.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0 of the step, which has δ = 0.

    Returns
    -------
    float
        The smallest μ such that every ε-DP release is μ-GDP, rounded up.

    Raises
    ------
    BudgetError
        `epsilon` is not positive and finite.

    Notes
    -----
    :math:`\mu = 2\Phi^{-1}(e^\varepsilon/(1+e^\varepsilon))`: the trade-off function of ε-DP is piecewise
    linear with one kink on the diagonal, at :math:`1/(1+e^\varepsilon)`, and the convex curve of μ-GDP passes
    through it (docs/proofs/gaussian.md, section 5).  Below ε = 1 the equal form
    :math:`2\sqrt2\,\mathrm{erf}^{-1}(\tanh(\varepsilon/2))` has no cancellation.

    Examples
    --------
    >>> round(mu_of_pure(1.0), 6)
    1.232035
    """
    _require_positive("ε", epsilon)
    if epsilon < 1:
        mu = 2 * _ROOT_2 * float(erfinv(math.tanh(epsilon / 2)))
    else:
        mu = -2 * float(ndtri_exp(log_expit(-epsilon)))
    return mu * (1 + _INVERSE) + 4 * _TINY


def mean_absolute(sigma: float) -> float:
    r"""
    Mean absolute value of Gaussian noise of standard deviation `sigma`: :math:`\sqrt{2/\pi}\,\sigma`.

    Parameters
    ----------
    sigma : float
        Standard deviation, in records.

    Returns
    -------
    float
        Mean absolute error, in records; to nearest, for reports only.

    Examples
    --------
    >>> round(mean_absolute(1.0), 6)
    0.797885
    """
    return math.sqrt(2 / math.pi) * sigma


def _bisect(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """Between `low`, where `holds`, and `high`, where it does not: the last double seen where it holds."""
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return low
        if holds(middle):
            low = middle
        else:
            high = middle


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BudgetError(f"{name} must be a positive finite number, got {value!r}")


def _require_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise BudgetError(f"δ must lie strictly between 0 and 1, got {delta!r}")
