"""What becomes of a SQLite ledger's file under a session: nothing is shown that nobody would find again."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from growing import COUNT
from growing import opened as windows_opened
from witness import STATEMENTS, Child, Witness, opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import verify
from laprasdp.record.entries import Stamp

MOVED, REPLACED, CUT = "was moved or removed under", "was replaced under", "was cut short under"


def beside(path: Path, end: str) -> Path:
    return Path(f"{path}{end}")


def copied(path: Path, to: Path) -> Path:
    """A sound copy, log included."""
    to.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
    return to


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def removed(path: Path) -> None:
    path.unlink()


def replaced_by_a_copy(path: Path) -> None:
    os.replace(copied(path, path.with_name("copy.db")), path)


def replaced_by_a_new_one(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        beside(path, end).unlink()
    opened(path).ask(STATEMENTS[0])


def folder_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("renamed"))


def folder_replaced(path: Path) -> None:
    folder_renamed(path)
    path.parent.mkdir()
    opened(path).ask(STATEMENTS[0])


def log_removed(path: Path) -> None:
    beside(path, "-wal").unlink()


def log_replaced(path: Path) -> None:
    log = beside(path, "-wal")
    log.rename(log.with_name("old"))
    shutil.copy(log.with_name("old"), log)


def index_removed(path: Path) -> None:
    beside(path, "-shm").unlink()


def index_replaced_by_another_session(path: Path) -> None:
    index_removed(path)
    code = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT * FROM lapras_head').fetchall()"
    subprocess.run([sys.executable, "-c", code], check=True)
    if not beside(path, "-shm").exists():  # it was the last to go
        beside(path, "-shm").touch()


def truncated(path: Path) -> None:
    os.truncate(path, 4096)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def log_cut(path: Path) -> None:
    os.truncate(beside(path, "-wal"), os.path.getsize(beside(path, "-wal")) - 100)


def log_emptied(path: Path) -> None:
    os.truncate(beside(path, "-wal"), 0)


def renamed_and_linked_to(path: Path) -> None:
    """The same file, but whoever opens it now looks for the log beside the other name."""
    moved(path)
    path.symlink_to(path.with_name("elsewhere.db"))


def hard_linked(path: Path) -> None:
    os.link(path, path.with_name("second.db"))


MISHAPS: list[tuple[Callable[[Path], None], str]] = [
    (moved, MOVED), (removed, MOVED), (replaced_by_a_copy, REPLACED), (replaced_by_a_new_one, REPLACED),
    (folder_renamed, MOVED), (folder_replaced, REPLACED), (log_removed, "-wal, " + MOVED),
    (log_replaced, "-wal, " + REPLACED), (index_removed, "-shm, " + MOVED),
    (index_replaced_by_another_session, "-shm, " + REPLACED), (truncated, CUT), (emptied, CUT),
    (log_cut, "-wal, " + CUT), (log_emptied, "-wal, " + CUT), (renamed_and_linked_to, REPLACED),
    (hard_linked, "has 2 names"),
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "ledger.db"


def refuses(session: lp.Session, path: Path, says: str) -> None:
    """Every question is refused in one line that says what to do, and nothing else is shown either."""
    for statement in (STATEMENTS[5], STATEMENTS[0]):  # a new one, and one that was answered before
        with pytest.raises(lp.LedgerError, match=says) as caught:
            session.ask(statement)
        assert "\n" not in str(caught.value)
        assert str(caught.value).startswith(f"the ledger {path}: ")
    with pytest.raises(lp.LedgerError, match=says):
        assert session.spent is None


@pytest.mark.parametrize(("mishap", "says"), MISHAPS, ids=lambda each: getattr(each, "__name__", ""))
def test_nothing_is_shown_after_a_mishap(path: Path, mishap: Callable[[Path], None], says: str) -> None:
    session = opened(path)
    session.ask(STATEMENTS[0])
    mishap(path)
    refuses(session, path, says)


class Halfway(SQLLedger):
    """Something happens to the file in the middle of a transaction."""

    def happens(self) -> None: ...

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            yield transaction
            self.happens()


@pytest.mark.parametrize(
    ("mishap", "says"),
    [
        pair
        for pair in MISHAPS
        if pair[0] not in (truncated, emptied, log_cut, log_emptied, replaced_by_a_new_one, folder_replaced)
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_nothing_is_shown_after_a_mishap_in_the_middle(
    path: Path, mishap: Callable[[Path], None], says: str
) -> None:
    ledger = Halfway(path)
    session = opened(ledger)
    session.ask(STATEMENTS[0])
    ledger.happens = lambda: mishap(path)  # type: ignore[method-assign]
    with pytest.raises(lp.LedgerError, match=says):
        session.ask(STATEMENTS[5])


@pytest.mark.parametrize(
    ("mishap", "says"),
    [pair for pair in MISHAPS if pair[0] not in (replaced_by_a_new_one, folder_replaced)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_windows_show_nothing_either(path: Path, mishap: Callable[[Path], None], says: str) -> None:
    session = windows_opened(ledger=SQLShelf(path))
    session.ask(COUNT)
    mishap(path)
    for statement in (COUNT, f"{COUNT} WHERE n = 1"):
        with pytest.raises(lp.LedgerError, match=says):
            session.ask(statement)


@pytest.mark.parametrize("mishap", [moved, folder_renamed])
def test_a_session_goes_on_when_the_file_is_back(path: Path, mishap: Callable[[Path], None]) -> None:
    session, witness = opened(path), Witness(lambda: SQLLedger(path))
    first = witness.ask(session, STATEMENTS[0])
    before = path.parent, path.with_name("elsewhere.db")
    mishap(path)
    refuses(session, path, MOVED)
    if mishap is moved:
        before[1].rename(path)
    else:
        path.parent.with_name("renamed").rename(path.parent)
    assert witness.ask(session, STATEMENTS[0]).value == first.value
    witness.ask(session, STATEMENTS[5])
    assert witness.faults(everything=True) == []


def older(path: Path) -> tuple[lp.Session, Path]:
    """A session of many statements, and a copy of its ledger after the first of them."""
    session = opened(path, horizon=40)
    session.ask(STATEMENTS[0])
    backup = copied(path, path.with_name("backup.db"))
    for statement in STATEMENTS[1:20]:
        session.ask(statement)
    return session, backup


def test_a_backup_that_is_copied_over_a_running_session_is_noticed(path: Path) -> None:
    session, backup = older(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
    session.ask(STATEMENTS[20])
    shutil.copyfile(backup, path)
    os.truncate(path, 10**6)  # no shorter than it was
    refuses_any(session)


def refuses_any(session: lp.Session) -> None:
    for statement in STATEMENTS[21:24]:
        with pytest.raises(lp.LedgerError, match=r"changed or lost|damaged|restore|cut short") as caught:
            session.ask(statement)
        assert "\n" not in str(caught.value)


def test_a_ledger_that_was_copied_over_another_is_noticed(path: Path) -> None:
    session, backup = older(path)
    other = opened(backup, horizon=40)
    for statement in STATEMENTS[20:]:
        with suppress(lp.BudgetExhausted):
            other.ask(statement)
    other.close()
    session.close()  # its ledger object is used again: nothing of the file is open
    shutil.copyfile(backup, path)
    with pytest.raises(lp.LedgerError, match="another copy is in its place"):
        session.ledger.since(0)


def test_a_backup_with_its_log_that_is_copied_over_both_is_noticed(path: Path) -> None:
    session = opened(path, horizon=40)
    session.ask(STATEMENTS[0])
    saved = {end: beside(path, end).read_bytes() for end in ("", "-wal")}
    for statement in STATEMENTS[1:8]:
        session.ask(statement)
    for end, content in saved.items():
        beside(path, end).write_bytes(content)
    refuses_any(session)


def test_what_another_session_writes_is_no_mishap(path: Path) -> None:
    witness, sessions = Witness(lambda: SQLLedger(path)), [opened(path) for _ in range(2)]
    code = (
        f"import sqlite3; sqlite3.connect({str(path)!r}).execute('PRAGMA wal_checkpoint(RESTART)').fetchall()"
    )
    for place, statement in enumerate(STATEMENTS[:12]):
        witness.ask(sessions[place % 2], statement)
        if place % 3 == 0:
            subprocess.run([sys.executable, "-c", code], check=True)
    assert witness.faults(everything=True) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_whose_parent_takes_the_log_away_shows_nothing(path: Path) -> None:
    session = opened(path)
    session.ask(STATEMENTS[0])

    def work(tell: Callable[[str, float], None]) -> None:
        with pytest.raises(lp.LedgerError, match=MOVED):
            session.ask(STATEMENTS[5])
        tell("refused", 0.0)

    def first() -> None:
        session.ask(STATEMENTS[1])
        for end in ("-wal", "-shm"):  # what SQLite does when the last of the parent's connections ends
            beside(path, end).unlink()

    assert Child(work, first).end()[1] == [("refused", 0.0)]


def test_a_symbolic_link_names_the_same_ledger(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path.name)
    session, through = opened(path), opened(link)
    first = session.ask(STATEMENTS[0])
    assert through.ask(STATEMENTS[0]).source == "replay"
    assert through.ask(STATEMENTS[0]).value == first.value
    other = path.with_name("other.db")
    opened(other).ask(STATEMENTS[0])
    link.unlink()
    link.symlink_to(other.name)
    refuses(through, link, REPLACED)
    assert session.ask(STATEMENTS[1]).source == "measured"
    assert verify(SQLLedger(path)) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_file_that_is_made_read_only_under_a_session_loses_nothing(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lapras-"))  # that another user can reach
    folder.chmod(0o777)
    path = folder / "ledger.db"
    opened(tmp_path / "other.db").ask(STATEMENTS[0])  # a child of that user may not import

    def work(tell: Callable[[str, float], None]) -> None:
        if os.geteuid() == 0:  # whom no mode stops
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        session = opened(path)
        for place, statement in enumerate(STATEMENTS[:8]):
            tell(statement, session.ask(statement).value)  # type: ignore[union-attr]
            if place == 3:
                for file in folder.iterdir():
                    file.chmod(0o444)

    try:
        _, shown = Child(work).end()
        witness = Witness(lambda: SQLLedger(path))
        for file in folder.iterdir():
            file.chmod(0o666)
        for statement, value in shown:
            witness.saw(statement, value)
        assert len(shown) == 8  # what is open stays writable, and others read it
        assert witness.faults() == []
    finally:
        shutil.rmtree(folder)
