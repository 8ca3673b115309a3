"""Reading logs: every format gives the same lines; what cannot be asked is counted, and never fatal."""

import csv
import gzip
import json
import random
from pathlib import Path

import duckdb
import numpy as np
import pytest
import sql_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from query_logs import DOMAIN, START, ranges

from laprasdp import ConfigError, Domain, Integers, UnsupportedQuery
from laprasdp.predict import askable as judging
from laprasdp.predict.askable import OTHER_TABLE, TOO_MANY, Askable
from laprasdp.predict.log import read_log
from laprasdp.predict.template import Splitter
from laprasdp.sql.parse import parse
from laprasdp.sql.reader import Reader

A, B = "SELECT COUNT(*) FROM t WHERE a < 1", "SELECT COUNT(*) FROM t WHERE s = 'x1'"
ROWS = [(B, START + 60, "ann", "1"), (A, START, "bob", "2"), (A, START + 61, "ann", "1")]
NAMES = ("sql", "timestamp", "user", "session")


def read(path, domain=DOMAIN, **options):
    return read_log(path, domain, "t", provenance=options.pop("provenance", "public"), **options)


def texts(log):
    return [log.statements[n].text for n in log.ids]


def write_csv(path, rows, names=NAMES):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows] if names else rows)
    return path


def write_json(path, rows):
    lines = "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")
    return path


def write_duckdb(path, rows, copy=None):
    with duckdb.connect(str(path) if copy is None else ":memory:") as made:
        made.execute('CREATE TABLE l (sql VARCHAR, timestamp TIMESTAMP, "user" VARCHAR, session VARCHAR)')
        made.executemany("INSERT INTO l VALUES (?, make_timestamp((? * 1e6)::BIGINT), ?, ?)", rows)
        if copy is not None:
            made.execute(f"COPY l TO '{copy}' (FORMAT parquet)")
    return path


WRITERS = {
    "csv": write_csv,
    "jsonl": write_json,
    "duckdb": write_duckdb,
    "parquet": lambda path, rows: write_duckdb(path, rows, copy=path),
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_is_read_alike_and_sorted_by_time(suffix, tmp_path):
    log = read(WRITERS[suffix](tmp_path / f"log.{suffix}", ROWS))
    assert texts(log) == [A, B, A]
    assert log.times.tolist() == [START, START + 60, START + 61]
    assert log.sessions[1] == log.sessions[2] != log.sessions[0]
    assert (log.tally.lines, log.tally.kept, log.tally.distinct, log.tally.parsed) == (3, 3, 2, 2)
    assert log.tally.notes == ("1 lines are earlier than the line before; the log was sorted by time",)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.integers(0, 2_000_000_000) | st.none(),
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=30)
def test_any_text_and_any_time_in_any_format(tmp_path_factory, lines):
    """One good line among anything at all: formats agree, and every line is kept or counted."""
    folder = tmp_path_factory.mktemp("logs")
    rows = [(A, START, "u", "s"), *((text, at, "u", "s") for text, at in lines)]
    found = [
        read(WRITERS[suffix](folder / f"l.{suffix}", rows), multiline=suffix == "csv")
        for suffix in ("jsonl", "parquet", "csv")
    ]
    for log in found:
        assert log.tally.lines == len(rows)
        assert log.tally.kept + sum(count for _, count in log.tally.refused) == len(rows)
    assert found[0].tally.kept == found[1].tally.kept
    assert texts(found[0]) == texts(found[1])


def test_columns_are_found_by_usual_names_or_named(tmp_path):
    path = write_csv(tmp_path / "l.csv", [(A, "2024-01-01 00:00:00")], ("Statement", "AT"))
    assert read(path).times.tolist() == [START]
    path = write_csv(tmp_path / "m.csv", [("x", A, START)], ("query", "asked", "when"))
    log = read(path, columns={"query": "Asked", "time": "when"})
    assert (texts(log), log.times.tolist()) == ([A], [START])
    with pytest.raises(ConfigError, match="has no column nothing; it has query, asked, when"):
        read(path, columns={"query": "nothing"})
    path = write_csv(tmp_path / "n.csv", [(1, 2)], ("a", "b"))
    with pytest.raises(ConfigError, match=r"no column is called sql, query, .* it has a, b"):
        read(path)


def test_a_csv_file_without_header_and_one_with_broken_lines(tmp_path):
    log = read(write_csv(tmp_path / "l.csv", [(START, A), (START + 1, B)], None))
    assert (texts(log), log.times.tolist()) == ([A, B], [START, START + 1])
    path = tmp_path / "m.csv"
    path.write_text(f'sql,at\n"{A}",1\n"{A}",2,3,4\n"{A}",3\n')
    log = read(path)
    assert len(log) == 2
    assert ("the line of the file cannot be read", 1) in log.tally.refused


def test_gzip_and_milliseconds(tmp_path):
    with gzip.open(tmp_path / "l.csv.gz", "wt") as file:
        file.write(f'sql,time\n"{A}",{int(START * 1000) + 500}\n')
    assert read(tmp_path / "l.csv.gz").times.tolist() == [START + 0.5]


def test_a_database_with_several_tables(tmp_path):
    path = write_duckdb(tmp_path / "d.duckdb", ROWS)
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE other (n INT)")
    assert len(read(path, database_table="l")) == 3
    with pytest.raises(ConfigError, match="is a database: name a table; it has l, other"):
        read(path)


@pytest.mark.parametrize("given", [None, "private", "raw"])
def test_the_provenance_is_asked_for(given, tmp_path):
    path = write_csv(tmp_path / "l.csv", ROWS)
    with pytest.raises(ConfigError, match=r"`public`, or `private-answers` .* tells what is in it"):
        read(path, provenance=given)
    assert read(path, provenance="private-answers").provenance == "private-answers"


def test_what_cannot_be_asked_is_counted_by_reason(tmp_path):
    lines = [
        A, A, "", "not sql", "SELECT COUNT(*) FROM other WHERE a = 1", "SELECT COUNT(*) FROM t WHERE b < 3",
        "SELECT COUNT(*) FROM t WHERE b < 7", "SELECT COUNT(*) FROM t WHERE a < 3 AND a > 5", "DROP TABLE t",
    ]  # fmt: skip
    log = read(write_csv(tmp_path / "l.csv", [(line, n) for n, line in enumerate(lines)], ("sql", "at")))
    reasons = dict(log.tally.refused)
    assert (log.tally.kept, log.tally.other_table, reasons[OTHER_TABLE]) == (2, 1, 1)
    assert reasons["the statement is empty"] == 1
    assert reasons["no cell of the declared domain can match it"] == 1
    assert [n for reason, n in reasons.items() if "cuts the bin" in reason] == [2]  # one reason, two lines
    assert sum(reasons.values()) == 7


def test_empty_logs_and_logs_of_nothing_that_can_be_asked(tmp_path):
    for name, text in (("a.csv", ""), ("b.csv", "sql,timestamp\n"), ("c.jsonl", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ConfigError, match="it is empty"):
            read(tmp_path / name)
    (tmp_path / "h.csv").write_text("sql\nSELECT a, b\nSELECT a, b\n")
    with pytest.raises(ConfigError, match="none of its 2 lines can be read"):
        read(tmp_path / "h.csv")
    path = write_csv(tmp_path / "d.csv", [("DROP TABLE t", 1, "", "")] * 3)
    with pytest.raises(
        ConfigError, match=r"none of 3 lines can be asked about t; 3: a statement that begins"
    ):
        read(path)
    with pytest.raises(ConfigError, match="there is no such log"):
        read(tmp_path / "e.csv")
    (tmp_path / "f.xls").write_text("x")
    with pytest.raises(ConfigError, match=r"what is read: Parquet \(\.parquet\), CSV \(\.csv"):
        read(tmp_path / "f.xls")
    (tmp_path / "g.parquet").write_text("x")
    with pytest.raises(ConfigError, match="cannot be read as a log"):
        read(tmp_path / "g.parquet")


def test_times_that_are_missing(tmp_path):
    log = read(write_csv(tmp_path / "a.csv", [(B,), (A,)], ("sql",)))
    assert log.times is None
    assert texts(log) == [B, A]
    assert log.tally.notes[0].startswith("no line has a time")
    log = read(write_csv(tmp_path / "b.csv", [(A, ""), (B, START), (A, "soon")], ("sql", "at")))
    assert log.times.tolist() == [START] * 3
    assert log.tally.notes == ("2 lines have no time; each takes that of the line before it",)


def test_one_query_and_many_duplicates(tmp_path):
    path = tmp_path / "l.parquet"
    duckdb.execute(f"COPY (SELECT '{A}' AS sql FROM range(300000)) TO '{path}'")
    log = read(path)
    assert (len(log), log.statements[0].text, log.tally.parsed) == (300_000, A, 1)


def test_statements_of_one_meaning_are_one(tmp_path):
    same = ["SELECT COUNT(*) FROM t WHERE a BETWEEN 3 AND 5", "select count(*) from T where a>=3 and a<6;"]
    log = read(write_csv(tmp_path / "l.csv", [(text,) for text in [*same, same[0]]], ("sql",)))
    assert texts(log) == [same[0]] * 3


def test_few_calls_of_the_parser(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        (f"SELECT COUNT(*) FROM t WHERE a >= {low} AND a < {low + 1 + rng.integers(5)} AND s = 'x{s}'",)
        for low, s in zip(rng.integers(90, size=3000), rng.integers(20, size=3000), strict=True)
    ]
    log = read(write_csv(tmp_path / "l.csv", rows, ("sql",)))
    assert log.tally.distinct > 2000
    assert log.tally.parsed < 150


def test_a_limit_on_calls_of_the_parser_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "MAX_PARSES", 5)
    texts = [f"SELECT COUNT(*) FROM t WHERE a = {n} AND s LIKE 'x{n}%'" for n in range(9)]
    log = read(write_csv(tmp_path / "l.csv", [(text,) for text in texts], ("sql",)))
    assert (log.tally.kept, dict(log.tally.refused)) == (5, {TOO_MANY: 4})


def test_a_template_that_is_always_refused_is_refused_unread():
    askable = Askable(DOMAIN, "t")
    for n in range(5000):
        if n % 5:
            key = Splitter().split(f"SELECT COUNT(*) FROM t WHERE b < {n / 1000}")
            assert "cuts the bin" in askable.refusal(key)
    assert askable.parsed < 200
    assert askable.refusal(Splitter().split("SELECT COUNT(*) FROM t WHERE b < 5")) is None


@pytest.mark.parametrize("seed", range(6))
def test_a_template_with_its_literals_put_back_means_the_same(seed):
    rng, splitter = random.Random(seed), Splitter()
    for _ in range(60):
        text = f"SELECT COUNT(*)  FROM people WHERE\n {sql_grammar.nested(rng)}"
        try:
            meant = parse(text, sql_grammar.DOMAIN, "people").queries
        except UnsupportedQuery as refusal:
            with pytest.raises(type(refusal)):
                parse(splitter.split(text).text, sql_grammar.DOMAIN, "people")
        else:
            assert parse(splitter.split(text).text, sql_grammar.DOMAIN, "people").queries == meant


@pytest.mark.parametrize("seed", range(6))
def test_what_is_accepted_unread_is_accepted_by_the_parser(seed):
    """Literals of a template are exchanged at random; the askable may only be as generous as the parser."""
    rng, splitter, domain = random.Random(seed), Splitter(), sql_grammar.DOMAIN
    reader = Reader(domain, "people")
    unread = 0
    for _ in range(40):
        askable = Askable(domain, "people")
        key = splitter.split(f"SELECT COUNT(*) FROM people WHERE {sql_grammar.nested(rng, 2)}")
        numbers = [*map(str, range(-3, 9)), "15", "60", "90", "0.1", "0.25", "1.5", "14"]
        words = [x for x in key.literals if x.startswith("'")] + ["'2024-01-30'", "'2023-12-15'", "'x'", "''"]
        for _ in range(12):
            literals = tuple(
                x if rng.random() < 0.4 else rng.choice(words if x.startswith("'") else numbers)
                for x in key.literals
            )
            before, tried = askable.parsed, key._replace(literals=literals)
            if askable.refusal(tried) is None and askable.parsed == before:
                reader.parse(tried.text)
                unread += 1
    assert unread > 20


def test_a_domain_that_changed_since_the_log_leaves_the_lines_that_can_still_be_asked(tmp_path):
    path = write_csv(tmp_path / "l.csv", [(text,) for text in [A, *ranges(3)]], ("sql",))
    log = read(path, Domain(a=Integers(0, 99)))
    assert (log.tally.kept, texts(log)) == (1, [A])


def test_no_row_of_the_log_outlives_its_file(tmp_path: Path):
    path = write_duckdb(tmp_path / "d.duckdb", ROWS)
    read(path)
    path.unlink()
    assert not list(tmp_path.iterdir())


def test_a_bad_line_is_counted_named_and_left_out(tmp_path):
    path = tmp_path / "l.csv"
    lines = [
        f'"{A}",1e300',
        f'"{A}',
        f'"{A}",',
        "x" * 2_000_000,
        f'"{A}",infinity',
        f'"{A}",99999-01-01',
        f'"{B}",{START}',
    ]
    path.write_bytes("\n".join(["sql,at", *lines]).encode() + b"\n\xff\xfe,1\n")
    log = read(path)
    assert texts(log) == [A, A, A, A, B]
    assert log.times.tolist() == [START] * 5
    assert (log.tally.lines, dict(log.tally.refused)["the line of the file cannot be read"]) == (8, 2)
    assert log.tally.notes[:2] == (
        "line 3 of the file cannot be read: a quote is open, or stands inside a field",
        "line 5 of the file cannot be read: it has too few fields",
    )
