"""Statements mean what DuckDB means by them: random conditions over random tables, answered twice.

Conditions are drawn by a grammar from fixed seeds (hypothesis, asked for the same, repeats three in four).
The harness knows nothing of the package's levels: rows are mapped to levels here, in plain Python, and the
literal text of each condition is run by DuckDB over the rows that lie inside the domain.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

from laprasdp.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.domain import Domain
from laprasdp.marginal import Marginal
from laprasdp.sql import parse, truth

EXAMPLES, CLAUSES, ROWS = 140, 45, 60

JOBS = [
    "",
    "it's",
    '"quoted"',
    "100%",
    "a_b",
    "aXb",
    "back\\slash",
    "new\nline",
    "žluť",
    "e\u0301",
    "Null",
    "--",
    ";",
]
TOWNS = ["Ahoj", "b'c", "é"]
EDGES_WHOLE = [0, 15, 60, 90]
EDGES_REAL = [-1.5, 0.1, 0.25, 2.0]
FIRST_DAY = dt.date(2024, 1, 30)
MONTHS = [dt.date(2023, 11, 15), dt.date(2023, 12, 15), dt.date(2024, 1, 15), dt.date(2024, 2, 15)]
MONTHS_LAST = dt.date(2024, 3, 1)

DOMAIN = Domain(
    {
        "age": Integers(-2, 7, nullable=True),
        "Weight (kg)": Bins(EDGES_WHOLE, whole=True, nullable=True),
        "ratio": Bins(EDGES_REAL),
        "Job": Categories(JOBS, nullable=True),
        "town": Categories(TOWNS, other=True, nullable=True),
        'odd "day"': Dates(FIRST_DAY, FIRST_DAY + dt.timedelta(days=5), nullable=True),
        "month": Dates(MONTHS[0], MONTHS_LAST, step="month", nullable=True),
        "flag": Booleans(nullable=True),
        "sure": Booleans(),
    }
)
COLUMNS = (
    'age INTEGER, "Weight (kg)" INTEGER, ratio DOUBLE, "Job" VARCHAR, town VARCHAR, "odd ""day""" DATE, '
    "month DATE, flag BOOLEAN, sure BOOLEAN"
)


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


# ---- conditions as text -----------------------------------------------------------------------------------


Drawn = Callable[[random.Random], Any]


def one_from(*values: Any) -> Drawn:
    return lambda rng: rng.choice(values)


def one_of(*parts: Drawn) -> Drawn:
    return lambda rng: rng.choice(parts)(rng)


def built(write: Callable[..., str], *parts: Drawn) -> Drawn:
    return lambda rng: write(*(part(rng) for part in parts))


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_of(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def spelled(name: str, *bare: str):
    """The ways to name a column: quoted, qualified and, where that is allowed, bare in any case."""
    return one_from(*[quote(name), f"people.{quote(name)}", *bare, *(b.upper() for b in bare)])


AGE = spelled("age", "age")
WEIGHT = spelled("Weight (kg)")
RATIO = spelled("ratio", "ratio")
JOB = spelled("Job", "job")
TOWN = spelled("town", "Town")
DAY = spelled('odd "day"')
MONTH = spelled("month", "people.month")
FLAG = spelled("flag", "flag")
SURE = spelled("sure", "sure")
OP = one_from("=", "<>", "!=", "<", "<=", ">", ">=", "==")
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

INTEGER = one_from(
    *[
        "-3",
        "-2",
        "- 1",
        "0",
        "+3",
        "4",
        "7",
        "8",
        "2.5",
        "-0.5",
        "3.0",
        "1e0",
        "25e-1",
        "NULL",
        "1_0",
        "99999999999",
    ]
)
JOB_TEXT = one_from(*[text_of(job) for job in JOBS] + ["NULL"])
TOWN_TEXT = one_from(*[text_of(town) for town in TOWNS] + ["NULL"])
PATTERN = one_from(
    *[
        "%",
        "",
        "_%",
        "%b",
        "a_b",
        "a%b",
        "%\\%",
        "100%",
        "%'%",
        "n%e",
        "__",
        "_",
        "%u%",
        "%%l%",
        "-_",
        "\\_",
        '%"%',
        "_%_%_",
    ]
)
DAY_TEXT = one_from(*[(FIRST_DAY + dt.timedelta(days=n)).isoformat() for n in range(-2, 8)])
MONTH_EDGE = one_from(
    *[
        day.isoformat()
        for day in (dt.date(2000, 1, 1), *MONTHS, MONTHS_LAST + dt.timedelta(days=1), dt.date(2030, 1, 1))
    ]
)
MONTH_END = one_from(
    *[(day - dt.timedelta(days=1)).isoformat() for day in MONTHS] + [MONTHS_LAST.isoformat(), "2031-05-05"]
)


def date(text: Drawn) -> Drawn:
    shape = one_from("'{}'", "DATE '{}'", "CAST('{}' AS DATE)", "'{}'::DATE")
    return built(lambda shape, day: shape.format(day), shape, text)


def compared(column, op, constant):
    """Either way round, sometimes in parentheses."""

    def write(column: str, op: str, constant: str, shape: int) -> str:
        if shape == 0:
            return f"{constant} {MIRROR.get(op, op)} {column}"
        if shape == 1 and op != "!=":  # to DuckDB, !=- is another operator
            return f"{column}{op}{constant}"
        return f"({column}) {op}({constant})" if shape == 2 else f"{column} {op} {constant}"

    return built(write, column, op, constant, one_from(0, 1, 2, 3))


def listed(column, constant):
    return built(
        lambda column, maybe, items: f"{column} {maybe}IN ({', '.join(items)})",
        column,
        one_from("", "NOT "),
        lambda rng: [constant(rng) for _ in range(rng.randint(1, 4))],
    )


def between(column, low, high):
    return built("{} {}BETWEEN {} AND {}".format, column, one_from("", "NOT ", "not "), low, high)


def distinct(column, constant):
    return built("{} IS {}DISTINCT FROM {}".format, column, one_from("", "NOT "), constant)


THREE = one_from("NULL", "TRUE", "FALSE")
WHOLE_EDGE = one_from("-7", "0", "15", "60", "90", "1000", "14.5", "NULL", "15e0")
WHOLE_END = one_from("-1", "14", "59", "89", "14.5", "59.999", "95", "NULL")
REAL_EDGE = one_from("-1.5", "0.1", ".25", "2", "1e-1", "-99", "2.5e0", "NULL", "0.10000")

ATOM = one_of(
    compared(AGE, OP, INTEGER),
    listed(AGE, INTEGER),
    between(AGE, INTEGER, INTEGER),
    distinct(AGE, INTEGER),
    compared(WEIGHT, one_from("<", ">="), WHOLE_EDGE),
    compared(WEIGHT, one_from("<=", ">"), WHOLE_END),
    compared(WEIGHT, one_from("=", "<>"), one_from("-1", "90", "14.5", "NULL")),
    between(WEIGHT, WHOLE_EDGE, WHOLE_END),
    compared(RATIO, one_from("<", ">="), REAL_EDGE),
    compared(JOB, OP, JOB_TEXT),
    listed(JOB, JOB_TEXT),
    between(JOB, JOB_TEXT, JOB_TEXT),
    distinct(JOB, JOB_TEXT),
    built(
        lambda column, maybe, pattern: f"{column} {maybe}LIKE {text_of(pattern)}",
        JOB,
        one_from("", "NOT ", "not "),
        PATTERN,
    ),
    built(
        lambda column, maybe, pattern: f"{column} {maybe}LIKE {text_of(pattern)} ESCAPE '!'",
        JOB,
        one_from("", "NOT "),
        one_from("%!%", "a!_b", "!a%", "%!!%", "1__!%"),
    ),
    compared(TOWN, one_from("=", "<>"), TOWN_TEXT),
    listed(TOWN, TOWN_TEXT),
    distinct(TOWN, TOWN_TEXT),
    compared(DAY, OP, date(DAY_TEXT)),
    listed(DAY, date(DAY_TEXT)),
    between(DAY, date(DAY_TEXT), date(DAY_TEXT)),
    compared(MONTH, one_from("<", ">="), date(MONTH_EDGE)),
    compared(MONTH, one_from("<=", ">"), date(MONTH_END)),
    between(MONTH, date(MONTH_EDGE), date(MONTH_END)),
    FLAG,
    SURE,
    compared(FLAG, OP, one_from("TRUE", "false", "NULL")),
    built("{} IS {}{}".format, FLAG, one_from("", "NOT "), THREE),
    distinct(FLAG, THREE),
    built(
        "{} IS {}NULL".format,
        one_of(AGE, WEIGHT, RATIO, JOB, TOWN, DAY, MONTH, FLAG, SURE),
        one_from("", "NOT "),
    ),
    one_from(
        *[
            *("TRUE", "FALSE", "NULL", "1 = 1", "1 <> 1.0", "'a' < 'b'", "NULL = NULL", "NULL IN (1, NULL)"),
            *("0.1 = 1e-1", "NULL IS NOT DISTINCT FROM NULL", "2 BETWEEN 1 AND NULL", "3 NOT IN (1, 2)"),
            *("DATE '2024-01-02' > '2024-01-01'", "3.00000000000000000001 BETWEEN 3 AND 3e0"),
        ]
    ),
)


def nested(rng: random.Random, depth: int = 3) -> str:
    """A condition with AND, OR, NOT and IS around others."""
    if depth == 0 or rng.random() < 0.2:
        return ATOM(rng)
    first, second, third = (nested(rng, depth - 1) for _ in range(3))
    negated, value = rng.choice(["", "NOT "]), THREE(rng)
    return rng.choice(
        [
            f"{first} AND {second}",
            f"{first} OR {second}",
            f"({first} or {second}) and {third}",
            f"NOT ({first})",
            f"NOT {first}",
            f"({first}) IS {negated}{value}",
        ]
    )


AGGREGATE = one_of(
    *[one_from("COUNT(*)")] * 4,
    one_from(
        *[
            "COUNT(1)",
            "COUNT(age)",
            'count("Weight (kg)")',
            "SUM(age)",
            "SUM(flag)",
            "SUM(3)",
            "COUNT(CASE WHEN age > 2 OR NOT flag THEN 1 END)",
            "SUM(CASE WHEN flag THEN 2 WHEN age < 3 THEN -5 WHEN sure THEN NULL ELSE 1 END)",
            "SUM(CASE WHEN NOT (job = '100%' AND flag) THEN age ELSE -1 END)",
            "SUM(age > 3)",
        ]
    ),
)


# ---- the tests --------------------------------------------------------------------------------------------


def test_random_conditions_are_answered_as_duckdb_answers_them():
    """At least 5,000 different conditions, the count asserted; half of the answers are neither 0 nor all."""
    clauses: set[str] = set()
    told = 0
    for seed in range(EXAMPLES):
        rng, harness = random.Random(f"clauses {seed}"), Harness(seed)
        aggregates = [(AGGREGATE(rng), nested(rng)) for _ in range(CLAUSES)]
        assert harness.differences(aggregates) == []
        clauses.update(clause for _, clause in aggregates)
        told += harness.told
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
