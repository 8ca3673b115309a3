"""The budget: exact units, the reserved part of δ, and refusals that name what is wrong."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laprasdp.errors import BudgetError
from laprasdp.privacy.budget import (
    DELTA_BITS,
    EPSILON_BITS,
    MU_BITS,
    NOISE_SHARE,
    Budget,
    to_units,
)
from laprasdp.privacy.gaussian import mu_of
from laprasdp.privacy.noise import TV_BOUND

MANY = settings(derandomize=True, deadline=None, max_examples=150)
budgets = st.builds(
    lambda e, d: Budget(10.0**e, 10.0**d),
    st.floats(-3, math.log10(15)),
    st.floats(-12, math.log10(0.5)),
)


@MANY
@given(value=st.fractions(min_value=-5, max_value=5), bits=st.integers(0, 120))
def test_units_round_to_the_asked_side(value: Fraction, bits: int) -> None:
    unit = Fraction(1, 2**bits)
    down, up = to_units(value, bits, up=False), to_units(value, bits, up=True)
    assert down * unit <= value <= up * unit
    assert up - down == (0 if value == down * unit else 1)
    assert to_units(-value, bits, up=True) == -down


@MANY
@given(value=st.floats(1e-9, 1e9), parts=st.integers(1, 1000))
def test_charges_rounded_up_never_sum_to_less(value: float, parts: int) -> None:
    assert parts * to_units(value, MU_BITS, up=True) >= to_units(Fraction(value) * parts, MU_BITS, up=False)


def test_ten_tenths_are_one() -> None:
    assert 10 * to_units(Fraction(1, 10), EPSILON_BITS, up=False) <= Budget(1, 1e-3).epsilon_units
    assert to_units(1.0, EPSILON_BITS, up=True) == to_units(1.0, EPSILON_BITS, up=False) == 2**EPSILON_BITS


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_units_of_what_is_not_finite(value: float) -> None:
    with pytest.raises(BudgetError, match="must be finite"):
        to_units(value, 40, up=True)


@MANY
@given(budget=budgets)
def test_units_are_exact_and_rounded_down(budget: Budget) -> None:
    spendable = Fraction(budget.delta) * (1 - Fraction(NOISE_SHARE))
    for units, bits, value in (
        (budget.epsilon_units, EPSILON_BITS, Fraction(budget.epsilon)),
        (budget.mu_squared_units, MU_BITS, Fraction(budget.mu) ** 2),
        (budget.delta_units, DELTA_BITS, spendable),
    ):
        assert isinstance(units, int)
        assert units <= value * 2**bits < units + 1


@MANY
@given(budget=budgets)
def test_mu_keeps_the_reserved_part_free(budget: Budget) -> None:
    with mpmath.workdps(60):
        m, e, root = mpmath.mpf(budget.mu), mpmath.mpf(budget.epsilon), mpmath.sqrt(2)
        exact = (
            mpmath.erfc((e / m - m / 2) / root) / 2 - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root) / 2
        )
        assert exact <= mpmath.mpf(budget.delta) * (1 - mpmath.mpf(NOISE_SHARE))
    assert budget.mu == pytest.approx(mu_of(budget.epsilon, budget.delta), rel=1e-9)


@MANY
@given(budget=budgets)
def test_the_reserved_part_pays_for_all_coordinates_and_no_more(budget: Budget) -> None:
    with mpmath.workdps(60):
        each = (1 + mpmath.exp(mpmath.mpf(budget.epsilon))) / (20 * mpmath.mpf(2) ** 104)
        reserved = mpmath.mpf(budget.delta) * mpmath.mpf(NOISE_SHARE)
        assert budget.coordinates * each <= reserved
        assert (budget.coordinates + 1) * (1 + mpmath.mpf(10) ** -12) * each > reserved


def test_known_budget() -> None:
    budget = Budget(1, 1e-3)
    assert Fraction(1, 20 * 2**104) == TV_BOUND
    assert budget.mu == pytest.approx(0.388401, abs=5e-7)
    assert budget.epsilon_units == 2**40
    assert budget.coordinates > 10**17
    assert Budget(1, 1e-6).coordinates > 10**14
    assert str(budget) == "ε = 1, δ = 0.001 (μ = 0.388401)"


def test_a_budget_is_a_value() -> None:
    budget = Budget(epsilon=1, delta=1e-3)
    assert budget == Budget(1.0, 1e-3) == Budget(np.float64(1.0), np.float64(1e-3))
    assert hash(budget) == hash(Budget(1.0, 1e-3))
    assert type(budget.epsilon) is float
    assert dataclasses.asdict(budget) == {"epsilon": 1.0, "delta": 1e-3}
    assert budget.mu == budget.mu
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = 2.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 1e-3, "ε must be positive, got 0"),
        (-1.0, 1e-3, "ε must be positive, got -1"),
        (math.nan, 1e-3, "ε must be a finite number, got nan"),
        (math.inf, 1e-3, "ε must be a finite number, got inf"),
        (True, 1e-3, "ε must be a number, got True"),
        ("1", 1e-3, "ε must be a number, got '1'"),
        (None, 1e-3, "ε must be a number, got None"),
        (10**400, 1e-3, "ε is too large"),
        (1.0, 0, "δ must lie strictly between 0 and 1, got 0"),
        (1.0, 1.0, "δ must lie strictly between 0 and 1, got 1"),
        (1.0, -1e-3, "δ must lie strictly between 0 and 1"),
        (1.0, math.nan, "δ must be a finite number"),
        (1.0, False, "δ must be a number, got False"),
        (1e-13, 0.5, "ε must be at least 2\\^-40"),
        (1e-7, 1e-19, "the budget is too small: its μ² must be at least 2\\^-40"),
        (1e7, 0.5, "ε is too large: its μ² must not pass 2\\^20, got ε = 10000000.0"),
        (1e300, 0.5, "ε is too large"),
        (40.0, 1e-6, "at this δ, ε may be at most about 33.6, got ε = 40.0"),
        (800.0, 1e-6, "at this δ, ε may be at most about 33.6"),
        (1.0, 1e-21, "δ must be at least about 4.9e-21 at any ε"),
    ],
)
def test_refusals_name_the_value(epsilon: object, delta: object, message: str) -> None:
    with pytest.raises(BudgetError, match=message) as caught:
        Budget(epsilon, delta)
    assert "\n" not in str(caught.value)


def test_the_stated_limits_are_the_limits() -> None:
    assert Budget(33.5, 1e-6).coordinates >= 1
    assert Budget(1.0, 1.0e-20).coordinates >= 1
