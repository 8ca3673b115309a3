"""The ledger: what was released, in order, and the protocol that every keeper of it follows.

A session's state is a function of its ledger's entries and of public settings.  Every entry is public: it
holds noisy answers and charges, and never anything exact.  Every statement ends with one Reply or one
Refusal; the releases that were made for it, or before it, stand before that in the same transaction.  A
Raise is an act of the curator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from laprasdp.ledger.estimate import Estimate
from laprasdp.ledger.settings import Settings
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Charge
from laprasdp.query import Query
from laprasdp.strategy.measurement import Measurement


@dataclass(frozen=True)
class Release:
    """
    A measurement was made and charged.

    Attributes
    ----------
    measurement : Measurement
        The quantised strategy.
    noisy : tuple of int
        Noisy strategy answers, in steps of the noise lattice.
    charge : Charge
    allowance : int
        Units that pacing gave.
    opening : bool
        Whether the policy wanted it before the next statement, whatever that is; else it was made for the
        statement whose reply follows.
    """

    measurement: Measurement
    noisy: tuple[int, ...]
    charge: Charge
    allowance: int
    opening: bool


@dataclass(frozen=True)
class Reply:
    """
    A statement was answered.

    Attributes
    ----------
    queries : tuple of Query
    answers : tuple of Estimate or None
        What was shown, one for each query; None for a query that is 0 on every table.
    measured : bool
        Whether a release was made for it.
    """

    queries: tuple[Query, ...]
    answers: tuple[Estimate | None, ...]
    measured: bool = False


@dataclass(frozen=True)
class Refusal:
    """
    A statement was refused because something has nothing left for it.

    Attributes
    ----------
    queries : tuple of Query
    reason : str
    counted : bool
        Whether it takes a place in the stream that the budget is paced for.
    """

    queries: tuple[Query, ...]
    reason: str
    counted: bool = True


@dataclass(frozen=True)
class Raise:
    """The curator raised the budget."""

    old: Budget
    new: Budget


Entry = Release | Reply | Refusal | Raise


@dataclass(frozen=True)
class Stamp:
    """
    Of what statement an entry is; no policy sees it.

    Attributes
    ----------
    at : datetime
        When it was asked, in UTC.  Never read back: the order of entries is that of their positions.
    analyst : str or None
    statement : str or None
        Its text.
    """

    at: datetime
    analyst: str | None = None
    statement: str | None = None


@dataclass(frozen=True)
class Kept:
    """An entry as the ledger keeps it."""

    position: int
    stamp: Stamp
    entry: Entry


class Transaction(Protocol):
    """The only writer; its entries become part of the ledger together, or not at all."""

    def since(self, position: int) -> Iterable[Kept]:
        """The entries from `position` on that were kept before this transaction, in order."""

    def append(self, entry: Entry) -> None:
        """Add an entry at the end, under the transaction's stamp."""


class Ledger(Protocol):
    """
    Keeps the entries of one table's budget.

    Privacy
    -------
    Assumed of every implementation: one transaction at a time, of whatever process; what `since` gives
    inside it is everything that is kept; entries appended inside it are kept when it ends without an
    exception, all of them or none; what is kept is never changed or dropped.  An exception at the very end
    may leave open which of the two it is.
    """

    def open(self, settings: Settings) -> Settings:
        """
        Begin a ledger for these public settings, or go on with one.

        Returns
        -------
        mapping
            The settings that the ledger was begun with.

        Raises
        ------
        LedgerError
            It was begun with other settings; the message says which.  The budget is not compared.
        """

    def transaction(self, stamp: Stamp) -> AbstractContextManager[Transaction]:
        """Wait for the others; keep everything at the end, or nothing if an exception leaves the block."""

    def since(self, position: int) -> Iterable[Kept]:
        """The kept entries from `position` on, in order."""

    def close(self) -> None:
        """Let go of what is open; whatever is called later opens it again."""


class Shelf(Protocol):
    """
    Several ledgers in one place, each under a name.

    Privacy
    -------
    Assumed of every implementation: what `Ledger` says of each of its ledgers, with the transactions inside a
    `together` block as one, which ends with the block.
    """

    def ledger(self, name: str) -> Ledger:
        """The ledger of this name; it need not be begun."""

    def together(self) -> AbstractContextManager[None]:
        """What this thread's transactions append inside the block is kept at its end: all or nothing."""

    def settings(self) -> Mapping[str, Settings]:
        """
        Name of each ledger that was begun, and the settings it was begun with.

        Inside `together`, nobody else begins one until the block ends.
        """

    def close(self) -> None:
        """Let go of what is open; whatever is called later opens it again."""
