"""Aggregates over private rows: what each has to have measured, and what is worked out from that."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Ints
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_GROUPS, MAX_WEIGHT
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Scratch, Tree
from laprasdp.sql.grouping import GroupingSet, group_queries
from laprasdp.sql.image import Image, Images
from laprasdp.sql.result import Quantile, Sum
from laprasdp.sql.syntax import clip
from laprasdp.sql.truth import TRUE, UNKNOWN

_MOMENTS = {
    "var_samp": "({xx} - {x} * {x} / nullif({n}, 0)) / nullif({n} - 1, 0)",
    "var_pop": "({xx} - {x} * {x} / nullif({n}, 0)) / nullif({n}, 0)",
}
_SPREADS = {
    "variance": "greatest({var_samp}, 0)",
    "var_samp": "greatest({var_samp}, 0)",
    "var_pop": "greatest({var_pop}, 0)",
    "stddev": "sqrt(greatest({var_samp}, 0))",
    "stddev_samp": "sqrt(greatest({var_samp}, 0))",
    "stddev_pop": "sqrt(greatest({var_pop}, 0))",
}
_PAIRS = {
    "covar_pop": "({xy} - {x} * {y} / nullif({n}, 0)) / nullif({n}, 0)",
    "covar_samp": "({xy} - {x} * {y} / nullif({n}, 0)) / nullif({n} - 1, 0)",
    "regr_slope": "({n} * {xy} - {x} * {y}) / nullif({n} * {yy} - {y} * {y}, 0)",
    "regr_intercept": "({x} * {yy} - {y} * {xy}) / nullif({n} * {yy} - {y} * {y}, 0)",
    "corr": "greatest(-1, least(1, ({n} * {xy} - {x} * {y}) / nullif("
    "sqrt(greatest({n} * {xx} - {x} * {x}, 0)) * sqrt(greatest({n} * {yy} - {y} * {y}, 0)), 0)))",
}
_QUANTILES = ("median", "quantile", "quantile_disc", "quantile_cont", "approx_quantile")
_REFUSED = {
    "min": "its noise would have to hide the one row at the end; QUANTILE_DISC(x, 0.01) comes close",
    "max": "its noise would have to hide the one row at the end; QUANTILE_DISC(x, 0.99) comes close",
    "mode": "ask for COUNT(*) with GROUP BY and ORDER BY 2 DESC LIMIT 1",
    "any_value": "one row's value is private; group by the column",
    "first": "one row's value is private; group by the column",
    "last": "one row's value is private; group by the column",
    "arg_max": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "arg_min": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "list": "rows are private; ask for COUNT(*) with GROUP BY",
    "string_agg": "rows are private; ask for COUNT(*) with GROUP BY",
    "bool_or": "ask for COUNT_IF",
    "bool_and": "ask for COUNT_IF and COUNT(*)",
    "product": "ask for SUM of ln(x)",
    "approx_count_distinct": "ask for COUNT(*) with GROUP BY, and see which groups are above 0",
}
AGGREGATES = frozenset(
    (
        *("count", "count_star", "count_if", "countif", "sum", "avg", "mean"),
        *_SPREADS, *_PAIRS, *_QUANTILES, *_REFUSED,
    )
)  # fmt: skip


@dataclass(frozen=True)
class Weighed:
    """What rows weigh in an aggregate: whole numbers on the cells, and what they are multiplied by."""

    cells: Query
    factor: Fraction = Fraction(1)


@dataclass
class Measured:
    """
    The aggregates of one SELECT, as they are found.

    Parameters
    ----------
    images : Images
    scratch : Scratch
    domain : Domain
    """

    images: Images
    scratch: Scratch
    domain: Domain
    asked: list[Weighed | tuple[list[Weighed], tuple[Fraction, ...], float, bool]] = field(
        default_factory=list
    )
    _places: dict[str, int] = field(default_factory=dict)

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
        if name in _REFUSED:
            raise UnsupportedQuery(f"{shown} cannot be answered: {_REFUSED[name]}")
        if node.get("distinct"):
            raise UnsupportedQuery(
                f"{shown} cannot be answered: whether a value occurs may hang on one row; "
                "ask for COUNT(*) with GROUP BY, and see which groups are above 0"
            )
        if name in _QUANTILES:
            return self._quantile(name, arguments, condition, shown)
        wanted = 2 if name in _PAIRS else 0 if name in ("count_star",) else 1
        if len(arguments) != wanted:
            raise UnsupportedQuery(f"{shown}: {name} takes {wanted} arguments")
        if name in ("count_star", "count"):
            return self._ref(self._slot("count", arguments, condition, shown))
        if name in ("count_if", "countif"):
            return self._ref(self._slot("count_if", arguments, condition, shown))
        if name == "sum":
            return self._ref(self._slot("sum", arguments, condition, shown))
        return self._moments(name, arguments, condition, shown)

    def _moments(self, name: str, arguments: Sequence[Tree], condition: Tree | None, shown: str) -> Tree:
        def slot(kind: str, *over: Tree) -> str:
            return f'"m{self._slot(kind, over, condition, shown)}"'

        x = arguments[0]
        if name in _PAIRS:
            y = arguments[1]
            parts = {
                "n": slot("count", x, y), "x": slot("sum", x, y), "y": slot("sum", y, x),
                "xy": slot("product", x, y),
            }  # fmt: skip
            if "xx" in _PAIRS[name]:
                parts["xx"] = slot("square", x, y)
            if "yy" in _PAIRS[name]:
                parts["yy"] = slot("square", y, x)
            return self.scratch.expression(_PAIRS[name].format(**parts))
        parts = {"n": slot("count", x), "x": slot("sum", x)}
        if name in ("avg", "mean"):
            return self.scratch.expression("{x} / nullif({n}, 0)".format(**parts))
        parts["xx"] = slot("square", x)
        moments = {key: text.format(**parts) for key, text in _MOMENTS.items()}
        return self.scratch.expression(_SPREADS[name].format(**moments))

    def _ref(self, slot: int) -> Tree:
        return self.scratch.expression(f'"m{slot}"')

    def _slot(self, kind: str, over: Sequence[Tree], condition: Tree | None, shown: str) -> int:
        key = json.dumps([kind, over, condition], sort_keys=True)
        if key not in self._places:
            weighed = self._weighed(kind, over, shown)
            if condition is not None:
                kept = self.images.truth(condition)
                weighed = Weighed(_kept(weighed.cells, kept), weighed.factor)
            self._places[key] = len(self.asked)
            self.asked.append(weighed)
        return self._places[key]

    def _weighed(self, kind: str, over: Sequence[Tree], shown: str) -> Weighed:
        if kind == "count_if":
            truth = self.images.truth(over[0])
            if (truth.weights == UNKNOWN).all():  # DuckDB says NULL or 0, by how it is written
                raise UnsupportedQuery(f"{shown}: the condition is never true or false; compare with IS NULL")
            return Weighed(truth.spread((truth.weights == TRUE).astype(np.int64)).canonical())
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
        points = [(one, place) for place, one in enumerate(numbers) if one is not None]
        steps = []
        for _, place in points:
            below = image.cells.spread((image.cells.weights <= place).astype(np.int64)).canonical()
            if condition is not None:
                below = _kept(below, self.images.truth(condition))
            steps.append(Weighed(below))
        if not steps:
            raise UnsupportedQuery(f"{shown}: there is no value but NULL")
        known = [one for one, _ in points]
        self.asked.append((steps, tuple(known), float(share), name in ("median", "quantile_cont")))
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
        wanted = groups * sum(1 if isinstance(one, Weighed) else len(one[0]) for one in self.asked)
        if wanted > MAX_GROUPS:
            raise UnsupportedQuery(
                f"the statement needs {wanted:,} counts of {groups:,} groups; the limit is {MAX_GROUPS:,}: "
                "group by fewer or coarser keys, or ask for fewer aggregates"
            )

        def placed(weighed: Weighed) -> tuple[int, ...]:
            found = [query for one in sets for query in group_queries(weighed.cells, one)]
            return tuple(places.setdefault(query, len(places)) for query in found)

        slots: list[Sum | Quantile] = []
        for one in self.asked:
            if isinstance(one, Weighed):
                slots.append(Sum(placed(one), one.factor))
                continue
            steps, points, share, continuous = one
            by_step = [placed(step) for step in steps]
            slots.append(Quantile(tuple(zip(*by_step, strict=True)), points, share, continuous))
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
                f"{shown}: it takes numbers, and {clip(repr(one), 40)} is none; "
                "ask for COUNT(*) with GROUP BY"
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
