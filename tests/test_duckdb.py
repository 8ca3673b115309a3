"""Data sources: one contract for every implementation, against brute force in plain Python."""

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
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
from sources import (
    DOMAIN,
    ODD,
    SOME,
    SOURCES,
    Opener,
    as_dict,
    check,
    contract_rows,
    level_of,
)
from tries import tries

from laprasdp.data import scanned
from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.schema import columns
from laprasdp.data.table import Table
from laprasdp.errors import DomainError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain


@pytest.fixture(params=[*SOURCES], ids=lambda source: source.__name__)
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


@settings(SOME, max_examples=tries(40))
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
        tmp_path / "t.csv",
        Domain(age=Integers(0, 9), born=Dates("2023-12-31", "2024-01-01")),
        dialect=Dialect(delimiter=";", date_format="%d/%m/%Y"),
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
            patch.setattr(scanned.secrets, "token_hex", lambda size: key * 2 * size)
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
