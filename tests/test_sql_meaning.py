"""What a statement means hangs on the types of the columns: through a session, on real tables."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import laprasdp as lp
from laprasdp.cli.init import init
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.errors import LaprasError, QuerySyntaxError, UnsupportedQuery
from laprasdp.sql import parse
from laprasdp.sql.reader import Reader

HOURS = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=n) for n in range(24 * 60)]
LARGE = lp.Integers(2**53, 2**53 + 4)
DAYS = lp.Domain(ts=lp.Dates("2024-01-01", "2024-02-29"))


def counted(table: DuckDBTable, text: str) -> int:
    (query,) = Reader(table.domain, table.name, table.types).parse(text).queries
    return query.answer(table.marginal(query.axes))


@pytest.fixture(scope="module")
def hourly() -> DuckDBTable:
    return DuckDBTable(pa.table({"ts": HOURS}), DAYS, name="t")


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("ts < '2024-02-01'", 744),
        ("ts >= '2024-01-31' AND ts < '2024-02-01'", 24),
        ("CAST(ts AS DATE) = '2024-01-31'", 24),
        ("ts::DATE BETWEEN '2024-01-01' AND DATE '2024-01-31'", 744),
        ("CAST(ts AS DATE) IN ('2024-01-31', '2024-01-01')", 48),
        ("CAST(ts AS DATE) IS NOT DISTINCT FROM DATE '2024-01-31'", 24),
        ("CAST(ts AS DATE) IS NULL", 0),
        ("ts <= '2024-01-31 23:59:59.999999'", 744),
        ("ts >= TIMESTAMP '2024-02-01 00:00:00'", 696),
    ],
)
def test_times_are_answered_where_no_day_is_cut(hourly: DuckDBTable, condition: str, count: int) -> None:
    assert counted(hourly, f"SELECT COUNT(*) FROM t WHERE {condition}") == count


@pytest.mark.parametrize(
    "condition",
    [
        "ts BETWEEN '2024-01-01' AND '2024-01-31'",
        "ts = '2024-01-31'",
        "ts <> DATE '2024-01-31'",
        "ts > '2024-01-31'",
        "ts IN ('2024-01-31')",
        "ts IS DISTINCT FROM '2024-01-31'",
        "ts < '2024-01-31 12:00:00'",
        "ts >= TIMESTAMP '2024-01-31 00:00:01'",
    ],
)
def test_a_cut_day_is_refused_with_spellings_that_are_answered(hourly: DuckDBTable, condition: str) -> None:
    with pytest.raises(UnsupportedQuery, match="nearest edges are '2024-01-31' and '2024-02-01'") as refusal:
        counted(hourly, f"SELECT COUNT(*) FROM t WHERE {condition}")
    found = re.search(r"write (.*?), or (CAST.*)$", str(refusal.value))
    assert found is not None
    for spelling in found.groups():
        assert counted(hourly, f"SELECT COUNT(*) FROM t WHERE {spelling}") > 0


def test_groups_of_times_are_days_and_say_so(hourly: DuckDBTable) -> None:
    reader = Reader(DAYS, "t", hourly.types)
    with pytest.raises(UnsupportedQuery, match=r"write CAST\(ts AS DATE\)"):
        reader.parse("SELECT ts, COUNT(*) FROM t GROUP BY ts")
    statement = reader.parse("SELECT ts::DATE, COUNT(*) FROM t GROUP BY CAST(ts AS DATE) ORDER BY 1 DESC")
    assert statement.groups[0] == ("2024-02-29",)
    assert [query.answer(hourly.marginal(query.axes)) for query in statement.queries] == [24] * 60


def test_a_session_and_its_predictions_read_the_types_of_the_table() -> None:
    given = {"budget": lp.Budget(1, 1e-6), "horizon": 2, "name": "t"}
    asked = "SELECT COUNT(*) FROM t WHERE ts = '2024-01-31'"
    with pytest.raises(UnsupportedQuery, match=r"prediction 1: ts: = '2024-01-31' cuts through"):
        lp.open_session(pa.table({"ts": HOURS}), DAYS, predictions=[asked], **given)
    session = lp.open_session(pa.table({"ts": HOURS}), DAYS, predictions=[], **given)
    with pytest.raises(UnsupportedQuery, match="cuts through"):
        session.ask("SELECT COUNT(*) FROM t WHERE ts BETWEEN '2024-01-01' AND '2024-01-31'")
    assert session.ask("SELECT COUNT(*) FROM t WHERE ts < '2024-02-01'").value > 0


def test_windows_read_the_types_of_the_table() -> None:
    session = lp.open_windows(
        pa.table({"ts": HOURS}), DAYS, attribute="ts", periods="month", budget=lp.Budget(1, 1e-6), name="t"
    )
    with pytest.raises(UnsupportedQuery, match="cuts through"):
        session.ask("SELECT COUNT(*) FROM t WHERE ts <= '2024-01-31'")
    assert session.ask("SELECT COUNT(*) FROM t WHERE CAST(ts AS DATE) <= '2024-01-31'").value > 0


@pytest.mark.parametrize(
    ("kind", "attribute", "values", "condition", "count"),
    [
        ("FLOAT", lp.Bins([0, 0.7, 1]), "0.7, 0.5", "v < 0.7", 1),
        ("FLOAT", lp.Integers(2**24 - 2, 2**24 + 2), "16777216, 16777214", "v = 16777217", 1),
        ("DOUBLE", lp.Integers(2**53 - 2, 2**53 + 2), "9007199254740992", "v = 9007199254740993", 1),
        ("BIGINT", LARGE, "9007199254740993", "v = 9007199254740992e0", 1),
        ("BIGINT", LARGE, "9007199254740993", "v IN (9007199254740992, 1e0)", 1),
        (
            "BIGINT",
            lp.Integers(2**53, 2**53 + 4),
            "9007199254740993",
            "v BETWEEN 0 AND 9007199254740992e0",
            1,
        ),
        ("DECIMAL(18,2)", lp.Bins([0, 0.7, 1]), "0.7, 0.69", "v < 7e-1", 1),
    ],
)
def test_constants_become_the_type_that_duckdb_gives_them(
    kind: str, attribute: lp.Integers, values: str, condition: str, count: int, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute(f"CREATE TABLE t AS SELECT unnest([{values}])::{kind} AS v")
        assert database.execute(f"SELECT COUNT(*) FROM t WHERE {condition}").fetchone() == (count,)
    table = DuckDBTable(tmp_path / "t.db", lp.Domain(v=attribute), table="t")
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    assert counted(table, text) == count


@pytest.mark.parametrize(
    ("kind", "attribute", "condition", "named"),
    [
        ("FLOAT", lp.Bins([0, 0.7, 1]), "v < 7e-1", "an exponent makes a DOUBLE"),
        ("DECIMAL(38,10)", lp.Bins([0, 1e10]), "v < 1e9", "write the number without one"),
        ("DECIMAL(38,10)", lp.Bins([0, 1e10]), "v < 10000000000000000000000000000000", "more than 38 digits"),
        ("DOUBLE", lp.Bins([0, 0.5, 1]), "v < 0.9781818781881841", "write 0.9781818781881841e0"),
        ("UUID", lp.Categories(["00000000-0000-0000-0000-000000000001"]), "v LIKE '0%'", "UUID"),
        ("UUID", lp.Categories(["00000000-0000-0000-0000-00000000000a"]), "v > '0'", "is not a UUID"),
        ("VARCHAR COLLATE NOCASE", lp.Categories(["a"]), "v = 'a'", "v: the column has a collation"),
        ("VARCHAR COLLATE NOCASE", lp.Categories(["a"]), "v LIKE 'a'", "v: the column has a collation"),
        ("TIMESTAMP_NS", lp.Dates("2024-01-01", "2024-01-02"), "v < '2500-01-01'", "out of range"),
        ("TIMESTAMP_S", lp.Dates("2024-01-01", "2024-01-02"), "v < '2024-01-01 00:00:00.5'", "finer than"),
    ],
)
def test_what_cannot_be_compared_soundly_is_refused(
    kind: str, attribute: lp.Bins, condition: str, named: str, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute(f"CREATE TABLE t (v {kind})")
    table = DuckDBTable(tmp_path / "t.db", lp.Domain(v=attribute), table="t")
    with pytest.raises(UnsupportedQuery, match=named):
        counted(table, f"SELECT COUNT(*) FROM t WHERE {condition}")


def test_groups_of_an_enum_come_in_its_order(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t AS SELECT unnest(['a', 'b'])::ENUM('b', 'it''s', 'a') AS v")
    table = DuckDBTable(tmp_path / "t.db", lp.Domain(v=lp.Categories(["a", "it's", "b"])), table="t")
    text = "SELECT v, COUNT(*) FROM t GROUP BY v ORDER BY v"
    assert Reader(table.domain, "t", table.types).parse(text).groups == (("b",), ("it's",), ("a",))


def test_a_spelling_that_was_read_before_does_not_stand_for_another() -> None:
    domain, types = lp.Domain(f=lp.Bins([0, 0.5, 1])), {"f": "FLOAT"}
    reader = Reader(domain, "t", types)
    texts = [
        f"SELECT COUNT(*) FROM t WHERE f < {one}" for one in ("0.5", "5e-1", "0.50", "1", "1.0", "1e0", ".5")
    ]
    texts += ["SELECT COUNT(*) FROM t WHERE f < 0.1234567890123456789012345678901234567890123", "x"]
    for text in [*texts, *texts, *texts]:
        assert said(reader.parse, text) == said(lambda one: parse(one, domain, "t", types=types), text)


def said(read, text):
    try:
        return read(text)
    except LaprasError as error:
        return str(error)


NAMES = lp.Domain(
    {
        "a": lp.Integers(0, 9),
        "žluť": lp.Integers(0, 9),
        "income": lp.Bins([0, 10, 20]),
        "age": lp.Integers(0, 90),
        "sex": lp.Categories(["F", "M"]),
    }
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT COUNT(*) FROM t WHERE b = 1", "no attribute b; declared: a, žluť, income, age, sex"),
        (
            f"SELECT COUNT(*) FROM t WHERE {unicodedata.normalize('NFD', 'žluť')} = 1",
            "in this Unicode form; copy",
        ),
        ("SELECT COUNT(*) FROM t WHERE ŽLUŤ = 1", "which only the letters a to z have in DuckDB; copy žluť"),
        ("SELECT COUNT(*) FROM t WHERE ages = 1", "did you mean age"),
        ("SELECT AVG(income) FROM t", r"income holds bins: ask for COUNT\(\*\) with GROUP BY"),
        ("SELECT AVG(age) FROM t", "ask for a SUM and a COUNT and divide"),
        ("SELECT SUM(IF(age > 3, 1)) FROM t", "IF takes a condition and two values"),
        ("SELECT COUNT(*) FROM t WHERE age BETWEEN 3 AND 30AND sex = 'M'", "a space is missing in 30AND"),
        ("SELECT COUNT(*) FROM t WHERE sex = '\ud800'", "line 1, column 37: half of a surrogate pair"),
        ("SELECT COUNT(*) FROM t WHERE +sex = 'M'", "a plus sign"),
        ("SELECT COUNT(*) FROM t NOT INDEXED", "INDEXED is not supported"),
        ("SELECT SUM(CASE WHEN age > 3 THEN TRUE ELSE 2 END) FROM t", "THEN and ELSE of different types"),
    ],
)
def test_messages_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises((UnsupportedQuery, QuerySyntaxError), match=message) as refusal:
        parse(text, NAMES, "t")
    assert str(refusal.value).encode()


def test_if_is_case_with_one_branch() -> None:
    case = "SELECT SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END) FROM t"
    assert (
        parse("SELECT SUM(IF(age > 3, 1, 0)) FROM t", NAMES, "t").queries == parse(case, NAMES, "t").queries
    )


def test_a_rounded_branch_is_refused() -> None:
    domain = lp.Domain(f=lp.Integers(0, 9), s=lp.Booleans())
    text = "SELECT SUM(CASE WHEN s THEN {} ELSE f END) FROM t"
    assert parse(text.format(16777216), domain, "t", types={"f": "FLOAT"})
    with pytest.raises(UnsupportedQuery, match="rounds one of them"):
        parse(text.format(16777217), domain, "t", types={"f": "FLOAT"})
    assert parse(text.format(16777217), domain, "t", types={"f": "DOUBLE"})


@pytest.mark.parametrize(
    ("columns", "wanted", "message"),
    [
        (["age", "age"], "age", "the table has 2 columns called age: give each its own name"),
        ([unicodedata.normalize("NFD", "žluť")], "žluť", "in another Unicode form: copy it from there"),
        (["ab", "xy"], "ac", "no column ac; it has ab, xy"),
    ],
)
def test_columns_that_are_not_found(columns: list[str], wanted: str, message: str) -> None:
    table = pa.Table.from_arrays([pa.array([1])] * len(columns), names=columns)
    with pytest.raises(lp.LaprasError, match=message):
        DuckDBTable(table, lp.Domain({wanted: lp.Integers(0, 9)}))


def test_a_draft_of_the_configuration_says_what_times_mean(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t (ts TIMESTAMP, d DATE)")
    init(tmp_path / "t.db", "t", tmp_path / "lapras.toml", delimiter=None, force=False, as_json=False)
    times, days = (tmp_path / "lapras.toml").read_text().split("[domain.ts]")[1].split("[domain.d]")
    assert "what cuts a day is refused" in times
    assert "CAST(x AS DATE)" in times
    assert "cuts" not in days
