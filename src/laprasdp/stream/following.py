"""Following: a state is kept in step with its ledger, whoever else writes there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Self

from laprasdp.errors import BudgetError, LaprasError, LedgerError
from laprasdp.ledger.ledger import Ledger
from laprasdp.ledger.waiting import meanwhile
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm_choice import heir
from laprasdp.policy.promise import check_promise
from laprasdp.privacy.budget import Budget
from laprasdp.record.entries import Entry, Kept, Release, Stamp
from laprasdp.record.origin import Origin
from laprasdp.record.settings import Settings
from laprasdp.record.snapshot import Snapshots
from laprasdp.strategy.threads import one_thread
from laprasdp.stream.life import Event, Life
from laprasdp.stream.resume import LEAST, due, key_of, restored, take
from laprasdp.stream.state import State
from laprasdp.stream.turn import Append


class Following:
    """
    A state, its ledger, and whether the state is up to date.

    Parameters
    ----------
    state : State
        Before the first entry.
    ledger : Ledger

    Notes
    -----
    **Privacy.**  Assumes what `Ledger` assumes.  Guarantees that a transaction begins with a state that has
    learned everything that is kept and nothing else.
    """

    def __init__(self, state: State, ledger: Ledger, key: str = "") -> None:
        self.state, self.ledger = state, ledger
        self.life, self.lock = Life(), threading.RLock()
        self.overtaken = False  # whether others wrote between what was learned last and the last transaction
        self._key, self._saved = key, 0  # entries of the snapshot that is kept, as far as is known

    @classmethod
    def opened(
        cls,
        policy: Policy,
        caps: Mapping[str, float],
        ledger: Ledger,
        origin: Origin | None = None,
    ) -> Self:
        """
        Begin a ledger, or go on with one, of the table `origin`.

        Raises
        ------
        BudgetError
            A cap is no ε; or the ledger is empty and the budget is not enough for what the policy plans.
        LedgerError
            The ledger was begun with other settings, or cannot be read.
        """
        _check_promise(policy, ledger)
        settings: Settings = policy.settings()
        if origin is not None:
            settings = origin.settle(settings, ledger.begun())
        wanted, begun = policy.setting.budget, Budget(**ledger.open(settings)["budget"])
        if begun != wanted:  # it may have been raised since
            policy = policy_named(policy.name, replace(policy.setting, budget=begun))
        key = key_of(policy.settings()) if isinstance(ledger, Snapshots) else ""
        made = cls(State(policy, caps), ledger, key)
        if made.present.budget != wanted:
            raise LedgerError(
                f"the ledger's budget is {made.state.budget}, not {wanted}: declare its own; "
                "only raise_budget, or `lapras budget raise`, makes it larger"
            )
        return made

    @property
    def present(self) -> State:
        """The state after everything that is kept now."""
        with self.lock:
            self.life.check_open()
            self._catch_up(self.ledger.since)
            self.life.move(Event.FOLLOW)
            self._keep()
            return self.state

    @property
    def ahead(self) -> State:
        """The state, brought up to date only if others write to the ledger too."""
        with self.lock:
            self.life.check_open()
            if self.life.shared or self.life.torn:
                self._learn_further(self.ledger.since, Event.QUIET)
            return self.state

    @property
    def foresees(self) -> bool:
        """Whether to decide before a transaction: for a design, and where nobody was quicker last time."""
        return not self.overtaken or self.ahead.policy.designs

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Append]:
        """Give a function that appends and learns an entry; at the end all are kept, or none."""
        with self.lock:
            self.life.check_open()
            if self.life.torn:  # learn it all here, where nobody waits for it
                self._catch_up(self.ledger.since)
                self.life.move(Event.FOLLOW)
            # what is learned while others write need not be learned while others wait
            ahead = partial(self._learn_further, self.ledger.since, Event.FOLLOW)
            with meanwhile(ahead), self.ledger.transaction(stamp) as transaction:
                self.overtaken = self._learn_further(transaction.since, Event.FOLLOW)

                def append(entry: Entry) -> None:
                    transaction.append(entry)
                    self._learn(Kept(self.state.position, stamp, entry))

                yield append
            self.life.move(Event.KEEP)
            self._keep()

    def close(self) -> None:
        """Nothing is asked any more: what was learned is there for whoever opens the ledger next."""
        if not (self.life.torn or self.life.closed):
            self._keep(last=True)

    def allot(self, caps: Mapping[str, float]) -> None:
        """
        Go on with other caps.

        Where something was measured for one of them while nothing counted it, all that is kept is learned
        again at the next statement.

        Raises
        ------
        BudgetError
            A cap is no ε.
        LedgerError
            The session is closed.
        """
        with self.lock:
            self.life.check_open()
            if self.life.torn or not self.state.allot(caps):
                self.state, self._saved = self.state.afresh(caps), 0
                self.life.move(Event.DOUBT)

    def doubt(self) -> None:
        """Read all of the ledger again at the next statement: what was learned last may not be in it."""
        with self.lock:
            self.life.move(Event.DOUBT)

    def _learn_further(self, since: Callable[[int], Sequence[Kept]], otherwise: Event) -> bool:
        further = self._catch_up(since)
        self.life.move(Event.OVERTAKEN if further else otherwise)
        return further

    @one_thread()
    def _catch_up(self, since: Callable[[int], Sequence[Kept]]) -> bool:
        """Bring the state to the end of the ledger, from the start if it is torn; whether that is further."""
        if self.life.torn:
            self.state = self.state.afresh()
            self.life.move(Event.RENEW)
        before = self.state.position
        entries = since(before)
        if len(entries) >= LEAST:
            self._resume(before + len(entries), entries)
        for kept in entries[self.state.position - before :]:
            self._learn(kept)
        return self.state.position > before

    def _resume(self, end: int, entries: Sequence[Kept]) -> None:
        """Go on from a snapshot of the entries up to one before `end`, if there is one to be believed."""
        if not isinstance(self.ledger, Snapshots):
            return
        begun = next((kept.entry for kept in entries if isinstance(kept.entry, Release)), None)
        if begun is not None:  # the state is one of the policy that this release makes of it
            self.state.policy = heir(self.state.policy, begun)
        found = self.ledger.snapshot(self._key, self.state.position, end)
        if found is not None:
            with suppress(LaprasError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                self.state, self._saved = restored(self.state, found), found.entries
                self.life.move(Event.LEARN)

    def _keep(self, *, last: bool = False) -> None:
        """Keep a snapshot if it is time; what cannot be kept, whoever opens the ledger works out again."""
        if not (isinstance(self.ledger, Snapshots) and due(self.state, self._saved, last=last)):
            return
        self._saved = self.state.position
        with suppress(LedgerError, TypeError):
            self.ledger.keep(take(self.state, self._key))

    def _learn(self, kept: Kept) -> None:
        self.life.move(Event.LEARN)  # until what `kept` belongs to is learned and kept whole
        self.state.learn(kept)


def _check_promise(policy: Policy, ledger: Ledger) -> None:
    """Refuse a budget that is not enough, before the ledger is begun; what it holds already can be shown."""
    try:
        check_promise(policy)
    except BudgetError:
        with suppress(LedgerError):  # nothing was begun
            if any(True for _ in ledger.since(0)):
                return
        raise
