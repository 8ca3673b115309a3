"""A windowed session: one session a period, and statements that are asked of all periods they touch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any

from laprasdp.arguments import check_arguments
from laprasdp.data.table import Table
from laprasdp.errors import (
    BudgetExhausted,
    ConfigError,
    DomainError,
    UnsupportedQuery,
)
from laprasdp.ledger.ledger import Shelf
from laprasdp.periods.declaration import Declaration
from laprasdp.periods.period import DAY, Part, Period, dates_of, next_period
from laprasdp.periods.priced import priced
from laprasdp.periods.route import route
from laprasdp.periods.sessions import PeriodSessions
from laprasdp.periods.settled import Refused
from laprasdp.periods.total import added
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import NoiseSource, load
from laprasdp.queries.attribute import Dates
from laprasdp.queries.domain import Domain
from laprasdp.record.entries import Stamp
from laprasdp.sql.parse import Statement
from laprasdp.strategy.threads import one_thread
from laprasdp.stream.asking import Account, Asking, Question, Told, read
from laprasdp.stream.plan import Plan
from laprasdp.stream.price import Price
from laprasdp.stream.session import Session, now

ReadPart = Callable[[Part, Any], Table]


class WindowedSession(Asking):
    """
    Answers statements over a table in periods of a date attribute, each under a budget of its own.

    Parameters
    ----------
    domain : Domain
        From the first period to the last.
    attribute : str
        The date attribute.
    periods : sequence of Period
        One after another, without a gap.
    tables : sequence of Table
        The rows of each.
    name : str
        How statements call the table.
    declaration : Declaration
    shelf : Shelf
        Keeps a ledger for each period, under ``name@first date``.
    noise : NoiseSource
    public : bool
        The table is declared public, so seeded noise may be used to study the mechanism.
    read : callable
        The table of a further period, from its part and a source.
    step : int, str or None
        Of the periods, where they have one.
    clock : callable
        The time for the ledger's stamps, in UTC; nothing is decided by it.
    owned : ExitStack, optional
        What ends with the session beside its ledgers, such as the table.

    Raises
    ------
    LedgerError
        A period was declared otherwise before, or overlaps one that was.

    Notes
    -----
    **Privacy.**  Assumes what `Session` assumes, and that the rows of a declared period do not change.
    Guarantees that everything shown is (ε, δ)-differentially private with the budget of a period for what
    one unit has in that period: a row, which lies in one period; or a person's rows of one period, so that
    budgets add up over the periods in which that person has any (docs/proofs/windows.md).
    """

    def __init__(
        self,
        domain: Domain,
        attribute: str,
        periods: Iterable[Period],
        tables: Iterable[Table],
        *,
        name: str,
        declaration: Declaration,
        shelf: Shelf,
        noise: NoiseSource,
        public: bool,
        read: ReadPart,
        step: int | str | None = None,
        clock: Callable[[], datetime] = now,
        owned: ExitStack | None = None,
    ) -> None:
        self._domain, self._attribute, self._name = domain, attribute, name
        self._noise, self._clock, self._read, self._step = noise, clock, read, step
        self._lock = threading.RLock()
        self._owned = owned or ExitStack()
        self._sessions = PeriodSessions(
            name, attribute, declaration, shelf, noise=noise, public=public, clock=clock
        )
        parts = [Part.of(domain, attribute, period) for period in periods]
        self._reader = self._sessions.open(domain, parts, tables)

    def __repr__(self) -> str:
        return self._line(self._name)

    @property
    def domain(self) -> Domain:
        """What statements are over: all periods together."""
        return self._domain

    @property
    def name(self) -> str:
        """How statements call the table."""
        return self._name

    @property
    def shelf(self) -> Shelf:
        """What keeps a ledger for each period."""
        return self._sessions.shelf

    @property
    def attribute(self) -> str:
        """The date attribute that periods are made of."""
        return self._attribute

    @property
    def periods(self) -> tuple[Period, ...]:
        """The periods, in order."""
        return tuple(part.period for part in self._sessions.parts.values())

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        return self._sessions.first.unit

    @property
    def spent(self) -> dict[str, float]:
        """What is spent of each period's budget, in `unit`."""
        return self._each(lambda session: session.spent)

    @property
    def remaining(self) -> dict[str, float]:
        """What is left of each period's budget, in `unit`."""
        return self._each(lambda session: session.remaining)

    @property
    def epsilon_spent(self) -> dict[str, float]:
        """ε at the budget's δ for all that was released of each period."""
        return self._each(lambda session: session.epsilon_spent)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The account of each period, in order."""
        with self._lock:
            return tuple(replace(each.account, period=name) for name, each in self._sessions.each.items())

    @property
    def budgets(self) -> dict[str, Budget]:
        """The whole budget of each period."""
        return {name: session.budget for name, session in self._sessions.each.items()}

    def period(self, name: str) -> Session:
        """
        The session of one period: its setting, policy, accounting and plan.

        Raises
        ------
        ConfigError
            There is no such period.
        """
        check_arguments(period=name)
        if name not in self._sessions.each:
            raise ConfigError(f"no period of {self._attribute} begins on {name}")
        return self._sessions.each[name]

    def allot(self, caps: Mapping[str, float]) -> None:
        """Go on with other caps in every period."""
        with self._lock:
            self._sessions.allot(caps)

    def close(self) -> None:
        """Let go of the ledgers, and of the table if it was opened for it; see `Session.close`."""
        with self._lock, self._owned:
            for session in self._sessions.each.values():
                session.close()
            self._sessions.shelf.close()

    def plan(self, period: str | None = None) -> Plan:
        """Expected errors of what is asked of one period, the last if none is named; no data, no charge."""
        return self.period(period or list(self._sessions.each)[-1]).plan()

    def parse(self, text: str) -> Statement:
        """Read a statement without asking it: what it means, or why it cannot be asked."""
        return self._reader.parse(text)

    def admit(self, analyst: str | None) -> None:
        """Whether this analyst may ask at all; see `Session.admit`."""
        self._sessions.first.admit(analyst)

    @one_thread()
    def ask(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Told:
        """
        Answer one statement, at once, as the sum of what each period that it touches answers.

        Parameters
        ----------
        statement : str, Query or Statement
            SQL text; or a query made in Python, over `domain`.
        analyst : str, optional
            Who asks; a cap of this name holds in each period.
        max_std, remeasure
            For the session of one `period` only.

        Returns
        -------
        WindowedAnswer, or GroupedAnswer of such

        Raises
        ------
        UnsupportedQuery
            The statement cannot be asked.  It costs nothing.
        BudgetExhausted
            A period has nothing left for it; then it costs nothing in any.
        ConfigError
            There are caps, and the analyst has none.
        LedgerError
            The ledgers cannot keep it, or the session is closed; nothing is shown.

        Notes
        -----
        **Privacy.**  As for `Session.ask`, with the ledgers of all touched periods in one transaction.
        """
        _check_plain(max_std, remeasure)
        load(self._noise)  # before others wait for the transaction to end
        with self._lock:
            self._sessions.first.life.check_open()
            parsed = read(statement, self._domain, self.parse)
            places, asked = route(parsed, self._sessions.parts)
            stamp = Stamp(self._clock(), analyst, parsed.text)
            try:
                found = self._sessions.settle(stamp, asked)
            except Refused as stop:  # what was released for it elsewhere is taken back
                self._sessions.refuse(stamp, asked, stop)
                raise BudgetExhausted(stop.reason) from None
            each = self._sessions.each
            shown = {name: each[name].show(asked[name], outcome) for name, outcome in found.items()}
            return added(parsed, places, shown)

    @one_thread()
    def price(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Price:
        """The sum of what each period that it touches would charge; see `Session.price`."""
        _check_plain(max_std, remeasure)
        with self._lock, ExitStack() as stack:
            parsed = read(statement, self._domain, self.parse)
            places, asked = route(parsed, self._sessions.parts)
            each = {name: self._sessions.each[name].rehearsal(asked[name].queries, analyst) for name in asked}
            turns = {name: stack.enter_context(one) for name, one in each.items()}
            return priced(parsed, places, asked, turns)

    @one_thread()
    def raise_budget(self, period: str, budget: Budget, *, analyst: str | None = None) -> None:
        """
        Go on with a larger budget for one period: an act of the curator that its ledger records.

        Raises
        ------
        ConfigError
            There is no such period.
        BudgetError
            As from `Session.raise_budget`.
        """
        with self._lock:
            self.period(period).raise_budget(budget, analyst=analyst)

    def add_period(self, period: Period | None = None, *, source: Any = None) -> Period:
        """
        Declare one more period, whose rows are all there by now; it brings its own budget.

        Parameters
        ----------
        period : Period, optional
            That begins on the day after the last one; the next step where periods have a step.
        source : path, Arrow table, pandas or Polars data frame, or Table, optional
            Where its rows are; a `Table` is of the period alone.  The source that was opened otherwise.

        Returns
        -------
        Period

        Raises
        ------
        ConfigError
            No period is given, and there is no step.
        DomainError
            It does not follow the last one, or cuts a step of the attribute.
        LedgerError
            It was declared otherwise before, or overlaps one that was.
        """
        with self._lock:
            self._sessions.first.life.check_open()
            dates = dates_of(self._domain, self._attribute)
            if period is None:
                if self._step is None:
                    raise ConfigError("the periods have no step: say which one is next")
                period = next_period(dates, self._step)
            if period.first != dates.last + DAY:
                raise DomainError(f"the next period begins on {dates.last + DAY}, not on {period.first}")
            longer = Dates(dates.first, period.last, dates.step)
            domain = Domain(
                (name, longer if name == self._attribute else self._domain[name]) for name in self._domain
            )
            part = Part.of(domain, self._attribute, period)
            self._reader = self._sessions.open(domain, [part], [self._read(part, source)])
            self._domain = domain
            return period

    def _each(self, of: Callable[[Session], float]) -> dict[str, float]:
        with self._lock:
            return {name: of(session) for name, session in self._sessions.each.items()}


def _check_plain(max_std: float | None, remeasure: bool) -> None:
    if max_std is not None or remeasure:
        raise UnsupportedQuery(
            "a statement over periods takes no max_std and no remeasure, since each period has a budget of "
            "its own: ask the session of one, session.period(name)"
        )
