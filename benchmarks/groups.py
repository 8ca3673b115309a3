"""Growth with the groups of a statement: time, others' wait, and error on a durable ledger."""

from __future__ import annotations

import math
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.record.entries import Stamp

HORIZON, ROWS = 100, 100_000
BUDGET = lp.Budget(1.0, 1e-6)
SHAPES = {10: (5, 2), 100: (10, 10), 1_224: (36, 34), 10_000: (100, 100)}
POLICIES = ("primm", "smooth-cache", "smooth", "static", "independent")


def row(value: int, policy: str) -> dict[str, Any]:
    """
    One statement of so many groups of two attributes under a condition on a third, after an ordinary one.

    Returns
    -------
    dict
        axis, value, policy, unexpected_mae, independent_mae, ask_ms (of the processor, all of it),
        transaction_ms (by the clock: others wait at most for that), repeat_ms, rollup_ms (the same by one of
        the attributes), covariance_ms (None above the limit), kept_kib, verify_ms, peak_mib.
    """
    one, other = SHAPES[value]
    domain = lp.Domain(a=lp.Integers(0, one - 1), b=lp.Integers(0, other - 1), c=lp.Integers(0, 49))
    rng = np.random.default_rng(5)
    table = pa.table({name: rng.integers(0, domain[name].size, ROWS) for name in domain.names})
    count = "COUNT(*) FROM t WHERE c >= 20"
    with tempfile.TemporaryDirectory() as folder:
        ledger = Timed(Path(folder) / "ledger")
        with lp.open_session(
            table, domain, budget=BUDGET, horizon=HORIZON, policy=policy, name="t", ledger=ledger
        ) as session:
            session.ask("SELECT COUNT(*) FROM t WHERE c < 7")
            answer, asked = _timed(lambda: session.ask(f"SELECT a, b, {count} GROUP BY a, b"))
            held, kept = ledger.held, sum(len(one.body) for one in ledger.everything()[1][-2:])
            again = _timed(lambda: session.ask(f"SELECT a, b, {count} GROUP BY a, b"))[1]
            rolled = _timed(lambda: session.ask(f"SELECT a, {count} GROUP BY a"))[1]
            covariance, worked = _timed(lambda: answer.covariance)
            findings, verified = _timed(lambda: verify(ledger))
            assert not findings
    return {
        "axis": "groups",
        "value": value,
        "policy": policy,
        "unexpected_mae": round(float(np.mean([mean_absolute(one.std) for one in answer])), 2),
        "independent_mae": round(mean_absolute(math.sqrt(HORIZON) / BUDGET.mu), 2),
        "ask_ms": round(asked, 1),
        "transaction_ms": round(held, 1),
        "repeat_ms": round(again, 1),
        "rollup_ms": round(rolled, 1),
        "covariance_ms": None if covariance is None else round(worked, 1),
        "kept_kib": kept // 1024,
        "verify_ms": round(verified, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


class Timed(SQLLedger):
    """A ledger that keeps how long the last transaction held it, in milliseconds."""

    held = 0.0

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            began = time.perf_counter()
            yield transaction
        self.held = 1e3 * (time.perf_counter() - began)


def _timed(what: Any) -> tuple[Any, float]:
    began = time.process_time()
    found = what()
    return found, 1e3 * (time.process_time() - began)
