"""What is declared can be spent to the last unit, and never one more: by every accounting, by every cap."""

from __future__ import annotations

from contextlib import suppress

import pytest
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Release

DOMAIN = lp.Domain(age=lp.Integers(0, 29))
TABLE = MemoryTable(DOMAIN, range(30))
QUERIES = [
    Query.count(DOMAIN, age=[0, *(k for k in range(1, 30) if place >> k % 9 & 1)]) for place in range(200)
]
"""All of them count one cell, so that none is measured beside another for nothing."""
BUDGETS = st.builds(lp.Budget, st.floats(0.05, 8), st.sampled_from([1e-9, 1e-6, 1e-3]))


def units(kept: list[Kept], analyst: str | None = None) -> int:
    """What was released, for an analyst or for all."""
    return sum(
        one.entry.charge.units
        for one in kept
        if isinstance(one.entry, Release) and analyst in (None, one.stamp.analyst)
    )


def whole(budget: lp.Budget, accounting: str) -> int:
    return budget.epsilon_units if accounting == "basic" else budget.mu_squared_units


def asked_until_refused(session: lp.Session, analyst: str | None = None) -> int:
    """How many statements are answered; what is left over never is below zero."""
    for place, query in enumerate(dict.fromkeys(QUERIES)):
        try:
            session.ask(query, analyst=analyst)
        except lp.BudgetExhausted:
            return place
        assert session.remaining >= 0
    return place


@pytest.mark.parametrize("accounting", ["basic", "gaussian"])
def test_ten_asks_of_a_tenth_are_the_whole(accounting: str) -> None:
    session = lp.open_session(
        TABLE, DOMAIN, budget=lp.Budget(1, 1e-6), horizon=10, policy="independent", accounting=accounting
    )
    assert asked_until_refused(session) == 10
    assert session.remaining == 0
    if accounting == "basic":
        assert session.spent == 1.0


@settings(max_examples=20, deadline=None)
@given(
    policy=st.sampled_from(["independent", "laplace", "static", "smooth", "smooth-cache"]),
    accounting=st.sampled_from(["basic", "gaussian"]),
    budget=BUDGETS,
    horizon=st.integers(1, 25),
    predictions=st.sampled_from([[], QUERIES[190:195]]),
)
def test_a_policy_that_measures_spends_everything(
    policy: str, accounting: str, budget: lp.Budget, horizon: int, predictions: list[Query]
) -> None:
    """The paper's policies with `overflow` as leftover; as printed they hold pools back."""
    ledger, accounting = MemoryLedger(), "basic" if policy == "laplace" else accounting
    session = lp.open_session(
        TABLE,
        DOMAIN,
        budget=budget,
        horizon=horizon,
        policy=policy,
        accounting=accounting,
        predictions=predictions,
        reading=lp.Reading(overflow="leftover"),
        ledger=ledger,
    )
    asked_until_refused(session)
    if policy == "smooth-cache" and session.remaining:  # it answers from what it knows, without spending
        return
    if accounting == "basic" and policy in ("static", "smooth") and session.remaining:
        releases = sum(isinstance(kept.entry, Release) for kept in ledger.since(0))
        assert releases == horizon + 1  # δ is shared over so many
        return
    assert session.remaining == 0
    assert units(list(ledger.since(0))) == whole(budget, accounting)


@settings(max_examples=8, deadline=None)
@given(policy=st.sampled_from(["histogram", "histogram-total", "laplace-counts"]), budget=BUDGETS)
def test_a_policy_that_releases_whole_spends_everything(policy: str, budget: lp.Budget) -> None:
    session = lp.open_session(TABLE, DOMAIN, budget=budget, policy=policy)
    session.ask(QUERIES[0])
    assert session.remaining == 0


@settings(max_examples=10, deadline=None)
@given(
    accounting=st.sampled_from(["basic", "gaussian"]),
    budget=BUDGETS,
    part=st.floats(0.02, 1.0),
    horizon=st.integers(1, 12),
)
def test_a_cap_is_spent_to_its_last_unit_too(
    accounting: str, budget: lp.Budget, part: float, horizon: int
) -> None:
    ledger, cap = MemoryLedger(), lp.Budget(budget.epsilon * part, budget.delta)
    session = lp.open_session(
        TABLE,
        DOMAIN,
        budget=budget,
        horizon=horizon,
        policy="independent",
        accounting=accounting,
        caps={"ada": cap.epsilon, "grace": budget.epsilon},
        ledger=ledger,
    )
    asked_until_refused(session, "ada")
    assert units(list(ledger.since(0)), "ada") == whole(cap, accounting)
    with suppress(lp.BudgetExhausted):
        for query in QUERIES[100:]:
            session.ask(query, analyst="grace")
    assert units(list(ledger.since(0))) <= whole(budget, accounting)
