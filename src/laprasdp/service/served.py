"""A served table: its session, its journals and the caps of those who ask; several threads may use it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from laprasdp.config.begun import existing, has_begun
from laprasdp.config.config import Config
from laprasdp.errors import LedgerError
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import Finding, damage
from laprasdp.ledger.verify import verify as verified
from laprasdp.periods import WindowedSession
from laprasdp.policy.promise import check_promise
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.law import half_width
from laprasdp.queries.prediction import Prediction
from laprasdp.service.accounts import Accounts
from laprasdp.service.drafted import Drafted
from laprasdp.service.journal import Journal, PastStatement, merged
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined
from laprasdp.stream.asking import Account, Asking, Told
from laprasdp.stream.plan import Plan, make_plan
from laprasdp.stream.price import Price
from laprasdp.stream.rehearsal import Rehearsal, rehearse
from laprasdp.stream.session import Session
from laprasdp.stream.spending import budget_of

BEGUN = (
    "the ledger was begun with other predictions: the first release is designed for them, so they stay as "
    "long as its budget; write new ones into lapras.toml for a new ledger, which is a new budget"
)
WAITING = "a curator has not begun, or the table is still being opened: nothing can be asked until then"
ErrorCurve = list[tuple[float, float | None, float | None]]
"""ε, and standard deviations with and without predictions."""


class ServedTable:
    """
    One table behind the service.

    Parameters
    ----------
    config : Config
        With a ledger that lasts.
    accounts : Accounts
    begin : {"start", "curator"}
        When a ledger is begun that is not.

    Attributes
    ----------
    declared : Budget
        As `lapras.toml` has it.

    Notes
    -----
    **Privacy.**  Assumes what `Session` assumes.  Guarantees that whoever asks is named in the ledger by the
    name of the principal, and that nothing beyond what the session and the ledger say is told.  Before the
    ledger is begun the table is not opened, so nothing that is told or refused then is of its rows.  A cap is
    a quota: the whole budget bounds what all principals see together.
    """

    def __init__(self, config: Config, accounts: Accounts, *, begin: str = "start") -> None:
        config.kept()
        self.accounts, self.name, self.declared = accounts, config.name, config.budget
        self._lock, self._planning = threading.RLock(), threading.RLock()  # nobody waits for a plan
        self._opening, self._drafting = threading.RLock(), threading.RLock()  # nor for a table to be opened
        self._journals: dict[str | None, Journal] = {}
        self._kept: dict[str, tuple[Any, Any]] = {}
        self._drafted, self._given = Drafted(accounts, config.name), config
        self._draft: tuple[Prediction, ...] | None = None
        self._config = config.read()
        self._session: Asking | None = None
        if begin == "start" or has_begun(config):
            self._open()

    def close(self) -> None:
        """End its session."""
        if self._session is not None:
            self._session.close()

    @property
    def session(self) -> Asking:
        """
        The open session.

        Raises
        ------
        Declined
            A curator has not begun.
        """
        if self.waiting or self._session is None:
            raise Declined("waiting", WAITING, {"Retry-After": "60"})
        return self._session

    @property
    def waiting(self) -> bool:
        """Whether nobody has begun the ledger, here or in another process; also while the table is opened."""
        if self._session is None and self._opening.acquire(blocking=False):
            try:
                if self._session is None and has_begun(self._given):
                    self._open()
            finally:
                self._opening.release()
        return self._session is None

    @property
    def config(self) -> Config:
        """What is declared, with the predictions that a curator has set and the ledger's budget."""
        if self.waiting:
            self._read_draft()
        return self._config

    def begin(self) -> None:
        """
        Open the table and begin its ledger with the predictions that are set.

        Raises
        ------
        Declined
            It was begun before.
        LaprasError
            The table cannot be opened as declared; nothing was begun.
        """
        with self._opening:
            if not self.waiting:
                raise Declined("begun", "the ledger was begun before")
            self._drafted.settle()
            try:
                self._open()
            except BaseException:
                self._drafted.release()
                raise

    def set_predictions(self, wanted: Sequence[Prediction]) -> None:
        """
        Let these be the predictions, until the ledger is begun; then no others than its own are taken.

        Raises
        ------
        LaprasError
            One of them cannot be asked, or the budget is not enough for what would be planned.
        Declined
            The ledger was begun with others.
        """
        if not self.waiting:
            self._check_begun(wanted)
            return
        new = self._with(wanted).read()
        check_promise(new.policy_before()[0])
        self._drafted.set(wanted)

    def _with(self, predictions: Sequence[Prediction] | None) -> Config:
        given = self._given
        if predictions is None:
            return given
        return replace(given, stream=replace(given.stream, predictions=tuple(predictions)))

    def _read_draft(self) -> None:
        with self._drafting:
            draft = self._drafted.predictions()
            if draft != self._draft:
                self._config, self._draft = self._with(draft).read(), draft

    def _open(self) -> None:
        self._read_draft()
        recorded = _as_recorded(self._config)
        self._caps = self._wanted(recorded.caps, recorded.budget.epsilon)
        self._config = replace(recorded, caps=self._caps)
        self._session = self._config.open()

    @property
    def account(self) -> Account:
        """What is left of the budget; of the period that has the least."""
        return self.session.account

    @property
    def budget(self) -> Budget:
        """The budget that the ledger has, or is to be begun with."""
        return self.declared if self.waiting else self.account.budget

    def half_width(self, std: float) -> float:
        """Half of the 95% interval of an answer with this standard deviation."""
        if self.waiting:
            law = self._once("law", self._draft, lambda: self.config.policy_before()[0].law)
        else:
            law = self.session.state.policy.law if isinstance(self.session, Session) else "gaussian"
        return half_width(0.95, std, law, 1.0)

    def ask(self, who: Principal, statement: str, *, max_std: float | None, remeasure: bool) -> Told:
        """Answer a statement of a principal; errors as from `Session.ask`."""
        self._follow(who)
        return self.session.ask(statement, analyst=who.name, max_std=max_std, remeasure=remeasure)

    def price(self, who: Principal, statement: str, *, max_std: float | None, remeasure: bool) -> Price:
        """What it would cost; errors as from `Session.price`."""
        self._follow(who)
        return self.session.price(statement, analyst=who.name, max_std=max_std, remeasure=remeasure)

    def cap_of(self, who: Principal) -> tuple[float, float] | None:
        """The cap of a principal and the ε that is spent of it; None without one, or with periods."""
        if who.cap is None or not isinstance(self.session, Session):
            return None
        self._follow(who)
        self.session.account  # noqa: B018 (it learns what other processes have kept)
        return who.cap, self.session.state.cap_spent(who.name)

    def raise_budget(self, who: Principal, budget: Budget, period: str | None) -> None:
        """Record a larger budget; errors as from `Session.raise_budget`."""
        if isinstance(self.session, WindowedSession):
            self.session.raise_budget(period or "", budget, analyst=who.name)
        else:
            assert isinstance(self.session, Session)
            self.session.raise_budget(budget, analyst=who.name)

    def journals(self) -> Mapping[str | None, Journal]:
        """The journal of each ledger, up to date."""
        with self._lock:
            for name, ledger in self._ledgers().items():
                if name not in self._journals:
                    self._journals[name] = Journal(ledger, name)
            return {name: journal.catch_up() for name, journal in self._journals.items()}

    def history(self, analyst: str | None, text: str = "") -> list[PastStatement]:
        """The statements of an analyst, or of all, the newest first."""
        found = [journal.of(analyst, text) for journal in self.journals().values()]
        return found[0] if len(found) == 1 else merged(found)

    def entries(self) -> int:
        """How many entries its ledgers have."""
        return sum(journal.position for journal in self.journals().values())

    def plan(self, *, predictions: bool = True) -> Plan:
        """The plan before the stream, with the predictions or without; worked out once."""
        config = self.config
        found: Plan = self._once(
            f"plan {predictions}", self._draft, lambda: self._planned(config, predictions)
        )
        return found

    def _check_begun(self, wanted: Sequence[Prediction]) -> None:
        """Whether these are the predictions that the ledger was begun with."""
        stream = replace(self.config.stream, predictions=tuple(wanted))
        read = replace(self.config, stream=stream).read().stream.declared
        begun = self.config.stream.declared
        if [(one.queries, one.expected) for one in read] != [(one.queries, one.expected) for one in begun]:
            raise Declined("begun", BEGUN)

    def curve(self) -> ErrorCurve:
        """Standard deviations with predictions and without, by ε: a quarter to four times the declared."""
        found: ErrorCurve = self._once("curve", self._draft, self._curve)
        return found

    def rehearsal(self) -> Rehearsal | None:
        """What the rest of the budget still buys; None where periods have each a budget."""
        if not isinstance(self.session, Session):
            return None
        found: Rehearsal = self._once("rehearsal", self.entries(), self._rehearsed)
        return found

    def verify(self) -> dict[str | None, list[Finding]]:
        """What each ledger is found to have wrong; nothing is the sound of it."""
        found: dict[str | None, list[Finding]] = {}
        for name, ledger in self._ledgers().items():
            try:
                found[name] = verified(ledger, database=False)
            except LedgerError as error:
                found[name] = [Finding(None, str(error))]
        first = next(iter(found))
        found[first] = damage(self._ledgers()[first].database) + found[first]
        return found

    def ledgers(self) -> dict[str | None, SQLLedger]:
        """The ledgers by period; one of None where the table has none."""
        return self._ledgers()

    def _ledgers(self) -> dict[str | None, SQLLedger]:
        session = self.session
        if isinstance(session, WindowedSession):
            names = [period.name for period in session.periods]
            return {name: session.shelf.ledger(f"{session.name}@{name}") for name in names}  # type: ignore[misc]
        assert isinstance(session, Session)
        assert isinstance(session.ledger, SQLLedger)
        return {None: session.ledger}

    def _follow(self, who: Principal) -> None:
        """Let the session know of a principal, or of a cap, that is new; other processes may have made it."""
        session = self.session
        if self._caps.get(who.name) != (who.cap or self._most):
            with self._lock:
                caps = self._wanted(self._caps, self._most)
                if caps != self._caps:
                    session.allot(caps)
                    self._caps = caps

    @property
    def _most(self) -> float:
        """The ε of a budget, which is the cap of whoever has none; the largest of periods."""
        if isinstance(self.session, Session):
            return self.session.state.budget.epsilon  # as last learned: each statement learns of a raise
        return max(one.budget.epsilon for one in self.session.accounts)

    def _wanted(self, before: Mapping[str, float], most: float) -> dict[str, float]:
        """The caps of all who ask now, and of those before."""
        asking = [one for one in self.accounts.principals() if one.asks]
        return {**before, **{one.name: one.cap or most for one in asking}}

    def _once(self, name: str, at: Any, work: Any) -> Any:
        with self._planning:
            if name not in self._kept or self._kept[name][0] != at:
                self._kept[name] = (at, work())
            return self._kept[name][1]

    def _planned(self, given: Config, predictions: bool) -> Plan:
        config = given.with_budget(self.declared)
        kinds = True if predictions else self.plan().played
        return config.plan(predictions=predictions, kinds=kinds)

    def _curve(self) -> ErrorCurve:
        found = []
        for step in range(-2, 3):
            budget = Budget(self.declared.epsilon * 2.0**step, self.declared.delta)
            stds = []
            for predictions in (True, False):
                policy, names = self.config.with_budget(budget).policy_before(predictions=predictions)
                stds.append(make_plan(policy, names, kinds=False).typical_std)
            found.append((budget.epsilon, stds[0], stds[1]))
        return found

    def _rehearsed(self) -> Rehearsal:
        (ledger,) = self._ledgers().values()
        entries = list(ledger.since(0))
        policy, _ = self.config.with_budget(self.account.budget).policy_before()
        return rehearse(policy, ledger.dataset.settings, entries)


def _as_recorded(config: Config) -> Config:
    """
    The same with the budget that its ledger was raised to: a curator's act outlives the process.

    What is declared must be a budget that the ledger had; any other is for the session to refuse.
    """
    place = config.kept()
    if config.windows is not None or not place.begun:
        return config
    try:
        (ledger,) = existing(config, None).values()
        settings, entries = ledger.dataset.settings, list(ledger.since(0))
    except LedgerError:
        return config  # which opening will tell
    had = [Budget(**settings["budget"])]
    had += [kept.entry.old for kept in entries if hasattr(kept.entry, "old")]
    ledger.close()
    return config.with_budget(budget_of(settings, entries)) if config.budget in had else config
