"""Every column type, every way to write a constant, every comparison: DuckDB's count or a refusal.

Each case is a real DuckDB table whose rows all lie inside the domain; the same text is answered by DuckDB
over the rows, and by the package over the counts that `DuckDBTable` makes.  The whole takes half an hour:
``LAPRAS_WHOLE_SQL=1``; otherwise a sample of some cases is run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from sql_types import Case, cases, conditions

from laprasdp import Domain
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.errors import LaprasError
from laprasdp.sql.reader import Reader

WHOLE = bool(os.environ.get("LAPRAS_WHOLE_SQL"))
SAMPLE = 40
TOLD: Counter[str] = Counter()


def written(case: Case, where: Path) -> Path:
    """A database with one table of the case: each value as often as its place says, and NULL twice."""
    rows = [value for place, value in enumerate(case.values) for _ in range(place % 3 + 1)]
    with duckdb.connect(str(where)) as database:
        database.execute(f"CREATE TABLE t (v {case.type})")
        database.execute(f"INSERT INTO t VALUES {', '.join(f'({row})' for row in [*rows, 'NULL', 'NULL'])}")
    return where


def theirs(database: duckdb.DuckDBPyConnection, asked: list[str]) -> list[int | None]:
    """DuckDB's counts; None where it fails."""
    listed = ", ".join(f"COUNT(*) FILTER (WHERE {one})" for one in asked)
    try:
        (row,) = database.execute(f"SELECT {listed} FROM t").fetchall()
        return list(row)
    except duckdb.Error:
        if len(asked) == 1:
            return [None]
        middle = len(asked) // 2
        return theirs(database, asked[:middle]) + theirs(database, asked[middle:])


def chosen() -> list[Case]:
    """All cases, or one in four and all that are not numbers."""
    found = cases()
    return found if WHOLE else [one for n, one in enumerate(found) if n % 4 == 0 or not one.numeric]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in chosen()])
def test_a_comparison_is_duckdbs_or_refused(case: Case, tmp_path: Path) -> None:
    path = written(case, tmp_path / "t.db")
    domain = Domain(v=case.attribute)
    listed = conditions(case)
    if not WHOLE:
        listed = random.Random(case.name).sample(listed, min(SAMPLE, len(listed)))
    told: Counter[str] = Counter()
    different = []
    with DuckDBTable(path, domain, table="t") as table:
        reader = Reader(domain, "t", table.types)
        answered: list[tuple[str, int]] = []
        for condition in listed:
            try:
                (query,) = reader.parse(f"SELECT COUNT(*) FROM t WHERE {condition}").queries
            except LaprasError:
                told["refused"] += 1
                continue
            answered.append((condition, query.answer(table.marginal(query.axes))))
        with duckdb.connect(str(path), read_only=True) as database:
            (inside,) = database.execute("SELECT COUNT(*) FROM t").fetchone() or (None,)
            assert table.marginal(()).counts.sum() == inside, "the harness means all rows to be inside"
            database.execute("SET threads = 1")
            asked = [condition for condition, _ in answered]
            found = [n for i in range(0, len(asked), 20) for n in theirs(database, asked[i : i + 20])]
    for (condition, ours), exact in zip(answered, found, strict=True):
        told["equal" if ours == exact else "different"] += 1
        if ours != exact:
            different.append((condition, ours, exact))
    TOLD.update(told)
    assert not different, different[:20]
    if WHOLE:
        assert told["equal"] > 20
        print(f"{case.name}: {dict(told)}; so far {dict(TOLD)}")
