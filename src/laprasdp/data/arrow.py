"""Arrow tables, in memory or in a Parquet file: a value that the engine cannot hold becomes NULL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from laprasdp.errors import DataError

_BATCH = 2**17
_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = Context(prec=76)
_ODD = b"\xff"


@dataclass(frozen=True)
class ArrowColumns:
    """
    A table by its columns.

    Attributes
    ----------
    names : tuple of str
    types : tuple of Arrow types, or None
        None where every value has a type of its own, as in pandas' ``object``; those are given as texts.
    batches : callable
        From places of columns to the arrays of one batch of rows after another.
    """

    names: tuple[str, ...]
    types: tuple[Any, ...]
    batches: Callable[[Sequence[int]], Iterator[list[Any]]]


def in_memory(source: Any) -> ArrowColumns:
    """
    The columns of an Arrow, pandas or Polars table.

    Raises
    ------
    DataError
        It is no table, or has a column that Arrow cannot hold.
    """
    import pyarrow

    if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
        return _pandas(source)
    try:
        if isinstance(source, pyarrow.Table):
            table = source
        elif hasattr(source, "__arrow_c_stream__"):
            table = pyarrow.table(source)
        else:
            what = type(source).__name__
            raise DataError(f"a {what} is no table: give a path, or an Arrow, pandas or Polars table")
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the table in memory has a column that Arrow cannot hold: give it one type") from None

    def batches(places: Sequence[int]) -> Iterator[list[Any]]:
        for batch in table.select(list(places)).to_batches(_BATCH):
            yield batch.columns

    return ArrowColumns(tuple(table.column_names), tuple(table.schema.types), batches)


def in_parquet(path: Path) -> ArrowColumns:
    """
    The columns of a Parquet file.

    Raises
    ------
    DataError
        The file cannot be read, now or later.
    """
    import pyarrow
    from pyarrow import parquet

    def opened(coded: Sequence[str] = ()) -> Any:
        return parquet.ParquetFile(path, coerce_int96_timestamp_unit="us", read_dictionary=list(coded))

    try:
        with opened() as file:
            schema = file.schema_arrow
        # read as they are: one text that is no UTF-8 ends the conversion into the dictionary of the schema
        coded = [field.name for field in schema if pyarrow.types.is_dictionary(field.type)]
    except (pyarrow.ArrowException, OSError, UnicodeError):
        raise DataError(f"{path.name} is not a readable Parquet file") from None

    def batches(places: Sequence[int]) -> Iterator[list[Any]]:
        names = [schema.names[place] for place in places]
        try:
            with opened(coded) as file:
                for batch in file.iter_batches(_BATCH, columns=list(dict.fromkeys(names))):
                    yield [batch.column(name) for name in names]
        except (pyarrow.ArrowException, OSError):
            raise DataError(
                f"{path.name} cannot be read to its end: is it damaged, or being written?"
            ) from None

    return ArrowColumns(tuple(schema.names), tuple(schema.types), batches)


def plain(array: Any) -> Any:
    """An array whose values stand in it themselves, not in a dictionary or as runs."""
    import pyarrow
    import pyarrow.compute as compute

    if pyarrow.types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    if pyarrow.types.is_run_end_encoded(array.type):
        return plain(compute.run_end_decode(array))
    return array


def convertible(array: Any) -> Any:
    """
    A plain array with NULL in place of what the engine cannot hold: bytes that are no UTF-8, moments outside
    the years 1 to 9999, and decimals with more digits than their type has.

    Notes
    -----
    **Privacy.**  Each value is looked at by itself.
    """
    import pyarrow
    import pyarrow.compute as compute

    types, kind = pyarrow.types, array.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return text_of(array.cast(pyarrow.large_binary()))
    if types.is_timestamp(kind) or types.is_date64(kind):
        unit = _SECONDS["ms" if types.is_date64(kind) else kind.unit]
        low = (dt.date.min - dt.date(1970, 1, 1)).days * 86_400 * unit
        high = ((dt.date.max - dt.date(1970, 1, 1)).days + 1) * 86_400 * unit - 1
        ticks = array.view(pyarrow.int64())
        inside = compute.and_(
            compute.greater_equal(ticks, max(low, -(2**63))), compute.less_equal(ticks, min(high, 2**63 - 1))
        )
        return compute.if_else(inside, array, pyarrow.scalar(None, kind))
    if types.is_decimal128(kind):
        most = pyarrow.scalar(Decimal("9" * kind.precision).scaleb(-kind.scale, _EXACT), kind)
        least = pyarrow.scalar(most.as_py().copy_negate(), kind)
        inside = compute.and_(compute.greater_equal(array, least), compute.less_equal(array, most))
        return compute.if_else(inside, array, pyarrow.scalar(None, kind))
    return array


def text_of(array: Any) -> Any:
    """Bytes as texts, NULL where they are no UTF-8."""
    import pyarrow

    try:
        return array.cast(pyarrow.large_binary()).cast(pyarrow.large_string())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([_decoded(value) for value in array.to_pylist()], pyarrow.large_string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _pandas(frame: Any) -> ArrowColumns:
    import pyarrow

    series = [frame.iloc[:, place] for place in range(frame.shape[1])]
    names = tuple(map(str, frame.columns))

    def typed(place: int, rows: slice) -> Any:
        made = pyarrow.array(series[place].iloc[rows], from_pandas=True)
        return made.combine_chunks() if isinstance(made, pyarrow.ChunkedArray) else made

    def kind(place: int) -> Any:
        if not _has_one_type(series[place].dtype):
            return None
        try:
            return typed(place, slice(0)).type
        except (pyarrow.ArrowException, TypeError, ValueError):
            return str(series[place].dtype)

    types = tuple(map(kind, range(len(series))))

    def batches(places: Sequence[int]) -> Iterator[list[Any]]:
        for start in range(0, len(frame), _BATCH):
            rows = slice(start, start + _BATCH)
            yield [
                typed(place, rows)
                if types[place] is not None
                else pyarrow.array([_text(value) for value in series[place].iloc[rows]], pyarrow.binary())
                for place in places
            ]

    return ArrowColumns(names, types, batches)


def _has_one_type(dtype: Any) -> bool:
    """Whether pandas holds all values of a column as one type that Arrow knows, whatever the values are."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return _has_one_type(categories.dtype)
    return (
        dtype.kind in "biufMm"
        or hasattr(dtype, "pyarrow_dtype")
        or getattr(dtype, "storage", None) == "pyarrow"
    )


def _text(value: Any) -> bytes | None:
    """How a text, number, date or truth value is written; bytes that are no text for any other value."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    value = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    try:
        match value:
            case str():
                return value.encode()
            case bool():
                return b"true" if value else b"false"
            case float() if value != value:
                return None
            case int() | float() | Decimal():
                return str(value).encode()
            case dt.date():
                return value.isoformat().encode()
    except ValueError:  # a surrogate, or more digits than Python writes
        pass
    return _ODD
