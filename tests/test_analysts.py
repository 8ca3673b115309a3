"""What analysts write of other tables: DuckDB's rows on exact counts, or a refusal with a way forward."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from exact import Beside

import laprasdp as lp
from laprasdp.queries.attribute import Attribute
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader

ROWS = 6_000
JOBS = ["Craft", "Exec", "Sales", "Tech"]
SCHOOLS = ["Bachelors", "Doctorate", "HS-grad", "Masters", "Some-college"]
ADULT: dict[str, Attribute] = {
    "age": lp.Integers(17, 90),
    "workclass": lp.Categories(["Private", "Self", "State"], nullable=True),
    "education": lp.Categories(SCHOOLS),
    "education_num": lp.Integers(1, 16),
    "marital_status": lp.Categories(["Divorced", "Married", "Single"]),
    "occupation": lp.Categories(JOBS, nullable=True),
    "sex": lp.Categories(["Female", "Male"]),
    "hours_per_week": lp.Integers(1, 99),
    "income": lp.Categories(["<=50K", ">50K"]),
    "capital_gain": lp.Bins([0, 1, 5000, 10000, 50000, 100000], whole=True),
}
FLIGHTS: dict[str, Attribute] = {
    "day": lp.Dates("2013-01-01", "2013-12-31"),
    "carrier": lp.Categories(["AA", "B6", "DL", "EV", "UA"]),
    "origin": lp.Categories(["EWR", "JFK", "LGA"]),
    "dest_state": lp.Categories(["AZ", "CA", "CO", "FL", "IL", "TX"]),
    "dep_delay": lp.Integers(-60, 300, nullable=True),
    "distance": lp.Bins([0, 250, 500, 1000, 2000, 5000], whole=True),
    "hours": lp.Reals(0, 12, 0.1),
}
AIRLINES = pa.table(
    {"code": ["AA", "B6", "DL", "WN"], "airline": ["American", "JetBlue", "Delta", "Southwest"],
     "low_cost": [False, True, False, True]}
)  # fmt: skip


def values_of(attribute: Attribute, levels: np.ndarray[Any, Any]) -> pa.Array:
    """A value in each level."""
    if isinstance(attribute, lp.Bins):
        return pa.array([int(attribute.edges[level]) for level in levels], pa.int32())
    if isinstance(attribute, lp.Dates):
        return pa.array([attribute.edges[level] for level in levels], pa.date32())
    found: list[Any] = [attribute.label(int(level)) for level in levels]
    if isinstance(attribute, lp.Reals):
        return pa.array([Decimal(one) for one in found], pa.decimal128(3, 1))
    return pa.array(found, pa.int32() if isinstance(attribute, lp.Integers) else pa.string())


def beside(name: str, declared: Mapping[str, Attribute], seed: int) -> Beside:
    rng = np.random.default_rng(seed)
    levels = {
        key: np.minimum(rng.integers(0, one.size, ROWS), rng.integers(0, one.size + one.size // 2, ROWS))
        for key, one in declared.items()
    }
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.register(
        name, pa.table({key: values_of(declared[key], column) for key, column in levels.items()})
    )
    database.register("airlines", AIRLINES)
    types = {row[0]: row[1] for row in database.execute(f"DESCRIBE {name}").fetchall()}
    reader = Reader(lp.Domain(declared), name, types, lookups={"airlines": Lookup(AIRLINES, "code")})
    return Beside(database, levels, reader)


@pytest.fixture(scope="module")
def tables() -> dict[str, Beside]:
    return {"adult": beside("adult", ADULT, 1), "flights": beside("flights", FLIGHTS, 2)}


def read(kind: str) -> list[tuple[str, str]]:
    """The statements under a heading, with the table that each is of."""
    found, heading = [], ""
    for line in (Path(__file__).parent / "analysts.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("--"):
            heading = line.removeprefix("-- ")
        elif heading.startswith(kind):
            found.append((heading.rpartition(" ")[2], line))
    return found


@pytest.mark.parametrize(("table", "text"), read("of"))
def test_a_statement_is_answered_as_duckdb_answers_it(
    table: str, text: str, tables: dict[str, Beside]
) -> None:
    tables[table].check(text, ordered="ORDER BY" in text)


@pytest.mark.parametrize(("table", "text"), read("refused"))
def test_a_refusal_tells_a_way_forward(table: str, text: str, tables: dict[str, Beside]) -> None:
    with pytest.raises(lp.LaprasError) as caught:
        tables[table].reader.parse(text)
    assert re.search(r"; |ask for|comes close|LIMIT", str(caught.value)), str(caught.value)


def test_there_are_so_many() -> None:
    assert len(read("of")) >= 55
    assert len({text for _, text in read("")}) == len(read("of")) + len(read("refused"))
