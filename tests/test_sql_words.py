"""One word or sign more, or another, in a statement: DuckDB's answer, or a refusal, whatever sqlglot reads.

The words are all that DuckDB and sqlglot know.  The whole product takes five minutes: ``LAPRAS_WHOLE_SQL=1``;
otherwise a sample is run, and the words that were once read and dropped.
"""

from __future__ import annotations

import os
import random
import re

import duckdb
import numpy as np
import pytest
from sqlglot.dialects.duckdb import DuckDB

from laprasdp import Booleans, Categories, Dates, Domain, Integers
from laprasdp.errors import LaprasError
from laprasdp.queries.marginal import Marginal
from laprasdp.sql import parse

WHOLE = bool(os.environ.get("LAPRAS_WHOLE_SQL"))
SAMPLE = 400
DOMAIN = Domain(
    a=Integers(0, 3, nullable=True),
    s=Categories(["x", "y"]),
    d=Dates("2024-01-01", "2024-01-04"),
    f=Booleans(),
)
TYPES = {"a": "INTEGER", "s": "VARCHAR", "d": "DATE", "f": "BOOLEAN"}
BASES = [
    "SELECT COUNT ( * ) FROM t WHERE a = 1 AND s = 'x'",
    "SELECT COUNT ( a ) AS n FROM t AS u WHERE NOT u . a IN ( 1 , 2 ) OR f",
    "SELECT SUM ( CASE WHEN a > 1 THEN 2 ELSE a END ) FROM t",
    "SELECT COUNT ( * ) FILTER ( WHERE d >= DATE '2024-01-02' ) FROM t WHERE a BETWEEN 1 AND 3",
    "SELECT COUNT ( * ) FROM t WHERE s LIKE 'x%' ESCAPE '!' AND CAST ( d AS DATE ) < '2024-01-03'",
    "SELECT SUM ( IF ( f , 1 , 0 ) ) FROM t WHERE f IS NOT TRUE AND a IS DISTINCT FROM 2",
    "SELECT COUNT ( * ) FROM t WHERE a = - 1 OR a < + 2 OR 'x' = s",
]
SIGNS = [
    "+",
    "-",
    ",",
    "(",
    ")",
    "*",
    ".",
    ";",
    "::",
    "=",
    "<",
    "'x'",
    "1",
    "a",
    "%",
    "/",
    "NULL",
    "+ +",
    "( )",
    "''",
]
ONCE = [  # answered at one time, where DuckDB fails
    "SELECT COUNT(*) FROM t NOT INDEXED",
    "SELECT COUNT(*) FROM t WHERE +s = 'x'",
    "SELECT COUNT(*) FROM t WHERE s = +'x'",
    "SELECT COUNT(*) FROM t WHERE +d = '2024-01-01'",
    "SELECT COUNT(*) FROM t WHERE +f",
    "SELECT COUNT(*) FROM t WHERE f = +TRUE",
    "SELECT COUNT(*) MODE FROM t",
    "SELECT COUNT(*) FROM t BINARY",
    "SELECT COUNT(*) FROM t AS LEFT",
    "SELECT COUNT(*) FROM t GROUP",
    "SELECT COUNT(*) FROM t ''",
    "SELECT COUNT(,*) FROM t",
    "SELECT AS COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t WHERE a = . 1",
    "SELECT COUNT(*) FROM t WHERE d = DATE () '2024-01-02'",
    "SELECT COUNT(CASE WHEN f THEN 'x' ELSE 1 END) FROM t",
]

Table = tuple[duckdb.DuckDBPyConnection, list[tuple[int, ...]]]
"""The rows in DuckDB, and their levels."""


@pytest.fixture(scope="module")
def table() -> Table:
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute("CREATE TABLE t (a INTEGER, s VARCHAR, d DATE, f BOOLEAN)")
    rng, levels = random.Random(5), []
    for _ in range(60):
        a, s, d, f = rng.randrange(5), rng.randrange(2), rng.randrange(4), rng.randrange(2)
        levels.append((a, s, d, f))
        row = ["NULL" if a == 4 else a, f"'{'xy'[s]}'", f"DATE '2024-01-0{d + 1}'", ("FALSE", "TRUE")[f]]
        database.execute(f"INSERT INTO t VALUES ({', '.join(map(str, row))})")
    return database, levels


def outcome(
    text: str, table: tuple[duckdb.DuckDBPyConnection, list[tuple[int, ...]]]
) -> tuple[object, object]:
    """Our count and DuckDB's; ours is None where it is refused, DuckDB's where it fails."""
    database, levels = table
    try:
        statement = parse(text, DOMAIN, "t", types=TYPES)
    except LaprasError:
        return None, None
    if statement.by:
        return None, None
    (query,) = statement.queries
    columns = {axis: [row[axis] for row in levels] for axis in query.axes}
    counts = np.ones(len(levels), dtype=np.int64)
    ours = query.answer(Marginal({axis: np.array(column) for axis, column in columns.items()}, counts))
    try:
        found = database.execute(text).fetchall()
    except duckdb.Error:
        return ours, None
    return ours, int(found[0][0] or 0) if len(found) == 1 and len(found[0]) == 1 else found


def varied() -> list[str]:
    words = [name for (name,) in duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()]
    words += [word for word in DuckDB.Tokenizer.KEYWORDS if re.fullmatch(r"[A-Z_ ]+", word)]
    words = sorted({word.upper() for word in words}) + SIGNS
    found = []
    for base in BASES:
        pieces = base.split(" ")
        for place in range(1, len(pieces) + 1):
            for word in words:
                found.append(" ".join([*pieces[:place], word, *pieces[place:]]))
                found.append(" ".join([*pieces[:place], word, *pieces[place + 1 :]]))
            found.append(" ".join([*pieces[:place], *pieces[place + 1 :]]))
    return found


def test_one_word_more_is_duckdbs_answer_or_refused(table) -> None:
    listed = varied()
    if not WHOLE:
        listed = random.Random("words").sample(listed, SAMPLE)
    told = {"answered": 0, "refused": 0}
    different = []
    for text in [*BASES, *listed]:
        ours, theirs = outcome(text, table)
        told["refused" if ours is None else "answered"] += 1
        if ours is not None and ours != theirs:
            different.append((text, ours, theirs))
    print(told)
    assert different == []
    assert told["answered"] >= len(BASES)


@pytest.mark.parametrize("text", ONCE)
def test_what_sqlglot_reads_and_drops_is_refused(text: str, table) -> None:
    assert outcome(text, table) == (None, None)
    with pytest.raises(duckdb.Error):
        table[0].execute(text)
