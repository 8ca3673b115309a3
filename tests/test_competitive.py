"""Pacing for any order, and the second moments of families: identities, and enumeration on small domains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.pacing.competitive import Competitive
from laprasdp.strategy.background import FAMILIES, cell_moment, draw_vectors


@pytest.mark.parametrize("horizon", [1, 2, 10, 1_000])
def test_the_schedule_costs_the_same_factor_for_every_number(horizon: int) -> None:
    constant = math.fsum(1 / (2 * k - 1) for k in range(1, horizon + 1))
    pacing = Competitive(horizon, caution=1 - 1e-12)
    amounts = [pacing.allowance(1.0, 1.0, horizon, k) for k in range(1, horizon + 1)]
    # at the end of the stream the fair share is everything: look at the schedule alone
    amounts = [min(amount, 1 / (constant * (2 * k - 1))) for k, amount in enumerate(amounts, start=1)]
    assert math.fsum(amounts) == pytest.approx(1)
    for count in range(1, horizon + 1):
        assert math.fsum(1 / m for m in amounts[:count]) == pytest.approx(constant * count**2, rel=1e-6)


def test_an_unknown_horizon_never_overdraws() -> None:
    pacing, left = Competitive(None), 1.0
    for k in range(1, 100_000):
        amount = pacing.allowance(left, 1.0, k, k)
        assert 0 < amount <= left
        left -= amount


@given(
    st.lists(st.booleans(), min_size=1, max_size=120),
    st.one_of(st.none(), st.integers(1, 100)),
    st.one_of(st.none(), st.floats(0, 1)),
    st.floats(0.01, 0.9),
)
def test_any_order_stays_within_the_pool_and_never_below_its_floor(
    arrivals: list[bool], horizon: int | None, share: float | None, caution: float
) -> None:
    pacing, left, measured = Competitive(horizon, share, caution=caution), 1.0, 0
    constant = math.fsum(1 / (2 * k - 1) for k in range(1, (horizon or 0) + 1))
    for position, needs in enumerate(arrivals, start=1):
        assert 0 <= pacing.most_remaining(position, measured) <= pacing.left(position) + 1e-9
        assert (
            pacing.left(position) > 0
            if horizon is None
            else pacing.left(position) <= max(horizon - position, 0)
        )
        if needs:
            measured += 1
            amount = pacing.allowance(left, 1.0, position, measured)
            assert 0 <= amount <= left * (1 + 1e-12)
            odds = (
                2 * measured * (1 + math.log(measured)) ** 2
                if horizon is None
                else constant * (2 * measured - 1)
            )
            assert amount >= min(left, caution / odds) * (1 - 1e-12)
            left -= amount


def _members(family: str, size: int) -> list[np.ndarray]:
    place = np.arange(size)
    if family == "random":
        return [np.array(bits) for bits in itertools.product([0, 1], repeat=size)]
    if family == "point":
        return [place == k for k in range(size)]
    if family == "prefix":
        return [place <= k for k in range(size)]
    return [(place >= low) & (place < high) for low, high in itertools.combinations(range(size + 1), 2)]


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("size", [1, 2, 5])
def test_moments_by_enumeration(family: str, size: int) -> None:
    members = np.array(_members(family, size), dtype=float)
    assert FAMILIES[family](size) == pytest.approx(members.T @ members / len(members))


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_draws_have_the_stated_moment(family: str) -> None:
    """Each entry within 6 standard errors (false alarms below 1e-6); another family is caught."""
    domain = lp.Domain(a=lp.Integers(1, 3), b=lp.Booleans())
    count = 20_000
    drawn = draw_vectors(domain, family, count, np.random.default_rng(3))
    found, bound = drawn.T @ drawn / count, 6 * 0.5 / math.sqrt(count)
    assert np.abs(found - cell_moment(domain, family)).max() < bound
    other = "point" if family == "random" else "random"
    assert np.abs(found - cell_moment(domain, other)).max() > bound


def test_a_share_that_was_too_low_leaves_something_for_those_that_still_come():
    pacing = Competitive(100, share=0.15)
    assert pacing.remaining(10, 1) == pytest.approx(14)  # as the share says
    assert 3 < pacing.remaining(60, 16) < 0.4 * 16 / 0.6  # 16 came where 15 were expected of all: more will
    assert pacing.remaining(100, 16) == 0
    left, used = 1.0, []
    for measured, position in enumerate(range(2, 99, 2), start=1):  # 49 come
        used.append(pacing.allowance(left, 1.0, position, measured))
        left -= used[-1]
    assert min(used) > 0.1 * max(used)
