"""Kinds of source for the tests of tables, and the plain Python that says what each must count."""

import datetime as dt
import gzip
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import settings

from laprasdp.data import duckdb as module
from laprasdp.data.table import Table
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal

SOME = settings(derandomize=True, deadline=None, max_examples=40)
DATASETS = Path(module.__file__).parents[1] / "datasets"
ODD = [
    "O'Hare",
    'the "Q"',
    "100%",
    "é☃",
    " x ",
    "a;b,c\td",
    "'; DROP TABLE cells --",
    "NULL",
    "\\",
    "{}",
    "?",
]


def level_of(attribute: Attribute, value: Any) -> int | None:
    """The level of a value, None outside: the independent oracle."""
    if value is None:
        return attribute.values if attribute.nullable else None
    match attribute:
        case Categories():
            if value in attribute.names:
                return list(attribute.names).index(value)
            return len(attribute.names) if attribute.other else None
        case Booleans():
            return int(value)
        case Dates():
            day = value.date() if isinstance(value, dt.datetime) else value
            starts = [i for i, edge in enumerate(attribute.edges) if edge <= day]
            return starts[-1] if starts and starts[-1] < attribute.values else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(attribute, Reals):
        number, last = float(value), attribute.values - 1
        inside = min(max(number, attribute.lower), attribute.upper)
        return min(max(math.floor((inside - attribute.lower) / attribute.step + 0.5), 0), last)
    exact = Fraction(value)
    if isinstance(attribute, Integers):
        inside = exact.denominator == 1 and attribute.min <= exact <= attribute.max
        return int(exact) - attribute.min if inside else None
    assert isinstance(attribute, Bins)
    if attribute.whole and exact.denominator != 1:
        return None
    binary = isinstance(value, float)
    edges = [Fraction(e) if binary or isinstance(e, int) else Fraction(repr(e)) for e in attribute.edges]
    found = sum(edge <= exact for edge in edges) - 1
    return found if 0 <= found < attribute.values else None


def brute(domain: Domain, rows: list[dict[str, Any]], axes: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    counts: Counter[tuple[int, ...]] = Counter()
    seen: dict[tuple[str, Any], int | None] = {}
    for row in rows:
        for name in domain:
            if (name, row[name]) not in seen:
                seen[name, row[name]] = level_of(domain[name], row[name])
        levels = [seen[name, row[name]] for name in domain]
        if None not in levels:
            counts[tuple(levels[a] for a in axes)] += 1
    return dict(counts) or ({} if axes else {(): 0})


def as_dict(marginal: Marginal, axes: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    assert set(marginal.levels) == set(axes)
    assert marginal.counts.dtype == np.int64
    lines = zip(*[marginal.levels[a].tolist() for a in axes], marginal.counts.tolist(), strict=True)
    keys = [(line[:-1], line[-1]) for line in lines]
    assert [key for key, _ in keys] == sorted({key for key, _ in keys})
    return dict(keys)


def check(table: Table, rows: list[dict[str, Any]]) -> None:
    for size in range(len(table.domain) + 1):
        for axes in itertools.combinations(range(len(table.domain)), size):
            assert as_dict(table.marginal(axes), axes) == brute(table.domain, rows, axes)


# The contract: a new kind of source is one more function and one more name below.

DOMAIN = Domain(
    {
        "age": Integers(0, 9),
        "The Score": Bins([0, 0.5, 7.25, 100], nullable=True),
        "city": Categories(ODD, other=True, nullable=True),
        "day": Dates("2023-12-31", "2024-03-01", step="month"),
        "paid": Booleans(nullable=True),
    }
)


def contract_rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {
            "age": int(rng.integers(-1, 11)) if rng.random() < 0.95 else None,
            "The Score": [0.5, 7.25, 99.5, -1.0, 100.0, 0.0, None][rng.integers(7)],
            "city": [*ODD, "elsewhere", None][rng.integers(len(ODD) + 2)],
            "day": dt.date(2023, 12, 30) + dt.timedelta(days=int(rng.integers(64))),
            "paid": [True, False, None][rng.integers(3)],
            "note": "not declared",
        }
        for _ in range(400)
    ]


def arrow_of(rows: list[dict[str, Any]]) -> Any:
    return pa.Table.from_pylist(rows)


def from_parquet(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    pa.parquet.write_table(arrow_of(rows), path / "we[i]rd *'name?.parquet")
    return path / "we[i]rd *'name?.parquet", None


def from_csv(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    pa.csv.write_csv(arrow_of(rows), path / "rows.csv")
    return str(path / "rows.csv"), None


def from_tsv_gz(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    options = pa.csv.WriteOptions(delimiter="\t")
    pa.csv.write_csv(arrow_of(rows), path / "rows.tsv", options)
    (path / "rows.tsv.gz").write_bytes(gzip.compress((path / "rows.tsv").read_bytes()))
    (path / "rows.tsv").unlink()
    return path / "rows.tsv.gz", None


def from_ndjson(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    (path / "rows.ndjson").write_text("\n".join(json.dumps(row, default=str) for row in rows))
    return path / "rows.ndjson", None


def from_json(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    (path / "rows.json").write_text(json.dumps(rows, default=str))
    return path / "rows.json", None


def from_database(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    with duckdb.connect(path / "it's.duckdb") as connection:
        connection.register("given", arrow_of(rows))
        connection.execute("""CREATE TABLE "my ""rows""" + '" AS FROM given; CREATE TABLE other(x INTEGER)')
    return path / "it's.duckdb", 'my "rows'


def from_arrow(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows), None


def from_reader(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows).to_reader(), None


def from_pandas(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows).to_pandas(), None


def from_polars(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    polars = pytest.importorskip("polars")
    return polars.from_arrow(arrow_of(rows)), None


SOURCES = [
    from_parquet,
    from_csv,
    from_tsv_gz,
    from_ndjson,
    from_json,
    from_database,
    from_arrow,
    from_reader,
    from_pandas,
    from_polars,
]
Opener = Callable[..., Table]
