"""The ledger: what was released, in order, and the protocol that every keeper of it follows.

A session's state is a function of its ledger's entries and of public settings.  Every entry is public: it
holds noisy answers and charges, and never anything exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from laprasdp.privacy.filter import Charge
from laprasdp.query import Query
from laprasdp.strategy.measurement import Measurement


@dataclass(frozen=True)
class Release:
    """
    A measurement was made, charged and answered.

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
        Whether it was made before the stream, and so answers no statement.
    queries : tuple of Query
        What the statement asked, also what needed no measurement.
    """

    measurement: Measurement
    noisy: tuple[int, ...]
    charge: Charge
    allowance: int
    opening: bool
    queries: tuple[Query, ...] = ()


@dataclass(frozen=True)
class Reply:
    """A statement was answered from what had been released before, for no charge."""

    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Refusal:
    """A statement was refused because the budget or the policy has nothing left for it."""

    queries: tuple[Query, ...]
    reason: str


Entry = Release | Reply | Refusal


class Transaction(Protocol):
    """Entries that become part of the ledger together, or not at all."""

    def append(self, entry: Entry) -> None: ...


class Ledger(Protocol):
    """
    Keeps the entries of one table's budget.

    Privacy
    -------
    Assumed of every implementation: entries appended inside a transaction are kept when it ends without an
    exception, all of them or none; what is kept is never changed or dropped.
    """

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin; keep everything at the end, or nothing if an exception leaves the block."""

    def since(self, position: int) -> Sequence[Entry]:
        """The kept entries from `position` on, in order."""
