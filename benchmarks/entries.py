"""Growth with the entries of a ledger: how long it takes to open one, with its snapshot and without."""

from __future__ import annotations

import gc
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import laprasdp as lp

SIZES = (1_000, 10_000, 100_000)
LEVELS = 1_000
DOMAIN = lp.Domain(age=lp.Integers(0, LEVELS - 1))
TABLE = pa.table({"age": np.arange(10 * LEVELS) % LEVELS})


def row(value: int) -> dict[str, Any]:
    """
    A ledger of so many entries of the policy `independent`, two for each statement.

    Returns
    -------
    dict
        axis, value, ask_ms (of one that is measured and kept), replay_seconds (from the first entry, with the
        snapshot that is made then), open_seconds (from that snapshot), snapshot_kib, file_mib.  Times are of
        the processor, without what the first session of a process loads.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        with _opened(path) as session:
            session.ask(_statement(0))
            began = time.process_time()
            for number in range(1, value // 2):
                session.ask(_statement(number))
            asked = time.process_time() - began
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE IF EXISTS lapras_snapshot")
        replayed, opened = _timed(path), _timed(path)
        with sqlite3.connect(path) as database:
            there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lapras_snapshot'").fetchone()
            kept = database.execute("SELECT length(state) FROM lapras_snapshot").fetchone() if there else [0]
        size = path.stat().st_size
    return {
        "axis": "entries",
        "value": value,
        "ask_ms": round(1e3 * asked / (value // 2 - 1), 2),
        "replay_seconds": round(replayed, 3),
        "open_seconds": round(opened, 3),
        "snapshot_kib": kept[0] // 1024,
        "file_mib": size >> 20,
    }


def _opened(path: Path) -> lp.Session:
    budget = lp.Budget(1, 1e-6)
    return lp.open_session(
        TABLE, DOMAIN, budget=budget, horizon=100_000, policy="independent", name="t", ledger=path
    )


def _timed(path: Path) -> float:
    gc.collect()
    began = time.process_time()
    with _opened(path) as session:
        assert session.spent > 0
        return time.process_time() - began


def _statement(number: int) -> str:
    """A range of its own for each number."""
    width, low = divmod(number, LEVELS // 2)
    return f"SELECT COUNT(*) FROM t WHERE age >= {low} AND age <= {low + width}"
