"""Places by arithmetic: what bisection finds, for every value around an edge and at the ends of its type."""

import bisect
import datetime as dt
import math
import random
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from laprasdp.data.column import Column
from laprasdp.data.duckdb_words import DUCKDB
from laprasdp.data.even import place_by_arithmetic
from laprasdp.data.words import spelled
from laprasdp.queries.attribute import Bins, Dates

rng = random.Random(7)
FLOATS = [
    *[[k / n for k in range(n + 1)] for n in (1, 2, 3, 7, 10, 20, 49, 100, 997)],
    *[list(map(float, Bins(start=a, stop=b, width=w).edges)) for a, b, w in
      [(0, 1, 0.05), (-1, 1, 0.1), (0.1, 9.1, 0.5), (-9.15, 0, 0.15), (0, 10**6, 2500), (1e-3, 2e-3, 1e-5)]],
]  # fmt: skip
INTEGERS = [list(range(0, 10_001, 10)), [-7, -4, -1, 2], [2**62, 2**62 + 5], [-(2**62), 0], [0, 1]]
STEPS = (1, "week", "month", "quarter", "year")
DAYS = [list(Dates("2020-01-01", "2021-12-31", step=step).edges) for step in STEPS] + [
    [dt.date(1, 1, 1), dt.date(1, 1, 2)],
    [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1970, 1, 2)],
]


def places(values: Sequence[Any], kind: str, type_: pa.DataType, edges: Sequence[Any]) -> list[int | None]:
    place = place_by_arithmetic(exp.column("value"), Column("v", kind, 0), [str(edge) for edge in edges])
    assert place is not None
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"i": range(len(values)), "value": pa.array(values, type_)}))
        asked = exp.select(spelled(place, DUCKDB)).from_("given").order_by("i").sql("duckdb")
        return [row[0] for row in connection.execute(asked).fetchall()]


def expected(values: Sequence[Any], edges: Sequence[Any]) -> list[int | None]:
    """By bisection; NaN and NULL lie outside."""
    found: list[int | None] = []
    for value in values:
        if value is None or value != value or not edges[0] <= value < edges[-1]:
            found.append(None)
        else:
            found.append(bisect.bisect_right(edges, value) - 1)
    return found


@pytest.mark.parametrize("edges", FLOATS, ids=len)
def test_doubles(edges: list[float]) -> None:
    values: list[float | None] = [None, math.nan, math.inf, -math.inf, 5e-324, -5e-324, -0.0, 1e308, -1e308]
    for edge in edges:
        near = [edge]
        for _ in range(3):
            near = [math.nextafter(near[0], -math.inf), *near, math.nextafter(near[-1], math.inf)]
        values += near
    values += [rng.uniform(edges[0], edges[-1]) for _ in range(500)]
    assert places(values, "DOUBLE", pa.float64(), edges) == expected(values, edges)


@pytest.mark.parametrize("edges", INTEGERS, ids=str)
def test_whole_numbers(edges: list[int]) -> None:
    ends = [-(2**63), 2**63 - 1, -1, 0, 1]
    values = [None, *ends, *[edge + k for edge in edges for k in (-1, 0, 1)]]
    assert places(values, "BIGINT", pa.int64(), edges) == expected(values, edges)


@pytest.mark.parametrize("edges", DAYS, ids=len)
def test_days(edges: list[dt.date]) -> None:
    one = dt.timedelta(days=1)
    days = [edge + k * one for edge in edges for k in (0, 1)] + [e - one for e in edges if e > dt.date.min]
    days += [dt.date.min, dt.date.max]
    assert places(days, "DATE", pa.date32(), edges) == expected(days, edges)
    late = [dt.datetime.combine(day, dt.time.max) for day in days]
    assert places(late, "TIMESTAMP", pa.timestamp("us"), edges) == expected(days, edges)


def test_values_at_the_ends_of_a_type_end_nothing() -> None:
    ends = [-(2**63), -(2**63) + 1, 2**63 - 1, 0]
    edges = DAYS[2]
    for kind, type_, values in [
        ("TIMESTAMP", pa.timestamp("us"), pa.array(ends, pa.int64()).view(pa.timestamp("us"))),
        ("DATE", pa.date32(), pa.array([-(2**31), 2**31 - 1, -(2**31) + 1], pa.int32()).view(pa.date32())),
        ("TINYINT", pa.int8(), pa.array([-128, 127], pa.int8())),
    ]:
        bounds = edges if kind != "TINYINT" else [-100, 0, 100]
        assert set(places(values, kind, type_, bounds)) <= {None}


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        ("DOUBLE", [0.0, 0.1, 0.3]),
        ("DOUBLE", [0.0, 0.1, math.nextafter(0.2, 1), 0.3]),
        ("DOUBLE", [-1.7e308, 0.0, 1.7e308]),
        ("BIGINT", [0, 1, 3]),
        ("DATE", [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(2020, 3, 4)]),
        ("DECIMAL(9,2)", [0, 1, 2]),
        ("TIMESTAMP_S", [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
    ],
)
def test_uneven_edges_have_none(kind: str, edges: list[Any]) -> None:
    assert place_by_arithmetic(exp.column("value"), Column("v", kind, 0), [str(e) for e in edges]) is None
