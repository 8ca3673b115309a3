"""PostgreSQL as a source: the same levels as in DuckDB for every type, one snapshot, least rights."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from command import invoke
from postgres import SECRET, Server

from laprasdp.config import read_config
from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.postgres import PostgresTable
from laprasdp.data.postgres_engine import PostgresEngine
from laprasdp.data.scan import plan
from laprasdp.data.table import Table
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

N = Domain(n=Integers(0, 9))
NUMBERS = ["-1", "0", "1", "2", "2.5", "9", "10", "NaN"]
SEVENTHS = ["NaN", "0.14285714285714285", "42"]
ENDS = ["2020-01-01", "infinity", "-infinity", "9999-12-31"]
LATE = ["1969-12-31 23:59:59.999999", "infinity"]
TEXTS = ["a", "a ", "A", "é", "e\u0301", ""]
ZERO = "00000000-0000-0000-0000-00000000000"
QUARTERS = ["0", "0.24", "0.25", "249.49", "249.5", "-0.01"]
WIDE = Integers(-(2**70), -(2**70) + 5)


@pytest.fixture
def database(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    """A superuser in the first database; what it makes is gone afterwards."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
        yield connection
        connection.execute("DROP SCHEMA shop CASCADE")


def counts(table: Table) -> dict[int, int]:
    found = table.marginal((0,))
    table.close()
    return dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "here", "attribute", "values"),
    [
        ("smallint", "SMALLINT", Integers(-32768, 9), ["-32768", "0", "9", "32767"]),
        ("bigint", "BIGINT", Integers(-(2**63), 9 - 2**63), [str(-(2**63)), str(2**63 - 1)]),
        ("bigint", "BIGINT", Bins(range(10_000)), ["-5", "0", "17", "9998", "9999", "10000"]),
        ("double precision", "DOUBLE", Integers(0, 9), [*NUMBERS, "Infinity", "-Infinity", "1e300", "-0"]),
        ("double precision", "DOUBLE", Bins([0, 2, 9], whole=True), [*NUMBERS, "Infinity", "1e300"]),
        ("double precision", "DOUBLE", Bins([0.1, 0.3, 9]), [*NUMBERS, "0.1", "0.30000000000000004"]),
        ("double precision", "DOUBLE", WIDE, [str(-(2.0**70)), "-1e300", "NaN", str(2.0**127)]),
        ("double precision", "DOUBLE", Integers(2**53, 2**53 + 9), ["9007199254740992", "9007199254740994"]),
        ("double precision", "DOUBLE", Bins([k / 7 for k in range(300)]), SEVENTHS),
        ("real", "FLOAT", Bins([0.1, 0.3, 9]), ["0.1", "0.3", "0.09999999", "NaN", "Infinity"]),
        ("real", "FLOAT", Integers(0, 9), NUMBERS),
        ("numeric(9,2)", "DECIMAL(9,2)", Bins([0.1, 0.3, 9]), ["0.1", "0.09", "0.30", "9", "-0.01"]),
        ("numeric(9,2)", "DECIMAL(9,2)", Bins([k / 4 for k in range(999)]), QUARTERS),
        ("numeric(30,2)", "DECIMAL(30,2)", Bins([k / 4 for k in range(999)]), QUARTERS),
        ("numeric(38,0)", "DECIMAL(38,0)", WIDE, [str(-(2**70) + k) for k in range(-1, 7)]),
        ("numeric(9,2)", "DECIMAL(9,2)", Integers(0, 9), ["0", "0.01", "9.00", "9.01", "-1"]),
        ("numeric", "DOUBLE", Bins([-1, 0.1, 1e9]), [*NUMBERS, "0.1", "0.0999999999999999999", "Infinity"]),
        ("numeric", "DOUBLE", Bins([-1, 0, 1]), ["1e-400", "-1e-400", "1e400", "-1e400", "-Infinity"]),
        ("date", "DATE", Dates("2020-01-01", "2020-12-31", step="month"), ["2019-12-31", "2020-02-29"]),
        ("date", "DATE", Dates("2020-01-01", "2021-12-31"), ENDS),
        ("timestamp", "TIMESTAMP", Dates("1969-12-30", "1970-01-02"), LATE),
        ("timestamp(0)", "TIMESTAMP", Dates("2020-01-01", "2020-01-02"), ["2020-01-01 23:59:59"]),
        ("boolean", "BOOLEAN", Booleans(), ["true", "false"]),
        ("text", "VARCHAR", Categories(["a", "a ", "A", "é", ""], other=True), TEXTS),
        ("text", "VARCHAR", Categories([f"c{k}" for k in range(5000)]), ["c0", "c4999", "c5000", "C1"]),
        ("varchar(5)", "VARCHAR", Categories(['"', "\\", "{}", "'"]), ['"', "\\", "{}", "'", ","]),
        ('text COLLATE "unicode"', "VARCHAR", Categories(["a", "A"]), ["a", "A"]),
        ("uuid", "UUID", Categories([f"{ZERO}a"]), [f"{ZERO}A"]),
    ],
)  # fmt: skip
def test_each_type_has_the_levels_that_it_has_in_duckdb(
    postgres: Server,
    database: psycopg.Connection[Any],
    kind: str,
    here: str,
    attribute: Attribute,
    values: list[str],
) -> None:
    """Each value another number of times, so that no two of them can be taken for each other."""
    rows: list[str | None] = [value for k, value in enumerate([*values, None]) for _ in range(2**k)]
    database.execute(f"CREATE TABLE shop.t (v {kind})")
    with database.cursor().copy("COPY shop.t FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row])
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (v {here})")
        connection.executemany("INSERT INTO t VALUES (?)", [[row] for row in rows])
        wanted = counts(DuckDBTable(connection.table("t").to_arrow_table(), Domain(v=attribute)))
    assert wanted
    assert counts(PostgresTable(postgres.url, Domain(v=attribute), table="shop.t")) == wanted


@pytest.mark.parametrize("attribute", [Bins([0, 9]), Bins([k / 4 for k in range(999)]), Integers(0, 9)])
def test_a_decimal_that_is_none_lies_outside(
    postgres: Server, database: psycopg.Connection[Any], attribute: Attribute
) -> None:
    database.execute("CREATE TABLE shop.t (v numeric(9,2)); INSERT INTO shop.t VALUES ('NaN'), (1), (1)")
    assert sum(counts(PostgresTable(postgres.url, Domain(v=attribute), table="shop.t")).values()) == 2


def test_domains_enumerations_and_padded_texts(postgres: Server, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE TYPE shop.mood AS ENUM ('sad', 'ok'); CREATE DOMAIN shop.small AS integer")
    database.execute("CREATE DOMAIN shop.least AS shop.small CHECK (VALUE >= 0)")
    database.execute("CREATE TABLE shop.t (m shop.mood, c character(4), s shop.least)")
    database.execute("INSERT INTO shop.t VALUES ('ok', 'ab', 3), ('sad', 'ab ', 3), (NULL, 'abc', 1)")
    for name, attribute, wanted in [
        ("m", Categories(["ok", "sad"]), {0: 1, 1: 1}),
        ("c", Categories(["ab", "abc"]), {0: 2, 1: 1}),
        ("s", Integers(0, 9), {3: 2, 1: 1}),
    ]:
        assert counts(PostgresTable(postgres.url, Domain({name: attribute}), table="shop.t")) == wanted


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("timestamptz", "TIMESTAMP WITH TIME ZONE, .*time zone"),
        ("integer[]", r"INTEGER\[\]"),
        ("jsonb", "JSONB"),
        ("bytea", "BYTEA"),
        ("interval", "INTERVAL"),
    ],
)
def test_types_without_levels_are_refused(
    postgres: Server, database: psycopg.Connection[Any], kind: str, message: str
) -> None:
    database.execute(f"CREATE TABLE shop.t (n {kind})")
    with pytest.raises(DataError, match=f"column n holds {message}"):
        PostgresTable(postgres.url, N, table="shop.t")


def test_persons_are_the_same_rows_as_in_duckdb(postgres: Server, database: psycopg.Connection[Any]) -> None:
    rows = [(n, f"p{(n * n + k) % 97}") for n in range(10) for k in range(200)]
    database.execute("CREATE TABLE shop.t (n integer, who text)")
    with database.cursor().copy("COPY shop.t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (n INTEGER, who VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        table = connection.table("t").to_arrow_table()
    for most in (1, 3):
        unit = PrivacyUnit("who", most)
        wanted = counts(DuckDBTable(table, N, unit=unit, key="k"))
        assert sum(wanted.values()) == 97 * most
        assert counts(PostgresTable(postgres.url, N, table="shop.t", unit=unit, key="k")) == wanted


def test_the_right_to_read_is_enough_for_tables_views_and_parts(
    postgres: Server, database: psycopg.Connection[Any]
) -> None:
    database.execute(
        "CREATE TABLE shop.part (n integer) PARTITION BY RANGE (n); "
        "CREATE TABLE shop.low PARTITION OF shop.part FOR VALUES FROM (0) TO (5); "
        "CREATE TABLE shop.high PARTITION OF shop.part FOR VALUES FROM (5) TO (10); "
        "INSERT INTO shop.part SELECT generate_series(0, 9); "
        "CREATE VIEW shop.seen AS SELECT n FROM shop.part WHERE n < 8; "
        "CREATE MATERIALIZED VIEW shop.kept AS SELECT n FROM shop.part; "
        "CREATE TABLE shop.hidden (n integer); DROP ROLE IF EXISTS reader; "
        "CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT USAGE ON SCHEMA shop TO reader; "
        "GRANT SELECT ON shop.part, shop.seen, shop.kept TO reader"
    )
    url = postgres.url.replace("postgres:only-for-tests", "reader:r")
    for name, rows in [("part", 10), ("seen", 8), ("kept", 10), ("SEEN", 8)]:
        assert sum(counts(PostgresTable(url, N, table=f"shop.{name}")).values()) == rows
    with pytest.raises(DataError, match=r"no table shop\.hidden; it has shop\.kept, shop\.part, shop\.seen"):
        PostgresTable(url, N, table="shop.hidden")
    with pytest.raises(DataError, match="name a table; it has"):
        PostgresTable(url, N)
    database.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_all_counts_are_of_one_snapshot(postgres: Server, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE TABLE shop.t AS SELECT generate_series(0, 9) AS n")
    engine = PostgresEngine(postgres.url, "shop.t")
    database.execute("UPDATE shop.t SET n = 0")
    database.execute("INSERT INTO shop.t SELECT 1 FROM generate_series(1, 100)")
    columns, person = engine.columns(["n"], None)
    scan = plan(N, columns, person, unit=PrivacyUnit(), key="k", dialect=Dialect())
    found: Counter[int] = Counter()
    for batch in engine.run(scan):
        found.update({line["a0"]: line["rows"] for line in batch.to_pylist()})
    engine.close()
    engine.close()
    assert found == dict.fromkeys(range(10), 1)


def test_what_the_server_refuses_is_one_line_without_secrets(
    postgres: Server, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE shop.t (n integer, text text); INSERT INTO shop.t VALUES (1, 'SECRET')")
    database.execute("CREATE VIEW shop.failing AS SELECT CAST(text AS integer) AS n FROM shop.t")
    wrong = postgres.url.replace("only-for-tests", "hush7")
    for url, table, message in [
        (wrong, "shop.t", "user or password is wrong"),
        ("postgresql://me:hush7@127.0.0.1:1/x", "t", "nobody answers there"),
        ("postgresql://me:hush7@@host/x", "t", "write @ in a password as %40"),
        (postgres.url.replace("/postgres?", "/nothing?"), "t", "there is no such database"),
        (postgres.url, "shop.nothing", "has no table shop.nothing"),
        (postgres.url, "shop.failing", "it cannot be read to its end"),
    ]:
        with pytest.raises(DataError, match=message) as caught:
            PostgresTable(url, N, table=table)
        told = str(caught.value)
        assert "\n" not in told
        assert not [one for one in ("hush7", "only-for-tests", "SECRET") if one in told]
    with pytest.raises(DataError, match="has no column m; it has n, text"):
        PostgresTable(postgres.url, Domain(m=Integers(0, 1)), table="shop.t")


def test_a_lost_connection_opens_nothing(postgres: Server, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE TABLE shop.t AS SELECT 1 AS n")
    engine = PostgresEngine(postgres.url, "shop.t")
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    )
    columns, person = engine.columns(["n"], None)
    scan = plan(N, columns, person, unit=PrivacyUnit(), key="k", dialect=Dialect())
    with pytest.raises(DataError, match="the connection was lost"):
        list(engine.run(scan))
    engine.close()


@pytest.mark.parametrize(
    ("act", "says"), [("cancel", "the server ended a statement"), ("terminate", "the connection was lost")]
)
def test_a_scan_that_ends_among_its_rows_says_why(
    postgres: Server,
    database: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    act: str,
    says: str,
) -> None:
    """And psycopg logs nothing of it, which could quote a value."""
    monkeypatch.setattr("laprasdp.data.postgres_engine._BATCH", 1_000)
    database.execute("CREATE TABLE shop.t AS SELECT n FROM generate_series(0, 299999) AS n")
    engine, domain = PostgresEngine(postgres.url, "shop.t"), Domain(n=Integers(0, 299_999))
    columns, person = engine.columns(["n"], None)
    batches = engine.run(plan(domain, columns, person, unit=PrivacyUnit(), key="k", dialect=Dialect()))
    assert len(next(batches)) >= 1_000
    running = "FROM pg_stat_activity WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
    database.execute(f"SELECT pg_{act}_backend(pid) {running}".encode())
    with pytest.raises(DataError, match=says):
        list(batches)
    engine.close()
    assert not caplog.records


def test_a_database_in_another_encoding_is_refused(
    postgres: Server, database: psycopg.Connection[Any]
) -> None:
    database.execute("DROP DATABASE IF EXISTS latin")
    database.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(DataError, match="a database in LATIN1"):
        PostgresTable(postgres.url.replace("/postgres?", "/latin?"), N)


def test_commands_write_a_configuration_and_ask(
    postgres: Server, database: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password stays where libpq looks for it, and in no file."""
    database.execute('CREATE TABLE shop."Visits" AS SELECT generate_series(0, 9) AS n, now() AS at')
    out = tmp_path / "lapras.toml"
    told = invoke("init", postgres.url, "--table", "shop.visits", "--out", out)
    assert "1 of 2 columns can be attributes" in told.stdout
    text = out.read_text()
    assert SECRET not in text
    assert 'table = "shop.visits"' in text
    assert '# [domain."at"]: TIMESTAMP WITH TIME ZONE cannot be an attribute' in text
    monkeypatch.setenv("PGPASSWORD", SECRET)
    out.write_text(text.replace("# min =", "min = 0").replace("# max =", "max = 9"))
    asked = invoke("ask", "SELECT COUNT(*) FROM visits WHERE n < 5", "--json", "--config", out)
    assert abs(json.loads(asked.stdout)["value"] - 5) < 100
    assert SECRET not in repr(read_config(out))
    listed = invoke("init", postgres.url, "--out", tmp_path / "other.toml", code=1)
    assert "name a table; it has" in listed.stderr
    assert "shop.Visits" in listed.stderr


def test_an_interrupt_and_a_killed_server_process_end_a_scan(
    postgres: Server, database: psycopg.Connection[Any]
) -> None:
    """Rows that take a hundredth of a second each: the statement runs when something happens to it."""
    running = "FROM pg_stat_activity WHERE query LIKE 'COPY (%' AND state = 'active'"
    database.execute(
        "CREATE TABLE shop.t AS SELECT 1 AS n FROM generate_series(1, 3000); CREATE VIEW shop.slow AS "
        "SELECT CASE WHEN pg_sleep(0.01) IS NULL THEN 1 ELSE n END AS n FROM shop.t"
    )

    def once_it_runs(act: Callable[[], object]) -> None:
        while not database.execute(f"SELECT pid {running}".encode()).fetchall():
            time.sleep(0.01)
        act()

    for act, error, message in [
        (lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt, None),
        (
            lambda: database.execute(f"SELECT pg_terminate_backend(pid) {running}".encode()),
            DataError,
            "the connection was lost",
        ),
    ]:
        watching = threading.Thread(target=once_it_runs, args=[act])
        watching.start()
        with pytest.raises(error, match=message):
            PostgresTable(postgres.url, N, table="shop.slow")
        watching.join()
        end = time.monotonic() + 10
        while database.execute(f"SELECT pid {running}".encode()).fetchall():
            assert time.monotonic() < end, "the server goes on"
            time.sleep(0.01)
