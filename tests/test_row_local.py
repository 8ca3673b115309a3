"""No record changes how another one is read, in any kind of source; docs/proofs/table.md says why."""

import datetime as dt
import gzip
import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laprasdp import (
    Bins,
    Booleans,
    Categories,
    Dates,
    Dialect,
    Domain,
    Integers,
    PrivacyUnit,
)
from laprasdp.data.duckdb import DuckDBTable

EXAMPLES = int(os.environ.get("LAPRAS_ROW_EXAMPLES", "210"))
SECRET = "s3cr3t"
NAMES = ("n", "who", "day", "x", "ok")
NEAR = 2**53
DOMAIN = Domain(
    n=Integers(NEAR - 1, NEAR + 1),
    who=Categories(["F", "M", ""], other=True, nullable=True),
    day=Dates("2020-01-01", "2020-12-31", step="month", nullable=True),
    x=Bins([-1, 0, 0.5, 100], nullable=True),
    ok=Booleans(nullable=True),
)


def counts(table: DuckDBTable) -> list[Counter[tuple[int, ...]]]:
    found = []
    for axes in [(), *((i,) for i in range(5)), (0, 1, 2, 3, 4)]:
        marginal = table.marginal(axes)
        levels = zip(*(marginal.levels[a].tolist() for a in axes), strict=True) if axes else [()]
        found.append(Counter(dict(zip(levels, marginal.counts.tolist(), strict=True))))
    return found


def check_neighbours(base: Any, more: Any, unit: PrivacyUnit, dialect: Dialect | None = None) -> None:
    """Both open, and every marginal moves by what one record may move it by."""
    tables = [
        DuckDBTable(source, DOMAIN, unit=unit, key="k", dialect=dialect, name="t", table=table)
        for source, table in (base, more)
    ]
    for before, after in zip(*map(counts, tables), strict=True):
        moved = [abs(before[cell] - after[cell]) for cell in before | after]
        # a record more of a person with many rows may take the place of another of the same person
        assert sum(moved) <= (1 if unit.column is None else 2)
        assert max(moved, default=0) <= unit.max_rows
    for table in tables:
        table.close()


# Texts

WORDS = [
    "",
    "0",
    "1",
    "F",
    "M",
    "'F'",
    '"F"',
    '"F',
    'F"',
    '""',
    '"a""b"',
    '"a"b"',
    "'",
    '"',
    "a;b",
    "a\tb",
    "a|b",
    '"a,b"',
    str(NEAR),
    str(NEAR + 1),
    f"{NEAR}.0",
    f"{NEAR + 1}.5",
    "9007199254740993e0",
    "0.5",
    ".5",
    "1e999",
    "-1e-999",
    "NaN",
    "Infinity",
    "9" * 5000,
    "1_0",
    "0x10",
    "1,5",
    "2020-04-03",
    "03/04/2020",
    "12/31/2020",
    "2020-02-30",
    "2020-04-03T10:00:00Z",
    "2020-04-03 25:00",
    "infinity",
    "epoch",
    "20200403",
    "10:00",
    "true",
    "T",
    "0",
    "yes",
    "nul\0l",
    "\ufeff",
    "é",
    "e\u0301",
    "\r",
    "a\rb",
    " 1 ",
    "NULL",
    "\\N",
    "null",
    "{}",
    "[]",
    "#",
    "\\",
    "\x1a",
    SECRET,
    "x" * 70_000,
    "2020-04-03,F",
    "//",
]
word = st.sampled_from(WORDS) | st.text(max_size=6).filter(lambda text: "\n" not in text)
good = st.tuples(
    st.sampled_from([str(NEAR - 1), str(NEAR), str(NEAR + 1)]),
    st.sampled_from(["F", "M", "O", ""]),
    st.dates(dt.date(2019, 12, 1), dt.date(2021, 1, 31)).map(str) | st.just(""),
    st.sampled_from(["-0.5", "0.25", "99", "100", ""]),
    st.sampled_from(["true", "f", "1", ""]),
)
odd_bytes = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b""))


def fields(delimiter: str) -> st.SearchStrategy[bytes]:
    usual = good.map(lambda row: delimiter.join(row))
    other = st.lists(word, max_size=7).map(lambda row: delimiter.join(row))
    placed = st.tuples(good, st.integers(0, 4), word).map(
        lambda drawn: delimiter.join([*drawn[0][: drawn[1]], drawn[2], *drawn[0][drawn[1] + 1 :]])
    )
    text = (usual | placed | other).map(lambda line: line.encode("utf-8", "replace").replace(b"\n", b""))
    return text | odd_bytes | st.just(b"\xef\xbb\xbf" + f"{NEAR}{delimiter}F".encode()) | st.just(b"PAR1" * 4)


scalars = (
    word
    | st.integers()
    | st.floats()
    | st.none()
    | st.booleans()
    | st.sampled_from([NEAR, NEAR + 1, 10**400])
)
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(word, scalars, max_size=2)
SPELLED = [
    "1.0",
    "-0",
    "1e400",
    "9" * 5000,
    f"{NEAR + 1}",
    f"{NEAR + 1}.0",
    '"\\ud800"',
    '"\\u0000"',
    "NaN",
    '"a\\/b"',
]


@st.composite
def json_record(draw: st.DrawFn) -> bytes:
    """A JSON value: usually an object with our keys, now and then another."""
    kind = draw(st.integers(0, 5))
    if kind == 0:
        whole = draw(
            st.sampled_from(["[" * 3000 + "]" * 3000, "[]", "{}", "1", '"x"', '{"n":1,"n":2}', "null"])
        )
        return whole.encode()
    row: list[Any] = [json.dumps(value) for value in draw(good)]
    if kind >= 2:
        row[draw(st.integers(0, 4))] = draw(values.map(json.dumps) | st.sampled_from(SPELLED))
    keys = draw(st.sampled_from([NAMES, [name.upper() for name in NAMES], [*NAMES[:4], "n"]]))
    pairs = ",".join(f"{json.dumps(key)}: {value}" for key, value in zip(keys, row, strict=True))
    return ("{" + pairs + "}").encode()


json_line = (
    json_record()
    | odd_bytes
    | st.sampled_from([b'{"n": ', b'{"who": "F', b"[", b"]", b"", b" ", b"DUCKDUCKDUCK"])
)


def header(delimiter: str) -> bytes:
    return delimiter.join(NAMES).encode()


def lines(*before: bytes) -> Callable[[Sequence[bytes]], bytes]:
    return lambda records: b"\n".join([*before, *records, b""])


TEXTS: dict[str, tuple[st.SearchStrategy[bytes], Callable[[Sequence[bytes]], bytes]]] = {
    "csv": (fields(","), lines(header(","))),
    "tsv": (fields("\t"), lines(header("\t"))),
    "csv.gz": (fields(","), lambda records: gzip.compress(lines(header(","))(records), 1)),
    "tsv.gz": (fields("\t"), lambda records: gzip.compress(lines(header("\t"))(records), 1)),
    "jsonl": (json_line, lines()),
    "ndjson.gz": (json_line, lambda records: gzip.compress(lines()(records), 1)),
    "json": (json_record(), lambda records: b"[" + b",\n".join(records) + b"]"),
}

# Types

moments = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [sign * 2**n for n in (62, 61) for sign in (1, -1)]
    + [2**63 - 1, 2**63 - 160, -(2**63), -(2**63) + 1, 1_585_900_000 * 10**6]
)
blobs = st.sampled_from(
    [b"F", b"M", b"", b"\xff", b"F\xc3", b"\0", SECRET.encode(), b"\xed\xa0\x80"]
) | st.binary(max_size=4)
typed_row = st.tuples(
    st.none() | st.integers(NEAR - 2, NEAR + 2) | st.integers(-(2**63), 2**63 - 1),
    st.none() | blobs,
    st.none() | moments,
    st.none() | st.floats() | st.floats(-2, 2),
    st.none() | st.booleans(),
)


def arrow(rows: Sequence[tuple[Any, ...]], unit: str = "s") -> pa.Table:
    n, who, day, x, ok = zip(*rows, strict=True) if rows else ((),) * 5
    columns = [
        pa.array(n, pa.int64()),
        pa.array(who, pa.binary()).view(pa.string()),
        pa.array(day, pa.int64()).view(pa.timestamp(unit)),
        pa.array(x, pa.float64()),
        pa.array(ok, pa.bool_()),
    ]
    return pa.table(columns, list(NAMES))


def in_parquet(folder: Path, rows: Sequence[tuple[Any, ...]], name: str) -> tuple[Any, str | None]:
    pa.parquet.write_table(arrow(rows, "us"), folder / f"{name}.parquet")
    return folder / f"{name}.parquet", None


def in_polars(_: Path, rows: Sequence[tuple[Any, ...]], __: str) -> tuple[Any, str | None]:
    polars = pytest.importorskip("polars")
    n, who, day, x, ok = zip(*rows, strict=True) if rows else ((),) * 5
    text = [None if value is None else value.decode("utf-8", "replace") for value in who]
    columns = {
        "n": polars.Series(n, dtype=polars.Int64),
        "who": polars.Series(text, dtype=polars.String),
        "day": polars.Series(day, dtype=polars.Int64).cast(polars.Datetime("us")),
        "x": polars.Series(x, dtype=polars.Float64),
        "ok": polars.Series(ok, dtype=polars.Boolean),
    }
    return polars.DataFrame(columns), None


def in_pandas(_: Path, rows: Sequence[tuple[Any, ...]], __: str) -> tuple[Any, str | None]:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {name: pandas.Series([row[i] for row in rows], dtype=object) for i, name in enumerate(NAMES)}
    ), None


def in_database(folder: Path, rows: Sequence[tuple[Any, ...]], name: str) -> tuple[Any, str | None]:
    with duckdb.connect(folder / f"{name}.duckdb") as made:
        made.execute("CREATE TABLE t (n HUGEINT, who VARCHAR, day TIMESTAMP_S, x DOUBLE, ok BOOLEAN)")
        for n, who, day, x, ok in rows:
            text = None if who is None else who.decode("utf-8", "replace")
            made.execute(
                "INSERT INTO t VALUES (?, ?, try(make_timestamp(?)::TIMESTAMP_S), ?, ?)",
                [n, text, day, x, ok],
            )
    return folder / f"{name}.duckdb", "t"


anything = (
    scalars
    | st.dates()
    | st.datetimes()
    | st.binary(max_size=3)
    | st.decimals()
    | st.lists(scalars, max_size=2)
    | st.sampled_from(
        [NEAR + 1, 0.5, Decimal("1E+400"), 10**5000, "\ud800", dt.datetime.max, float("nan"), dt.date.min]
    )
)
object_row = st.tuples(good, st.integers(0, 4), anything).map(
    lambda drawn: (*drawn[0][: drawn[1]], drawn[2], *drawn[0][drawn[1] + 1 :])
)
TYPED: dict[str, tuple[st.SearchStrategy[Any], Callable[..., tuple[Any, str | None]]]] = {
    "parquet": (typed_row, in_parquet),
    "arrow": (typed_row, lambda folder, rows, name: (arrow(rows), None)),
    "pandas": (object_row | st.tuples(*[anything] * 5), in_pandas),
    "polars": (typed_row, in_polars),
    "duckdb": (typed_row, in_database),
}
KINDS = [*TEXTS, *TYPED]


@pytest.mark.parametrize("kind", KINDS)
def test_one_record_more_moves_each_marginal_by_one(kind: str, tmp_path: Path) -> None:
    """Wherever the record stands, and whatever it and the others hold."""
    number = itertools.count()
    records, make = (TEXTS | TYPED)[kind]

    def source(content: list[Any]) -> tuple[Any, str | None]:
        name = f"t{next(number)}"
        if kind in TYPED:
            return make(tmp_path, content, name)
        (tmp_path / f"{name}.{kind}").write_bytes(make(content))
        return tmp_path / f"{name}.{kind}", None

    @settings(
        max_examples=max(1, EXAMPLES // len(KINDS)),
        deadline=None,
        derandomize=EXAMPLES == 210,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(records, max_size=6), records, st.integers(0, 6), st.sampled_from([None, 1, 2]))
    def one_more(base: list[Any], record: Any, place: int, most: int | None) -> None:
        more = [*base[:place], record, *base[place:]]
        unit = PrivacyUnit() if most is None else PrivacyUnit("who", most)
        check_neighbours(source(base), source(more), unit)
        for path in tmp_path.iterdir():
            path.unlink()

    one_more()


@pytest.mark.parametrize("multiline", [False, True])
def test_records_are_read_alike_wherever_the_file_is_cut_into_pieces(
    multiline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from laprasdp.data import records

    rng = random.Random(3)
    quoted = '"a,\nb""c"' if multiline else '"a,b""c"'
    rows = [
        f"{rng.choice([NEAR, NEAR + 1])},{rng.choice(['F', 'M', quoted])},2020-04-03,0.25,t\r\n"
        for _ in range(20)
    ]
    rows[7] = f"{NEAR},F,2020-04-03,0.25," + "t" * 500 + "\n"
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + header(",") + b"\n" + "".join(rows).encode())
    found = []
    for piece in (2**24, 1, 7, 64):
        monkeypatch.setattr(records, "_PIECE", piece)
        table = DuckDBTable(tmp_path / "t.csv", DOMAIN, dialect=Dialect(multiline=multiline))
        found.append(counts(table))
    assert found[0][0] == {(): 19}
    assert all(each == found[0] for each in found)
