"""A private table in any file DuckDB reads, or in memory: one scan at opening, then counts from a snapshot.

At opening every row becomes the levels of its declared attributes and is added up into a small table of
cells, inside an in-memory database; then the source is closed.  All answers come from those cells.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from laprasdp.attribute import Attribute, Categories
from laprasdp.data.levels import add_level
from laprasdp.data.patience import awaited
from laprasdp.data.schema import DAYS, FLOATS, INTEGERS, TEXTS, Column, Source, call, open_source
from laprasdp.domain import Domain
from laprasdp.errors import DataError, DomainError, interruptible
from laprasdp.marginal import Marginal
from laprasdp.privacy.unit import PrivacyUnit

_NUMBERS = (*INTEGERS, *FLOATS, "DECIMAL")
_FITS: dict[str, tuple[str, ...]] = {
    "integers": _NUMBERS,
    "bins": _NUMBERS,
    "categories": TEXTS,
    "dates": DAYS,
    "booleans": ("BOOLEAN",),
}
_PERSONS = (*INTEGERS, "DECIMAL", *TEXTS, *DAYS, "BOOLEAN")


class DuckDBTable:
    """
    A table read once by DuckDB; implements `laprasdp.data.table.Table`.

    Parameters
    ----------
    source : path, or an Arrow, pandas or Polars table
        A Parquet, CSV, JSON or DuckDB database file of the local disk, opened read-only.
    domain : Domain
        Its names are columns of the table; case counts only where it must tell columns apart.
    table : str, optional
        Which table of a database, as ``table`` or ``schema.table``.
    name : str, optional
        How statements call the table; the name of the table, or of the file without endings, or "data".
    unit : PrivacyUnit
        Its column need not be an attribute of the domain.
    key : str, optional
        Chooses which rows of a person are kept where there are more than `max_rows`; random otherwise.
    apart : pair of attribute and ascending levels, optional
        Where each period of a date attribute begins.  `max_rows` rows of a person are kept in each period,
        the same as from a table of that period alone.

    Raises
    ------
    DataError
        The source cannot be read, or does not have the declared columns with fitting types.

    Notes
    -----
    **Privacy.**  Assumes that `domain` and `unit` are chosen without looking at the rows.  Guarantees what
    `Table` asks: a row counts if all its declared attributes lie in the domain and, with a unit's column,
    its person is not NULL and it is among the first `max_rows` of that person's rows in the order of a hash
    keyed with `key`, or else with 128 random bits of this object; so what is kept of a person depends on that
    person's rows (with `apart`, those of one period) and the key alone.  Errors depend on the schema only.
    Nothing is written to any disk.

    Edges of bins mean what the same number means in a comparison in DuckDB: exact in integer and decimal
    columns, the nearest double (or single) in floating-point ones.  NaN and infinities lie outside.  Whole
    numbers beyond ±2¹²⁷ lie outside.  Texts are equal if all bytes are, whatever the collation.  In pandas
    NaN is NULL.  Lines of a CSV file that cannot be read by the types of the declared columns lie outside.
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
    ) -> None:
        self._domain, self._unit = domain, unit
        self._lock = threading.Lock()
        self._marginals: dict[tuple[int, ...], Marginal] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        opened = open_source(source, table)
        self._name = opened.name if name is None else name
        try:
            periods = None if apart is None else (domain.axis(apart[0]), apart[1])
            _snapshot(opened, domain, unit, secrets.token_hex(16) if key is None else key, periods)
        except duckdb.OutOfMemoryException:
            opened.close()
            raise DataError(f"{opened.label} needs more memory than there is; declare fewer levels") from None
        except duckdb.Error:
            opened.close()
            raise DataError(
                f"{opened.label} cannot be read to its end: is it damaged, or being written?"
            ) from None
        except BaseException:
            opened.close()
            raise
        self._connection = opened.connection

    @property
    def domain(self) -> Domain:
        """The declared domain."""
        return self._domain

    @property
    def name(self) -> str:
        """The name by which statements call the table."""
        return self._name

    @property
    def unit(self) -> PrivacyUnit:
        """What a neighbour may add or remove."""
        return self._unit

    @interruptible()
    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """
        Exact counts over some attributes, from the snapshot.

        Parameters
        ----------
        axes : tuple of int
            Positions of attributes, ascending; empty for all rows together (one count, 0 for no rows).

        Returns
        -------
        Marginal
            Combinations that occur, in ascending order of levels; arrays are read-only and shared.

        Raises
        ------
        DomainError
            `axes` are not ascending positions of the domain.
        DataError
            The table is closed.

        Notes
        -----
        **Privacy.**  The counts are exact and private.  Safe to call from several threads.
        """
        axes = tuple(int(axis) for axis in axes)
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < len(self._domain) for axis in axes):
            raise DomainError(f"axes {axes} are not ascending positions among {len(self._domain)} attributes")
        with self._lock:
            if self._connection is None:
                raise DataError(f"table {self._name} is closed")
            if axes not in self._marginals:
                self._marginals[axes] = self._count(self._connection, axes)
            return self._marginals[axes]

    def _count(self, connection: duckdb.DuckDBPyConnection, axes: tuple[int, ...]) -> Marginal:
        total = exp.cast(
            call("coalesce", call("sum", exp.column("rows")), exp.Literal.number(0)), "BIGINT"
        ).as_("rows")
        names = [f"a{axis}" for axis in axes]
        query = exp.select(*names, total).from_("cells")
        if names:
            query = query.group_by(*names).order_by(*names)
        found = connection.execute(query.sql("duckdb")).fetchnumpy()
        counts = np.ascontiguousarray(found["rows"], dtype=np.int64)
        levels = {axis: np.ascontiguousarray(found[name]) for axis, name in zip(axes, names, strict=True)}
        for array in (counts, *levels.values()):
            array.setflags(write=False)
        return Marginal(levels, counts)

    def close(self) -> None:
        """Forget the snapshot; closing twice does nothing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._marginals.clear()

    def __enter__(self) -> DuckDBTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DuckDBTable({self._name}: {', '.join(self._domain)})"


def _snapshot(
    opened: Source, domain: Domain, unit: PrivacyUnit, key: str, apart: tuple[int, Sequence[int]] | None
) -> None:
    """Fill the table ``cells`` (levels a0, a1, … and rows) and leave the source."""
    connection = opened.connection
    found = [_fitting(opened, name, domain[name]) for name in domain]
    types = {column.key: column.type or "VARCHAR" for column in found}
    person = _person(opened, unit, types) if unit.column is not None else None
    scan = exp.select().from_(opened.rows(types))
    for i, (name, column) in enumerate(zip(domain, found, strict=True)):
        scan = add_level(scan, connection, domain[name], column, i)
    levels = [f"a{i}" for i in range(len(domain))]
    if person is not None:
        who = exp.cast(exp.column(person.key, "s", quoted=True), "VARCHAR")
        scan = scan.select(who.as_("who"), exp.alias_(call("encode", who.copy()), "person"))
    inside = [exp.column(name).is_(exp.null()).not_() for name in levels]
    rows = exp.select("*").from_(scan.subquery("r")).where(*inside)
    if person is not None:
        rows = _bounded(rows, levels, unit.max_rows, key, apart)
    sums = exp.select(*levels, "COUNT(*) AS rows").from_(rows.subquery("k")).group_by(*levels)
    awaited(connection, lambda: connection.execute("CREATE TABLE cells AS " + sums.sql("duckdb")))
    for i in range(len(domain)):
        connection.execute(f"DROP TABLE IF EXISTS map{i}")
    if opened.kind == "database":
        connection.execute("DETACH source")
    elif opened.kind == "memory":
        connection.unregister("source")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _fitting(opened: Source, name: str, attribute: Attribute) -> Column:
    """The column of an attribute, if its type fits; the type is '' if nothing is in it."""
    column = opened.find(name)
    if opened.kind == "csv" and isinstance(attribute, Categories):
        return Column(column.name, "VARCHAR", column.key)
    if opened.kind == "json" and isinstance(attribute, Categories) and column.base in (*DAYS, "TIME"):
        return Column(column.name, "VARCHAR", column.key)  # texts that look like dates
    if column.base in ("", *_FITS[attribute.kind]):
        return column
    if opened.is_blank(column):
        return Column(column.name, "", column.key)
    held = column.type if len(column.type) < 40 else column.base
    hint = "; its calendar date depends on a time zone" if held == "TIMESTAMP WITH TIME ZONE" else ""
    raise DataError(f"column {column.name} holds {held}, which cannot be read as {attribute.kind}{hint}")


def _person(opened: Source, unit: PrivacyUnit, types: dict[str, str]) -> Column:
    column = opened.find(str(unit.column), "privacy unit's column")
    if opened.kind == "csv":  # as it is written, 007 is not 7
        types.setdefault(column.key, "VARCHAR")
    elif column.base not in ("", *_PERSONS):
        raise DataError(
            f"column {column.name} holds {column.base}, which cannot name a person: use text or whole numbers"
        )
    types.setdefault(column.key, column.type or "VARCHAR")
    return column


def _bounded(
    rows: exp.Select,
    levels: Sequence[str],
    most: int,
    key: str,
    apart: tuple[int, Sequence[int]] | None,
) -> exp.Select:
    """
    Keep at most `most` rows of a person; with `apart`, of a person in each period.

    Equal rows of a person are numbered, so each has its own hash and none of them is favoured; which of
    two equal rows has which number makes no difference to the counts.
    """
    equal = [exp.column(name) for name in ("person", *levels)]
    copy = exp.Window(this=exp.RowNumber(), partition_by=equal).as_("copy")
    counted = rows.where("person IS NOT NULL").select(copy)
    parts: list[exp.Expr] = [exp.column(name) for name in ("who", *levels, "copy")]
    within: list[exp.Expr] = [exp.column("person")]
    if apart is not None:
        start = _start(exp.column(levels[apart[0]]), apart[1])
        parts[1 + apart[0]] = exp.paren(exp.column(levels[apart[0]]) - start)
        within.append(start.copy())
    text = call("concat_ws", exp.Literal.string("|"), exp.Literal.string(key), *parts)
    order = [call("md5_number", text), *[exp.column(c) for c in (*levels, "copy")]]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=within,
        order=exp.Order(expressions=[exp.Ordered(this=e) for e in order]),
    )
    placed = exp.select(*levels, place.as_("place")).from_(counted.subquery("c"))
    return exp.select(*levels).from_(placed.subquery("p")).where(exp.column("place") <= most)


def _start(level: exp.Expr, starts: Sequence[int]) -> exp.Expr:
    """The last of `starts` that is not above a level, by a balanced tree of comparisons."""
    if len(starts) == 1:
        return exp.Literal.number(starts[0])
    middle = len(starts) // 2
    below = level.copy() < exp.Literal.number(starts[middle])
    return exp.case().when(below, _start(level, starts[:middle])).else_(_start(level, starts[middle:]))
