"""A price before the question: asking then charges, shows, releases and refuses what was told."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from draw import MemoryTable
from growing import opened as windows
from hypothesis import given, settings
from hypothesis import strategies as st
from test_policy import DOMAIN, PAIRS, POOL, TABLE, session

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.privacy.budget import Budget
from laprasdp.stream.opening import open_session

GROUPED = "SELECT sex, COUNT(*) FROM t WHERE age < 5 GROUP BY sex"
STATEMENTS: list[Any] = [*POOL, GROUPED, "SELECT COUNT(*) FROM t WHERE 1 = 0"]
NEARLY = 1e-9


def members(answer: Any) -> list[lp.Answer]:
    return list(answer) if isinstance(answer, lp.GroupedAnswer) else [answer]


def check(asking: Any, statement: Any, position: Any, analyst: str | None = None) -> None:
    """Ask right after the price: it comes as it was told."""
    before = position(), asking.accounts
    price = asking.price(statement, analyst=analyst)
    assert asking.price(statement, analyst=analyst) == price
    assert (position(), asking.accounts) == before
    if price.refusal is not None:
        with pytest.raises(lp.BudgetExhausted) as refusal:
            asking.ask(statement, analyst=analyst)
        assert str(refusal.value).startswith(price.refusal)
        assert refusal.value.released == price.released
        assert price.charge == 0
        assert set(price.std) == {None}
        return
    answer = asking.ask(statement, analyst=analyst)
    assert answer.charge == price.charge
    assert answer.released == price.released
    assert [one.std for one in members(answer)] == pytest.approx(list(price.std), rel=NEARLY)


@pytest.mark.parametrize(("policy", "accounting"), PAIRS)
@settings(max_examples=6, deadline=None)
@given(
    stream=st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=16),
    predictions=st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True),
    horizon=st.integers(3, 20),
    pay=st.booleans(),
    raised=st.integers(0, 16),
)
def test_what_is_asked_right_after_costs_its_price(
    policy: str,
    accounting: str,
    stream: list[Any],
    predictions: list[Any],
    horizon: int,
    pay: bool,
    raised: int,
) -> None:
    ledger = MemoryLedger()
    reading = lp.Reading(repeats="pay" if pay else "replay")
    asking = session(
        policy, accounting, predictions, horizon=horizon, reading=reading, ledger=ledger, name="t"
    )
    for place, statement in enumerate(stream):
        if place == raised:
            asking.raise_budget(Budget(2, 1e-3))
        check(asking, statement, lambda: len(ledger.since(0)))


@settings(max_examples=10, deadline=None)
@given(stream=st.lists(st.tuples(st.sampled_from(["ada", "bob"]), st.sampled_from(STATEMENTS)), max_size=14))
@pytest.mark.parametrize("policy", ["primm", "smooth-cache"])
def test_a_cap_is_told_before(policy: str, stream: list[tuple[str, Any]]) -> None:
    ledger = MemoryLedger()
    asking = session(
        policy, "gaussian", POOL[:2], horizon=6, ledger=ledger, caps={"ada": 0.3, "bob": 0.1}, name="t"
    )
    for analyst, statement in stream:
        check(asking, statement, lambda: len(ledger.since(0)), analyst)
    with pytest.raises(lp.UnknownAnalyst):
        asking.price(POOL[0], analyst="eve")


def test_a_table_of_many_cells_tells_its_prices() -> None:
    domain = lp.Domain(age=lp.Integers(0, 99), pay=lp.Integers(0, 49))
    ledger = MemoryLedger()
    asking = open_session(
        MemoryTable(domain, [0] * 5_000), domain, budget=lp.Budget(1, 1e-6), horizon=30, ledger=ledger,
        predictions=["SELECT COUNT(*) FROM t WHERE age < 30"], name="t",
    )  # fmt: skip
    for place in range(12):
        check(
            asking,
            f"SELECT COUNT(*) FROM t WHERE age < {7 * place} AND pay > {place}",
            ledger.since(0).__len__,
        )
        check(asking, "SELECT COUNT(*) FROM t WHERE age < 30", ledger.since(0).__len__)


DAYS = [
    f"SELECT COUNT(*) FROM t WHERE n = {n} AND day BETWEEN '2024-0{first}-20' AND '2024-0{last}-10'"
    for n, (first, last) in itertools.product(range(3), [(1, 2), (1, 3), (2, 3)])
]
DAYS += [
    "SELECT n, COUNT(*) FROM t WHERE day < '2024-02-10' GROUP BY n",
    "SELECT COUNT(*) FROM t WHERE n > 5",
]


@pytest.mark.parametrize("policy", ["independent", "primm", "smooth", "offline"])
@settings(max_examples=4, deadline=None)
@given(stream=st.lists(st.sampled_from(DAYS), min_size=1, max_size=8), horizon=st.integers(2, 8))
def test_periods_tell_their_prices_together(policy: str, stream: list[str], horizon: int) -> None:
    asking = windows(policy=policy, horizon=horizon, predictions=DAYS[:2])
    heads = [asking.shelf.ledger(f"t@{period.name}") for period in asking.periods]
    for statement in stream:
        check(asking, statement, lambda: [len(ledger.since(0)) for ledger in heads])


def test_a_price_says_what_is_known() -> None:
    asking = session("smooth", "gaussian", POOL[:2], name="t")
    first = asking.price(POOL[5])
    assert [one.reason for one in first.released] == ["opening"]
    assert first.charge > 0
    asking.ask(POOL[5])
    again = asking.price(POOL[5])
    assert (again.charge, again.released, again.refusal) == (0, (), None)
    assert asking.price(POOL[0]).charge == 0
    assert math.isfinite(asking.price(POOL[0]).std[0] or math.nan)


def test_what_cannot_be_asked_has_no_price() -> None:
    asking = session("smooth", "gaussian", POOL[:2], name="t")
    with pytest.raises(lp.UnsupportedQuery):
        asking.price("SELECT MAX(age) FROM t")
    with pytest.raises(lp.QuerySyntaxError):
        asking.price("SELECT COUNT(* FROM t")
    asking.close()
    with pytest.raises(lp.LedgerError, match="is closed"):
        asking.price(POOL[0])
    assert TABLE.domain == DOMAIN
