"""The one door of all tables: what a source is decides which engine reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from laprasdp.data.dialect import Dialect
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.server import SCHEMES

if TYPE_CHECKING:
    from laprasdp.data.scanned import ScannedTable


def on_server(source: object) -> TypeGuard[str]:
    """Whether a source is the address of a PostgreSQL server, and no file."""
    return isinstance(source, str) and source.partition("://")[0].partition("+")[0] in SCHEMES


def open_table(
    source: str | os.PathLike[str] | Any,
    domain: Domain,
    *,
    table: str | None = None,
    name: str | None = None,
    unit: PrivacyUnit,
    key: str,
    apart: tuple[str, Sequence[int]] | None = None,
    dialect: Dialect | None = None,
) -> ScannedTable:
    """
    Read a table once.

    Parameters
    ----------
    source : path, address, or an Arrow, pandas or Polars table
        A file as `laprasdp.data.duckdb.DuckDBTable` takes it, or ``postgresql://user@host:port/name``.
    table, name, dialect
        As there.
    domain, unit, key, apart
        As in `ScannedTable`.

    Raises
    ------
    DataError
        The source cannot be read as declared.

    Notes
    -----
    **Privacy.**  As `ScannedTable`.
    """
    if not on_server(source):
        from laprasdp.data.duckdb import DuckDBTable

        return DuckDBTable(
            source, domain, table=table, name=name, unit=unit, key=key, apart=apart, dialect=dialect
        )
    if dialect is not None:
        raise DataError("a table in PostgreSQL has types: leave out how texts are written")
    from laprasdp.data.postgres import PostgresTable

    return PostgresTable(source, domain, table=table, name=name, unit=unit, key=key, apart=apart)


def columns_of(
    source: str | os.PathLike[str] | Any, table: str | None = None, dialect: Dialect | None = None
) -> list[tuple[str, str]]:
    """
    Name and DuckDB type of every column, from the schema.

    Parameters
    ----------
    source, table, dialect
        As in `open_table`.

    Raises
    ------
    DataError
        The source cannot be opened as a table.
    """
    if not on_server(source):
        from laprasdp.data.schema import columns

        return columns(source, table, dialect)
    from laprasdp.data.postgres_engine import PostgresEngine

    engine = PostgresEngine(source, table)
    engine.close()
    return engine.described
