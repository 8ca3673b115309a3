"""Comparisons as DuckDB makes them: operands become one type, and a level lies on one side or is cut."""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np

from laprasdp.arrays import Flags
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_DIGITS
from laprasdp.queries.attribute import Booleans, Categories, Constant, Dates, Op, spell
from laprasdp.queries.attribute.base import COMPARE
from laprasdp.sql.constant import Value, day, floating, instant
from laprasdp.sql.line import DOUBLE, SINGLE, FloatingPoint
from laprasdp.sql.reference import NANOSECONDS, ColumnRef, seconds
from laprasdp.sql.syntax import clip

_LONG = ("HUGEINT", "UHUGEINT")


@dataclass(frozen=True)
class Common:
    """
    The type that DuckDB gives to all operands of one comparison, BETWEEN or IN.

    Attributes
    ----------
    floating : FloatingPoint or None
        FLOAT or DOUBLE; None where numbers are compared as they are spelled.
    scale : int or None
        Digits after the point, where one is a DECIMAL; at most ``MAX_DIGITS`` are held.
    timed : bool
        Days are compared as their midnights.
    mixed : str
        Why columns of these types cannot be compared in it.
    """

    floating: FloatingPoint | None = None
    scale: int | None = None
    timed: bool = False
    mixed: str = ""


def common(operands: Sequence[ColumnRef | Value]) -> Common:
    """The common type of operands."""
    columns = [one for one in operands if isinstance(one, ColumnRef)]
    values = [one for one in operands if isinstance(one, Value)]
    bases = {column.base for column in columns}
    line = None
    if "DOUBLE" in bases or any(one.double for one in values):
        line = DOUBLE
    elif "FLOAT" in bases:
        line = SINGLE
    scales = [one.scale for one in operands if one.scale is not None]
    timed = any(column.timed for column in columns) or any(
        isinstance(one.constant, dt.datetime) for one in values
    )
    mixed = ""
    if len(bases) > 1 and (line is not None or timed or "UUID" in bases or any("COLL" in b for b in bases)):
        mixed = f"{' and '.join(sorted(bases))} in one comparison"
    return Common(line, max(scales, default=None), timed, mixed)


def holds(column: ColumnRef, op: Op, given: Value, shared: Common) -> Flags:
    """
    On which values is ``column op constant`` true?

    Returns
    -------
    (values,) array of bool

    Raises
    ------
    UnsupportedQuery
        The constant has the wrong type, DuckDB would convert it unsoundly, or a level would be cut.
    """
    attribute, constant = column.attribute, given.constant
    assert constant is not None
    if not isinstance(attribute, Categories | Booleans):
        return _flags(column, op, _below(column, op, given, shared))
    _check_types(column, constant, shared)
    return attribute.holds(op, constant)


def among(column: ColumnRef, values: Sequence[Value], shared: Common) -> Flags:
    """On which values is ``column IN (constants)`` true?  As `holds` for each, in one visit."""
    attribute = column.attribute
    flags = np.zeros(attribute.values, dtype=np.bool_)
    for given in values:
        assert given.constant is not None
        if isinstance(attribute, Categories | Booleans):
            _check_types(column, given.constant, shared)
            flags[attribute.level(given.constant)] = True
        else:
            below = _below(column, "=", given, shared)
            flags[below(False) : below(True)] = True
    return flags


def _check_types(column: ColumnRef, constant: Constant, shared: Common) -> None:
    if shared.mixed:
        raise UnsupportedQuery(f"{shared.mixed} is not supported; ask with AND or OR")
    if isinstance(constant, str):
        check_text(column)
        if column.base == "UUID":
            _check_uuid(constant)


def _below(column: ColumnRef, op: Op, given: Value, shared: Common) -> Callable[[bool], int]:
    """How many levels are below a constant; if asked with True, how many are not above it."""
    constant = given.constant
    assert constant is not None
    _check_types(column, constant, shared)
    if isinstance(column.attribute, Dates):
        return _dates(column, op, constant, shared)
    if not isinstance(constant, Fraction):
        raise UnsupportedQuery(f"{spell(constant)} is not comparable with {column.attribute.kind}")
    return _numbers(column, op, given, shared)


def check_text(column: ColumnRef) -> None:
    """Refuse a column of texts that do not compare by their characters."""
    if "COLLATE" in column.type:
        raise UnsupportedQuery("the column has a collation, and LAPRAS compares texts by their characters")


def constants(op: Op, left: Value, right: Value, shared: Common) -> bool | None:
    """``left op right``; None is unknown."""
    first, second = left.constant, right.constant
    if first is None or second is None:
        return None
    if isinstance(first, dt.date) or isinstance(second, dt.date):
        days = [_day(one, shared) for one in (first, second)]
        if None not in days:
            return bool(COMPARE[op](*(seconds(cast(dt.date, one)) for one in days)))
    if type(first) is not type(second):
        raise UnsupportedQuery(f"{clip(spell(first))} is not comparable with {clip(spell(second))}")
    if isinstance(first, Fraction):
        return bool(COMPARE[op](_converted(left, shared), _converted(right, shared)))
    return bool(COMPARE[op](first, second))


def _converted(given: Value, shared: Common) -> Fraction:
    """A number in the common type."""
    number = cast(Fraction, given.constant)
    if shared.floating is not None:
        return floating(given, shared.floating)
    _check_room(number, shared, clip(spell(number)))
    return number


def _check_room(number: Fraction, shared: Common, what: str) -> None:
    """Refuse where DuckDB fails: a DECIMAL has 38 digits, on both sides of the point together."""
    if shared.scale is not None and abs(number) >= 10 ** (MAX_DIGITS - shared.scale):
        raise UnsupportedQuery(
            f"{what} with {shared.scale} digits after the point has more than {MAX_DIGITS} digits, "
            "which DuckDB refuses; write fewer"
        )


def _numbers(column: ColumnRef, op: Op, given: Value, shared: Common) -> Callable[[bool], int]:
    number = _converted(given, shared)
    rounded = False
    if shared.floating is None:
        _check_room(column.reach, shared, "a declared value")
        if column.base == "UHUGEINT" and (number < 0 or column.reach >= 2**63):
            raise UnsupportedQuery(f"{spell(number)} and UHUGEINT have no type in common in DuckDB")
    elif column.base not in ("FLOAT", "DOUBLE"):
        rounded = True
        _check_rounding(column)

    def first(past: bool) -> Fraction:
        """The first value of the column that is not below the constant; with `past`, that is above it."""
        if not rounded:
            return column.line.up(number, past=past)
        target = DOUBLE.up(number, past=True) if past else number
        middle = (target - DOUBLE.up(-target, past=True)) / 2
        found = column.line.up(middle)
        return found if DOUBLE.nearest(found) >= target else column.line.up(middle, past=True)

    def below(past: bool) -> int:
        found = column.levels_below(first(past))
        if isinstance(found, int):
            return found
        held = ""
        if column.base == "FLOAT" and given.double:
            held = ", for the column holds FLOAT and an exponent makes a DOUBLE"
        raise UnsupportedQuery(
            f"{op} {spell(cast(Fraction, given.constant))} cuts the bin [{found[0]}, {found[1]}){held}; "
            f"the nearest edges are {found[0]} and {found[1]}"
        )

    return below


def _check_rounding(column: ColumnRef) -> None:
    """Refuse a DOUBLE beside a column whose values DuckDB may round more than once on the way to DOUBLE."""
    digits = int(column.type[8:].split(",")[0]) if column.base == "DECIMAL" else 0
    if column.base in _LONG or digits > 15:
        scale = column.scale or 0
        if column.reach * 10**scale > 2**53 or scale > 22:
            raise UnsupportedQuery(
                f"the column holds {column.type}, which DuckDB rounds to compare it with a number "
                "with an exponent; write the number without one"
            )


def _flags(column: ColumnRef, op: Op, below: Callable[[bool], int]) -> Flags:
    flags = np.zeros(column.attribute.values, dtype=np.bool_)
    match op:
        case "<" | "<=":
            flags[: below(op == "<=")] = True
        case ">" | ">=":
            flags[below(op == ">") :] = True
        case _:
            flags[below(False) : below(True)] = True
    return ~flags if op == "<>" else flags


def _day(constant: Constant, shared: Common) -> dt.date | None:
    """A day or an instant, from a text in the common type; None for any other constant."""
    if isinstance(constant, str):
        return instant(constant) if shared.timed else day(constant)
    return constant if isinstance(constant, dt.date) else None


def _dates(column: ColumnRef, op: Op, constant: Constant, shared: Common) -> Callable[[bool], int]:
    point = _day(constant, shared)
    if point is None:
        raise UnsupportedQuery(f"{spell(constant)} is not comparable with {column.attribute.kind}")
    if column.base == "TIMESTAMP_NS" and not NANOSECONDS[0] <= seconds(point) <= NANOSECONDS[1]:
        raise UnsupportedQuery(f"{spell(constant)} is out of range of TIMESTAMP_NS")
    moment = seconds(point)
    if column.timed and column.line.up(moment) != moment:
        raise UnsupportedQuery(f"{spell(constant)} is finer than {column.type}; write fewer digits")

    def below(past: bool) -> int:
        found = column.levels_below(column.line.up(moment, past=past))
        if isinstance(found, int):
            return found
        raise UnsupportedQuery(_cut(column, op, point, found))

    return below


def _cut(column: ColumnRef, op: Op, point: dt.date, edges: tuple[dt.date, dt.date]) -> str:
    """The refusal of a comparison that cuts a step, with the spelling that is answered."""
    first, last = (spell(edge) for edge in edges)
    day = (edges[1] - edges[0]).days == 1
    what = f"{op} {spell(point)} cuts {'through' if day else 'the step from'} {edges[0]}"
    nearest = f"the nearest edges are {first} and {last}"
    if not column.timed:
        return f"{what}; {nearest}"
    name = clip(column.name)
    ways = {
        "<": f"{name} < {first}",
        "<=": f"{name} < {last}",
        ">": f"{name} >= {last}",
        ">=": f"{name} >= {first}",
        "=": f"{name} >= {first} AND {name} < {last}",
        "<>": f"{name} < {first} OR {name} >= {last}",
    }
    way = f"write {ways[op]}"
    date = dt.date(point.year, point.month, point.day)
    with contextlib.suppress(UnsupportedQuery):
        holds(replace(column, type="DATE"), op, Value(date), Common())
        way += f", or CAST({name} AS DATE) {op} {spell(date)}"
    return f"{what}, for the column holds times of day; {nearest}: {way}"


def _check_uuid(text: str) -> None:
    try:
        same = str(uuid.UUID(text)) == text
    except ValueError:
        same = False
    if not same:
        raise UnsupportedQuery(f"{clip(spell(text))} is not a UUID in small letters with its hyphens")
