"""Ledgers in databases: what they refuse to open, what verification finds, and what other processes do."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from draw import MemoryTable
from postgres import SECRET, Server

import laprasdp as lp
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.ledger import Reply, Stamp
from laprasdp.ledger.schema import METADATA, VERSION_TABLE
from laprasdp.ledger.sql import Head, SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.opening import open_session
from laprasdp.session import now

DOMAIN = lp.Domain(age=lp.Integers(0, 9))
SHARED = pytest.mark.filterwarnings("ignore:dataset:UserWarning")  # ledgers alike in one database
STATEMENTS = [f"SELECT COUNT(*) FROM t WHERE age < {high}" for high in (3, 5, 5, 8, 2)]


def opened(ledger: Any, **more: Any) -> lp.Session:
    given: dict[str, Any] = {"budget": lp.Budget(1, 1e-6), "horizon": 4, "policy": "independent"}
    return open_session(MemoryTable(DOMAIN, np.arange(10)), DOMAIN, ledger=ledger, **given | more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of five statements, two of them alike and the last refused."""
    place = tmp_path / "ledger.db"
    session = opened(place, horizon=3)
    for statement in STATEMENTS[:4]:
        session.ask(statement, analyst="ada")
    with pytest.raises(lp.BudgetExhausted):
        session.ask(STATEMENTS[4])
    assert verify(SQLLedger(place)) == []
    return place


@contextmanager
def past_the_guards(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as somebody sees it who may change everything, and covers it up."""
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, again in guards:
            connection.execute(again)
        connection.commit()


def meddle(path: Path, *statements: str) -> None:
    with past_the_guards(path) as connection:
        for statement in statements:
            connection.execute(statement)


def found(path: Path, noted: Head | None = None) -> list[str]:
    return [str(finding) for finding in verify(SQLLedger(path), noted=noted)]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE lapras_entry SET body = replace(body, '\"ada\"', '\"eve\"') WHERE position = 3",
            ["entry 3: it does not follow from the entry before", "entry 3: the columns beside it"],
        ),
        (
            "UPDATE lapras_entry SET digest = lower(hex(zeroblob(32))) WHERE position = 2",
            ["entry 2: it does not follow", "entry 3: it does not follow"],
        ),
        (
            "UPDATE lapras_entry SET position = position - 4 WHERE position IN (1, 3)",
            ["entry 1: it does not follow", "entry 2: it does not follow"],
        ),
        (
            "DELETE FROM lapras_entry WHERE position = 2",
            ["entry 3: the entries before it, from 2 on, are lost", "entry 3: it does not follow"],
        ),
        ("DELETE FROM lapras_entry WHERE position > 5", ["the head is at 8 entries, but there are 6"]),
        ("DELETE FROM lapras_entry", ["the head is at 8 entries, but there are 0"]),
        (
            "UPDATE lapras_head SET entries = 7",
            ["the head has another digest than the 7 entries", "there are 8 entries, but the head is at 7"],
        ),
        ("UPDATE lapras_entry SET price = '1' WHERE position = 0", ["entry 0: the columns beside it"]),
        (
            "UPDATE lapras_entry SET body = 'x' WHERE position = 1",
            ["entry 1: it does not follow", "entry 1: the text is no entry", "entry 2: entry 0 was made for"],
        ),
    ],
)
def test_verification_says_which_entry_and_what(path: Path, statement: str, says: list[str]) -> None:
    turn = "UPDATE lapras_entry SET position = -position WHERE position < 0"
    meddle(path, statement, turn)
    findings = found(path)
    for each in says:
        assert any(finding.startswith(each) for finding in findings), findings
    if "price" not in statement:  # a column beside the text decides nothing
        with pytest.raises(lp.LedgerError, match=r"changed or lost.*: verify it"):
            opened(path, horizon=3)


def test_an_older_copy_is_noticed_by_a_head_that_was_noted(path: Path) -> None:
    noted = SQLLedger(path).head
    rows = SQLLedger(path).snapshot()[1]
    meddle(
        path,
        "DELETE FROM lapras_entry WHERE position > 4",
        f"UPDATE lapras_head SET entries = 5, digest = '{rows[4].digest}'",
    )
    assert found(path) == []
    assert found(path, noted) == ["the noted head is at 8 entries, but there are 5"]
    assert found(path, Head(3, rows[2].digest)) == []
    assert found(path, Head(3, rows[1].digest)) == ["the noted head has another digest than the 3 entries"]


Edit = Callable[[dict[str, Any]], None]


def forge(path: Path, position: int, edit: Edit) -> None:
    """Change an entry and chain everything again, as somebody would who knows the format."""
    ledger = SQLLedger(path)
    digest = first_digest(ledger.dataset.text)
    with past_the_guards(path) as connection:
        for row in ledger.snapshot()[1]:
            form = json.loads(row.body)
            if row.position == position:
                edit(form)
            body = json.dumps(form, sort_keys=True, separators=(",", ":"))
            digest = next_digest(digest, body)
            connection.execute(
                "UPDATE lapras_entry SET body = ?, digest = ? WHERE position = ?",
                (body, digest, row.position),
            )
        connection.execute("UPDATE lapras_head SET digest = ?", (digest,))


@pytest.mark.parametrize(
    ("position", "edit", "says"),
    [
        (
            0,
            lambda form: form["charge"]["amounts"].update(weights=[1, 0]),
            "its charge is 1 units, but its meas",
        ),
        (0, lambda form: form["charge"].update(draws=0), "its charge is"),
        (0, lambda form: form["measurement"].update(multiple=2**40), "but its measurement costs"),
        (0, lambda form: form["noisy"].append(1), "it has 2 noisy values for 1 rows"),
        (1, lambda form: form.update(answers=[None]), "it has no answer to"),
        (1, lambda form: form.update(answers=[]), "it has 0 answers to 1 queries"),
        (4, lambda form: form["answers"][0].update(value=0.5), "it shows another answer"),
        (4, lambda form: form.update(measured=True), "it says that a release was made for it"),
        (5, lambda form: form.update(opening=True), "it says that a release was made for it"),
        (1, lambda form: form.update(measured=False), "entry 0 was made for a statement that has no reply"),
        (
            4,
            lambda form: form.update(
                kind="raise", old={"epsilon": 2, "delta": 1e-6}, new={"epsilon": 3, "delta": 1e-6}
            ),
            "it raises ε = 2",
        ),
        (
            4,
            lambda form: form.update(
                kind="raise", old={"epsilon": 1, "delta": 1e-6}, new={"epsilon": 0.5, "delta": 1e-6}
            ),
            "a budget is only ever raised",
        ),
    ],
)
def test_verification_does_not_trust_the_chain(path: Path, position: int, edit: Edit, says: str) -> None:
    forge(path, position, edit)
    findings = found(path)
    assert any(says in finding for finding in findings), findings
    assert not any("follow" in finding for finding in findings)


def test_verification_adds_up_the_budget(path: Path) -> None:
    ledger = SQLLedger(path)
    kept = ledger.since(0)
    with ledger.transaction(kept[0].stamp) as transaction:
        transaction.append(kept[0].entry)
        reply = kept[1].entry
        assert isinstance(reply, Reply)
        transaction.append(reply)
    assert found(path) == ["entry 8: the budget has no room for this: μ² would be passed"]
    with pytest.raises(lp.LedgerError, match="entry 8 of the ledger: the budget has no room"):
        opened(path, horizon=3)


def test_bits_that_flip_in_the_file_are_noticed(path: Path) -> None:
    SQLLedger(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    place = whole.index(b'"variance":') + 12
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert any("does not follow from the entry before" in finding for finding in found(path))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(lp.LedgerError, match="damaged"):
        opened(path, horizon=3)


def test_guards_that_are_gone_are_noticed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER lapras_entry_delete")
    assert found(path) == ["nothing guards lapras_entry against changes any more"]


def test_entries_are_only_ever_added(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for act in (
            "UPDATE lapras_entry SET body = ''",
            "DELETE FROM lapras_entry",
            "DELETE FROM lapras_dataset",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(act)


@SHARED
def test_entries_are_only_ever_added_in_postgresql(postgres: Server) -> None:
    ledger = SQLLedger(postgres.url, dataset="kept")
    opened(ledger).ask(STATEMENTS[0])
    for act in (
        "UPDATE lapras_entry SET body = ''",
        "DELETE FROM lapras_entry",
        "TRUNCATE lapras_entry CASCADE",
    ):
        with (
            pytest.raises(lp.LedgerError, match="what a ledger keeps is never changed"),
            ledger.database.transaction(write=True) as connection,
        ):
            connection.exec_driver_sql(act)
    assert verify(ledger) == []


def test_the_migrations_make_the_tables_that_the_code_reads(path: Path) -> None:
    with SQLLedger(path).database.transaction(write=False) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []


def test_a_line_is_what_the_chain_runs_over(path: Path) -> None:
    first, *entries = map(json.loads, SQLLedger(path).lines())
    digest = first_digest(first["settings"])
    assert (first["format"], json.loads(first["settings"])["horizon"], len(entries)) == (1, 3, 8)
    for line in entries:
        digest = next_digest(digest, line["entry"])
        assert digest == line["digest"]


def newer(path: Path) -> str:
    opened(path)
    meddle(path, f"UPDATE {VERSION_TABLE} SET version_num = '99'")
    return str(path)


def other(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (name)")
    return str(path)


def text(path: Path) -> str:
    path.write_text("not a database, but quite a long text " * 40)
    return str(path)


def read_only(path: Path) -> str:
    opened(path)
    return f"sqlite:///file:{path}?mode=ro&uri=true"


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (newer, "it is of schema 99, which this version does not know: update"),
        (other, "it is another SQLite database, not a ledger"),
        (text, "it is no SQLite database"),
        (read_only, "there is no permission to write it"),
        (lambda path: path / "missing" / "x.db", "it cannot be opened: check that the folder is there"),
        (lambda path: "mysql://me:hidden@host/name", "a SQLite file or a PostgreSQL address, not mysql"),
        (lambda path: "postgresql://me:hidden@127.0.0.1:1/x", "nobody answers there"),
        (lambda path: "://me:hidden@host/x", "cannot be read: write postgresql://"),
        (lambda path: "postgresql://me:hidden@nowhere.invalid/x", "the host is unknown"),
        (lambda path: "sqlite://", "a ledger in SQLite is a file"),
    ],
)
def test_what_cannot_be_opened(tmp_path: Path, prepare: Callable[[Path], Any], says: str) -> None:
    where = prepare(tmp_path / "ledger.db")
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    with pytest.raises(lp.LedgerError, match=says) as caught:
        opened(where).ask(STATEMENTS[0])
    assert "\n" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    if prepare in (other, text):
        assert before == {file: file.read_bytes() for file in tmp_path.iterdir()}


def test_a_wrong_password_is_not_shown(postgres: Server) -> None:
    for wrong in (postgres.url.replace(SECRET, "guessed"), postgres.url.replace("/postgres?", "/nowhere?")):
        with pytest.raises(lp.LedgerError, match=r"password is wrong|no such database") as caught:
            SQLLedger(wrong)
        assert "guessed" not in str(caught.value)
        assert SECRET not in str(caught.value)


@SHARED
def test_a_server_that_restarts_fails_one_statement_at_most(postgres: Server) -> None:
    session = opened(SQLLedger(postgres.url, dataset="restart"))
    first = session.ask(STATEMENTS[0])
    spent = session.spent
    postgres.stop()
    try:
        with pytest.raises(lp.LedgerError, match=r"connection was lost|nobody answers"):
            session.ask(STATEMENTS[1])
    finally:
        postgres.start()
    answer = session.ask(STATEMENTS[1])
    assert session.spent == pytest.approx(spent + answer.charge)
    assert session.ask(STATEMENTS[0]).value == first.value
    assert verify(session._ledger) == []


@SHARED
def test_whoever_waits_too_long_is_told(tmp_path: Path, postgres: Server) -> None:
    for where in (tmp_path / "ledger.db", postgres.url):
        first, second = (SQLLedger(where, dataset="waits", wait=0.2) for _ in range(2))
        one, two = opened(first), opened(second)
        with (
            first.transaction(Stamp(now())),
            pytest.raises(lp.LedgerError, match=r"been writing for more than 0\.2 s"),
        ):
            two.ask(STATEMENTS[0])
        assert two.ask(STATEMENTS[0]).value == one.ask(STATEMENTS[0]).value


@SHARED
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_goes_on_with_connections_of_its_own(tmp_path: Path, postgres: Server) -> None:
    for where in (tmp_path / "ledger.db", postgres.url):
        session = opened(SQLLedger(where, dataset="fork"))
        session.ask(STATEMENTS[0])
        child = os.fork()
        if not child:
            try:
                session.ask(STATEMENTS[1])
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert session.ask(STATEMENTS[1]).source == "replay"  # the child has paid for it
        assert verify(session._ledger) == []


def test_a_ledger_that_lost_what_a_session_has_seen_stops_it(path: Path) -> None:
    session = opened(path, horizon=3)
    rows = SQLLedger(path).snapshot()[1]
    meddle(
        path,
        "DELETE FROM lapras_entry WHERE position > 4",
        f"UPDATE lapras_head SET entries = 5, digest = '{rows[4].digest}'",
    )
    with pytest.raises(lp.LedgerError, match="it has 5 entries, but had 8"):
        session.ask(STATEMENTS[4])


def test_two_ledgers_of_one_dataset_are_warned_of(path: Path) -> None:
    with pytest.warns(UserWarning, match="dataset main in .* has the same settings as second: two ledgers"):
        opened(SQLLedger(path, dataset="second"), horizon=3)
    with pytest.raises(lp.LedgerError, match="it has no dataset third; there are main, second"):
        verify(SQLLedger(path, dataset="third"))


def test_settings_are_part_of_the_chain(path: Path) -> None:
    meddle(path, "UPDATE lapras_dataset SET settings = replace(settings, '\"horizon\":3', '\"horizon\":9')")
    with pytest.raises(lp.LedgerError, match="the settings of main were changed after it was begun"):
        opened(path, horizon=9)


def test_a_rows_price_is_in_units(path: Path) -> None:
    rows = SQLLedger(path).snapshot()[1]
    assert [row.kind for row in rows] == ["release", "reply"] * 2 + ["reply", "release", "reply", "refusal"]
    releases = [row for row in rows if row.kind == "release"]
    kept = [kept.entry for kept in SQLLedger(path).since(0)]
    assert [int(row.price or 0) for row in releases] == [
        int(entry.charge.amounts.weights.max()) for entry in kept if hasattr(entry, "charge")
    ]
    assert {row.price for row in rows if row.kind != "release"} == {None}
    assert {row.analyst for row in rows[:-1]} == {"ada"}
    assert replace(rows[0], price="1") != rows[0]


def test_nothing_of_a_database_is_imported_without_one() -> None:
    code = (
        "import sys; from laprasdp.opening import open_session; import laprasdp.cli.app; "
        "print([name for name in ('sqlalchemy', 'alembic', 'psycopg') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_again_does_not_import_what_makes_tables(path: Path) -> None:
    code = (
        "import sys; from laprasdp.ledger.sql import SQLLedger; "
        f"print(SQLLedger({str(path)!r}).head.entries, 'alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8", "False"]
