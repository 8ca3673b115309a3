"""Caps may change while a session goes on: what was measured for each stays counted."""

from __future__ import annotations

from contextlib import suppress

import pytest
from growing import SPAN
from growing import opened as windowed
from hypothesis import given, settings
from hypothesis import strategies as st
from small_session import opened

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.stream.state import State

CAPS = st.sampled_from([1e-3, 0.2, 0.9])
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


def test_other_caps_are_known_without_reading_the_ledger_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(policy="independent", caps={"ada": 0.5, "bob": 0.5})
    session.ask(NEW[0], analyst="ada")
    learned: list[object] = []
    learn = State.learn
    monkeypatch.setattr(State, "learn", lambda self, kept: (learned.append(kept), learn(self, kept))[1])
    session.allot({"bob": 0.5, "eve": 0.5})
    session.allot({"ada": 1e-3, "eve": 0.5})
    with pytest.raises(lp.BudgetExhausted, match="the cap of ada"):
        session.ask(NEW[1], analyst="ada")
    session.ask(NEW[1], analyst="eve")
    assert session.state.cap_spent("ada") > 0
    assert session.state.cap_spent("eve") > 0
    assert len(learned) == 3  # a refusal, a release, a reply
    free = opened(policy="independent")
    free.ask(NEW[0], analyst="ada")
    free.allot({"ada": 0.5})  # nothing has counted what was measured for ada
    assert free.ask(NEW[0], analyst="ada").charge == 0
    assert free.state.cap_spent("ada") == pytest.approx(free.epsilon_spent)


@settings(max_examples=40, deadline=None)
@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(["ada", "bob", "eve"]),
            st.one_of(st.integers(0, 7), st.dictionaries(st.sampled_from(["ada", "bob", "eve"]), CAPS)),
        ),
        max_size=12,
    ),
    accounting=st.sampled_from(["basic", "gaussian"]),
)
def test_caps_that_changed_are_those_of_a_session_that_began_with_them(
    moves: list[tuple[str, int | dict[str, float]]], accounting: str
) -> None:
    ledger = MemoryLedger()
    session = opened(policy="independent", accounting=accounting, ledger=ledger)
    for analyst, move in moves:
        if isinstance(move, dict):
            session.allot(move)
        else:
            with suppress(lp.BudgetError, lp.UnknownAnalyst):
                session.ask(f"SELECT COUNT(*) FROM t WHERE age = {move}", analyst=analyst)
    caps = session.state.caps
    again = opened(policy="independent", accounting=accounting, ledger=ledger, caps=caps)
    assert session.account == again.account
    assert [session.state.cap_spent(one) for one in caps] == [again.state.cap_spent(one) for one in caps]
    for analyst in caps:
        told = [
            one.price("SELECT COUNT(*) FROM t WHERE sex = 'f'", analyst=analyst) for one in (session, again)
        ]
        assert told[0] == told[1]
