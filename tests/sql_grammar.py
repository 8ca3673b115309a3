"""Random SQL conditions over one domain with odd names, as text; what the differential test draws from."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

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
