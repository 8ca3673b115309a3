"""A session of one small table, and whether what it spent is what its ledger holds."""

from __future__ import annotations

import numpy as np
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.record.entries import Release
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 9), sex=lp.Categories(["f", "m"], nullable=True))
BUDGET = lp.Budget(1, 1e-6)
COUNTS = np.arange(30)


def opened(table: object = None, **more: object) -> lp.Session:
    given: dict[str, object] = {"budget": BUDGET, "horizon": 10, "policy": "smooth-cache"}
    given["predictions"] = ["SELECT COUNT(*) FROM t"]
    return open_session(table or MemoryTable(DOMAIN, COUNTS), DOMAIN, **given | more)


def charged_once(session: lp.Session, ledger: MemoryLedger) -> bool:
    """Whether what is spent is what the kept releases add up to."""
    fresh = session.setting.ledger_unit.filter()
    for kept in ledger.since(0):
        if isinstance(kept.entry, Release):
            fresh.spend(kept.entry.charge)
    return session.spent == fresh.spent
