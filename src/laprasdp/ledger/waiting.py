"""Waiting for one's turn to write a SQLite file: one process asks SQLite, those behind it ask the system.

SQLite wakes nobody, so whoever waits has to ask again and again.  An attempt costs some 50 µs of processor
time: of eight processes that all ask in short intervals, the one that writes has hardly a core left.  Here
those that wait stand behind an advisory lock, where asking is nearly free, and the first of them alone asks
SQLite.  The lock keeps nothing safe: SQLite's own does, also where this one cannot be had.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

if sys.platform != "win32":  # where there is no such lock, and everybody asks SQLite
    import fcntl

_WRITE = "BEGIN IMMEDIATE"
_SOONEST, _LATEST = 0.0001, 0.001  # seconds between two attempts of whoever is first: ever longer
_SHORTEST, _LONGEST = 0.0002, 0.003  # and between two looks of the others: shorter, the longer they wait
_BEHIND = 1.0  # seconds that one stands behind others at most; then one asks SQLite, as the first does
_MEANWHILE = ContextVar[Callable[[], object] | None]("meanwhile", default=None)


@contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[None]:
    """Do something in the next wait for a SQLite file's writer, once, when one is the next to write."""
    before = _MEANWHILE.set(act)
    try:
        yield
    finally:
        _MEANWHILE.reset(before)


def begin_writing(driver: sqlite3.Connection, wait: float) -> None:
    """
    Begin a transaction that writes, in nearly the order in which processes came.

    Parameters
    ----------
    driver : sqlite3.Connection
    wait : float
        Seconds to wait for others that are writing.

    Raises
    ------
    sqlite3.OperationalError
        As of ``BEGIN IMMEDIATE``; its error is that of a lock after `wait` seconds.
    """
    driver.execute("PRAGMA busy_timeout=0")
    end = time.monotonic() + wait
    try:
        if not _begun(driver):
            with _first(driver, end):
                act = _MEANWHILE.get()
                _MEANWHILE.set(None)
                if act is not None:
                    act()
                start = time.monotonic()
                while not _begun(driver):
                    if (now := time.monotonic()) > end:
                        driver.execute(_WRITE)  # a last time, for its error
                        return
                    time.sleep(min(_LATEST, max(_SOONEST, (now - start) / 10)))
    finally:
        driver.execute(f"PRAGMA busy_timeout={int(wait * 1000)}")


def _begun(driver: sqlite3.Connection) -> bool:
    try:
        driver.execute(_WRITE)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


@contextmanager
def _first(driver: sqlite3.Connection, end: float) -> Iterator[None]:
    """Stand behind those who came before, for a while: whoever is first may have been stopped."""
    place = _place(driver)
    if place is None or sys.platform == "win32":
        yield
        return
    try:
        start = time.monotonic()
        while (now := time.monotonic()) < min(end, start + _BEHIND):
            with suppress(BlockingIOError):
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(max(_SHORTEST, _LONGEST - (now - start) / 40))
        yield
    finally:
        fcntl.flock(place, fcntl.LOCK_UN)  # to close it is not enough where a child has it, too
        os.close(place)


def _place(driver: sqlite3.Connection) -> int | None:
    """
    An open file that stands for the ledger's, in the folder for temporary files; None where there is none.

    Not beside the ledger, where it would be in people's way, and not the ledger: who closes any descriptor
    of a file loses all of POSIX's locks on it, which are SQLite's.
    """
    if sys.platform == "win32":
        return None
    (_, _, name), *_ = driver.execute("PRAGMA database_list").fetchall()
    try:
        file = os.stat(name)
        path = Path(tempfile.gettempdir()) / f"laprasdp-{os.getuid()}-{file.st_dev:x}-{file.st_ino:x}"
        place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    if os.fstat(place).st_uid == os.getuid():
        return place
    os.close(place)  # somebody else's: it could be held for good
    return None
