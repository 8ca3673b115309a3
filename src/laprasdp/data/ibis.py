"""A private table of any back end of Ibis: it groups the raw columns once, and all else is done here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laprasdp.data.duckdb_engine import DuckDBEngine
from laprasdp.data.ibis_source import open_backend
from laprasdp.data.scanned import ScannedTable
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain


class IbisTable(ScannedTable):
    """
    A table read once through Ibis.  Experimental.

    Parameters
    ----------
    source : str, ibis.BaseBackend or ibis.Table
        ``bigquery://…``, ``clickhouse://…``, ``snowflake://…`` or ``trino://…`` as ``ibis.connect`` takes it,
        a connection, or one of its tables or views.
    table : str, optional
        As in `laprasdp.data.ibis_source.open_backend`.
    name : str, optional
        How statements call the table; its own name otherwise.
    domain, unit, key, apart
        As in `ScannedTable`.

    Raises
    ------
    DataError
        Nobody answers, or the table cannot be read as declared.

    Notes
    -----
    **Privacy.**  As `ScannedTable`, `laprasdp.data.duckdb_engine.DuckDBEngine` and
    `laprasdp.data.ibis_source.open_backend`.

    Values mean what they mean in DuckDB (see `DuckDBTable`); a text is read as what its attribute is, as in
    a text file.
    """

    @interruptible()
    def __init__(
        self,
        source: str | Any,
        domain: Domain,
        *,
        table: str | None = None,
        name: str | None = None,
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 (frozen)
        key: str | None = None,
        apart: tuple[str, Sequence[int]] | None = None,
    ) -> None:
        opened = open_backend(source, table)
        name = opened.name if name is None else name
        super().__init__(DuckDBEngine(opened), domain, name=name, unit=unit, key=key, apart=apart)
