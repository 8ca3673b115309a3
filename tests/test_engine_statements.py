"""The same statements have the same exact counts on every engine: those of DuckDB over the rows."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from postgres import Server
from psycopg import sql
from spark import Cluster
from sql_grammar import COLUMNS, DOMAIN, nested
from test_sql_differential import draw_row, levels_of

from laprasdp.data.open import open_table
from laprasdp.data.table import Table
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.sql import parse

STATEMENTS, ROWS = 200, 400
KINDS = ("integer", "integer", "double precision", "text", "text", "date", "date", "boolean", "boolean")
ARROW = {
    "integer": pa.int32(), "double precision": pa.float64(), "text": pa.string(), "date": pa.date32(),
    "boolean": pa.bool_(),
}  # fmt: skip
drawn = [draw_row(random.Random(f"row {k}")) for k in range(ROWS)]
inside = [row for row in drawn if levels_of(row) is not None]
rng = random.Random("statements")
clauses = [nested(rng) for _ in range(STATEMENTS)]


def written(folder: Path) -> str:
    columns = zip(*drawn, strict=True)
    arrays = [pa.array(values, ARROW[kind]) for values, kind in zip(columns, KINDS, strict=True)]
    pa.parquet.write_table(pa.table(arrays, list(DOMAIN)), folder / "people.parquet")
    return str(folder / "people.parquet")


def in_duckdb(folder: Path, _: Any) -> tuple[Any, str | None]:
    return written(folder), None


def in_postgresql(_: Path, server: Server) -> tuple[Any, str | None]:
    with psycopg.connect(server.url) as connection:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in zip(DOMAIN, KINDS, strict=True)
        ]
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(sql.SQL("CREATE TABLE people ({})").format(sql.SQL(", ").join(columns)))
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in drawn:
                copy.write_row(row)
    return server.url, "people"


def in_spark(folder: Path, cluster: Cluster) -> tuple[Any, str | None]:
    return cluster.session, written(folder)


SOURCES: dict[str, tuple[Callable[[Path, Any], tuple[Any, str | None]], str | None]] = {
    "duckdb": (in_duckdb, None), "postgresql": (in_postgresql, "postgres"), "spark": (in_spark, "cluster"),
}  # fmt: skip


@pytest.fixture(params=[*list(SOURCES)[:2], pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    make, server = SOURCES[request.param]
    source, name = make(tmp_path, server and request.getfixturevalue(server))
    return open_table(source, DOMAIN, table=name, name="people", unit=PrivacyUnit(), key="k")


def test_two_hundred_statements_have_the_counts_that_duckdb_gives_over_the_rows(table: Table) -> None:
    """Half of the rows lie outside the domain; at least half of the answers are neither 0 nor all rows."""
    with duckdb.connect() as rows:
        rows.execute(f"CREATE TABLE people ({COLUMNS})")
        rows.executemany(f"INSERT INTO people VALUES ({', '.join('?' * 9)})", inside)
        asked = ", ".join(f"COUNT(*) FILTER (WHERE {clause})" for clause in clauses)
        wanted = rows.execute(f"SELECT {asked} FROM people").fetchall()[0]
    found = []
    for clause in clauses:
        (query,) = parse(f"SELECT COUNT(*) FROM people WHERE {clause}", DOMAIN, "people").queries
        found.append(query.answer(table.marginal(query.axes)))
    assert found == list(wanted)
    assert len(set(clauses)) > 0.9 * STATEMENTS
    assert sum(0 < count < len(inside) for count in found) >= STATEMENTS / 2
    assert 50 < len(inside) < ROWS
