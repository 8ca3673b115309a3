"""The sessions of several periods: opened together, and asked in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime

from laprasdp.data.table import Table
from laprasdp.errors import BudgetError, LedgerError
from laprasdp.ledger.ledger import Shelf
from laprasdp.periods.declaration import Declaration
from laprasdp.periods.period import Part, Period, check_kept
from laprasdp.periods.settled import Refused, settled
from laprasdp.policy.policy import Policy
from laprasdp.privacy.noise import NoiseSource
from laprasdp.queries.domain import Domain
from laprasdp.record.entries import Refusal, Stamp
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.session import TRIES, Session
from laprasdp.stream.turn import Settled


class PeriodSessions:
    """
    One session a period, in order.

    Parameters
    ----------
    name, attribute : str
        How statements call the table, and the date attribute that periods are made of.
    declaration : Declaration
    shelf : Shelf
        Keeps a ledger for each period, under ``name@first date``.
    noise, public, clock
        As in `Session`.

    Attributes
    ----------
    parts : dict of name to Part
    each : dict of name to Session

    Notes
    -----
    **Privacy.**  Assumes what `Session` and `Shelf` assume.  Guarantees that what a statement releases of
    several periods is kept in the ledgers of all of them, or of none.
    """

    def __init__(
        self,
        name: str,
        attribute: str,
        declaration: Declaration,
        shelf: Shelf,
        *,
        noise: NoiseSource,
        public: bool,
        clock: Callable[[], datetime],
    ) -> None:
        self._name, self._attribute, self._declaration, self.shelf = name, attribute, declaration, shelf
        self._noise, self._public, self._clock = noise, public, clock
        self.parts: dict[str, Part] = {}
        self.each: dict[str, Session] = {}

    @property
    def first(self) -> Session:
        """The session of the first period."""
        return next(iter(self.each.values()))

    def open(self, domain: Domain, parts: list[Part], tables: Iterable[Table]) -> Reader:
        """
        Open a session for each part; periods that are new are recorded, all of them or none.

        Parameters
        ----------
        domain : Domain
            From the first period to the last.

        Returns
        -------
        Reader
            Of statements over that domain.

        Raises
        ------
        BudgetError, LedgerError
            As from `Session`, with the name of the period.
        """
        tables = list(tables)
        declared = self._declaration
        reader = Reader(
            domain,
            self._name,
            tables[0].types,
            lookups=declared.lookups,
            derived=declared.derived,
            unit=tables[0].unit,
        )
        begun = [self._declaration.before(part, reader) for part in parts]
        opened = list(zip(parts, tables, begun, strict=True))
        recorded = self.shelf.settings()
        check_kept(parts, self._name, self._attribute, recorded)
        found: dict[str, Session] = {}
        for part, table, before in opened:
            if self._kept(part.period) in recorded:
                found[part.period.name] = self._session(part, table, *before)
        with self.shelf.together():
            check_kept(parts, self._name, self._attribute, self.shelf.settings())
            for part, table, before in opened:
                if part.period.name not in found:
                    found[part.period.name] = self._session(part, table, *before)
        self.parts |= {part.period.name: part for part in parts}
        self.each |= {part.period.name: found[part.period.name] for part in parts}
        return reader

    def allot(self, caps: Mapping[str, float]) -> None:
        """Other caps, in each period and in those to come."""
        for session in self.each.values():
            session.allot(caps)
        self._declaration = replace(self._declaration, caps=caps)

    def settle(self, stamp: Stamp, asked: Mapping[str, Statement]) -> dict[str, Settled]:
        """Decide about a statement in each period; all outcomes are kept together, or none."""
        each = {name: self.each[name] for name in asked}
        for left in reversed(range(TRIES)):
            ahead = {name: one.foresee(asked[name].queries, stamp.analyst) for name, one in each.items()}
            with self._joint(asked) as stack:
                turns = {name: stack.enter_context(each[name].turn(stamp, ahead[name])) for name in each}
                if all(turn.ready for turn in turns.values()) or not left:
                    return settled(asked, turns)
        raise AssertionError("the last try settles it")

    def refuse(self, stamp: Stamp, asked: Mapping[str, Statement], stop: Refused) -> None:
        """Keep the refusal in each period; it takes a place in the stream of the one that refuses only."""
        with self._joint(asked) as stack:
            for name, statement in asked.items():
                own = name == stop.period
                refusal = stop.refusal if own else Refusal(statement.queries, stop.reason, counted=False)
                stack.enter_context(self.each[name].turn(stamp)).append(refusal)

    @contextmanager
    def _joint(self, names: Iterable[str]) -> Iterator[ExitStack]:
        """One transaction for those of several periods that are entered inside the block."""
        ended = False
        try:
            with self.shelf.together(), ExitStack() as stack:
                yield stack
                ended = True
        except BaseException:
            for name in names if ended else ():  # each has ended, but all together may not be kept
                self.each[name].doubt()
            raise

    def _session(self, part: Part, table: Table, policy: Policy, predicted: list[str]) -> Session:
        try:
            return Session(
                table,
                policy,
                noise=self._noise,
                ledger=self.shelf.ledger(self._kept(part.period)),
                public=self._public,
                predicted=predicted,
                caps=self._declaration.caps,
                clock=self._clock,
                post=self._declaration.stream.post,
            )
        except (BudgetError, LedgerError) as error:
            raise type(error)(f"the period {part.period}: {error}") from None

    def _kept(self, period: Period) -> str:
        return f"{self._name}@{period.name}"
