"""The packaged flights as a dashboard has them: a day, an hour, a state, a delay and a distance."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from exact import Beside

from laprasdp import datasets
from laprasdp.queries.attribute import Bins, Categories, Dates, Integers
from laprasdp.queries.domain import Domain
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader

REGIONS = {
    "West": "AK AZ CA CO HI ID MT NM NV OR UT WA WY",
    "South": "AL AR DC DE FL GA KY LA MD MS NC OK SC TN TX VA WV",
    "Northeast": "CT MA ME NH NJ NY PA RI VT",
    "Midwest": "IA IL IN KS MI MN MO ND NE OH SD WI",
    "Territory": "AS GU MP PR VI",
}
STATES = sorted(
    state
    for region in REGIONS.values()
    for state in region.split()
    if state not in ("AS", "DC", "DE", "GU", "MP")
)
DOMAIN = Domain(
    flight_date=Dates("2001-01-01", "2001-07-31"),
    hour=Integers(0, 23),
    origin_state=Categories(STATES),
    arr_delay=Integers(-60, 240),
    distance=Bins(start=0, stop=5000, width=250, whole=True),
)
TYPES = {
    "flight_date": "DATE",
    "hour": "TINYINT",
    "origin_state": "VARCHAR",
    "arr_delay": "SMALLINT",
    "distance": "SMALLINT",
}
LOOKUP = Lookup(
    pa.table(
        {
            "abr": [one for states in REGIONS.values() for one in states.split()],
            "region": [region for region, states in REGIONS.items() for _ in states.split()],
        }
    ),
    "abr",
)
_MADE = """CREATE TABLE flights AS
SELECT CAST(DATE '2001-01-01' + CAST(row_number() OVER () * 7919 % 181 AS INTEGER) AS DATE) AS flight_date,
    CAST(DEP_TIME // 100 % 24 AS TINYINT) AS hour, ORIGIN_STATE_ABR AS origin_state,
    CAST(ARR_DELAY AS SMALLINT) AS arr_delay, CAST(DISTANCE AS SMALLINT) AS distance
FROM '{path}' WHERE DEP_TIME IS NOT NULL AND ARR_DELAY BETWEEN -60 AND 240 AND DISTANCE < 5000
    AND ORIGIN_STATE_ABR IN ({states})"""


def flights_database() -> duckdb.DuckDBPyConnection:
    """The rows inside the domain; the days are spread over half a year, for the file has three."""
    database = duckdb.connect()
    database.execute("SET threads = 1")
    states = ", ".join(f"'{one}'" for one in STATES)
    database.execute(_MADE.format(path=datasets.path("flights"), states=states))
    database.register("states", LOOKUP.rows)
    return database


def flights_table() -> Beside:
    """The rows in DuckDB and as levels."""
    database = flights_database()
    found = database.execute(
        "SELECT flight_date - DATE '2001-01-01', hour, origin_state, arr_delay, distance FROM flights"
    ).fetchnumpy()
    place = {state: level for level, state in enumerate(STATES)}
    levels = {
        "flight_date": found[next(iter(found))],
        "hour": found["hour"],
        "origin_state": np.array([place[one] for one in found["origin_state"]]),
        "arr_delay": found["arr_delay"].astype(np.int64) + 60,
        "distance": found["distance"] // 250,
    }
    whole = {name: np.asarray(column).astype(np.int64) for name, column in levels.items()}
    return Beside(database, whole, Reader(DOMAIN, "flights", TYPES, lookups={"states": LOOKUP}))
