"""A ledger of five statements in a SQLite file, and how somebody changes it who may change everything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 9))
SHARED = pytest.mark.filterwarnings("ignore:dataset:UserWarning")  # ledgers alike in one database
STATEMENTS = [f"SELECT COUNT(*) FROM t WHERE age < {high}" for high in (3, 5, 5, 8, 2)]


def opened(ledger: Any, **more: Any) -> lp.Session:
    given: dict[str, Any] = {"budget": lp.Budget(1, 1e-6), "horizon": 4, "policy": "independent"}
    return open_session(MemoryTable(DOMAIN, np.arange(10)), DOMAIN, ledger=ledger, **given | more)


def five_statements(tmp_path: Path) -> Path:
    """A ledger of five statements, two of them alike and the last refused."""
    place = tmp_path / "ledger.db"
    session = opened(place, horizon=3)
    for statement in STATEMENTS[:4]:
        session.ask(statement, analyst="ada")
    with pytest.raises(lp.BudgetExhausted):
        session.ask(STATEMENTS[4])
    assert verify(SQLLedger(place)) == []
    return place


@contextmanager
def past_the_guards(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as somebody sees it who may change everything, and covers it up."""
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, again in guards:
            connection.execute(again)
        connection.commit()


def meddle(path: Path, *statements: str) -> None:
    with past_the_guards(path) as connection:
        for statement in statements:
            connection.execute(statement)
