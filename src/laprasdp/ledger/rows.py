"""The rows of a ledger in a database, read in order and checked against the chain of digests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from sqlalchemy import BindParameter, ColumnClause, Connection, Table, bindparam, literal_column, select

from laprasdp.errors import LedgerError
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.database import Database
from laprasdp.ledger.tables import DATASET, ENTRY
from laprasdp.queries.domain import Domain
from laprasdp.record.entries import Kept
from laprasdp.record.format import FORMAT, read_entry
from laprasdp.record.settings import Settings

FEWER = "it has {} entries, but had {}: restore what was lost"
SET_BACK = (
    "it has entries beyond its end, so where it ends was changed or lost: verify it and restore a backup"
)
OF: BindParameter[int] = bindparam("of")
_FROM: BindParameter[int] = bindparam("from_position")
_NAMES = ("position", "kind", "analyst", "price", "body", "digest")
_TYPES = {
    (int, str, analyst, price, str, str) for analyst in (str, type(None)) for price in (str, type(None))
}
_LAST: ColumnClause[int] = literal_column(
    "4611686018427387904"
)  # of a range PostgreSQL expects few rows: it takes the index
# made once: to make a statement anew costs more than to run it
_ROWS = (
    select(*(ENTRY.c[name] for name in _NAMES))
    .where(ENTRY.c.dataset == OF, ENTRY.c.position >= _FROM)
    .order_by(ENTRY.c.position)
)
WITHIN = _ROWS.where(ENTRY.c.position <= _LAST)  # in a damaged SQLite file there may be others
_DIGEST = select(ENTRY.c.digest).where(ENTRY.c.dataset == OF, ENTRY.c.position == bindparam("at_position"))


@dataclass(frozen=True)
class Dataset:
    """
    What a ledger belongs to.

    Attributes
    ----------
    number : int
        Its key in the database.
    settings : mapping
        As the ledger was begun with.
    text : str
        The settings as the chain of digests begins with them.
    domain : Domain
    """

    number: int
    settings: Settings
    text: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as the database keeps it."""

    position: int
    kind: str
    analyst: str | None
    price: str | None
    body: str
    digest: str


@dataclass(frozen=True)
class Head:
    """Where the chain ends: the number of entries, and the digest of the last."""

    entries: int
    digest: str


def rows_of(database: Database, connection: Connection, dataset: Dataset, position: int) -> list[Row]:
    """Rows from `position` on; that they follow one another is not checked."""
    wanted = {"of": dataset.number, "from_position": position}
    rows = database.run(connection, _ROWS if database.is_sqlite else WITHIN, wanted)
    for row in rows:
        if tuple(map(type, row)) not in _TYPES:
            check_row(dict(zip(_NAMES, row, strict=True)), ENTRY)
    return [Row(*row) for row in rows]


def settings_of(row: Any) -> Settings:
    """The settings of a dataset's row, as they were when it was begun."""
    check_row(row._asdict(), DATASET)
    if row.format > FORMAT:
        raise LedgerError(f"the entries of {row.name} are of format {row.format}: update laprasdp")
    if first_digest(row.settings) != row.fingerprint:
        raise LedgerError(
            f"the settings of {row.name} were changed after it was begun: verify it and restore a backup"
        )
    settings: Settings = json.loads(row.settings)
    return settings


def check_row(row: dict[str, Any], table: Table) -> None:
    """Whether a row has values that its table allows; in a damaged SQLite file it may have others."""
    for name, value in row.items():
        column = table.c[name]
        if not isinstance(value, column.type.python_type) and not (value is None and column.nullable):
            raise LedgerError(f"{column} is {value!r} in a row: it is damaged, restore a backup")


class Entries(Sequence[Kept]):
    """
    Entries of which the chain was checked; each is read when it is looked at.

    Raises
    ------
    LedgerError
        When one is looked at that is no entry.
    """

    def __init__(self, database: Database, domain: Domain, rows: Sequence[Row]) -> None:
        self._database, self._domain, self._rows = database, domain, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Kept: ...

    @overload
    def __getitem__(self, place: slice) -> Entries: ...

    def __getitem__(self, place: int | slice) -> Kept | Entries:
        if isinstance(place, slice):
            return Entries(self._database, self._domain, self._rows[place])
        with self._database.told():
            return _kept(self._rows[place], self._domain)

    def __iter__(self) -> Iterator[Kept]:
        for row in self._rows:
            with self._database.told():
                kept = _kept(row, self._domain)
            yield kept


def _kept(row: Row, domain: Domain) -> Kept:
    try:
        kept = read_entry(row.body, domain)
    except LedgerError as error:
        raise LedgerError(f"entry {row.position}: {error}") from None
    if kept.position != row.position:
        raise LedgerError(f"entry {row.position} says that it is {kept.position}: verify it")
    return kept


def read_rows(
    database: Database, connection: Connection, dataset: Dataset, head: Head, position: int
) -> Entries:
    """Entries from `position` to the head."""
    return Entries(database, dataset.domain, linked(database, connection, dataset, head, position))


def linked(
    database: Database, connection: Connection, dataset: Dataset, head: Head, position: int
) -> list[Row]:
    """Rows from `position` to the head, their chain checked from link to link."""
    if position > head.entries:
        raise LedgerError(FEWER.format(head.entries, position))
    if position == head.entries:
        return []
    digest = digest_at(database, connection, dataset, position)
    rows = rows_of(database, connection, dataset, position)
    if rows and rows[-1].position >= head.entries:
        raise LedgerError(SET_BACK)
    for expected, row in enumerate(rows, position):
        digest = next_digest(digest, row.body)
        if row.position != expected or row.digest != digest:
            raise LedgerError(f"entry {expected} was changed or lost: verify it")
    if digest != head.digest:
        raise LedgerError(f"its last entries were changed or lost, from {position + len(rows)} on: verify it")
    return rows


def digest_at(database: Database, connection: Connection, dataset: Dataset, entries: int) -> str:
    """The digest after so many entries."""
    if not entries:
        return first_digest(dataset.text)
    place = {"of": dataset.number, "at_position": entries - 1}
    return next((found for (found,) in database.run(connection, _DIGEST, place)), "")
