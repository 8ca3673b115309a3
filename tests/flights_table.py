"""The packaged flights as a dashboard has them, in DuckDB and as levels."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from exact import Beside

from benchmarks.dashboard import dashboard, truth, write_packaged
from laprasdp.queries.attribute import Categories
from laprasdp.sql.reader import Reader

TYPES = {
    "flight_date": "DATE",
    "hour": "TINYINT",
    "origin_state": "VARCHAR",
    "arr_delay": "SMALLINT",
    "distance": "SMALLINT",
}


def flights_table() -> Beside:
    """The rows inside the domain."""
    with TemporaryDirectory() as folder:
        write_packaged(Path(folder))
        config = dashboard(Path(folder))
        database = truth(config)
    found = database.execute(
        "SELECT flight_date - DATE '2001-01-01' AS d, hour, origin_state, arr_delay + 60 AS late, "
        "distance // 250 AS bin FROM flights"
    ).fetchnumpy()
    states = config.domain["origin_state"]
    assert isinstance(states, Categories)
    place = {state: level for level, state in enumerate(states.names)}
    columns = [
        found["d"], found["hour"], [place[one] for one in found["origin_state"]], found["late"], found["bin"],
    ]  # fmt: skip
    levels = {name: np.asarray(one).astype(np.int64) for name, one in zip(TYPES, columns, strict=True)}
    return Beside(database, levels, Reader(config.domain, "flights", TYPES, lookups=config.lookups))
