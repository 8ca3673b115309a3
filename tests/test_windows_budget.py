"""Windows: a budget for each period, and all of a statement or nothing."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from draw import MemoryTable
from growing import (
    COUNT,
    FEB,
    JAN,
    MAR,
    SPAN,
    added_up,
    domain,
    entries,
    opened,
    shelves,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

import laprasdp as lp
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.ledger.sql import SQLShelf
from laprasdp.periods import Period, WindowedSession
from laprasdp.privacy.filter import GaussianFilter
from laprasdp.queries.marginal import Marginal
from laprasdp.record.entries import Refusal

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
    february = session.period(FEB)
    february.state.filter = GaussianFilter(lp.Budget(1e-3, 1e-9), february.setting.domain)
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
    session = opened(ledger=shelf, policy="primm", release="gaussian", predictions=[COUNT])
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

    @event.listens_for(shelf.database.engine, "commit")
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
