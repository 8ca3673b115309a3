"""From a column's value to its level, as an expression that DuckDB evaluates: exact in every type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from laprasdp.data.schema import DAYS, FLOATS, INTEGERS, Column, call
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers

TREE = 128  # more edges than this are joined; up to here a tree of comparisons is as fast


def add_level(
    scan: exp.Select, connection: duckdb.DuckDBPyConnection, attribute: Attribute, column: Column, i: int
) -> exp.Select:
    """Select as ``a{i}`` the level of ``s.v{i}``, NULL where that lies outside; ``s.n{i}``: it is NULL."""
    value: exp.Expr = exp.column(f"v{i}", "s")
    mapped = exp.column("level", f"map{i}")
    level: exp.Expr
    if column.base == "":
        level = exp.null()
    elif isinstance(attribute, Integers):
        level = _whole(value, column, _offset(value, column, attribute))
    elif isinstance(attribute, Categories):
        names = [(name.encode("utf-8", "surrogatepass"), k) for k, name in enumerate(attribute.names)]
        _map(connection, i, names, "BLOB")
        match = call("encode", exp.cast(value, "VARCHAR")).eq(exp.column("value", f"map{i}"))
        scan = scan.join(exp.to_table(f"map{i}"), on=match, join_type="LEFT")
        level = mapped
        if attribute.other:
            level = (
                exp.case()
                .when(value.is_(exp.null()), level)
                .else_(call("coalesce", mapped, exp.convert(len(attribute.names))))
            )
    elif isinstance(attribute, Booleans):
        level = exp.case().when(value, "1").when(exp.not_(value), "0")
    else:
        assert isinstance(attribute, (Bins, Dates))
        edges, under = _edges(attribute.edges, column)
        if len(edges) <= TREE:
            places = [under, *[place for _, place in edges]]
            level = _tree(value, column.type, [text for text, _ in edges], places, attribute.values)
        else:
            _map(connection, i, edges, column.type)
            at = exp.GTE(this=value, expression=exp.column("value", f"map{i}"))
            scan = scan.join(exp.to_table(f"map{i}"), on=at, join_type="ASOF LEFT")
            place = call("coalesce", mapped, exp.convert(under))
            level = exp.case().when(place.between(0, attribute.values - 1), place)
        if column.base in FLOATS or column.base in DAYS:
            point = exp.cast(value, "TIMESTAMP") if column.base.startswith("TIMESTAMP") else value
            level = exp.case().when(call("try", call("isfinite", point)), level)
        if isinstance(attribute, Bins) and attribute.whole:
            level = _whole(value, column, level)
    null = exp.Literal.number(attribute.values) if attribute.nullable else exp.null()
    level = exp.case().when(exp.column(f"n{i}", "s"), null).else_(level)
    return scan.select(exp.cast(level, width(attribute), dialect="duckdb").as_(f"a{i}"))


def width(attribute: Attribute) -> str:
    """The type of the levels of an attribute."""
    return "UTINYINT" if attribute.size <= 2**8 else "USMALLINT" if attribute.size <= 2**16 else "UINTEGER"


def _map(connection: duckdb.DuckDBPyConnection, i: int, pairs: Sequence[tuple[Any, int]], kind: str) -> None:
    """A table ``map{i}`` of values and their levels."""
    import pyarrow

    arrow = pyarrow.table({"value": [value for value, _ in pairs], "level": [level for _, level in pairs]})
    connection.register("given", arrow)
    value = exp.cast(exp.column("value"), kind, dialect="duckdb").as_("value")
    connection.execute(f"CREATE TABLE map{i} AS " + exp.select(value, "level").from_("given").sql("duckdb"))
    connection.unregister("given")


def _typed(text: str, kind: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), kind, dialect="duckdb")


def _whole(value: exp.Expr, column: Column, level: exp.Expr) -> exp.Expr:
    if column.base in INTEGERS:
        return level
    return exp.case().when(value.eq(call("trunc", value)), level)


def _offset(value: exp.Expr, column: Column, attribute: Integers) -> exp.Expr:
    """``value - min``, compared before it is subtracted, so that nothing can overflow."""
    low, high = INTEGERS.get(column.base, INTEGERS["HUGEINT"])
    wide = low < -(2**63) or high >= 2**63
    bottom, top = INTEGERS["HUGEINT" if wide else "BIGINT"]
    first, last = max(attribute.min, low, bottom), min(attribute.max, high, top)
    if first > last:
        return exp.null()
    kind = "HUGEINT" if wide else "BIGINT"
    number = exp.TryCast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))
    low_end, high_end = _typed(str(first), kind), _typed(str(last), kind)
    level = exp.cast(exp.paren(number - low_end), "INTEGER") + (first - attribute.min)
    return exp.case().when(number.between(low_end, high_end), level)


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
            value < _typed(edges[middle], kind),
            _tree(value, kind, edges[:middle], places[: middle + 1], size),
        )
        .else_(_tree(value, kind, edges[middle + 1 :], places[middle + 1 :], size))
    )
