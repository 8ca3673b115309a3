"""A table of any back end of Ibis, which groups its raw columns and evaluates nothing else."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from laprasdp.data.column import Column, found_column
from laprasdp.data.dialect import Dialect
from laprasdp.data.ibis_columns import ARRIVES, collated, refusal
from laprasdp.data.memory import connect
from laprasdp.data.schema import Relation, described
from laprasdp.errors import DataError

if TYPE_CHECKING:
    import ibis

PASSWORD = "LAPRAS_SOURCE_PASSWORD"
_BATCH = 2**17
_KEPT = ("location", "protocol", "role", "secure", "warehouse")
_REASONS = {
    "TableNotFound|NoSuchTable|TABLE_NOT_FOUND|UNKNOWN_TABLE|not found: table|UndefinedTable|CatalogException"
    "": "there is no such table",
    "SCHEMA_NOT_FOUND|UNKNOWN_DATABASE|not found: dataset": "there is no such schema",
    "COLUMN_NOT_FOUND|UNKNOWN_IDENTIFIER|UndefinedColumn|BinderException|unrecognized name|invalid identifier"
    "": "a column of it is not there any more",
    "password|authenticat|unauthori[sz]ed|credentials|\\b401\\b": "user or password is wrong",
    "forbidden|access.denied|permission|InsufficientPrivilege|\\b403\\b": "this user may not read it",
    "refused|timed? ?out|resolve|max retries|connection|OperationalError|ServiceUnavailable"
    "": "nobody answers there, or the connection was lost: open it again",
}


@dataclass
class Grouped(Relation):
    """
    A table by its groups of equal rows.

    Attributes
    ----------
    refused : mapping of name to str
        Columns that are not read, and why.
    leave : callable
        Leaves the back end.
    """

    refused: Mapping[str, str] = field(default_factory=dict)
    leave: Callable[[], object] = lambda: None

    def find(self, wanted: str, what: str = "column") -> Column:
        """The column of this name, if it is read."""
        column = found_column(self.label, self.columns, wanted, what)
        if column.name in self.refused:
            held = column.type.split("(")[0]
            raise DataError(
                f"column {column.name} holds {held}, and {self.refused[column.name]}: read it as a text, "
                "through a view that casts it"
            )
        return column

    def close(self) -> None:
        super().close()
        leave, self.leave = self.leave, lambda: None
        with suppress(Exception):  # what is gone is left
            leave()


def open_backend(source: str | Any, table: str | None = None) -> Grouped:
    """
    Open a table of a back end of Ibis and learn its columns.

    Parameters
    ----------
    source : str, ibis.BaseBackend or ibis.Table
        An address that ``ibis.connect`` takes; a connection, or one of its tables or views, which are left
        open.
    table : str, optional
        ``table``, ``schema.table`` or ``catalog.schema.table``, unless `source` is one.

    Raises
    ------
    DataError
        Nobody answers, there is no such table, or it is an expression.

    Notes
    -----
    **Privacy.**  Assumes of the back end what docs/proofs/table.md says of its GROUP BY.  Guarantees that it
    gets one statement, of names of columns and a count, so that no value can make it fail; that columns whose
    values may get lost on the way, or are equal without being the same, are refused by their types; and that
    no message repeats what it says, which may quote a value, nor a password.
    """
    label = _shown(source) if isinstance(source, str) else "the Ibis table"
    with _told(label):
        connection, leave = _connection(source)
    try:
        return _opened(source, table, connection, leave, label)
    except BaseException:
        leave()
        raise


def grouped(table: ibis.Table, names: Sequence[str]) -> ibis.Table:
    """The one expression that a back end gets: columns, and how many rows are of each combination."""
    return table.group_by([table[name] for name in names]).aggregate(**{_counted(names): table.count()})


def without_secrets(address: str) -> str:
    """An address as it may be written to a file: without password, and with the options that are none."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    kept = [pair for pair in parts.query.split("&") if pair.partition("=")[0] in _KEPT]
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, "&".join(kept), ""))


def _connection(source: str | Any) -> tuple[Any, Callable[[], object]]:
    """The connection to a back end, and what leaves it."""
    if not isinstance(source, str):
        found = source.get_backend() if hasattr(source, "get_backend") else source
        return found, lambda: None
    try:
        import ibis
    except ModuleNotFoundError:
        raise DataError(f"{_shown(source)}: install ibis, as pip install 'lapras-dp[engines]' does") from None
    scheme, (least, secret) = urlsplit(source).scheme, ({}, os.environ.get(PASSWORD))
    if scheme == "snowflake":
        least = {"create_object_udfs": False}  # nothing is made there
    if secret:
        parts = urlsplit(source)
        user, _, host = parts.netloc.rpartition("@")
        if user and ":" not in user:
            source = urlunsplit(parts._replace(netloc=f"{user}:{quote(secret, safe='')}@{host}"))
    try:
        connection = ibis.connect(source, **least)
    except ImportError:
        raise DataError(
            f"{_shown(source)}: install its driver, as pip install 'ibis-framework[{scheme}]' does"
        ) from None
    return connection, connection.disconnect


def _opened(
    source: Any, table: str | None, connection: Any, leave: Callable[[], object], label: str
) -> Grouped:
    backend = connection.name
    if backend not in ARRIVES:
        raise DataError(f"{label} is of {backend}; what is read through Ibis: {', '.join(ARRIVES)}")
    with _told(label):
        if hasattr(source, "get_backend"):
            if table is not None:
                raise DataError(f"{label} is one table by itself: leave out table {table}")
            found = source
        elif table is None:
            listed = ", ".join(sorted(connection.list_tables())) or "none"
            raise DataError(f"{label} is a database: name a table; it has {listed}")
        else:
            *schema, name = table.split(".")
            found = connection.table(name, database=".".join(schema) or None)
        place = _place(connection, found, label)
        label = (
            f"{place[-1]} of {label}" if isinstance(source, str) else f"{'.'.join(place[-2:])} of {backend}"
        )
        schema = found.schema()
        refused = {name: why for name, kind in schema.items() if (why := refusal(backend, kind)) is not None}
        texts = [name for name, kind in schema.items() if kind.is_string() and name not in refused]
        refused |= dict.fromkeys(
            collated(connection, place, texts), "texts of other bytes may be equal in it"
        )
    warnings.warn(f"{label} is read through Ibis, which is experimental: see Engines", stacklevel=5)
    local = connect()
    columns = []
    for i, (name, kind) in enumerate(schema.items()):
        is_text = name in texts and name not in refused
        held = "" if is_text else _spelled(kind) if name in refused else described(local, kind.to_pyarrow())
        columns.append(Column(name, held, i, is_text=is_text))
    opened = Grouped(
        local, label, place[-1], backend, ".".join(place), Dialect(), tuple(columns),
        is_counted=True, refused=refused, leave=leave,
    )  # fmt: skip
    opened.batches = lambda wanted: _batches(connection, found, wanted, label)
    return opened


def _batches(connection: Any, table: Any, columns: Sequence[Column], label: str) -> Iterator[list[Any]]:
    """The values of columns, and how many rows each group has."""
    names = list(dict.fromkeys(column.name for column in columns))
    with _told(label):
        reader = connection.to_pyarrow_batches(grouped(table, names), limit=None, chunk_size=_BATCH)
    try:
        while True:
            with _told(label):
                batch = next(reader, None)
            if batch is None:
                return
            yield [*(batch.column(names.index(column.name)) for column in columns), batch.column(len(names))]
    finally:
        with suppress(Exception):
            reader.close()


def _place(connection: Any, table: Any, label: str) -> tuple[str, ...]:
    """Catalog, if there is one, schema and name of a table that is no expression."""
    node = table.op()
    if type(node).__name__ != "DatabaseTable":
        raise DataError(f"{label} is an expression: make a view of it, and give that")
    catalog = node.namespace.catalog or getattr(connection, "current_catalog", None)
    return tuple(
        part for part in (catalog, node.namespace.database or connection.current_database, node.name) if part
    )


def _spelled(kind: Any) -> str:
    return str(kind).removeprefix("!")


def _counted(names: Sequence[str]) -> str:
    """A name for the count, which no column has in any case of its letters."""
    taken, name = {name.casefold() for name in names}, "n_rows"
    while name in taken:
        name += "_"
    return name


def _shown(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def _told(label: str) -> Iterator[None]:
    """Errors of a back end as what a user can do about them; what it says may quote a value."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what Ibis calls
            yield
    except DataError:
        raise
    except Exception as error:  # of any driver
        text = f"{type(error).__name__} {error}"
        known = next((says for part, says in _REASONS.items() if re.search(part, text, re.I)), None)
        raise DataError(f"{label}: {known or 'it cannot be read to its end'}") from None
