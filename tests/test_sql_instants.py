"""Functions of an instant that hang on its day alone are answered as by DuckDB; others are refused."""

from __future__ import annotations

import datetime as dt
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from exact import Beside

import laprasdp as lp
from laprasdp.sql.reader import Reader

FIRST = dt.date(2019, 12, 1)
DOMAIN = lp.Domain(
    ts=lp.Dates(FIRST, "2021-03-31", nullable=True),
    k=lp.Integers(0, 3),
    x=lp.Bins([-200, -157.83, 0, 10]),
)
KINDS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
ANSWERED = [
    "SELECT EXTRACT(YEAR FROM ts) AS y, COUNT(*) FROM t GROUP BY y ORDER BY y",
    "SELECT date_trunc('month', ts) AS m, COUNT(*), SUM(k) FROM t GROUP BY m ORDER BY m NULLS FIRST",
    "SELECT date_trunc('Day', ts) AS d, AVG(k) FROM t WHERE k < 3 GROUP BY d ORDER BY d LIMIT 9",
    "SELECT dayname(ts) AS d, monthname(ts) AS m, COUNT(*) FROM t GROUP BY ALL ORDER BY d, m",
    "SELECT strftime(ts, '%Y-%m (%a) 100%%') AS q, COUNT(*) FROM t GROUP BY q ORDER BY q",
    "SELECT COUNT(*) FROM t WHERE CAST(EXTRACT(YEAR FROM ts) AS BIGINT) IN (2020, 2021)",
    "SELECT COUNT(*) FROM t WHERE year(ts) = 2020 AND isodow(ts) >= 6 AND k = 1",
    "SELECT COUNT(*) FROM t WHERE NOT (date_part('dow', ts) = 0 OR quarter(ts) = 2)",
    "SELECT yearweek(ts), last_day(ts), COUNT(*) FROM t WHERE week(ts) < 3 GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT CASE WHEN month(ts) < 7 THEN 'first' ELSE 'second' END AS half, COUNT(*) FROM t GROUP BY 1",
    "SELECT COUNT(*) FROM t WHERE date_trunc('month', ts) = TIMESTAMP '2020-05-01 00:00:00'",
    "SELECT COUNT(*) FROM t WHERE x < CAST('-157.83' AS DOUBLE)",
    "SELECT COUNT(*) FROM t WHERE x >= '0'::DOUBLE AND k <= CAST('1e0' AS DOUBLE)",
]
REFUSED = [
    ("SELECT COUNT(*) FROM t WHERE hour(ts) = 3", "ts holds times of day"),
    ("SELECT strftime(ts, '%H') AS h, COUNT(*) FROM t GROUP BY h", "ts holds times of day"),
    ("SELECT strftime(ts, '%c') AS h, COUNT(*) FROM t GROUP BY h", "ts holds times of day"),
    ("SELECT date_trunc('hour', ts) AS h, COUNT(*) FROM t GROUP BY h", "ts holds times of day"),
    ("SELECT epoch(ts) AS e, COUNT(*) FROM t GROUP BY e", "ts holds times of day"),
    ("SELECT julian(ts) AS e, COUNT(*) FROM t GROUP BY e", "ts holds times of day"),
    ("SELECT COUNT(*) FROM t WHERE ts >= date_trunc('month', ts)", "plain constants only"),
    ("SELECT COUNT(*) FROM t WHERE x = CAST('-157.83000000000001' AS DOUBLE)", "cuts the bin"),
    ("SELECT COUNT(*) FROM t WHERE x < CAST('1e999' AS DOUBLE)", "out of range"),
]


@pytest.fixture(scope="module", params=KINDS)
def table(request: pytest.FixtureRequest) -> Beside:
    """Two instants a day, one of them a moment before midnight, for some of the days."""
    rng = random.Random(1)
    rows = []
    for _ in range(2_000):
        day = rng.randrange(487)
        clock = rng.choice([dt.time(), dt.time(23, 59, 59), dt.time(rng.randrange(24), rng.randrange(60))])
        at = None if rng.random() < 0.03 else dt.datetime.combine(FIRST + dt.timedelta(days=day), clock)
        rows.append((at, rng.randrange(4), rng.choice([-199.5, -157.83, 3.0])))
    kinds = {"ts": str(request.param), "k": "INTEGER", "x": "DOUBLE"}
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
    database.register("made", pa.table(dict(zip(kinds, zip(*rows, strict=True), strict=True))))
    database.execute("INSERT INTO t FROM made")
    levels = {
        "ts": [487 if at is None else (at.date() - FIRST).days for at, _, _ in rows],
        "k": [k for _, k, _ in rows],
        "x": [0 if x < -157.83 else 1 if x < 0 else 2 for _, _, x in rows],
    }
    found = {name: np.array(column) for name, column in levels.items()}
    return Beside(database, found, Reader(DOMAIN, "t", kinds))


@pytest.mark.parametrize("text", ANSWERED)
def test_a_function_of_the_day_is_duckdbs(text: str, table: Beside) -> None:
    table.check(text, ordered="ORDER BY" in text)


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_function_of_the_time_is_refused(text: str, reason: str, table: Beside) -> None:
    with pytest.raises(lp.UnsupportedQuery, match=reason):
        table.reader.parse(text)
