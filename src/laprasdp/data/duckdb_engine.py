"""DuckDB as an engine: files, database files and tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import duckdb
from sqlglot import exp

from laprasdp.data.column import Column
from laprasdp.data.duckdb_words import DUCKDB, create_list, joined
from laprasdp.data.levels import Level
from laprasdp.data.memory import level_type
from laprasdp.data.packed import Packed
from laprasdp.data.patience import awaited, watcher
from laprasdp.data.persons import first_rows
from laprasdp.data.scan import Declared, Scan
from laprasdp.data.schema import Relation
from laprasdp.data.types import compared_as
from laprasdp.data.words import spelled
from laprasdp.errors import DataError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_BATCH = 2**17
_SHARES = 256  # persons are put in order share by share, which needs the memory of one
_AT_ONCE = 2**19  # rows


class DuckDBEngine:
    """
    An open source read by DuckDB; implements `laprasdp.data.engine.Engine`.

    Parameters
    ----------
    source : Relation
        Closed with the engine.

    Notes
    -----
    **Privacy.**  Guarantees what `Engine` asks.  The rows of a database are read by one statement; those of
    every other source in parts, one after another, from one opened file, one statement of another engine or
    a table in memory; rows that it has counted together are of the same values.  Levels
    and persons of the rows are held in memory until they are counted.
    """

    def __init__(self, source: Relation) -> None:
        self._source = source

    @property
    def place(self) -> tuple[str, str]:
        """The kind of the file, and its name; of a database with its table."""
        return self._source.kind, self._source.place

    def columns(self, names: Sequence[str], person: str | None) -> tuple[tuple[Column, ...], Column | None]:
        """The columns of these names, and the one that names a person."""
        source = self._source
        source.check_header([*names, *([] if person is None else [person])])
        found = tuple(source.find(name) for name in names)
        return found, None if person is None else source.find(person, "privacy unit's column")

    def types(self, scan: Scan) -> Mapping[str, str]:
        """The DuckDB type of each attribute's column, from the schema."""
        with self._told():
            return {read.name: compared_as(self._source, read.column) for read in scan.attributes}

    def run(self, scan: Scan) -> Iterator[RecordBatch]:
        """The combinations of levels that occur, and how many rows there are of each."""
        import pyarrow

        connection = self._source.connection
        with self._told():
            self._keep(scan)
            for first, last in self._shares(scan):
                statement = _cells(scan, first, last).sql("duckdb")
                found = awaited(partial(connection.execute, statement), connection.interrupt)
                # duckdb 1.5 renamed it
                reader = (getattr(found, "to_arrow_reader", None) or found.fetch_record_batch)(_BATCH)
                try:
                    while (batch := awaited(partial(next, reader, None), connection.interrupt)) is not None:
                        yield batch
                except pyarrow.ArrowException as error:  # all is counted: nothing but memory can be missing
                    raise duckdb.OutOfMemoryException from error

    def _shares(self, scan: Scan) -> Iterator[tuple[int, int]]:
        """Ranges of the numbers that persons have in ``kept``, of about a million rows each."""
        if scan.person is None:
            yield 0, _SHARES - 1
            return
        ((rows,),) = self._source.connection.execute("SELECT COUNT(*) FROM kept").fetchall()
        step = max(1, _SHARES // max(1, rows // _AT_ONCE))
        for first in range(0, _SHARES, step):
            yield first, min(first + step, _SHARES) - 1

    def _share(self) -> float | None:
        done = self._source.connection.query_progress()
        return done / 100 if done >= 0 else None

    def close(self) -> None:
        """Leave the source; closing twice does nothing."""
        self._source.close()

    def _keep(self, scan: Scan) -> None:
        """Fill the table ``kept``: levels of rows, NULL outside, with their persons or added up."""
        connection, levels = self._source.connection, scan.levels
        columns = [read.column for read in scan.attributes]
        if scan.person is None:
            typed = zip(levels, scan.attributes, strict=True)
            kept = [*(f"{level} {level_type(read.attribute)}" for level, read in typed), "rows BIGINT"]
        else:
            kept = [*_packed(scan).typed, "who VARCHAR"]
        connection.execute(f"CREATE TABLE kept ({', '.join(kept)})")
        for i, read in enumerate(scan.attributes):
            if (lookup := _level(read).lookup) is not None:
                create_list(connection, lookup, f"list{i}")
        if watcher.get() is not None:
            connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        is_counted = self._source.is_counted
        rows = _rows(scan, is_counted=is_counted).subquery("r")
        if scan.person is None:
            number = "SUM(rows) AS rows" if is_counted else "COUNT(*) AS rows"
            counted = exp.select(*levels, number).from_(rows).group_by(*levels)
        else:
            columns.append(scan.person)
            share = exp.func("hash", exp.column("who")) % exp.Literal.number(_SHARES)
            inside = ("who IS NOT NULL", *(f"{level} IS NOT NULL" for level in levels))
            if is_counted:  # each row of a person by itself, since some of them may count
                rows = exp.select("*", "UNNEST(RANGE(rows))").from_(rows).where(*inside).subquery("r")
            numbered = exp.select(*levels, "who", share.as_("share")).from_(rows).where(*inside)
            counted = exp.select(*_packed(scan).packed(), "who").from_(numbered.subquery("n"))

        def insert(part: exp.Expr, share: Callable[[], float | None] | None) -> None:
            once = any(column.is_text for column in columns)  # what a text spells is found out once
            values = _values(scan, is_counted=is_counted).from_(part)
            into = counted.with_("s", as_=values, materialized=once).sql("duckdb")
            insertion = partial(connection.execute, "INSERT INTO kept " + into)
            awaited(insertion, connection.interrupt, share=share)

        if (whole := self._source.whole(columns)) is not None:
            try:
                insert(whole, self._share)
                return
            except duckdb.Error:  # nothing is kept of it: Arrow reads all rows, part by part
                pass
        for part in self._source.scans(columns):
            insert(part, self._share if self._source.batches is None else None)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of DuckDB as what a user can do about them; what DuckDB says may quote a value."""
        label = self._source.label
        try:
            yield
        except duckdb.OutOfMemoryException:
            raise DataError(f"{label} needs more memory than there is; declare fewer levels") from None
        except duckdb.Error:
            raise DataError(f"{label} cannot be read to its end: is it damaged, or being written?") from None


def _values(scan: Scan, *, is_counted: bool) -> exp.Select:
    """From a part of the source: the values of the columns, texts as what they are declared to be."""
    parts: list[exp.Expr] = []
    for i, read in enumerate(scan.attributes):
        value = spelled(read.value, DUCKDB, {"value": exp.column(f"v{i}", "source")})
        parts += [exp.alias_(value, f"v{i}"), exp.column(f"n{i}", "source")]
    if scan.person is not None:
        parts.append(exp.column(f"v{len(scan.attributes)}", "source"))
    if is_counted:
        parts.append(exp.column("rows", "source"))
    return exp.select(*parts)


def _level(read: Declared) -> Level:
    return read.level.even or read.level


def _rows(scan: Scan, *, is_counted: bool) -> exp.Select:
    """From ``s``, the values: the levels a0, a1, …; with persons, who (a text); if it is counted, rows."""
    rows = exp.select().from_("s")
    for i, read in enumerate(scan.attributes):
        names = {"value": exp.column(f"v{i}", "s"), "absent": exp.column(f"n{i}", "s")}
        told = _level(read)
        if told.lookup is not None:
            names["found"] = exp.column("level", f"list{i}")
            key = spelled(told.lookup.of, DUCKDB, names)
            rows = joined(rows, told.lookup, key, f"list{i}")
        level = spelled(told.expression, DUCKDB, names)
        rows = rows.select(exp.cast(level, level_type(read.attribute), dialect="duckdb").as_(f"a{i}"))
    if scan.person is not None:
        rows = rows.select(DUCKDB["text"](exp.column(f"v{len(scan.attributes)}", "s")).as_("who"))
    return rows.select(exp.column("rows", "s")) if is_counted else rows


def _packed(scan: Scan) -> Packed:
    """How a row of a person is held: its share and its levels."""
    return Packed({"share": _SHARES} | scan.sizes)


def _cells(scan: Scan, first: int, last: int) -> exp.Expr:
    """From ``kept``: the occurring combinations of what is counted; of the persons of some shares."""
    levels = scan.levels
    inside = exp.select("*").from_("kept").where(*(f"{level} IS NOT NULL" for level in levels))
    if scan.person is not None:
        packed = _packed(scan)
        typed = [
            exp.cast(packed.number(level), level_type(read.attribute), dialect="duckdb").as_(level)
            for level, read in zip(levels, scan.attributes, strict=True)
        ]
        share = packed.number("share").between(first, last)
        kept = first_rows(exp.select("*").from_("kept").where(share), scan, packed)
        inside = exp.select(*typed, *scan.counted[len(levels) :], "1 AS rows").from_(kept.subquery("f"))
    by = scan.counted
    cells = exp.select(*by, "CAST(SUM(rows) AS BIGINT) AS rows").from_(inside.subquery("k")).group_by(*by)
    return spelled(cells, DUCKDB)
