"""Journal: what a ledger says of its statements and its budget, learned entry by entry; no table."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from laprasdp.ledger.sql import SQLLedger
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Raise, Refusal, Release, Reply
from laprasdp.record.estimate import Estimate
from laprasdp.stream.spending import Spending


@dataclass(frozen=True)
class PastStatement:
    """
    A statement that was asked, and what came of it.

    Attributes
    ----------
    position : int
        Of its last entry.
    at : datetime
    analyst, statement : str or None
    charge : float
        Of what was measured for it.
    queries : tuple of Query, or Groups
    answers : tuple of Estimate or None
        Aligned with `queries`; empty where it was refused.
    refusal : str or None
    again : bool
        Whether it was wanted measured again.
    period : str or None
    """

    position: int
    at: datetime
    analyst: str | None
    statement: str | None
    charge: float
    queries: tuple[Query, ...] | Groups
    answers: tuple[Estimate | None, ...]
    refusal: str | None = None
    again: bool = False
    period: str | None = None

    @property
    def source(self) -> str:
        """Where its values came from."""
        if self.refusal is not None:
            return "refused"
        found = {"constant" if one is None else one.source for one in self.answers}
        return found.pop() if len(found) == 1 else "mixed"


class Journal:
    """
    A fold over the entries of one ledger.

    Attributes
    ----------
    asked : list of PastStatement
    spending : Spending
    causes : Counter
        What was spent by cause: the opening, batches, raises, asked.
    position : int
        Of the first entry that was not learned.
    """

    def __init__(self, ledger: SQLLedger, period: str | None = None) -> None:
        self.ledger, self._period, self._lock = ledger, period, threading.RLock()
        self.asked: list[PastStatement] = []
        self.spending = Spending(ledger.dataset.settings, ())
        self.causes: Counter[str] = Counter()
        self.position = 0
        self._charge, self._raised = 0.0, False

    def catch_up(self) -> Journal:
        """
        Learn what was kept since.

        Raises
        ------
        LedgerError
            The ledger cannot be read.
        """
        with self._lock:
            for kept in self.ledger.since(self.position):
                self._learn(kept)
        return self

    def of(self, analyst: str | None, text: str = "") -> list[PastStatement]:
        """The statements of an analyst, or of all, that hold a text; the newest first."""
        wanted = text.casefold()
        return [
            one
            for one in reversed(self.asked)
            if (analyst is None or one.analyst == analyst) and wanted in (one.statement or "").casefold()
        ]

    def measured_again(self, analyst: str, statement: str, start: int) -> bool:
        """Whether a statement was measured again for an analyst at `start` or later."""
        return any(
            one.again and one.position >= start and (one.analyst, one.statement) == (analyst, statement)
            for one in reversed(self.asked)
        )

    def _learn(self, kept: Kept) -> None:
        entry, stamp = kept.entry, kept.stamp
        self.spending.learn(kept)
        self.position = kept.position + 1
        if isinstance(entry, Release):
            price = entry.charge.price if entry.charge.units else 0.0
            if not entry.opening:
                self._charge += price
                self.causes["asked"] += price  # type: ignore[assignment]
            elif price:
                cause = "raise" if self._raised else "batch" if self.causes["opening"] else "opening"
                self.causes[cause] += price  # type: ignore[assignment]
                self._raised = False
        elif isinstance(entry, Raise):
            self._raised = True
        elif isinstance(entry, Reply | Refusal):
            refused = isinstance(entry, Refusal)
            self.asked.append(
                PastStatement(
                    kept.position,
                    stamp.at,
                    stamp.analyst,
                    stamp.statement,
                    self._charge,
                    entry.queries,
                    () if isinstance(entry, Refusal) else entry.answers,
                    entry.reason if isinstance(entry, Refusal) else None,
                    not refused and isinstance(entry, Reply) and entry.again,
                    self._period,
                )
            )
            self._charge = 0.0


def merged(journals: Iterable[Sequence[PastStatement]]) -> list[PastStatement]:
    """The statements of several ledgers as one list, the newest first; one of several periods stands once."""
    found: dict[tuple[datetime, str | None, str | None], PastStatement] = {}
    for asked in journals:
        for one in asked:
            key = (one.at, one.analyst, one.statement)
            if key not in found or one.refusal is not None:
                found[key] = one
    return sorted(found.values(), key=lambda one: (one.at, one.position), reverse=True)
