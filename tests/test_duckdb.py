"""Data sources: one contract for every implementation, against brute force in plain Python."""

import datetime as dt
import gzip
import hashlib
import itertools
import json
import math
import os
import threading
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laprasdp.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers
from laprasdp.data import duckdb as module
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.schema import columns, kind_of, suggest
from laprasdp.data.table import Table
from laprasdp.domain import Domain
from laprasdp.errors import DataError, DomainError
from laprasdp.marginal import Marginal
from laprasdp.privacy.unit import PrivacyUnit

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
            counts[tuple(levels[a] for a in axes)] += 1  # type: ignore[misc]
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


def _parquet(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    pa.parquet.write_table(arrow_of(rows), path / "we[i]rd *'name?.parquet")
    return path / "we[i]rd *'name?.parquet", None


def _csv(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    pa.csv.write_csv(arrow_of(rows), path / "rows.csv")
    return str(path / "rows.csv"), None


def _tsv_gz(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    options = pa.csv.WriteOptions(delimiter="\t")
    pa.csv.write_csv(arrow_of(rows), path / "rows.tsv", options)
    (path / "rows.tsv.gz").write_bytes(gzip.compress((path / "rows.tsv").read_bytes()))
    (path / "rows.tsv").unlink()
    return path / "rows.tsv.gz", None


def _ndjson(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    (path / "rows.ndjson").write_text("\n".join(json.dumps(row, default=str) for row in rows))
    return path / "rows.ndjson", None


def _json(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    (path / "rows.json").write_text(json.dumps(rows, default=str))
    return path / "rows.json", None


def _database(path: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    with duckdb.connect(path / "it's.duckdb") as connection:
        connection.register("given", arrow_of(rows))
        connection.execute("""CREATE TABLE "my ""rows""" + '" AS FROM given; CREATE TABLE other(x INTEGER)')
    return path / "it's.duckdb", 'my "rows'


def _arrow(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows), None


def _reader(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows).to_reader(), None


def _pandas(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    return arrow_of(rows).to_pandas(), None


def _polars(_: Path, rows: list[dict[str, Any]]) -> tuple[Any, str | None]:
    polars = pytest.importorskip("polars")
    return polars.from_arrow(arrow_of(rows)), None


SOURCES = [_parquet, _csv, _tsv_gz, _ndjson, _json, _database, _arrow, _reader, _pandas, _polars]
Opener = Callable[..., Table]


@pytest.fixture(params=[*SOURCES], ids=lambda source: source.__name__[1:])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the given rows under a domain and a privacy unit."""

    def open_rows(rows: list[dict[str, Any]], domain: Domain, **kwargs: Any) -> Table:
        source, table = request.param(tmp_path, rows)
        return DuckDBTable(source, domain, table=table, **kwargs)

    return open_rows


def test_contract_marginals_equal_brute_force(opener: Opener) -> None:
    rows = contract_rows()
    table = opener(rows, DOMAIN, name="visits")
    assert table.name == "visits"
    assert table.domain == DOMAIN
    assert table.unit == PrivacyUnit()
    total = int(table.marginal(()).counts[0])
    assert 0 < total < len(rows)
    check(table, rows)


def test_contract_no_row_in_the_domain(opener: Opener) -> None:
    table = opener(contract_rows(), Domain(age=Integers(1000, 1001)))
    assert as_dict(table.marginal(()), ()) == {(): 0}
    assert as_dict(table.marginal((0,)), (0,)) == {}


def test_contract_person_keeps_at_most_k_rows(opener: Opener) -> None:
    rows = [row | {"who": f"p{i % 37}" if i % 11 else None} for i, row in enumerate(contract_rows())]
    domain = Domain(age=Integers(0, 9), paid=Booleans(nullable=True))
    unit = PrivacyUnit("WHO", 3)
    inside: Counter[str] = Counter()
    for row in rows:
        if row["who"] is not None and level_of(domain["age"], row["age"]) is not None:
            inside[row["who"]] += 1
    assert max(inside.values()) > 3
    table = opener(rows, domain, unit=unit)
    assert table.unit == unit
    assert table.marginal(()).counts[0] == sum(min(3, n) for n in inside.values())


def test_contract_arrays_are_shared_and_read_only(opener: Opener) -> None:
    table = opener(contract_rows(), DOMAIN)
    first = table.marginal((0, 2))
    assert table.marginal((0, 2)) is first
    assert not first.counts.flags.writeable
    assert not any(column.flags.writeable for column in first.levels.values())
    for axes in [(2, 0), (0, 0), (5,), (-1,)]:
        with pytest.raises(DomainError, match="not ascending positions among 5"):
            table.marginal(axes)


# Values

NEAR_ONE = Decimal("1." + "0" * 36 + "1")
numbers = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "int64": (pa.int64(), st.integers(-20, 20) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1])),
    "uint64": (pa.uint64(), st.integers(0, 20) | st.sampled_from([2**64 - 1, 2**63])),
    "float": (pa.float32(), st.floats(width=32) | st.integers(-9, 9).map(float)),
    "double": (pa.float64(), st.floats() | st.integers(-9, 9).map(float)),
    "decimal": (pa.decimal128(6, 2), st.decimals(-9999, 9999, places=2)),
    "small decimal": (pa.decimal128(38, 37), st.decimals(-9, 9, places=2) | st.just(NEAR_ONE)),
    "big decimal": (pa.decimal128(38, 0), st.integers(-9, 9).map(Decimal) | st.just(Decimal(10**37))),
}  # fmt: skip
ordered = st.sampled_from(
    [
        Integers(-5, 7),
        Integers(-5, 7, nullable=True),
        Integers(-(2**63), -(2**63) + 3),
        Integers(2**63 - 2, 2**63 + 2),
        Integers(2**64 - 2, 2**64 + 2),
        Integers(2**53 - 2, 2**53 + 2),
        Integers(10**37 - 1, 10**37 + 1),
        Integers(10**60, 10**60 + 1),
        Bins([-10, 0, 0.5, 3.25, 8]),
        Bins([-3, 0, 7], whole=True, nullable=True),
        Bins([-1e300, -4, 2, 1e300], nullable=True),
        Bins([-(10**40), 0, 10**40]),
        Bins(range(-150, 150)),
        Bins([x / 4 for x in range(-400, 400)], nullable=True),
        Bins([-1e300, *range(-100, 100), 1e300]),
    ]
)


@settings(SOME, max_examples=150)
@given(kind=st.sampled_from(sorted(numbers)), attribute=ordered, data=st.data())
def test_numbers_equal_brute_force(kind: str, attribute: Attribute, data: st.DataObject) -> None:
    arrow, values = numbers[kind]
    drawn = data.draw(st.lists(st.none() | values, max_size=25))
    table = pa.table({"x": pa.array(drawn, arrow)})
    domain = Domain(x=attribute)
    check(DuckDBTable(table, domain), [{"x": value} for value in table["x"].to_pylist()])


def test_single_precision_means_what_duckdb_means() -> None:
    values = pa.table({"x": pa.array([0.1, 0.7, 0.69999], pa.float32())})
    counts = DuckDBTable(values, Domain(x=Bins([0, 0.1, 0.7, 1]))).marginal((0,))
    with duckdb.connect() as connection:
        connection.register("t", values)
        direct = connection.execute("SELECT COUNT(*) FROM t WHERE x >= 0.1 AND x < 0.7").fetchall()
    assert as_dict(counts, (0,)) == {(1,): direct[0][0], (2,): 3 - direct[0][0]} == {(1,): 2, (2,): 1}


texts = st.text(max_size=4) | st.sampled_from([*ODD, "", "a\0b", "%", "A", "a"])


@SOME
@given(data=st.data(), other=st.booleans(), nullable=st.booleans())
def test_texts_equal_brute_force(data: st.DataObject, other: bool, nullable: bool) -> None:
    names = data.draw(st.lists(texts, min_size=1, max_size=5, unique=True))
    drawn = data.draw(st.lists(st.none() | texts | st.sampled_from(names), max_size=25))
    domain = Domain({"a\"b' ☃": Categories(names, other=other, nullable=nullable)})
    rows = [{"a\"b' ☃": value} for value in drawn]
    check(DuckDBTable(pa.table({"a\"b' ☃": pa.array(drawn, pa.string())}), domain), rows)


def test_text_that_no_file_can_hold_and_collations(tmp_path: Path) -> None:
    assert DuckDBTable(pa.table({"x": ["a"]}), Domain(x=Categories(["\ud800", "a"]))).marginal((0,)).levels[
        0
    ].tolist() == [1]
    with duckdb.connect(tmp_path / "c.duckdb") as connection:
        connection.execute(
            "CREATE TABLE t(x VARCHAR COLLATE NOCASE); INSERT INTO t VALUES ('a'), ('A'), ('b')"
        )
    domain = Domain(x=Categories(["A", "a"], other=True))
    for unit in (PrivacyUnit(), PrivacyUnit("x", 1)):
        table = DuckDBTable(tmp_path / "c.duckdb", domain, table="t", unit=unit)
        assert as_dict(table.marginal((0,)), (0,)) == {(0,): 1, (1,): 1, (2,): 1}


days = st.dates(dt.date(2023, 12, 1), dt.date(2024, 6, 1)) | st.sampled_from([dt.date.min, dt.date.max])
steps = st.sampled_from(
    [
        Dates("2024-01-31", "2024-05-15", step="month"),
        Dates("2024-01-01", "2024-05-15", nullable=True),
        Dates("1900-01-01", "2024-03-01", step="quarter"),
        Dates("1969-12-31", "1970-01-01"),
        Dates("0001-01-01", "9990-12-31", step="year"),
    ]
)


@SOME
@given(drawn=st.lists(st.none() | days, max_size=20), attribute=steps, hour=st.integers(0, 23))
def test_dates_equal_brute_force(drawn: list[dt.date | None], attribute: Dates, hour: int) -> None:
    rows: list[dict[str, Any]] = [{"x": day} for day in drawn]
    domain = Domain(x=attribute)
    check(DuckDBTable(pa.table({"x": pa.array(drawn, pa.date32())}), domain), rows)
    late = dt.timedelta(hours=hour, minutes=59)
    moments = [None if d is None else dt.datetime(d.year, d.month, d.day) + late for d in drawn]
    for unit in ("s", "ms", "us"):
        check(DuckDBTable(pa.table({"x": pa.array(moments, pa.timestamp(unit))}), domain), rows)


def test_nanoseconds_and_infinite_dates() -> None:
    edge = np.array(
        ["1969-12-31T23:59:59.999999999", "1970-01-01", "2262-04-11T23:47", "1677-09-22"], "M8[ns]"
    )
    table = pa.table({"x": pa.array(edge)})
    near = DuckDBTable(table, Domain(x=Dates("1969-12-31", "1970-01-01"))).marginal((0,))
    assert as_dict(near, (0,)) == {(0,): 1, (1,): 1}
    wide = DuckDBTable(table, Domain(x=Dates("0001-01-01", "9990-12-31", step="year"))).marginal(())
    assert wide.counts.tolist() == [4]
    with duckdb.connect() as connection:
        for kind in ("DATE", "TIMESTAMP"):
            ends_of_time = "(VALUES ('infinity'), ('-infinity'), ('2024-01-01')) t(x)"
            query = f"SELECT CAST(x AS {kind}) AS x FROM {ends_of_time}"
            arrow = connection.execute(query).to_arrow_table()
            ends = DuckDBTable(arrow, Domain(x=Dates("0001-01-01", "9990-12-31", step="year")))
            assert ends.marginal(()).counts.tolist() == [1]


def test_columns_that_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "blank.csv").write_text("age,city,day,ok\n,,,\n,,,\n")
    (tmp_path / "header.csv").write_text("age,city,day,ok\n")
    (tmp_path / "blank.json").write_text('[{"age":null,"city":null,"day":null,"ok":null}]')
    for nullable in (False, True):
        domain = Domain(
            age=Integers(0, 3, nullable=nullable),
            city=Categories(["x"], other=True, nullable=nullable),
            day=Dates("2024-01-01", "2024-01-02", nullable=nullable),
            ok=Booleans(nullable=nullable),
        )
        for source, rows in [
            (tmp_path / "blank.csv", 2),
            (tmp_path / "header.csv", 0),
            (tmp_path / "blank.json", 1),
            (pa.table({name: pa.nulls(3) for name in domain}), 3),
            (pa.table({name: pa.nulls(0) for name in domain}), 0),
        ]:
            assert DuckDBTable(source, domain).marginal(()).counts.tolist() == [rows * nullable]


def test_csv_lines_that_cannot_be_read_lie_outside(tmp_path: Path) -> None:
    lines = ["age,zip,free"] + ["1,007,x"] * 30_000 + ["oops,007,x", "2,7,y", "3,007,z,extra", "3,007,"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = DuckDBTable(tmp_path / "t.csv", Domain(age=Integers(0, 9), zip=Categories(["007", "7"])))
    assert as_dict(table.marginal((0, 1)), (0, 1)) == {(1, 0): 30_000, (2, 1): 1, (3, 0): 1}
    (tmp_path / "t.csv").write_text("age;born\n1;31/12/2023\n2;01/01/2024;x\n3;01/01/2024\n")
    table = DuckDBTable(
        tmp_path / "t.csv", Domain(age=Integers(0, 9), born=Dates("2023-12-31", "2024-01-01"))
    )
    assert as_dict(table.marginal((0, 1)), (0, 1)) == {(1, 0): 1, (3, 1): 1}


def test_pandas_nan_is_null_and_arrow_nan_lies_outside() -> None:
    pandas = pytest.importorskip("pandas")
    domain = Domain(x=Bins([0, 1, 2], nullable=True))
    assert as_dict(DuckDBTable(pandas.DataFrame({"x": [0.5, math.nan]}), domain).marginal((0,)), (0,)) == {
        (0,): 1,
        (2,): 1,
    }
    assert as_dict(DuckDBTable(pa.table({"x": [0.5, math.nan]}), domain).marginal((0,)), (0,)) == {(0,): 1}


# Privacy unit


def kept(rows: list[tuple[str | None, int]], most: int, key: str | None = None) -> Counter[int]:
    table = pa.table({"who": pa.array([p for p, _ in rows], pa.string()), "x": [x for _, x in rows]})
    with pytest.MonkeyPatch.context() as patch:
        if key is not None:
            patch.setattr(module.secrets, "token_hex", lambda size: key * 2 * size)
        found = DuckDBTable(table, Domain(x=Integers(0, 5)), unit=PrivacyUnit("who", most)).marginal((0,))
    return Counter({levels[0]: n for levels, n in as_dict(found, (0,)).items()})


people = st.lists(st.tuples(st.sampled_from(["a", "b|1", "c", None]), st.integers(-1, 6)), max_size=25)


@settings(SOME, max_examples=30)
@given(rows=people, most=st.integers(1, 4), data=st.data())
def test_what_is_kept_depends_on_own_rows_only(
    rows: list[tuple[str | None, int]], most: int, data: st.DataObject
) -> None:
    together = kept(rows, most, "5")
    apart: Counter[int] = Counter()
    for person in {p for p, _ in rows} - {None}:
        own = kept([row for row in rows if row[0] == person], most, "5")
        assert own.total() == min(most, sum(p == person and 0 <= x <= 5 for p, x in rows))
        apart += own
    assert together == apart
    assert kept(data.draw(st.permutations(rows)), most, "5") == together


def test_the_key_matters_and_each_object_has_its_own() -> None:
    rows: list[tuple[str | None, int]] = [(f"p{i}", x) for i in range(40) for x in range(6)]
    assert len({tuple(sorted(kept(rows, 1).items())) for _ in range(4)}) > 1
    assert len({tuple(sorted(kept(rows, 1, key).items())) for key in "0123"}) > 1
    assert kept(rows, 1, "0") == kept(rows, 1, "0")
    # no level is favoured by all persons alike: 240 people keep one of six rows, each level near 40
    many: list[tuple[str | None, int]] = [(f"p{i}", x) for i in range(240) for x in range(6)]
    assert max(kept(many, 1).values()) < 90  # false alarm below 1e-13


def test_persons_of_every_type_and_odd_names() -> None:
    persons = {
        "BIGINT": [1, 1, 2, None],
        "VARCHAR": ["", "", "a|b", None],
        "DATE": [dt.date.min, dt.date.min, dt.date.max, None],
        "DECIMAL(4,2)": [Decimal("1.10"), Decimal("1.1"), Decimal("-2"), None],
        "BOOLEAN": [True, True, False, None],
    }
    for kind, values in persons.items():
        for column in ("who", "person", "copy", "place", "rows", "key", "a0", "value", "level", "s"):
            table = pa.table({column: pa.array(values), "x": [1, 2, 3, 4]})
            assert columns(table)[0][1].startswith(kind[:7])
            opened = DuckDBTable(table, Domain(x=Integers(0, 9)), unit=PrivacyUnit(column, 1))
            assert opened.marginal(()).counts.tolist() == [2]
    table = pa.table({"s": [1, 1, 2]})
    assert DuckDBTable(table, Domain(s=Integers(0, 9)), unit=PrivacyUnit("s", 1)).marginal(()).counts == [2]


def test_file_order_would_be_seen_by_these_tests() -> None:
    """Negative control: dropping by file order depends on the order."""

    def by_order(rows: list[tuple[str, int]]) -> Counter[int]:
        first = dict(reversed(rows))
        return Counter(first.values())

    rows = [("a", 1), ("a", 2)]
    assert by_order(rows) != by_order(rows[::-1])


# The source stays as it is


def stamp(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


@pytest.mark.parametrize("source", [_parquet, _csv, _json, _database], ids=lambda s: s.__name__[1:])
def test_the_file_and_its_folder_stay_untouched(source: Any, tmp_path: Path, monkeypatch: Any) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "cwd"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    rows = contract_rows()
    path, table = source(folder, rows)
    before = stamp(folder)
    folder.chmod(0o555)
    try:
        opened = DuckDBTable(path, DOMAIN, table=table)
        opened.marginal((0, 1))
        Path(path).write_bytes(b"changed")  # a snapshot: later answers come from the same rows
        check(opened, rows)
    finally:
        folder.chmod(0o755)
    Path(path).unlink()
    assert set(before) == {Path(path).name}
    assert list(folder.iterdir()) == [] == list(elsewhere.iterdir())
    path, table = source(folder, rows)
    before = stamp(folder)
    with DuckDBTable(path, DOMAIN, table=table) as opened:
        opened.marginal((0, 1, 2))
        assert stamp(folder) == before
    columns(path, table)
    assert stamp(folder) == before


def test_the_snapshot_reaches_nothing_else() -> None:
    table = DuckDBTable(DATASETS / "adult.parquet", Domain(age=Integers(17, 90)))
    connection = table._connection
    assert connection is not None
    assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("cells",)]
    with pytest.raises(duckdb.Error):
        connection.execute("FROM read_parquet(?)", [str(DATASETS / "adult.parquet")])


def test_threads_get_the_same_answers_and_closing_is_final() -> None:
    table = DuckDBTable(arrow_of(contract_rows()), DOMAIN)
    wanted = brute(DOMAIN, contract_rows(), (0, 2, 3))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(as_dict(table.marginal((0, 2, 3)), (0, 2, 3))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8
    table.close()
    table.close()
    with pytest.raises(DataError, match="table data is closed"):
        table.marginal(())


# Real tables


def test_adult() -> None:
    table = DuckDBTable(
        DATASETS / "adult.parquet", Domain(AGE=Integers(17, 90), sex=Categories(["Female", "Male"]))
    )
    assert table.name == "adult"
    assert table.marginal(()).counts.tolist() == [48842]
    assert as_dict(table.marginal((1,)), (1,)) == {(0,): 16192, (1,): 32650}
    assert len(table.marginal((0,)).counts) == 74


def test_flights() -> None:
    path = DATASETS / "flights_2015jan_idebench.parquet"
    raw = pa.parquet.read_table(path).to_pylist()
    names = {key: sorted({row[key] for row in raw}) for key in ("UNIQUE_CARRIER", "ORIGIN_STATE_ABR")}
    assert [len(values) for values in names.values()] == [14, 54]
    domain = Domain(
        UNIQUE_CARRIER=Categories(names["UNIQUE_CARRIER"]),
        ORIGIN_STATE_ABR=Categories(names["ORIGIN_STATE_ABR"]),
        ARR_DELAY=Bins([-100, -15, 0, 15, 60, 2000], whole=True, nullable=True),
        DISTANCE=Bins(range(0, 5001, 20), whole=True),
    )
    table = DuckDBTable(path, domain)
    assert as_dict(table.marginal((0, 2)), (0, 2)) == brute(domain, raw, (0, 2))
    assert as_dict(table.marginal((1, 3)), (1, 3)) == brute(domain, raw, (1, 3))


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "none.csv: there is no such file"),
        ("empty.csv", b"", "empty.csv is an empty file, not a table"),
        ("x.parquet", b"nonsense" * 9, "x.parquet is not a readable Parquet file"),
        ("x.parquet", b"PAR1" + b"nonsense" * 9, "x.parquet is not a readable Parquet file"),
        ("x.json", b"{nonsense", "x.json is not a readable JSON file"),
        ("x.json", b"[]", "x.json holds no objects with named fields"),
        ("x.csv", bytes(range(256)) * 9, "x.csv"),
        ("x.duckdb", b"nonsense" * 9, "x.duckdb is not a readable DuckDB database"),
        ("x.duckdb", b"nonsenseDUCK" * 9, "x.duckdb"),
        ("x.db", b"SQLite format 3\0" * 9, "x.db is an SQLite database; what is read: Parquet"),
        ("x.xlsx", b"PK" * 9, r"x.xlsx is of no known kind; what is read: Parquet \(.parquet\), CSV"),
        ("noending", b"a,b\n1,2\n", "noending is of no known kind"),
    ],
)
def test_files_that_are_no_table(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        DuckDBTable(tmp_path / name, Domain(a=Integers(0, 9)))
    assert "\n" not in str(caught.value)
    assert "nonsense" not in str(caught.value)


def test_paths_that_are_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(a=Integers(0, 9))
    with pytest.raises(DataError, match="is a directory; name one file"):
        DuckDBTable(tmp_path, domain)
    with pytest.raises(DataError, match="remote address"):
        DuckDBTable("https://example.org/a.csv", domain)
    with pytest.raises(DataError, match="cannot be opened"):
        DuckDBTable("a\0b.csv", domain)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="not a regular file"):
        DuckDBTable(tmp_path / "pipe.csv", domain)
    with pytest.raises(DataError, match="a dict is no table: give a path"):
        DuckDBTable({"a": 1}, domain)
    with pytest.raises(DataError, match="leave out table t"):
        DuckDBTable(pa.table({"a": [1]}), domain, table="t")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"a.csv is a CSV file, one table by itself: leave out table t"):
        DuckDBTable(tmp_path / "a.csv", domain, table="t")

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"a.csv cannot be read: permission denied"):
        DuckDBTable(tmp_path / "a.csv", domain)


@pytest.mark.parametrize(
    "column", ["who", "person", "a0", "level", "value", "rows", "s", "map0", "copy", "a b"]
)
def test_column_names_never_collide_with_ours(column: str, tmp_path: Path) -> None:
    pa.parquet.write_table(
        pa.table({column: [1, 1, 2, 300], "n": ["x", "y", "x", "x"]}), tmp_path / "t.parquet"
    )
    domain = Domain({column: Bins(range(200)), "n": Categories(["x", "y"])})
    for unit, total in [(PrivacyUnit(), 3), (PrivacyUnit(column, 1), 2), (PrivacyUnit("n", 1), 2)]:
        assert DuckDBTable(tmp_path / "t.parquet", domain, unit=unit).marginal(()).counts == [total]


def test_databases(tmp_path: Path) -> None:
    path, domain = tmp_path / "shop.db", Domain(a=Integers(0, 9))
    with duckdb.connect(path) as connection:
        with pytest.raises(DataError, match=r"shop\.db"):
            DuckDBTable(path, domain, table="t")
        connection.execute("CREATE TABLE Orders(a INTEGER); INSERT INTO Orders VALUES (1), (2), (77)")
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t(a INTEGER); CREATE VIEW v AS FROM Orders WHERE a < 2"
        )
    with pytest.raises(DataError, match=r"shop.db is a database: name a table; it has Orders, v, s.t"):
        DuckDBTable(path, domain)
    with pytest.raises(DataError, match=r"shop.db has no table missing; it has Orders, v, s.t"):
        DuckDBTable(path, domain, table="missing")
    totals = [DuckDBTable(path, domain, table=t).marginal(()).counts[0] for t in ("orders", "v", "s.t")]
    assert totals == [2, 1, 0]
    assert DuckDBTable(path, domain, table="orders").name == "Orders"
    with duckdb.connect(path) as connection:  # the snapshot holds no lock
        connection.execute("DROP TABLE s.t")


def test_columns_that_do_not_fit() -> None:
    table = pa.table(
        {
            "age": ["1"],
            "Born": pa.array([1], pa.timestamp("us", tz="UTC")),
            "blob": [b""],
            "list": [[1]],
            "n": [1],
            "f": [1.5],
        }
    )
    cases: list[tuple[Domain, str]] = [
        (Domain(age=Integers(0, 9)), "column age holds VARCHAR, which cannot be read as integers"),
        (Domain(age=Bins([0, 9])), "column age holds VARCHAR, which cannot be read as bins"),
        (Domain(age=Booleans()), "column age holds VARCHAR, which cannot be read as booleans"),
        (Domain(age=Dates("2024-01-01", "2024-01-02")), "column age holds VARCHAR, .* as dates"),
        (Domain(n=Categories(["1"])), "column n holds BIGINT, which cannot be read as categories"),
        (Domain(n=Booleans()), "column n holds BIGINT, which cannot be read as booleans"),
        (Domain(list=Integers(0, 9)), r"column list holds BIGINT\[\], which cannot be read as integers"),
        (Domain(born=Dates("2024-01-01", "2024-01-02")), "column Born holds .*depends on a time zone"),
        (Domain(ages=Integers(0, 9)), "the table has no column ages; the nearest is age"),
        (Domain(zzz=Integers(0, 9)), "the table has no column zzz; it has age, Born, blob, list, n, f"),
    ]
    for domain, message in cases:
        with pytest.raises(DataError, match=message):
            DuckDBTable(table, domain)
    for column, held in [("blob", "BLOB"), ("f", "DOUBLE"), ("Born", "TIMESTAMP WITH TIME ZONE")]:
        with pytest.raises(DataError, match=f"column {column} holds {held}, which cannot name a person"):
            DuckDBTable(table, Domain(n=Integers(0, 9)), unit=PrivacyUnit(column))
    with pytest.raises(DataError, match="has no privacy unit's column nn; the nearest is n"):
        DuckDBTable(table, Domain(n=Integers(0, 9)), unit=PrivacyUnit("nn"))


def test_case_tells_columns_apart_only_where_it_must(tmp_path: Path) -> None:
    table = pa.table({"Age": [1], "age": [2], "aGe_1": [3], "B": [4]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        found = [
            DuckDBTable(source, Domain({name: Integers(0, 9)})).marginal((0,)).levels[0].tolist()
            for name in ("Age", "age", "age_1", "b")
        ]
        assert found == [[1], [2], [3], [4]]
        with pytest.raises(DataError, match=r"AGE could be several columns of .*: Age, age"):
            DuckDBTable(source, Domain(AGE=Integers(0, 9)))


def test_no_message_repeats_a_value(tmp_path: Path) -> None:
    lines = ["age"] + ["1"] * 30_000
    (tmp_path / "t.json").write_text("\n".join(json.dumps({"age": int(x)}) for x in lines[1:]))
    with open(tmp_path / "t.json", "a") as file:
        file.write('\n{"age": "SECRET"}\n{"age": SECRET')
    with pytest.raises(DataError) as caught:
        DuckDBTable(tmp_path / "t.json", Domain(age=Integers(0, 9)))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__


# The schema


def test_schema() -> None:
    found = suggest(DATASETS / "adult.parquet")
    assert found[:2] == [("age", "INTEGER", "integers"), ("workclass", "VARCHAR", "categories")]
    assert [(name, kind) for name, kind, _ in found] == columns(DATASETS / "adult.parquet")
    assert columns(DATASETS / "airport_state.csv") == [("airport", "VARCHAR"), ("state", "VARCHAR")]
    assert columns(pa.table({"a": [1], "b": pa.nulls(1)})) == [("a", "BIGINT"), ("b", "")]


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("UHUGEINT", "integers"),
        ("FLOAT", "bins"),
        ("DECIMAL(18,3)", "bins"),
        ("UUID", "categories"),
        ("ENUM('a', 'b(')", "categories"),
        ("TIMESTAMP_NS", "dates"),
        ("DATE", "dates"),
        ("BOOLEAN", "booleans"),
        ("TIMESTAMP WITH TIME ZONE", None),
        ("INTEGER[]", None),
        ("STRUCT(a INTEGER)", None),
        ("TIME", None),
    ],
)
def test_kind_of(spelled: str, kind: str | None) -> None:
    assert kind_of(spelled) == kind
