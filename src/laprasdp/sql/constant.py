"""The constants that a statement spells, and what type DuckDB gives them."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from laprasdp.errors import QuerySyntaxError, UnsupportedQuery
from laprasdp.limits import MAX_DIGITS
from laprasdp.queries.attribute import Constant, spell
from laprasdp.sql.line import DOUBLE, SINGLE, FloatingPoint
from laprasdp.sql.syntax import Node, clip, only

"""Digits of a DECIMAL; a number with a point and more of them is a DOUBLE."""
LONGEST = 2**127
"""Whole numbers of this size and above have no type that DuckDB compares soundly."""
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?", re.ASCII)


@dataclass(frozen=True)
class Value:
    """
    A constant.

    Attributes
    ----------
    constant : Fraction, str, bool, date, datetime or None
        None is NULL; the number that is spelled, or for a DOUBLE the one that it is.
    double : bool
        DuckDB holds the number as a DOUBLE: it has an exponent, or too many digits.
    scale : int or None
        Digits after the point of a DECIMAL.
    digits : int
        All digits of a DECIMAL, leading zeros included.
    """

    constant: Constant | None
    double: bool = False
    scale: int | None = None
    digits: int = 0


def value(node: Node) -> Value | None:
    """The constant that a node spells, or None if it is no constant."""
    match node:
        case exp.Paren():
            only(node, "this")
            return value(node.this)
        case exp.Null():
            return Value(None)
        case exp.Boolean():
            return Value(bool(node.this))
        case exp.Literal():
            return Value(str(node.this)) if node.is_string else _number(str(node.this))
        case exp.Neg():
            only(node, "this")
            inner = value(node.this)
            if inner is None or not (inner.constant is None or isinstance(inner.constant, Fraction)):
                return None
            return inner if inner.constant is None else replace(inner, constant=-inner.constant)
        case exp.Cast() if (
            type(node) is exp.Cast and isinstance(node.this, exp.Literal) and node.this.is_string
        ):
            only(node, "this", "to")
            if node.to.args.get("expressions"):
                return None
            if node.to.this is exp.DType.DATE:
                return Value(day(str(node.this.this)))
            if node.to.this in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
                return Value(instant(str(node.this.this)))
            text = str(node.this.this)
            if node.to.this is exp.DType.DOUBLE and _NUMBER.fullmatch(text.removeprefix("-")):
                return _double(text)
    return None


def floating(given: Value, line: FloatingPoint) -> Fraction:
    """
    A number as a FLOAT or DOUBLE, rounded as DuckDB and as IEEE 754 do.

    Raises
    ------
    UnsupportedQuery
        The two differ: DuckDB rounds more than once.
    """
    assert isinstance(given.constant, Fraction)
    number = line.nearest(given.constant)
    if given.double or _rounded_by_duckdb(given, line) == number:
        return number
    kind, shown = "FLOAT" if line == SINGLE else "DOUBLE", repr(float(number))
    raise UnsupportedQuery(
        f"{clip(spell(given.constant))} has more digits than DuckDB rounds soundly to {kind}; "
        f"write {shown if 'e' in shown else shown + 'e0'}"
    )


def _rounded_by_duckdb(given: Value, line: FloatingPoint) -> Fraction:
    """How DuckDB casts whole numbers and DECIMALs: the whole part and the rest by themselves."""
    number = given.constant
    assert isinstance(number, Fraction)
    scale = given.scale or 0
    units = int(number * 10**scale)
    if not scale or abs(units) <= 2**line.bits:
        return line.nearest(_whole(units, given, line) / _power(scale, line))
    whole, rest = divmod(abs(units), 10**scale)
    sign = -1 if units < 0 else 1
    part = line.nearest(_whole(sign * rest, given, line) / _power(scale, line))
    return line.nearest(_whole(sign * whole, given, line) + part)


def _power(scale: int, line: FloatingPoint) -> Fraction:
    return line.nearest(DOUBLE.nearest(Fraction(10**scale)))


def _whole(number: int, given: Value, line: FloatingPoint) -> Fraction:
    small = -(2**63) <= number < 2**63 and given.digits <= 18
    if small:
        return line.nearest(Fraction(number))
    high, low = (
        number >> 64,
        number & (2**64 - 1),
    )  # a HUGEINT becomes a DOUBLE in two parts, a FLOAT after it
    if high == -1:
        return line.nearest(DOUBLE.nearest(-DOUBLE.nearest(Fraction(2**64 - 1 - low)) - 1))
    return line.nearest(
        DOUBLE.nearest(DOUBLE.nearest(Fraction(low)) + DOUBLE.nearest(Fraction(high)) * 2**64)
    )


def _number(text: str) -> Value:
    if _NUMBER.fullmatch(text) is None:
        raise QuerySyntaxError(f"{clip(text)} is not a number")
    if text.isdigit():
        number = int(text) if len(text) <= 2 * MAX_DIGITS else int(text.lstrip("0")[:400] or "0")
        if number < LONGEST:
            return Value(Fraction(number))
        if number < 2 * LONGEST:
            raise UnsupportedQuery(f"the number {clip(text)} is out of range; write it with an exponent")
    elif "e" not in text.lower():
        whole, _, rest = text.partition(".")
        if len(whole) + len(rest) <= MAX_DIGITS:
            return Value(Fraction(text), scale=len(rest), digits=len(whole) + len(rest))
    return _double(text)


def _double(text: str) -> Value:
    """A number that DuckDB holds as a DOUBLE."""
    try:
        return Value(Fraction(float(text)), True)
    except OverflowError:
        raise UnsupportedQuery(f"the number {clip(text)} is out of range") from None


def day(text: str, column: str = "") -> dt.date:
    """The date that a text spells."""
    if _DAY.fullmatch(text):
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            pass
    raise UnsupportedQuery(
        f"{column + ': ' if column else ''}{clip(spell(text))} is not a date like '2024-01-31'"
    )


def instant(text: str, column: str = "") -> dt.date:
    """The date or the time of a day that a text spells; midnight is the date."""
    if _TIME.fullmatch(text):
        try:
            return midnight(dt.datetime.fromisoformat(text))
        except ValueError:
            pass
    elif _DAY.fullmatch(text):
        return day(text, column)
    raise UnsupportedQuery(
        f"{column + ': ' if column else ''}{clip(spell(text))} is not a date like '2024-01-31' "
        "nor a time like '2024-01-31 18:30:00'"
    )


def midnight(point: dt.date) -> dt.date:
    """The date, where a time is its midnight."""
    if isinstance(point, dt.datetime) and point.time() == dt.time():
        return point.date()
    return point
