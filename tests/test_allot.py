"""Caps may change while a session goes on: what was measured for each stays counted."""

from __future__ import annotations

import pytest
from growing import SPAN
from growing import opened as windowed
from small_session import opened

import laprasdp as lp

NEW = ["SELECT COUNT(*) FROM t WHERE age = 1", "SELECT COUNT(*) FROM t WHERE age = 2"]


def test_a_cap_that_is_lowered_counts_what_was_measured_before() -> None:
    session = opened(policy="independent")
    first = session.ask(NEW[0], analyst="ada")
    session.allot({"ada": 1e-3, "bob": 1.0})
    with pytest.raises(lp.BudgetExhausted, match="the cap of ada"):
        session.ask(NEW[1], analyst="ada")
    again = session.ask(NEW[0], analyst="ada")
    assert (float(again), again.charge) == (float(first), 0)
    assert session.ask(NEW[1], analyst="bob").charge > 0
    with pytest.raises(lp.UnknownAnalyst):
        session.ask(NEW[0], analyst="eve")
    session.allot({})
    assert session.ask(NEW[0], analyst="eve").charge == 0
    with pytest.raises(lp.BudgetError):
        session.allot({"ada": -1.0})
    session.close()
    with pytest.raises(lp.LedgerError, match="closed"):
        session.allot({})


def test_what_a_cap_has_spent_is_what_was_charged() -> None:
    session = opened(policy="independent", caps={"ada": 0.5, "bob": 0.5})
    session.ask(NEW[0], analyst="ada")
    assert session.state.cap_spent("ada") == pytest.approx(session.epsilon_spent)
    assert session.state.cap_spent("bob") == 0


def test_caps_are_of_every_period() -> None:
    session = windowed(caps={"ada": 1.0})
    session.ask(SPAN, analyst="ada")
    session.allot({"ada": 1e-3})
    with pytest.raises(lp.BudgetExhausted, match="the cap of ada"):
        session.ask(SPAN.replace("= 1", "= 2"), analyst="ada")
    session.allot({"bob": 1.0})
    assert session.ask(SPAN.replace("= 1", "= 2"), analyst="bob").charge > 0
