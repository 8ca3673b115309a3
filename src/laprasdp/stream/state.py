"""The state of a session: filter, caps and policy after the first entries of a ledger, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from laprasdp.errors import BudgetError, BudgetExhausted, LedgerError, UnknownAnalyst
from laprasdp.ledger.claim import check_claim
from laprasdp.ledger.once import Once
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm_choice import heir
from laprasdp.privacy.accounting import accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Charge, Filter
from laprasdp.record.entries import Kept, Raise, Release, Reply
from laprasdp.stream.fitted import Fits

_UNFIT = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What a policy raises at an entry that no policy of its kind has written."""


class State:
    """
    A fold over ledger entries.

    Parameters
    ----------
    policy : Policy
        In its state before the stream.
    caps : mapping of analyst to float
        The ε, at the budget's δ, of what may be measured for each analyst's statements.  Without caps
        anybody may ask; with caps, those who have one.

    Notes
    -----
    **Privacy.**  The filter bounds what all analysts see together, so that they may collude.  A cap is a
    filter of its own over what was measured for one analyst; it can only refuse more.  Releases that no
    statement asked for count against no cap.
    """

    def __init__(self, policy: Policy, caps: Mapping[str, float]) -> None:
        self.policy, self.filter = policy, policy.accounting.filter()
        self.once, self.fits = Once(), Fits()
        self.position = 0
        self.raised = False  # since the last release that no statement asked for
        self._settled = policy.setting
        self._caps: dict[str, float] = {}
        self._counted: dict[str, Filter] = {}  # what was measured for whoever has a cap, or had one
        self._uncounted: frozenset[str | None] = frozenset()  # for whom something was measured without one
        self.allot(caps)
        self._owed = False  # a release was made for a statement whose reply has not come

    @property
    def budget(self) -> Budget:
        """The budget after what was learned."""
        return self.policy.setting.budget

    @property
    def caps(self) -> dict[str, float]:
        """The cap of each analyst."""
        return dict(self._caps)

    def allot(self, caps: Mapping[str, float]) -> bool:
        """
        Go on with other caps.

        Returns
        -------
        bool
            False, and nothing is changed, where something was measured for one of them while there was no cap
            to count it: then the entries have to be learned again.

        Raises
        ------
        BudgetError
            A cap is no ε.
        """
        filters = {analyst: self._cap(analyst, epsilon) for analyst, epsilon in caps.items()}
        if not self._uncounted.isdisjoint(caps):
            return False
        self._counted |= filters
        self._caps = dict(caps)
        return True

    def afresh(self, caps: Mapping[str, float] | None = None) -> State:
        """The state before the first entry; with other caps, if some are given."""
        policy = policy_named(self.policy.name, self._settled)
        return State(policy, self.caps if caps is None else caps)

    def cap_spent(self, analyst: str) -> float:
        """The ε, at the budget's δ, of what was measured for an analyst who has a cap."""
        return self.policy.accounting.epsilon_of(self._counted[analyst].spent)

    def learned(self) -> dict[str, Any]:
        """What the entries have changed, to be kept beside them."""
        return {
            "policy": self.policy.learned(), "filter": self.filter, "once": self.once, "owed": self._owed,
            "position": self.position, "raised": self.raised, "counted": self._counted,
            "uncounted": sorted(self._uncounted, key=repr),
        }  # fmt: skip

    def resumed(self, budget: Budget, read: Callable[[State], Mapping[str, Any]]) -> State:
        """
        Another state of the same settings, with the caps of this one.

        Parameters
        ----------
        budget : Budget
            After what it has learned.
        read : callable
            What `learned` gave; it is given a state of which the parts that nothing changes can be had.

        Raises
        ------
        LookupError
            What was measured for one of them was not counted.
        """
        found, setting = copy.copy(self), self.policy.setting
        if budget != setting.budget:
            setting = replace(setting, budget=budget)
        found.policy = self.policy.resumed(setting, {})
        learned = read(found)
        found.policy = found.policy.resumed(setting, learned["policy"])
        found.filter, found.once = learned["filter"], learned["once"]
        found._counted, found._uncounted = learned["counted"], frozenset(learned["uncounted"])
        found.position, found.raised, found._owed = (learned[key] for key in ("position", "raised", "owed"))
        if not found.allot(self.caps):
            raise LookupError("what was measured for an analyst was not counted")
        return found

    def twin(self) -> State:
        """A copy that learns by itself; settings are shared, for nothing changes them."""
        kept = (self.policy.setting, self._settled)
        return copy.deepcopy(self, {id(setting): setting for setting in kept})

    def admit(self, analyst: str | None) -> None:
        """
        Whether this analyst may ask at all.

        Raises
        ------
        UnknownAnalyst
            The name is none; or there are caps, and none of them is this analyst's.
        """
        if analyst is not None and not (
            isinstance(analyst, str) and analyst.strip() and analyst.isprintable()
        ):
            raise UnknownAnalyst(f"an analyst is named by text that can be printed, not {analyst!r}")
        if self._caps and analyst not in self._caps:
            who = "a statement needs an analyst" if analyst is None else f"no analyst {analyst!r}"
            raise UnknownAnalyst(f"{who}; there are {', '.join(self._caps)}")

    def check_cap(self, charge: Charge, analyst: str | None) -> None:
        """
        Whether `charge` fits the analyst's cap.

        Raises
        ------
        BudgetExhausted
        """
        if analyst in self._caps:
            try:
                self._counted[analyst].check(charge)
            except BudgetExhausted:
                raise BudgetExhausted(
                    f"the cap of {analyst}, ε = {self._caps[analyst]:g}, has no room for this"
                ) from None

    def cap_left(self, charge: Charge, analyst: str | None) -> int | None:
        """Units that the analyst's cap has left for a charge like this one; None without a cap."""
        return self._counted[analyst].room(charge) if analyst in self._caps else None

    def learn(self, kept: Kept) -> None:
        """
        Take in the next entry.

        Raises
        ------
        LedgerError
            It cannot follow the entries before it.

        Notes
        -----
        **Privacy.**  Guarantees that what a release is charged is what its noise costs, whoever wrote it.
        That replies follow from the releases is for `laprasdp.ledger.verify` to check.
        """
        entry, analyst = kept.entry, kept.stamp.analyst
        policy = self.policy = heir(self.policy, entry)
        try:
            entry = self.once.known(entry)
            if self._owed != (isinstance(entry, Reply) and entry.measured):
                raise LedgerError("a release and the reply that it was made for do not stand together")
            check_claim(entry, policy.accounting, policy.setting.unit.max_rows, self.filter.taken)
            if isinstance(entry, Release):
                self.filter.spend(entry.charge)
                if not entry.opening:
                    self._count(entry.charge, analyst)
            elif isinstance(entry, Raise):
                if entry.old != self.budget:
                    raise BudgetError(f"it raises {entry.old}, but the budget is {self.budget}")
                self.filter.widen(entry.new)
            self.once.record(entry)
            policy.learn(entry)
            self.raised = isinstance(entry, Raise) or (
                self.raised and not (isinstance(entry, Release) and entry.opening)
            )
        except (BudgetError, LedgerError) as error:
            raise LedgerError(f"entry {kept.position} of the ledger: {error}") from None
        except _UNFIT as error:
            raise LedgerError(
                f"entry {kept.position} of the ledger is none that {policy.name} writes: verify it and "
                "restore a backup"
            ) from error
        if isinstance(entry, Raise) and entry.new.delta > entry.old.delta:
            self.allot(self._caps)
        self._owed = isinstance(entry, Release) and not entry.opening
        self.position += 1

    def _count(self, charge: Charge, analyst: str | None) -> None:
        if analyst is not None and analyst in self._counted:
            self._counted[analyst].record(charge)
        elif analyst not in self._uncounted:
            self._uncounted |= {analyst}

    def _cap(self, analyst: str, epsilon: float) -> Filter:
        """The filter of a cap, with what was measured before."""
        setting = self.policy.setting
        try:
            cap = Budget(epsilon, setting.budget.delta)
        except BudgetError as error:
            raise BudgetError(f"caps: {analyst}: {error}") from None
        if analyst in self._counted:
            return self._counted[analyst].under(cap)
        return accounting_named(setting.accounting, cap, setting.domain, setting.length).filter()
