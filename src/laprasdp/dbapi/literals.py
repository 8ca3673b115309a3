"""Types of columns, and parameters as literals, as PEP 249 has them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from laprasdp.dbapi.faults import InterfaceError, ProgrammingError


class TypeCode:
    """A type of PEP 249: equal to every type code that it stands for."""

    def __init__(self, *codes: type) -> None:
        self._codes = codes

    def __eq__(self, other: object) -> bool:
        return other is self or other in self._codes

    def __hash__(self) -> int:
        return hash(self._codes)


STRING = TypeCode(str)
BINARY = TypeCode(bytes)
NUMBER = TypeCode(int, float, bool)
DATETIME = TypeCode(datetime.date, datetime.datetime, datetime.time)
ROWID = TypeCode()
Date, Time, Timestamp = datetime.date, datetime.time, datetime.datetime
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp
Binary = bytes


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of so many seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def type_of(values: list[Any]) -> type:
    """The type of a column's values that are not NULL; float where there is none."""
    return next((type(one) for one in values if one is not None), float)


def bound(operation: str, parameters: Sequence[Any]) -> str:
    """The statement with a literal in the place of each question mark."""
    try:
        tokens = sqlglot.tokenize(operation, read="duckdb")
    except sqlglot.errors.TokenError as error:
        raise ProgrammingError(f"the statement cannot be read: {error}") from error
    places = [token for token in tokens if token.token_type == sqlglot.TokenType.PLACEHOLDER]
    if len(places) != len(parameters):
        raise ProgrammingError(f"{len(places)} question marks, and {len(parameters)} parameters")
    parts, end = [], 0
    for place, value in zip(places, parameters, strict=True):
        parts += [operation[end : place.start], _literal(value)]
        end = place.end + 1
    return "".join([*parts, operation[end:]])


def _literal(value: Any) -> str:
    """SQL for a value of Python."""
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if value is None or isinstance(value, bool | int | float | str):
        return str(exp.convert(value).sql(dialect="duckdb"))
    raise InterfaceError(f"a parameter is a number, text, date, bool or None, not {type(value).__name__}")
