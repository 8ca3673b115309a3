"""Statements mean what DuckDB means by them: random conditions over random tables, answered twice.

Hypothesis draws the seeds of a grammar of conditions (asked for the conditions themselves, it repeats three
in four of them); a failure names its seed and its condition.
The harness knows nothing of the package's levels: rows are mapped to levels here, in plain Python, and the
literal text of each condition is run by DuckDB over the rows that lie inside the domain.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random

import duckdb
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sql_grammar import (
    AGGREGATE,
    COLUMNS,
    DOMAIN,
    EDGES_REAL,
    EDGES_WHOLE,
    FIRST_DAY,
    JOBS,
    MONTHS,
    MONTHS_LAST,
    TOWNS,
    nested,
    quote,
)

from laprasdp.queries.marginal import Marginal
from laprasdp.sql import parse, truth

EXAMPLES, CLAUSES, ROWS = 140, 45, 60


# ---- the independent door: rows and their levels ----------------------------------------------------------


def draw_row(rng: random.Random) -> tuple[object, ...]:
    """Mostly inside the domain, sometimes on its edge or outside, often NULL."""

    def maybe(value: object, share: float = 0.25) -> object:
        return None if rng.random() < share else value

    return (
        maybe(rng.randint(-3, 8) if rng.random() < 0.1 else rng.randint(-2, 7)),
        maybe(rng.choice([-1, 90, 0, 14, 15, 59, 60, 89, rng.randint(0, 89), rng.randint(0, 89)])),
        maybe(
            rng.choice([-1.5, 0.1, 0.25, 1.9999999999999998, rng.uniform(-1.5, 2), rng.uniform(-1.6, 2.1)]),
            0.02,
        ),
        maybe(rng.choice([*JOBS, "undeclared"] if rng.random() < 0.1 else JOBS)),
        maybe(rng.choice([*TOWNS, "elsewhere", ""])),
        maybe(FIRST_DAY + dt.timedelta(days=rng.randint(-1, 6) if rng.random() < 0.1 else rng.randint(0, 5))),
        maybe(
            dt.date(2023, 11, 14)
            + dt.timedelta(days=rng.randint(1, 108) if rng.random() < 0.9 else rng.choice([0, 109]))
        ),
        maybe(rng.random() < 0.5),
        maybe(rng.random() < 0.5, 0.02),
    )


def levels_of(row: tuple[object, ...]) -> list[int] | None:
    """The level of every column, or None for a row outside the domain."""
    age, weight, ratio, job, town, day, month, flag, sure = row
    levels: list[int | None] = []
    levels.append(10 if age is None else age + 2 if -2 <= age <= 7 else None)
    levels.append(3 if weight is None else bin_of(weight, EDGES_WHOLE))
    levels.append(None if ratio is None else bin_of(ratio, EDGES_REAL))
    levels.append(len(JOBS) if job is None else JOBS.index(job) if job in JOBS else None)
    levels.append(4 if town is None else TOWNS.index(town) if town in TOWNS else 3)
    ordinal = 6 if day is None else (day - FIRST_DAY).days
    levels.append(ordinal if 0 <= ordinal <= 6 - (day is not None) else None)
    if month is None:
        levels.append(4)
    else:
        levels.append(
            sum(month >= first for first in MONTHS) - 1 if MONTHS[0] <= month <= MONTHS_LAST else None
        )
    levels.append(2 if flag is None else int(flag))
    levels.append(None if sure is None else int(sure))
    return None if None in levels else levels


def bin_of(value: float, edges: list[float]) -> int | None:
    return next((i for i, (a, b) in enumerate(itertools.pairwise(edges)) if a <= value < b), None)


class Harness:
    """One random table, held twice: by DuckDB as rows and here as levels."""

    def __init__(self, seed: int, rows: int = ROWS) -> None:
        rng = random.Random(seed)
        mapped = [(row, levels_of(row)) for row in (draw_row(rng) for _ in range(rows))]
        inside = [row for row, levels in mapped if levels is not None]
        self.levels = np.array([levels for _, levels in mapped if levels is not None], dtype=int).reshape(
            -1, 9
        )
        self.database = duckdb.connect()
        self.database.execute(f"CREATE TABLE people ({COLUMNS})")
        if inside:
            self.database.executemany(f"INSERT INTO people VALUES ({', '.join('?' * 9)})", inside)
        self.told = 0  # answers that are neither nothing nor all rows

    def answer(self, query) -> int:
        columns = {axis: self.levels[:, axis] for axis in query.axes}
        return query.answer(Marginal(columns, np.ones(len(self.levels), dtype=np.int64)))

    def differences(self, aggregates: list[tuple[str, str]]) -> list[tuple[str, int, int]]:
        """(aggregate, condition) pairs answered by both; those on which the two disagree."""
        listed = ", ".join(f"{what} FILTER (WHERE {clause})" for what, clause in aggregates)
        theirs = self.database.execute(f"SELECT {listed} FROM people").fetchone()
        found = []
        for (what, clause), expected in zip(aggregates, theirs, strict=True):
            statement = parse(f"SELECT {what} FROM people WHERE {clause}", DOMAIN, "people")
            ours = self.answer(statement.queries[0])
            self.told += 0 < ours < len(self.levels)
            if ours != int(expected or 0):
                found.append((f"{what} … {clause}", ours, int(expected or 0)))
        return found

    def group_differences(self, what: str, clause: str, by: list[int]) -> list[object]:
        names = [quote(DOMAIN.names[axis]) for axis in by]
        text = (
            f"SELECT {', '.join(names)}, {what} AS n FROM people WHERE {clause} GROUP BY {', '.join(names)}"
        )
        theirs: dict[tuple[int, ...], int] = {}
        for *key, count in self.database.execute(text).fetchall():
            row = [None if i not in by else key[by.index(i)] for i in range(9)]
            row[2], row[8] = (0.0 if row[2] is None else row[2]), bool(row[8])
            levels = levels_of(tuple(row))
            assert levels is not None
            group = tuple(levels[axis] for axis in by)
            theirs[group] = theirs.get(group, 0) + int(count or 0)
        statement = parse(text, DOMAIN, "people")
        groups = list(itertools.product(*(range(DOMAIN.shape[axis]) for axis in by)))
        labels = [tuple(DOMAIN[DOMAIN.names[a]].label(n) for a, n in zip(by, g, strict=True)) for g in groups]
        assert list(statement.groups) == labels
        ours = {group: self.answer(query) for group, query in zip(groups, statement.queries, strict=True)}
        return [(text, g, n, theirs.get(g, 0)) for g, n in ours.items() if n != theirs.get(g, 0)]


# ---- the tests --------------------------------------------------------------------------------------------


def test_drawn_conditions_are_answered_as_duckdb_answers_them():
    """At least 5,000 different conditions, the count asserted; half of the answers are neither 0 nor all."""
    clauses: set[str] = set()
    told = 0

    @settings(max_examples=EXAMPLES, phases=(Phase.explicit, Phase.reuse, Phase.generate))
    @given(st.integers(0, 2**64 - 1))
    def conditions_of(seed: int) -> None:
        nonlocal told
        rng, harness = random.Random(f"clauses {seed}"), Harness(seed)
        aggregates = [(AGGREGATE(rng), nested(rng)) for _ in range(CLAUSES)]
        assert harness.differences(aggregates) == []
        clauses.update(clause for _, clause in aggregates)
        told += harness.told

    conditions_of()
    assert len(clauses) >= 5000
    assert told >= 2500


def test_groups_are_answered_as_duckdb_answers_them():
    rng = random.Random("groups")
    for seed in range(100):
        by = rng.sample(range(9), rng.randint(1, 2))
        assert Harness(seed).group_differences(AGGREGATE(rng), nested(rng), by) == []


FIXED = [
    ("COUNT(*)", clause)
    for clause in ("NOT (age = 3)", "NOT flag", "NOT (job IN ('', NULL))", "age NOT IN (1)")
]


def test_a_wrong_logic_is_caught(monkeypatch):
    """Negative control: with NOT unknown = true the same harness must find every fixed case wrong."""
    harness = Harness(7, rows=200)
    assert harness.differences(FIXED) == []
    monkeypatch.setattr(truth, "NOT", (truth.TRUE, truth.TRUE, truth.FALSE))
    assert len(harness.differences(FIXED)) == len(FIXED)


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_without_rows(rows):
    assert Harness(1, rows=rows).differences(FIXED) == []
