"""Ledgers in a database: they outlive the process, and several processes may share them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from laprasdp.errors import LedgerError
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.database import Database
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.rows import (
    FEWER,
    OF,
    SET_BACK,
    Dataset,
    Head,
    Row,
    check_row,
    digest_at,
    linked,
    read_rows,
    rows_of,
    settings_of,
)
from laprasdp.ledger.saved import read_snapshot, write_snapshot
from laprasdp.ledger.tables import DATASET, ENTRY, HEAD, is_current, migration
from laprasdp.record.entries import Entry, Kept, Release, Stamp
from laprasdp.record.format import FORMAT, canonical, kind_of, units_of, write_entry
from laprasdp.record.settings import Settings, check_settings, domain_of
from laprasdp.record.snapshot import Snapshot

_NEWEST = 2000  # entries that are read again where somebody else has written to the file
# made once: to make a statement anew costs more than to run it
_HEAD = select(HEAD.c.entries, HEAD.c.digest).where(HEAD.c.dataset == OF)
_HEAD_LOCKED = _HEAD.with_for_update()
_MOVE_HEAD = (
    update(HEAD)
    .where(HEAD.c.dataset == OF)
    .values(entries=bindparam("to_entries"), digest=bindparam("to_digest"))
)
_ADD = insert(ENTRY)


class SQLLedger:
    """
    A ledger in a SQLite file or a PostgreSQL database.

    Parameters
    ----------
    where : str, path or Database
        A file, which is made if it is not there; or a URL; or a database that another ledger has opened.
    dataset : str
        Which of the ledgers in the database.
    wait : float
        Seconds to wait for other processes that are writing.

    Raises
    ------
    LedgerError
        The database cannot be opened, is something else, or is of a newer version.

    Notes
    -----
    **Privacy.**  Assumes that the database keeps what it says it has committed (SQLite with full
    synchronisation; PostgreSQL with its defaults), and that nobody replaces it by an older copy of itself:
    a copy is a ledger that has spent less.  Compare `head` with one noted elsewhere to notice that.
    """

    def __init__(
        self, where: str | os.PathLike[str] | Database, *, dataset: str = "main", wait: float = 60.0
    ) -> None:
        self.database = where if isinstance(where, Database) else _opened(where, wait)
        self.name = dataset
        self._dataset: Dataset | None = None
        self._seen: Head | None = None  # the last head that was kept for certain
        self._changes = self.database.changes

    def begun(self) -> Settings | None:
        with self.database.transaction(write=False) as connection:
            found = self._find(connection)
        return None if found is None else found.settings

    def open(self, settings: Settings) -> Settings:
        with self.database.transaction(write=False) as connection:
            found = self._find(connection)
        if found is None:
            with self.database.transaction(write=True) as connection:
                self.database.lock_schema(connection)
                found = self._find(connection) or self._begin(connection, settings)
        check_settings(found.settings, settings)
        self._dataset = found
        return found.settings

    @property
    def dataset(self) -> Dataset:
        """
        What the ledger belongs to.

        Raises
        ------
        LedgerError
            Nothing was begun under this name.
        """
        if self._dataset is None:
            with self.database.transaction(write=False) as connection:
                self._dataset = self._find(connection)
                names = connection.execute(select(DATASET.c.name)).scalars().all()
                if self._dataset is None:
                    there = f"there are {', '.join(sorted(map(str, names)))}" if names else "it is empty"
                    raise LedgerError(f"it has no dataset {self.name}; {there}")
        return self._dataset

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        dataset, seen = self.dataset, self._seen
        with self.database.transaction(write=True) as connection:
            head = self._followed(connection, dataset, seen, lock=True)
            writing = _Writing(self.database, connection, dataset, head, stamp)
            yield writing
            after = writing.finish()
            self.database.once_kept(connection, lambda: self._saw(after))

    def since(self, position: int) -> Sequence[Kept]:
        dataset, seen = self.dataset, self._seen
        with self.database.transaction(write=False) as connection:
            head = self._followed(connection, dataset, seen)
            return read_rows(self.database, connection, dataset, head, position)

    @property
    def head(self) -> Head:
        """Where the chain ends now; note it elsewhere, and a lost tail or an older copy shows."""
        dataset = self.dataset
        with self.database.transaction(write=False) as connection:
            return self._head(connection, dataset)

    def snapshot(self, key: str, after: int, before: int) -> Snapshot | None:
        try:
            found = self.saved()
        except LedgerError:
            return None
        return found if found and found.key == key and after < found.entries <= before else None

    def keep(self, snapshot: Snapshot) -> None:
        dataset = self.dataset
        with self.database.transaction(write=True) as connection:
            self._head(connection, dataset, lock=True)
            write_snapshot(self.database, connection, dataset, snapshot)

    def saved(self) -> Snapshot | None:
        """
        The snapshot that is kept, whoever kept it; None without one.

        Raises
        ------
        LedgerError
            It is damaged, or of other entries.
        """
        dataset = self.dataset
        with self.database.transaction(write=False) as connection:
            return read_snapshot(self.database, connection, dataset)

    def everything(self) -> tuple[Head, list[Row]]:
        """Where the chain ends, and all entries as they are kept, in order; nothing is checked."""
        dataset = self.dataset
        with self.database.transaction(write=False) as connection:
            return self._head(connection, dataset), rows_of(self.database, connection, dataset, 0)

    def lines(self) -> Iterator[str]:
        """The ledger as JSON lines that can be checked with the documented form alone."""
        yield canonical({"dataset": self.name, "format": FORMAT, "settings": self.dataset.text})
        for row in self.everything()[1]:
            yield canonical({"entry": row.body, "digest": row.digest})

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def _find(self, connection: Connection) -> Dataset | None:
        row = connection.execute(select(DATASET).where(DATASET.c.name == self.name)).one_or_none()
        if row is None:
            return None
        settings = settings_of(row)
        return Dataset(row.id, settings, row.settings, domain_of(settings))

    def _begin(self, connection: Connection, settings: Settings) -> Dataset:
        text = canonical(settings)
        fingerprint = first_digest(text)
        twin = connection.execute(select(DATASET.c.name).where(DATASET.c.fingerprint == fingerprint)).scalar()
        if twin is not None:
            warnings.warn(
                f"dataset {twin} in {self.database.name} has the same settings as {self.name}: two ledgers "
                "for one table are two budgets",
                stacklevel=3,
            )
        values = {"name": self.name, "fingerprint": fingerprint, "settings": text, "format": FORMAT}
        number = connection.execute(insert(DATASET).values(values).returning(DATASET.c.id)).scalar_one()
        connection.execute(insert(HEAD).values(dataset=number, entries=0, digest=fingerprint))
        return Dataset(number, json.loads(text), text, domain_of(settings))

    def _head(self, connection: Connection, dataset: Dataset, *, lock: bool = False) -> Head:
        statement = _HEAD_LOCKED if lock else _HEAD
        rows = self.database.run(connection, statement, {"of": dataset.number})
        if not rows:
            raise LedgerError("where its chain ends is lost: verify it and restore a backup")
        head = Head(*rows[0])
        check_row(vars(head), HEAD)
        return head

    def _followed(
        self, connection: Connection, dataset: Dataset, seen: Head | None, *, lock: bool = False
    ) -> Head:
        """The head, if it follows `seen`; the last entries are checked, too, where others wrote the file."""
        head, changes = self._head(connection, dataset, lock=lock), self.database.changes
        if seen is not None and seen != head:
            if head.entries < seen.entries:
                raise LedgerError(FEWER.format(head.entries, seen.entries))
            found = digest_at(self.database, connection, dataset, seen.entries)
            if head.entries == seen.entries or seen.digest != found:
                raise LedgerError("another copy is in its place: end every session on it, restore a backup")
        if self._changes != changes:
            linked(self.database, connection, dataset, head, max(head.entries - _NEWEST, 0))
        self._changes = changes
        self._saw(head)
        return head

    def _saw(self, head: Head) -> None:
        if self._seen is None or head.entries > self._seen.entries:  # another thread may have seen more
            self._seen = head


class SQLShelf:
    """
    The ledgers of one database, each of a dataset.

    Parameters
    ----------
    where, wait
        As for `SQLLedger`.

    Raises
    ------
    LedgerError
        As from `SQLLedger`.
    """

    def __init__(self, where: str | os.PathLike[str], *, wait: float = 60.0) -> None:
        self.database = _opened(where, wait)

    def ledger(self, name: str) -> SQLLedger:
        return SQLLedger(self.database, dataset=name)

    def together(self) -> AbstractContextManager[None]:
        return self.database.together()

    def settings(self) -> dict[str, Settings]:
        with self.database.transaction(write=True) as connection:
            self.database.lock_schema(connection)
            rows = connection.execute(select(DATASET)).all()
            return {row.name: settings_of(row) for row in rows}

    def names(self) -> list[str]:
        """Names of the ledgers that were begun, whatever their state."""
        with self.database.transaction(write=False) as connection:
            return sorted(map(str, connection.execute(select(DATASET.c.name)).scalars()))

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()


class _Writing:
    """One transaction: reads what is kept, and adds its entries at the end."""

    def __init__(
        self, database: Database, connection: Connection, dataset: Dataset, head: Head, stamp: Stamp
    ) -> None:
        self._database, self._connection, self._dataset = database, connection, dataset
        self._head, self._stamp = head, stamp
        self._entries: list[dict[str, Any]] = []
        self._digest = head.digest

    def since(self, position: int) -> Sequence[Kept]:
        return read_rows(self._database, self._connection, self._dataset, self._head, position)

    def append(self, entry: Entry) -> None:
        position = self._head.entries + len(self._entries)
        body = write_entry(Kept(position, self._stamp, entry))
        self._digest = next_digest(self._digest, body)
        self._entries.append(
            {
                "dataset": self._dataset.number,
                "position": position,
                "kind": kind_of(entry),
                "analyst": self._stamp.analyst,
                "price": str(units_of(entry.charge)) if isinstance(entry, Release) else None,
                "body": body,
                "digest": self._digest,
            }
        )

    def finish(self) -> Head:
        """Write the entries and the new end of the chain."""
        after = Head(self._head.entries + len(self._entries), self._digest)
        if self._entries:
            try:
                self._database.run(self._connection, _ADD, self._entries)
            except self._database.conflict:
                raise LedgerError(SET_BACK) from None
            moved = {"of": self._dataset.number, "to_entries": after.entries, "to_digest": after.digest}
            self._database.run(self._connection, _MOVE_HEAD, moved)
        return after


def _opened(where: str | os.PathLike[str], wait: float) -> Database:
    """A database with a ledger's tables, made where they are not there."""
    database = Database(where, wait)
    with database.transaction(write=False) as connection:
        current = is_current(connection)
    if not current:
        upgrade = migration()
        with database.transaction(write=True) as connection:
            database.lock_schema(connection)
            if not is_current(connection):  # nobody was quicker
                upgrade(connection)
    database.keep_log()
    return database
