"""What follows from several counts: on exact counts each statement shows DuckDB's rows, order and NULLs."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from exact import Beside
from small_table import small_table

from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.attribute import Bins, Categories, Dates, Integers
from laprasdp.queries.domain import Domain
from laprasdp.sql.reader import Reader


@pytest.fixture(scope="module")
def table() -> Beside:
    return small_table()


ANSWERED = [
    # derived attributes in WHERE
    "SELECT COUNT(*) FROM t WHERE a % 2 = 0",
    "SELECT COUNT(*) FROM t WHERE ABS(a) <= 1 AND NOT s = 'x'",
    "SELECT COUNT(*) FROM t WHERE a + n > 3",
    "SELECT COUNT(*) FROM t WHERE NOT a + n > 3",
    "SELECT COUNT(*) FROM t WHERE a > n OR n IS NULL",
    "SELECT COUNT(*) FROM t WHERE a BETWEEN n - 1 AND n + 1",
    "SELECT COUNT(*) FROM t WHERE lower(s) = 'y'",
    "SELECT COUNT(*) FROM t WHERE s ILIKE 'y%' OR s SIMILAR TO 'z.*'",
    "SELECT COUNT(*) FROM t WHERE s GLOB '*e*'",
    "SELECT COUNT(*) FROM t WHERE regexp_matches(s, '[a-z]')",
    "SELECT COUNT(*) FROM t WHERE s || 'a' = 'xa'",
    "SELECT COUNT(*) FROM t WHERE s IN ('x', 'nowhere')",
    "SELECT COUNT(*) FROM t WHERE s = 'nowhere'",
    "SELECT COUNT(*) FROM t WHERE s <> 'nowhere'",
    "SELECT COUNT(*) FROM t WHERE date_trunc('month', d) = DATE '2024-02-01'",
    "SELECT COUNT(*) FROM t WHERE d >= DATE '2024-02-01' AND d < DATE '2024-02-01' + INTERVAL 1 MONTH",
    "SELECT COUNT(*) FROM t WHERE EXTRACT(dow FROM d) IN (0, 6)",
    "SELECT COUNT(*) FROM t WHERE strftime(d, '%Y-%m') = '2024-02'",
    "SELECT COUNT(*) FROM t WHERE d = '2024-02-03'::DATE",
    "SELECT COUNT(*) FROM t WHERE a = '3'",
    "SELECT COUNT(*) FROM t WHERE a < 5 - 3",
    "SELECT COUNT(*) FROM t WHERE (a, s) = (1, 'x')",
    "SELECT COUNT(*) FROM t WHERE CASE WHEN f THEN a ELSE n END > 2",
    "SELECT COUNT(*) FROM t WHERE CASE s WHEN 'x' THEN 1 WHEN 'Y' THEN 2 END = 2",
    "SELECT COUNT(*) FROM t WHERE COALESCE(n, 9) = 9",
    "SELECT COUNT(*) FROM t WHERE n IN (1, NULL)",
    "SELECT COUNT(*) FROM t WHERE n NOT IN (1, NULL)",
    "SELECT COUNT(*) FROM t WHERE n",
    "SELECT COUNT(*) FROM t WHERE NOT n",
    "SELECT COUNT(*) FROM t WHERE GREATEST(a, n) = 3 OR LEAST(a, 2) = 2",
    "SELECT COUNT(*) FROM t WHERE w // 10 = 1",
    "SELECT COUNT(*) FROM t WHERE w / 10 >= 2",
    "SELECT COUNT(*) FROM t WHERE f = (a > 2)",
    "SELECT COUNT(*) FROM t WHERE a IS DISTINCT FROM n",
    "SELECT COUNT(*) FROM t WHERE TRY_CAST(s AS INTEGER) IS NULL",
    "SELECT COUNT(*) FROM t WHERE NULLIF(a, 0) / 2 > 1",
    "SELECT COUNT(*) FROM t WHERE 3 > 2",
    # keys
    "SELECT date_trunc('month', d) AS m, COUNT(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT a > 2 AS big, COUNT(*) FROM t GROUP BY big ORDER BY big",
    "SELECT FLOOR(a / 3) * 3 b, COUNT(*) FROM t GROUP BY b ORDER BY b DESC",
    "SELECT CASE WHEN a < 0 THEN 'lo' WHEN a < 3 THEN 'mid' ELSE 'hi' END c, COUNT(*) FROM t GROUP BY 1",
    "SELECT upper(s), year(d), COUNT(*) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT n, COUNT(*) FROM t GROUP BY n ORDER BY n",
    "SELECT n, COUNT(*) AS c FROM t GROUP BY n ORDER BY n NULLS FIRST",
    "SELECT n % 2 AS odd, COUNT(*), COUNT(n) FROM t GROUP BY odd ORDER BY odd DESC NULLS LAST",
    "SELECT a + 1 AS b, SUM(a) FROM t GROUP BY a ORDER BY b",
    "SELECT year(d) * 100 + month(d) AS ym, COUNT(*) FROM t GROUP BY ym ORDER BY ym",
    "SELECT s, f FROM t GROUP BY s, f ORDER BY s, f",
    "SELECT DISTINCT s FROM t ORDER BY s",
    "SELECT t.s AS key, COUNT(*) AS n FROM main.t GROUP BY t.s ORDER BY n",
    "SELECT x.s, COUNT(*) FROM t AS x GROUP BY x.s ORDER BY x.s",
    # aggregates
    "SELECT COUNT(*), SUM(a), AVG(a) FROM t",
    "SELECT COUNT(*) AS n, SUM(CASE WHEN a > 2 THEN 1 ELSE 0 END) AS big FROM t WHERE f",
    "SELECT s, AVG(a) FROM t GROUP BY s ORDER BY s",
    "SELECT s, AVG(n), COUNT(n), SUM(n) FROM t GROUP BY s ORDER BY s",
    "SELECT s, ROUND(AVG(a), 1) AS m FROM t GROUP BY s ORDER BY s",
    "SELECT COUNT_IF(a > 2), COUNT(*) FILTER (WHERE f), SUM(a) FILTER (WHERE NOT f) FROM t",
    "SELECT 100.0 * SUM(CASE WHEN a > 2 THEN 1 ELSE 0 END) / COUNT(*) FROM t",
    "SELECT AVG(CASE WHEN a > 2 THEN 1.0 ELSE 0 END) FROM t",
    "SELECT SUM(a) - SUM(n), SUM(a - n), SUM(a * 2), SUM(a) * 2, -COUNT(*) FROM t",
    "SELECT SUM(a * n), AVG(a * n) FROM t WHERE s = 'x'",
    "SELECT SUM(a / 2), SUM(a * 0.25), AVG(a + 0.5) FROM t",
    "SELECT CAST(COUNT(*) FILTER (WHERE a <= 0) AS DOUBLE) / COUNT(*) FROM t WHERE n < 3",
    "SELECT s, VAR_SAMP(a), VAR_POP(a), STDDEV(a), STDDEV_POP(a) FROM t GROUP BY s ORDER BY s",
    "SELECT CORR(a, n), COVAR_POP(a, n), COVAR_SAMP(a, n) FROM t",
    "SELECT MEDIAN(a), QUANTILE_CONT(a, 0.9), QUANTILE_DISC(a, 0.25) FROM t",
    "SELECT s, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY a) FROM t GROUP BY s ORDER BY s",
    "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n) FROM t WHERE s = 'x'",
    "SELECT 5, COUNT(*), 'text' FROM t",
    "SELECT COUNT(*) / 2, COUNT(*) * 1.5, COALESCE(SUM(a), 0), NULLIF(COUNT(*), 0) FROM t",
    "SELECT SUM(f) FROM t",
    "SELECT SUM(IF(a > 2, 1, 0)), COUNT(CASE WHEN a > 2 THEN 1 END), COUNT(a > 2) FROM t",
    "SELECT s, CASE WHEN COUNT(*) > 10 THEN AVG(a) END FROM t GROUP BY s ORDER BY 1",
    # after
    "SELECT s, COUNT(*) FROM t GROUP BY s HAVING COUNT(*) > 2000",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING n >= 700 ORDER BY n DESC",
    "SELECT a, AVG(n) FROM t GROUP BY a HAVING AVG(n) > 1.5 AND a > 0 ORDER BY a",
    "SELECT a, SUM(n) d FROM t GROUP BY 1 ORDER BY d LIMIT 3",
    "SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY COUNT(*) DESC, a LIMIT 4 OFFSET 1",
    "SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY 2 DESC, 1 LIMIT 2",
    "SELECT s FROM t GROUP BY s ORDER BY COUNT(*) DESC",
    "SELECT s, f, COUNT(*) FROM t GROUP BY ROLLUP (s, f) ORDER BY s NULLS LAST, f NULLS LAST",
    "SELECT s, f, COUNT(*) FROM t GROUP BY CUBE (s, f) ORDER BY s, f, 3",
    "SELECT s, f, COUNT(*) FROM t GROUP BY GROUPING SETS ((s), (f), ()) ORDER BY 1, 2, 3",
    "SELECT s, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () FROM t GROUP BY s ORDER BY s",
    "SELECT s, f, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY s) AS share FROM t GROUP BY s, f ORDER BY s, f",
    "SELECT s, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY s ORDER BY r",
    "SELECT d, SUM(COUNT(*)) OVER (ORDER BY d) AS running FROM t GROUP BY d ORDER BY d",
    "SELECT DISTINCT f, a > 2 FROM t ORDER BY 1, 2",
    "SELECT a, COUNT(*) FROM t GROUP BY a QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 3 ORDER BY a",
    "SELECT REGR_SLOPE(a, n), REGR_INTERCEPT(a, n) FROM t",
    # subqueries
    "WITH big AS (SELECT * FROM t WHERE a > 2) SELECT COUNT(*) FROM big",
    "WITH big AS (SELECT a * 2 AS b, s FROM t WHERE a > 2) SELECT s, SUM(b) FROM big GROUP BY s ORDER BY s",
    "SELECT COUNT(*) FROM (SELECT * FROM t WHERE s = 'x') x WHERE x.f",
    "SELECT b, COUNT(*) FROM (SELECT CASE WHEN a > 2 THEN 'hi' ELSE 'lo' END b FROM t) GROUP BY b ORDER BY b",
    "SELECT AVG(c) FROM (SELECT a, COUNT(*) AS c FROM t GROUP BY a)",
    "WITH g AS (SELECT s, COUNT(*) AS c FROM t GROUP BY s) SELECT * FROM g WHERE c > 100 ORDER BY c DESC",
    "WITH g AS (SELECT s, f, COUNT(*) c FROM t GROUP BY 1, 2) SELECT s, SUM(c) FROM g GROUP BY s ORDER BY s",
    "WITH x AS (SELECT * FROM t WHERE f), y AS (SELECT * FROM x WHERE a > 1) SELECT COUNT(*), SUM(a) FROM y",
    "SELECT s, COUNT(*) FROM t GROUP BY s UNION ALL SELECT 'all', COUNT(*) FROM t ORDER BY 2",
    "SELECT COUNT(*) FROM (SELECT * EXCLUDE (d) FROM t) q WHERE q.a = 1",
    # lookups
    "SELECT l.area, COUNT(*) FROM t JOIN look l ON t.s = l.code GROUP BY l.area ORDER BY 1",
    "SELECT l.area, AVG(t.a) FROM t LEFT JOIN look l ON t.s = l.code GROUP BY l.area ORDER BY 1",
    "SELECT area, SUM(pop) FROM t JOIN look ON code = s GROUP BY area ORDER BY area",
    "SELECT COUNT(*) FROM t WHERE s IN (SELECT code FROM look WHERE area = 'west')",
    "SELECT COUNT(*) FROM t LEFT JOIN look l ON l.code = lower(t.s) WHERE l.area IS NULL",
    "SELECT COUNT(*) FROM look l JOIN t ON t.s = l.code WHERE l.pop > 3",
]
FILE = Path(__file__).parent / "select.sql"
ANSWERED += [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]


@pytest.mark.parametrize("text", ANSWERED)
def test_on_exact_counts_the_result_is_duckdbs(text: str, table: Beside) -> None:
    table.check(text, ordered="ORDER BY" in text)


REFUSED = {
    "SELECT SUM(NULL) FROM t": "no value but NULL",
    "SELECT COUNT(a) - SUM(NULLIF(a, a)) FROM t": "no value but NULL",
    "SELECT s, COUNT(*), STDDEV_POP(NULL) FROM t GROUP BY s": "no value but NULL",
    "SELECT * FROM t": "rows are private",
    "SELECT a FROM t LIMIT 3": "rows are private",
    "SELECT COUNT(DISTINCT s) FROM t": "one row.*GROUP BY",
    "SELECT MAX(a) FROM t": r"QUANTILE_DISC\(x, 0.99\)",
    "SELECT COUNT(*) FROM t WHERE w > 15": "cuts the bin",
    "SELECT COUNT(*) FROM t WHERE w // 4 = 1": "cuts w between 0 and 10",
    "SELECT COUNT(*) FROM t WHERE CAST(s AS INTEGER) = 1": "fails on a declared value.*TRY_CAST",
    "SELECT COUNT(*) FROM t WHERE random() < 0.5": "random is a function of chance",
    "SELECT COUNT(*) FROM t WHERE d < current_date": "no column current_date|current_date",
    "SELECT s, a, COUNT(*) FROM t GROUP BY s": "GROUP BY",
    "SELECT COUNT(*) // 2 FROM t": "whole numbers",
    "SELECT COUNT(*) FROM t a, t b": "lookup",
    "SELECT COUNT(*) FROM t JOIN look l ON l.pop > t.a": "key|lookup",
    "SELECT COUNT(*) OVER () FROM t": "window",
    "SELECT COUNT(a) - COUNT_IF(a = NULL) FROM t": "never true or false",
    "SELECT COUNT_IF(NULL) / 2.0 FROM t": "never true or false",
    "SELECT s, COUNT(*) FROM t GROUP BY s LIMIT (SELECT 1)": "LIMIT|subquery",
    "SELECT AVG(s) FROM t": "AVG",
    "SELECT w * 2, COUNT(*) FROM t GROUP BY w": "bins",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)": "subquery",
    "SELECT COUNT(*) FROM t WHERE a = (SELECT 1)": "subquery",
    "SELECT COUNT(*) FROM t WHERE a > (SELECT AVG(a) FROM t)": "ask it first",
    "SELECT COUNT(*) FROM t RIGHT JOIN look ON s = code": "rows of the lookup",
    "SELECT COUNT(*) FROM t JOIN (SELECT 'x' AS z FROM look) q ON s = q.z": "several rows",
    "SELECT COUNT(*) FROM t LEFT JOIN look ON s = code AND a > pop": "its own columns",
    "SELECT * FROM look": "public",
    "SELECT STRING_AGG(s, ',') FROM t": "private",
    "SELECT COUNT(*) FROM read_csv('x')": "the table is t|table function",
    "SELECT a, n, s, d, f, w, COUNT(*) FROM t GROUP BY ALL": "10,000",
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_what_cannot_be_asked_is_refused_with_a_reason(text: str, table: Beside) -> None:
    with pytest.raises(UnsupportedQuery, match=REFUSED[text]):
        table.reader.parse(text)


def test_names_are_duckdbs(table: Beside) -> None:
    text = "SELECT s, AVG(a), COUNT(*) AS n, 100.0 * SUM(a) / COUNT(*) FROM t GROUP BY s"
    result = table.reader.parse(text).result
    assert result is not None
    assert [one.name for one in result.outputs] == [
        one[0] for one in table.database.execute(text).description
    ]
    assert [one.key for one in result.outputs] == [True, False, False, False]


def test_the_same_count_is_one_query_wherever_it_stands(table: Beside) -> None:
    reader = table.reader
    (plain_one,) = reader.parse("SELECT COUNT(*) FROM t WHERE a > 2").queries
    text = (
        "SELECT COUNT(*), 100.0 * COUNT(*) / COUNT_IF(a > -9), SUM(CASE WHEN a > 2 THEN 1 ELSE 0 END) "
        "FROM t WHERE a >= 3"
    )
    assert reader.parse(text).queries == (plain_one,)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("r < 2.5", 200),
        ("NOT r < 2.5 AND a > 0", 200),
        ("r IS NULL OR c = 'x'", 200),
        ("NOT (c IN ('x', 'y'))", 200),
        ("c <> 'x'", 300),
        ("CAST(ts AS DATE) = '2024-01-02'", 200),
        ("ts >= '2024-01-02' AND year(CAST(ts AS DATE)) = 2024", 200),
    ],
)
def test_conditions_on_levels_that_are_no_values_stand_beside_others(condition: str, count: int) -> None:
    text = f"SELECT COUNT(*), AVG(a) FROM t WHERE {condition}"
    rows = [(0, 1.0, "x", "01 10:00"), (1, 3.0, "y", "01 11:00")]
    rows += [(1, 4.0, "w", "02 00:00"), (0, 2.0, "v", "02 23:00")]
    database = duckdb.connect()
    database.execute("CREATE TABLE t (a INTEGER, r DOUBLE, c VARCHAR, ts TIMESTAMP)")
    for a, r, c, ts in rows * 100:
        database.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (a, r, c, f"2024-01-{ts}"))
    database.execute("INSERT INTO t SELECT 1, NULL, 'x', '2024-01-01 12:00:00' FROM range(100)")
    domain = Domain(
        a=Integers(0, 1),
        r=Bins([0, 2.5, 5], nullable=True),
        c=Categories(["x", "y"], other=True),
        ts=Dates("2024-01-01", "2024-01-02"),
    )
    types = {"a": "INTEGER", "r": "DOUBLE", "c": "VARCHAR", "ts": "TIMESTAMP"}
    level = {"x": 0, "y": 1}
    listed = database.execute("SELECT * FROM t").fetchall()
    levels = {
        "a": np.array([row[0] for row in listed]),
        "r": np.array([2 if row[1] is None else int(row[1] >= 2.5) for row in listed]),
        "c": np.array([level.get(row[2], 2) for row in listed]),
        "ts": np.array([row[3].day - 1 for row in listed]),
    }
    beside = Beside(database, levels, Reader(domain, "t", types))
    beside.check(text, ordered=True)
    assert beside.theirs(text)[0][0] == count
