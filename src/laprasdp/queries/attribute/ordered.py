"""Ordered attributes: integers, bins with edges, dates in steps."""

from __future__ import annotations

import bisect
import datetime as dt
import itertools
import math
import sys
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from laprasdp.arrays import Flags
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.queries.attribute.base import Attribute, Constant, Op, check_size, spell


class Ordered(Attribute):
    """Levels are consecutive stretches of a line; a comparison is a count of levels below a point."""

    @abstractmethod
    def _below(self, constant: Constant, inclusive: bool) -> int:
        """Number of levels with ``value < constant`` (``<=`` if inclusive), or refuse to cut one."""

    def holds(self, op: Op, constant: Constant) -> Flags:
        position = np.arange(self.values)
        match op:
            case "<" | "<=":
                return position < self._below(constant, op == "<=")
            case ">" | ">=":
                return position >= self._below(constant, op == ">")
        first, last = self._below(constant, False), self._below(constant, True)
        equal = (position >= first) & (position < last)
        return equal if op == "=" else ~equal


@dataclass(frozen=True)
class Integers(Ordered):
    """
    Whole numbers from `min` to `max`, both included; one level each.

    Examples
    --------
    >>> Integers(17, 90).size
    74
    """

    kind = "integers"
    min: int
    max: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("min", self.min), ("max", self.max)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise DomainError(f"{name} must be a whole number, not {value!r}")
        if self.min > self.max:
            raise DomainError(f"min {self.min} is above max {self.max}")
        check_size(self.values, "declare bins instead")

    @property
    def values(self) -> int:
        return self.max - self.min + 1

    def label(self, level: int) -> int | None:
        return self.min + level if level < self.values else None

    def settings(self) -> dict[str, Any]:
        return {"type": self.kind, "min": self.min, "max": self.max, "nullable": self.nullable}

    def _below(self, constant: Constant, inclusive: bool) -> int:
        if not isinstance(constant, Fraction):
            raise self._wrong_type(constant)
        bound = math.floor(constant) + 1 if inclusive else math.ceil(constant)
        return min(max(bound - self.min, 0), self.values)


@dataclass(frozen=True)
class Bins(Ordered):
    """
    Half-open bins ``[edge, next edge)`` of a number.

    Parameters
    ----------
    edges : sequence of numbers
        Strictly increasing; the first bin starts at the first edge, the last ends before the last.
    whole : bool
        The column holds whole numbers (others lie outside the domain), so ``x <= 14`` is ``x < 15``.
    start, stop, width : numbers
        In the place of edges: those from `start` to `stop`, each `width` after the one before.

    Examples
    --------
    >>> Bins([0, 15, 60], whole=True).label(1)
    '[15, 60)'
    >>> Bins(start=0, stop=0.3, width=0.1).edges
    (0, 0.1, 0.2, 0.3)
    """

    kind = "bins"
    edges: Sequence[float] = ()
    whole: bool = False
    start: InitVar[float | None] = field(default=None, kw_only=True)
    stop: InitVar[float | None] = field(default=None, kw_only=True)
    width: InitVar[float | None] = field(default=None, kw_only=True)

    def __post_init__(self, start: float | None, stop: float | None, width: float | None) -> None:
        super().__post_init__()
        if (start, stop, width) != (None, None, None):
            if start is None or stop is None or width is None or self.edges != ():
                raise DomainError("bins take edges, or start, stop and width")
            object.__setattr__(self, "edges", _even_edges(start, stop, width))
        if isinstance(self.edges, (str, bytes)) or not isinstance(self.edges, Iterable):
            raise DomainError(f"edges must be a list of numbers, not {self.edges!r}")
        if not isinstance(self.whole, bool):
            raise DomainError(f"whole must be true or false, not {self.whole!r}")
        edges = tuple(self.edges)
        if len(edges) < 2:
            raise DomainError("bins need at least two edges")
        for edge in edges:
            number = isinstance(edge, (int, float)) and not isinstance(edge, bool)
            if not number or not abs(edge) <= sys.float_info.max:
                raise DomainError(f"edge {edge!r} is not a finite number")
            if self.whole and edge != int(edge):
                raise DomainError(f"edge {edge!r} of bins of whole numbers is not whole")
        for left, right in itertools.pairwise(edges):
            if left >= right:
                how = "overlap" if left == right else "are not sorted"
                raise DomainError(f"edges {left!r}, {right!r} {how}: they must be strictly increasing")
        object.__setattr__(self, "edges", tuple(int(e) for e in edges) if self.whole else edges)
        check_size(self.values, "use fewer edges")

    @property
    def values(self) -> int:
        return len(self.edges) - 1

    def label(self, level: int) -> str | None:
        if level >= self.values:
            return None
        return f"[{self.edges[level]}, {self.edges[level + 1]})"

    def settings(self) -> dict[str, Any]:
        return {"type": self.kind, "edges": list(self.edges), "whole": self.whole, "nullable": self.nullable}

    def _below(self, constant: Constant, inclusive: bool) -> int:
        if not isinstance(constant, Fraction):
            raise self._wrong_type(constant)
        point: float
        if self.whole:
            point = math.floor(constant) + 1 if inclusive else math.ceil(constant)
        else:
            point = float(constant)
        place = bisect.bisect_left(self.edges, point)
        if place == len(self.edges):
            return self.values
        if place == 0 and point < self.edges[0]:
            return 0
        if self.edges[place] != point or (inclusive and not self.whole and point < self.edges[-1]):
            sign = "<=" if inclusive else "<"
            if self.edges[place] == point:
                place += 1
            raise UnsupportedQuery(
                f"{sign} {spell(constant)} cuts the bin [{self.edges[place - 1]}, {self.edges[place]}); "
                f"the nearest edges are {self.edges[place - 1]} and {self.edges[place]}"
            )
        return min(place, self.values)


def _even_edges(start: float, stop: float, width: float) -> list[float]:
    """Edges from `start` to `stop`, exact in decimals: 0.1 thrice is 0.3."""
    try:
        first, last, step = (Fraction(repr(number)) for number in (start, stop, width))
    except (TypeError, ValueError):
        raise DomainError("start, stop and width must be finite") from None
    if step <= 0 or last <= first or (last - first) % step:
        raise DomainError("stop must lie a whole number of widths above start")
    count = int((last - first) / step)
    if count > 1_000_000:
        raise DomainError(f"{count:,} bins; the limit is 1,000,000: use a larger width")
    edges = [first + i * step for i in range(count + 1)]
    return [int(edge) if edge.denominator == 1 else float(edge) for edge in edges]


@dataclass(frozen=True)
class Dates(Ordered):
    """
    Calendar dates from `first` to `last`, both included, in steps.

    A row with a timestamp lies in the level of its date.  In statements a date stands for its midnight
    then, as in DuckDB: comparisons that cut a day are refused, ``CAST(x AS DATE) = …`` is answered.

    Parameters
    ----------
    first, last : datetime.date or ISO text
    step : int or {"week", "month", "quarter", "year"}
        Days in a step, or a calendar step counted from `first`; the last step ends at `last`.

    Attributes
    ----------
    edges : tuple of datetime.date
        First day of each step, and the day after the last.

    Examples
    --------
    >>> Dates("2024-01-01", "2024-12-31", step="month").label(1)
    '2024-02-01'
    """

    kind = "dates"
    first: dt.date
    last: dt.date
    step: int | str = 1
    edges: tuple[dt.date, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "last"):
            object.__setattr__(self, name, _as_date(getattr(self, name), name))
        if self.first > self.last:
            raise DomainError(f"first date {self.first} is after last date {self.last}")
        months = {"month": 1, "quarter": 3, "year": 12}
        if isinstance(self.step, bool) or not (
            self.step in (*months, "week") or (isinstance(self.step, int) and self.step >= 1)
        ):
            raise DomainError(f"step {self.step!r} must be days (at least 1), week, month, quarter or year")
        days = 7 if self.step == "week" else self.step
        edges, count = [self.first], 0
        if self.last == dt.date.max:
            raise DomainError(f"last date {self.last} is the end of the calendar; the limit is one day less")
        while edges[-1] <= self.last:
            count += 1
            try:
                edges.append(
                    self.first + dt.timedelta(days=days * count)
                    if isinstance(days, int)
                    else _plus_months(self.first, months[days] * count)
                )
            except (OverflowError, ValueError):  # the next step lies beyond the calendar
                edges.append(dt.date.max)
        edges[-1] = self.last + dt.timedelta(days=1)
        object.__setattr__(self, "edges", tuple(edges))
        check_size(self.values, "use a longer step")

    @property
    def values(self) -> int:
        return len(self.edges) - 1

    def label(self, level: int) -> str | None:
        return self.edges[level].isoformat() if level < self.values else None

    def settings(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "step": self.step,
            "nullable": self.nullable,
        }

    def _below(self, constant: Constant, inclusive: bool) -> int:
        if isinstance(constant, str):
            try:
                constant = dt.date.fromisoformat(constant)
            except ValueError:
                raise UnsupportedQuery(f"{spell(constant)} is not a date like '2024-01-31'") from None
        if not isinstance(constant, dt.date):
            raise self._wrong_type(constant)
        if constant < self.first:
            return 0
        if constant > self.last:
            return self.values
        point = constant + dt.timedelta(days=1) if inclusive else constant
        place = bisect.bisect_left(self.edges, point)
        if self.edges[place] != point:
            raise UnsupportedQuery(
                f"{'<=' if inclusive else '<'} {spell(constant)} cuts the step from {self.edges[place - 1]}; "
                f"the nearest edges are {self.edges[place - 1]} and {self.edges[place]}"
            )
        return place


def _as_date(value: object, name: str) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise DomainError(f"{name} must be a date like '2024-01-31', not {value!r}")


def _plus_months(day: dt.date, months: int) -> dt.date:
    total = day.month - 1 + months
    year, month = day.year + total // 12, total % 12 + 1
    following = dt.date(year + month // 12, month % 12 + 1, 1)
    return dt.date(year, month, min(day.day, (following - dt.timedelta(days=1)).day))
