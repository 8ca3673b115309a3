"""Whatever is asked and raised, in whatever order, is kept soundly: for verification and for the script."""

from __future__ import annotations

import contextlib

import pytest
from forged import COUNT, GROUPS, KINDS, Text, ask, session, text_of
from forged import Forged as Ledger
from growing import JAN, SPAN, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ledger_mutants import replayed

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger, MemoryShelf
from laprasdp.ledger.verify import verify
from laprasdp.record.format import canonical, write_entry

AGES = st.lists(st.integers(0, 4), min_size=1, unique=True).map(sorted)
STATEMENTS = st.one_of(
    st.just(GROUPS),
    st.just(f"{COUNT} WHERE age > 99"),
    AGES.map(lambda ages: f"{COUNT} WHERE age IN ({', '.join(map(str, ages))})"),
    AGES.map(lambda ages: f"{COUNT} WHERE NOT age BETWEEN {ages[0]} AND {ages[-1]}"),
    AGES.map(lambda ages: f"SELECT SUM(CASE WHEN age < {ages[-1]} THEN 1 ELSE 0 END) FROM t"),
)
ACTS = st.lists(STATEMENTS | st.floats(1.01, 2), max_size=12)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("primm, dense", "primm on marginals")]
)
@settings(max_examples=4)
@given(acts=ACTS, again=st.booleans())
def test_what_a_session_keeps_is_sound(kind: str, acts: list[str | float], again: bool) -> None:
    ledger = MemoryLedger()
    asked = session(ledger, kind)
    for act in acts:
        if isinstance(act, str):
            ask(asked, act)
        else:
            with contextlib.suppress(lp.BudgetError):
                asked.raise_budget(lp.Budget(asked.budget.epsilon * act, asked.budget.delta))
        if again:
            asked = session(ledger, kind, budget=asked.budget)
    text = text_of(asked, kind, ledger)
    assert verify(Ledger(text), database=False) == []
    assert replayed(text)


@pytest.mark.parametrize("policy", ["primm", "smooth-cache", "static", "independent", "histogram"])
def test_what_windows_keep_is_sound(policy: str) -> None:
    shelf = MemoryShelf()
    session = opened(ledger=shelf, policy=policy, predictions=[SPAN])
    for text in (f"{COUNT} WHERE n = 2", SPAN, f"{COUNT} GROUP BY n", SPAN, f"{COUNT} WHERE day = '{JAN}'"):
        with contextlib.suppress(lp.BudgetExhausted):
            session.ask(text, analyst="ada")
    for name, kept in shelf.settings().items():
        text = Text(canonical(kept), tuple(map(write_entry, shelf.ledger(name).since(0))))
        assert text.bodies
        assert verify(Ledger(text), database=False) == []
        assert replayed(text)
