"""The cells of a table: what was counted at opening, and every marginal from it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import duckdb
import numpy as np
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

    Raises
    ------
    DataError
        There are more cells than fit in memory, or the engine says so of its table.

    Notes
    -----
    **Privacy.**  The counts are exact and private.  All marginals come from the same cells.  They stand in a
    database of their own, which reaches neither the source nor anything else, and writes to no disk.
    Safe to call from several threads.
    """

    def __init__(self, name: str, domain: Domain, batches: Iterable[RecordBatch]) -> None:
        self._name, self._size = name, len(domain)
        self._lock = threading.Lock()
        self._marginals: dict[tuple[int, ...], Marginal] = {}
        connection = connect()
        self._connection: duckdb.DuckDBPyConnection | None = connection
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            _fill(connection, domain, batches)
        except duckdb.OutOfMemoryException:
            connection.close()
            raise DataError(f"table {name} needs more memory than there is; declare fewer levels") from None
        except BaseException:
            connection.close()
            raise

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over some attributes; see `laprasdp.data.table.Table.marginal`."""
        axes = tuple(int(axis) for axis in axes)
        if list(axes) != sorted(set(axes)) or not all(0 <= axis < self._size for axis in axes):
            raise DomainError(f"axes {axes} are not ascending positions among {self._size} attributes")
        with self._lock:
            if self._connection is None:
                raise DataError(f"table {self._name} is closed")
            if axes not in self._marginals:
                self._marginals[axes] = _count(self._connection, axes)
            return self._marginals[axes]

    def close(self) -> None:
        """Forget the cells; closing twice does nothing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._marginals.clear()


def _fill(connection: duckdb.DuckDBPyConnection, domain: Domain, batches: Iterable[RecordBatch]) -> None:
    import pyarrow

    levels = [f"a{i} {level_type(domain[name])}" for i, name in enumerate(domain)]
    connection.execute(f"CREATE TABLE cells ({', '.join([*levels, 'rows BIGINT'])})")
    for batch in batches:
        connection.register("given", pyarrow.Table.from_batches([batch]))
        connection.execute("INSERT INTO cells BY NAME FROM given")
        connection.unregister("given")


def _count(connection: duckdb.DuckDBPyConnection, axes: tuple[int, ...]) -> Marginal:
    total = exp.Coalesce(this=exp.Sum(this=exp.column("rows")), expressions=[exp.Literal.number(0)])
    names = [f"a{axis}" for axis in axes]
    query = exp.select(*names, exp.cast(total, "BIGINT").as_("rows")).from_("cells")
    if names:
        query = query.group_by(*names).order_by(*names)
    found = connection.execute(query.sql("duckdb")).fetchnumpy()
    counts = np.ascontiguousarray(found["rows"], dtype=np.int64)
    levels = {axis: np.ascontiguousarray(found[name]) for axis, name in zip(axes, names, strict=True)}
    for array in (counts, *levels.values()):
        array.setflags(write=False)
    return Marginal(levels, counts)
