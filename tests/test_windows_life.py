"""Windows on every shelf: what was live is what is replayed, after asks, crashes, raises and new periods."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from draw import MemoryTable, cells
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from postgres import Server
from test_ledger import outcome
from tries import tries

import laprasdp as lp
from laprasdp.ledger.ledger import Shelf
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import verify
from laprasdp.periods import Period, WindowedSession, open_windows
from laprasdp.periods.period import Part
from laprasdp.periods.route import route
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Raise, Release

FIRST, DAY, LONG, MOST = dt.date(2024, 2, 26), dt.timedelta(days=1), 2, 5  # periods of two days, five of them
POLICIES = [
    ("independent", "gaussian"), ("smooth-cache", "gaussian"), ("smooth", "basic"), ("static", "gaussian"),
    ("primm", "gaussian"),
]  # fmt: skip
BUDGET = lp.Budget(1, 1e-3)
CAPS = {"ada": 0.5, "bob": 3.0}
names = itertools.count()


class Crash(Exception):
    """What a test makes happen."""


class Table(MemoryTable):
    """Fails at the next read if told to."""

    failing = False

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        if Table.failing:
            Table.failing = False
            raise Crash
        return super().marginal(axes)


class Breaking:
    """A shelf whose next joint transaction fails before or after its end, if told to."""

    def __init__(self, inner: Shelf) -> None:
        self.inner, self.fails = inner, ""
        self.ledger, self.settings = inner.ledger, inner.settings

    @contextmanager
    def together(self) -> Iterator[None]:
        fails, self.fails = self.fails, ""
        with self.inner.together():
            yield
            if fails == "before":
                raise Crash
        if fails == "after":
            raise Crash


def domain(first: dt.date, last: dt.date) -> lp.Domain:
    return lp.Domain(n=lp.Integers(0, 1), day=lp.Dates(first, last))


def table(whole: lp.Domain, name: str) -> Table:
    """The same rows on the same days, whatever other days the table has."""
    dates = whole["day"]
    assert isinstance(dates, lp.Dates)
    n, day = cells(whole).T
    made = Table(whole, (n + 3 * (day + (dates.first - FIRST).days)) % 11)
    made.name = name
    return made


def period(number: int) -> Period:
    first = FIRST + number * LONG * DAY
    return Period(first, first + (LONG - 1) * DAY)


def own(number: int, budgets: dict[str, lp.Budget]) -> Period:
    """A period as it has to be declared after raises."""
    found = period(number)
    return Period(found.first, found.last, budgets.get(found.name))


class Life(RuleBasedStateMachine):
    """Two windowed sessions on one shelf, as two processes would be, which need not know the same periods."""

    def __init__(self, shelves: Callable[[], Callable[[], Shelf]]) -> None:
        super().__init__()
        self.shelves = shelves

    @initialize(which=st.sampled_from(POLICIES), horizon=st.integers(1, 8), capped=st.booleans())
    def begin(self, which: tuple[str, str], horizon: int, capped: bool) -> None:
        self.name, self.place = f"t{next(names)}", self.shelves()
        count = f"SELECT COUNT(*) FROM {self.name}"
        self.statements = [
            lambda low, high: f"{count} WHERE day BETWEEN '{low}' AND '{high}'",
            lambda low, high: f"{count} WHERE n = 1 AND day >= '{low}'",
            lambda low, high: f"{count} WHERE day IN ('{low}', '{high}') GROUP BY n",
            lambda low, high: f"{count} WHERE n = 0 AND n = 1",
        ]
        self.more: dict[str, Any] = {
            "policy": which[0], "accounting": which[1], "horizon": horizon, "public": True,
            "predictions": [f"{count} WHERE n = 0", f"{count} WHERE day = '{FIRST + 3 * DAY}'"],
            "caps": CAPS if capped else None,
        }  # fmt: skip
        self.seed = itertools.count()
        self.budgets: dict[str, lp.Budget] = {}
        self.asked: Counter[str] = Counter()
        self.shown: dict[tuple[str, str], float] = {}
        self.declare(2)
        self.sessions = [self.opened(), self.opened()]

    def declare(self, number: int) -> None:
        for each in range(number):
            self.budgets.setdefault(period(each).name, BUDGET)

    def opened(self) -> WindowedSession:
        periods = [own(number, self.budgets) for number in range(len(self.budgets))]
        whole = domain(FIRST, periods[-1].last)
        return open_windows(
            table(whole, self.name), whole, attribute="day", periods=periods, budget=BUDGET,
            ledger=Breaking(self.place()), noise=lp.SeededNoise(next(self.seed)), **self.more,
        )  # fmt: skip

    @rule(
        who=st.integers(0, 1),
        kind=st.integers(0, 3),
        days=st.tuples(st.integers(0, 2 * LONG * MOST), st.integers(0, 2 * LONG * MOST)),
        analyst=st.sampled_from(["ada", "bob"]),
        fails=st.sampled_from(["", "", "", "before", "after", "data"]),
    )
    def ask(self, who: int, kind: int, days: tuple[int, int], analyst: str, fails: str) -> None:
        session = self.sessions[who]
        span = LONG * len(session.periods)
        low, high = (FIRST + day % span * DAY for day in sorted(day % span for day in days))
        statement = session.parse(self.statements[kind](low, high))
        parts = {one.name: Part.of(session.domain, session.attribute, one) for one in session.periods}
        places, asked = route(statement, parts)
        before = {name: len(self.entries(name)) for name in self.budgets}
        session.shelf.fails, Table.failing = fails, fails == "data"  # type: ignore[attr-defined]
        try:
            answer = session.ask(statement, analyst=analyst)
        except Crash:
            assert fails
            kept = {name: len(self.entries(name)) for name in self.budgets}
            assert fails == "after" or kept == before
            self.asked.update(list(asked) if fails == "after" else ())
            return
        except lp.BudgetExhausted:
            self.asked.update(list(asked))
            return
        finally:
            Table.failing = False
        self.asked.update(list(asked))
        answers = list(answer) if isinstance(answer, lp.GroupedAnswer) else [answer]
        for name, where in places.items():
            for query, place in zip(asked[name].queries, where, strict=True):
                value = answers[place].periods[name].value  # type: ignore[attr-defined]
                assert self.shown.setdefault((name, query.key), value) == value

    @rule(who=st.integers(0, 1), fails=st.sampled_from(["", "", "before", "after"]))
    def add_period(self, who: int, fails: str) -> None:
        session = self.sessions[who]
        number = len(session.periods)
        if number == MOST:
            return
        new = own(number, self.budgets)
        session.shelf.fails = fails  # type: ignore[attr-defined]
        before = session.periods
        try:
            session.add_period(new, source=table(domain(new.first, new.last), self.name))
        except Crash:
            assert session.periods == before
        if fails != "before":
            self.declare(number + 1)

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.sessions[who] = self.opened()

    @rule(who=st.integers(0, 1), number=st.integers(0, MOST), factor=st.sampled_from([1.0, 1.2, 2.0]))
    def raise_budget(self, who: int, number: int, factor: float) -> None:
        name = period(number % len(self.sessions[who].periods)).name
        wanted = lp.Budget(min(self.budgets[name].epsilon * factor, 4), BUDGET.delta)
        if wanted == self.budgets[name]:
            with pytest.raises(lp.BudgetError, match="only ever raised"):
                self.sessions[who].raise_budget(name, wanted)
            return
        self.sessions[who].raise_budget(name, wanted)
        self.budgets[name] = wanted

    @rule(number=st.integers(0, MOST - 1))
    def declare_otherwise(self, number: int) -> None:
        """Dates that the shelf has never get a second budget, under no other cut."""
        if number >= len(self.budgets):
            return
        cut = Period(FIRST, period(number).first)
        whole = domain(cut.first, cut.last)
        with pytest.raises(lp.LedgerError, match=r"overlaps .*, which the ledger has"):
            open_windows(
                table(whole, self.name), whole, attribute="day", periods=[cut], budget=BUDGET,
                ledger=self.place(), **self.more | {"predictions": ()},
            )  # fmt: skip

    def entries(self, name: str) -> list[Kept]:
        return list(self.place().ledger(f"{self.name}@{name}").since(0))

    @invariant()
    def every_period_is_one_budget(self) -> None:
        if not hasattr(self, "sessions"):
            return
        begun = {name for name in self.place().settings() if name.startswith(f"{self.name}@")}
        assert begun == {f"{self.name}@{name}" for name in self.budgets}
        for name, budget in self.budgets.items():
            entries = self.entries(name)
            assert [kept.position for kept in entries] == list(range(len(entries)))
            outcomes = [kept for kept in entries if not isinstance(kept.entry, Release | Raise)]
            assert len(outcomes) == self.asked[name]
            knowing = [session.period(name) for session in self.sessions if name in session.budgets]
            if not knowing:
                continue
            first = next((kept.entry.old for kept in entries if isinstance(kept.entry, Raise)), budget)
            spent = replace(knowing[0].setting, budget=first).ledger_unit.filter()
            for kept in entries:
                if isinstance(kept.entry, Release):
                    spent.spend(kept.entry.charge)
                elif isinstance(kept.entry, Raise):
                    spent.widen(kept.entry.new)
            assert {one.spent for one in knowing} == {spent.spent}
            assert {one.budget for one in knowing} == {budget}
            assert spent.spent <= (budget.epsilon if self.more["accounting"] == "basic" else budget.mu**2)

    def teardown(self) -> None:
        if not hasattr(self, "sessions"):
            return
        fresh = self.opened()
        assert list(fresh.budgets) == list(self.budgets)
        for session in self.sessions:
            for name in session.budgets:
                live, replayed = session.period(name), fresh.period(name)
                assert (live.spent, live.budget) == (replayed.spent, replayed.budget)
                assert live.state.position == replayed.state.position
                part = live.setting.domain
                for query in (Query.count(part, n=0), Query.count(part, n=1), Query.constant(part, 1)):
                    assert outcome(live, query) == outcome(replayed, query)
        for name in self.budgets:
            ledger = self.place().ledger(f"{self.name}@{name}")
            if isinstance(ledger, SQLLedger):
                assert verify(ledger) == []


@functools.cache
def kept_open(where: str) -> SQLShelf:
    """One shelf object a place; its sessions still read everything from the database."""
    return SQLShelf(where)


def test_in_memory() -> None:
    def place() -> Callable[[], Shelf]:
        shelf = MemoryShelf()
        return lambda: shelf

    run_state_machine_as_test(
        lambda: Life(place), settings=settings(max_examples=tries(10), stateful_step_count=20)
    )


def test_in_sqlite(tmp_path_factory: pytest.TempPathFactory) -> None:
    def place() -> Callable[[], Shelf]:
        path = tmp_path_factory.mktemp("shelf") / "ledger.db"
        return lambda: kept_open(str(path))

    run_state_machine_as_test(lambda: Life(place), settings=settings(max_examples=12, stateful_step_count=15))
    kept_open.cache_clear()


@pytest.mark.filterwarnings("ignore:dataset:UserWarning")  # many ledgers of the same settings
def test_in_postgresql(postgres: Server) -> None:
    run_state_machine_as_test(
        lambda: Life(lambda: lambda: kept_open(postgres.url)),
        settings=settings(max_examples=8, stateful_step_count=12),
    )
    kept_open.cache_clear()
