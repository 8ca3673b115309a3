"""What analysts write on a dashboard: DuckDB's rows on exact counts, or a refusal with a way forward."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from exact import Beside, plain
from flights_table import flights_table

from laprasdp.errors import UnsupportedQuery
from laprasdp.stream.worked import rows_of

FILE = Path(__file__).parent / "dashboard.sql"
ASKED = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
BINNED = """CREATE SCHEMA binned; CREATE TABLE binned.flights AS SELECT * REPLACE (
    format('[{}, {})', distance // 250 * 250, distance // 250 * 250 + 250) AS distance) FROM flights"""
Cell = tuple[Any, float]  # a value, and how far from the truth it may be


@pytest.fixture(scope="module")
def flights() -> Beside:
    table = flights_table()
    table.database.execute(BINNED)
    return table


def ours(table: Beside, text: str) -> list[list[Cell]]:
    """Our rows; a value may be six standard deviations off, which is nothing but for coarse quantiles."""
    statement = table.reader.parse(text)
    if statement.result is None:
        return [[(cell, 0.0) for cell in row] for row in table.ours(text)]
    names, rows, _ = rows_of(statement.result, table.exact(statement))
    return [
        [
            (plain(row.group[name]), 0.0)
            if name in row.group
            else (plain(row.columns[name].value), 6 * (row.columns[name].std or 0.0))
            for name in names
        ]
        for row in rows
    ]


def near(cell: Cell, true: Any) -> bool:
    value, slack = cell
    if isinstance(value, float) and isinstance(true, float):
        return abs(value - true) <= slack + 1e-5 * max(1.0, abs(true))
    return bool(value == true)


def spelled(row: list[Any]) -> list[str]:
    return [f"{one:.2f}" if isinstance(one, float) else repr(one) for one in row]


@pytest.mark.parametrize("text", ASKED)
def test_a_statement_shows_duckdbs_rows_and_empty_groups_beside_them(text: str, flights: Beside) -> None:
    found = ours(flights, text)
    by_bin = re.search(r"GROUP BY.*distance", text) and "distance /" not in text
    theirs = [
        list(row)
        for row in flights.theirs(text.replace("FROM flights", "FROM binned.flights") if by_bin else text)
    ]
    if "ORDER BY" not in text.upper():
        found.sort(key=lambda row: spelled([value for value, _ in row]))
        theirs.sort(key=spelled)
    left = iter(theirs)
    row = next(left, None)
    for mine in found:
        if row is not None and len(mine) == len(row) and all(map(near, mine, row)):
            row = next(left, None)
        else:  # a declared group that DuckDB does not list: nothing is in it
            assert any(value in (0.0, None) for value, _ in mine), (text, mine, row)
    assert row is None, (text, row, found[:5])


REFUSED = {
    "SELECT MAX(arr_delay) FROM flights": "QUANTILE_DISC",
    "SELECT origin_state, MIN(arr_delay) FROM flights GROUP BY origin_state": "QUANTILE_DISC",
    "SELECT COUNT(DISTINCT origin_state) FROM flights": "groups are above 0",
    "SELECT hour, COUNT(DISTINCT origin_state) FROM flights GROUP BY hour": "groups are above 0",
    "SELECT APPROX_COUNT_DISTINCT(origin_state) FROM flights": "groups are above 0",
    "SELECT * FROM flights LIMIT 10": "use them on groups",
    "SELECT arr_delay FROM flights WHERE hour = 3": "ask for aggregates",
    "SELECT COUNT(*) FROM flights WHERE distance > 600": "nearest edges are 500 and 750",
    "SELECT FLOOR(distance / 100), COUNT(*) FROM flights GROUP BY 1": "nearest are 0 and 250",
    "SELECT AVG(distance) FROM flights": "the same on all of it",
    "SELECT QUANTILE_DISC(flight_date, 0.5) FROM flights": "by subtracting another",
    "SELECT COUNT(*) FROM flights WHERE flight_date < current_date": "write the date itself",
    "SELECT COUNT(*) FROM flights WHERE arr_delay > (SELECT AVG(arr_delay) FROM flights)": "ask it first",
    "SELECT region, COUNT(*) FROM flights RIGHT JOIN states ON origin_state = abr GROUP BY 1": "LEFT JOIN",
    "SELECT MODE(hour) FROM flights": "ORDER BY 2 DESC LIMIT 1",
    "SELECT SKEWNESS(arr_delay) FROM flights": "ask for AVG",
    "SELECT STRING_AGG(origin_state, ',') FROM flights": "GROUP BY",
    "SELECT BOOL_OR(arr_delay > 200) FROM flights": "COUNT_IF",
    "SELECT hour, AVG(arr_delay) OVER (PARTITION BY hour) FROM flights": "use GROUP BY",
    "SELECT COUNT(*) FROM flights a JOIN flights b ON a.hour = b.hour": "group the table first",
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_a_refusal_says_what_comes_close(text: str, flights: Beside) -> None:
    with pytest.raises(UnsupportedQuery, match=re.escape(REFUSED[text])):
        flights.reader.parse(text)
