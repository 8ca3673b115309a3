"""Verification: everything a ledger claims, worked out again from its entries, and what does not agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from laprasdp.errors import BudgetError, LaprasError, LedgerError
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.engine import Database
from laprasdp.ledger.sql import Dataset, Head, Row, SQLLedger
from laprasdp.ledger.tables import unguarded
from laprasdp.privacy.accounting import GaussianAccounting, accounting_named
from laprasdp.privacy.budget import EPSILON_BITS, Budget
from laprasdp.privacy.filter import BasicCharge, CellCharge, Charge
from laprasdp.record.entries import Kept, Raise, Release, Reply
from laprasdp.record.estimate import Estimate
from laprasdp.record.format import kind_of, read_entry, units_of
from laprasdp.strategy.measurement import Rows


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


def verify(ledger: SQLLedger, *, noted: Head | None = None, database: bool = True) -> list[Finding]:
    """
    Check a whole ledger; no policy, no table and no noise is needed.

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
        chain ends where the head says, every charge is what its measurement costs, no sum passes the
        budget of its time, and every statement has its answers.

    Raises
    ------
    LedgerError
        The database cannot be read at all, or has no such dataset.
    """
    found = damage(ledger.database) if database else []
    try:
        dataset, (head, rows) = ledger.dataset, ledger.snapshot()
    except LedgerError as error:
        if not found:
            raise
        return [*found, Finding(None, str(error))]
    found += _chain(dataset, head, rows, noted)
    found += _Replay(dataset).findings(list(_decoded(rows, dataset, found)))
    return sorted(found, key=lambda finding: (finding.position is not None, finding.position or 0))


def damage(database: Database) -> list[Finding]:
    """What is wrong with a database as a whole, whatever ledgers are in it."""
    found = [f"the file is damaged: {line}" for line in database.damage()]
    with suppress(LedgerError), database.transaction(write=False) as connection:
        tables = unguarded(connection)
        found += [f"nothing guards {table} against changes any more" for table in tables]
    return [Finding(None, what) for what in found]


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
        entry = kept.entry
        price = str(units_of(entry.charge)) if isinstance(entry, Release) else None
        says = (kept.position, kind_of(entry), kept.stamp.analyst, price)
        if says != (row.position, row.kind, row.analyst, row.price):
            found.append(Finding(row.position, "the columns beside it say something else than it does"))
        yield kept


class _Replay:
    """The budget, what is spent of it, and what was shown, from entry to entry."""

    def __init__(self, dataset: Dataset) -> None:
        settings = dataset.settings
        self._name, self._horizon = settings["accounting"], settings["horizon"]
        self._domain, self._rows = dataset.domain, settings["unit"]["max_rows"]
        self._pays = settings["reading"]["repeats"] == "pay"
        self._account(Budget(**settings["budget"]))
        self._filter = self._accounting.filter()
        self._shown: dict[str, tuple[int, Estimate]] = {}
        self._owed: int | None = None  # a release for a statement whose reply has not come

    def findings(self, entries: Iterable[Kept]) -> Iterator[Finding]:
        """What does not agree, in the order of the entries."""
        for kept in entries:
            yield from (Finding(kept.position, what) for what in self._look(kept))
        if self._owed is not None:
            yield Finding(self._owed, "it was made for a statement that has no reply")

    def _look(self, kept: Kept) -> Iterator[str]:
        entry, owed = kept.entry, self._owed
        self._owed = kept.position if isinstance(entry, Release) and not entry.opening else None
        if owed is not None and not (isinstance(entry, Reply) and entry.measured):
            yield f"entry {owed} was made for a statement that has no reply"
        if isinstance(entry, Release):
            yield from self._release(entry)
        elif isinstance(entry, Reply):
            if entry.measured and owed is None:
                yield "it says that a release was made for it, but there is none"
            yield from self._reply(kept.position, entry)
        elif isinstance(entry, Raise):
            yield from self._raise(entry)

    def _release(self, release: Release) -> Iterator[str]:
        try:
            yield from self._price(release)
            self._filter.spend(release.charge)
        except (LaprasError, TypeError, ValueError) as error:
            yield str(error)
            with suppress(TypeError, ValueError):
                self._filter.record(release.charge)

    def _price(self, release: Release) -> Iterator[str]:
        """The charge, worked out again from the measurement in exact integers."""
        measurement = release.measurement
        if len(release.noisy) != measurement.draws:
            yield f"it has {len(release.noisy)} noisy values for {measurement.draws} rows"
        if measurement.law == "laplace":
            assert isinstance(measurement, Rows)
            epsilon = measurement.laplace_epsilon(self._rows)
            if isinstance(self._accounting, GaussianAccounting):
                due: Charge = self._accounting.pure_charge(epsilon, measurement.draws)
            else:
                due = BasicCharge(release.allowance, 0, measurement.draws)
                if epsilon * 2**EPSILON_BITS > release.allowance:
                    yield "its noise is too small for its charge"
        else:
            due = self._accounting.charge(
                release.allowance, measurement.amounts(self._rows), measurement.draws
            )
        if not _same(due, release.charge):
            yield f"its charge is {units_of(release.charge)} units, but its measurement costs {units_of(due)}"

    def _reply(self, position: int, reply: Reply) -> Iterator[str]:
        if len(reply.answers) != len(reply.queries):
            yield f"it has {len(reply.answers)} answers to {len(reply.queries)} queries"
        for query, shown in zip(reply.queries, reply.answers, strict=False):
            if (shown is None) != query.is_zero:
                yield f"it has no answer to {query!r}" if shown is None else f"{query!r} is 0 on every table"
            if shown is None:
                continue
            earlier, before = self._shown.setdefault(query.key, (position, shown))
            if (before.value, before.variance) != (shown.value, shown.variance):
                if not self._pays:
                    yield f"it shows another answer to {query!r} than entry {earlier}"
                self._shown[query.key] = position, shown

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


def _same(due: Charge, charge: Charge) -> bool:
    if isinstance(due, CellCharge) and isinstance(charge, CellCharge):
        same = (due.draws, due.pure) == (charge.draws, charge.pure)
        return same and due.amounts.canonical() == charge.amounts.canonical()
    return due == charge
