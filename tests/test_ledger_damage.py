"""What disk, file, server and clock may do to a ledger: it refuses or goes on, and verify names the place."""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from postgres import Server
from witness import STATEMENTS, Child, Witness, opened

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import Finding, verify

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:dataset:UserWarning"),  # ledgers alike in one database
]
Tell = Callable[[str, float], None]


class Copy:
    """A ledger's files as they are now, what they hold, and what was shown of it."""

    def __init__(self, ledger: SQLLedger, folder: Path, shown: dict[str, float]) -> None:
        self.head, self.rows = ledger.everything()
        self.shown, self._folder, self._number = shown, folder, 0
        paths = {end: Path(f"{ledger.database.name}{end}") for end in ("", "-wal")}
        self.files = {end: path.read_bytes() for end, path in paths.items() if path.exists()}

    def meets(self, damaged: dict[str, bytes]) -> list[Finding] | str | None:
        """
        What verify finds in damaged files, or why they cannot be read; None where nothing is found and
        everything is as it was.
        """
        self._number += 1
        path = self._folder / f"damaged{self._number}.db"
        for end, whole in damaged.items():
            Path(f"{path}{end}").write_bytes(whole)
        try:
            ledger = SQLLedger(path)
            try:
                found = verify(ledger, noted=self.head)
                if not found:
                    self._is_as_it_was(ledger)
            finally:
                ledger.close()
        except lp.LedgerError as error:
            return str(error)
        return found or None

    def _is_as_it_was(self, ledger: SQLLedger) -> None:
        assert ledger.everything() == (self.head, self.rows)
        session = opened(ledger)
        for statement, value in self.shown.items():
            answer = session.ask(statement)
            assert isinstance(answer, lp.Answer)
            assert (answer.value, answer.charge) == (value, 0)


def flipped(whole: bytes, bit: int) -> bytes:
    """The same with one bit changed."""
    place = bit // 8
    return whole[:place] + bytes([whole[place] ^ 1 << bit % 8]) + whole[place + 1 :]


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    """Of six statements on a ledger in a file."""
    path = tmp_path / "ledger.db"
    witness, ledger = Witness(lambda: SQLLedger(path)), SQLLedger(path)
    session = opened(ledger)
    for statement in STATEMENTS[:6]:
        witness.ask(session, statement)
    ledger.close()
    return witness


@pytest.fixture
def copy(witness: Witness, tmp_path: Path) -> Copy:
    """Of that ledger, in one file."""
    found = Copy(SQLLedger(tmp_path / "ledger.db"), tmp_path, witness.shown)
    assert not found.files.pop("-wal", b"")
    assert found.meets(found.files) is None
    return found


def test_a_bit_that_flips_anywhere_is_found_or_changes_nothing(copy: Copy) -> None:
    draw, whole = random.Random(0), copy.files[""]
    outcomes = [copy.meets({"": flipped(whole, draw.randrange(8 * len(whole)))}) for _ in range(150)]
    assert {type(outcome) for outcome in outcomes} == {list, str, type(None)}


def test_a_bit_that_flips_in_an_entry_is_found_at_the_entry(copy: Copy) -> None:
    draw, whole = random.Random(0), copy.files[""]
    for row in copy.rows:
        body = row.body.encode()
        assert whole.count(body) == 1
        for high in (False, True):  # the high bit makes it no text at all
            place = 8 * (whole.index(body) + draw.randrange(len(body))) + (7 if high else draw.randrange(7))
            found = copy.meets({"": flipped(whole, place)})
            assert isinstance(found, list), found
            at = [str(each) for each in found if each.position == row.position]
            changed = (
                f"entry {row.position}: it does not follow from the entry before: one of them was changed"
            )
            assert changed in at, found
            assert {each.position for each in found if "follow" in each.what} == {row.position}


def test_a_bit_that_flips_in_the_settings_is_found(copy: Copy) -> None:
    whole = copy.files[""]
    start = 8 * whole.index(b'{"accounting"')
    for bit in (8 * 20 + 1, 8 * 30 + 7):
        found = copy.meets({"": flipped(whole, start + bit)})
        assert isinstance(found, str)
        assert "the settings of main were changed after it was begun" in found


def test_a_bit_that_flips_in_the_tables_text_is_one_line(copy: Copy) -> None:
    whole = copy.files[""]
    start = whole.index(b"CREATE TABLE lapras_entry")
    for place in range(start, start + 80, 4):
        found = copy.meets({"": flipped(whole, 8 * place + 7)})
        assert found is None or isinstance(found, list) or "\n" not in found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("lapras_entry SET body = x'00' WHERE position = 3", "lapras_entry.body is b'\\x00' in a row"),
        ("lapras_entry SET position = 'x' WHERE position = 3", "lapras_entry.position is 'x' in a row"),
        ("lapras_head SET entries = 'x'", "lapras_head.entries is 'x' in a row"),
        ("lapras_dataset SET format = 'x'", "lapras_dataset.format is 'x' in a row"),
    ],
)
def test_a_value_of_another_type_is_named(witness: Witness, tmp_path: Path, change: str, says: str) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as connection:
        for table in ("entry", "dataset"):
            connection.execute(f"DROP TRIGGER lapras_{table}_update")
        connection.execute(f"UPDATE {change}")
    (fault,) = witness.faults()
    assert says in fault


def test_a_file_that_was_cut_is_found(copy: Copy) -> None:
    draw, whole = random.Random(0), copy.files[""]
    for length in [*(draw.randrange(1, len(whole)) for _ in range(25)), len(whole) - 1, len(whole) - 4096]:
        assert copy.meets({"": whole[:length]}) is not None, length


@pytest.fixture
def logged(witness: Witness, tmp_path: Path) -> Copy:
    """Of that ledger with six statements more, in a file and its log of writes."""
    ledger = SQLLedger(tmp_path / "ledger.db")
    session = opened(ledger)
    for statement in STATEMENTS[6:12]:
        witness.ask(session, statement)
    return Copy(ledger, tmp_path, witness.shown)


def test_a_bit_that_flips_in_the_log_of_writes_is_found_when_it_is_opened(logged: Copy) -> None:
    draw, log = random.Random(0), logged.files["-wal"]
    for _ in range(60):
        found = logged.meets({**logged.files, "-wal": flipped(log, draw.randrange(8 * len(log)))})
        assert isinstance(found, str)
        assert "its log of writes, damaged" in found
        assert found.endswith("answers that were shown may be lost; it stays closed, restore a backup")


@pytest.mark.filterwarnings("ignore:.*ends in a write that was not finished:UserWarning")
def test_a_log_of_writes_that_was_cut_is_found_by_a_head_that_was_noted(logged: Copy) -> None:
    draw, log = random.Random(0), logged.files["-wal"]
    for _ in range(20):
        found = logged.meets({**logged.files, "-wal": log[: draw.randrange(len(log))]})
        assert isinstance(found, list)
        assert [str(each).split(" entries")[0] for each in found] == ["the noted head is at 24"]


def test_a_log_of_writes_that_was_cut_is_told(logged: Copy, tmp_path: Path) -> None:
    for end, whole in logged.files.items():
        (tmp_path / f"cut.db{end}").write_bytes(whole[:-100] if end else whole)
    with pytest.warns(
        UserWarning, match=r"cut\.db-wal, ends in a write that was not finished: a crash leaves"
    ):
        assert SQLLedger(tmp_path / "cut.db").head.entries == 22


def test_a_database_that_is_full_refuses_and_goes_on_with_room(witness: Witness, tmp_path: Path) -> None:
    ledger = SQLLedger(tmp_path / "ledger.db")
    session = opened(ledger)
    connection = ledger.database.engine.raw_connection()  # the only one, given back to the pool
    driver = connection.driver_connection
    assert driver is not None
    connection.close()
    stream, asked = iter(STATEMENTS[6:]), []

    def ask_on() -> None:
        for statement in stream:
            asked.append(statement)
            witness.ask(session, statement)

    for room in (0, 1, 0):
        (pages,) = driver.execute("PRAGMA page_count").fetchone()
        driver.execute(f"PRAGMA max_page_count = {pages + room}")
        with pytest.raises(lp.LedgerError, match="the disk is full: make room"):
            ask_on()
        assert witness.faults() == []
        driver.execute("PRAGMA max_page_count = 100000")
        assert witness.ask(session, asked[-1]).source == "measured"
    assert witness.faults(everything=True) == []


@pytest.mark.filterwarnings("ignore:.*ends in a write that was not finished:UserWarning")
def test_a_file_that_cannot_grow_refuses_and_goes_on_with_room(witness: Witness, tmp_path: Path) -> None:
    path, draw, most = tmp_path / "ledger.db", random.Random(0), 0
    session = opened(path)
    witness.ask(session, STATEMENTS[0])

    def work(tell: Tell) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        refused = 0
        for statement in STATEMENTS:
            try:
                tell(statement, session.ask(statement).value)  # type: ignore[union-attr]
            except lp.LedgerError as error:
                tell(str(error), 0.0)
                refused += 1
            if refused == 3:
                return

    reasons = set()
    for _ in range(8):
        most = os.path.getsize(f"{path}-wal") + draw.randrange(9000)
        _, told = Child(work).end()
        shown = [(statement, value) for statement, value in told if statement in STATEMENTS]
        for statement, value in shown:
            witness.saw(statement, value)
        reasons |= {text.split(".db: ")[1] for text, _ in told if text not in STATEMENTS}
        assert len(told) == len(shown) + 3
        assert witness.faults() == []
    assert reasons <= {
        "the disk refuses to read or write: check it, and the room on it",
        "the disk is full: make room",
    }
    assert witness.faults(everything=True) == []


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    made = Path(tempfile.mkdtemp(prefix="lapras-"))
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.mark.parametrize(("file", "around"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_what_may_not_be_written_is_not_written(folder: Path, file: int, around: int) -> None:
    path = folder / "ledger.db"
    witness, ledger = Witness(lambda: SQLLedger(path)), SQLLedger(path)
    session = opened(ledger)
    witness.ask(session, STATEMENTS[0])
    head = ledger.head
    ledger.close()
    path.chmod(file)
    folder.chmod(around)

    def work(tell: Tell) -> None:
        if os.geteuid() == 0:  # whom no mode stops
            os.setuid(65534)
        for statement in STATEMENTS[:2]:
            try:
                session.ask(statement)
            except lp.LedgerError as error:
                tell(str(error), 0.0)

    _, told = Child(work).end()
    assert len(told) == 2
    for text, _ in told:
        assert "no permission to write it" in text or "it cannot be opened: check that the folder" in text
    folder.chmod(0o755)
    path.chmod(0o644)
    assert SQLLedger(path).head == head
    assert witness.faults() == []


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    times = [datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=days) for days in range(30)]
    clock = iter(times)
    witness = Witness(lambda: SQLLedger(path))
    for start in range(0, 12, 4):  # each session goes on where the one before it has stopped
        session = opened(path, clock=lambda: next(clock))
        for statement in STATEMENTS[start : start + 4]:
            assert witness.ask(session, statement).source == "measured"
        assert witness.ask(session, STATEMENTS[0]).source == "replay"
    stamps = [kept.stamp.at for kept in SQLLedger(path).since(0)]
    assert stamps == sorted(stamps, reverse=True)
    assert len(set(stamps)) == 15
    assert witness.faults(everything=True) == []


def test_a_server_that_dies_in_the_middle_loses_nothing(postgres: Server) -> None:
    def make() -> SQLLedger:
        return SQLLedger(postgres.url, dataset="dies")

    session, witness = opened(make()), Witness(make)
    witness.ask(session, STATEMENTS[0])

    def work(tell: Tell) -> None:
        """Ask until the server was lost, and came back, twice."""
        outages, lost, end = 0, False, time.monotonic() + 60
        for statement in itertools.cycle(STATEMENTS):
            if outages == 2 or time.monotonic() > end:
                return
            try:
                tell(statement, session.ask(statement).value)  # type: ignore[union-attr]
                outages, lost = outages + lost, False
            except lp.BudgetExhausted:
                continue
            except lp.LedgerError as error:
                if not lost:
                    tell(str(error), 0.0)
                lost = True
                time.sleep(0.02)

    child = Child(work, lambda: session.spent)
    for pause in (0.03, 0.3):
        time.sleep(pause)
        postgres.stop("immediate")
        postgres.start()
    killed, told = child.end()
    shown = [(statement, value) for statement, value in told if statement in STATEMENTS]
    assert (killed, len(told) - len(shown)) == (False, 2)
    assert told[-1] == shown[-1]
    with pytest.raises(lp.LedgerError, match="the connection was lost: ask again"):
        session.ask(STATEMENTS[0])
    assert witness.ask(session, STATEMENTS[0]).source == "replay"
    for statement, value in shown:
        witness.saw(statement, value)
    assert witness.faults(everything=True) == []


def test_settings_on_a_shelf_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    opened(SQLLedger(path)).ask(STATEMENTS[0])
    with closing(sqlite3.connect(path)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE lapras_dataset SET settings = substr(settings, 2)")
    with pytest.raises(lp.LedgerError, match="the settings of main were changed"):
        SQLShelf(path).settings()
