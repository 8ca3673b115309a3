"""Parquet files by DuckDB's own reader, where it reads every value as Arrow does or ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from laprasdp.data.column import Column

_OPTIONS = ("hive_partitioning", "union_by_name", "filename", "binary_as_string")
_FROM_STATISTICS = "statistics_propagation,filter_pushdown,join_filter_pushdown"  # of DuckDB's optimizer
_YEARS = ("0001-01-01", "9999-12-31 23:59:59.999999")


def read_whole(
    connection: duckdb.DuckDBPyConnection, path: Path, types: Sequence[Any], columns: Sequence[Column]
) -> exp.Expr | None:
    """
    What to put after FROM for all rows of a file, as `laprasdp.data.schema.Relation.scans` names them.

    Parameters
    ----------
    connection
        Does without the statistics in the file from then on.
    types : sequence of Arrow types
        Of all columns of the file.
    columns : sequence of Column

    Returns
    -------
    expression, or None
        None where the reader could take a value of these types for another one than Arrow does.

    Notes
    -----
    **Privacy.**  Which of both follows from the schema.  A statement of it may end at one value, such as a
    text that is no UTF-8, and at a damaged file; otherwise it reads of each row what
    `laprasdp.data.arrow.convertible` makes of it, and leaves no row out for what statistics say.
    """
    import pyarrow
    from pyarrow import parquet

    if re.search(r"[*?\[\]]", str(path)) or not str(path).isprintable():  # a pattern, or no text
        return None
    options = [exp.EQ(this=exp.column(name), expression=exp.false()) for name in _OPTIONS]
    file = exp.Anonymous(this="read_parquet", expressions=[exp.Literal.string(str(path)), *options])
    try:
        connection.execute(f"SET disabled_optimizers = '{_FROM_STATISTICS}'")
        found = connection.execute("DESCRIBE " + exp.select("*").from_(file).sql("duckdb")).fetchall()
        with parquet.ParquetFile(path) as opened:
            leaves = opened.schema
    except (duckdb.Error, pyarrow.ArrowException, OSError):
        return None
    if any(leaves.column(i).physical_type == "INT96" for i in range(len(leaves))):
        return None
    parts: list[exp.Expr] = []
    for i, column in enumerate(columns):
        name, kind = found[column.place][:2]
        if kind != column.type or not _is_alike(types[column.place]):
            return None
        value = exp.column(name, quoted=True)
        parts += [
            exp.alias_(_convertible(value, column), f"v{i}"),
            exp.alias_(value.is_(exp.null()), f"n{i}"),
        ]
    return exp.select(*parts).from_(file).subquery("source")


def _is_alike(kind: Any) -> bool:
    """Whether both readers hold the values of an Arrow type in the same way."""
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(kind):
        return _is_alike(kind.value_type)
    if types.is_timestamp(kind):
        return kind.tz is None and kind.unit in ("us", "ns")
    same: tuple[Any, ...] = (
        types.is_boolean,
        types.is_integer,
        types.is_float32,
        types.is_float64,
        types.is_date32,
    )
    same += (types.is_string, types.is_large_string, types.is_string_view, types.is_decimal128)
    return any(fits(kind) for fits in same)


def _convertible(value: exp.Expr, column: Column) -> exp.Expr:
    """A value, or NULL where `laprasdp.data.arrow.convertible` makes it NULL and DuckDB does not end."""
    ends: Sequence[str] = ()
    if column.type == "TIMESTAMP":
        ends = _YEARS
    elif column.base == "DECIMAL":
        digits, scale = (int(part) for part in column.type[8:-1].split(","))
        most = f"{'9' * (digits - scale) or '0'}.{'9' * scale}"
        ends = (f"-{most}", most)
    if not ends:
        return value
    low, high = (exp.cast(exp.Literal.string(end), column.type, dialect="duckdb") for end in ends)
    return exp.case().when(value.between(low, high), value)
