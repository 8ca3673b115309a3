"""Every ledger: what was live is what is replayed, after any asks, crashes, reopenings and raises."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from postgres import Server
from tries import tries

import laprasdp as lp
from laprasdp.ledger.ledger import Ledger, Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.accounting import accounting_named
from laprasdp.privacy.filter import Filter
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Raise, Release, Reply, Stamp
from laprasdp.record.format import write_entry
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 5), sex=lp.Categories(["f", "m"], nullable=True))
COUNTS = np.arange(18) * 3
POOL = [
    *(Query.count(DOMAIN, age=range(low, high)) for low, high in itertools.combinations(range(0, 7, 2), 2)),
    *(Query.count(DOMAIN, age=range(low, 6), sex="f") for low in range(3)),
    Query(DOMAIN, {"age": range(6)}, np.arange(6)),
    Query.constant(DOMAIN, 1),
]
STATEMENTS: list[Any] = [
    *POOL, "SELECT sex, COUNT(*) FROM t GROUP BY sex", "SELECT COUNT(*) FROM t WHERE age > 9",
]  # fmt: skip
POLICIES = [
    ("smooth-cache", "gaussian"), ("static", "gaussian"), ("smooth", "basic"), ("independent", "gaussian"),
    ("laplace", "basic"), ("histogram", "gaussian"), ("offline", "basic"), ("primm", "gaussian"),
]  # fmt: skip
CAPS = {"ada": 0.5, "bob": 3.0}


@functools.cache
def kept_open(where: str, dataset: str = "main") -> SQLLedger:
    """One ledger object a place; its sessions still read everything from the database."""
    return SQLLedger(where, dataset=dataset)


class Crash(Exception):
    """What a test makes happen."""


class Table(MemoryTable):
    """Fails at the next read if told to."""

    failing = False

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        if self.failing:
            self.failing = False
            raise Crash
        return super().marginal(axes)


class Breaking:
    """A ledger whose next transaction fails before or after its end, if told to."""

    def __init__(self, inner: Ledger) -> None:
        self.inner, self.fails = inner, ""
        self.open, self.since, self.begun = inner.open, inner.since, inner.begun

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        fails, self.fails = self.fails, ""
        with self.inner.transaction(stamp) as transaction:
            yield transaction
            if fails == "before":
                raise Crash
        if fails == "after":
            raise Crash


class Life(RuleBasedStateMachine):
    """Two sessions on one ledger, as two processes would be."""

    def __init__(self, ledgers: Callable[[], Callable[[], Ledger]]) -> None:
        super().__init__()
        self.ledgers = ledgers

    @initialize(
        which=st.sampled_from(POLICIES),
        predictions=st.lists(st.sampled_from(POOL), min_size=1, max_size=3, unique=True),
        horizon=st.integers(1, 12),
        capped=st.booleans(),
    )
    def begin(self, which: tuple[str, str], predictions: list[Query], horizon: int, capped: bool) -> None:
        self.more: dict[str, Any] = {
            "policy": which[0], "accounting": which[1], "predictions": predictions, "horizon": horizon,
            "caps": CAPS if capped else None, "public": True,
        }  # fmt: skip
        self.capped, self.budget, self.seed = capped, lp.Budget(1, 1e-3), itertools.count()
        self.shown: dict[str, float] = {}
        self.asked = 0
        self.place = self.ledgers()
        self.sessions = [self.opened(), self.opened()]

    def opened(self) -> lp.Session:
        noise = lp.SeededNoise(next(self.seed))
        ledger = Breaking(self.place())
        return open_session(
            Table(DOMAIN, COUNTS), DOMAIN, budget=self.budget, ledger=ledger, noise=noise, **self.more
        )

    @rule(
        who=st.integers(0, 1),
        statement=st.sampled_from(STATEMENTS),
        analyst=st.sampled_from(["ada", "bob"]),
        fails=st.sampled_from(["", "", "", "before", "after", "data"]),
    )
    def ask(self, who: int, statement: Any, analyst: str, fails: str) -> None:
        session = self.sessions[who]
        session.ledger.fails, session.table.failing = fails, fails == "data"
        before = len(self.entries())
        try:
            answer = session.ask(statement, analyst=analyst)
        except Crash:
            assert fails
            assert fails == "after" or len(self.entries()) == before
            self.asked += fails == "after"
            return
        except lp.BudgetExhausted:
            self.asked += 1
            return
        finally:
            session.table.failing = False
        self.asked += 1
        queries = (
            [statement.canonical()] if isinstance(statement, Query) else session.parse(statement).queries
        )
        answers = answer if isinstance(answer, lp.GroupedAnswer) else [answer]
        for query, one in zip(queries, answers, strict=True):
            assert self.shown.setdefault(query.key, one.value) == one.value

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.sessions[who] = self.opened()

    @rule(who=st.integers(0, 1), epsilon=st.sampled_from([1.0, 1.1, 1.5]), delta=st.sampled_from([1.0, 2.0]))
    def raise_budget(self, who: int, epsilon: float, delta: float) -> None:
        wanted = lp.Budget(min(self.budget.epsilon * epsilon, 4), min(self.budget.delta * delta, 0.01))
        if wanted == self.budget:
            with pytest.raises(lp.BudgetError, match="only ever raised"):
                self.sessions[who].raise_budget(wanted)
            return
        self.sessions[who].raise_budget(wanted)
        self.budget = wanted

    @rule(who=st.integers(0, 1), part=st.sampled_from([(0.5, 1.0), (1.0, 0.5), (2.0, 0.5)]))
    def lower(self, who: int, part: tuple[float, float]) -> None:
        lower = lp.Budget(self.budget.epsilon * part[0], self.budget.delta * part[1])
        with pytest.raises(lp.BudgetError, match="only ever raised"):
            self.sessions[who].raise_budget(lower)

    def entries(self) -> list[Kept]:
        return list(self.place().since(0))

    @invariant()
    def what_is_kept_is_one_budget(self) -> None:
        if not hasattr(self, "sessions"):
            return
        entries = self.entries()
        assert [kept.position for kept in entries] == list(range(len(entries)))
        outcomes = [kept for kept in entries if not isinstance(kept.entry, Release | Raise)]
        assert len(outcomes) == self.asked
        setting = self.sessions[0].setting
        first = next((kept.entry.old for kept in entries if isinstance(kept.entry, Raise)), self.budget)
        named = accounting_named(setting.accounting, first, setting.domain, setting.length)
        spent = named.filter()
        caps = {analyst: self.cap(epsilon) for analyst, epsilon in CAPS.items()}
        for kept in entries:
            if isinstance(kept.entry, Release):
                spent.spend(kept.entry.charge)
                if self.capped and not kept.entry.opening:
                    caps[kept.stamp.analyst].record(kept.entry.charge)
            elif isinstance(kept.entry, Raise):
                spent.widen(kept.entry.new)
        assert {session.spent for session in self.sessions} == {spent.spent}
        whole = self.budget.epsilon if self.more["accounting"] == "basic" else self.budget.mu**2
        assert spent.spent <= whole
        assert all(cap.remaining >= 0 for cap in caps.values())

    def cap(self, epsilon: float) -> Filter:
        setting, cap = self.sessions[0].setting, lp.Budget(epsilon, self.budget.delta)
        return accounting_named(setting.accounting, cap, setting.domain, setting.length).filter()

    def teardown(self) -> None:
        if not hasattr(self, "sessions"):
            return
        fresh = self.opened()
        for session in self.sessions:
            assert session.spent == fresh.spent
            assert session.budget == fresh.budget == self.budget
            assert session.state.position == fresh.state.position
            assert [outcome(session, query) for query in POOL] == [outcome(fresh, query) for query in POOL]
        inner = fresh.ledger.inner
        if isinstance(inner, SQLLedger):
            assert verify(inner) == []
            assert all(
                write_entry(kept) == row.body
                for kept, row in zip(self.entries(), inner.everything()[1], strict=True)
            )
        for key, value in self.shown.items():
            assert (
                any(
                    query.key == key and shown.value == value
                    for kept in self.entries()
                    if isinstance(kept.entry, Reply)
                    for query, shown in zip(kept.entry.queries, kept.entry.answers, strict=True)
                    if shown is not None
                )
                or value == 0
            )  # a constant
        if isinstance(inner, SQLLedger):
            inner.close()


def outcome(asked: lp.Session, query: Query) -> object:
    """What the next statement would do, without its noise."""
    policy = asked.state.policy
    if policy.due() is not None:
        return "a release is due"
    known = policy.recall(query)
    if known is not None:
        return known
    try:
        grant = policy.grant([query])
    except lp.BudgetExhausted:
        return "refused"
    return grant.allowance, grant.charge.price


def test_in_memory() -> None:
    def place() -> Callable[[], Ledger]:
        ledger = MemoryLedger()
        return lambda: ledger

    run_state_machine_as_test(
        lambda: Life(place), settings=settings(max_examples=tries(15), stateful_step_count=20)
    )


def test_in_sqlite(tmp_path_factory: pytest.TempPathFactory) -> None:
    def place() -> Callable[[], Ledger]:
        path = tmp_path_factory.mktemp("ledger") / "ledger.db"
        return lambda: kept_open(str(path))

    run_state_machine_as_test(lambda: Life(place), settings=settings(max_examples=15, stateful_step_count=15))
    kept_open.cache_clear()


@pytest.mark.filterwarnings("ignore:dataset:UserWarning")  # many ledgers of the same settings
def test_in_postgresql(postgres: Server) -> None:
    names = itertools.count()

    def place() -> Callable[[], Ledger]:
        name = f"machine{next(names)}"
        return lambda: kept_open(postgres.url, name)

    run_state_machine_as_test(lambda: Life(place), settings=settings(max_examples=10, stateful_step_count=15))
    kept_open.cache_clear()
