"""The one door of all tables: what a source is decides which engine reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from laprasdp.data.dialect import Dialect
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.server import SCHEMES, without_password

if TYPE_CHECKING:
    from laprasdp.data.postgres_engine import PostgresEngine
    from laprasdp.data.scanned import ScannedTable
    from laprasdp.data.spark_engine import SparkEngine

_SPARK = ("spark", "sc")
_IBIS = ("bigquery", "clickhouse", "snowflake", "trino")
ADDRESSES = "postgresql://, spark://, sc://, bigquery://, clickhouse://, snowflake:// or trino://"


def on_server(source: object) -> TypeGuard[str]:
    """Whether a source is the address of a server or of a cluster, and no file."""
    return isinstance(source, str) and _scheme(source) in (*SCHEMES, *_SPARK, *_IBIS)


def address(source: str) -> str:
    """The address of a server as it may be written to a file: without password or token."""
    if _scheme(source) in _IBIS:
        from laprasdp.data.ibis_source import without_secrets

        return without_secrets(source)
    return source.partition(";")[0] if _scheme(source) in _SPARK else without_password(source)


def called(table: str) -> str:
    """
    What a table on a server is called, unless it is given a name.

    Examples
    --------
    >>> called("shop.visits"), called("/data/visits.parquet"), called("delta.`/data/visits`@12")
    ('visits', 'visits', 'visits')
    """
    whole = table.partition("@")[0].rstrip("`/")
    return whole.rpartition("/")[2].split(".")[0] if "/" in whole else whole.rpartition(".")[2]


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
        A file as `laprasdp.data.duckdb.DuckDBTable` takes it, ``postgresql://user@host:port/name``,
        ``spark://host:port``, ``sc://host:port`` or a `SparkSession`; or an address, a connection or a table
        of Ibis, as `laprasdp.data.ibis.IbisTable` takes it.
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
    if not on_server(source) and not _is_session(source) and not _is_ibis(source):
        from laprasdp.data.duckdb import DuckDBTable

        return DuckDBTable(
            source, domain, table=table, name=name, unit=unit, key=key, apart=apart, dialect=dialect
        )
    if dialect is not None:
        raise DataError("a table on a server has types: leave out how texts are written")
    if _is_spark(source):
        from laprasdp.data.spark import SparkTable

        return SparkTable(source, domain, table=table, name=name, unit=unit, key=key, apart=apart)
    if _is_ibis(source):
        from laprasdp.data.ibis import IbisTable

        return IbisTable(source, domain, table=table, name=name, unit=unit, key=key, apart=apart)
    from laprasdp.data.postgres import PostgresTable

    return PostgresTable(str(source), domain, table=table, name=name, unit=unit, key=key, apart=apart)


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
    if _is_ibis(source):
        from laprasdp.data.ibis_source import open_backend

        opened = open_backend(source, table)
        opened.close()
        return [(column.name, column.type) for column in opened.columns]
    if not on_server(source) and not _is_session(source):
        from laprasdp.data.schema import columns

        return columns(source, table, dialect)
    engine: PostgresEngine | SparkEngine
    if _is_spark(source):
        from laprasdp.data.spark_engine import SparkEngine

        engine = SparkEngine(source, table)
    else:
        from laprasdp.data.postgres_engine import PostgresEngine

        engine = PostgresEngine(str(source), table)
    engine.close()
    return engine.described


def _scheme(source: str) -> str:
    return source.partition("://")[0].partition("+")[0] if "://" in source else ""


def _is_session(source: object) -> bool:
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "catalog")


def _is_spark(source: object) -> bool:
    return _is_session(source) or (isinstance(source, str) and _scheme(source) in _SPARK)


def _is_ibis(source: object) -> bool:
    if isinstance(source, str):
        return _scheme(source) in _IBIS
    return any(kind.__module__.startswith("ibis.") for kind in type(source).__mro__)
