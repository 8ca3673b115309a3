"""`lapras ledger verify` where nothing was asked yet: that is sound, unless a head was noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command import SMALL, invoke, write_small

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger, SQLShelf

DAYS = """
[source]
file = "t.csv"
[privacy]
epsilon = 1
delta = 1e-6
[windows]
attribute = "day"
step = "month"
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-02-29
[ledger]
file = "t.ledger"
"""


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    (tmp_path / "lapras.toml").write_text(f'{SMALL}[ledger]\nfile = "t.ledger"\n')
    return tmp_path / "t.ledger"


def begun(where: Path) -> None:
    invoke("ask", "SELECT nothing FROM t", code=1)


def bare(where: Path) -> None:
    SQLLedger(where).close()


@pytest.mark.parametrize("make", [begun, bare])
def test_nothing_was_asked_yet(where: Path, make: Callable[[Path], None]) -> None:
    make(where)
    assert "nothing was asked yet." in invoke("ledger", "verify").stdout
    found = json.loads(invoke("ledger", "verify", "--json").stdout)
    assert (found["sound"], found["entries"], found["findings"]) == (True, 0, [])
    lost = invoke("ledger", "verify", "--head", "0" * 64, code=1).output
    assert "no entry has the digest" in lost


def test_no_period_was_begun_yet(where: Path) -> None:
    Path("lapras.toml").write_text(DAYS)
    SQLShelf(where).close()
    assert "nothing was asked yet." in invoke("ledger", "verify").stdout


def test_another_dataset_is_no_excuse(where: Path) -> None:
    lp.open_session("t.csv", lp.Domain(n=lp.Integers(0, 9)), budget=lp.Budget(1, 1e-6), ledger=where)
    Path("lapras.toml").write_text(f'{SMALL}[ledger]\nfile = "t.ledger"\ndataset = "other"\n')
    assert "it has no dataset other; there are main" in invoke("ledger", "verify", code=1).output
