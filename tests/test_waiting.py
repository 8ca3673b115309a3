"""Whose turn it is to write a SQLite file: one asks SQLite, the others stand behind; nothing hangs on it."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from laprasdp.ledger import waiting
from laprasdp.ledger.waiting import begin_writing, meanwhile


def connected(file: Path) -> sqlite3.Connection:
    made = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    made.execute("PRAGMA journal_mode=WAL")
    return made


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr(waiting.tempfile, "gettempdir", lambda: str(places))
    return tmp_path / "ledger.db"


@pytest.fixture
def writer(file: Path) -> Iterator[sqlite3.Connection]:
    made = connected(file)
    begin_writing(made, 1)
    yield made
    made.close()


def test_nothing_is_opened_and_nothing_done_where_nobody_writes(file: Path) -> None:
    done: list[int] = []
    with meanwhile(lambda: done.append(1)):
        begin_writing(connected(file), 1)
    assert done == []
    assert list((file.parent / "places").iterdir()) == []


def test_whoever_is_next_does_something_once_and_then_writes(file: Path, writer: sqlite3.Connection) -> None:
    done: list[bool] = []
    ended = threading.Timer(0.1, writer.rollback)

    def act() -> None:
        done.append(writer.in_transaction)
        ended.start()

    second = connected(file)
    with meanwhile(act):
        begin_writing(second, 5)
        second.rollback()
        begin_writing(second, 5)
    assert done == [True]
    assert second.in_transaction
    assert second.execute("PRAGMA busy_timeout").fetchone() == (5000,)


def test_those_behind_do_not_ask_sqlite(file: Path, writer: sqlite3.Connection) -> None:
    asked = dict.fromkeys(range(3), 0)
    others = [connected(file) for _ in asked]
    places = {id(one): number for number, one in enumerate(others)}
    first = threading.Event()
    begun = waiting._begun

    def counted(driver: sqlite3.Connection) -> bool:
        asked[places[id(driver)]] += 1
        return begun(driver)

    def turn(driver: sqlite3.Connection) -> None:
        with meanwhile(first.set):
            begin_writing(driver, 10)
        driver.rollback()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_begun", counted)
        threads = [threading.Thread(target=turn, args=(one,)) for one in others]
        threads[0].start()
        assert first.wait(10)
        for thread in threads[1:]:
            thread.start()
        time.sleep(0.2)
        assert asked[0] > 20
        assert [asked[1], asked[2]] == [1, 1]
        writer.rollback()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("spoilt", ["no folder", "somebody else's"])
def test_without_a_place_to_wait_everybody_asks_sqlite(
    file: Path, writer: sqlite3.Connection, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spoilt == "no folder":
        monkeypatch.setattr(waiting.tempfile, "gettempdir", lambda: str(file / "nowhere"))
    else:
        owner = waiting.os.getuid()
        monkeypatch.setattr(waiting.os, "getuid", lambda: owner + 1)
    assert waiting._place(writer) is None
    threading.Timer(0.05, writer.rollback).start()
    second = connected(file)
    begin_writing(second, 5)
    assert second.in_transaction


def test_whoever_waits_too_long_behind_another_is_told(file: Path, writer: sqlite3.Connection) -> None:
    first, told = connected(file), threading.Event()
    thread = threading.Thread(target=lambda: _suppressed(first, told), daemon=True)
    with meanwhile(lambda: None):
        thread.start()
    assert told.wait(10)
    start = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        begin_writing(connected(file), 0.1)
    assert time.monotonic() - start < 1
    writer.rollback()
    thread.join(10)
    assert first.in_transaction


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_nobody_waits_for_a_child_that_has_the_place(file: Path, writer: sqlite3.Connection) -> None:
    """A process that forks while it is first, and goes on, leaves nobody behind its child."""
    first, second = connected(file), connected(file)
    children: list[int] = []

    def fork() -> None:
        if not (child := os.fork()):
            time.sleep(60)
            os._exit(0)
        children.append(child)
        writer.rollback()

    try:
        with meanwhile(fork):
            begin_writing(first, 10)
        threading.Timer(0.1, first.rollback).start()
        start = time.monotonic()
        begin_writing(second, 10)
        assert time.monotonic() - start < 0.9  # less than one stands behind at most
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_nobody_stands_for_long_behind_whoever_does_not_go_on(
    file: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_BEHIND", 0.05)
    place = waiting._place(writer)
    assert place is not None
    fcntl.flock(place, fcntl.LOCK_EX)
    threading.Timer(0.01, writer.rollback).start()
    second = connected(file)
    begin_writing(second, 10)
    assert second.in_transaction
    os.close(place)


def _suppressed(driver: sqlite3.Connection, told: threading.Event) -> None:
    with meanwhile(told.set):
        begin_writing(driver, 20)
