"""Windows: a statement is the sum of what its periods answer."""

from __future__ import annotations

import datetime as dt
import itertools
import math

import numpy as np
import pytest
from draw import MemoryTable, queries
from growing import (
    BUDGET,
    COUNT,
    FEB,
    JAN,
    MAR,
    SPAN,
    Silent,
    domain,
    entries,
    opened,
    table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.derive.estimates import JointEstimate
from laprasdp.periods import Period, open_windows
from laprasdp.periods.total import added
from laprasdp.record.entries import Reply
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.stream.shown import Shown


@settings(max_examples=60)
@given(data=st.data())
def test_without_noise_it_is_the_exact_answer(data: st.DataObject) -> None:
    whole = lp.Domain(
        a=lp.Integers(0, 2), day=lp.Dates("2024-01-28", "2024-02-10"), b=lp.Booleans(nullable=True)
    )
    counts = data.draw(st.lists(st.integers(0, 9), min_size=whole.size, max_size=whole.size))
    cuts = sorted(data.draw(st.sets(st.integers(1, 13), max_size=3)))
    days = [dt.date(2024, 1, 28) + dt.timedelta(days=place) for place in (0, *cuts, 14)]
    periods = [Period(first, after - dt.timedelta(days=1)) for first, after in itertools.pairwise(days)]
    source = MemoryTable(whole, counts)
    session = open_windows(
        source, whole, attribute="day", periods=periods, budget=BUDGET, policy="independent",
        noise=Silent(), public=True,
    )  # fmt: skip
    query = data.draw(queries(whole))
    answer = session.ask(query)
    assert isinstance(answer, lp.Answer)
    assert answer.value == pytest.approx(query.answer(source.marginal((0, 1, 2))), abs=1e-9)


def test_value_and_variance_are_sums_of_sessions_by_hand() -> None:
    session = opened(noise=lp.SeededNoise(1), public=True)
    answer = session.ask(SPAN)
    assert isinstance(answer, lp.Answer)
    variance = charge = 0.0
    for (first, last), days in {
        ("2024-01-01", "2024-01-31"): "day >= '2024-01-30'",
        ("2024-02-01", "2024-02-29"): "TRUE",
        ("2024-03-01", "2024-03-31"): "day <= '2024-03-02'",
    }.items():
        own = lp.Domain(n=lp.Integers(0, 2), day=lp.Dates(first, last))
        alone = lp.open_session(
            MemoryTable(own, [1] * own.size), own, budget=BUDGET, horizon=10, policy="independent"
        ).ask(f"{COUNT} WHERE n = 1 AND {days}")
        assert isinstance(alone, lp.Answer)
        assert answer.periods[first].std == alone.std
        assert answer.periods[first].charge == alone.charge
        variance, charge = variance + alone.std**2, charge + alone.charge
    assert answer.std == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert answer.value == pytest.approx(sum(part.value for part in answer.periods.values()), rel=1e-12)
    assert answer.charge == pytest.approx(charge, rel=1e-12)
    assert answer.charge == pytest.approx(sum(session.spent.values()), rel=1e-12)
    assert answer.remaining == min(session.remaining.values())
    assert (answer.source, answer.simulated) == ("measured", True)
    low, high = answer.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * answer.std)
    assert list(answer.row()["periods"]) == [JAN, FEB, MAR]


def test_intervals_cover_as_often_as_they_say() -> None:
    """900 spanning answers, 90% intervals: outside [0.85, 0.95] with probability below 1e-6."""
    hits = 0
    truth = sum(range(12))
    whole = lp.Domain(day=lp.Dates("2024-01-01", "2024-01-12"))
    source = MemoryTable(whole, range(12))
    for seed in range(900):
        session = open_windows(
            source, whole, attribute="day", periods=4, budget=BUDGET, policy="independent",
            noise=lp.SeededNoise(seed), public=True,
        )  # fmt: skip
        low, high = session.ask(COUNT).interval(0.9)
        hits += low <= truth <= high
    assert 0.85 < hits / 900 < 0.95


def test_a_statement_is_asked_of_the_periods_it_touches_only() -> None:
    session = opened()
    answer = session.ask(f"{COUNT} WHERE day BETWEEN '2024-02-03' AND '2024-02-05'")
    assert list(answer.periods) == [FEB]
    assert [name for name, spent in session.spent.items() if spent] == [FEB]
    assert [len(kept) for kept in entries(session).values()] == [0, 2, 0]
    nothing = session.ask(f"{COUNT} WHERE n > 5")
    assert (nothing.value, nothing.std, nothing.source) == (0, 0, "constant")
    again = session.ask(f"{COUNT} WHERE day >= '2024-02-03' AND day < '2024-02-06'")
    assert (again.value, again.source, again.charge) == (answer.value, "replay", 0)


def test_the_source_is_mixed_where_parts_differ() -> None:
    session = opened()
    session.ask(f"{COUNT} WHERE n = 1 AND day < '2024-02-01'")
    answer = session.ask(f"{COUNT} WHERE n = 1")
    assert answer.source == "mixed"
    assert [part.source for part in answer.periods.values()] == ["replay", "measured", "measured"]
    assert session.ask(f"{COUNT} WHERE n = 1").source == "replay"


@pytest.mark.parametrize("policy", ["independent", "primm"])
def test_groups_of_dates_go_to_their_periods(policy: str) -> None:
    session = opened(policy=policy, noise=Silent(), public=True, release="gaussian")
    answer = session.ask(
        "SELECT day, COUNT(*) FROM t WHERE day >= '2024-01-30' GROUP BY day ORDER BY day DESC"
    )
    assert isinstance(answer, lp.GroupedAnswer)
    assert len(answer) == 91
    exact = table().marginal((0, 1))
    for group in answer:
        day = group.group["day"]
        if day < "2024-01-30":
            assert (group.value, group.source, group.periods) == (0, "constant", {})
            continue
        assert list(group.periods) == [f"{day[:7]}-01"]
        level = (dt.date.fromisoformat(day) - dt.date(2024, 1, 1)).days
        assert group.value == pytest.approx(exact.counts[exact.levels[1] == level].sum(), abs=1e-6)
    if policy == "independent":
        assert answer.charge == pytest.approx(sum(session.spent.values()))
    measured = [
        sum(isinstance(entry, Reply) and entry.measured for entry in kept)
        for kept in entries(session).values()
    ]
    assert measured == [1, 1, 1]


def test_groups_that_span_periods_have_sums_and_a_joint_covariance() -> None:
    session = opened(policy="primm", predictions=[COUNT])
    whole = session.ask(COUNT)
    answer = session.ask("SELECT n, COUNT(*) FROM t GROUP BY n")
    assert isinstance(answer, lp.GroupedAnswer)
    assert answer.covariance is not None
    np.testing.assert_allclose(answer.covariance.diagonal(), [one.std**2 for one in answer], rtol=1e-6)
    assert answer.total is not None
    assert (answer.total.value, answer.total.source) == (whole.value, "replay")
    assert sum(answer.consistent(nonnegative=False)) == pytest.approx(whole.value)
    parts = [session.period(name).ask("SELECT n, COUNT(*) FROM t GROUP BY n") for name in (JAN, FEB, MAR)]
    for place, one in enumerate(answer):
        assert one.value == pytest.approx(sum(part[place].value for part in parts))


def test_predictions_hold_in_every_period() -> None:
    predictions = [COUNT, "SELECT day, COUNT(*) FROM t WHERE day > '2024-02-27' GROUP BY day"]
    session = opened(policy="primm", predictions=predictions, expected=[3, 1])
    settings = {name: session.period(name).setting for name in (JAN, FEB, MAR)}
    assert [len(setting.predictions) for setting in settings.values()] == [1, 1 + 2, 1 + 31]
    assert settings[FEB].expected == (3, 1, 1)
    assert len(session.plan(FEB).predicted) == 3
    assert len(session.plan().predicted) == 32
    assert session.ask(COUNT).source == "predicted"


def test_sums_of_laplace_errors_have_their_kurtosis() -> None:
    statement = Statement("q", (lp.Query.constant(domain(), 1),))
    parts = {
        name: Shown(statement, JointEstimate((Estimate(1.0, std**2, "measured", law),)), {}, 1.0, False)
        for name, std, law in ((JAN, 1.0, "laplace"), (FEB, 1.0, "laplace"), (MAR, 2.0, "gaussian"))
    }
    answer = added(statement, {name: [0] for name in parts}, parts)
    assert (answer.value, answer.std, answer.law) == (3.0, math.sqrt(6), "laplace")
    rng = np.random.default_rng(5)
    errors = rng.laplace(0, 2**-0.5, (2, 400_000)).sum(axis=0) + rng.normal(0, 2, 400_000)
    low, high = answer.interval(0.9)
    assert np.mean(np.abs(errors) <= (high - low) / 2) == pytest.approx(0.9, abs=0.004)  # 8 deviations
