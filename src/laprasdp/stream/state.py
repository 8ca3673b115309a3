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
from laprasdp.privacy.accounting import accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Charge, Filter
from laprasdp.record.entries import Kept, Raise, Release, Reply

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
        self.once = Once()
        self.position = 0
        self.raised = False  # since the last release that no statement asked for
        self._caps = {analyst: (epsilon, self._cap(analyst, epsilon)) for analyst, epsilon in caps.items()}
        self._settled = policy.setting
        self._owed = False  # a release was made for a statement whose reply has not come

    @property
    def budget(self) -> Budget:
        """The budget after what was learned."""
        return self.policy.setting.budget

    @property
    def caps(self) -> dict[str, float]:
        """The cap of each analyst."""
        return {analyst: epsilon for analyst, (epsilon, _) in self._caps.items()}

    def afresh(self, caps: Mapping[str, float] | None = None) -> State:
        """The state before the first entry; with other caps, if some are given."""
        policy = policy_named(self.policy.name, self._settled)
        return State(policy, self.caps if caps is None else caps)

    def cap_spent(self, analyst: str) -> float:
        """The ε, at the budget's δ, of what was measured for an analyst who has a cap."""
        return self.policy.accounting.epsilon_of(self._caps[analyst][1].spent)

    def learned(self) -> dict[str, Any]:
        """What the entries have changed, to be kept beside them."""
        return {
            "policy": self.policy.learned(), "filter": self.filter, "once": self.once, "owed": self._owed,
            "position": self.position, "raised": self.raised, "caps": self._caps,
        }  # fmt: skip

    def resumed(self, budget: Budget, read: Callable[[State], Mapping[str, Any]]) -> State:
        """
        Another state of the same settings and caps.

        Parameters
        ----------
        budget : Budget
            After what it has learned.
        read : callable
            What `learned` gave; it is given a state of which the parts that nothing changes can be had.
        """
        found, setting = copy.copy(self), self.policy.setting
        if budget != setting.budget:
            setting = replace(setting, budget=budget)
        found.policy = self.policy.resumed(setting, {})
        learned = read(found)
        found.policy = found.policy.resumed(setting, learned["policy"])
        found.filter, found.once, found._caps = learned["filter"], learned["once"], learned["caps"]
        found.position, found.raised, found._owed = (learned[key] for key in ("position", "raised", "owed"))
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
            epsilon, spent = self._caps[analyst]
            try:
                spent.check(charge)
            except BudgetExhausted:
                raise BudgetExhausted(
                    f"the cap of {analyst}, ε = {epsilon:g}, has no room for this"
                ) from None

    def cap_left(self, charge: Charge, analyst: str | None) -> int | None:
        """Units that the analyst's cap has left for a charge like this one; None without a cap."""
        return self._caps[analyst][1].room(charge) if analyst in self._caps else None

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
        policy = self.policy = self.policy.heir(entry)
        try:
            entry = self.once.known(entry)
            if self._owed != (isinstance(entry, Reply) and entry.measured):
                raise LedgerError("a release and the reply that it was made for do not stand together")
            check_claim(entry, policy.accounting, policy.setting.unit.max_rows)
            if isinstance(entry, Release):
                self.filter.spend(entry.charge)
                if analyst in self._caps and not entry.opening:
                    self._caps[analyst][1].record(entry.charge)
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
            for epsilon, spent in self._caps.values():
                spent.widen(Budget(epsilon, entry.new.delta))
        self._owed = isinstance(entry, Release) and not entry.opening
        self.position += 1

    def _cap(self, analyst: str, epsilon: float) -> Filter:
        setting = self.policy.setting
        try:
            cap = Budget(epsilon, setting.budget.delta)
        except BudgetError as error:
            raise BudgetError(f"caps: {analyst}: {error}") from None
        return accounting_named(setting.accounting, cap, setting.domain, setting.length).filter()
