"""Snapshots: a state that is read back goes on as one that was replayed; a wrong one is not believed."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from postgres import SECRET, Server
from sqlalchemy import create_engine
from sqlalchemy import text as said
from test_ledger_crash import killed_often
from witness import STATEMENTS, opened

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.catalog import POLICIES
from laprasdp.record.format import canonical
from laprasdp.stream import resume as snapshots
from laprasdp.stream.opening import open_session
from laprasdp.stream.state import State

SMALL = lp.Domain(age=lp.Integers(0, 7), sex=lp.Categories(["f", "m"], nullable=True))
PRODUCT = lp.Domain(z=lp.Integers(0, 39), age=lp.Integers(0, 39), sex=lp.Categories(["f", "m"]))
LONG = lp.Domain(z=lp.Integers(0, 9_999), age=lp.Integers(0, 7))
DOMAINS = {"small": SMALL, "product": PRODUCT, "long": LONG}
KINDS = [
    (policy, accounting, "small")
    for policy, accounting in itertools.product(POLICIES, ("basic", "gaussian"))
    if (policy, accounting) not in (("laplace", "gaussian"), ("primm", "basic"), ("laplace-counts", "basic"))
] + [("primm", "gaussian", "product"), ("primm", "gaussian", "long"), ("smooth-cache", "gaussian", "product")]
WORDS = [
    "SELECT COUNT(*) FROM t WHERE age > 3", "SELECT COUNT(*) FROM t WHERE age IN (1, 4, 6)",
    "SELECT COUNT(*) FROM t GROUP BY age", "SELECT SUM(age) FROM t", "SELECT COUNT(*) FROM t WHERE age < 6",
]  # fmt: skip


def session(policy: str, accounting: str, domain: lp.Domain, ledger: Any, **more: Any) -> lp.Session:
    table = MemoryTable(domain, np.arange(domain.size) % 5)
    predictions = ["SELECT COUNT(*) FROM t WHERE age < 6", "SELECT COUNT(*) FROM t WHERE age BETWEEN 2 AND 5"]
    return open_session(
        table, domain, budget=lp.Budget(1, 1e-3), horizon=30, policy=policy, accounting=accounting,
        predictions=predictions, overlap=0.5 if policy == "primm" else None, ledger=ledger,
        caps={"ada": 0.9, "bob": 0.9}, **more,
    )  # fmt: skip


def ask(asking: lp.Session, words: list[str], analyst: str, **how: Any) -> None:
    for text in words:
        with suppress(lp.BudgetError):
            asking.ask(text, analyst=analyst, **how)


def written(state: State) -> tuple[bytes, str]:
    taken = snapshots.take(state, "")
    return taken.state, taken.sums


@pytest.mark.parametrize(("policy", "accounting", "name"), KINDS)
def test_a_state_that_was_read_back_goes_on_as_the_one_that_was_replayed(
    policy: str, accounting: str, name: str
) -> None:
    ledger, domain = MemoryLedger(), DOMAINS[name]
    live = session(policy, accounting, domain, ledger)
    ask(live, WORDS, "ada")
    ask(live, WORDS[:2], "bob", remeasure=True)
    for step in range(2):
        fresh = session(policy, accounting, domain, MemoryLedger()).state
        read = snapshots.restored(fresh, snapshots.take(live.state, ""))
        assert written(read) == written(live.state)
        assert read.budget == live.budget
        entries = ledger.since(0)
        if step == 0:  # both learn what comes next, a raise as well
            with suppress(lp.BudgetError):
                live.raise_budget(lp.Budget(1.5, 1e-3))
        ask(
            live,
            ["SELECT COUNT(*) FROM t WHERE age IN (2, 5)", "SELECT COUNT(*) FROM t WHERE age = 0"],
            "bob",
        )
        ask(live, WORDS[1:2], "bob", remeasure=True)
        later = ledger.since(len(entries))
        assert len(later) > 2
        for kept in later:
            read.learn(kept)
        assert written(read) == written(live.state)
        query = live.parse("SELECT COUNT(*) FROM t WHERE age IN (3, 7)").queries[0]
        assert read.policy.recall(query) == live.state.policy.recall(query)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots are taken after every third entry."""
    for place in ("resume", "following"):
        monkeypatch.setattr(f"laprasdp.stream.{place}.LEAST", 3)


@pytest.fixture
def read_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Entries of each snapshot that a session went on from."""
    found: list[int] = []

    def restored(state: State, snapshot: Any) -> State:
        made = snapshots.restored(state, snapshot)
        found.append(snapshot.entries)
        return made

    monkeypatch.setattr("laprasdp.stream.following.restored", restored)
    return found


@pytest.fixture
def some(tmp_path: Path, often: None) -> Path:
    """A ledger with a snapshot."""
    path = tmp_path / "some.ledger"
    with opened(path) as first:
        for text in STATEMENTS[:6]:
            first.ask(text)
    return path


def test_a_session_goes_on_from_a_snapshot_and_learns_what_came_after_it(
    some: Path, read_back: list[int]
) -> None:
    with opened(some) as again:
        assert read_back == [12]
        assert [again.ask(text).charge for text in STATEMENTS[:6]] == [0] * 6  # type: ignore[union-attr]
        spent = again.spent
    assert verify(SQLLedger(some)) == []
    with sqlite3.connect(some) as database:
        database.execute("DROP TABLE lapras_snapshot")  # nothing is lost
    with opened(some) as replayed:
        assert (replayed.spent, len(read_back)) == (spent, 1)
        assert [replayed.ask(text).charge for text in STATEMENTS[:6]] == [0] * 6  # type: ignore[union-attr]


def test_postgresql_keeps_snapshots_too_and_drops_a_damaged_one(
    postgres: Server, often: None, read_back: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    engine = create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as server:
        server.execute(said("CREATE DATABASE snapshots"))
    engine.dispose()
    url = postgres.url.replace("/postgres?", "/snapshots?")

    def asking() -> lp.Session:
        return session("independent", "gaussian", SMALL, url)

    with asking() as first:
        ask(first, WORDS, "ada")
        spent = first.spent
    with asking() as again:
        assert len(read_back) == 1
        assert again.spent == spent
        assert verify(SQLLedger(url)) == []
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(said("UPDATE lapras_snapshot SET sums = replace(sums, '1', '0')"))
    engine.dispose()
    with asking() as replayed:
        assert len(read_back) == 1
        assert replayed.spent == spent


def change(path: Path, *, sealed: bool, **columns: Any) -> None:
    """Change a snapshot, with a new seal or without."""
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        row = dict(database.execute("SELECT * FROM lapras_snapshot").fetchone())
        row |= columns
        if sealed:
            told = canonical({name: row[name] for name in ("entries", "digest", "key", "sums")})
            row["seal"] = hashlib.sha256(told.encode() + row["state"]).hexdigest()
        names = ", ".join(f"{name} = :{name}" for name in row)
        database.execute(f"UPDATE lapras_snapshot SET {names}", row)


def kept(path: Path, column: str) -> Any:
    with sqlite3.connect(path) as database:
        return database.execute(f"SELECT {column} FROM lapras_snapshot").fetchone()[0]


WRONG: dict[str, tuple[bool, Any]] = {
    "a bit of the state": (False, lambda path: {"state": kept(path, "state")[:-1] + b"\x01"}),
    "its end": (False, lambda path: {"state": kept(path, "state")[:-9]}),
    "other sums": (False, lambda path: {"sums": kept(path, "sums").replace("draws", "drawn")}),
    "more entries": (True, lambda path: {"entries": 13}),
    "fewer entries": (True, lambda path: {"entries": 11}),
    "none": (True, lambda path: {"entries": 0}),
    "entries of another chain": (True, lambda path: {"digest": "0" * 64}),
    "another key": (True, lambda path: {"key": "0" * 64}),
    "a state that is none": (True, lambda path: {"state": b"\x02\0\0\0\0\0\0\0{}"}),
    "no state": (True, lambda path: {"state": b""}),
    "sums that are none": (True, lambda path: {"sums": "{}"}),
    "text for a state": (False, lambda path: {"state": "text"}),
}


@pytest.mark.parametrize(("sealed", "columns"), WRONG.values(), ids=WRONG)
def test_a_snapshot_that_does_not_match_is_dropped_and_made_anew(
    sealed: bool, columns: Any, some: Path, read_back: list[int]
) -> None:
    with opened(some) as right:
        spent = right.spent
    before = SQLLedger(some).head
    change(some, sealed=sealed, **columns(some))
    read_back.clear()
    with opened(some) as session:
        assert (read_back, session.spent) == ([], spent)
        assert [session.ask(text).charge for text in STATEMENTS[:6]] == [0] * 6  # type: ignore[union-attr]
    with opened(some) as session:
        assert (len(read_back), session.spent) == (1, spent)
    assert verify(SQLLedger(some), noted=before) == []


def test_an_older_copy_of_the_entries_is_not_believed_to_be_the_newer(
    some: Path, tmp_path: Path, read_back: list[int]
) -> None:
    with sqlite3.connect(some) as database:
        rows = list(database.execute("SELECT * FROM lapras_snapshot"))
    other = tmp_path / "other.ledger"
    with opened(other) as session:
        for text in STATEMENTS[:6]:
            session.ask(text)
        spent = session.spent
    with sqlite3.connect(other) as database:  # same settings, same number of entries, other noise
        database.execute("DELETE FROM lapras_snapshot")
        database.executemany("INSERT INTO lapras_snapshot VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    assert [str(one) for one in verify(SQLLedger(other))] == [
        f"the ledger {other}: its snapshot is of other entries, and is not used"
    ]
    with opened(other) as session:
        assert (read_back, session.spent) == ([], spent)


def test_verify_finds_a_snapshot_that_says_nothing_is_spent(some: Path) -> None:
    with opened(some) as session:
        empty = snapshots.take(session.state.afresh(), kept(some, "key"))
        told = json.loads(empty.sums)
    assert told["units"] == 0
    forged = snapshots.take(session.state, kept(some, "key"))
    change(some, sealed=True, sums=empty.sums, state=forged.state)
    assert any("says that something else is spent" in str(one) for one in verify(SQLLedger(some)))


def test_caps_that_differ_go_on_from_one_snapshot(some: Path, read_back: list[int]) -> None:
    with opened(some, caps={"ada": 0.5}) as session:
        assert (read_back, session.state.position) == ([12], 12)
        session.ask("SELECT COUNT(*) FROM t WHERE age = 7", analyst="ada")
        spent = session.state.cap_spent("ada")
    with opened(some, caps={"ada": 0.1, "bob": 0.5}) as session:
        assert read_back[1:] == [14]
        assert session.state.cap_spent("ada") == spent > 0
        assert session.state.cap_spent("bob") == 0


def test_a_cap_of_whom_nothing_counted_is_replayed(some: Path, read_back: list[int]) -> None:
    with opened(some) as session:
        session.ask("SELECT COUNT(*) FROM t WHERE age = 7", analyst="ada")
    read_back.clear()
    with opened(some, caps={"ada": 0.5}) as session:
        assert read_back == []
        assert session.state.cap_spent("ada") > 0


def test_processes_that_take_turns_stay_in_step(tmp_path: Path, often: None, read_back: list[int]) -> None:
    """Three sessions on one ledger at random, one of them torn now and then: all end as one that replays."""
    path, draw = tmp_path / "some.ledger", random.Random(5)
    sessions = [opened(SQLLedger(path)) for _ in range(3)]
    shown: dict[str, float] = {}
    for text in draw.choices(STATEMENTS[:12], k=60):
        one = draw.choice(sessions)
        if draw.random() < 0.1:
            one.doubt()
        answer = one.ask(text)
        assert isinstance(answer, lp.Answer)
        assert shown.setdefault(text, answer.value) == answer.value
    assert len(read_back) > 3
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE lapras_snapshot")
    read_back.clear()
    alone = opened(SQLLedger(path))
    assert read_back == []
    for one in sessions:
        assert (one.spent, written(one.state)) == (alone.spent, written(alone.state))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*ends in a write that was not finished:UserWarning")
@pytest.mark.parametrize(("policy", "seed"), [("independent", 0), ("smooth", 1)])
def test_a_kill_anywhere_leaves_no_snapshot_that_is_wrong(
    policy: str, seed: int, tmp_path: Path, often: None
) -> None:
    runs: Iterator[list[str]] = killed_often(lambda: SQLLedger(tmp_path / "ledger.db"), policy, seed, 12)
    assert [faults for faults in runs if faults] == []
    assert kept(tmp_path / "ledger.db", "entries") > 3
