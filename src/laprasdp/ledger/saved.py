"""Where a database keeps snapshots: one a ledger, in a table that may be dropped at any time."""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
)

from laprasdp.errors import LedgerError
from laprasdp.ledger.database import Database
from laprasdp.ledger.rows import OF, Dataset, check_row, digest_at
from laprasdp.record.format import canonical
from laprasdp.record.snapshot import Snapshot

SNAPSHOT = Table(
    "lapras_snapshot",
    MetaData(),
    Column("dataset", Integer, primary_key=True, autoincrement=False),
    Column("entries", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),  # of the chain after so many entries
    Column("key", Text, nullable=False),
    Column("sums", Text, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("seal", Text, nullable=False),  # SHA-256 of all of it
)
_FOUND = select(*(column for column in SNAPSHOT.c if column.name != "dataset")).where(
    SNAPSHOT.c.dataset == OF
)


def read_snapshot(database: Database, connection: Connection, dataset: Dataset) -> Snapshot | None:
    """
    The snapshot of a ledger; None where there is none.

    Raises
    ------
    LedgerError
        There is one that is damaged, or of other entries than those of the chain.

    Notes
    -----
    **Privacy.**  Assumes that the chain up to the snapshot's end was checked.  Guarantees that what is given
    was written whole, for these entries; who wrote it is not known.
    """
    if not inspect(connection).has_table(SNAPSHOT.name):
        return None
    row = connection.execute(_FOUND, {"of": dataset.number}).one_or_none()
    if row is None:
        return None
    found: dict[str, Any] = dict(row._mapping)
    check_row(found, SNAPSHOT)
    if found["seal"] != _seal(found):
        raise LedgerError("its snapshot is damaged, and is not used")
    if found["digest"] != digest_at(database, connection, dataset, found["entries"]):
        raise LedgerError("its snapshot is of other entries, and is not used")
    return Snapshot(found["entries"], found["key"], found["sums"], found["state"])


def write_snapshot(database: Database, connection: Connection, dataset: Dataset, snapshot: Snapshot) -> None:
    """Keep a snapshot in place of the one before; inside a transaction that may write."""
    SNAPSHOT.create(connection, checkfirst=True)
    row = {
        "entries": snapshot.entries,
        "digest": digest_at(database, connection, dataset, snapshot.entries),
        "key": snapshot.key,
        "sums": snapshot.sums,
        "state": snapshot.state,
    }
    if not row["digest"]:
        return  # its entries are not kept
    connection.execute(delete(SNAPSHOT).where(SNAPSHOT.c.dataset == dataset.number))
    connection.execute(insert(SNAPSHOT).values(dataset=dataset.number, seal=_seal(row), **row))


def _seal(row: dict[str, Any]) -> str:
    told = canonical({name: row[name] for name in ("entries", "digest", "key", "sums")})
    return hashlib.sha256(told.encode() + row["state"]).hexdigest()
