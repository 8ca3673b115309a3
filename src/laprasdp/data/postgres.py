"""A private table in PostgreSQL: the server counts it once, and the connection is closed."""

from __future__ import annotations

from collections.abc import Sequence

from laprasdp.data.postgres_engine import PostgresEngine
from laprasdp.data.scanned import ScannedTable
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain


class PostgresTable(ScannedTable):
    """
    A table read once by the PostgreSQL server that holds it.

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/name``; the right to read the table is enough.
    table : str, optional
        A table, view or materialised view, as ``table`` or ``schema.table``.
    name : str, optional
        How statements call the table; its own name otherwise.
    domain, unit, key, apart
        As in `ScannedTable`.

    Raises
    ------
    DataError
        The server lets nobody in, or the table cannot be read as declared.

    Notes
    -----
    **Privacy.**  As `ScannedTable` and `laprasdp.data.postgres_engine.PostgresEngine`.

    Numbers, dates and texts mean what they mean in DuckDB (see `DuckDBTable`): texts are equal if all bytes
    are, whatever the collation; NaN and infinities lie outside.  ``numeric`` without a precision is read as
    doubles, ``character(n)`` without its padding, an enumeration as its texts.
    """

    @interruptible()
    def __init__(
        self,
        url: str,
        domain: Domain,
        *,
        table: str | None = None,
        name: str | None = None,
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 (frozen)
        key: str | None = None,
        apart: tuple[str, Sequence[int]] | None = None,
    ) -> None:
        engine = PostgresEngine(url, table)
        name = engine.name if name is None else name
        super().__init__(engine, domain, name=name, unit=unit, key=key, apart=apart)
