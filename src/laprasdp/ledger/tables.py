"""The tables of a ledger in a database, and how a database gets them: by migrations, never by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)

from laprasdp.errors import LedgerError

REVISION = "1"
"""The newest migration in `migrations/versions`."""

VERSION_TABLE = "lapras_version"

METADATA = MetaData()

DATASET = Table(
    "lapras_dataset",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("fingerprint", Text, nullable=False),  # the digest before the first entry
    Column("settings", Text, nullable=False),
    Column("format", Integer, nullable=False),
)
ENTRY = Table(
    "lapras_entry",
    METADATA,
    Column("dataset", ForeignKey("lapras_dataset.id"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("analyst", Text),
    Column("price", Text),  # units of a release, in decimal
    Column("body", Text, nullable=False),
    Column("digest", Text, nullable=False),
)
HEAD = Table(
    "lapras_head",
    METADATA,
    Column("dataset", ForeignKey("lapras_dataset.id"), primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
)


def is_current(connection: Connection) -> bool:
    """
    Whether the tables are there as this version knows them.

    Raises
    ------
    LedgerError
        The database is something else than a ledger, or a ledger of a newer version.
    """
    names = inspect(connection).get_table_names()
    if VERSION_TABLE in names:
        return is_newest(connection, VERSION_TABLE, REVISION)
    if names and connection.dialect.name == "sqlite":
        raise LedgerError("it is another SQLite database, not a ledger: name a file of its own")
    return False


def unguarded(connection: Connection) -> list[str]:
    """Tables whose entries could be changed, because the triggers that the migrations made are gone."""
    sqlite = connection.dialect.name == "sqlite"
    triggers = "sqlite_master WHERE type = 'trigger'" if sqlite else "pg_trigger WHERE tgenabled <> 'D'"
    there = set(
        connection.execute(text(f"SELECT {'name' if sqlite else 'tgname'} FROM {triggers}")).scalars()
    )
    acts = ("update", "delete") if sqlite else ("keep",)
    tables = (DATASET.name, ENTRY.name)
    return [table for table in tables if not {f"{table}_{act}" for act in acts} <= there]


def is_newest(connection: Connection, table: str, newest: str) -> bool:
    """
    Whether tables, whose revision stands in `table`, are of the newest one.

    Raises
    ------
    LedgerError
        They are of a newer version.
    """
    found = connection.execute(text(f"SELECT version_num FROM {table}")).scalar()
    if found is not None and (not str(found).isdigit() or int(found) > int(newest)):
        raise LedgerError(f"it is of schema {found}, which this version does not know: update laprasdp")
    return bool(found == newest)


def migration(beside: str = __file__) -> Callable[[Connection], None]:
    """What brings tables to the newest migration `beside` a file; loaded before others wait for it."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(beside).parent / "migrations").replace("%", "%%"))

    def upgrade(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    return upgrade
