"""The tables of the service's accounts, beside those of a ledger; a database gets them by migrations."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
)

from laprasdp.ledger.tables import is_newest

REVISION = "3"
"""The newest migration in `migrations/versions`."""
VERSION_TABLE = "lapras_accounts_version"
METADATA = MetaData()

PRINCIPAL = Table(
    "lapras_principal",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # who asks, in the ledger
    Column("role", Text, nullable=False),
    Column("cap", Float),  # ε; none is the whole budget
    Column("active", Boolean, nullable=False),
    Column("made", Float, nullable=False),  # seconds since 1970, as every time here
    Column("seen", Float),
)
TOKEN = Table(
    "lapras_token",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("principal", ForeignKey("lapras_principal.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),  # SHA-256; the token itself is kept nowhere
    Column("made", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
)
BROWSER = Table(
    "lapras_browser",
    METADATA,
    Column("digest", Text, primary_key=True),  # of the cookie
    Column("token", ForeignKey("lapras_token.id"), nullable=False),  # it ends with the token it began with
    Column("expires", Float, nullable=False),
)
REPEATED = Table(
    "lapras_repeated",
    METADATA,
    Column("principal", ForeignKey("lapras_principal.id"), primary_key=True),
    Column("key", Text, primary_key=True),  # of the client, with the name of the table
    Column("request", Text, nullable=False),  # its digest
    Column("entries", Integer, nullable=False),  # of the ledger before it was asked
    Column("made", Float, nullable=False),
    Column("answer", Text),  # as it was sent; none while it is asked
)
PENDING = Table(
    "lapras_pending",
    METADATA,
    Column("state", Text, primary_key=True),  # its digest, and that of the browser's cookie
    Column("cookie", Text, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("verifier", Text, nullable=False),
    Column("expires", Float, nullable=False),
)
DRAFTED = Table(
    "lapras_drafted",
    METADATA,
    Column("name", Text, primary_key=True),  # of a table that is served
    Column("predictions", Text),  # statements and counts, as JSON; none are those of lapras.toml
    Column("settled", Boolean, nullable=False),  # a curator has begun with them
)


def is_current(connection: Connection) -> bool:
    """
    Whether the tables are there as this version knows them.

    Raises
    ------
    LedgerError
        They are of a newer version.
    """
    there = VERSION_TABLE in inspect(connection).get_table_names()
    return there and is_newest(connection, VERSION_TABLE, REVISION)
