"""A private table in a file or in memory: DuckDB reads it once, and the source is closed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb_engine import DuckDBEngine
from laprasdp.data.scanned import ScannedTable
from laprasdp.data.schema import open_source
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain


class DuckDBTable(ScannedTable):
    """
    A table read once by DuckDB.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
        A Parquet, CSV, JSON or DuckDB database file of the local disk, opened read-only.  A ``.json`` file is
        one array, ``.jsonl`` and ``.ndjson`` have an object a line.
    table : str, optional
        Which table of a database, as ``table`` or ``schema.table``.
    name : str, optional
        How statements call the table; the name of the table, or of the file without endings, or "data".
    dialect : Dialect, optional
        How a text file is written; nothing of it is guessed.
    domain, unit, key, apart
        As in `ScannedTable`.

    Raises
    ------
    DataError
        The source cannot be read, or does not have the declared columns with fitting types.

    Notes
    -----
    **Privacy.**  As `ScannedTable`.  Nothing is written to any disk.

    Edges of bins mean what the same number means in a comparison in DuckDB: exact in integer and decimal
    columns, the nearest double (or single) in floating-point ones.  NaN and infinities lie outside.  Whole
    numbers beyond ±2¹²⁷ lie outside.  Texts are equal if all bytes are, whatever the collation.  In pandas
    NaN is NULL.  A text that does not spell a value of its attribute lies outside, and so does a value that
    the engine cannot hold.  Columns of ``object`` in pandas are read as texts.
    """

    @interruptible()
    def __init__(
        self,
        source: str | os.PathLike[str] | Any,
        domain: Domain,
        *,
        table: str | None = None,
        name: str | None = None,
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 (frozen)
        key: str | None = None,
        apart: tuple[str, Sequence[int]] | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        opened = open_source(source, table, dialect)
        super().__init__(
            DuckDBEngine(opened),
            domain,
            name=opened.name if name is None else name,
            unit=unit,
            key=key,
            apart=apart,
            dialect=opened.dialect,
        )
