"""What is wanted of an answer: no more is spent than that needs, it is refused before anything, or joined."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from growing import opened as windows
from hypothesis import given, settings
from hypothesis import strategies as st
from test_policy import PAIRS, POOL, exact, session
from test_price import members

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.noise import SeededNoise
from laprasdp.record.estimate import Estimate, joined

GROUPED = "SELECT sex, COUNT(*) FROM t WHERE age < 5 GROUP BY sex"
LINEAR = "SELECT sex, COUNT(*) - 2 * COUNT_IF(age > 3) AS n, SUM(age) AS s FROM t GROUP BY sex ORDER BY n"
STATEMENTS: list[Any] = [*POOL, GROUPED, LINEAR, "SELECT COUNT(*) FROM t WHERE 1 = 0"]
NEARLY = 1e-9


def largest(told: Any) -> float:
    """The largest standard deviation of what is shown."""
    if isinstance(told, lp.ResultSet):
        return max(one.std for row in told for one in row.columns.values())
    return max(one.std for one in members(told))


@pytest.mark.parametrize(("policy", "accounting"), PAIRS)
@settings(max_examples=6, deadline=None)
@given(
    stream=st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.none() | st.floats(0.3, 3).map(math.exp), st.booleans()),
        min_size=1,
        max_size=10,
    ),
    horizon=st.integers(3, 20),
    raised=st.integers(0, 12),
)
def test_no_more_is_spent_than_a_wish_needs(
    policy: str, accounting: str, stream: list[Any], horizon: int, raised: int
) -> None:
    ledger = MemoryLedger()
    asking = session(policy, accounting, POOL[:3], horizon=horizon, ledger=ledger, name="t")
    for place, (statement, times, again) in enumerate(stream):
        if place == raised:
            asking.raise_budget(lp.Budget(2, 1e-3))
        full = asking.price(statement, remeasure=again)
        known = [std for std in full.std if std is not None]
        limit = None if times is None or not known or not max(known) else max(known) * times / 3
        wish = {"max_std": limit, "remeasure": again}
        price, spent, length = asking.price(statement, **wish), asking.spent, len(ledger.since(0))
        if price.refusal is not None:
            with pytest.raises(lp.BudgetExhausted) as refusal:
                asking.ask(statement, **wish)
            assert str(refusal.value).startswith(price.refusal)
            if limit is not None and "standard deviation" in price.refusal:
                assert asking.spent == spent  # nothing, not even what comes before a stream
                assert len(ledger.since(0)) == length + 1
            continue
        told = asking.ask(statement, **wish)
        assert told.charge == price.charge
        assert told.released == price.released
        if full.refusal is None:
            assert told.charge <= full.charge * (1 + NEARLY)
        if limit is not None:
            assert largest(told) <= limit * (1 + NEARLY)
        assert asking.ask(statement).charge == 0 or asking.setting.reading.repeats == "pay"


@pytest.mark.parametrize(("policy", "accounting"), PAIRS)
def test_what_is_measured_again_is_more_exact_and_the_ledger_replays(
    policy: str, accounting: str, tmp_path: Path
) -> None:
    ledger = SQLLedger(tmp_path / "some.ledger")
    asking = session(policy, accounting, POOL[:3], horizon=20, ledger=ledger, name="t")
    shown = []
    for statement in (POOL[4], POOL[0], GROUPED, LINEAR):
        try:
            before = asking.ask(statement)
            after = asking.ask(statement, remeasure=True)
        except lp.BudgetExhausted:
            assert policy in ("histogram", "histogram-total", "offline", "laplace-counts") or accounting
            continue
        assert after.charge > 0
        assert largest(after) < largest(before)
        assert asking.ask(statement).to_arrow() == after.to_arrow()
        shown.append((statement, after.to_arrow()))
    assert verify(ledger) == []
    assert shown or policy in ("histogram", "histogram-total", "offline", "laplace-counts")
    again = session(
        policy, accounting, POOL[:3], horizon=20, ledger=SQLLedger(tmp_path / "some.ledger"), name="t"
    )
    for statement, table in shown:
        columns = again.ask(statement).columns()
        for name, values in table.to_pydict().items():
            assert columns[name] == pytest.approx(values)


def test_a_weak_release_and_a_joined_one_err_as_they_say() -> None:
    """Of 400 answers the mean squared error over the variance is 1 ± 0.35: 5σ; of half the std it is not."""
    weak, joint = list[float](), list[float]()
    for seed in range(400):
        asking = session("independent", "gaussian", [], horizon=3, name="t", noise=SeededNoise(seed))
        wanted = 2 * (asking.price(POOL[4]).std[0] or 0.0)
        told = asking.ask(POOL[4], max_std=wanted)
        again = asking.ask(POOL[4], remeasure=True)
        assert 0.99 * wanted <= told.std <= wanted
        weak.append(((told.value - exact(POOL[4])) / told.std) ** 2)
        joint.append(((again.value - exact(POOL[4])) / again.std) ** 2)
    for squares in (weak, joint):
        assert 0.65 < statistics.fmean(squares) < 1.35
        assert not 0.65 < statistics.fmean(square * 4 for square in squares) < 1.35


def test_two_laplace_answers_have_the_kurtosis_of_their_mean() -> None:
    both = joined(Estimate(1.0, 2.0, "measured", "laplace"), Estimate(3.0, 2.0, "measured", "laplace"))
    assert (both.value, both.variance, both.law, both.parts) == (2.0, 1.0, "laplace", 2.0)


@pytest.mark.parametrize("wish", [{"max_std": 0}, {"max_std": True}, {"max_std": "5"}, {"remeasure": 1}])
def test_what_is_no_wish_is_refused(wish: dict[str, Any]) -> None:
    asking = session("primm", "gaussian", [], name="t")
    with pytest.raises(lp.ConfigError):
        asking.ask(POOL[0], **wish)


def test_what_hangs_on_values_has_no_std_before() -> None:
    asking = session("primm", "gaussian", [], name="t")
    for text in ("SELECT AVG(age) FROM t", "SELECT MEDIAN(age) AS m FROM t"):
        with pytest.raises(lp.UnsupportedQuery, match="once it is answered"):
            asking.ask(text, max_std=3.0)
        assert set(asking.price(text).columns.values()) == {(None,)}
    with windows() as periods, pytest.raises(lp.UnsupportedQuery, match="session of one"):
        periods.ask("SELECT COUNT(*) FROM t", max_std=3.0)
