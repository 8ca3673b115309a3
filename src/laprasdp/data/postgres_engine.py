"""PostgreSQL as an engine: one statement in one snapshot, counted by the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from laprasdp.data.column import Column, found_column
from laprasdp.data.packed import Packed
from laprasdp.data.persons import cells_of
from laprasdp.data.postgres_words import duckdb_type, joined, placed, typed, value_of, words_for
from laprasdp.data.scan import Declared, Scan
from laprasdp.data.words import spelled
from laprasdp.errors import DataError
from laprasdp.server import OPTION, UNREACHED, read_server, reason, shown

if TYPE_CHECKING:
    import psycopg
    from pyarrow import RecordBatch

_BATCH = 2**17
_HEADER, _TRAILER = 19, 2  # bytes of COPY's binary form around its rows
_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND NOT c.relispartition AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY 1, 2
"""
_COLUMNS = """
WITH RECURSIVE t AS (
  SELECT a.attname, a.attnum, a.atttypid AS type, a.atttypmod AS modifier
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT t.attname, t.attnum, y.typbasetype, y.typtypmod
  FROM t JOIN pg_type y ON y.oid = t.type WHERE y.typtype = 'd'
)
SELECT t.attname, format_type(t.type, t.modifier), y.typtype = 'e'
FROM t JOIN pg_type y ON y.oid = t.type WHERE y.typtype <> 'd' ORDER BY t.attnum
"""
_SETTINGS = (
    "SET search_path = pg_catalog; SET datestyle = ISO; SET extra_float_digits = 3; "
    "SET standard_conforming_strings = on; SET client_encoding = UTF8"
)
_STATES = {
    "42501": "this user may not read it: grant it SELECT",
    "42P01": "it is not there any more",
    "42703": "a column of it is not there any more",
}


class PostgresEngine:
    """
    A table, view or materialised view of a PostgreSQL database; implements `laprasdp.data.engine.Engine`.

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/name``; a password may come from there, or from libpq's own places.
    table : str, optional
        As ``table`` or ``schema.table``; without it the error lists what may be read.

    Attributes
    ----------
    name, label : str
        How the table, and how messages, call it.
    described : list of (name, type)
        Its columns, with the DuckDB types that stand for theirs.

    Raises
    ------
    DataError
        The address cannot be read, the server lets nobody in, or there is no such table.

    Notes
    -----
    **Privacy.**  Guarantees what `Engine` asks: names, types and rows are read in one read-only transaction
    of one snapshot, with the right to read alone; a row is read by expressions of its own values that fail on
    none, and texts by their bytes in UTF-8.  A view's own expressions may fail; it cannot be opened then.
    The server may write what does not fit in its memory to its own disk.
    """

    def __init__(self, url: str, table: str | None = None) -> None:
        address = read_server(url, "the table's address", DataError)
        self.label = shown(address)
        self.name = ""
        self.described: list[tuple[str, str]] = []
        self._types: list[str] = []
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise DataError(
                f"{self.label}: install {error.name}, as pip install 'lapras-dp[postgres]' does"
            ) from None
        text = address.set(drivername="postgresql").render_as_string(hide_password=False)
        with self._told():
            self._connection: psycopg.Connection[Any] = psycopg.connect(text, connect_timeout=10)
        try:
            with self._told():
                self._begin()
                self._find(table)
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> tuple[str, str]:
        """PostgreSQL, and the table with its schema and database."""
        return "postgresql", self._place

    def columns(self, names: Sequence[str], person: str | None) -> tuple[tuple[Column, ...], Column | None]:
        """The columns of these names, and the one that names a person."""
        known = [Column(name, kind, place) for place, (name, kind) in enumerate(self.described)]
        found = tuple(found_column(self.label, known, name) for name in names)
        if person is None:
            return found, None
        return found, found_column(self.label, known, person, "privacy unit's column")

    def types(self, scan: Scan) -> Mapping[str, str]:
        """The DuckDB type that stands for each attribute's column, from the schema."""
        return {read.name: read.column.type for read in scan.attributes}

    def run(self, scan: Scan) -> Iterator[RecordBatch]:
        """The combinations of levels that occur, and how many rows there are of each."""
        cells, packed = cells_of(self._rows(scan), scan, words_for("")), Packed(scan.sizes)
        statement = f"COPY ({typed(cells).sql('postgres')}) TO STDOUT (FORMAT binary)"
        with self._told():
            try:
                with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
                    yield from map(
                        packed.unpacked, _batches(copy, self._connection.pgconn, cells.named_selects)
                    )
                self._connection.rollback()
            except BaseException:
                self._connection.cancel_safe(timeout=5)
                raise

    def close(self) -> None:
        """Leave the server; closing twice does nothing."""
        self._connection.close()

    def _begin(self) -> None:
        import psycopg

        connection = self._connection
        connection.execute(_SETTINGS)
        connection.commit()
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise DataError(f"{self.label} is a database in {encoding}: only texts in UTF8 are read")

    def _find(self, table: str | None) -> None:
        spelled_as = {
            (schema, name): name if schema == "public" else f"{schema}.{name}"
            for schema, name in self._connection.execute(_TABLES).fetchall()
        }
        tables = f"it has {', '.join(spelled_as.values())}" if spelled_as else "it has none that may be read"
        if table is None:
            raise DataError(f"{self.label} is a database: name a table; {tables}")
        wanted = table.removeprefix("public.")
        match = [key for key, name in spelled_as.items() if name == wanted] or [
            key for key, name in spelled_as.items() if name.casefold() == wanted.casefold()
        ]
        if len(match) != 1:
            there = "several tables" if match else "no table"
            raise DataError(f"{self.label} has {there} {table}; {tables}")
        schema, self.name = match[0]
        self._place = f"{self._connection.info.dbname}.{schema}.{self.name}"
        self.label = f"{spelled_as[match[0]]} of {self.label}"
        self._table = exp.table_(exp.to_identifier(self.name, True), exp.to_identifier(schema, True))
        held = exp.select("1").from_(self._table).limit(0).sql("postgres")
        self._connection.execute(held.encode())  # nobody alters it before the transaction ends
        found = self._connection.execute(_COLUMNS, match[0]).fetchall()
        self._types = [written for _, written, _ in found]
        self.described = [(name, duckdb_type(written, is_enum=is_enum)) for name, written, is_enum in found]

    def _rows(self, scan: Scan) -> exp.Select:
        """The levels a0, a1, … and, with persons, who, a text."""
        rows = exp.select().from_(self._table)
        for i, read in enumerate(scan.attributes):
            level, rows = self._level(read, rows, f"list{i}")
            rows = rows.select(exp.cast(level, "INTEGER").as_(f"a{i}"))
        if scan.person is not None:
            who = words_for(scan.person.type)["text"](self._value(scan.person))
            rows = rows.select(who.as_("who"))
        return rows

    def _level(self, read: Declared, rows: exp.Select, listed: str) -> tuple[exp.Expr, exp.Select]:
        value, words = self._value(read.column), words_for(read.column.type)
        names = {"value": value, "absent": self._named(read.column).is_(exp.null())}
        lookup = read.level.lookup
        if lookup is not None and lookup.is_ordered:
            kind = exp.DataType.build(lookup.type, dialect="duckdb")
            names["found"] = placed(lookup, spelled(lookup.of, words, names), typed(kind).sql("postgres"))
        elif lookup is not None:
            rows = joined(rows, lookup, spelled(lookup.of, words, names), listed)
            names["found"] = exp.column("level", listed)
        return spelled(read.level.expression, words, names), rows

    def _named(self, column: Column) -> exp.Column:
        return exp.column(exp.to_identifier(column.name, quoted=True), exp.to_identifier(self.name, True))

    def _value(self, column: Column) -> exp.Expr:
        return value_of(self._named(column), self._types[column.place], column.type)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the server as what a user can do about them; what it says may quote a value."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate
            known = _STATES.get(state or "") or reason(error)
            if known is None and state is None:  # libpq quotes what it was given
                known = OPTION if "invalid" in str(error) else UNREACHED
            if known is None:
                known = "it cannot be read to its end: does an expression of a view fail?"
            raise DataError(f"{self.label}: {known}") from None


def _batches(copy: Any, pgconn: Any, names: Sequence[str]) -> Iterator[RecordBatch]:
    """What COPY sends in its binary form, where all are whole numbers of 64 bits and none is NULL."""
    import pyarrow
    from psycopg.errors import error_from_result

    values = [part for name in names for part in ((f"{name} bytes", ">i4"), (name, ">i8"))]
    form = np.dtype([("fields", ">i2"), *values])

    def batch(data: bytes) -> RecordBatch:
        found = np.frombuffer(data, form)
        assert (found["fields"] == len(names)).all()
        return pyarrow.RecordBatch.from_pydict({name: found[name].astype(np.int64) for name in names})

    held, start = bytearray(), _HEADER
    for data in copy:  # it waits, and takes one row
        held += data
        while len(data) >= form.itemsize:  # one after another of those that are there; a trailer is shorter
            size, data = pgconn.get_copy_data(1)
            if size < 0:  # without a trailer it has ended early
                failed, *_ = iter(pgconn.get_result, None)
                raise error_from_result(failed)
            held += data
        if len(held) >= start + _BATCH * form.itemsize:
            end = start + (len(held) - start - _TRAILER) // form.itemsize * form.itemsize
            yield batch(bytes(held[start:end]))
            held, start = held[end:], 0
    assert (len(held) - start - _TRAILER) % form.itemsize == 0
    yield batch(bytes(held[start : len(held) - _TRAILER]))
