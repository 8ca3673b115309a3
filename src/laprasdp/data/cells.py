"""The cells of a table and whose rows lie in them, as counted at opening: every marginal is of these."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt
from sqlglot import exp

from laprasdp.data.memory import connect, level_type
from laprasdp.errors import DataError, DomainError
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class CellTable:
    """
    The combinations of levels that occur in a table, with their counts, in memory.

    Parameters
    ----------
    name : str
        How messages call the table.
    domain : Domain
    batches : iterable of pyarrow.RecordBatch
        What `laprasdp.data.engine.Engine.run` gives; read to its end, never again.
    persons : bool
        They say whose rows they count: there is an axis of persons behind those of the attributes.

    Raises
    ------
    DataError
        There are more cells than fit in memory, or the engine says so of its table.

    Notes
    -----
    **Privacy.**  The counts are exact and private.  All marginals come from the same cells, a new one from
    the smallest kept one that has its attributes.  They stand in a database of their own, which reaches
    neither the source nor anything else, and writes to no disk.
    Safe to call from several threads.
    """

    def __init__(
        self, name: str, domain: Domain, batches: Iterable[RecordBatch], *, persons: bool = False
    ) -> None:
        self._name, self._size, self._persons = name, len(domain), persons
        self._lock = threading.Lock()
        self._marginals: dict[tuple[int, ...], Marginal] = {}
        connection = connect()
        self._connection: duckdb.DuckDBPyConnection | None = connection
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            _fill(connection, domain, batches, persons=persons)
        except duckdb.OutOfMemoryException:
            connection.close()
            raise DataError(f"table {name} needs more memory than there is; declare fewer levels") from None
        except BaseException:
            connection.close()
            raise

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over some attributes; see `laprasdp.data.table.Table.marginal`."""
        axes = tuple(int(axis) for axis in axes)
        known = self._size + self._persons
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < known for axis in axes):
            raise DomainError(f"axes {axes} are not ascending positions among {self._size} attributes")
        with self._lock:
            if self._connection is None:
                raise DataError(f"table {self._name} is closed")
            if axes not in self._marginals:
                self._marginals[axes] = self._read(self._connection, axes)
            return self._marginals[axes]

    def _read(self, connection: duckdb.DuckDBPyConnection, axes: tuple[int, ...]) -> Marginal:
        if self._size in axes:
            return _persons(connection, axes)
        sums = [(kept, made) for kept, made in self._marginals.items() if self._size not in kept]
        over = [made for kept, made in sums if set(axes) < set(kept)]
        return _count(connection, axes, min(over, key=lambda kept: len(kept.counts), default=None))

    def close(self) -> None:
        """Forget the cells; closing twice does nothing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._marginals.clear()


def _fill(
    connection: duckdb.DuckDBPyConnection, domain: Domain, batches: Iterable[RecordBatch], *, persons: bool
) -> None:
    import pyarrow

    names = [f"a{i}" for i in range(len(domain))]
    levels = [f"{axis} {level_type(domain[name])}" for axis, name in zip(names, domain, strict=True)]
    connection.execute(f"CREATE TABLE cells ({', '.join([*levels, 'rows BIGINT'])})")
    if persons:
        connection.execute(f"CREATE TABLE persons ({', '.join([*levels, 'who BIGINT'])})")
    counted = exp.select(*names, "SUM(rows)::BIGINT AS rows").group_by(*names)
    each = exp.select(*names, "COUNT(*)::BIGINT AS rows").group_by(*names)  # one row of a person at a time
    told = True
    for batch in batches:
        connection.register("given", pyarrow.Table.from_batches([batch]))
        if persons:
            connection.execute(f"INSERT INTO persons SELECT {', '.join([*names, 'who'])} FROM given")
        if told := "rows" in batch.schema.names:
            new = counted.from_("given") if persons else exp.select("*").from_("given")
            connection.execute("INSERT INTO cells BY NAME " + new.sql("duckdb"))
        connection.unregister("given")
    if persons:
        whole = counted.from_("cells") if told else each.from_("persons")
        connection.execute("CREATE TABLE together AS " + whole.sql("duckdb"))
        connection.execute("DROP TABLE cells")
        connection.execute("ALTER TABLE together RENAME TO cells")


def _count(connection: duckdb.DuckDBPyConnection, axes: tuple[int, ...], near: Marginal | None) -> Marginal:
    """Sums of rows over the other attributes, of `near` if there is one and else of the cells."""
    import pyarrow

    if near is not None:
        kept = {f"a{axis}": levels for axis, levels in near.levels.items()} | {"rows": near.counts}
        connection.register("given", pyarrow.table(kept))
    total = exp.Coalesce(this=exp.Sum(this=exp.column("rows")), expressions=[exp.Literal.number(0)])
    names = [f"a{axis}" for axis in axes]
    query = exp.select(*names, exp.cast(total, "BIGINT").as_("rows")).from_(
        "cells" if near is None else "given"
    )
    if names:
        query = query.group_by(*names).order_by(*names)
    found = connection.execute(query.sql("duckdb")).fetchnumpy()
    if near is not None:
        connection.unregister("given")
    levels = {axis: found[name] for axis, name in zip(axes, names, strict=True)}
    return _marginal(levels, found["rows"])


def _persons(connection: duckdb.DuckDBPyConnection, axes: tuple[int, ...]) -> Marginal:
    """Each person once with each combination of levels; the last of `axes` is that of persons."""
    names = [f"a{axis}" for axis in axes[:-1]] + ["who"]
    query = exp.select(*names).distinct().from_("persons").order_by(*names)
    found = connection.execute(query.sql("duckdb")).fetchnumpy()
    levels = {axis: found[name] for axis, name in zip(axes, names, strict=True)}
    levels[axes[-1]] = np.unique(found["who"], return_inverse=True)[1]  # numbered from 0
    return _marginal(levels, np.ones(len(found["who"]), dtype=np.int64))


def _marginal(levels: Mapping[int, npt.NDArray[Any]], rows: npt.NDArray[Any]) -> Marginal:
    counts = np.ascontiguousarray(rows, dtype=np.int64)
    kept = {axis: np.ascontiguousarray(column) for axis, column in levels.items()}
    for array in (counts, *kept.values()):
        array.setflags(write=False)
    return Marginal(kept, counts)
