"""Aggregates over private rows: what each has to have measured, and what is worked out from that."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Ints
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_CURVES, MAX_GROUPS, MAX_WEIGHT
from laprasdp.queries.distinct import Persons
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Scratch, Tree
from laprasdp.sql.grouping import GroupingSet, group_queries
from laprasdp.sql.image import Image, Images
from laprasdp.sql.moments import MEANS, MOMENTS, PAIRS, QUANTILES, REFUSED, SPREADS, SUMS
from laprasdp.sql.result import Quantile, Sum
from laprasdp.sql.syntax import clip
from laprasdp.sql.truth import TRUE, UNKNOWN


@dataclass(frozen=True)
class Weighed:
    """
    What rows weigh in an aggregate: whole numbers on the cells, and what they are multiplied by.

    With `persons`, the persons of the rows of weight 1 are counted.
    """

    cells: Query
    factor: Fraction = Fraction(1)
    persons: bool = False


@dataclass(frozen=True)
class Curve:
    """
    What a quantile is read off.

    Attributes
    ----------
    cells : Query
        Which of `points` the value of a cell is, in their order; -1 where it does not count.
    points : tuple of numbers
        Ascending.
    share : float
    continuous : bool
    """

    cells: Query
    points: tuple[Fraction, ...]
    share: float
    continuous: bool

    def steps(self, most: int) -> tuple[list[Weighed], list[int]]:
        """The counts up to some of the points, at most so many, and which they are: the last is one."""
        stride = -(-len(self.points) // max(most, 1))
        chosen = list(range(len(self.points) - 1, -1, -stride))[::-1]
        inside = self.cells.weights >= 0
        return [
            Weighed(self.cells.spread((inside & (self.cells.weights <= one)).astype(np.int64)).canonical())
            for one in chosen
        ], chosen


@dataclass
class Measured:
    """
    The aggregates of one SELECT, as they are found.

    Parameters
    ----------
    images : Images
    scratch : Scratch
    domain : Domain
    kept : Query, optional
        Where rows are counted, whatever the group: TRUE; without, those of each group are.
    """

    images: Images
    scratch: Scratch
    domain: Domain
    kept: Query | None = None
    asked: list[tuple[Weighed | Curve, bool]] = field(default_factory=list)
    _places: dict[tuple[str, Query | None], int] = field(default_factory=dict)

    def within(self, kept: Query) -> Measured:
        """The same, for aggregates over all kept rows, which stand beside those of each group."""
        return replace(self, kept=kept)

    def aggregate(self, node: Tree, arguments: Sequence[Tree], condition: Tree | None, shown: str) -> Tree:
        """
        What stands in the place of an aggregate: columns of what is released.

        Parameters
        ----------
        node : Tree
            The call.
        arguments : sequence of Tree
            Over levels.
        condition : Tree or None
            Of FILTER, over levels.
        shown : str
            What a message calls it.
        """
        name = str(node["function_name"]).lower()
        if name in REFUSED:
            raise UnsupportedQuery(f"{shown} cannot be answered: {REFUSED[name]}")
        if node.get("distinct") and name == "count_star":  # of the person's column
            return self._ref(self._slot("persons", arguments, condition, shown))
        if node.get("distinct"):
            raise UnsupportedQuery(
                f"{shown} cannot be answered: whether a value occurs may hang on one row; "
                "ask for COUNT(*) with GROUP BY, and see which groups are above 0"
            )
        if name in QUANTILES:
            return self._quantile(name, arguments, condition, shown)
        wanted = 2 if name in PAIRS else 0 if name in ("count_star",) else 1
        if len(arguments) != wanted:
            raise UnsupportedQuery(f"{shown}: {name} takes {wanted} arguments")
        if name in ("count_star", "count"):
            return self._ref(self._slot("count", arguments, condition, shown))
        if name in ("count_if", "countif"):
            return self._ref(self._slot("count_if", arguments, condition, shown))
        for one in arguments if name not in MEANS else ():  # of nothing the mean alone is NULL by itself
            if not any(value.is_valid for value in self.images.image(one).values):
                raise UnsupportedQuery(f"{shown}: there is no value but NULL; write NULL")
        if name in SUMS:
            return self._ref(self._slot("sum", arguments, condition, shown))
        return self._moments(name, arguments, condition, shown)

    def _moments(self, name: str, arguments: Sequence[Tree], condition: Tree | None, shown: str) -> Tree:
        def slot(kind: str, *over: Tree) -> str:
            return f'"m{self._slot(kind, over, condition, shown)}"'

        x = arguments[0]
        if name in PAIRS:
            y = arguments[1]
            wanted: dict[str, tuple[str, Tree, Tree]] = {
                "n": ("count", x, y), "x": ("sum", x, y), "y": ("sum", y, x),
                "xy": ("product", x, y), "xx": ("square", x, y), "yy": ("square", y, x),
            }  # fmt: skip
            named = {part: slot(*of) for part, of in wanted.items() if f"{{{part}}}" in PAIRS[name]}
            return self.scratch.expression(PAIRS[name].format(**named))
        parts = {"n": slot("count", x), "x": slot("sum", x)}
        if name in MEANS:
            return self.scratch.expression("{x} / nullif({n}, 0)".format(**parts))
        parts["xx"] = slot("square", x)
        moments = {key: text.format(**parts) for key, text in MOMENTS.items()}
        return self.scratch.expression(SPREADS[name].format(**moments))

    def _ref(self, slot: int) -> Tree:
        return self.scratch.expression(f'"m{slot}"')

    def _slot(self, kind: str, over: Sequence[Tree], condition: Tree | None, shown: str) -> int:
        key = (json.dumps([kind, over, condition], sort_keys=True), self.kept)
        if key not in self._places:
            weighed = self._weighed(kind, over, shown)
            for truth in self._filters(condition):
                weighed = replace(weighed, cells=_kept(weighed.cells, truth))
            self._places[key] = len(self.asked)
            self.asked.append((weighed, self.kept is not None))
        return self._places[key]

    def _filters(self, condition: Tree | None) -> list[Query]:
        own = [] if condition is None else [self.images.truth(condition)]
        return own if self.kept is None else [*own, self.kept]

    def _weighed(self, kind: str, over: Sequence[Tree], shown: str) -> Weighed:
        if kind == "count_if":
            truth = self.images.truth(over[0])
            if (truth.weights == UNKNOWN).all():  # DuckDB says NULL or 0, by how it is written
                raise UnsupportedQuery(f"{shown}: the condition is never true or false; compare with IS NULL")
            return Weighed(truth.spread((truth.weights == TRUE).astype(np.int64)).canonical())
        if kind == "persons":
            return Weighed(Query.constant(self.domain, 1), persons=True)
        images = [self.images.image(one) for one in over]
        present = Query.constant(self.domain, 1)
        for image in images:
            there = np.array([one.is_valid for one in image.values], dtype=np.int64)
            present = present.combine(
                image.cells.spread(there[image.cells.weights]), operator.mul
            ).canonical()
        if kind == "count":
            return Weighed(present)
        weighed = _numbers(images[0], shown)
        if kind in ("square", "product"):
            other = weighed if kind == "square" else _numbers(images[1], shown)
            weighed = Weighed(
                weighed.cells.combine(other.cells, operator.mul).canonical(), weighed.factor * other.factor
            )
            _check_size(weighed.cells.weights, shown)
        return Weighed(weighed.cells.combine(present, operator.mul).canonical(), weighed.factor)

    def _quantile(self, name: str, arguments: Sequence[Tree], condition: Tree | None, shown: str) -> Tree:
        share = Fraction(1, 2)
        if name != "median":
            if len(arguments) != 2:
                raise UnsupportedQuery(f"{shown} takes a column and a share between 0 and 1")
            given = self.images.image(arguments[1]).values.to_pylist()
            if (
                len(given) != 1
                or isinstance(given[0], bool)
                or not isinstance(given[0], int | float | Decimal)
            ):
                raise UnsupportedQuery(f"{shown}: the share is one number between 0 and 1")
            share = Fraction(str(given[0]))
        if not 0 <= share <= 1:
            raise UnsupportedQuery(f"{shown}: the share is a number between 0 and 1")
        image = self.images.image(arguments[0])
        numbers = _fractions(image.values, shown)
        points = [one for one in numbers if one is not None]  # NULL is the last value
        if not points:
            raise UnsupportedQuery(f"{shown}: there is no value but NULL")
        places = image.cells.weights
        cells = image.cells.spread(np.where(places < len(points), places, -1)).canonical()
        for truth in self._filters(condition):
            cells = cells.combine(truth, lambda one, held: np.where(held == TRUE, one, -1)).canonical()
        curve = Curve(cells, tuple(points), float(share), name in ("median", "quantile_cont"))
        self.asked.append((curve, self.kept is not None))
        return self._ref(len(self.asked) - 1)

    def ask(self, sets: Sequence[GroupingSet], places: dict[Query, int]) -> tuple[Sum | Quantile, ...]:
        """
        All aggregates, by the places of their queries in all groups.

        Parameters
        ----------
        sets : sequence of GroupingSet
        places : dict of Query to int
            Of the queries of the statement; those that are new are added.

        Raises
        ------
        UnsupportedQuery
            They are too many or too much work.
        """
        groups = sum(one.count for one in sets)
        curves = sum(1 if whole else groups for one, whole in self.asked if isinstance(one, Curve))
        most = max(MAX_CURVES // max(curves, 1), 2)
        wanted = sum(
            (1 if whole else groups) * (1 if isinstance(one, Weighed) else min(most, len(one.points)))
            for one, whole in self.asked
        )
        if wanted > MAX_GROUPS:
            raise UnsupportedQuery(
                f"the statement needs {wanted:,} counts of {groups:,} groups; the limit is {MAX_GROUPS:,}: "
                "group by fewer or coarser keys, or ask for fewer aggregates"
            )

        def placed(weighed: Weighed, *, whole: bool) -> tuple[int, ...]:
            found = [weighed.cells]
            if not whole:
                found = [query for one in sets for query in group_queries(weighed.cells, one)]
            if weighed.persons:
                found = [Persons.of(query) for query in found]
            if whole:
                return (places.setdefault(found[0], len(places)),) * groups
            return tuple(places.setdefault(query, len(places)) for query in found)

        slots: list[Sum | Quantile] = []
        for one, whole in self.asked:
            if isinstance(one, Weighed):
                slots.append(Sum(placed(one, whole=whole), one.factor))
                continue
            steps, chosen = one.steps(most)
            by_step = [placed(step, whole=whole) for step in steps]
            lows = tuple(one.points[before + 1] for before in [-1, *chosen[:-1]])
            points = tuple(one.points[at] for at in chosen)
            slots.append(Quantile(tuple(zip(*by_step, strict=True)), points, one.share, one.continuous, lows))
        return tuple(slots)


def _kept(weights: Query, truth: Query) -> Query:
    return weights.combine(truth, lambda weight, held: np.where(held == TRUE, weight, 0)).canonical()


def _fractions(values: pa.Array, shown: str) -> list[Fraction | None]:
    """Numbers as DuckDB prints them, exactly."""
    found: list[Fraction | None] = []
    for one in values.to_pylist():
        if one is None:
            found.append(None)
        elif isinstance(one, int | Decimal) or (isinstance(one, float) and math.isfinite(one)):
            found.append(Fraction(repr(one) if isinstance(one, float) else one))
        else:
            raise UnsupportedQuery(
                f"{shown}: it takes numbers, {clip(str(one), 40)} is none; ask for COUNT(*) with GROUP BY "
                "or make it one: a date by subtracting another, a bin by what is the same on all of it; sums "
                "and averages are of integers and reals"
            )
    return found


def _numbers(image: Image, shown: str) -> Weighed:
    """The values as whole numbers of one unit; NULL is 0."""
    known = [one or Fraction(0) for one in _fractions(image.values, shown)]
    unit = Fraction(1, math.lcm(*(one.denominator for one in known))) if known else Fraction(1)
    whole = [one / unit for one in known]
    if unit != 1:
        shared = math.gcd(*(one.numerator for one in whole)) or 1
        unit, whole = unit * shared, [one / shared for one in whole]
    if max(map(abs, whole)) > MAX_WEIGHT:
        raise UnsupportedQuery(
            f"{shown}: its values are finer or larger than {MAX_WEIGHT:,} steps; ROUND them to fewer digits"
        )
    numbers = np.array([int(one) for one in whole], dtype=np.int64)
    return Weighed(image.cells.spread(numbers[image.cells.weights]).canonical(), unit)


def _check_size(weights: Ints, shown: str) -> None:
    if max(int(weights.max()), -int(weights.min())) > MAX_WEIGHT:
        raise UnsupportedQuery(
            f"{shown}: a square of its values passes {MAX_WEIGHT:,}; ROUND them to fewer digits"
        )
