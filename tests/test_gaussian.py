"""Gaussian closed forms against fifty-digit arithmetic, their inverses, dp-accounting and printed numbers.

Everything here is deterministic: no statistical test, so no false alarms.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import erfcx, erfinv, log_expit, ndtr, ndtri_exp

from laprasdp.errors import BudgetError
from laprasdp.privacy.gaussian import delta_of, epsilon_of, mean_absolute, mu_of, mu_of_pure, sigma_of

H = 2.0**-53
MANY = settings(derandomize=True, deadline=None, max_examples=200)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats spread evenly over the orders of magnitude between `low` and `high`."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)


def exact_delta(mu: float | mpmath.mpf, epsilon: float | mpmath.mpf, digits: int = 80) -> mpmath.mpf:
    """Φ(−ε/μ+μ/2) − e^ε Φ(−ε/μ−μ/2); eighty digits leave fifty after the worst cancellation here."""
    with mpmath.workdps(digits):
        m, e, root = mpmath.mpf(mu), mpmath.mpf(epsilon), mpmath.sqrt(2)
        u, v = e / m - m / 2, e / m + m / 2
        return (mpmath.erfc(u / root) - mpmath.exp(e) * mpmath.erfc(v / root)) / 2


@MANY
@given(mu=powers(1e-3, 60), epsilon=st.one_of(st.just(0.0), powers(1e-6, 300)))
def test_delta_is_an_upper_bound_within_1e_9(mu: float, epsilon: float) -> None:
    delta, exact = delta_of(mu, epsilon), exact_delta(mu, epsilon)
    assert delta >= exact
    if exact > 1e-290:
        assert delta <= exact * (1 + mpmath.mpf(10) ** -9)


@MANY
@given(mu=powers(1, 50), u=st.floats(5, 36))
def test_delta_is_an_upper_bound_in_the_far_tail(mu: float, u: float) -> None:
    """Nothing cancels here, so the error of the exponent is all there is."""
    epsilon = mu * (u + mu / 2)
    delta, exact = delta_of(mu, epsilon), exact_delta(mu, epsilon)
    assert exact <= delta <= exact * (1 + mpmath.mpf(10) ** -11)


@MANY
@given(mu=powers(1e-12, 1e7), epsilon=st.one_of(st.just(0.0), powers(1e-12, 1e7)))
def test_delta_is_an_upper_bound_far_outside_the_accurate_range(mu: float, epsilon: float) -> None:
    delta = delta_of(mu, epsilon)
    assert delta >= exact_delta(mu, epsilon)
    assert 0 < delta <= 1


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-20, 1e8, 1e20, 1e150, 1e308])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-20, 1.0, 1e10, 1e300])
def test_delta_at_the_ends_of_double_precision(mu: float, epsilon: float) -> None:
    delta = delta_of(mu, epsilon)
    u = Fraction(epsilon) / Fraction(mu) - Fraction(mu) / 2
    if u > 60:  # the true value is below 1e-700, and no double
        assert 0 < delta < 1e-320
    elif u < -60:  # the true value is above 1 − 1e-700
        assert delta == 1
    else:
        assert exact_delta(mu, epsilon, digits=700) <= delta <= 1


def test_delta_where_the_difference_of_two_large_numbers_is_small() -> None:
    for mu in (1e9, 1e12, 1e15):  # here u = ε/μ − μ/2 has lost all its digits
        epsilon = mu * mu / 2
        assert exact_delta(mu, epsilon) <= delta_of(mu, epsilon) <= 1


@MANY
@given(epsilon=powers(1e-3, 20), delta=powers(1e-15, 0.5))
def test_mu_is_sound_and_tight(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mpmath.mpf(mu) * (1 + mpmath.mpf(10) ** -9), epsilon) > delta


@MANY
@given(mu=powers(1e-2, 20), delta=powers(1e-15, 0.5))
def test_epsilon_is_sound_and_tight(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assume(epsilon > 1e-9)
        below = mpmath.mpf(epsilon) - mpmath.mpf(10) ** -9 * max(epsilon, 1e-3)
        assert exact_delta(mu, below) > delta
    else:
        assert exact_delta(mu, 0) <= delta


@MANY
@given(epsilon=powers(1e-2, 20), delta=powers(1e-15, 0.5))
def test_mu_and_epsilon_are_inverse(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-9)
    assert mu_of(epsilon, delta_of(mu, epsilon)) == pytest.approx(mu, rel=1e-9)
    assert delta_of(mu, epsilon) <= delta
    assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-9)


def test_epsilon_is_zero_when_delta_is_large() -> None:
    assert epsilon_of(0.5, 0.5) == 0.0
    assert epsilon_of(0.5, delta_of(0.5, 0.0)) == 0.0
    assert epsilon_of(0.5, delta_of(0.5, 0.0) * (1 - 1e-9)) > 0.0


@MANY
@given(epsilon=powers(1e-8, 1e3))
def test_pure_epsilon_is_rounded_up(epsilon: float) -> None:
    mu = mu_of_pure(epsilon)
    with mpmath.workdps(500):  # tail 1 − Φ(μ/2) against 1/(1+e^ε)
        goal = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        root = 2 * mpmath.sqrt(2)
        assert mpmath.erfc(mpmath.mpf(mu) / root) / 2 <= goal
        assert mpmath.erfc(mpmath.mpf(mu) * (1 - mpmath.mpf(10) ** -12) / root) / 2 > goal


@MANY
@given(epsilon=powers(1e-3, 10), loss=powers(1e-3, 12))
def test_pure_epsilon_is_covered_by_its_mu(epsilon: float, loss: float) -> None:
    """ε-DP has δ(x) = (1−e^(x−ε))·e^ε/(1+e^ε) at its worst pair; μ-GDP must allow at least that."""
    worst = (math.exp(epsilon) - math.exp(loss)) / (1 + math.exp(epsilon))
    assert delta_of(mu_of_pure(epsilon), loss) >= max(0.0, worst) * (1 - 1e-12)


def test_the_special_functions_are_as_accurate_as_the_error_model_assumes() -> None:
    worst = {"erfcx": 0.0, "ndtr": 0.0, "exp": 0.0, "erfinv": 0.0, "ndtri_exp": 0.0}
    root = mpmath.sqrt(2)

    def record(name: str, value: float, exact: mpmath.mpf) -> None:
        worst[name] = max(worst[name], float(abs(value / exact - 1)) / H)

    with mpmath.workdps(50):
        for x in np.logspace(-8, 3, 1500):
            z = mpmath.mpf(float(x))
            record("erfcx", float(erfcx(x)), mpmath.exp(z * z) * mpmath.erfc(z))
            record("ndtr", float(ndtr(x)), mpmath.erfc(-z / root) / 2)
        for x in np.linspace(0, 700, 700):
            record("exp", math.exp(-x), mpmath.exp(-mpmath.mpf(float(x))))
        for x in np.logspace(-8, -0.335, 150):  # tanh(ε/2) for ε up to 1
            z = mpmath.mpf(float(x))
            value = float(erfinv(x))
            step = (mpmath.erf(value) - z) / (
                2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(mpmath.mpf(value) ** 2))
            )
            record("erfinv", value, value - step)  # one Newton step from 1e-15 is exact to 1e-30
        for epsilon in np.logspace(0, 3, 150):
            y = mpmath.mpf(float(log_expit(-epsilon)))
            value = float(ndtri_exp(float(y)))
            tail = mpmath.erfc(-mpmath.mpf(value) / root) / 2
            density = mpmath.exp(-(mpmath.mpf(value) ** 2) / 2) / mpmath.sqrt(2 * mpmath.pi)
            record("ndtri_exp", value, value - tail * (mpmath.log(tail) - y) / density)
    assert worst["erfcx"] < 16
    assert worst["ndtr"] < 16
    assert worst["exp"] < 2
    assert worst["erfinv"] < 32
    assert worst["ndtri_exp"] < 32


# ---- printed and known numbers -------------------------------------------------------------------


def test_known_answers() -> None:
    assert mu_of(1, 1e-3) == pytest.approx(0.388401, abs=5e-7)
    assert sigma_of(1, 1e-3) == pytest.approx(2.5747, abs=5e-5)
    assert mean_absolute(sigma_of(1 / 100, 1e-3 / 101)) == pytest.approx(194.74, abs=0.01)
    assert mean_absolute(sigma_of(1 / 50, 1e-3 / 51)) == pytest.approx(97.54, abs=0.01)
    assert mean_absolute(10 * sigma_of(1, 1e-3)) == pytest.approx(20.54, abs=0.01)
    assert mean_absolute(sigma_of(2 / 300, 1e-3 / 101)) == pytest.approx(277.9, abs=0.1)
    assert mean_absolute(sigma_of(1 / 300, 1e-3 / 101)) == pytest.approx(505.5, abs=0.1)


def test_sigma_scales_with_sensitivity_and_is_rounded_up() -> None:
    mu = mu_of(0.7, 1e-6)
    for sensitivity in (1.0, 3.0, 1e-3):
        sigma = sigma_of(0.7, 1e-6, sensitivity)
        assert mpmath.mpf(sigma) * mpmath.mpf(mu) >= sensitivity
        assert sigma == pytest.approx(sensitivity / mu, rel=1e-15)


# ---- an independent accountant -------------------------------------------------------------------


@pytest.mark.parametrize(
    "mus", [[0.388401], [0.1] * 15, [0.3, 0.05, 0.2, 0.11, 0.02], [1.0, 0.5, 0.25, 0.125], [2.0, 1.5]]
)
def test_composition_agrees_with_dp_accounting(mus: list[float]) -> None:
    composed = None
    for mu in mus:
        step = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=2e-4)
        composed = step if composed is None else composed.compose(step)
    total = math.sqrt(sum(mu * mu for mu in mus))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        assert composed.get_delta_for_epsilon(epsilon) == pytest.approx(delta_of(total, epsilon), abs=1e-6)


def adaptive_delta(first: float, second: np.ndarray, outcome: np.ndarray, epsilon: float) -> float:
    """δ(ε) of a first release at μ = `first` and a second whose μ depends on the first one's `outcome`."""
    loss = first * outcome - first * first / 2
    rest = epsilon - loss
    safe = np.where(second > 0, second, 1.0)
    known = ndtr(safe / 2 - rest / safe) - np.exp(np.minimum(rest, 700)) * ndtr(-safe / 2 - rest / safe)
    conditional = np.where(second > 0, known, np.maximum(0.0, 1 - np.exp(np.minimum(rest, 0))))
    density = np.exp(-((outcome - first) ** 2) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(density * conditional, outcome))


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0])
def test_an_adaptive_choice_within_the_filter_gains_nothing(epsilon: float) -> None:
    outcome = np.linspace(-12.0, 14.0, 200_001)
    first, total = 0.8, 1.0
    rest = math.sqrt(total**2 - first**2)
    constant = adaptive_delta(first, np.full_like(outcome, rest), outcome, epsilon)
    assert constant == pytest.approx(delta_of(total, epsilon), rel=1e-7)
    rules = [outcome > 0, outcome > 1.0, outcome < 0.3, np.abs(outcome) < 1, np.sin(5 * outcome) > 0]
    for rule in rules:
        spent = adaptive_delta(first, np.where(rule, rest, 0.0), outcome, epsilon)
        assert spent <= delta_of(total, epsilon) * (1 + 1e-7)
    graded = adaptive_delta(first, rest * ndtr(outcome), outcome, epsilon)
    assert graded <= delta_of(total, epsilon) * (1 + 1e-7)
    # Negative control: a rule that passes the filter for some outcomes is caught.
    beyond = adaptive_delta(first, np.where(outcome > 0, 2 * rest, rest), outcome, epsilon)
    assert beyond > delta_of(total, epsilon) * 1.05


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_mu_outside_its_domain(mu: float) -> None:
    with pytest.raises(BudgetError, match="μ must be a positive finite number, got"):
        delta_of(mu, 1.0)
    with pytest.raises(BudgetError, match="μ must be"):
        epsilon_of(mu, 0.1)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_outside_its_domain(epsilon: float) -> None:
    for call in (lambda: mu_of(epsilon, 0.1), lambda: sigma_of(epsilon, 0.1), lambda: mu_of_pure(epsilon)):
        with pytest.raises(BudgetError, match="ε must be a positive finite number, got"):
            call()


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_epsilon_of_a_curve_may_be_zero_only(epsilon: float) -> None:
    with pytest.raises(BudgetError, match="ε must be a finite number and not negative"):
        delta_of(1.0, epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_delta_outside_its_domain(delta: float) -> None:
    for call in (lambda: mu_of(1.0, delta), lambda: epsilon_of(1.0, delta), lambda: sigma_of(1.0, delta)):
        with pytest.raises(BudgetError, match="δ must lie strictly between 0 and 1, got"):
            call()


def test_beyond_double_precision() -> None:
    with pytest.raises(BudgetError, match="no Gaussian release"):
        mu_of(1.0, 5e-324)
    with pytest.raises(BudgetError, match="sensitivity"):
        sigma_of(1.0, 0.1, 0.0)
