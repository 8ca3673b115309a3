"""The place of a value among even edges, by arithmetic that is exact for every value."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from laprasdp.data.column import FLOATS, INTEGERS, Column
from laprasdp.data.words import word

T = TypeVar("T")
_EXACT = 2**53  # whole numbers up to here are doubles
_DENOMINATOR = 10**6


def typed(text: str, kind: str) -> exp.Expr:
    """A constant as a type of DuckDB."""
    return exp.cast(exp.Literal.string(text), kind, dialect="duckdb")


def place_by_arithmetic(value: exp.Expr, column: Column, edges: Sequence[str]) -> exp.Expr | None:
    """
    Between which edges a value lies, counted from 0, NULL outside; None where no exact arithmetic is known.

    Parameters
    ----------
    value : expression
        Of the column's type.
    column : Column
    edges : sequence of str
        Ascending, as the type spells them; at least two.

    Notes
    -----
    A function that never falls is the place of every value if it is that at each edge and just before it.
    Doubles round to the nearest, so ``floor((value - first) * scale)`` is such a function.  Where it misses
    by one, comparisons with the edges of the bin that it names put that right, if they can be computed, too.
    """
    first, last = edges[0], edges[-1]
    if column.base in FLOATS:
        number = _of_doubles(exp.cast(value, "DOUBLE"), [float(edge) for edge in edges])
    elif column.base in ("DATE", "TIMESTAMP"):
        number = _of_days(
            word("read", value, exp.DataType.build("DATE")), [dt.date.fromisoformat(edge) for edge in edges]
        )
    elif column.base in INTEGERS and INTEGERS[column.base][1] < 2**63:
        number = _of_integers(exp.cast(value, "BIGINT", dialect="duckdb"), [int(edge) for edge in edges])
    else:
        return None
    if number is None:
        return None
    inside = exp.and_(value >= typed(first, column.type), value < typed(last, column.type))
    return exp.case().when(inside, exp.cast(number, "INTEGER"))


def _of_integers(value: exp.Expr, edges: Sequence[int]) -> exp.Expr | None:
    first, width = edges[0], edges[1] - edges[0]
    if edges[-1] - first >= 2**63:
        return None
    if not _is_place(lambda n: (n - first) // width, edges, lambda n: n - 1):
        return None
    return _divided(value - typed(str(first), "BIGINT"), width)


def _of_days(value: exp.Expr, edges: Sequence[dt.date]) -> exp.Expr | None:
    one = dt.timedelta(days=1)
    first, width = edges[0], (edges[1] - edges[0]).days
    if _is_place(lambda day: (day - first).days // width, edges, lambda day: day - one):
        return _divided(value - typed(first.isoformat(), "DATE"), width)
    begin, months = _month(first), _month(edges[1]) - _month(first)
    if not months or not _is_place(lambda day: (_month(day) - begin) // months, edges, lambda day: day - one):
        return None
    month = exp.Year(this=value) * 12 + exp.Month(this=value.copy())
    return _divided(month - begin, months)


def _month(day: dt.date) -> int:
    return 12 * day.year + day.month


def _of_doubles(value: exp.Expr, edges: Sequence[float]) -> exp.Expr | None:
    first, count = edges[0], len(edges) - 1
    scale = count / (edges[-1] - first)
    if not 0 < scale < math.inf:
        return None

    def place(x: float) -> int:
        return math.floor((x - first) * scale)

    guess: exp.Expr = exp.Floor(
        this=exp.paren(value - typed(repr(first), "DOUBLE")) * typed(repr(scale), "DOUBLE")
    )
    if _is_place(place, edges, _before):
        return guess
    start, width, parts = _rational(edges)
    edge = [(start + k * width) / parts for k in range(-1, count + 2)]
    if edge[1:-1] != list(edges) or max(map(abs, (start, parts, (count + 1) * width))) >= _EXACT // 2:
        return None
    if any(place(e) < k - 1 or (k > 0 and place(_before(e)) > k) for k, e in enumerate(edges)):
        return None

    def at(number: exp.Expr) -> exp.Expr:
        named = exp.paren(number.copy()) * typed(repr(float(width)), "DOUBLE")
        return exp.paren(named + typed(repr(float(start)), "DOUBLE")) / typed(repr(float(parts)), "DOUBLE")

    below, above = value.copy() < at(guess), value.copy() >= at(guess + 1)
    return guess - exp.cast(exp.paren(below), "INTEGER") + exp.cast(exp.paren(above), "INTEGER")


def _before(x: float) -> float:
    return math.nextafter(x, -math.inf)


def _rational(edges: Sequence[float]) -> tuple[int, int, int]:
    """Start, width and denominator of whole numbers whose quotients may be the edges."""
    first, second = (Fraction(edge).limit_denominator(_DENOMINATOR) for edge in edges[:2])
    parts = math.lcm(first.denominator, second.denominator)
    return int(first * parts), int((second - first) * parts), parts


def _is_place(function: Callable[[T], int], edges: Sequence[T], before: Callable[[T], T]) -> bool:
    """Whether a function that never falls is the place of every value between the first and the last edge."""
    return all(function(edge) == k for k, edge in enumerate(edges[:-1])) and all(
        function(before(edge)) == k for k, edge in enumerate(edges[1:])
    )


def _divided(number: exp.Expr, width: int) -> exp.Expr:
    if width == 1:
        return exp.paren(number)
    return exp.IntDiv(this=exp.paren(number), expression=exp.Literal.number(width))
