"""From a column's value to its level, as an expression for any engine: exact in every type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from laprasdp.data.column import DAYS, FLOATS, INTEGERS, Column
from laprasdp.data.even import place_by_arithmetic, typed
from laprasdp.data.words import word
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals

TREE = 128  # more edges than this are looked up; up to here a tree of comparisons is as fast


@dataclass(frozen=True)
class LevelList:
    """
    A list of values and levels, too long for an expression.

    Attributes
    ----------
    of : expression
        Over ``value``: what is looked up.
    type : str
        Of the values in the list, which may be given as texts.
    entries : tuple of (value, level)
        Ascending where `is_ordered`.
    is_ordered : bool
        What is found is the last value that is not above `of`; otherwise the one that equals it.
    """

    of: exp.Expr
    type: str
    entries: tuple[tuple[Any, int], ...]
    is_ordered: bool


@dataclass(frozen=True)
class Level:
    """
    The level of one attribute in one row.

    Attributes
    ----------
    expression : expression
        NULL where the row lies outside.  Over three neutral names, and in the words of `laprasdp.data.words`:
        ``value``, of the column's type, NULL where it could not be read; ``absent``, whether it is NULL in
        the source; ``found``, the level that `lookup` finds, NULL where it finds none.
    lookup : LevelList, optional
    even : Level, optional
        The same by arithmetic, for an engine whose doubles neither overflow nor underflow with an error.

    Notes
    -----
    **Privacy.**  A function of one value, of the declared attribute and of the column's type.
    """

    expression: exp.Expr
    lookup: LevelList | None = None
    even: Level | None = None


def level_of(attribute: Attribute, column: Column) -> Level:
    """The level of an attribute, read from a column whose type fits it."""
    value, found = exp.column("value"), exp.column("found")
    lookup: LevelList | None = None
    even: exp.Expr | None = None
    level: exp.Expr
    if column.base == "":
        level = exp.null()
    elif isinstance(attribute, Integers):
        level = _whole(value, column, _offset(value, column, attribute))
    elif isinstance(attribute, Categories):
        names = tuple((name.encode("utf-8", "surrogatepass"), k) for k, name in enumerate(attribute.names))
        lookup = LevelList(word("bytes", exp.cast(value, "VARCHAR")), "BLOB", names, is_ordered=False)
        level = found
        if attribute.other:
            known = exp.Coalesce(this=found.copy(), expressions=[exp.convert(len(attribute.names))])
            level = exp.case().when(value.is_(exp.null()), level).else_(known)
    elif isinstance(attribute, Reals):
        level = _step(value, column, attribute)
    elif isinstance(attribute, Booleans):
        level = exp.case().when(value, "1").when(exp.not_(value), "0")
    else:
        assert isinstance(attribute, (Bins, Dates))
        edges, under = _edges(attribute.edges, column)
        if under < 0 and len(edges) == len(attribute.edges):
            even = place_by_arithmetic(value, column, [text for text, _ in edges])
        if len(edges) <= TREE:
            places = [under, *[place for _, place in edges]]
            level = _tree(value, column.type, [text for text, _ in edges], places, attribute.values)
        else:
            lookup = LevelList(value, column.type, tuple(edges), is_ordered=True)
            place = exp.Coalesce(this=found, expressions=[exp.convert(under)])
            level = exp.case().when(place.between(0, attribute.values - 1), place)
        if column.base in FLOATS or column.base in DAYS:
            point = exp.cast(value, "TIMESTAMP") if column.base.startswith("TIMESTAMP") else value
            level = exp.case().when(word("finite", point), level)
        if isinstance(attribute, Bins) and attribute.whole:
            level = _whole(value, column, level)
            even = None if even is None else _whole(value, column, even)
    null = exp.Literal.number(attribute.values) if attribute.nullable else exp.null()
    absent = exp.case().when(exp.column("absent"), null)
    quick = None if even is None else Level(absent.copy().else_(even))
    return Level(absent.else_(level), lookup, quick)


def _whole(value: exp.Expr, column: Column, level: exp.Expr) -> exp.Expr:
    if column.base in INTEGERS:
        return level
    return exp.case().when(value.eq(word("whole", value)), level)


def _offset(value: exp.Expr, column: Column, attribute: Integers) -> exp.Expr:
    """``value - min``, compared before it is subtracted, so that nothing can overflow."""
    low, high = INTEGERS.get(column.base, INTEGERS["HUGEINT"])
    wide = low < -(2**63) or high >= 2**63
    bottom, top = INTEGERS["HUGEINT" if wide else "BIGINT"]
    first, last = max(attribute.min, low, bottom), min(attribute.max, high, top)
    if first > last:
        return exp.null()
    kind = "HUGEINT" if wide else "BIGINT"
    number = word("read", value, exp.DataType.build(kind, dialect="duckdb"))
    low_end, high_end = typed(str(first), kind), typed(str(last), kind)
    level = exp.cast(exp.paren(number - low_end), "INTEGER") + (first - attribute.min)
    return exp.case().when(number.between(low_end, high_end), level)


def _step(value: exp.Expr, column: Column, attribute: Reals) -> exp.Expr:
    """The nearest step, by the same doubles on every engine; beyond the ends, the ends."""
    double = exp.cast(value, "DOUBLE", dialect="duckdb")
    lower, upper, step, half = (
        typed(repr(one), "DOUBLE") for one in (attribute.lower, attribute.upper, attribute.step, 0.5)
    )
    steps = exp.paren(double - lower.copy()) / step
    place = exp.cast(exp.Floor(this=steps + half), "INTEGER")
    level = (
        exp.case()
        .when(double.copy() <= lower, "0")
        .when(double.copy() >= upper, str(attribute.values - 1))
        .else_(place)
    )
    return exp.case().when(word("finite", double.copy()), level) if column.base in FLOATS else level


def _edges(edges: Sequence[Any], column: Column) -> tuple[list[tuple[str, int]], int]:
    """
    Edges as the column's type spells them, each with the level that starts there, and the level below all.

    An edge under everything the type can hold only raises the level below all; one over it never starts.
    """
    spelled: list[tuple[str, int]] = []
    under = -1
    for level, edge in enumerate(edges):
        text = _spell_edge(edge, column)
        if text is None:
            under = level
        elif text and spelled and spelled[-1][0] == text:
            spelled[-1] = (text, level)
        elif text:
            spelled.append((text, level))
    return spelled, under


def _spell_edge(edge: Any, column: Column) -> str | None:
    """The least value of the column's type not below `edge`: None if all are, '' if none is."""
    if column.base in DAYS:
        text: str = edge.isoformat()
        if column.base == "TIMESTAMP_NS":
            return None if text < "1677-09-22" else "" if text > "2262-04-11" else text
        return text
    if column.base in FLOATS:
        single = column.base == "FLOAT"
        limit = float(np.finfo(np.float32).max) if single else math.inf
        number = float(edge)
        if abs(number) > limit:
            return None if number < 0 else ""
        return repr(float(np.float32(number)) if single else number)
    digits, scale = 0, 0
    low, high = INTEGERS.get(column.base, (0, 0))
    if column.base == "DECIMAL":
        digits, scale = (int(part) for part in column.type[8:-1].split(","))
        low, high = 1 - 10**digits, 10**digits - 1
    exact = Fraction(edge) if isinstance(edge, int) else Fraction(repr(float(edge)))
    units = math.ceil(exact * 10**scale)
    if units <= low:
        return None
    if units > high:
        return ""
    sign, whole = "-" if units < 0 else "", str(abs(units)).rjust(scale + 1, "0")
    return f"{sign}{whole[:-scale]}.{whole[-scale:]}" if scale else f"{sign}{whole}"


def _tree(value: exp.Expr, kind: str, edges: Sequence[str], places: Sequence[int], size: int) -> exp.Expr:
    """Comparisons in a balanced tree: `places[k]` where k edges are not above the value; NULL outside."""
    if not edges:
        return exp.Literal.number(places[0]) if 0 <= places[0] < size else exp.null()
    middle = len(edges) // 2
    return (
        exp.case()
        .when(
            value < typed(edges[middle], kind),
            _tree(value, kind, edges[:middle], places[: middle + 1], size),
        )
        .else_(_tree(value, kind, edges[middle + 1 :], places[middle + 1 :], size))
    )
