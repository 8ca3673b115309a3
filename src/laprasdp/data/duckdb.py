"""A private table in a file or in memory: one scan at opening, then counts from a snapshot.

At opening every row becomes the levels of its declared attributes and is added up into a small table of
cells, inside an in-memory database; then the source is closed.  All answers come from those cells.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from laprasdp.data.dialect import Dialect
from laprasdp.data.levels import add_level, width
from laprasdp.data.patience import awaited
from laprasdp.data.schema import DAYS, FLOATS, INTEGERS, TEXTS, Column, Source, call, open_source
from laprasdp.data.text import parsed, text_type
from laprasdp.data.types import compared_as
from laprasdp.errors import DataError, DomainError, interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Attribute
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal

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
        self._lock = threading.Lock()
        self._marginals: dict[tuple[int, ...], Marginal] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        opened = open_source(source, table, dialect)
        self._name = opened.name if name is None else name
        try:
            periods = None if apart is None else (domain.axis(apart[0]), apart[1])
            key = secrets.token_hex(16) if key is None else key
            self._types = _snapshot(opened, domain, unit, key, periods)
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
    def types(self) -> Mapping[str, str]:
        """The DuckDB type of each attribute's column, from the schema."""
        return self._types

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
) -> dict[str, str]:
    """Fill the table ``cells`` (levels a0, a1, … and rows) and leave the source; the types of its columns."""
    connection = opened.connection
    opened.check_header([*domain, *([] if unit.column is None else [unit.column])])
    found = [_fitting(opened, name, domain[name]) for name in domain]
    declared = {name: compared_as(opened, column) for name, column in zip(domain, found, strict=True)}
    person = [] if unit.column is None else [_person(opened, unit.column)]
    levels = [f"a{i}" for i in range(len(domain))]
    kept = [f"{level} {width(domain[name])}" for level, name in zip(levels, domain, strict=True)]
    kept += ["who VARCHAR", "person BLOB"] if person else ["rows BIGINT"]
    connection.execute(f"CREATE TABLE kept ({', '.join(kept)})")
    scan = exp.select().from_("s")
    for i, (name, column) in enumerate(zip(domain, found, strict=True)):
        scan = add_level(scan, connection, domain[name], column, i)
    if person:
        who = call("try", exp.cast(exp.column(f"v{len(found)}", "s"), "VARCHAR"))
        scan = scan.select(who.as_("who"), exp.alias_(call("encode", who.copy()), "person"))
        rows = exp.select("*").from_(scan.subquery("r")).where("person IS NOT NULL")
    else:
        rows = exp.select(*levels, "COUNT(*) AS rows").from_(scan.subquery("r")).group_by(*levels)
    for part in opened.scans([*found, *person]):
        read = _read(opened, domain, found, bool(person)).from_(part)
        into = rows.with_("s", as_=read, materialized=True).sql("duckdb")
        awaited(connection, partial(connection.execute, "INSERT INTO kept " + into))
    cells = exp.select("*").from_("kept").where(*(f"{level} IS NOT NULL" for level in levels))
    if person:
        cells = _bounded(cells, levels, unit.max_rows, key, apart).select("1 AS rows")
    sums = exp.select(*levels, "CAST(SUM(rows) AS BIGINT) AS rows").from_(cells.subquery("k"))
    made = "CREATE TABLE cells AS " + sums.group_by(*levels).sql("duckdb")
    awaited(connection, partial(connection.execute, made))
    for name in ("kept", *(f"map{i}" for i in range(len(domain)))):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    if opened.table is not None:
        connection.execute("DETACH source")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return declared


def _read(opened: Source, domain: Domain, found: Sequence[Column], has_person: bool) -> exp.Select:
    """The values of the declared columns, texts as what they are declared to be."""
    parts: list[exp.Expr] = []
    for i, (name, column) in enumerate(zip(domain, found, strict=True)):
        value: exp.Expr = exp.column(f"v{i}", "source")
        if column.is_text:
            value = parsed(value, domain[name], opened.dialect)
        parts += [exp.alias_(value, f"v{i}"), exp.column(f"n{i}", "source")]
    return exp.select(*parts, *([exp.column(f"v{len(found)}", "source")] if has_person else []))


def _fitting(opened: Source, name: str, attribute: Attribute) -> Column:
    """The column of an attribute, if its type fits; a column of texts has the type of the attribute."""
    column = opened.find(name)
    if column.is_text:
        return replace(column, type=text_type(attribute))
    if column.base in ("", *_FITS[attribute.kind]):
        return column
    held = column.type if len(column.type) < 40 else column.base
    hint = "; its calendar date depends on a time zone" if held == "TIMESTAMP WITH TIME ZONE" else ""
    raise DataError(f"column {column.name} holds {held}, which cannot be read as {attribute.kind}{hint}")


def _person(opened: Source, name: str) -> Column:
    column = opened.find(name, "privacy unit's column")
    if column.base not in ("", *_PERSONS):
        raise DataError(
            f"column {column.name} holds {column.base}, which cannot name a person: use text or whole numbers"
        )
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
    counted = rows.select(copy)
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
