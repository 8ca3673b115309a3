"""A small table of every kind of attribute, with a lookup, in DuckDB and as levels."""

from __future__ import annotations

import datetime as dt
import random

import duckdb
import numpy as np
import pyarrow as pa
from exact import Beside

from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader

DOMAIN = Domain(
    a=Integers(-2, 5),
    n=Integers(0, 3, nullable=True),
    s=Categories(["x", "Y", "zed"]),
    d=Dates("2024-01-30", "2024-03-05"),
    f=Booleans(),
    w=Bins([0, 10, 20, 40], whole=True),
)
TYPES = {"a": "SMALLINT", "n": "INTEGER", "s": "VARCHAR", "d": "DATE", "f": "BOOLEAN", "w": "INTEGER"}
LOOKUP = Lookup(
    pa.table(
        {"code": ["x", "zed", "other", None], "area": ["west", "east", "north", "none"], "pop": [3, 4, 5, 6]}
    ),
    "code",
)
ROWS = 6_000
DAYS = 36


def small_table() -> Beside:
    """Rows that fill every group of up to three attributes."""
    rng = random.Random(16)
    rows = []
    for _ in range(ROWS):
        n = rng.randrange(5)
        rows.append(
            (
                rng.choice([-2, -1, 0, 0, 1, 2, 3, 4, 5, 5]),
                None if n == 4 else n,
                rng.choice(["x", "Y", "Y", "zed"]),
                dt.date(2024, 1, 30) + dt.timedelta(days=rng.randrange(DAYS)),
                rng.random() < 0.4,
                rng.randrange(40),
            )
        )
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    database.register("made", pa.table(dict(zip(TYPES, zip(*rows, strict=True), strict=True))))
    database.execute("INSERT INTO t FROM made")
    database.register("look", LOOKUP.rows)
    levels = {
        "a": [row[0] + 2 for row in rows],
        "n": [4 if row[1] is None else row[1] for row in rows],
        "s": [["x", "Y", "zed"].index(row[2]) for row in rows],
        "d": [(row[3] - dt.date(2024, 1, 30)).days for row in rows],
        "f": [int(row[4]) for row in rows],
        "w": [0 if row[5] < 10 else 1 if row[5] < 20 else 2 for row in rows],
    }
    found = {name: np.array(column) for name, column in levels.items()}
    return Beside(database, found, Reader(DOMAIN, "t", TYPES, lookups={"look": LOOKUP}))
