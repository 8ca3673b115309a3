"""What leaves the budget is named where it happens: with the answer, in its row, in the line of a refusal."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from command import invoke, write_small
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.stream.answer import Released

DOMAIN = lp.Domain(age=lp.Integers(0, 39), sex=lp.Categories(["f", "m"]))
TABLE = MemoryTable(DOMAIN, range(80))
PREDICTED = [
    "SELECT COUNT(*) FROM t",
    *(f"SELECT COUNT(*) FROM t WHERE age < {high}" for high in range(20, 38)),
]
ASKED = [
    *PREDICTED,
    *(f"SELECT COUNT(*) FROM t WHERE age >= {low}" for low in range(12)),
    *("SELECT COUNT(*) FROM t GROUP BY sex", "SELECT COUNT(*) FROM t GROUP BY age", "raise"),
]


def opened(**given: Any) -> lp.Session:
    declared: dict[str, Any] = {"budget": lp.Budget(1, 1e-6), "horizon": 12, "predictions": PREDICTED}
    return lp.open_session(TABLE, DOMAIN, **declared | given)


@settings(max_examples=20, deadline=None)
@given(
    policy=st.sampled_from(["primm", "smooth-cache", "static", "independent", "histogram"]),
    accounting=st.sampled_from(["basic", "gaussian"]),
    asked=st.lists(st.sampled_from(ASKED), min_size=1, max_size=14),
)
def test_what_is_shown_is_what_left_the_budget(policy: str, accounting: str, asked: list[str]) -> None:
    ledger, accounting = MemoryLedger(), "gaussian" if policy == "primm" else accounting
    session = opened(policy=policy, accounting=accounting, ledger=ledger)
    for text in asked:
        before, spent = len(ledger.since(0)), session.spent
        if text == "raise":
            session.raise_budget(lp.Budget(session.budget.epsilon * 1.5, 1e-6))
            continue
        charge, released, says = 0.0, tuple[Released, ...](), ""
        try:
            answer = session.ask(text)
        except lp.BudgetExhausted as refused:
            released, says = refused.released, str(refused)
        else:
            charge, released = answer.charge, answer.released
        assert says == "" or says.count("left the budget") == len(released)
        shown = charge + math.fsum(one.charge for one in released)
        new = [kept.entry for kept in ledger.since(before) if isinstance(kept.entry, Release)]
        assert len(released) == sum(entry.opening for entry in new)
        assert shown == pytest.approx(math.fsum(entry.charge.price for entry in new), rel=1e-12)
        left = session.spent - spent
        assert left <= shown * (1 + 1e-12) + 1e-15  # queries on different cells are charged side by side
        if accounting == "basic":
            assert left == pytest.approx(shown, rel=1e-12, abs=2.0**-39)


def test_the_reason_is_opening_then_batch_or_raise() -> None:
    session = opened(horizon=60)
    reasons = [one.reason for one in session.ask(PREDICTED[0]).released]
    assert set(reasons) == {"opening"}
    found = {}
    for place in range(2, 30):
        if place == 10:
            session.raise_budget(lp.Budget(4, 1e-6))
        for one in session.ask(f"SELECT COUNT(*) FROM t WHERE age >= {place}").released:
            found.setdefault(one.reason, place)
    assert found["raise"] >= 10
    assert "opening" not in found


def test_periods_name_what_each_released() -> None:
    days = lp.Domain(day=lp.Dates("2024-01-01", "2024-02-29"))
    session = lp.open_windows(
        MemoryTable(days, [2] * 60), days, attribute="day", periods="month", budget=lp.Budget(1, 1e-6)
    )
    answer = session.ask("SELECT COUNT(*) FROM t")
    assert [one.period for one in answer.released] == ["2024-01-01", "2024-02-01"]
    spent = math.fsum(one.charge for one in answer.released) + answer.charge
    assert spent == pytest.approx(math.fsum(session.spent.values()))
    assert session.ask("SELECT COUNT(*) FROM t").released == ()


def test_the_command_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    Path("asked.sql").write_text("SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t;")
    first, again = map(json.loads, invoke("run", "asked.sql", "--json").stdout.splitlines())
    assert [one["reason"] for one in first["released"]] == ["opening"]
    assert first["released"][0]["charge"] > 0
    assert again["released"] == []
    told = invoke("run", "asked.sql").stdout.splitlines()
    assert [line.startswith("      also released: the first release, ") for line in told] == [
        False,
        False,
        True,
        False,
    ]


def test_a_query_made_in_python_tells_it_too() -> None:
    assert opened().ask(Query.count(DOMAIN, age=[1])).released[0].row()["reason"] == "opening"
