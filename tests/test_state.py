"""Caps and raises: who may still have something measured, and what a raise does to the stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.record.entries import Raise, Refusal, Release, Stamp
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 9))
BUDGET = lp.Budget(1, 1e-6)
MORE = lp.Budget(2, 1e-6)


def opened(**more: Any) -> lp.Session:
    given: dict[str, Any] = {"budget": BUDGET, "horizon": 10, "policy": "independent"}
    return open_session(MemoryTable(DOMAIN, np.arange(10)), DOMAIN, **given | more)


def count(low: int) -> str:
    return f"SELECT COUNT(*) FROM t WHERE age >= {low}"


@pytest.mark.parametrize(("accounting", "share"), [("basic", 0.1), ("gaussian", BUDGET.mu**2 / 10)])
def test_a_cap_refuses_its_analyst_alone_and_takes_no_place_in_the_stream(
    accounting: str, share: float
) -> None:
    ledger, cap = MemoryLedger(), 0.35
    caps = {"ada": cap, "bob": 1.0}
    session = opened(ledger=ledger, caps=caps, accounting=accounting)
    limit = cap if accounting == "basic" else lp.Budget(cap, BUDGET.delta).mu ** 2
    fits = int(limit / share) + 1  # the last two halve what is less than two shares
    shown = {low: session.ask(count(low), analyst="ada").value for low in range(fits)}
    with pytest.raises(lp.BudgetExhausted, match=r"the cap of ada, ε = 0\.35, has no room"):
        session.ask(count(fits), analyst="ada")
    assert session.state.policy.seen == fits
    entry = list(ledger.since(0))[-1].entry
    assert isinstance(entry, Refusal)
    assert not entry.counted
    paid = session.ask(count(fits), analyst="bob")
    free = session.ask(count(fits), analyst="ada")  # bob paid for it
    assert (free.value, free.charge, paid.charge > 0) == (paid.value, 0, True)
    assert {low: session.ask(count(low), analyst="ada").value for low in shown} == shown
    # whoever opens the ledger again finds ada where she was; with a lower cap she has nothing left
    for lower in (cap, 0.1):
        again = opened(ledger=ledger, caps={"ada": lower, "bob": 1.0}, accounting=accounting)
        with pytest.raises(lp.BudgetExhausted, match="the cap of ada"):
            again.ask(count(8), analyst="ada")
    higher = opened(ledger=ledger, caps={"ada": 0.9, "bob": 1.0}, accounting=accounting)
    assert higher.ask(count(8), analyst="ada").charge > 0


def test_with_caps_only_those_who_have_one_may_ask() -> None:
    ledger = MemoryLedger()
    session = opened(caps={"ada": 0.5}, ledger=ledger)
    for analyst, says in ((None, "needs an analyst; there are ada"), ("eve", "no analyst 'eve'")):
        with pytest.raises(lp.ConfigError, match=says):
            session.ask(count(1), analyst=analyst)
    for name in ("", " ", "a\nb", "\ud800", 5):
        with pytest.raises(lp.ConfigError, match="an analyst is named by text"):
            opened().ask(count(1), analyst=name)
    assert list(ledger.since(0)) == []
    with pytest.raises(lp.BudgetError, match="ε must be positive"):
        opened(caps={"ada": 0})


def test_what_is_released_before_the_stream_counts_against_nobody() -> None:
    more: dict[str, Any] = {"caps": {"ada": 0.4}, "policy": "smooth-cache", "predictions": [count(0)]}
    session = opened(**more)
    assert session.ask(count(0), analyst="ada").source == "predicted"
    (release, _) = session.ledger.since(0)
    charge = release.entry.charge
    assert session.state.cap_left(charge, "ada") == opened(**more).state.cap_left(charge, "ada")
    assert session.spent > lp.Budget(0.4, 1e-6).mu ** 2


@pytest.mark.parametrize("policy", ["independent", "static", "smooth", "smooth-cache", "primm"])
def test_a_raise_lets_a_stream_go_on_that_had_ended(policy: str) -> None:
    ledger = MemoryLedger()
    session = opened(ledger=ledger, policy=policy, horizon=2, predictions=[count(0)])
    statements = [count(low) for low in range(1, 8)]
    shown: dict[str, Any] = {}
    for statement in statements * 4:
        try:
            shown[statement] = session.ask(statement)
        except lp.BudgetExhausted:
            continue
    before, left = session.spent, session.remaining
    session.raise_budget(MORE)
    assert session.budget == MORE
    assert session.spent == before
    assert session.remaining > left
    fresh = "SELECT COUNT(*) FROM t WHERE age IN (2, 5)"
    answer = session.ask(fresh)
    assert answer.source == ("background" if policy == "primm" else "measured")  # a raise is released at once
    assert before < session.spent <= MORE.mu**2
    for statement, old in shown.items():
        again = session.ask(statement)
        assert (again.value, again.charge) == (old.value, 0)
    with pytest.raises(lp.LedgerError, match=r"the ledger's budget is ε = 2.*, not ε = 1.*raise_budget"):
        opened(ledger=ledger, policy=policy, horizon=2, predictions=[count(0)])
    twin = opened(ledger=ledger, policy=policy, horizon=2, predictions=[count(0)], budget=MORE)
    assert twin.spent == session.spent
    assert twin.state.policy.allowance(60) == session.state.policy.allowance(60)


@pytest.mark.parametrize("policy", ["static", "smooth-cache", "offline", "histogram", "independent"])
def test_a_raise_before_the_first_statement_is_a_larger_budget_from_the_start(policy: str) -> None:
    raised = opened(policy=policy, predictions=[count(0), count(3)])
    raised.raise_budget(MORE)
    larger = opened(policy=policy, predictions=[count(0), count(3)], budget=MORE)
    for statement in (count(0), count(3)):
        assert raised.ask(statement).std == pytest.approx(larger.ask(statement).std, rel=1e-9)
    assert raised.spent == pytest.approx(larger.spent, rel=1e-9)


def test_other_sessions_learn_of_a_raise_with_their_next_statement() -> None:
    ledger = MemoryLedger()
    first, second = opened(ledger=ledger), opened(ledger=ledger)
    first.raise_budget(MORE, analyst="curator")
    assert second.ask(count(1)).remaining > BUDGET.mu**2
    assert second.budget == MORE
    kept = next(iter(ledger.since(0)))
    assert kept.entry == Raise(BUDGET, MORE)
    assert kept.stamp.analyst == "curator"


def test_a_ledger_that_passes_its_budget_is_not_gone_on_with() -> None:
    ledger = MemoryLedger()
    opened(ledger=ledger, horizon=1).ask(count(1))
    release = next(kept for kept in ledger.since(0) if isinstance(kept.entry, Release))
    with ledger.transaction(release.stamp) as transaction:
        transaction.append(release.entry)
    with pytest.raises(lp.LedgerError, match="entry 2 of the ledger: the budget has no room"):
        opened(ledger=ledger, horizon=1)


class Failing(MemoryLedger):
    """Loses every transaction from some moment on, at its end."""

    fails = False

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            yield transaction
            if self.fails:
                raise OSError("disk full")


def test_a_raise_that_is_not_kept_changes_nothing() -> None:
    ledger = Failing()
    session = opened(ledger=ledger)
    session.ask(count(1))
    before = session.spent, session.remaining
    ledger.fails = True
    with pytest.raises(OSError, match="disk full"):
        session.raise_budget(MORE)
    assert session.budget == BUDGET
    assert (session.spent, session.remaining) == before
