"""Crashes in the middle of an ask: killed or failing anywhere, nothing shown is lost or paid for twice."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from postgres import Server
from sqlalchemy import event
from witness import STATEMENTS, Child, Witness, opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.sql import SQLLedger
from laprasdp.record.entries import Entry, Kept, Stamp
from laprasdp.stream.life import Event

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:dataset:UserWarning"),  # ledgers alike in one database
    pytest.mark.filterwarnings("ignore:.*ends in a write that was not finished:UserWarning"),
]
KILLS = 21  # of each of ten ledgers
STEPS = 30_000  # calls of functions in about five statements


def killed_somewhere(session: lp.Session, draw: random.Random) -> tuple[bool, list[tuple[str, float]]]:
    """A child asks on and on; it is killed after some milliseconds, or in front of some function call."""
    stream = draw.choices(STATEMENTS, k=1000)
    steps = draw.randrange(STEPS) if draw.random() < 0.5 else None

    def work(tell: Callable[[str, float], None]) -> None:
        left = steps

        def count(*_: Any) -> None:
            nonlocal left
            assert left is not None
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        if steps is not None:
            sys.setprofile(count)
        for statement in stream:
            with suppress(lp.BudgetExhausted):
                tell(statement, session.ask(statement).value)  # type: ignore[union-attr]

    child = Child(work, lambda: session.spent)
    if steps is None:
        time.sleep(draw.uniform(0, 0.02))
        child.kill()
    return child.end()


def killed_often(make: Callable[[], SQLLedger], policy: str, seed: int, kills: int) -> Iterator[list[str]]:
    """The faults after each of many kills on one ledger."""
    draw = random.Random(seed)
    session, witness = opened(make(), policy=policy), Witness(make, policy)
    witness.ask(session, STATEMENTS[0])  # children need not import anything
    shown_by_children = 0
    for kill in range(kills):
        was_killed, shown = killed_somewhere(session, draw)
        assert was_killed
        shown_by_children += len(shown)
        for statement, value in shown:
            witness.saw(statement, value)
        yield witness.faults(everything=kill == kills - 1)
    assert shown_by_children >= kills // 4


@pytest.mark.parametrize("policy", ["independent", "smooth"])
@pytest.mark.parametrize("seed", range(5))
def test_a_kill_anywhere_loses_nothing(tmp_path: Path, policy: str, seed: int) -> None:
    runs = killed_often(lambda: SQLLedger(tmp_path / "ledger.db"), policy, seed, KILLS)
    assert [faults for faults in runs if faults] == []


class Late(SQLLedger):
    """Broken: keeps what a statement appended only when the next one is asked."""

    pending: Sequence[tuple[Stamp, Entry]] = ()

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        for late, entry in self.pending:
            with super().transaction(late) as transaction:
                transaction.append(entry)
        self.pending = pending = []
        with super().transaction(stamp) as transaction:
            yield Through(transaction.since, lambda entry: pending.append((stamp, entry)))


class Apart(SQLLedger):
    """Broken: keeps every entry in a transaction of its own."""

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        def append(entry: Entry) -> None:
            with super(Apart, self).transaction(stamp) as transaction:
                transaction.append(entry)

        yield Through(self.since, append)


class Through:
    """A transaction of these two functions."""

    def __init__(self, since: Callable[[int], Sequence[Kept]], append: Callable[[Entry], None]) -> None:
        self.since, self.append = since, append


def test_an_answer_that_is_shown_before_it_is_kept_is_noticed(tmp_path: Path) -> None:
    def work(tell: Callable[[str, float], None]) -> None:
        session = opened(Late(tmp_path / "ledger.db"))
        for statement in STATEMENTS[:3]:
            tell(statement, session.ask(statement).value)  # type: ignore[union-attr]
        die()

    was_killed, shown = Child(work).end()
    assert (was_killed, len(shown)) == (True, 3)
    witness = Witness(lambda: SQLLedger(tmp_path / "ledger.db"))
    for statement, value in shown:
        witness.saw(statement, value)
    assert witness.faults() == [
        f"{STATEMENTS[2]} was shown, but is not kept",
        f"{STATEMENTS[2]} has another answer now",
        "a replay was charged",
    ]


class Steps:
    """
    What a database is told, each before and after; something is done at one of these points.

    Parameters
    ----------
    session : Session
        On a ledger in a database; from now on, until `stop`.
    place : int, optional
        At which point.
    act : callable
        What is done there.
    """

    def __init__(
        self, session: lp.Session, place: int | None = None, act: Callable[[], None] = lambda: None
    ) -> None:
        assert session.spent >= 0  # a child has connected
        ledger = session.ledger
        assert isinstance(ledger, SQLLedger)
        self.engine, self._place, self._act = ledger.database.engine, place, act
        self.names: list[str] = []
        self._begins = [(lambda _, name=f"{when} BEGIN": self._pass(name)) for when in ("before", "after")]
        event.listen(self.engine, "begin", self._begins[0], insert=True)
        event.listen(self.engine, "begin", self._begins[1])
        self._patch = pytest.MonkeyPatch()
        for method in ("do_execute", "do_executemany", "do_execute_no_params", "do_commit"):
            self._patch.setattr(self.engine.dialect, method, self._around(method))

    def stop(self) -> None:
        """The database is left alone again."""
        self._patch.undo()
        for begin in self._begins:
            event.remove(self.engine, "begin", begin)

    def _around(self, method: str) -> Callable[..., Any]:
        do = getattr(self.engine.dialect, method)

        def told(*arguments: Any, **more: Any) -> Any:
            name = "COMMIT" if method == "do_commit" else arguments[1].split()[0]
            self._pass(f"before {name}")
            done = do(*arguments, **more)
            self._pass(f"after {name}")
            return done

        return told

    def _pass(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) - 1 == self._place:
            self._act()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    raise KeyboardInterrupt


def points(session: lp.Session, statement: str) -> list[str]:
    """What the database is told for one statement."""
    steps = Steps(session)
    session.ask(statement)
    steps.stop()
    told = [
        f"{when} {what}" for what in ("BEGIN", "INSERT", "UPDATE", "COMMIT") for when in ("before", "after")
    ]
    assert [name for name in told if name not in steps.names] == []
    return steps.names


def fail(session: lp.Session, statement: str, place: int, how: str) -> None:
    """Ask, with a failure at one point."""
    if how == "killed":

        def work(tell: Callable[[str, float], None]) -> None:
            Steps(session, place, die)
            session.ask(statement)

        assert Child(work).end() == (True, [])
        return
    ledger = session.ledger
    assert isinstance(ledger, SQLLedger)
    error = ledger.database.engine.dialect.loaded_dbapi.OperationalError

    def refuse() -> None:
        raise error("the disk has failed")

    steps = Steps(session, place, refuse if how == "refused" else interrupt)
    try:
        with pytest.raises((lp.LedgerError, error) if how == "refused" else KeyboardInterrupt):
            session.ask(statement)
    finally:
        steps.stop()


def overtaken(session: lp.Session) -> None:
    """As if others asked too: the ledger is read before its transaction."""
    session.life.move(Event.LEARN)
    session.life.move(Event.OVERTAKEN)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    server: Server = request.getfixturevalue("postgres")
    return server.url


@pytest.mark.parametrize("how", ["killed", "refused", "interrupted"])
@pytest.mark.parametrize("policy", ["independent", "smooth"])
def test_a_failure_at_any_statement_keeps_all_or_nothing(where: str, how: str, policy: str) -> None:
    def make() -> SQLLedger:
        return SQLLedger(where, dataset=f"{how} {policy}", wait=5)

    ledger = make()
    session, witness = opened(ledger, policy=policy), Witness(make, policy)
    overtaken(session)
    names = points(session, STATEMENTS[0])
    assert names.count("after COMMIT") == 2
    for place, statement in zip(range(len(names)), STATEMENTS[1:], strict=False):
        before = ledger.head.entries
        overtaken(session)
        fail(session, statement, place, how)
        kept = ledger.since(before)
        kinds = [type(each.entry).__name__ for each in kept]
        assert kinds == (["Release", "Reply"] if place == len(names) - 1 else []), names[place]
        answer = witness.ask(session, statement)
        assert answer.source == ("replay" if kept else "measured")
        assert witness.faults(everything=place == len(names) - 1) == [], names[place]


def test_a_charge_that_is_kept_before_its_answer_is_noticed(tmp_path: Path) -> None:
    def make() -> SQLLedger:
        return Apart(tmp_path / "ledger.db")

    session, witness = opened(make()), Witness(make)
    names = points(session, STATEMENTS[0])
    commits = [place for place, name in enumerate(names) if name == "after COMMIT"]
    fail(session, STATEMENTS[1], commits[1], "killed")  # the first has only read
    found = witness.faults()
    assert any("is a charge without its answer" in fault for fault in found), found
    assert any("was made for a statement that has no reply" in fault for fault in found), found
