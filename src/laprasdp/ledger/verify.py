"""Verification: everything a ledger claims, worked out again from its entries, and what does not agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from laprasdp.errors import BudgetError, LaprasError, LedgerError
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.claim import check_claim
from laprasdp.ledger.database import Database
from laprasdp.ledger.follow import Replies
from laprasdp.ledger.once import Once
from laprasdp.ledger.rows import Dataset, Head, Row
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.tables import unguarded
from laprasdp.pacing.competitive import TYPICAL
from laprasdp.privacy.accounting import accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.record.entries import Entry, Kept, Raise, Release, Reply, Stamp
from laprasdp.record.format import canonical, kind_of, read_entry, units_of, write_entry
from laprasdp.record.integers import read_integers
from laprasdp.record.snapshot import Snapshot
from laprasdp.strategy.threads import one_thread


@dataclass(frozen=True)
class Finding:
    """
    Something that does not agree.

    Attributes
    ----------
    position : int or None
        The entry; None for the ledger as a whole.
    what : str
    """

    position: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.position is None else f"entry {self.position}: {self.what}"


@one_thread()
def verify(ledger: SQLLedger, *, noted: Head | None = None, database: bool = True) -> list[Finding]:
    """
    Check a whole ledger; no table and no noise is needed, and nothing is designed.

    Parameters
    ----------
    ledger : SQLLedger
    noted : Head, optional
        An earlier `ledger.head` that was noted elsewhere: an older copy of the ledger does not have it.
    database : bool
        Whether the database is checked as a whole, too; see `damage`.

    Returns
    -------
    list of Finding
        Empty where everything agrees: the database is whole, every digest follows from the one before, the
        chain ends where the head says, every entry is written as the form says, every charge is what its
        measurement and noise cost, no sum passes the budget of its time, every statement has its answers, and
        every answer and its error follow from the releases before it.  What a snapshot says is spent is what
        the entries before it have spent.

    Raises
    ------
    LedgerError
        The database cannot be read at all, or has no such dataset.
    """
    found = damage(ledger.database) if database else []
    try:
        dataset, (head, rows) = ledger.dataset, ledger.everything()
    except LedgerError as error:
        if not found:
            raise
        return [*found, Finding(None, str(error))]
    found += _chain(dataset, head, rows, noted)
    try:
        replay = _Replay(dataset)
    except (LaprasError, LookupError, TypeError, ValueError) as error:
        return [*found, Finding(None, f"its settings cannot be read: {error}")]
    saved = _saved(ledger, found)
    found += replay.findings(list(_decoded(rows, dataset, found)), saved)
    return sorted(found, key=lambda finding: (finding.position is not None, finding.position or 0))


def damage(database: Database) -> list[Finding]:
    """What is wrong with a database as a whole, whatever ledgers are in it."""
    found = [f"the file is damaged: {line}" for line in database.damage()]
    with suppress(LedgerError), database.transaction(write=False) as connection:
        tables = unguarded(connection)
        found += [f"nothing guards {table} against changes any more" for table in tables]
    return [Finding(None, what) for what in found]


def _saved(ledger: SQLLedger, found: list[Finding]) -> Snapshot | None:
    """The ledger's snapshot, if there is one of its entries."""
    try:
        return ledger.saved()
    except LedgerError as error:
        found.append(Finding(None, str(error)))
        return None


def _chain(dataset: Dataset, head: Head, rows: list[Row], noted: Head | None) -> Iterator[Finding]:
    """Gaps, changed entries, and ends that are not those that were noted."""
    digest = first_digest(dataset.text)
    ends = {0: digest}
    for place, row in enumerate(rows):
        if row.position != place and (place == 0 or row.position != rows[place - 1].position + 1):
            yield Finding(row.position, f"the entries before it, from {len(ends) - 1} on, are lost")
        if row.digest != next_digest(digest, row.body):
            yield Finding(row.position, "it does not follow from the entry before: one of them was changed")
        digest = ends[row.position + 1] = row.digest
    for end, who in ((head, "the head"), (noted, "the noted head")):
        if end is None:
            continue
        if end.entries not in ends:
            yield Finding(None, f"{who} is at {end.entries} entries, but there are {len(rows)}")
        elif ends[end.entries] != end.digest:
            yield Finding(None, f"{who} has another digest than the {end.entries} entries")
    if len(rows) > head.entries:
        yield Finding(None, f"there are {len(rows)} entries, but the head is at {head.entries}")


def _decoded(rows: list[Row], dataset: Dataset, found: list[Finding]) -> Iterator[Kept]:
    """The entries that can be read; the columns beside them must say the same."""
    for row in rows:
        try:
            kept = read_entry(row.body, dataset.domain)
        except LedgerError as error:
            found.append(Finding(row.position, str(error)))
            continue
        if not _well_written(row.body, kept):
            found.append(Finding(row.position, "it is not written as the form says"))
        entry = kept.entry
        price = str(units_of(entry.charge)) if isinstance(entry, Release) else None
        says = (kept.position, kind_of(entry), kept.stamp.analyst, price)
        if says != (row.position, row.kind, row.analyst, row.price):
            found.append(Finding(row.position, "the columns beside it say something else than it does"))
        yield kept


def _well_written(text: str, kept: Kept) -> bool:
    """Whether the text is the one that is written for the entry; packed numbers may be packed otherwise."""
    again = write_entry(kept)
    if again == text:
        return True
    form = json.loads(text)
    return canonical(form) == text and canonical(_plain(form)) == canonical(_plain(json.loads(again)))


def _plain(form: Any) -> Any:
    """The same data with every list of numbers unpacked."""
    if isinstance(form, list):
        return list(map(_plain, form))
    if not isinstance(form, dict):
        return form
    return (
        read_integers(form)
        if form.keys() in ({"zlib"}, {"runs"})
        else {key: _plain(form[key]) for key in form}
    )


class _Replay:
    """The budget, what is spent of it, and what was shown, from entry to entry."""

    def __init__(self, dataset: Dataset) -> None:
        settings = dataset.settings
        self._name, self._horizon = settings["accounting"], settings["horizon"] or TYPICAL
        self._domain, self._rows = dataset.domain, settings["unit"]["max_rows"]
        self._account(Budget(**settings["budget"]))
        self._filter = self._accounting.filter()
        self._replies = Replies(settings, dataset.domain)
        self._once = Once()
        self._owed: Kept | None = None  # a release for a statement whose reply has not come
        self._turn: Stamp | None = None  # of a release, which what follows has too

    def findings(self, entries: Iterable[Kept], saved: Snapshot | None) -> Iterator[Finding]:
        """What does not agree, in the order of the entries; and in a snapshot of the first of them."""
        for kept in entries:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                found = list(self._look(kept))
            yield from (Finding(kept.position, what) for what in found)
            if saved and saved.entries == kept.position + 1 and saved.sums != canonical(self._filter.sums):
                yield Finding(
                    None, f"its snapshot of {saved.entries} entries says that something else is spent"
                )
        if self._owed is not None:
            yield Finding(self._owed.position, "it was made for a statement that has no reply")
        elif self._turn is not None:
            yield Finding(None, "its last release has no statement after it")

    def _look(self, kept: Kept) -> Iterator[str]:
        entry, owed = kept.entry, self._owed
        self._owed = kept if isinstance(entry, Release) and not entry.opening else None
        measured = isinstance(entry, Reply) and entry.measured
        if owed is not None and not measured:
            yield f"entry {owed.position} was made for a statement that has no reply"
        if owed is None and measured:
            yield "it says that a release was made for it, but there is none"
        if self._turn not in (None, kept.stamp):
            yield "it is of another statement, analyst or time than the release before it"
        self._turn = kept.stamp if isinstance(entry, Release) else None
        known: list[Entry] = []
        wrong = list(_tried(lambda: known.append(self._once.known(entry))))
        entry = known[0] if known else entry
        if known:
            taken = self._filter.taken
            wrong += _tried(lambda: check_claim(entry, self._accounting, self._rows, taken))
        yield from wrong
        if isinstance(entry, Release):
            yield from self._release(entry, known=not wrong)
        elif isinstance(entry, Reply):
            found: list[str] = []
            yield from _tried(lambda: found.extend(self._replies.reply(kept.position, entry)))
            yield from found
        elif isinstance(entry, Raise):
            yield from self._raise(entry)

    def _release(self, release: Release, *, known: bool) -> Iterator[str]:
        failed = list(_tried(lambda: self._filter.spend(release.charge)))
        if failed:
            yield from failed
            with suppress(TypeError, ValueError):
                self._filter.record(release.charge)
        if known:  # nothing is worked out from noise that cannot be
            self._once.record(release)
            yield from _tried(lambda: self._replies.release(release))

    def _raise(self, entry: Raise) -> Iterator[str]:
        if entry.old != self._budget:
            yield f"it raises {entry.old}, but the budget is {self._budget}"
        try:
            self._filter.widen(entry.new)
        except BudgetError as error:
            yield str(error)
        else:
            self._account(entry.new)

    def _account(self, budget: Budget) -> None:
        self._budget = budget
        self._accounting = accounting_named(self._name, budget, self._domain, self._horizon)


def _tried(what: Callable[[], object]) -> Iterator[str]:
    """Why something cannot be done with an entry, if it cannot."""
    try:
        what()
    except LaprasError as error:
        yield str(error)
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        yield f"nothing can be worked out with it: {type(error).__name__}"
