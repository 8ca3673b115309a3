"""What the ledgers of several periods say was spent: in each, and on statements that touched several."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from laprasdp.record.entries import Entry, Kept, Raise, Refusal, Release, Stamp
from laprasdp.record.settings import Settings
from laprasdp.stream.spending import Share, Spending

Occurrence = tuple[Stamp, int]
"""A statement: its stamp, and how many of the same stamp a period has before it."""


@dataclass
class Dear:
    """
    A statement that something was measured for.

    Attributes
    ----------
    at : datetime
    analyst, statement : str or None
    charges : dict of period to float
        ε under basic accounting, μ² under Gaussian, of each period that had to measure.
    """

    at: datetime
    analyst: str | None
    statement: str | None
    charges: dict[str, float] = field(default_factory=dict)

    @property
    def most(self) -> float:
        """The charge of the period that was charged most; no row pays more."""
        return max(self.charges.values())

    def row(self) -> dict[str, Any]:
        """The statement as plain data."""
        return {**vars(self), "at": self.at.isoformat(), "charge": self.most}


class WindowedSpending:
    """
    A fold over the ledgers of all periods.

    Parameters
    ----------
    kept : mapping of period to (settings, entries)
        In the order of dates; entries from the first on.

    Attributes
    ----------
    each : dict of period to Spending
    dearest : list of Dear
        What was measured for statements, the most expensive first.

    Notes
    -----
    Budgets of different periods never add up: what is said of several is of the one where it is most.
    """

    def __init__(self, kept: Mapping[str, tuple[Settings, Sequence[Kept]]]) -> None:
        self.each = {name: Spending(settings, entries) for name, (settings, entries) in kept.items()}
        self._asked: dict[Occurrence, bool] = {}
        dear: dict[Occurrence, Dear] = {}
        for name, (_, entries) in kept.items():
            for asked, entry in _statements(entries):
                stamp = asked[0]
                if not isinstance(entry, Release):
                    self._asked[asked] = isinstance(entry, Refusal)
                elif not entry.opening:
                    one = dear.setdefault(asked, Dear(stamp.at, stamp.analyst, stamp.statement))
                    one.charges[name] = entry.charge.price
        self._times = sorted(stamp.at for stamp, _ in self._asked)
        self.dearest = sorted(dear.values(), key=lambda one: (-one.most, one.at))

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        return next(iter(self.each.values())).unit

    @property
    def statements(self) -> int:
        """Statements that were answered or refused, each counted once."""
        return len(self._asked)

    @property
    def refused(self) -> int:
        """Statements that were refused for want of budget."""
        return sum(self._asked.values())

    @property
    def tightest(self) -> str:
        """The period with the smallest part of its budget left; the latest of several."""
        return min(reversed(self.each), key=lambda name: self.each[name].share_left)

    @property
    def analysts(self) -> list[Share]:
        """Who asked, and what was measured for each in the period where that is most."""
        asked = Counter(stamp.analyst for stamp, _ in self._asked)
        refused = Counter(stamp.analyst for (stamp, _), no in self._asked.items() if no)
        most = _most(share for one in self.each.values() for share in one.analysts)
        return _ordered(
            Share(name, count, refused[name], most[name].spent, most[name].epsilon_spent)
            for name, count in asked.items()
        )

    @property
    def sources(self) -> list[Share]:
        """Where the answers of periods came from, and what that cost where it is most."""
        shares = [share for one in self.each.values() for share in one.sources]
        counts: Counter[str | None] = Counter()
        for share in shares:
            counts[share.name] += share.count
        most = _most(shares)
        return _ordered(
            Share(name, count, 0, most[name].spent, most[name].epsilon_spent)
            for name, count in counts.items()
        )

    def row(self) -> dict[str, Any]:
        """What is said of all periods, as plain data."""
        return {
            "unit": self.unit,
            "statements": self.statements,
            "refused": self.refused,
            "analysts": [asdict(share) for share in self.analysts],
            "sources": [asdict(share) for share in self.sources],
            "queries": [one.row() for one in self.dearest],
        }

    def place(self, at: datetime) -> int:
        """How many statements had been asked of any period up to a time, by their stamps."""
        return bisect_right(self._times, at)


def _statements(entries: Sequence[Kept]) -> Iterator[tuple[Occurrence, Entry]]:
    """What stands of each statement in a period, with its number among those of the same stamp."""
    before: Counter[Stamp] = Counter()
    for kept in entries:
        if not isinstance(kept.entry, Raise):
            yield (kept.stamp, before[kept.stamp]), kept.entry
            before[kept.stamp] += not isinstance(kept.entry, Release)


def _most(shares: Iterable[Share]) -> dict[str | None, Share]:
    most: dict[str | None, Share] = {}
    for share in shares:
        known = most.setdefault(share.name, share)
        if share.spent > known.spent:
            most[share.name] = share
    return most


def _ordered(shares: Iterable[Share]) -> list[Share]:
    return sorted(shares, key=lambda share: (-share.spent, -share.count, share.name or ""))
