"""A column that a statement names: its attribute, its type, and which values lie in which level."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from laprasdp.queries.attribute import Attribute, Bins, Booleans, Dates, Integers, Reals
from laprasdp.sql.line import DOUBLE, SINGLE, WHOLE, FloatingPoint, Line, Steps

DAY_SECONDS = 86_400
_TIMES = {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP": 6, "TIMESTAMP_NS": 9}
"""Digits of a second that DuckDB's types of instants hold."""
NANOSECONDS = (dt.date(1677, 9, 22).toordinal() * DAY_SECONDS, dt.date(2262, 4, 11).toordinal() * DAY_SECONDS)
"""First and last midnight of TIMESTAMP_NS."""


def natural(attribute: Attribute) -> str:
    """The DuckDB type that fits an attribute where the column's own is not known."""
    match attribute:
        case Integers():
            return _whole_type(attribute.min, attribute.max)
        case Bins():
            return _whole_type(attribute.edges[0], attribute.edges[-1]) if attribute.whole else "DOUBLE"
        case Reals():
            return attribute.type
        case Dates():
            return "DATE"
        case Booleans():
            return "BOOLEAN"
    return "VARCHAR"


def _whole_type(low: float, high: float) -> str:
    return "BIGINT" if low >= -(2**63) and high < 2**63 else "HUGEINT"


@dataclass(frozen=True)
class ColumnRef:
    """
    A declared attribute that a statement names.

    Attributes
    ----------
    axis : int
    name : str
    attribute : Attribute
    type : str
        The column's DuckDB type.
    """

    axis: int
    name: str
    attribute: Attribute
    type: str

    @cached_property
    def base(self) -> str:
        """The type without its arguments."""
        return self.type.split("(")[0]

    @property
    def scale(self) -> int | None:
        """Digits after the point of a DECIMAL."""
        return int(self.type[:-1].rpartition(",")[2]) if self.base == "DECIMAL" else None

    @property
    def long(self) -> bool:
        """Values may have more digits than 64 bits hold."""
        wide = self.base == "DECIMAL" and int(self.type[8:].split(",")[0]) > 18
        return wide or self.base in ("HUGEINT", "UHUGEINT")

    @property
    def timed(self) -> bool:
        """Values are instants, not whole days."""
        return self.base in _TIMES

    @cached_property
    def line(self) -> Line:
        """What values the type can hold; for times in seconds."""
        if self.base in ("FLOAT", "DOUBLE"):
            return SINGLE if self.base == "FLOAT" else DOUBLE
        if isinstance(self.attribute, Dates):
            return Steps(Fraction(1, 10 ** _TIMES[self.base])) if self.timed else Steps(Fraction(DAY_SECONDS))
        return Steps(Fraction(1, 10**self.scale)) if self.scale else WHOLE

    @property
    def reach(self) -> Fraction:
        """No declared number is larger, signs apart."""
        match self.attribute:
            case Integers(min=low, max=high):
                return Fraction(max(abs(low), abs(high)))
            case Bins(edges=edges):
                return max(abs(Fraction(edges[0])), abs(Fraction(edges[-1])))
            case Reals(lower=low, upper=high):
                return max(abs(Fraction(low)), abs(Fraction(high)))
        return Fraction(0)

    def levels_below(self, point: Fraction) -> int | tuple[Any, Any]:
        """
        How many levels hold only values below a point; or the edges of the level that it cuts.

        Parameters
        ----------
        point : Fraction
            A value of `line`.
        """
        attribute = self.attribute
        if isinstance(attribute, Integers):
            return min(max(math.ceil(point) - attribute.min, 0), attribute.values)
        if isinstance(attribute, Reals):
            return min(max(math.ceil(point / attribute.unit) - attribute.first, 0), attribute.values)
        assert isinstance(attribute, Bins | Dates)
        if isinstance(attribute, Bins) and attribute.whole:
            point = self.line.up(Fraction(math.ceil(point)))
        edges = attribute.edges
        place = bisect_left(edges, point, key=self._start)
        if place == len(edges) or place == 0 or self._start(edges[place]) == point:
            return min(place, attribute.values)
        return edges[place - 1], edges[place]

    def _start(self, edge: Any) -> Fraction:
        """The first value of the column's type that belongs above an edge, as the table is read."""
        if isinstance(edge, dt.date):
            return seconds(edge)
        if isinstance(self.line, FloatingPoint):
            return self.line.nearest(Fraction(float(edge)))
        return self.line.up(Fraction(edge) if isinstance(edge, int) else Fraction(repr(float(edge))))


def seconds(point: dt.date) -> Fraction:
    """Seconds from the first day of the calendar to a day or an instant."""
    if isinstance(point, dt.datetime):
        rest = dt.timedelta(
            hours=point.hour, minutes=point.minute, seconds=point.second, microseconds=point.microsecond
        )
        return Fraction(point.toordinal() * DAY_SECONDS) + Fraction(
            rest // dt.timedelta(microseconds=1), 10**6
        )
    return Fraction(point.toordinal() * DAY_SECONDS)
