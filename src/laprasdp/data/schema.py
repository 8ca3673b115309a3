"""Opens a source read-only and tells its columns and their types: the schema, never the values."""

from __future__ import annotations

import difflib
import os
import re
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from laprasdp.errors import DataError

INTEGERS = {
    **{name: (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for name, b in
       {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}.items()},
    **{name: (0, 2**b - 1) for name, b in
       {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "UHUGEINT": 128}.items()},
}  # fmt: skip
FLOATS = ("FLOAT", "DOUBLE")
TEXTS = ("VARCHAR", "ENUM", "UUID")
DAYS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")

READS = "Parquet (.parquet), CSV (.csv, .tsv, .txt), JSON (.json, .ndjson, .jsonl) and DuckDB databases"
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_KINDS |= {".json": "json", ".ndjson": "json", ".jsonl": "json"}
_KINDS |= {".duckdb": "database", ".ddb": "database", ".db": "database"}
_SPOKEN = {"parquet": "Parquet file", "csv": "CSV file", "json": "JSON file", "database": "DuckDB database"}
_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # nothing is fetched from a network
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # a name in SQL never means a Python variable
    "preserve_insertion_order": False,
    "temp_directory": "",  # private rows are never spilled to a disk
}


@dataclass(frozen=True)
class Column:
    """A column as the source spells it, DuckDB's type, and the identifier that `Source.rows` knows."""

    name: str
    type: str
    key: str

    @property
    def base(self) -> str:
        """The type without its arguments: ``DECIMAL`` of ``DECIMAL(9,2)``; '' where the type is not known."""
        if self.type.endswith("]"):
            return self.type
        return self.type.split("(")[0].replace('"NULL"', "")


@dataclass
class Source:
    """
    An open source: an in-memory connection that sees one table.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
        In memory; a database file is attached read-only.
    label, name : str
        How messages, and how statements, call the source.
    kind : {"parquet", "csv", "json", "database", "memory"}
    columns : tuple of Column
    """

    connection: duckdb.DuckDBPyConnection
    label: str
    name: str
    kind: str
    columns: tuple[Column, ...] = ()
    _pattern: str = ""
    _rows: exp.Expr | None = None

    def rows(self, types: Mapping[str, str] | None = None) -> exp.Expr:
        """
        What to put after FROM, under the alias ``s``.

        Parameters
        ----------
        types : mapping of column key to DuckDB type, optional
            Matters to CSV and JSON only, which are text: the columns that will be read, and as what.
            In a CSV file every other column stays text, and a line that cannot be read as told is left out.
        """
        if self._rows is not None:
            return exp.alias_(self._rows, "s", table=True)
        options: dict[str, exp.Expr] = {"hive_partitioning": exp.false()}
        if self.kind == "csv":
            options["header"] = exp.true()
            if types is not None:
                given = {c.key: types.get(c.key, "VARCHAR") for c in self.columns}
                options |= {"ignore_errors": exp.true()} | ({"types": _struct(given)} if given else {})
        elif self.kind == "json":
            options["sample_size"] = exp.Literal.number(-1)
            if types:
                options["columns"] = _struct(types)
        arguments = [exp.EQ(this=exp.to_identifier(key), expression=value) for key, value in options.items()]
        reader = call(f"read_{self.kind}", exp.Literal.string(self._pattern), *arguments)
        return exp.alias_(exp.Table(this=reader), "s", table=True)

    def find(self, wanted: str, what: str = "column") -> Column:
        """
        The column of this name; case counts only where it must tell columns apart.

        Raises
        ------
        DataError
            No such column, or several.
        """
        exact = [column for column in self.columns if column.name == wanted]
        found = exact or [column for column in self.columns if column.name.casefold() == wanted.casefold()]
        if len(found) == 1:
            return found[0]
        if len(exact) > 1:
            raise DataError(f"{self.label} has {len(exact)} columns called {wanted}: give each its own name")
        if found:
            names = ", ".join(column.name for column in found)
            raise DataError(f"{what} {wanted} could be several columns of {self.label}: {names}")
        for column in self.columns:
            if unicodedata.normalize("NFC", column.name) == unicodedata.normalize("NFC", wanted):
                raise DataError(
                    f"{self.label} spells {what} {wanted} in another Unicode form: copy it from there"
                )
        folded = {column.name.casefold(): column.name for column in self.columns if len(column.name) > 2}
        near = []
        if len(wanted) > 2:  # of shorter names none is near
            near = difflib.get_close_matches(wanted.casefold(), folded, n=1, cutoff=0.5)
        known = [column.name for column in self.columns]
        shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
        hint = f"the nearest is {folded[near[0]]}" if near else f"it has {shown}"
        raise DataError(f"{self.label} has no {what} {wanted}; {hint}")

    def is_blank(self, column: Column) -> bool:
        """Whether a column of a text file holds no value at all, so that no type can be guessed for it."""
        if self.kind not in ("csv", "json"):
            return False
        seen = exp.column(column.key, "s", quoted=True).is_(exp.null()).not_()
        query = exp.select("1").from_(self.rows({})).where(seen).limit(1)
        return self.connection.execute(query.sql("duckdb")).fetchone() is None

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
    base = Column("", duckdb_type, "").base
    if base in INTEGERS:
        return "integers"
    if base in FLOATS or base == "DECIMAL":
        return "bins"
    if base in TEXTS:
        return "categories"
    if base in DAYS:
        return "dates"
    return "booleans" if base == "BOOLEAN" else None


def columns(source: Any, table: str | None = None) -> list[tuple[str, str]]:
    """
    Name and DuckDB type of every column.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
    table : str, optional
        Which table of a database.

    Returns
    -------
    list of (name, type)

    Raises
    ------
    DataError
        The source cannot be opened as a table.

    Notes
    -----
    **Privacy.**  Only the schema is read.  CSV and JSON have none, so there the types are guessed from
    values: the first rows of a CSV file, all rows of a JSON file.
    """
    opened = open_source(source, table)
    opened.close()
    return [(column.name, column.type) for column in opened.columns]


def suggest(source: Any, table: str | None = None) -> list[tuple[str, str, str | None]]:
    """
    Name, DuckDB type and fitting kind of attribute (or None) of every column; see `columns`.

    Returns
    -------
    list of (name, type, kind)
    """
    return [(name, spelled, kind_of(spelled)) for name, spelled in columns(source, table)]


def open_source(source: Any, table: str | None = None) -> Source:
    """
    Open a table read-only and learn its columns.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
        A path is one file of the local disk.
    table : str, optional
        Which table or view of a database, as ``table`` or ``schema.table``.

    Raises
    ------
    DataError
        The source is missing, cannot be read, or is no table.

    Notes
    -----
    **Privacy.**  Nothing is written beside the source, nothing is fetched from a network, and no message
    repeats what the engine says, since that may quote a value.
    """
    path = _check_path(source) if isinstance(source, (str, os.PathLike)) else None
    if path is None:
        return _open_memory(source, table)
    kind = _kind(path)
    if table is not None and kind != "database":
        raise DataError(f"{path.name} is a {_SPOKEN[kind]}, one table by itself: leave out table {table}")
    opened = Source(_connect(), path.name, table or path.name.split(".")[0] or "data", kind)
    try:
        if kind == "database":
            _attach(opened, path, table)
        else:
            opened._pattern = re.sub(r"([*?\[])", r"[\1]", str(path))
        opened.columns = _describe(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a DuckDB function, left as it is named."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def _connect() -> duckdb.DuckDBPyConnection:
    config = _CONFIG | {"threads": min(4, os.cpu_count() or 1)}
    return duckdb.connect(":memory:", config=config).execute("SET enable_progress_bar = false")


def _struct(fields: Mapping[str, str]) -> exp.Expr:
    pairs = [(exp.Literal.string(name), exp.Literal.string(value)) for name, value in fields.items()]
    return exp.Struct(expressions=[exp.PropertyEQ(this=k, expression=v) for k, v in pairs])


def _check_path(source: str | os.PathLike[str]) -> Path:
    """The absolute path of a readable file, or the reason why there is none."""
    path = Path(source)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(source)):
        raise DataError("a remote address cannot be opened: fetch the file first and name its path")
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied") from None
    except (OSError, ValueError):
        raise DataError(f"{path} cannot be opened") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; name one file")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is not a regular file")
    return path.absolute()


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise DataError(f"{path.name} is an empty file, not a table")
    if head[:4] == b"PAR1":
        return "parquet"
    if head[8:12] == b"DUCK":
        return "database"
    if head.startswith(b"SQLite format 3"):
        raise DataError(f"{path.name} is an SQLite database; what is read: {READS}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = _KINDS.get(
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if kind is None:
        raise DataError(f"{path.name} is of no known kind; what is read: {READS}")
    if kind in ("parquet", "database"):
        raise DataError(f"{path.name} is not a readable {_SPOKEN[kind]}")
    return kind


def _attach(opened: Source, path: Path, table: str | None) -> None:
    connection, literal = opened.connection, exp.Literal.string(str(path)).sql("duckdb")
    try:
        connection.execute(f"ATTACH {literal} AS source (READ_ONLY, TYPE duckdb)")
    except (duckdb.IOException, duckdb.BinderException):
        raise DataError(
            f"{path.name} cannot be opened: another program writes to it, or the file is damaged or "
            f"newer than DuckDB {duckdb.__version__}"
        ) from None
    except duckdb.Error:
        raise DataError(f"{path.name} is not a readable {_SPOKEN['database']}") from None
    found: list[tuple[str, str]] = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() "
        "WHERE database_name = 'source' AND NOT internal ORDER BY ALL"
    ).fetchall()
    spelled = {(schema, name): name if schema == "main" else f"{schema}.{name}" for schema, name in found}
    tables = f"it has {', '.join(spelled.values())}" if spelled else "it has no table"
    if table is None:
        raise DataError(f"{path.name} is a database: name a table; {tables}")
    match = [key for key, name in spelled.items() if name.casefold() == table.casefold()]
    if not match:
        raise DataError(f"{path.name} has no table {table}; {tables}")
    opened.name = match[0][1]
    opened._rows = exp.table_(
        exp.to_identifier(match[0][1], True), exp.to_identifier(match[0][0], True), "source"
    )


def _open_memory(source: Any, table: str | None) -> Source:
    """An Arrow table, or what can become one; columns are numbered, so that odd names cannot collide."""
    import pyarrow

    if table is not None:
        raise DataError(f"an in-memory table is one table by itself: leave out table {table}")
    try:
        if isinstance(source, pyarrow.Table):
            arrow = source
        elif type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
            arrow = pyarrow.Table.from_pandas(source, preserve_index=False)
        elif hasattr(source, "__arrow_c_stream__"):
            arrow = pyarrow.table(source)
        else:
            what = type(source).__name__
            raise DataError(f"a {what} is no table: give a path, or an Arrow, pandas or Polars table")
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the table in memory has a column that Arrow cannot hold: give it one type") from None
    opened = Source(_connect(), "the table", "data", "memory")
    opened._rows = exp.to_table("source")
    try:
        opened.connection.register(
            "source", arrow.rename_columns([f"c{i}" for i in range(arrow.num_columns)])
        )
        types = {key: "" if pyarrow.types.is_null(arrow.field(i).type) else kind
                 for i, (key, kind) in enumerate(_types(opened))}  # fmt: skip
    except duckdb.Error:
        opened.close()
        raise DataError("the table in memory has a column of a type that is not read") from None
    opened.columns = tuple(
        Column(n, t, k) for n, (k, t) in zip(arrow.column_names, types.items(), strict=True)
    )
    return opened


def _types(opened: Source, given: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    query = exp.select("*").from_(opened.rows(given)).sql("duckdb")
    return [(row[0], row[1]) for row in opened.connection.execute(f"DESCRIBE {query}").fetchall()]


def _describe(opened: Source) -> tuple[Column, ...]:
    """Columns as DuckDB types them, by the names they really have: it renames the second of ``a, A``."""
    try:
        found = _types(opened)
        if opened.kind == "csv" and len(found) == 1:  # or a line too long made all of it one column
            found = _types(opened, {})
        names = [key for key, _ in found]
        if opened.kind == "parquet":
            names = _parquet_names(opened, names)
    except (duckdb.Error, UnicodeError):
        raise DataError(f"{opened.label} is not a readable {_SPOKEN[opened.kind]}") from None
    if opened.kind == "json" and found == [("json", "JSON")]:
        raise DataError(f"{opened.label} holds no objects with named fields, so it is no table")
    return tuple(Column(name, kind, key) for name, (key, kind) in zip(names, found, strict=True))


def _parquet_names(opened: Source, fallback: list[str]) -> list[str]:
    query = "SELECT name, num_children FROM parquet_schema(?)"
    names, skip = [], 0
    for name, children in opened.connection.execute(query, [opened._pattern]).fetchall()[1:]:
        if skip == 0:
            names.append(name)
        else:
            skip -= 1
        skip += children or 0
    return names if len(names) == len(fallback) else fallback
