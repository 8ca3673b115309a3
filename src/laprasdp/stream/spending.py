"""Spending: what the entries of a ledger say was spent, when, for whom and on what; no policy, no table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from laprasdp.pacing.competitive import TYPICAL
from laprasdp.privacy.accounting import Accounting, accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Filter
from laprasdp.record.entries import Kept, Raise, Refusal, Release, Reply
from laprasdp.record.settings import Settings, domain_of

OPENING = "opening"
"""Source of releases that no statement asked for."""


@dataclass(frozen=True)
class Spent:
    """
    One release, and what had been spent after it.

    Attributes
    ----------
    position : int
        Of its entry.
    after : int
        Statements that had been asked before it.
    at : datetime
    analyst, statement : str or None
        Who asked what.
    opening : bool
        It was made before the statement, whatever that was.
    charge : float
        ε under basic accounting, μ² under Gaussian.
    epsilon_spent : float
        By all releases up to this one, at the δ of the time.
    """

    position: int
    after: int
    at: datetime
    analyst: str | None
    statement: str | None
    opening: bool
    charge: float
    epsilon_spent: float


@dataclass(frozen=True)
class Raised:
    """A raise of the budget; fields as of a release."""

    position: int
    after: int
    at: datetime
    analyst: str | None
    old: Budget
    new: Budget


@dataclass(frozen=True)
class Share:
    """
    What a part of the releases would have spent by themselves.

    Attributes
    ----------
    name : str or None
    count : int
        Statements of an analyst; answers of a source, or its releases if that is `OPENING`.
    refused : int
    spent, epsilon_spent : float
        In the accounting's unit; and in ε at the budget's δ.
    """

    name: str | None
    count: int
    refused: int
    spent: float
    epsilon_spent: float


class Spending:
    """
    A fold over ledger entries.

    Parameters
    ----------
    settings : mapping
        That the ledger was begun with.
    entries : iterable of Kept
        From the first on.

    Attributes
    ----------
    begun, budget : Budget
        Before and after all raises.
    releases : list of Spent
    raises : list of Raised
        Both in the order of the ledger.
    """

    def __init__(self, settings: Settings, entries: Iterable[Kept]) -> None:
        self._settings, self._domain = settings, domain_of(settings)
        self.begun = Budget(**settings["budget"])
        self._account(self.begun)
        self._filter = self._accounting.filter()
        self._sources = {OPENING: self._accounting.filter(), "measured": self._accounting.filter()}
        self._analysts: dict[str | None, Filter] = {}
        self._asked: Counter[str | None] = Counter()
        self._refused: Counter[str | None] = Counter()
        self._answers: Counter[str] = Counter()
        self.releases: list[Spent] = []
        self.raises: list[Raised] = []
        for kept in entries:
            self.learn(kept)

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        return self._accounting.unit

    @property
    def spent(self) -> float:
        """ε under basic accounting, μ² under Gaussian."""
        return self._filter.spent

    @property
    def remaining(self) -> float:
        """What is left, in the same unit."""
        return self._filter.remaining

    @property
    def share_left(self) -> float:
        """What is left as a part of the whole."""
        whole = self.spent + self.remaining
        return self.remaining / whole if whole else 0.0

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ."""
        return self._accounting.epsilon_of(self.spent)

    @property
    def statements(self) -> int:
        """Statements that were answered or refused."""
        return self._asked.total()

    @property
    def refused(self) -> int:
        """Statements that were refused for want of budget."""
        return self._refused.total()

    @property
    def dearest(self) -> list[Spent]:
        """What was measured for statements, the most expensive first."""
        measured = [release for release in self.releases if not release.opening]
        return sorted(measured, key=lambda release: (-release.charge, release.position))

    @property
    def analysts(self) -> list[Share]:
        """Who asked, and what was measured for each: the largest share first."""
        shares = [self._share(name, n, self._analysts.get(name)) for name, n in self._asked.items()]
        return sorted(shares, key=lambda share: (-share.spent, -share.count, share.name or ""))

    @property
    def sources(self) -> list[Share]:
        """Where answers came from, and what that cost: the largest share first."""
        counts = Counter({OPENING: sum(release.opening for release in self.releases)}) + self._answers
        shares = [self._share(name, n, self._sources.get(name)) for name, n in counts.items()]
        return sorted(shares, key=lambda share: (-share.spent, -share.count))

    def row(self) -> dict[str, Any]:
        """All of it as plain data, as ``--json`` prints it."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "epsilon_spent": self.epsilon_spent,
            "unit": self.unit,
            "spent": self.spent,
            "remaining": self.remaining,
            "statements": self.statements,
            "refused": self.refused,
            "analysts": [asdict(share) for share in self.analysts],
            "sources": [asdict(share) for share in self.sources],
            "queries": [_plain(release) for release in self.dearest],
            "over_time": [_plain(release) for release in self.releases],
            "raises": [_plain(raised) for raised in self.raises],
        }

    def _share(self, name: str | None, count: int, part: Filter | None) -> Share:
        spent = 0.0 if part is None else part.spent
        return Share(name, count, self._refused[name], spent, self._accounting.epsilon_of(spent))

    def learn(self, kept: Kept) -> None:
        """Take in the next entry."""
        entry, stamp = kept.entry, kept.stamp
        if isinstance(entry, Release):
            self._release(kept, entry)
        elif isinstance(entry, Raise):
            self._filter.widen(entry.new)
            self._account(entry.new)
            raised = Raised(kept.position, self.statements, stamp.at, stamp.analyst, entry.old, entry.new)
            self.raises.append(raised)
        else:
            self._asked[stamp.analyst] += 1
            self._refused[stamp.analyst] += isinstance(entry, Refusal)
            if isinstance(entry, Reply):
                self._answers.update(shown.source if shown else "constant" for shown in entry.answers)

    def _release(self, kept: Kept, release: Release) -> None:
        stamp, opening = kept.stamp, release.opening
        self._filter.record(release.charge)
        self._sources[OPENING if opening else "measured"].record(release.charge)
        if not opening:
            self._analysts.setdefault(stamp.analyst, self._accounting.filter()).record(release.charge)
        if not release.charge.units:
            return  # drawn of what was charged before
        self.releases.append(
            Spent(
                kept.position,
                self.statements,
                stamp.at,
                stamp.analyst,
                stamp.statement,
                opening,
                release.charge.price,
                self.epsilon_spent,
            )
        )

    def _account(self, budget: Budget) -> None:
        self.budget, settings = budget, self._settings
        self._accounting: Accounting = accounting_named(
            settings["accounting"], budget, self._domain, settings["horizon"] or TYPICAL
        )


def budget_of(settings: Settings, entries: Iterable[Kept]) -> Budget:
    """The budget of a ledger after all raises."""
    raised = [kept.entry.new for kept in entries if isinstance(kept.entry, Raise)]
    return raised[-1] if raised else Budget(**settings["budget"])


def _plain(fact: Spent | Raised) -> dict[str, Any]:
    return {**asdict(fact), "at": fact.at.isoformat()}
