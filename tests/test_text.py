"""What a text file means, faults of readers that guess, and values that the engine cannot hold."""

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from laprasdp import Bins, Booleans, Categories, DataError, Dates, Dialect, Domain, Integers, PrivacyUnit
from laprasdp.data.duckdb import DuckDBTable

NEAR, SECRET = 2**53, "s3cr3t"

# What was seen


def total(path: Path, domain: Domain, **options: Any) -> int:
    return int(DuckDBTable(path, domain, **options).marginal(()).counts[0])


def write(path: Path, *content: str) -> Path:
    path.write_bytes("\n".join([*content, ""]).encode())
    return path


@pytest.mark.parametrize(
    "more", [[], ["1000,12/31/2020"], ["1000,2020-12-31"], ["1000;2020-12-31"], ['"'], ["\t"]]
)
def test_a_date_is_what_was_declared(more: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "i,day", *(f"{i},03/04/2020" for i in range(1000)), *more)
    days = Domain(day=Dates("2020-04-03", "2020-04-03"))
    assert total(path, days, dialect=Dialect(date_format="%d/%m/%Y")) == 1000
    assert (
        total(path, Domain(day=Dates("2020-03-04", "2020-03-04")), dialect=Dialect(date_format="%m/%d/%Y"))
        == 1000
    )
    assert total(path, days) == 0


@pytest.mark.parametrize("more", [[], ["0.5"], ["x"], ["1e3"], ["9" * 40]])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "pandas"])
def test_a_whole_number_keeps_its_digits(kind: str, more: list[str], tmp_path: Path) -> None:
    texts = [str(NEAR + 1)] * 1000 + more
    domain = Domain(n=Integers(NEAR + 1, NEAR + 1))
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        numbers = [int(t) if t.isdigit() else float(t) if t[0].isdigit() else t for t in texts]
        source = pandas.DataFrame({"n": pandas.Series(numbers, dtype=object)})
    elif kind == "csv":
        source = write(tmp_path / "t.csv", "n", *texts)
    else:
        source = write(
            tmp_path / "t.jsonl", *(f'{{"n": {text if text != "x" else "true"}}}' for text in texts)
        )
    assert total(source, domain) == 1000


@pytest.mark.parametrize("more", [[], ['"guest"'], ["null"], ["7"]])
def test_a_person_is_the_text_that_is_written(more: list[str], tmp_path: Path) -> None:
    people = [f"{i:08x}-0000-4000-8000-00000000abcd" for i in range(500)]
    spelled = [json.dumps(each) for one in people for each in (one, one.upper())] + more
    path = write(tmp_path / "t.jsonl", *(f'{{"who": {each}, "n": {NEAR}}}' for each in spelled))
    expected = 1000 - sum(p == p.upper() for p in people) + len([m for m in more if m != "null"])
    assert total(path, Domain(n=Integers(NEAR, NEAR)), unit=PrivacyUnit("who", 1)) == expected


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    "more", ['1,"F', "1,'F", "1,'F'", '1,"F"', '1,F"', '"', "'", '1,"F\\"', "1;F", "1|F", "#", "1"]
)
def test_a_quote_concerns_its_own_line(quote: str, more: str, tmp_path: Path) -> None:
    lines = ["i,sex", *(f"{i},{quote}F{quote}" for i in range(1000))]
    domain, dialect = Domain(sex=Categories(["F"])), Dialect(quote=quote)
    before = total(write(tmp_path / "t.csv", *lines), domain, dialect=dialect)
    for place in (1, 500, 1001):
        path = write(tmp_path / "t.csv", *lines[:place], more, *lines[place:])
        assert total(path, domain, dialect=dialect) - before in (0, 1)
    assert before == 1000


@pytest.mark.parametrize("row", [f"{SECRET};1", f"{SECRET}\t1", f'"{SECRET}', SECRET])
def test_no_row_becomes_a_name(row: str, tmp_path: Path) -> None:
    from laprasdp.data.schema import columns

    path = write(tmp_path / "t.csv", "age,sex", row, "1,F", row)
    assert columns(path) == [("age", ""), ("sex", "")]
    with pytest.raises(DataError, match=r"t\.csv has no column zip; it has age, sex") as caught:
        DuckDBTable(path, Domain(age=Integers(0, 9), zip=Integers(0, 9)))
    assert SECRET not in str(caught.value)


def test_a_header_that_is_missing_or_doubled(tmp_path: Path) -> None:
    domain = Domain(age=Integers(0, 9))
    for first in (f"{SECRET},1", f"1;{SECRET}", f'"{SECRET}', f"{SECRET}\0", f"age,{SECRET}\r1"):
        with pytest.raises(
            DataError, match=r"t\.csv: the first line (names none|cannot be a header)"
        ) as caught:
            DuckDBTable(write(tmp_path / "t.csv", first, f"1,{SECRET}"), domain)
        assert SECRET not in str(caught.value)
    with pytest.raises(DataError, match=r"the header names b twice: age, b, c, b$"):
        DuckDBTable(write(tmp_path / "t.csv", "age,b,c,b", f"1,{SECRET},3,4"), domain)
    path = write(tmp_path / "t.csv", "5,x", "6,y", "12,z")
    assert total(path, domain, dialect=Dialect(columns=["age", "name"])) == 2


def test_text_values(tmp_path: Path) -> None:
    """What each attribute reads, and what is outside, one text a line."""
    cases: list[tuple[Any, Dialect, list[str], list[str]]] = [
        (
            Integers(-1, 9),
            Dialect(),
            ["5", "+5", " 5 ", "5.", "5.00", "-1", "-0", "000005"],
            ["5.5", "5e0", "0x5", "5_0", "٥", "five", "-", "+", ".0", "--5", "5 5", '"5', "\ufeff5", "10"],
        ),
        (
            Integers(2**64, 2**64 + 1),
            Dialect(),
            [str(2**64), f"{2**64 + 1}.0"],
            ["1.8446744073709552e19", str(2**64 + 2)],
        ),
        (
            Bins([0, 0.5, 9]),
            Dialect(),
            ["0", "0.5", ".5", "8.", "5e-1", "1E0", "+1", " 1 ", "-0", "1e-400"],
            ["nan", "inf", "1e400", "9", "0,5", "0x1", "1e", "e1", "."],
        ),
        (Bins([0, 0.5, 9]), Dialect(decimal=","), ['"0,5"', "1"], ["0.5"]),
        (Bins([0, 5, 9], whole=True), Dialect(), ["5", "5.0"], ["5.5", "5e0"]),
        (
            Booleans(),
            Dialect(),
            ["true", "T", "YES", "y", "1", "false", "F", "No", "n", "0", " t "],
            ["on", "2", "tru", "-1", "1.0"],
        ),
        (
            Dates("2020-01-01", "2020-12-31"),
            Dialect(),
            [
                "2020-04-03",
                " 2020-04-03 ",
                "2020-04-03T10:00",
                "2020-04-03 23:59:59.999",
                "2020-12-31T23:59:59+02:00",
                "2020-02-29",
            ],
            [
                "2020-4-3",
                "20200403",
                "2020-02-30",
                "03/04/2020",
                "2020-04-03x",
                "2020-04-03 25:00",
                "infinity",
                "epoch",
                "2019-02-29",
            ],
        ),
        (
            Dates("2020-01-01", "2020-12-31"),
            Dialect(date_format="%d.%m.%y"),
            ["03.04.20", "3.4.20"],
            ["2020-04-03", "31.02.20", "infinity", "03.04.2020"],
        ),
        (
            Dates("2020-01-01", "2020-12-31"),
            Dialect(date_format="%d %B %Y %H:%M"),
            ["3 april 2020 10:00"],
            ["3 foo 2020 10:00", "3 April 2020"],
        ),
        (Categories(["F", " F"]), Dialect(), ["F", " F", '"F"'], ["f", "F ", "'F'", "\ufeffF"]),
    ]
    for attribute, dialect, inside, outside in cases:
        path = write(tmp_path / "t.csv", "v;i", *(f"{text};1" for text in inside + outside))
        written = Dialect(**(vars(dialect) | {"delimiter": ";"}))
        assert (attribute, total(path, Domain(v=attribute), dialect=written)) == (attribute, len(inside))
        path = write(tmp_path / "t.csv", "v;i", *(f"{text};1" for text in outside))
        null = Domain(v=type(attribute)(**(_arguments(attribute) | {"nullable": True})))
        assert (attribute, total(path, null, dialect=written)) == (attribute, 0)


def _arguments(attribute: Any) -> dict[str, Any]:
    return {
        field: value
        for field, value in vars(attribute).items()
        if not (field == "edges" and attribute.kind == "dates")
    }


def test_null_encoding_and_lines(tmp_path: Path) -> None:
    domain = Domain(v=Categories(["é", "NA", ""], nullable=True))
    (tmp_path / "t.csv").write_bytes('v,i\né,1\nNA,2\n,3\n"NA",4\n\n'.encode("latin-1"))

    def levels(**options: Any) -> dict[int, int]:
        found = DuckDBTable(tmp_path / "t.csv", domain, dialect=Dialect(**options)).marginal((0,))
        return dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True))

    assert levels() == {1: 2, 3: 1}
    assert levels(encoding="latin-1") == {0: 1, 1: 2, 3: 1}
    assert levels(encoding="latin-1", null="NA") == {0: 1, 2: 1, 3: 2}


def test_a_record_that_is_too_long_is_none(tmp_path: Path) -> None:
    long = b"x" * (2**24 + 1)
    for name, content in {
        "t.csv": b"v,i\n1,\n2," + long + b"\n3,\n",
        "m.csv": b'v,i\n1,\n2,"' + long + b'\n"\n3,\n',
        "t.jsonl": b'{"v": 1}\n{"v": 2, "i": "' + long + b'"}\n{"v": 3}',
    }.items():
        (tmp_path / name).write_bytes(content)
        dialect = Dialect(multiline=True) if name == "m.csv" else None
        assert total(tmp_path / name, Domain(v=Integers(0, 9)), dialect=dialect) == 2


def test_values_that_the_engine_cannot_hold_lie_outside(tmp_path: Path) -> None:
    from laprasdp.data.schema import columns

    texts = pa.array([b"F", b"\xff", b"F\xc3", None], pa.binary()).view(pa.string())
    wide = (10**38 - 1).to_bytes(16, "little") + (2**127 - 1).to_bytes(16, "little") + bytes(32)
    decimals = pa.Array.from_buffers(pa.decimal128(38, 2), 4, [None, pa.py_buffer(wide)])
    few = pa.Array.from_buffers(
        pa.decimal128(4, 2), 4, [None, pa.py_buffer((10**20 + 100).to_bytes(16, "little") + bytes(48))]
    )
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), texts.slice(0, 3))
    table: dict[str, Any] = {"text": texts, "wide": decimals, "few": few, "encoded": encoded}
    extremes = pa.array([0, 2**62, -(2**63), 2**63 - 1], pa.int64())
    for unit in ("s", "ms", "us"):
        table[unit] = extremes.view(pa.timestamp(unit))
    table["day"] = extremes.view(pa.date64())
    attributes: dict[str, tuple[Any, list[int]]] = {
        "text": (Categories(["F"], other=True, nullable=True), [0, 2]),
        "wide": (Bins([-1, 0, 1]), [1, 1]),
        "encoded": (Categories(["F"], other=True, nullable=True), [0, 2]),
        "few": (Integers(0, 100), [0, 0, 0]),
        **dict.fromkeys(
            ["s", "ms", "us", "day"], (Dates("1970-01-01", "9999-12-30", step="year", nullable=True), [0])
        ),
    }
    whole = pa.table(table)
    pa.parquet.write_table(whole.drop_columns(["s", "wide", "few"]), tmp_path / "t.parquet")
    for name, (attribute, expected) in attributes.items():
        for source in [whole] + [tmp_path / "t.parquet"] * (name not in ("s", "wide", "few")):
            found = DuckDBTable(source, Domain({name: attribute})).marginal((0,))
            again = list(
                itertools.chain(
                    *(
                        [level] * n
                        for level, n in zip(found.levels[0].tolist(), found.counts.tolist(), strict=True)
                    )
                )
            )
            assert (name, again) == (name, expected)
    assert dict(columns(whole))["wide"] == "DECIMAL(38,2)"


def test_a_moment_at_the_end_of_its_type_in_a_database(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "t.duckdb") as made:
        made.execute("CREATE TABLE t AS SELECT make_timestamp(9223372036854775648)::TIMESTAMP_S AS v")
        made.execute("INSERT INTO t VALUES ('2020-05-05'), ('infinity'), (NULL)")
    domain = Domain(v=Dates("2020-01-01", "2020-12-31"))
    for unit in (PrivacyUnit(), PrivacyUnit("v", 1)):
        assert total(tmp_path / "t.duckdb", domain, table="t", unit=unit) == 1


def test_a_source_that_was_cut_short_names_no_value(tmp_path: Path) -> None:
    content = gzip.compress(b"v,i\n" + f"1,{SECRET}\n".encode() * 9999)
    (tmp_path / "t.csv.gz").write_bytes(content[: len(content) // 2])
    with pytest.raises(
        DataError, match=r"^t\.csv\.gz cannot be read to its end: is it damaged, or being written\?$"
    ):
        DuckDBTable(tmp_path / "t.csv.gz", Domain(v=Integers(0, 9)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ",,"}, "delimiter ',,' must be one sign"),
        ({"delimiter": "a"}, "must be one sign"),
        ({"delimiter": '"'}, "that is no delimiter"),
        ({"quote": "''"}, "quote"),
        ({"decimal": "'"}, "decimal"),
        ({"encoding": "utf-16"}, "there are utf-8, latin-1"),
        ({"columns": "a"}, "columns must be a list"),
        ({"columns": ["a", "a"]}, "names a twice"),
        ({"multiline": 1}, "true or false"),
        ({"multiline": True, "quote": ""}, "needs a quote"),
        ({"date_format": "%d/%m"}, "must have a year once"),
        ({"date_format": "%d/%m/%Y %z"}, "no %z"),
        ({"null": None}, "null must be text"),
    ],
)
def test_dialects_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    from laprasdp import ConfigError

    with pytest.raises(ConfigError, match=message):
        Dialect(**options)


def test_a_dialect_is_for_texts(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"v": [1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet is a Parquet file, which has types"):
        DuckDBTable(tmp_path / "t.parquet", Domain(v=Integers(0, 9)), dialect=Dialect())
