"""Designs are made before the transaction: nobody waits for one, and what is decided is as if in turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import Server
from small_session import BUDGET, opened
from sqlalchemy import create_engine, text

import laprasdp as lp
from laprasdp.ledger.ledger import Ledger, Transaction
from laprasdp.ledger.memory import MemoryLedger, MemoryShelf
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import verify
from laprasdp.periods import WindowedSession, open_windows
from laprasdp.policy import lapras
from laprasdp.record.entries import Kept, Raise, Release, Reply, Stamp

ASKED = "SELECT COUNT(*) FROM t"
OTHER = "SELECT COUNT(*) FROM t WHERE age = 3"
WAIT = 30.0


class Watched(MemoryLedger):
    """Knows whether a transaction is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open_now = 0

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            self.open_now += 1
            try:
                yield transaction
            finally:
                self.open_now -= 1


@pytest.fixture
def designing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Do something whenever the matrix of a policy is designed."""

    def during(act: Callable[[], None]) -> None:
        true = lapras.design_joint

        def slow(*arguments: Any, **more: Any) -> Any:
            act()
            return true(*arguments, **more)

        monkeypatch.setattr(lapras, "design_joint", slow)

    return during


def kinds(ledger: Ledger) -> list[str]:
    return [type(kept.entry).__name__ for kept in ledger.since(0)]


@pytest.mark.parametrize("policy", ["smooth", "static", "offline", "smooth-cache"])
def test_nothing_is_designed_inside_the_transaction(designing: Any, policy: str) -> None:
    ledger, seen = Watched(), list[int]()
    designing(lambda: seen.append(ledger.open_now))
    session = opened(ledger=ledger, policy=policy)
    session.ask(ASKED)
    assert seen == [0]
    assert kinds(ledger) == ["Release", "Reply"]


def test_a_session_is_answered_while_another_one_designs(designing: Any) -> None:
    ledger, answers = MemoryLedger(), list[Any]()
    first, second = opened(ledger=ledger), opened(ledger=ledger)
    begun, done = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is slow:
            begun.set()
            assert done.wait(WAIT)

    designing(wait)
    slow = threading.Thread(target=lambda: answers.append(first.ask(ASKED)))
    slow.start()
    assert begun.wait(WAIT)
    answers.append(second.ask(ASKED))
    assert slow.is_alive()
    done.set()
    slow.join(WAIT)
    assert answers[0].value == answers[1].value
    assert kinds(ledger) == ["Release", "Reply", "Reply"]  # one of the two designs was released


def test_a_raise_during_a_design_is_designed_for_without_a_transaction(designing: Any) -> None:
    ledger = Watched()
    session, other = opened(ledger=ledger), opened(ledger=ledger)
    raised, seen = iter([lp.Budget(2, 1e-6)]), list[int]()

    def act() -> None:
        seen.append(ledger.open_now)
        for budget in raised:
            other.raise_budget(budget)

    designing(act)
    session.ask(ASKED)
    assert seen == [0, 0]
    assert kinds(ledger) == ["Raise", "Release", "Reply"]
    in_turns = opened(ledger=(alone := MemoryLedger()))
    in_turns.raise_budget(lp.Budget(2, 1e-6))
    in_turns.ask(ASKED)
    assert charge(ledger) == charge(alone)


def charge(ledger: Ledger) -> list[Any]:
    return [
        (kept.entry.charge.amounts.key, kept.entry.measurement.matrix.tolist())
        for kept in ledger.since(0)
        if isinstance(kept.entry, Release)
    ]


def test_whoever_is_always_overtaken_designs_inside_in_the_end(designing: Any) -> None:
    ledger = Watched()
    session, other = opened(ledger=ledger), opened(ledger=ledger)
    budgets, seen = (lp.Budget(1 + step / 8, 1e-6) for step in range(1, 9)), list[int]()

    def act() -> None:
        seen.append(ledger.open_now)
        if not ledger.open_now:
            other.raise_budget(next(budgets))

    designing(act)
    assert session.ask(ASKED).charge == 0
    assert seen == [0, 0, 0, 1]
    assert kinds(ledger) == ["Raise"] * 3 + ["Release", "Reply"]


def months(shelf: Any, **more: Any) -> WindowedSession:
    import datetime as dt

    import pyarrow as pa

    days = [dt.date(2024, month, 3) for month in (1, 2) for _ in range(20)]
    return open_windows(
        pa.table({"day": days}),
        lp.Domain(day=lp.Dates("2024-01-01", "2024-02-29")),
        attribute="day",
        periods="month",
        name="t",
        budget=BUDGET,
        horizon=10,
        policy="smooth",
        predictions=[ASKED],
        ledger=shelf,
        **more,
    )


class WatchedShelf(MemoryShelf):
    """Knows whether a joint transaction is open."""

    open_now = False

    @contextmanager
    def together(self) -> Iterator[None]:
        with super().together():
            self.open_now = True
            try:
                yield
            finally:
                self.open_now = False


def test_periods_design_before_their_joint_transaction(designing: Any) -> None:
    shelf, seen = WatchedShelf(), list[bool]()
    session = months(shelf)
    designing(lambda: seen.append(shelf.open_now))
    session.ask(ASKED)
    assert seen == [False, False]
    other = months(shelf)
    assert other.ask(ASKED).value == session.ask(ASKED).value


def test_a_raise_of_one_period_during_the_designs_of_all(designing: Any) -> None:
    shelf, seen = WatchedShelf(), list[bool]()
    session, other = months(shelf), months(shelf)
    raised = iter([lp.Budget(2, 1e-6)])

    def act() -> None:
        seen.append(shelf.open_now)
        for budget in raised:
            other.raise_budget("2024-02-01", budget)

    designing(act)
    session.ask(ASKED)
    assert seen == [False] * 3  # January's design stays
    assert kinds(shelf.ledger("t@2024-01-01")) == ["Release", "Reply"]
    assert kinds(shelf.ledger("t@2024-02-01")) == ["Raise", "Release", "Reply"]


@pytest.mark.parametrize("windows", [False, True])
def test_a_server_that_ends_idle_transactions_answers_the_first_statement(
    postgres: Server, designing: Any, windows: bool
) -> None:
    name = f"idle_{windows}".lower()
    engine = create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        connection.execute(text(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '500ms'"))
    engine.dispose()
    where = postgres.url.replace("/postgres?", f"/{name}?")
    designing(lambda: time.sleep(2))
    session = months(SQLShelf(where)) if windows else opened(ledger=SQLLedger(where))
    assert session.ask(ASKED).source in ("predicted", "measured")


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=1, max_size=6),
    st.lists(st.integers(0, 11), max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_what_others_keep_between_decision_and_transaction_counts_as_kept_before(
    asked: list[tuple[int, int]], between: list[int]
) -> None:
    """Whatever two sessions do, the ledger is what one session makes of the statements in their order."""
    ledger = Late()
    one, two = (opened(ledger=ledger, noise=lp.SeededNoise(1), public=True) for _ in range(2))
    steps = iter(between)

    def step() -> None:
        for act in steps:
            with suppress(lp.BudgetExhausted, lp.BudgetError):
                if act < 10:
                    two.ask(f"SELECT COUNT(*) FROM t WHERE age <= {act}")
                else:
                    two.raise_budget(lp.Budget(two.budget.epsilon + 0.25, 1e-6))
            return

    ledger.before = step
    for who, age in asked:
        with suppress(lp.BudgetExhausted):
            (one, two)[who].ask(f"SELECT COUNT(*) FROM t WHERE age <= {age}")
    ledger.before = None
    alone = MemoryLedger()
    session = opened(ledger=alone, noise=lp.SeededNoise(1), public=True)
    for kept in ledger.since(0):
        if isinstance(kept.entry, Raise):
            session.raise_budget(kept.entry.new)
        elif not isinstance(kept.entry, Release):
            with suppress(lp.BudgetExhausted):
                session.ask(kept.stamp.statement or "")
    assert [shape(kept) for kept in alone.since(0)] == [shape(kept) for kept in ledger.since(0)]


class Late(MemoryLedger):
    """Lets others act when a transaction is asked for, before it begins."""

    before: Callable[[], None] | None = None

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        act, self.before = self.before, None  # not for the transactions of those others
        if act is not None:
            act()
        self.before = act
        with super().transaction(stamp) as transaction:
            yield transaction


def shape(kept: Kept) -> Any:
    """An entry without its noise."""
    entry = kept.entry
    if isinstance(entry, Release):
        return "release", entry.opening, entry.allowance, entry.charge.amounts.key
    if isinstance(entry, Reply):
        return "reply", entry.measured, [one and (one.variance, one.source) for one in entry.answers]
    return repr(entry)


def test_a_ledger_of_overtaken_sessions_is_sound(tmp_path: Any, designing: Any) -> None:
    ledger = SQLLedger(tmp_path / "ledger.db")
    session, other = opened(ledger=ledger), opened(ledger=SQLLedger(tmp_path / "ledger.db"))
    budgets = iter([lp.Budget(2, 1e-6)])

    def act() -> None:
        for budget in budgets:
            other.raise_budget(budget)

    designing(act)
    values = [asking.ask(statement).value for statement in (ASKED, OTHER) for asking in (session, other)]
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert verify(ledger) == []
    assert ledger.head.entries == 7
