"""The log of writes: what is found broken is what SQLite would drop, and nothing that a crash leaves."""

from __future__ import annotations

import random
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from witness import STATEMENTS, opened

from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.wal import broken, sums

WRITES = 12


def plain_sum(state: tuple[int, int], words: Any) -> tuple[int, int]:
    """The checksum as SQLite's page has it, word by word."""
    s, t = state
    for place in range(0, len(words), 2):
        s = (s + int(words[place]) + t) % 2**32
        t = (t + int(words[place + 1]) + s) % 2**32
    return s, t


class Log:
    """A database of some writes that nobody closes, and copies of its files."""

    def __init__(self, folder: Path, size: int) -> None:
        self.file, self.size, self._copies = folder / "whole.db", size, 0
        self.connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        for pragma in (f"page_size={size}", "journal_mode=WAL"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("CREATE TABLE t (text)")
        for _ in range(WRITES):
            self.write()

    def write(self, length: int = 300) -> None:
        self.connection.execute("INSERT INTO t VALUES (?)", ("x" * length,))

    @property
    def whole(self) -> bytes:
        return Path(f"{self.file}-wal").read_bytes()

    @property
    def index(self) -> bytes:
        return Path(f"{self.file}-shm").read_bytes()

    def copied(self, log: bytes, index: bytes | None = None) -> Path:
        """The files with this log, as after a crash."""
        self._copies += 1
        file = self.file.with_name(f"copy{self._copies}.db")
        file.write_bytes(self.file.read_bytes())
        Path(f"{file}-wal").write_bytes(log)
        if index is not None:
            Path(f"{file}-shm").write_bytes(index)
        return file


def rows(file: Path) -> int | None:
    """How many rows SQLite finds; None where it finds no table."""
    with closing(sqlite3.connect(file)) as connection:
        try:
            found: int = connection.execute("SELECT COUNT(*) FROM t").fetchone()[0]
        except sqlite3.DatabaseError:
            return None
        return found


@pytest.fixture(params=[512, 4096])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path, request.param)
    yield made
    made.connection.close()


def test_sums_are_those_of_the_documented_form() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (4, 130), dtype=np.uint32)
    state = (2**32 - 1, 7)
    for row, found in zip(words, sums(state, words), strict=True):
        state = plain_sum(state, row)
        assert found == state


def test_a_whole_log_is_whole(log: Log) -> None:
    file = log.copied(log.whole)
    assert broken(file) is None
    assert rows(file) == WRITES
    assert broken(file.with_name("nowhere")) is None


def in_big_endian(whole: bytes, size: int) -> bytes:
    """The same log as a machine of the other byte order writes it."""
    head = struct.pack(">I", 0x377F0683) + whole[4:24]
    state = plain_sum((0, 0), np.frombuffer(head, ">u4"))
    out = head + struct.pack(">2I", *state)
    for start in range(32, len(whole), 24 + size):
        frame = whole[start : start + 24 + size]
        state = plain_sum(state, np.frombuffer(frame[:8] + frame[24:], ">u4"))
        out += frame[:16] + struct.pack(">2I", *state) + frame[24:]
    return out


@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
def test_what_is_found_is_what_sqlite_drops(log: Log, big: bool) -> None:
    draw, whole = random.Random(0), in_big_endian(log.whole, log.size) if big else log.whole
    assert (broken(log.copied(whole)), rows(log.copied(whole))) == (None, WRITES)
    for place in (*range(0, 32, 3), *(draw.randrange(len(whole)) for _ in range(60))):
        bit = 1 << draw.randrange(8)
        damaged = log.copied(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        found = broken(damaged)
        assert found is not None, place
        assert found.lost
        assert rows(damaged) != WRITES


def test_it_says_how_much_is_lost(log: Log) -> None:
    whole, frame = bytearray(log.whole), 24 + log.size
    frames = (len(whole) - 32) // frame
    whole[32 + 3 * frame + 100] ^= 1
    finished = sum(
        int.from_bytes(whole[start + 4 : start + 8], "big") > 0
        for start in range(32 + 3 * frame, len(whole), frame)
    )
    found = broken(log.copied(bytes(whole)))
    assert found is not None
    assert found.what.endswith(
        f"-wal, breaks off at frame 4 of {frames}, before the end of {finished} finished writes"
    )


def test_a_log_that_ends_early_looks_like_a_crash(log: Log) -> None:
    whole, frame = log.whole, 24 + log.size
    frames = (len(whole) - 32) // frame
    for count in range(frames):
        file = log.copied(whole[: 32 + count * frame])
        assert broken(file) is None
        assert rows(file) != WRITES
    for more in (1, 24, 100, log.size + 23):
        found = broken(log.copied(whole[: 32 + 2 * frame + more]))
        assert found is not None
        assert (found.lost, found.what.endswith("ends in a write that was not finished")) == (False, True)
    for length in (0, 1, 31):
        assert broken(log.copied(whole[:length])) is None


def test_the_index_tells_a_log_that_was_cut_from_one_that_ends(log: Log) -> None:
    whole, frame = log.whole, 24 + log.size
    frames = (len(whole) - 32) // frame
    assert broken(log.copied(whole, log.index)) is None
    for count in range(1, frames):
        found = broken(log.copied(whole[: 32 + count * frame], log.index))
        assert found is not None
        assert found.lost
        assert found.what.endswith(f"breaks off at frame {count + 1}, where {frames} are finished")


def test_the_write_of_a_second_process_that_was_killed_over_the_first_is_no_loss(log: Log) -> None:
    before, index = log.whole, log.index  # the first was killed when its frames were there, and not told
    log.write(2 * log.size)
    torn = log.whole[: len(before) + 24] + bytes(log.size) + log.whole[len(before) + 24 + log.size :]
    alone, beside = broken(log.copied(torn)), log.copied(torn, index)
    found = broken(beside)
    assert alone is not None
    assert alone.lost
    assert found is not None
    assert (found.lost, found.what.endswith("ends in a write that was not finished")) == (False, True)
    assert rows(beside) == WRITES


def test_an_index_of_another_log_is_not_believed(log: Log) -> None:
    index = bytearray(log.index)
    index[33] ^= 1
    index[48 + 33] ^= 1  # its salts, in both copies
    assert broken(log.copied(log.whole[: 32 + 24 + log.size], bytes(index))) is None


def test_frames_of_an_older_log_are_no_loss(log: Log) -> None:
    long = len(log.whole)
    log.connection.execute("PRAGMA wal_checkpoint(RESTART)")
    log.write()
    assert len(log.whole) == long
    file = log.copied(log.whole)
    assert broken(file) is None
    assert rows(file) == WRITES + 1


def test_what_was_taken_back_is_no_loss(log: Log) -> None:
    log.connection.execute("PRAGMA cache_size = 2")  # a large write goes to the log before its end
    before = len(log.whole)
    log.connection.execute("BEGIN")
    for _ in range(40):
        log.write(2 * log.size)
    assert len(log.whole) > before + 10 * log.size
    file = log.copied(log.whole)
    assert broken(file) is None
    log.connection.execute("ROLLBACK")
    log.write()  # over the first of these frames
    file = log.copied(log.whole)
    assert broken(file) is None
    assert rows(file) == WRITES + 1


def test_a_writer_at_work_is_no_damage(log: Log) -> None:
    log.connection.execute("PRAGMA wal_autocheckpoint = 20")
    log.connection.execute("PRAGMA synchronous = OFF")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            log.write(3 * log.size)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            assert broken(log.file) is None
    finally:
        stop.set()
        writer.join()


FREE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as index:
    try:
        fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)  # who has the index open shares this byte
    except OSError:
        sys.exit("held")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="these are the locks of POSIX")
@pytest.mark.parametrize("name", ["same", "url", "link"])
def test_a_ledger_that_is_opened_again_keeps_its_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ledger.db"
    session = opened(SQLLedger(file))
    session.ask(STATEMENTS[0])
    (tmp_path / "link.db").symlink_to(file)
    SQLLedger({"same": str(file), "url": "sqlite:///ledger.db", "link": "link.db"}[name])
    other = subprocess.run([sys.executable, "-c", FREE, f"{file}-shm"], capture_output=True, text=True)
    assert other.stderr.strip() == "held"
