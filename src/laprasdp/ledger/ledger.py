"""Keepers of the record: the protocol that every ledger follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from laprasdp.record.entries import Entry, Kept, Stamp
from laprasdp.record.settings import Settings


class Transaction(Protocol):
    """The only writer; its entries become part of the ledger together, or not at all."""

    def since(self, position: int) -> Sequence[Kept]:
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

    def begun(self) -> Settings | None:
        """The settings that the ledger was begun with; None where nothing was begun."""

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

    def since(self, position: int) -> Sequence[Kept]:
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
