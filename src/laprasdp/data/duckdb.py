"""A private table in a file or in memory: one scan at opening, then counts from a snapshot.

At opening DuckDB turns every row into the levels of its declared attributes and adds them up; what it counted
becomes a small table of cells, and the source is closed.  All answers come from those cells.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from laprasdp.data.cells import CellTable
from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb_engine import DuckDBEngine
from laprasdp.data.scan import plan
from laprasdp.data.schema import open_source
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal


class DuckDBTable:
    """
    A table read once by DuckDB; implements `laprasdp.data.table.Table`.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
        A Parquet, CSV, JSON or DuckDB database file of the local disk, opened read-only.  A ``.json`` file is
        one array, ``.jsonl`` and ``.ndjson`` have an object a line.
    domain : Domain
        Its names are columns of the table; case counts only where it must tell columns apart.
    table : str, optional
        Which table of a database, as ``table`` or ``schema.table``.
    name : str, optional
        How statements call the table; the name of the table, or of the file without endings, or "data".
    unit : PrivacyUnit
        Its column need not be an attribute of the domain.
    key : str, optional
        Chooses which rows of a person are kept where there are more than `max_rows`; random otherwise, so a
        ledger that outlives this object needs one.
    apart : pair of attribute and ascending levels, optional
        Where each period of a date attribute begins.  `max_rows` rows of a person are kept in each period,
        the same as from a table of that period alone.
    dialect : Dialect, optional
        How a text file is written; nothing of it is guessed.

    Raises
    ------
    DataError
        The source cannot be read, or does not have the declared columns with fitting types.

    Notes
    -----
    **Privacy.**  Assumes that `domain`, `unit` and `dialect` are chosen without looking at the rows.
    Guarantees what `Table` asks: a row counts if all its declared attributes lie in the domain and, with a
    unit's column, its person is not NULL and it is among the first `max_rows` of that person's rows in the
    order of a hash keyed with `key`, or else with 128 random bits of this object; so what is kept of a person
    depends on that person's rows (with `apart`, those of one period) and the key alone.  How a record is read
    depends on that record, the declaration and the schema: see docs/proofs/table.md.  Errors depend on the
    schema only.  Nothing is written to any disk.

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
        self._domain, self._unit = domain, unit
        opened = open_source(source, table, dialect)
        self._name = opened.name if name is None else name
        engine = DuckDBEngine(opened)
        try:
            periods = None if apart is None else (domain.axis(apart[0]), apart[1])
            key = secrets.token_hex(16) if key is None else key
            columns, person = engine.columns(list(domain), unit.column)
            scan = plan(domain, columns, person, unit=unit, key=key, apart=periods, dialect=opened.dialect)
            self._types = engine.types(scan)
            self._cells = CellTable(self._name, domain, engine.run(scan))
        finally:
            engine.close()

    @property
    def domain(self) -> Domain:
        """The declared domain."""
        return self._domain

    @property
    def name(self) -> str:
        """The name by which statements call the table."""
        return self._name

    @property
    def types(self) -> Mapping[str, str]:
        """The DuckDB type of each attribute's column, from the schema."""
        return self._types

    @property
    def unit(self) -> PrivacyUnit:
        """What a neighbour may add or remove."""
        return self._unit

    @interruptible()
    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over some attributes, from the snapshot; see `Table.marginal`."""
        return self._cells.marginal(axes)

    def close(self) -> None:
        """Forget the snapshot; closing twice does nothing."""
        self._cells.close()

    def __enter__(self) -> DuckDBTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DuckDBTable({self._name}: {', '.join(self._domain)})"
