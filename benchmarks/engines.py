"""What it costs to open a table: the one scan of each engine, beside the engine's own GROUP BY."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa

import laprasdp as lp
from laprasdp.data.open import open_table
from laprasdp.privacy.unit import PrivacyUnit
from tests.postgres import Server
from tests.spark import Cluster

_LONG = 60.0  # seconds, after which no further round begins
MANY = 10**9  # rows, of which none has a person
MOST = 5  # of the ten rows that a person has
CITIES = [f"city {k}" for k in range(12)]
DOMAIN = lp.Domain(
    city=lp.Categories(CITIES),
    n=lp.Integers(0, 49),
    x=lp.Bins([k / 20 for k in range(21)]),
    day=lp.Dates("2020-01-01", "2020-12-31", step="month"),
)
DRAWN = """
SELECT 'city ' || hash(i) % 12 AS city, (hash(i + 7) % 50)::INTEGER AS n,
  (hash(i + 9) % 1000)::DOUBLE / 1000 AS x,
  DATE '2020-01-01' + (hash(i + 11) % 366)::INTEGER AS day{who}
FROM range({rows}) AS r(i)
"""
WHO = ", 'person ' || hash(i + 13) % {persons} AS who"
LEVELS = "city, n, floor(x * 20) AS x, date_trunc('month', day) AS day"
OF_ROWS = f"SELECT city, n, x, day, count(*) FROM (SELECT {LEVELS} FROM {{0}}) AS l GROUP BY 1, 2, 3, 4"
OF_PERSONS = f"""
SELECT city, n, x, day, count(*) FROM (
  SELECT city, n, x, day,
    row_number() OVER (PARTITION BY who ORDER BY md5(concat_ws('|', who, city, n, x, day))) AS p
  FROM (SELECT who, {LEVELS} FROM {{0}}) AS l) AS m
WHERE p <= {MOST} GROUP BY 1, 2, 3, 4
"""

UNITS = {"row": OF_ROWS, "person": OF_PERSONS}


def _units(size: int) -> list[str]:
    return list(UNITS) if size < MANY else ["row"]


def rows(full: bool, quick: bool) -> Iterator[dict[str, object]]:
    """
    Rows {engine, rows, cells, unit, seconds, engine_query_seconds, ratio, peak_mib}.

    Seconds are those of the wall: of opening the table, and of the engine's own statement that groups the
    same levels, with persons after a window of each person's rows: medians of up to three rounds, each in a
    process of its own.  The peak is of the process that opens.
    A billion rows, which `full` has, have no persons, and PostgreSQL is given ten million.
    Spark is a master with two workers on this machine; its JVMs are not in the peak, and two rounds in one
    session warm them up before the three that are told.  A size that takes long is run less often, down to
    once, opening first.  An engine that cannot be started is named and left out.
    """
    sizes = (10**6,) if quick else (10**6, 10**7, 10**8, MANY) if full else (10**6, 10**7)
    with tempfile.TemporaryDirectory(prefix="lapras-") as name:
        for size in sizes:
            path = Path(name) / f"{size}.parquet"
            with duckdb.connect() as connection:
                connection.execute("PRAGMA disable_progress_bar")
                who = WHO.format(persons=size // 10) if size < MANY else ""
                drawn = DRAWN.format(rows=size, who=who)
                connection.execute(f"COPY ({drawn}) TO '{path}' (FORMAT parquet)")
            yield from _both("duckdb", str(path), None, size, path)
            if size <= 10**7:
                yield from _in_postgres(path, size)
            yield from _in_spark(path, size)
            path.unlink()


def _in_postgres(path: Path, size: int) -> Iterator[dict[str, object]]:
    try:
        server = Server()
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        print(f"no PostgreSQL can be started here: {error}", file=sys.stderr)
        return
    try:
        with psycopg.connect(server.url, autocommit=True) as connection, duckdb.connect() as source:
            kinds = "city text, n integer, x double precision, day date, who text"
            connection.execute(f"CREATE UNLOGGED TABLE t ({kinds})")
            lines = path.with_suffix(".csv")
            source.execute(f"COPY (FROM '{path}') TO '{lines}' (HEADER false)")
            with connection.cursor().copy("COPY t FROM STDIN (FORMAT csv)") as copy, lines.open("rb") as file:
                while data := file.read(2**20):
                    copy.write(data)
            lines.unlink()
            connection.execute("VACUUM ANALYZE t")
        yield from _both("postgresql", server.url, "t", size, path)
    finally:
        server.remove()


def _in_spark(path: Path, size: int) -> Iterator[dict[str, object]]:
    try:
        found = _alone(_on_cluster, str(path), size)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        print(f"no Spark cluster can be started here: {error}", file=sys.stderr)
        return
    for unit, (seconds, cells, peak, query) in zip(_units(size), found, strict=True):
        yield _row("spark", size, unit, seconds, cells, peak, query)


def _on_cluster(path: str, size: int) -> list[tuple[float, int, float, float]]:
    cluster = Cluster()
    found = []
    try:
        session = cluster.session
        for unit in _units(size):
            statement = UNITS[unit].format(f"parquet.`{path}`")
            rounds: list[tuple[float, float]] = []
            end = time.perf_counter() + _LONG
            while len(rounds) < 5 and (not rounds or time.perf_counter() < end):
                seconds, cells, peak = _opened(session, path, unit)
                begun = time.perf_counter()
                session.sql(statement).toArrow()
                rounds.append((seconds, time.perf_counter() - begun))
            warm = rounds[min(2, len(rounds) - 1) :]
            seconds, query = (statistics.median(times) for times in zip(*warm, strict=True))
            found.append((seconds, cells, peak, query))
    finally:
        cluster.remove()
    return found


def _both(engine: str, source: str, table: str | None, size: int, path: Path) -> Iterator[dict[str, object]]:
    for unit in _units(size):
        own = UNITS[unit].format(f"'{path}'" if table is None else table)
        rounds: list[tuple[float, float]] = []
        end = time.perf_counter() + _LONG
        while len(rounds) < 3 and (not rounds or time.perf_counter() < end):
            seconds, cells, peak = _alone(_opened, source, table, unit)
            rounds.append((seconds, _alone(_queried, source, table, own)))
        seconds, query = (statistics.median(times) for times in zip(*rounds, strict=True))
        yield _row(engine, size, unit, seconds, cells, peak, query)


def _row(
    engine: str, size: int, unit: str, seconds: float, cells: int, peak: float, query: float
) -> dict[str, object]:
    return {
        "engine": engine,
        "rows": size,
        "cells": cells,
        "unit": unit,
        "seconds": seconds,
        "engine_query_seconds": query,
        "ratio": seconds / query,
        "peak_mib": peak,
    }


def _opened(source: Any, table: str | None, unit: str) -> tuple[float, int, float]:
    open_table(pa.table({"n": [1]}), lp.Domain(n=lp.Integers(0, 1)), unit=PrivacyUnit(), key="k").close()
    begun = time.perf_counter()
    of = PrivacyUnit("who", MOST) if unit == "person" else PrivacyUnit()
    with open_table(source, DOMAIN, table=table, unit=of, key="k") as opened:
        seconds = time.perf_counter() - begun
        cells = len(opened.marginal((0, 1, 2, 3)).counts)
    return seconds, cells, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _queried(source: str, table: str | None, statement: str) -> float:
    if table is None:
        with duckdb.connect() as here:
            here.execute("PRAGMA disable_progress_bar")
            begun = time.perf_counter()
            here.execute(statement).fetchall()
            return time.perf_counter() - begun
    with psycopg.connect(source) as there:
        begun = time.perf_counter()
        there.execute(statement.encode()).fetchall()
        return time.perf_counter() - begun


def _alone(act: Callable[..., Any], *arguments: Any) -> Any:
    """What `act` gives in a process of its own, whose memory is its alone."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(act, arguments)
