"""DuckDB's own reader of Parquet: what it reads is what Arrow reads, or nothing is kept of it."""

import datetime as dt
import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from sources import as_dict

from laprasdp.cli.show import opening
from laprasdp.data import schema
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.parquet import read_whole
from laprasdp.data.patience import watcher
from laprasdp.data.schema import open_source
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

MICRO = 10**6
FIRST = int(dt.datetime(1, 1, 1, tzinfo=dt.UTC).timestamp()) * MICRO
LAST = int(dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC).timestamp()) * MICRO + MICRO - 1
ENDS = {width: [-(2 ** (width - 1)), -1, 0, 1, 100, 2 ** (width - 1) - 1] for width in (8, 16, 32, 64)}
WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
MOMENTS = [-(2**63), FIRST - 1, FIRST, -1, 0, LAST, LAST + 1, 2**63 - 1]
DAYS = [-(2**31), -1, 0, 18_262, 2**31 - 1]
TEXTS = ["", "a", "a\0", "é", "e\u0301", "\ufeff", "a "]
AROUND = Dates("1969-12-31", "1970-01-02")
DOUBLES = [-0.0, 0.0, 0.1, 0.3, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]


ROWS = PrivacyUnit()


def read_whole_in(path: Path) -> bool:
    """Whether DuckDB reads all columns of a file itself, to the end."""
    opened = open_source(path)
    try:
        if (whole := opened.whole(opened.columns)) is None:
            return False
        opened.connection.execute(f"SELECT COUNT(COLUMNS(*)) FROM {whole.sql('duckdb')}")
    finally:
        opened.close()
    return True


def both(
    path: Path, domain: Domain, monkeypatch: pytest.MonkeyPatch, unit: PrivacyUnit = ROWS
) -> tuple[dict[Any, int], dict[Any, int]]:
    """What is counted with DuckDB's reader, and what is counted without."""
    axes = tuple(range(len(domain)))
    found = []
    for reader in (read_whole, lambda *_: None):
        monkeypatch.setattr(schema, "read_whole", reader)
        with DuckDBTable(path, domain, unit=unit, key="k") as table:
            found.append(as_dict(table.marginal(axes), axes))
    return found[0], found[1]


def spliced(path: Path, values: pa.Array, kind: pa.DataType) -> None:
    """A file of values under the schema of another type that is written in as many bytes."""
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False, "store_schema": False}
    plain["store_decimal_as_integer"] = True
    parts = []
    for array in (values, pa.array([Decimal(0) if pa.types.is_decimal(kind) else 0] * len(values), kind)):
        pa.parquet.write_table(pa.table({"v": array}), path, **plain)
        data = path.read_bytes()
        (size,) = struct.unpack("<I", data[-8:-4])
        parts.append((data[: -8 - size], data[-8 - size :]))
    assert len(parts[0][0]) == len(parts[1][0])
    path.write_bytes(parts[0][0] + parts[1][1])


CASES: list[tuple[pa.Array, Any]] = [
    *[(pa.array(ENDS[kind.bit_width], kind), Integers(-2, 200)) for kind in WHOLE],
    (pa.array([0, 1, 2**8 - 1], pa.uint8()), Integers(0, 300)),
    (pa.array([0, 1, 2**16 - 1], pa.uint16()), Integers(2**16 - 9, 2**16)),
    (pa.array([0, 1, 2**32 - 1], pa.uint32()), Integers(2**32 - 9, 2**32)),
    (pa.array([0, 1, 2**64 - 1], pa.uint64()), Integers(2**64 - 9, 2**64)),
    (pa.array(DOUBLES, pa.float64()), Bins([-1, 0, 0.1, 0.3, 9])),
    (pa.array(DOUBLES, pa.float64()), Integers(-1, 1)),
    (pa.array([0.1, 0.3, 3e38, float("inf"), float("nan")], pa.float32()), Bins([0, 0.1, 0.3, 1e38])),
    (pa.array([True, False], pa.bool_()), Booleans()),
    (pa.array(TEXTS, pa.string()), Categories(["", "a", "é"], other=True)),
    (pa.array(["a", "b"] * 9, pa.large_string()).dictionary_encode(), Categories(["a"], other=True)),
    (pa.array(DAYS, pa.int32()).view(pa.date32()), Dates("1969-12-01", "2020-01-31")),
    (pa.array(MOMENTS, pa.int64()).view(pa.timestamp("us")), AROUND),
    (pa.array(MOMENTS, pa.int64()).view(pa.timestamp("ns")), AROUND),
    (pa.array([Decimal("-0.01"), Decimal("9.99")], pa.decimal128(9, 2)), Bins([-1, 0, 9.99, 10])),
    (pa.array([Decimal(10**37), Decimal(-1)], pa.decimal128(38, 0)), Integers(-2, 0)),
]  # fmt: skip


@pytest.mark.parametrize("stored", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}], ids=str)
def test_every_type_is_read_as_arrow_reads_it(
    stored: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an attribute, and as a person; every value another number of times, in rows of its own."""
    path, columns, rows = tmp_path / "t.parquet", {}, 0
    for i, (values, _) in enumerate(CASES):
        often = pa.concat_arrays([values[k:] for k in range(len(values))])
        columns[f"c{i}"] = (rows, often)
        rows += len(often)
    whole = {
        name: pa.concat_arrays([pa.nulls(at, own.type), own, pa.nulls(rows - at - len(own), own.type)])
        for name, (at, own) in columns.items()
    }
    pa.parquet.write_table(pa.table(whole), path, version="2.6", row_group_size=150, **stored)
    assert read_whole_in(path)
    domain = Domain({f"c{i}": replace(attribute, nullable=True) for i, (_, attribute) in enumerate(CASES)})
    first, second = both(path, domain, monkeypatch)
    assert first == second
    for i, (values, attribute) in enumerate(CASES):
        if not stored and not pa.types.is_floating(values.type):
            by_person = both(path, Domain({f"c{i}": attribute}), monkeypatch, PrivacyUnit(f"c{i}", 1))
            assert by_person[0] == by_person[1] != {}


BEYOND: list[tuple[pa.Array, pa.DataType, Any]] = [
    (pa.array([-1, 0, 127, 128, 300, 2**31 - 1], pa.int32()), pa.int8(), Integers(-200, 400)),
    (pa.array([-1, 0, 255, 256, 2**31 - 1], pa.int32()), pa.uint8(), Integers(-200, 400)),
    (pa.array([-1, 0, 2**15, 2**16 + 7, 2**31 - 1], pa.int32()), pa.int16(), Integers(-200, 2**17)),
    (pa.array([-1, 0, 2**15, 2**16 + 7, 2**31 - 1], pa.int32()), pa.uint16(), Integers(-200, 2**17)),
    (pa.array([-1, 0, 99_999, 100_000, 2**31 - 1], pa.int32()), pa.decimal128(5, 2), Integers(-1000, 10_000)),
    (pa.array([0, 10**17, 2**63 - 1], pa.int64()), pa.decimal128(17, 0), Bins([-1, 1, 10**18])),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "attribute"), BEYOND, ids=lambda value: str(value)[:20])
def test_what_a_wrong_writer_left_beyond_a_type_is_read_alike(
    values: pa.Array, kind: pa.DataType, attribute: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spliced(tmp_path / "t.parquet", values, kind)
    for unit in (ROWS, PrivacyUnit("v", 1)):
        first, second = both(tmp_path / "t.parquet", Domain(v=attribute), monkeypatch, unit)
        assert first == second


_LEADS = (0x61, 0x80, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF)
_SECOND = (0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
SEQUENCES = [
    bytes(parts)
    for after in ([], [_SECOND], [_SECOND, (0x41, 0x80, 0xBF)], [_SECOND, (0x80, 0xC0), (0x41, 0x80)])
    for parts in itertools.product(_LEADS, *after)
]


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def bytes_as_texts(values: Sequence[bytes | None], path: Path, **stored: Any) -> None:
    pa.parquet.write_table(pa.table({"v": pa.array(values, pa.binary()).view(pa.string())}), path, **stored)


ENCODINGS: list[dict[str, Any]] = [
    {"use_dictionary": True},
    *[{"use_dictionary": False, "column_encoding": name} for name in
      ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")],
]  # fmt: skip


@pytest.mark.parametrize("stored", ENCODINGS, ids=str)
def test_the_reader_ends_at_what_is_no_text_and_at_nothing_else(
    stored: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    bytes_as_texts([data for data in SEQUENCES if is_text(data)], path, **stored)
    assert read_whole_in(path)
    wrong = [data for data in SEQUENCES if not is_text(data)]
    for data in wrong[:: 12 if stored == ENCODINGS[0] else 50]:
        bytes_as_texts([b"good", data, None], path, **stored)
        with pytest.raises(duckdb.Error):
            read_whole_in(path)


def test_one_row_that_ends_the_reader_changes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by persons, either; nothing of what was read before it is counted twice."""
    names = [f"p{k % 5}".encode() for k in range(150_000)]
    path, domain = tmp_path / "t.parquet", Domain(v=Categories(["p0", "p1"], other=True))
    bytes_as_texts([*names, b"\xff"], path, row_group_size=25_000)
    for unit in (PrivacyUnit(), PrivacyUnit("v", 7)):
        each = unit.max_rows if unit.column else 30_000
        first, second = both(path, domain, monkeypatch, unit)
        assert first == second == {(0,): each, (1,): each, (2,): 3 * each}


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        (pa.array([0], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
        (pa.array([0], pa.timestamp("ms")), {}),
        (pa.array([0], pa.timestamp("us", "UTC")), {}),
        (pa.array([0], pa.timestamp("s")), {}),
        (pa.array([0], pa.time64("us")), {}),
        (pa.array([b"a"], pa.binary()), {}),
        (pa.array([[1]], pa.list_(pa.int64())), {}),
        (pa.array([1.0], pa.float16()), {}),
        (pa.array([Decimal(1)], pa.decimal256(60, 0)), {}),
        (pa.nulls(1), {}),
    ],
    ids=str,
)
def test_types_of_which_the_two_differ_are_left_to_arrow(
    column: pa.Array, stored: dict[str, Any], tmp_path: Path
) -> None:
    pa.parquet.write_table(pa.table({"v": column}), tmp_path / "t.parquet", **stored)
    assert not read_whole_in(tmp_path / "t.parquet")


def test_a_name_is_no_pattern_and_the_folders_around_are_no_columns(tmp_path: Path) -> None:
    table = pa.table({"v": [1], "n": [2]})
    for name in ("a[b].parquet", "a*.parquet", "a?.parquet", "year=3/t.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pa.parquet.write_table(table, tmp_path / name)
        assert read_whole_in(tmp_path / name) == name.startswith("year")
        with DuckDBTable(tmp_path / name, Domain(v=Integers(0, 9))) as opened:
            assert as_dict(opened.marginal((0,)), (0,)) == {(1,): 1}


def test_columns_are_found_by_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that differ in case alone, a struct before them, and names that DuckDB gives itself."""
    table = pa.table({"s": [{"a": 1, "b": 2}], "n": [3], "N": [4], "filename": [5], "file_row_number": [6]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    domain = Domain({name: Integers(0, 9) for name in ("N", "filename", "file_row_number")})
    first, second = both(tmp_path / "t.parquet", domain, monkeypatch)
    assert first == second == {(4, 5, 6): 1}


def test_statistics_in_the_file_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that noted the least and the greatest value of other rows, and no NULL where there is one."""
    path, noted = tmp_path / "t.parquet", []
    for values in ([5, 5, 5, 5], [5, 90, 5, 90]):
        pa.parquet.write_table(
            pa.table({"v": pa.array(values, pa.int64()), "who": pa.array(map(str, values))}),
            path, use_dictionary=False, compression="none", store_schema=False,
        )  # fmt: skip
        noted.append(path.read_bytes())
    (size,) = struct.unpack("<I", noted[0][-8:-4])
    path.write_bytes(noted[1][:-8][: -struct.unpack("<I", noted[1][-8:-4])[0]] + noted[0][-8 - size :])
    for unit in (PrivacyUnit(), PrivacyUnit("v", 1)):
        first, second = both(path, Domain(v=Integers(0, 50, nullable=True)), monkeypatch, unit)
        assert first == second == {(5,): 1 if unit.column else 2}


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"v": [f"secret{k}" for k in range(9999)]}), path, compression="none")
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"^t\.parquet cannot be read to its end") as caught:
        DuckDBTable(path, Domain(v=Categories(["a"], other=True)))
    assert "secret" not in str(caught.value)


def test_a_terminal_shows_which_share_is_read(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with opening():
        assert watcher.get() is None  # nobody would see it
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with opening():
        told = watcher.get()
        assert told is not None
        for share in (None, 0.0, 0.5, 1.0):
            told(share)
    assert watcher.get() is None
    assert "opening the table" in capsys.readouterr().err
