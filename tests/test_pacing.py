"""Pacing as the paper gives it: known numbers, exact expectations, and budgets that never add up to more."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.pacing.arrivals import estimate_unpredicted, variance_bound, warm_up_length
from laprasdp.pacing.pacing import Pacing, Reading, Smooth, Static
from laprasdp.pacing.split import SPLITS, Pools, split_budget
from laprasdp.privacy.budget import EPSILON_BITS
from laprasdp.privacy.gaussian import mean_absolute, sigma_of

PACES = [Static, Smooth]
READINGS = [
    Reading(warm_up, estimate, overflow)
    for warm_up in ("natural", "binary", "decimal", "squared", 3)
    for estimate in ("frozen", "continuous")
    for overflow in ("reserve", "leftover")
]


def spends(pacing: Pacing, arrivals: list[bool]) -> list[int]:
    """What each unpredicted arrival is allowed."""
    allowed = []
    for position, unpredicted in enumerate(arrivals, start=1):
        if unpredicted:
            allowed.append(pacing.allowance(position))
            pacing.advance(position)
    return allowed


@pytest.mark.parametrize("horizon", [4, 6, 9])
@pytest.mark.parametrize("warm_up", [2, 3, 4])
def test_the_estimate_is_unbiased_and_its_variance_bounded_by_enumeration(horizon: int, warm_up: int) -> None:
    for unpredicted in range(warm_up, horizon + 1):
        orders = list(combinations(range(1, horizon + 1), unpredicted))
        estimates = [estimate_unpredicted(horizon, warm_up, places[warm_up - 1]) for places in orders]
        mean = sum(estimates, Fraction(0)) / len(orders)
        assert mean == unpredicted
        variance = sum(((e - mean) ** 2 for e in estimates), Fraction(0)) / len(orders)
        if warm_up >= 3:
            assert variance < variance_bound(horizon, warm_up, unpredicted)
        # negative control: an estimate with T instead of T-1 is biased
        biased = [Fraction(horizon * warm_up, places[warm_up - 1]) for places in orders]
        assert sum(biased, Fraction(0)) / len(orders) != unpredicted or unpredicted == horizon


@pytest.mark.parametrize(
    ("split", "pool", "printed"), [("query-heavy", 2, 277.9), ("matrix-heavy", 1, 505.5)]
)
def test_smooth_without_overlap_shares_the_pool_evenly(split: str, pool: int, printed: float) -> None:
    horizon, total = 100, 1 << EPSILON_BITS
    allowed = spends(Smooth(split_budget(total, split), total, horizon, Reading()), [True] * horizon)
    even = Fraction(pool * total, 3 * horizon)
    assert all(abs(units - even) < 2 for units in allowed[:-1])
    assert abs(allowed[-1] - even / 2) < 2  # the +1 in the paper's denominator holds back half at the end
    error = mean_absolute(sigma_of(allowed[0] / total, 1e-3 / 101))
    assert error == pytest.approx(printed, abs=0.05)


def test_static_without_overlap() -> None:
    """THEORY: the sound rule gives 348 for query-heavy at overlap 0."""
    horizon, total = 100, 1 << EPSILON_BITS
    allowed = spends(Static(split_budget(total, "query-heavy"), total, horizon, Reading()), [True] * horizon)
    assert [abs(units - Fraction(total, 3 * 22)) < 1 for units in allowed[:22]] == [True] * 22
    assert all(abs(units - Fraction(total, 3 * 78)) < 2 for units in allowed[22:])
    errors = [mean_absolute(sigma_of(units / total, 1e-3 / 101)) for units in allowed]
    assert math.fsum(errors) / horizon == pytest.approx(348, abs=0.5)


@pytest.mark.parametrize("pace", PACES)
@given(
    arrivals=st.lists(st.booleans(), max_size=80),
    horizon=st.integers(1, 60),
    total=st.integers(0, 2**44),
    split=st.sampled_from(sorted(SPLITS)),
    reading=st.sampled_from(READINGS),
)
def test_what_is_allowed_never_passes_the_pools(
    pace: type, arrivals: list[bool], horizon: int, total: int, split: str, reading: Reading
) -> None:
    pools = split_budget(total, split)
    assert sum(vars(pools).values()) <= total
    allowed = spends(pace(pools, total, horizon, reading), arrivals)
    assert min(allowed, default=0) >= 0
    assert sum(allowed) <= pools.warm_up + pools.rest + pools.reserve


@pytest.mark.parametrize("pace", PACES)
def test_a_greedy_pacing_is_caught(pace: type) -> None:
    """Negative control: counting the warm-up pool twice, as printed, passes the pools."""
    pools = split_budget(6_000, "query-heavy")
    cheat = Pools(pools.matrix, pools.warm_up, pools.rest + pools.warm_up, pools.reserve)
    allowed = spends(pace(cheat, 6_000, 40, Reading(3)), [True] * 40)
    assert sum(allowed) > pools.warm_up + pools.rest + pools.reserve - 1_000 > 0
    assert sum(allowed) > pools.warm_up + pools.rest


def test_beyond_the_estimate_the_reserve_is_halved_until_its_floor() -> None:
    total = 1 << 40
    pools = split_budget(total, "equal")
    # all unpredicted come last: after the third, B̂ = 10·2/9 < 3, so the rest overflows
    arrivals = [False] * 7 + [True] * 13
    allowed = spends(Smooth(pools, total, 10, Reading(3)), arrivals)
    assert allowed[3:6] == [total // 8, total // 16, total // 32]
    assert allowed[-1] == 0  # 2^-k/4 falls below a thousandth
    assert sum(1 for units in allowed[3:] if units) == 8
    more = spends(Smooth(pools, total, 10, Reading(3, overflow="leftover")), arrivals)
    assert sum(more) > sum(allowed)


def test_readings_of_the_warm_up() -> None:
    assert [warm_up_length(100, r) for r in ("natural", "binary", "decimal", "squared")] == [22, 45, 4, 49]
    assert warm_up_length(1) == 1


def test_continuous_estimates_differ_from_frozen_ones() -> None:
    total, arrivals = 1 << 40, [True] * 10 + [False] * 20 + [True] * 5
    frozen, going_on = (
        spends(Smooth(split_budget(total, "equal"), total, 35, Reading(5, estimate)), arrivals)
        for estimate in ("frozen", "continuous")
    )
    assert frozen[:5] == going_on[:5]
    assert frozen[-1] != going_on[-1]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(lp.ConfigError, match="no split 'greedy'; there are equal"):
        split_budget(1, "greedy")
    with pytest.raises(lp.ConfigError, match="no reading 'roman'"):
        Reading(warm_up="roman")
    with pytest.raises(lp.ConfigError, match="overflow is reserve or leftover"):
        Reading(overflow="none")
    assert split_budget(100, "matrix_heavy").matrix == 50
    assert split_budget(100, "equal", predicted=False) == Pools(0, 37, 37, 25)


@pytest.mark.parametrize("pace", PACES)
@given(
    arrivals=st.lists(st.booleans(), min_size=1, max_size=40),
    raises=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 10_000)), max_size=4),
    reading=st.sampled_from(READINGS),
)
def test_what_is_raised_is_shared_out_and_never_more(
    pace: type[Pacing], arrivals: list[bool], raises: list[tuple[int, int]], reading: Reading
) -> None:
    total = 100_000
    pacing = pace(split_budget(total, "equal", predicted=False), total, 20, reading)
    spent = 0
    for position, unpredicted in enumerate(arrivals, start=1):
        for _, extra in (one for one in raises if one[0] == position - 1):
            before = pacing.allowance(position)
            total += extra
            pacing.grow(split_budget(extra, "equal", predicted=False), total, position)
            assert pacing.allowance(position) >= before or before < total / 900  # unless below the floor
        if unpredicted:
            spent += pacing.allowance(position)
            pacing.advance(position)
        assert spent <= total


@pytest.mark.parametrize("pace", PACES)
def test_a_raise_after_the_last_unit_lets_the_stream_go_on(pace: type[Pacing]) -> None:
    total, horizon = 1 << 30, 10
    pacing = pace(split_budget(total, "query-heavy", predicted=False), total, horizon, Reading())
    spends(pacing, [True] * 60)
    assert pacing.allowance(61) == 0
    pacing.grow(split_budget(total, "query-heavy", predicted=False), 2 * total, 61)
    assert pacing.allowance(61) > total // 4


@pytest.mark.parametrize("pace", PACES)
def test_twice_the_budget_is_about_twice_the_allowance(pace: type[Pacing]) -> None:
    total = 1 << 30
    pools = split_budget(total, "query-heavy", predicted=False)
    pacing = pace(pools, total, 100, Reading())
    spends(pacing, [True])
    before = pacing.allowance(2)
    pacing.grow(pools, 2 * total, 2)
    assert 1.9 * before < pacing.allowance(2) < 2.5 * before
