"""What happened, in order: the entries of a ledger as frozen data.

A session's state is a function of its ledger's entries and of public settings.  Every entry is public: it
holds noisy answers and charges, and never anything exact.  Every statement ends with one Reply or one
Refusal; the releases that were made for it, or before it, stand before that in the same transaction.  A
Raise is an act of the curator.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Charge
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
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
    queries : tuple of Query, or Groups
    answers : tuple of Estimate or None
        What was shown, one for each query; None for a query that is 0 on every table.
    measured : bool
        Whether a release was made for it.
    again : bool
        Whether that was wanted though answers were known: they are not those that were shown before.
    """

    queries: tuple[Query, ...] | Groups
    answers: tuple[Estimate | None, ...]
    measured: bool = False
    again: bool = False


@dataclass(frozen=True)
class Refusal:
    """
    A statement was refused because something has nothing left for it.

    Attributes
    ----------
    queries : tuple of Query, or Groups
    reason : str
    counted : bool
        Whether it takes a place in the stream that the budget is paced for.
    """

    queries: tuple[Query, ...] | Groups
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
    The statement that an entry belongs to, who asked it and when; no policy sees this.

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
