"""A small table that grows by months, and what its windows keep."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.ledger import Shelf
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.ledger.sql import SQLShelf
from laprasdp.periods import WindowedSession, open_windows
from laprasdp.record.entries import Release

BUDGET = lp.Budget(1, 1e-6)
JAN, FEB, MAR, APR = (f"2024-0{month}-01" for month in range(1, 5))
COUNT = "SELECT COUNT(*) FROM t"
SPAN = f"{COUNT} WHERE n = 1 AND day BETWEEN '2024-01-30' AND '2024-03-02'"  # all three months


def domain(last: str = "2024-03-31") -> lp.Domain:
    return lp.Domain(n=lp.Integers(0, 2), day=lp.Dates("2024-01-01", last))


def table(last: str = "2024-03-31") -> MemoryTable:
    whole = domain(last)
    return MemoryTable(whole, np.arange(whole.size) % 97)


class Silent:
    """Noise of size nothing, to see what is measured."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [0] * count

    def laplace(self, count: int, scale: int | Fraction) -> list[int]:
        return [0] * count


def opened(source: Any = None, last: str = "2024-03-31", **more: Any) -> WindowedSession:
    given: dict[str, Any] = {"attribute": "day", "periods": "month", "budget": BUDGET, "horizon": 10}
    given["policy"] = "independent"
    return open_windows(table(last) if source is None else source, domain(last), **given | more)


def entries(session: WindowedSession) -> dict[str, list[Any]]:
    """The entries of each period's ledger."""
    return {
        period.name: [kept.entry for kept in session.shelf.ledger(f"{session.name}@{period.name}").since(0)]
        for period in session.periods
    }


def added_up(session: WindowedSession) -> dict[str, float]:
    """What the releases that each period keeps add up to."""
    found = {}
    for name, kept in entries(session).items():
        fresh = session.period(name).setting.ledger_unit.filter()
        for entry in kept:
            if isinstance(entry, Release):
                fresh.spend(entry.charge)
        found[name] = fresh.spent
    return found


def shelves(folder: Path) -> list[Callable[[], Shelf]]:
    return [MemoryShelf, lambda: SQLShelf(folder / "ledger.db")]
