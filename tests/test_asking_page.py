"""Every example of the page "What may be asked" is answered as DuckDB answers it, or refused as it says."""

from __future__ import annotations

import datetime as dt
import random
import re
import tomllib
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from exact import Beside, plain

from laprasdp.config.attributes import read_domain
from laprasdp.config.lookups import read_derived, read_lookups
from laprasdp.config.section import Section
from laprasdp.errors import UnsupportedQuery
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.sql.reader import Reader
from laprasdp.stream.opening import open_session

PAGE = (Path(__file__).parent.parent / "docs/asking.md").read_text(encoding="utf-8")
TYPES = {
    "day": "DATE", "hour": "INTEGER", "state": "VARCHAR", "delay": "INTEGER", "fare": "DECIMAL(4,1)",
    "miles": "INTEGER",
}  # fmt: skip
ROWS = 20_000


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def lines(kind: str) -> list[str]:
    return [line for block in blocks(kind) for line in block.splitlines() if line]


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    folder = tmp_path_factory.mktemp("page")
    (folder / "states.csv").write_text(blocks("csv")[0])
    top = Section("page", tomllib.loads(blocks("toml")[0]))
    domain, lookups = read_domain(top.section("domain")), read_lookups(top.section("lookup"), folder)
    rng = random.Random(8)
    first = dt.date(2024, 1, 1)
    level = {
        "day": [rng.randrange(91) for _ in range(ROWS)],
        "hour": [rng.randrange(24) for _ in range(ROWS)],
        "state": [rng.choice([0, 0, 1, 2]) for _ in range(ROWS)],
        "delay": [rng.randrange(92) for _ in range(ROWS)],
        "fare": [rng.randrange(1001) for _ in range(ROWS)],
        "miles": [rng.randrange(3) for _ in range(ROWS)],
    }
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute(f"CREATE TABLE flights ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    states, miles = ["CA", "NY", "TX"], [100, 600, 2000]
    rows = [
        (first + dt.timedelta(days=d), h, states[s], None if late == 91 else late - 30, fare / 2, miles[m])
        for d, h, s, late, fare, m in zip(*level.values(), strict=True)
    ]
    database.register("made", pa.table(dict(zip(TYPES, zip(*rows, strict=True), strict=True))))
    database.execute("INSERT INTO flights FROM made")
    database.register("states", lookups["states"].rows)
    found = {name: np.array(column) for name, column in level.items()}
    derived = read_derived(Section("page", tomllib.loads(blocks("toml")[1])).section("derived"))
    columns = ", ".join(f"{sql} AS {name}" for name, sql in derived.items())
    database.execute(
        f"CREATE SCHEMA named; CREATE VIEW named.flights AS SELECT *, {columns} FROM main.flights"
    )
    return Beside(database, found, Reader(domain, "flights", TYPES, lookups=lookups, derived=derived))


@pytest.mark.parametrize("text", lines("sql"))
def test_an_example_is_answered_as_duckdb_answers_it(text: str, flights: Beside) -> None:
    if "GROUP BY miles" in text:  # groups are bins here
        assert [row[0] for row in flights.ours(text)] == ["[0, 500)", "[500, 1000)", "[1000, 2500)"]
    else:
        flights.check(text, ordered="ORDER BY" in text)


@pytest.mark.parametrize("text", lines("derived"))
def test_a_derived_attribute_stands_where_a_column_may(text: str, flights: Beside) -> None:
    theirs = flights.database.execute(text.replace("FROM flights", "FROM named.flights")).fetchall()
    assert flights.ours(text) == [tuple(map(plain, row)) for row in theirs]


@pytest.mark.parametrize("text", lines("persons"))
def test_persons_are_counted_once_among_the_rows_that_count(text: str, flights: Beside) -> None:
    rng = random.Random(9)
    who = [f"p{rng.randrange(900)}" for _ in range(ROWS)]
    rows = flights.database.execute("FROM flights").to_arrow_table()
    rows = rows.append_column("passenger", [who])
    database = duckdb.connect()
    database.register("every", rows)
    database.execute(
        "CREATE TABLE flights AS FROM every QUALIFY row_number() OVER (PARTITION BY passenger) <= 3"
    )
    table = database.execute("FROM flights").to_arrow_table()
    domain = flights.reader.domain
    session = open_session(
        table, domain, budget=Budget(20.0, 1e-6), horizon=1, name="flights",
        policy="independent", unit=PrivacyUnit("passenger", 3),
    )  # fmt: skip
    answer = session.ask(text)
    for row, line in zip(answer, database.execute(text + " ORDER BY 1").fetchall(), strict=True):
        for cell, exact in zip(map(row.__getitem__, answer.names), line, strict=True):
            low, high = cell.interval(1 - 1e-8) if hasattr(cell, "std") else (cell, cell)
            assert low <= exact <= high


@pytest.mark.parametrize("text", lines("refused"))
def test_what_the_page_calls_refused_is_refused_with_a_way_forward(text: str, flights: Beside) -> None:
    with pytest.raises(UnsupportedQuery, match=r"; |QUANTILE|rows are private"):
        flights.reader.parse(text)
