"""Ledgers in databases: what they keep, what they refuse to open, and what other processes do."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres import SECRET, Server
from small_ledger import SHARED, STATEMENTS, five_statements, meddle, opened
from sqlalchemy.dialects import postgresql

import laprasdp as lp
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.rows import WITHIN
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.tables import METADATA, VERSION_TABLE
from laprasdp.ledger.verify import verify
from laprasdp.record.entries import Stamp
from laprasdp.stream.session import now

path = pytest.fixture(five_statements)


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
    assert verify(session.ledger) == []


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
        assert verify(session.ledger) == []


def test_two_ledgers_of_one_dataset_are_warned_of(path: Path) -> None:
    with pytest.warns(UserWarning, match="dataset main in .* has the same settings as second: two ledgers"):
        opened(SQLLedger(path, dataset="second"), horizon=3)
    with pytest.raises(lp.LedgerError, match="it has no dataset third; there are main, second"):
        verify(SQLLedger(path, dataset="third"))


def test_a_rows_price_is_in_units(path: Path) -> None:
    rows = SQLLedger(path).everything()[1]
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
        "import sys; from laprasdp.stream.opening import open_session; import laprasdp.cli.app; "
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


def test_few_entries_are_expected_to_be_new(postgres: Server) -> None:
    """By PostgreSQL, of a statement that it has planned for all values: so it takes the index."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE alone")  # of one dataset, which is all that is known of the table
    url = postgres.url.replace("/postgres?", "/alone?")
    opened(SQLLedger(url)).ask(STATEMENTS[0])
    text = str(WITHIN.compile(dialect=postgresql.dialect(paramstyle="pyformat")))
    text = text.replace("%(of)s", "$1").replace("%(from_position)s", "$2")
    assert "$1" in text
    assert "$2" in text
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO lapras_entry SELECT dataset, 1000 + n, kind, analyst, price, repeat('x', 500), "
            "digest FROM lapras_entry, generate_series(1, 20000) AS s(n) WHERE position = 1"
        )
        connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE found(int, bigint) AS {text}".encode())
        connection.execute("ANALYZE lapras_entry")
        plan = str(connection.execute("EXPLAIN EXECUTE found(1, 20990)").fetchall())
        expected = int(re.findall(r"rows=(\d+)", plan)[0])
        assert expected < 500, plan  # of 20,000, a third of which it would read the whole table for
        connection.rollback()
