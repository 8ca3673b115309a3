"""Opens a source read-only and tells its columns and their types: the schema, never the values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from laprasdp.data.arrow import ArrowColumns, convertible, in_memory, in_parquet, plain, text_of
from laprasdp.data.column import DAYS, FLOATS, INTEGERS, TEXTS, Column, found_column
from laprasdp.data.dialect import Dialect
from laprasdp.data.files import SPOKEN, kind_of_file, local_file
from laprasdp.data.jsons import JSON
from laprasdp.data.lines import Delimited
from laprasdp.data.memory import connect
from laprasdp.data.parquet import read_whole
from laprasdp.data.records import RecordBlock
from laprasdp.errors import DataError

_CHUNK = 2**15  # rows that one thread of the engine takes at a time


@dataclass
class Relation:
    """
    An open source: an in-memory connection that sees one table.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
        In memory; a database file is attached read-only.
    label, name : str
        How messages, and how statements, call the source.
    kind, place : str
        What kind of source it is, and what it is called there.
    dialect : Dialect
        How its texts are read.
    columns : tuple of Column
    table : expression, optional
        The table of a database.
    batches : callable, optional
        Of every other source: from columns to arrays of their values, one batch of rows after another.
    whole : callable
        From columns to what `scans` gives, of all rows at once, where the engine can read them itself, or
        None.  A statement of it may end at one value; nothing of it may be kept then.
    has_any_key : bool
        Every record has names of its own, so a name that is asked for is a column.
    is_headed : bool
        The columns are named by the first line of a text file.
    is_counted : bool
        A row of `batches` stands for as many as its last array says.
    note : callable
        Is given line and reason of records that cannot be read.
    """

    connection: duckdb.DuckDBPyConnection
    label: str
    name: str
    kind: str
    place: str
    dialect: Dialect
    columns: tuple[Column, ...] = ()
    table: exp.Expr | None = None
    batches: Callable[[Sequence[Column]], Iterator[Sequence[Any]]] | None = None
    whole: Callable[[Sequence[Column]], exp.Expr | None] = lambda columns: None
    has_any_key: bool = False
    is_headed: bool = False
    is_counted: bool = False
    note: Callable[[Sequence[tuple[int, str]]], None] = lambda faults: None

    def scans(self, columns: Sequence[Column]) -> Iterator[exp.Expr]:
        """
        What to put after FROM, for one part of the rows after another; it has to be read before the next.

        Each has columns ``v0``, ``n0``, ``v1``, …: the values of each of `columns`, and whether they are NULL
        in the source.  A value that the engine cannot hold is NULL in the first and not in the second.  Where
        the source `is_counted`, ``rows`` says how many rows each stands for.
        """
        if self.batches is None:
            assert self.table is not None
            parts: list[exp.Expr] = []
            for i, column in enumerate(columns):
                value = exp.column(column.name, quoted=True)
                parts += [exp.alias_(value, f"v{i}"), exp.alias_(value.is_(exp.null()), f"n{i}")]
            yield exp.select(*parts).from_(self.table).subquery("source")
            return
        import pyarrow

        for arrays in self.batches(columns):
            made: dict[str, Any] = {}
            if self.is_counted:
                *arrays, made["rows"] = arrays
            for i, (column, array) in enumerate(zip(columns, map(plain, arrays), strict=True)):
                made[f"v{i}"] = text_of(array) if column.is_text else convertible(array)
                made[f"n{i}"] = array.is_null()
            chunks = pyarrow.table(made).to_batches(_CHUNK)
            self.connection.register("source", pyarrow.Table.from_batches(chunks, pyarrow.table(made).schema))
            yield exp.to_table("source")
            self.connection.unregister("source")

    def check_header(self, wanted: Sequence[str]) -> None:
        """
        Refuse the first line of a file that names columns twice, or none of the `wanted`.

        Notes
        -----
        **Privacy.**  A line with none of the declared names may be a row, so the message does not show it.
        """
        if not self.is_headed:
            return
        names = [column.name for column in self.columns]
        if not {name.casefold() for name in names} & {name.casefold() for name in wanted}:
            raise DataError(
                f"{self.label}: the first line names none of the declared columns; declare its "
                "delimiter, or its columns where it has no header"
            )
        twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
        if twice:
            raise DataError(f"{self.label}: the header names {twice[0]} twice: {', '.join(names)}")

    def find(self, wanted: str, what: str = "column") -> Column:
        """
        The column of this name; case counts only where it must tell columns apart.

        Raises
        ------
        DataError
            No such column, or several.
        """
        if self.has_any_key:
            if wanted not in [column.name for column in self.columns]:
                self.columns = (*self.columns, Column(wanted, "", len(self.columns), is_text=True))
            return next(column for column in self.columns if column.name == wanted)
        return found_column(self.label, self.columns, wanted, what)

    def noted(self, blocks: Iterator[RecordBlock]) -> Iterator[Sequence[Any]]:
        """The fields of blocks; what cannot be read goes to `note`."""
        for block in blocks:
            self.note(block.faults)
            yield block.fields

    def close(self) -> None:
        self.connection.close()


def kind_of(duckdb_type: str) -> str | None:
    """
    The kind of attribute that fits a DuckDB type, or None.

    Examples
    --------
    >>> kind_of("BIGINT"), kind_of("DECIMAL(9,2)"), kind_of("ENUM('a', 'b')"), kind_of("BLOB")
    ('integers', 'bins', 'categories', None)
    """
    base = Column("", duckdb_type, 0).base
    if base in INTEGERS:
        return "integers"
    if base in FLOATS or base == "DECIMAL":
        return "bins"
    if base in TEXTS:
        return "categories"
    if base in DAYS:
        return "dates"
    return "booleans" if base == "BOOLEAN" else None


def columns(source: Any, table: str | None = None, dialect: Dialect | None = None) -> list[tuple[str, str]]:
    """
    Name and DuckDB type of every column.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
    table : str, optional
        Which table of a database.
    dialect : Dialect, optional
        How a text file is written.

    Returns
    -------
    list of (name, type)
        The type of a text is '': what it means is declared.  A JSON file has no columns to tell.

    Raises
    ------
    DataError
        The source cannot be opened as a table.

    Notes
    -----
    **Privacy.**  Only the schema is read, and of a text file with delimiters the first line.
    """
    opened = open_source(source, table, dialect)
    opened.close()
    return [(column.name, column.type) for column in opened.columns]


def open_source(source: Any, table: str | None = None, dialect: Dialect | None = None) -> Relation:
    """
    Open a table read-only and learn its columns.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
        A path is one file of the local disk.
    table : str, optional
        Which table or view of a database, as ``table`` or ``schema.table``.
    dialect : Dialect, optional
        How texts are written; as `Dialect` says by default.

    Raises
    ------
    DataError
        The source is missing, cannot be read, or is no table.

    Notes
    -----
    **Privacy.**  Nothing is written beside the source, nothing is fetched from a network, and no message
    repeats what the engine says, since that may quote a value.
    """
    path = local_file(source) if isinstance(source, (str, os.PathLike)) else None
    kind = "memory" if path is None else kind_of_file(path)
    label, name = ("the table", "data") if path is None else (path.name, path.name.split(".")[0] or "data")
    if table is not None and kind != "database":
        what = "an in-memory table is" if path is None else f"{label} is a {SPOKEN[kind]},"
        raise DataError(f"{what} one table by itself: leave out table {table}")
    if dialect is not None and not isinstance(dialect, Dialect):
        raise DataError(f"dialect must be a Dialect or None, not {dialect!r}")
    if dialect is not None and kind in ("parquet", "database"):
        raise DataError(f"{label} is a {SPOKEN[kind]}, which has types: leave out how texts are written")
    dialect = dialect or Dialect()
    opened = Relation(connect(), label, table or name, kind, name if path is None else label, dialect)
    try:
        if path is None:
            _read_arrow(opened, in_memory(source))
        elif kind == "database":
            _attach(opened, path, table)
        elif kind == "parquet":
            read = in_parquet(path)
            _read_arrow(opened, read)
            opened.whole = partial(read_whole, opened.connection, path, read.types)
        elif kind == "json":
            _read_json(opened, JSON(path))
        else:
            _read_lines(opened, Delimited(path, dialect))
    except BaseException:
        opened.close()
        raise
    return opened


def _attach(opened: Relation, path: Path, table: str | None) -> None:
    connection, literal = opened.connection, exp.Literal.string(str(path)).sql("duckdb")
    try:
        connection.execute(f"ATTACH {literal} AS source (READ_ONLY, TYPE duckdb)")
    except (duckdb.IOException, duckdb.BinderException):
        raise DataError(
            f"{path.name} cannot be opened: another program writes to it, or the file is damaged or "
            f"newer than DuckDB {duckdb.__version__}"
        ) from None
    except duckdb.Error:
        raise DataError(f"{path.name} is not a readable {SPOKEN['database']}") from None
    found: list[tuple[str, str]] = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() "
        "WHERE database_name = 'source' AND NOT internal ORDER BY ALL"
    ).fetchall()
    spelled = {(schema, name): name if schema == "main" else f"{schema}.{name}" for schema, name in found}
    tables = f"it has {', '.join(spelled.values())}" if spelled else "it has no table"
    if table is None and len(spelled) == 1:
        table = next(iter(spelled.values()))
    if table is None:
        raise DataError(f"{path.name} is a database: name a table; {tables}")
    match = [key for key, name in spelled.items() if name.casefold() == table.casefold()]
    if not match:
        raise DataError(f"{path.name} has no table {table}; {tables}")
    opened.name, opened.place = match[0][1], f"{path.name}.{'.'.join(match[0])}"
    opened.table = exp.table_(
        exp.to_identifier(match[0][1], True), exp.to_identifier(match[0][0], True), "source"
    )
    described = connection.execute("DESCRIBE " + exp.select("*").from_(opened.table).sql("duckdb")).fetchall()
    opened.columns = tuple(Column(row[0], row[1], i) for i, row in enumerate(described))


def _read_lines(opened: Relation, file: Delimited) -> None:
    opened.is_headed = opened.dialect.columns is None
    opened.columns = tuple(Column(name, "", i, is_text=True) for i, name in enumerate(file.names))
    opened.batches = lambda columns: opened.noted(file.blocks([column.place for column in columns]))


def _read_json(opened: Relation, file: JSON) -> None:
    opened.has_any_key = True
    opened.batches = lambda columns: opened.noted(file.blocks([column.name for column in columns]))


def _read_arrow(opened: Relation, table: ArrowColumns) -> None:
    opened.columns = tuple(
        Column(name, "" if kind is None else described(opened.connection, kind), i, is_text=kind is None)
        for i, (name, kind) in enumerate(zip(table.names, table.types, strict=True))
    )
    opened.batches = lambda columns: table.batches([column.place for column in columns])


def described(connection: duckdb.DuckDBPyConnection, kind: Any) -> str:
    """DuckDB's name of an Arrow type; Arrow's own where DuckDB has none, and a name that is given itself."""
    import pyarrow

    if isinstance(kind, str) or pyarrow.types.is_null(kind):
        return kind if isinstance(kind, str) else ""
    try:
        connection.register("given", pyarrow.schema([("value", kind)]).empty_table())
        return str(connection.execute("DESCRIBE FROM given").fetchall()[0][1])
    except duckdb.Error:
        return str(kind)
    finally:
        connection.unregister("given")
