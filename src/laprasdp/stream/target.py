"""The smallest ε that reaches a standard deviation, by plans alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from laprasdp.errors import BudgetError, ConfigError
from laprasdp.limits import LEAST_EPSILON
from laprasdp.privacy.budget import NOISE_SHARE, Budget
from laprasdp.privacy.gaussian import epsilon_of
from laprasdp.stream.plan import Plan


def smallest_epsilon(make: Callable[[Budget], Plan], delta: float, target_std: float) -> float:
    r"""
    The smallest ε, to 1%, whose plan reaches a standard deviation.

    Parameters
    ----------
    make : callable
        The plan under a budget; everything else about it stays the same.
    delta : float
        δ of the budget.
    target_std : float
        In records.  It is aimed at on average over the predicted queries, `Plan.typical_std`, or over
        typical unpredicted ones where none is predicted.

    Returns
    -------
    float
        Of four digits, rounded up, so that its plan reaches the target; at least `LEAST_EPSILON`.

    Raises
    ------
    ConfigError
        No budget of this δ reaches it, or the plan answers nothing.
    BudgetError
        δ allows no budget.

    Notes
    -----
    Under Gaussian accounting allowances are shares of μ² that do not depend on the budget, and designs do
    so only where Laplace counts are better from some ε on; else each standard deviation is c/μ, with c from
    any one plan, and

    .. math:: \mu^* = \mu\,\frac{\mathrm{std}}{\mathrm{target}}, \;\; \varepsilon^*=\varepsilon(\mu^*,\delta),

    exact but for the grid of the ledger; a second plan says whether it holds.  Where it does not, and under
    basic composition, which shares out ε, the smallest ε is bisected, in about ten plans.
    """
    if not (isinstance(target_std, int | float) and 0 < target_std < math.inf):
        raise ConfigError(f"a standard deviation to aim at is a positive number, not {target_std!r}")
    start = Budget(1.0, delta)
    plan = make(start)
    if plan.typical_std is None:
        raise ConfigError(f"{plan.policy} would answer no typical query here: there is nothing to aim at")
    most = _largest_epsilon(delta)
    least = make(Budget(most, delta)).typical_std or math.inf
    if least > target_std:
        raise ConfigError(
            f"no budget reaches a standard deviation of {target_std:g}: at δ = {delta:g}, "
            f"ε may be at most {most:.3g}, which leaves {least:.3g}"
        )
    guess = plan.typical_std / target_std
    if plan.accounting == "gaussian":
        guess = epsilon_of(start.mu * guess, delta * (1 - NOISE_SHARE))
        guess = min(max(guess, LEAST_EPSILON), most)
        there = make(Budget(guess, delta)).typical_std or math.inf
        if guess == LEAST_EPSILON or math.isclose(there, target_std, rel_tol=1e-4):
            return min(_rounded_up(guess), most) if guess > LEAST_EPSILON else LEAST_EPSILON
    found = _bisect(make, delta, target_std, min(max(guess, LEAST_EPSILON), most), most)
    return min(_rounded_up(found), most) if found > LEAST_EPSILON else LEAST_EPSILON


def _bisect(
    make: Callable[[Budget], Plan], delta: float, target_std: float, guess: float, most: float
) -> float:
    """An ε that reaches the target, where `most` does, and 0.8% less does not."""

    def reaches(epsilon: float) -> bool:
        std = make(Budget(epsilon, delta)).typical_std
        return std is not None and std <= target_std

    low = high = guess
    while high < most and not reaches(high):
        low, high = high, min(2 * high, most)
    while low == high > LEAST_EPSILON:
        low = max(high / 2, LEAST_EPSILON)
        if reaches(low):
            high = low
    while high > low * 1.008:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _largest_epsilon(delta: float) -> float:
    """The largest ε that a budget of this δ may have, to 0.1%; at least 1."""
    low, high = 1.0, 2.0**21
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        try:
            Budget(middle, delta)
        except BudgetError:
            high = middle
        else:
            low = middle
    return low


def _rounded_up(epsilon: float) -> float:
    """The next number of four digits; a step of at most 0.1%."""
    digits = 3 - math.floor(math.log10(epsilon))
    return round(math.ceil(epsilon * (1 + 1e-6) * 10.0**digits) / 10.0**digits, digits)
