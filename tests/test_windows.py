"""Windows: sums over periods, a budget each, and all of a statement or nothing."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command import invoke
from draw import MemoryTable, queries
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.ledger.ledger import Refusal, Release, Reply, Shelf
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import verify
from laprasdp.marginal import Marginal
from laprasdp.sql.parse import Statement
from laprasdp.windows import Period, WindowedSession, open_windows
from laprasdp.windows.period import Part, periods_of
from laprasdp.windows.slice import Slice
from laprasdp.windows.total import added

BUDGET = lp.Budget(1, 1e-6)
JAN, FEB, MAR, APR = (f"2024-0{month}-01" for month in range(1, 5))
COUNT = "SELECT COUNT(*) FROM t"
SPAN = f"{COUNT} WHERE n = 1 AND day BETWEEN '2024-01-30' AND '2024-03-02'"  # all three months


def domain(last: str = "2024-03-31") -> lp.Domain:
    return lp.Domain(n=lp.Integers(0, 2), day=lp.Dates("2024-01-01", last))


def table(last: str = "2024-03-31") -> MemoryTable:
    whole = domain(last)
    return MemoryTable(whole, np.arange(whole.size) % 97)


class Silent:
    """Noise of size nothing, to see what is measured."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [0] * count

    def laplace(self, count: int, scale_units: int) -> list[int]:
        raise AssertionError


def opened(source: Any = None, last: str = "2024-03-31", **more: Any) -> WindowedSession:
    given: dict[str, Any] = {"attribute": "day", "periods": "month", "budget": BUDGET, "horizon": 10}
    given["policy"] = "independent"
    return open_windows(table(last) if source is None else source, domain(last), **given | more)


def entries(session: WindowedSession) -> dict[str, list[Any]]:
    """The entries of each period's ledger."""
    return {
        period.name: [kept.entry for kept in session._shelf.ledger(f"{session.name}@{period.name}").since(0)]
        for period in session.periods
    }


def added_up(session: WindowedSession) -> dict[str, float]:
    """What the releases that each period keeps add up to."""
    found = {}
    for name, kept in entries(session).items():
        fresh = session.period(name)._policy.accounting.filter()
        for entry in kept:
            if isinstance(entry, Release):
                fresh.spend(entry.charge)
        found[name] = fresh.spent
    return found


# Sums


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
    session = opened(policy=policy, noise=Silent(), public=True)
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


# Budgets


statements = st.lists(
    st.tuples(st.integers(0, 90), st.integers(0, 90), st.integers(0, 2)), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(drawn=statements, policy=st.sampled_from(["independent", "smooth-cache", "static"]))
def test_spend_is_exact_and_never_passes_a_budget(drawn: list[tuple[int, int, int]], policy: str) -> None:
    budgets = [lp.Budget(epsilon, 1e-6) for epsilon in (0.5, 1, 2)]
    months = zip([JAN, FEB, MAR], ["2024-01-31", "2024-02-29", "2024-03-31"], budgets, strict=True)
    periods = [Period(first, last, budget) for first, last, budget in months]
    session = opened(periods=periods, horizon=4, policy=policy, accounting="basic")
    spent = session.spent
    for low, high, n in drawn:
        days = [dt.date(2024, 1, 1) + dt.timedelta(days=day) for day in sorted((low, high))]
        try:
            answer = session.ask(f"{COUNT} WHERE n = {n} AND day BETWEEN '{days[0]}' AND '{days[1]}'")
        except lp.BudgetExhausted:
            assert session.spent == spent
            continue
        for name, part in answer.periods.items():
            assert session.spent[name] == pytest.approx(spent[name] + part.charge, abs=1e-12)
            spent[name] = session.spent[name]
        assert session.spent == spent
    assert session.spent == added_up(session)
    for budget, one in zip(budgets, session.spent.values(), strict=True):
        assert one <= budget.epsilon


def shelves(folder: Path) -> list[Callable[[], Shelf]]:
    return [MemoryShelf, lambda: SQLShelf(folder / "ledger.db")]


@pytest.mark.parametrize("kind", [0, 1], ids=["memory", "sqlite"])
def test_if_a_period_refuses_nothing_is_charged_anywhere(kind: int, tmp_path: Path) -> None:
    shelf = shelves(tmp_path)[kind]()
    session = opened(ledger=shelf, horizon=3)
    for n in range(3):
        session.ask(f"{COUNT} WHERE n = {n} AND day BETWEEN '2024-02-01' AND '2024-02-29'")
    before, kept = session.spent, {name: len(found) for name, found in entries(session).items()}
    with pytest.raises(lp.BudgetExhausted, match="the period from 2024-02-01: independent has nothing left"):
        session.ask(SPAN.replace("= 1", "<> 1"))
    assert session.spent == before == added_up(session)
    last = {name: found[kept[name] :] for name, found in entries(session).items()}
    assert all(len(found) == 1 and isinstance(found[0], Refusal) for found in last.values())
    assert [found[0].counted for found in last.values()] == [False, True, False]
    assert session.ask(f"{COUNT} WHERE n = 2 AND day > '2024-03-01'").source == "measured"


def test_a_refusal_takes_back_what_was_released_before_it() -> None:
    """January's opening release is made first; then February finds that its own does not fit."""
    session = opened(policy="smooth-cache", predictions=[COUNT])
    session.period(FEB)._filter._budget = lp.Budget(1e-3, 1e-9)
    with pytest.raises(lp.BudgetExhausted, match="2024-02-01"):
        session.ask(COUNT)
    assert all(isinstance(entry, Refusal) for kept in entries(session).values() for entry in kept)
    assert session.spent == {JAN: 0, FEB: 0, MAR: 0} == added_up(session)


class Failing(MemoryTable):
    """Raises at the k-th read."""

    after = 0

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        self.after -= 1
        if self.after == 0:
            raise OSError("gone")
        return super().marginal(axes)


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("kind", [0, 1], ids=["memory", "sqlite"])
def test_a_failure_in_the_middle_changes_and_shows_nothing(kind: int, after: int, tmp_path: Path) -> None:
    source = Failing(domain(), [1] * domain().size)
    session = opened(source, ledger=shelves(tmp_path)[kind](), policy="smooth-cache")
    session.ask(f"{COUNT} WHERE n = 0")
    before, kept = session.spent, {name: len(found) for name, found in entries(session).items()}
    source.after = after
    with pytest.raises(OSError, match="gone"):
        session.ask(SPAN)
    assert {name: len(found) for name, found in entries(session).items()} == kept
    assert session.spent == before == added_up(session)
    answer = session.ask(SPAN)
    assert answer.source == "measured"
    assert session.spent == added_up(session)
    assert {name: len(found) for name, found in entries(session).items()} == {
        n: k + 2 for n, k in kept.items()
    }


class Shaky(MemoryShelf):
    """Fails just before its ledgers keep, or just after."""

    fails: str | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        with super().together():
            yield
            if self.fails == "before":
                raise OSError("disk full")
        if self.fails == "after":
            raise KeyboardInterrupt


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_failure_at_the_end_is_decided_by_the_ledgers(fails: str) -> None:
    shelf = Shaky()
    session = opened(ledger=shelf, policy="primm", predictions=[COUNT])
    session.ask(COUNT)
    before, shelf.fails = session.spent, fails
    with pytest.raises((OSError, KeyboardInterrupt)):
        session.ask(SPAN)
    shelf.fails = None
    assert session.spent == added_up(session)
    assert (session.spent == before) == (fails == "before")
    assert session.ask(SPAN).source == ("measured" if fails == "before" else "replay")
    assert session.spent == added_up(session)


def test_a_commit_that_fails_in_the_database_keeps_nothing(tmp_path: Path) -> None:
    shelf = SQLShelf(tmp_path / "ledger.db")
    session = opened(ledger=shelf, policy="smooth-cache")
    session.ask(f"{COUNT} WHERE n = 0")
    before, failing = session.spent, True

    @event.listens_for(shelf.database._engine, "commit")
    def commit(connection: object) -> None:
        if failing:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        session.ask(SPAN)
    failing = False
    assert session.spent == before == added_up(session)
    assert session.ask(SPAN).source == "measured"
    assert session.spent == added_up(session)


@pytest.mark.parametrize("kind", [0, 1], ids=["memory", "sqlite"])
def test_sessions_on_one_shelf_are_one_budget_a_period(kind: int, tmp_path: Path) -> None:
    make = shelves(tmp_path)[kind]
    shelf = make()
    sessions = [opened(ledger=shelf if kind == 0 else make(), horizon=20) for _ in range(3)]
    shown: dict[str, set[float]] = {}
    refused: list[str] = []

    def work(session: WindowedSession, shift: int) -> None:
        for place in range(12):
            statement = f"{COUNT} WHERE n <= {(place + shift) % 2} AND day > '2024-01-{20 + place}'"
            with suppress(lp.BudgetExhausted):
                answer = session.ask(statement)
                shown.setdefault(statement, set()).add(answer.value)
                continue
            refused.append(statement)

    threads = [threading.Thread(target=work, args=(session, place)) for place, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert refused  # 24 statements, room for 20 in January
    assert all(len(values) == 1 for values in shown.values())
    first, *others = [session.spent for session in sessions]
    assert all(other == first for other in others)
    assert first == added_up(sessions[0])
    assert all(left >= 0 for left in sessions[0].remaining.values())


# What is declared


def test_a_reopened_ledger_gives_the_same_state(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    more = {"ledger": file, "policy": "primm", "predictions": [COUNT]}
    session = opened(**more)
    shown = {
        text: session.ask(text).value for text in (COUNT, SPAN, f"{COUNT} WHERE n = 2 AND day < '{FEB}'")
    }
    again = opened(**more)
    assert again.spent == session.spent
    assert {text: again.ask(text).value for text in shown} == shown
    assert again.spent == session.spent
    assert [str(period) for period in again.periods] == [str(period) for period in session.periods]
    for name in (JAN, FEB, MAR):
        ledger = SQLLedger(file, dataset=f"t@{name}")
        assert verify(ledger) == []
        assert len(ledger.snapshot()[1]) > 3


@pytest.mark.parametrize("automatic", [True, False])
def test_a_new_period_brings_its_own_budget(automatic: bool, tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    session = opened(ledger=file, horizon=2, predictions=[], policy="independent")
    for n in range(2):
        session.ask(f"{COUNT} WHERE n = {n}")
    with pytest.raises(lp.BudgetExhausted):
        session.ask(f"{COUNT} WHERE n = 2")
    spent = session.spent
    old = session.ask(f"{COUNT} WHERE n = 1")
    if automatic:
        session = opened(last="2024-04-30", ledger=file, horizon=2)
    else:
        added = session.add_period(source=month(4))
        assert str(added) == "2024-04-01 to 2024-04-30"
    assert [period.name for period in session.periods] == [JAN, FEB, MAR, APR]
    assert session.spent == spent | {APR: 0}
    answer = session.ask(f"{COUNT} WHERE n = 1")
    assert answer.source == "mixed"
    assert sum(answer.periods[name].value for name in (JAN, FEB, MAR)) == pytest.approx(old.value)
    assert session.ask(f"{COUNT} WHERE day >= '{APR}'").source == "measured"
    assert session.spent[JAN] == spent[JAN]
    with pytest.raises(lp.BudgetExhausted, match="2024-01-01"):
        session.ask(f"{COUNT} WHERE n = 2")
    reopened = opened(last="2024-04-30", ledger=file, horizon=2)
    assert reopened.spent == session.spent


def month(number: int) -> MemoryTable:
    first = dt.date(2024, number, 1)
    last = dt.date(2024, number + 1, 1) - dt.timedelta(days=1)
    own = lp.Domain(n=lp.Integers(0, 2), day=lp.Dates(first, last))
    return MemoryTable(own, [5] * own.size)


def test_periods_of_their_own_length_and_terms() -> None:
    first = Period("2024-01-01", "2024-01-20", lp.Budget(2, 1e-6), [COUNT], "smooth-cache")
    session = opened(periods=[first, Period("2024-01-21", "2024-03-31")])
    assert [len(session.period(name).setting.predictions) for name in (JAN, "2024-01-21")] == [1, 0]
    assert {name: budget.epsilon for name, budget in session.budgets.items()} == {JAN: 2, "2024-01-21": 1}
    assert session.ask(f"{COUNT} WHERE day < '2024-01-21'").source == "predicted"
    with pytest.raises(lp.ConfigError, match="no step: say which one is next"):
        session.add_period()
    with pytest.raises(lp.DomainError, match="begins on 2024-04-01, not on 2024-04-02"):
        session.add_period(Period("2024-04-02", "2024-04-30"), source=month(4))
    session.add_period(Period("2024-04-01", "2024-04-30", lp.Budget(3, 1e-6)), source=month(4))
    assert session.budgets["2024-04-01"].epsilon == 3


def test_a_period_is_declared_once(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    opened(ledger=file)
    names = set(SQLShelf(file).settings())
    assert names == {f"t@{name}" for name in (JAN, FEB, MAR)}
    for more, says in (
        (
            {"budget": lp.Budget(2, 1e-6), "last": "2024-04-30"},
            "2024-01-01 to 2024-01-31: the ledger's budget",
        ),
        ({"periods": "quarter"}, "2024-01-01 to 2024-03-31 overlaps 2024-01-01 to 2024-01-31"),
        ({"periods": 13}, "overlaps"),
        ({"policy": "primm"}, "2024-01-01 to 2024-01-31: the ledger was begun with other settings: policy"),
        ({"predictions": [COUNT]}, "it has 0 predicted queries, not 1"),
    ):
        with pytest.raises(lp.LedgerError, match=says):
            opened(ledger=file, **more)
        assert set(SQLShelf(file).settings()) == names  # nothing new was begun beside it
    renamed = lp.Domain(n=lp.Integers(0, 2), date=lp.Dates(JAN, "2024-03-31"))
    with pytest.raises(lp.LedgerError, match="no period of date"):
        open_windows(
            MemoryTable(renamed, [1] * renamed.size),
            renamed,
            attribute="date",
            periods="month",
            budget=BUDGET,
            ledger=file,
        )


def test_an_old_period_is_raised_only_explicitly(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    session = opened(ledger=file, horizon=1)
    session.ask(COUNT)
    more = lp.Budget(2, 1e-6)
    with pytest.raises(lp.ConfigError, match="no period of day begins on 2024-02-02"):
        session.raise_budget("2024-02-02", more)
    session.raise_budget(JAN, more)
    assert [budget.epsilon for budget in session.budgets.values()] == [2, 1, 1]
    with pytest.raises(lp.LedgerError, match="2024-01-01 to 2024-01-31: the ledger's budget is ε = 2"):
        opened(ledger=file, horizon=1)
    periods = [Period(JAN, "2024-01-31", more), Period(FEB, "2024-02-29"), Period(MAR, "2024-03-31")]
    assert opened(ledger=file, horizon=1, periods=periods).spent == session.spent


def test_caps_hold_in_each_period() -> None:
    session = opened(accounting="basic", caps={"ada": 0.15, "bob": 1})
    session.ask(f"{COUNT} WHERE n = 0", analyst="ada")
    with pytest.raises(lp.BudgetExhausted, match="the period from 2024-01-01: the cap of ada"):
        session.ask(f"{COUNT} WHERE n = 1", analyst="ada")
    assert session.ask(f"{COUNT} WHERE n = 1", analyst="bob").source == "measured"
    with pytest.raises(lp.ConfigError, match="a statement needs an analyst"):
        session.ask(COUNT)
    with pytest.raises(lp.ConfigError, match="no analyst 'eve'"):
        next(session.ask_many([COUNT], analyst="eve"))


def test_what_cannot_be_declared() -> None:
    def refused(error: type[Exception], says: str, whole: lp.Domain | None = None, **more: Any) -> None:
        given = whole or domain()
        with pytest.raises(error, match=says):
            opened(MemoryTable(given, [1] * given.size), **more) if whole is None else open_windows(
                MemoryTable(given, [1] * given.size), given,
                **{"attribute": "day", "periods": "month", "budget": BUDGET} | more,
            )  # fmt: skip

    refused(lp.DomainError, "n is declared as integers", attribute="n")
    refused(lp.DomainError, "no attribute date", attribute="date")
    nullable = lp.Domain(day=lp.Dates(JAN, "2024-03-31", nullable=True))
    refused(lp.DomainError, "would lie in no period", nullable)
    refused(lp.DomainError, "ends on 2024-03-31, inside the period .* 2024-01-01: let", periods="year")
    refused(lp.DomainError, "such as 2024-03-30", periods=10)
    weeks = lp.Domain(day=lp.Dates(JAN, "2024-03-31", "week"))
    refused(lp.DomainError, "2024-01-01 to 2024-01-31 of day cuts a step of 'week'", weeks)
    refused(
        lp.DomainError, "must begin on 2024-01-01, not on 2024-01-02", periods=[Period("2024-01-02", MAR)]
    )
    refused(lp.DomainError, "must begin on 2024-02-01", periods=[Period(JAN, "2024-01-31"), Period(MAR, MAR)])
    refused(lp.DomainError, "end before 2024-01-06", periods=[Period(JAN, "2024-01-05")])
    with pytest.raises(lp.DomainError, match="first date 2024-02-01 is after last date 2024-01-01"):
        Period(FEB, JAN)
    refused(lp.ConfigError, "laplace has laplace ones", policy="laplace", accounting="basic")
    refused(lp.ConfigError, "budget must be a Budget", budget=1)
    refused(lp.ConfigError, "declared public", noise=Silent())
    whole = domain()
    persons = MemoryTable(whole, [1] * whole.size, lp.PrivacyUnit("who", 2))
    with pytest.raises(lp.ConfigError, match="rows as its unit"):
        opened(persons, unit=lp.PrivacyUnit("who", 2))


def test_queries_made_in_python_are_over_all_periods() -> None:
    session = opened()
    answer = session.ask(lp.Query.count(session.domain, day=["2024-01-05", "2024-03-05"]))
    assert list(answer.periods) == [JAN, MAR]
    with pytest.raises(lp.DomainError, match="another domain"):
        session.ask(lp.Query.count(domain("2024-04-30"), n=1))
    with pytest.raises(lp.UnsupportedQuery, match="not int"):
        session.ask(3)
    assert session.ask(session.parse(COUNT)).source == "measured"


# Rows and persons


people = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 11), st.integers(0, 2)), max_size=40
)


@settings(max_examples=25)
@given(rows=people, most=st.integers(1, 3), cuts=st.sets(st.integers(1, 11), max_size=3))
def test_a_slice_is_the_table_of_its_period_alone(
    rows: list[tuple[str, int, int]], most: int, cuts: set[int]
) -> None:
    base = dt.date(2024, 2, 25)
    days = [base + dt.timedelta(days=place) for place in (0, *sorted(cuts), 12)]
    whole = lp.Domain(n=lp.Integers(0, 2), day=lp.Dates(base, days[-1] - dt.timedelta(days=1)))
    source = pa.table(
        {
            "who": pa.array([who for who, _, _ in rows], pa.string()),
            "day": pa.array([base + dt.timedelta(days=day) for _, day, _ in rows], pa.date32()),
            "n": pa.array([n for _, _, n in rows], pa.int64()),
        }
    )
    unit, one = lp.PrivacyUnit("who", most), dt.timedelta(days=1)
    parts = [Part.of(whole, "day", Period(a, b - one)) for a, b in itertools.pairwise(days)]
    starts = [part.start for part in parts]
    together = DuckDBTable(source, whole, unit=unit, key="k", apart=("day", starts))
    for part in parts:
        alone, mine = DuckDBTable(source, part.domain, unit=unit, key="k"), Slice(together, part)
        inside = [who for who, day, _ in rows if part.start <= day < part.stop]
        assert mine.marginal(()).counts.tolist() == [sum(min(most, inside.count(who)) for who in "abc")]
        for axes in ((), (0,), (1,), (0, 1)):
            found, expected = mine.marginal(axes), alone.marginal(axes)
            assert found.counts.tolist() == expected.counts.tolist()
            for axis in axes:
                assert found.levels[axis].tolist() == expected.levels[axis].tolist()


def test_a_person_counts_in_each_period_and_reopening_keeps_the_rows(tmp_path: Path) -> None:
    days = [dt.date(2024, month, day) for month in (1, 2, 3) for day in range(1, 21)]
    source = pa.table({"who": ["ada"] * 60, "day": days, "n": [day.day % 3 for day in days]})
    more = {"unit": lp.PrivacyUnit("who", 3), "noise": Silent(), "public": True, "name": "t"}
    asked = [f"{COUNT} WHERE n = {n} AND day < '{FEB}'" for n in range(3)]
    found = []
    for _ in range(4):
        session = opened(source, **more)
        assert [part.value for part in session.ask(COUNT).periods.values()] == pytest.approx([3, 3, 3])
        found.append([round(session.ask(text).value) for text in asked])
    assert found[1:] == found[:-1]
    session = opened(source, **more)
    session.add_period(source=source)
    assert session.ask(f"{COUNT} WHERE day >= '{APR}'").value == pytest.approx(0)


def test_periods_by_step() -> None:
    months = periods_of(lp.Dates("2024-01-15", "2024-04-14"), "day", "month")
    assert [str(period) for period in months][1:] == ["2024-02-15 to 2024-03-14", "2024-03-15 to 2024-04-14"]
    assert len(periods_of(lp.Dates("2024-01-01", "2024-01-31"), "day", 1)) == 31


# lapras.toml


DECLARED = """
[source]
file = "t.csv"
public = true
[privacy]
epsilon = 1
delta = 1e-6
[stream]
policy = "independent"
horizon = 10
predictions = ["SELECT COUNT(*) FROM t WHERE day > '2024-02-20'"]
[windows]
attribute = "day"
step = "month"
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-02-29
"""


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lapras.toml").write_text(DECLARED)
    (tmp_path / "t.csv").write_text("day\n" + "2024-01-05\n" * 40 + "2024-02-07\n" * 20 + "2024-03-07\n" * 9)
    return tmp_path


def test_lapras_run_with_windows(declared: Path) -> None:
    (declared / "q.sql").write_text(
        "SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t WHERE day < '2024-01-06';\nSELECT AVG(n) FROM t;"
    )
    done = invoke("run", "q.sql", "--json", code=1)
    both, january = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(both["periods"]) == [JAN, FEB]
    assert both["periods"][FEB].keys() == {"value", "std", "source", "charge", "remaining"}
    assert list(january["periods"]) == [JAN]
    assert abs(both["value"] - 60) < 8 * both["std"]
    assert "2 answered, 1 refused; spent ε" in done.stderr
    assert "80% of the budget remains in the period from 2024-01-01, the least of 2" in done.stderr
    text = invoke("run", "q.sql", code=1).stdout
    assert text.splitlines()[0].startswith("line")


def test_lapras_plan_with_windows(declared: Path) -> None:
    row = json.loads(invoke("plan", "--json").stdout)
    assert row["cells"] == 29
    assert "this is the plan of 2024-02-01 to 2024-02-29" in invoke("plan").stdout


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('step = "month"', "", "[windows]: step is missing"),
        ('step = "month"', 'length = "month"', "[windows]: unknown key length"),
        ('step = "month"', 'step = "moon"', "[windows]: step 'moon' must be days"),
        ('attribute = "day"', 'attribute = "date"', "[windows]: no attribute date"),
        ("last = 2024-02-29", "last = 2024-02-28", "[windows]: day ends on 2024-02-28, inside the period"),
    ],
)
def test_windows_that_are_declared_wrongly(declared: Path, old: str, new: str, says: str) -> None:
    (declared / "lapras.toml").write_text(DECLARED.replace(old, new))
    with pytest.raises(lp.LaprasError, match=re.escape(says)):
        read_config()


def test_lapras_run_and_ask_go_on_where_the_ledger_stands(declared: Path) -> None:
    ledger = '[ledger]\nfile = "lapras.ledger"\n'
    (declared / "lapras.toml").write_text(DECLARED + ledger)
    (declared / "q.sql").write_text("SELECT COUNT(*) FROM t;")
    first = json.loads(invoke("run", "q.sql", "--json").stdout)
    done = invoke("run", "q.sql", "--json")
    again = json.loads(done.stdout)
    assert (again["value"], again["source"], again["charge"]) == (first["value"], "replay", 0)
    assert "(1 answered before, for free)" in done.stderr
    asked = json.loads(invoke("ask", "SELECT COUNT(*) FROM t", "--json").stdout)
    assert (asked["value"], list(asked["periods"])) == (first["value"], [JAN, FEB])
    (declared / "lapras.toml").write_text(DECLARED.replace("2024-02-29", "2024-03-31") + ledger)
    grown = json.loads(invoke("ask", "SELECT COUNT(*) FROM t", "--json").stdout)
    assert (grown["source"], list(grown["periods"])) == ("mixed", [JAN, FEB, MAR])


def test_sums_of_laplace_errors_have_their_kurtosis() -> None:
    parts = {
        name: lp.Answer("q", 1.0, std, "measured", 0.0, 1.0, law=law)
        for name, std, law in ((JAN, 1.0, "laplace"), (FEB, 1.0, "laplace"), (MAR, 2.0, "gaussian"))
    }
    statement = Statement("q", (lp.Query.constant(domain(), 1),))
    answer = added(statement, {name: [0] for name in parts}, parts)
    assert (answer.value, answer.std, answer.law) == (3.0, math.sqrt(6), "laplace")
    rng = np.random.default_rng(5)
    errors = rng.laplace(0, 2**-0.5, (2, 400_000)).sum(axis=0) + rng.normal(0, 2, 400_000)
    low, high = answer.interval(0.9)
    assert np.mean(np.abs(errors) <= (high - low) / 2) == pytest.approx(0.9, abs=0.004)  # 8 deviations
