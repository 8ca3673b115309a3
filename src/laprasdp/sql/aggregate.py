"""What a row weighs in COUNT and SUM."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from laprasdp.attribute import Booleans, Integers
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_WEIGHT
from laprasdp.sql import truth
from laprasdp.sql.predicate import Scope, value
from laprasdp.sql.syntax import CAN_DO, Node, clip, only, unsupported
from laprasdp.sql.truth import Case, Leaf, Truth, Weight

AGGREGATES: dict[type, str] = {exp.Count: "count", exp.Sum: "sum"}


def refuse_aggregate(node: Node) -> UnsupportedQuery:
    """Why this cannot stand where COUNT and SUM can."""
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return UnsupportedQuery(f"SELECT * is not supported: rows are private; {CAN_DO}")
    if isinstance(node, exp.Window):
        return UnsupportedQuery("OVER (a window) is not supported; use GROUP BY")
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return UnsupportedQuery("IGNORE NULLS is not supported; leave it out: SUM adds nothing for NULL")
    if isinstance(node, exp.Subquery | exp.Select):
        return UnsupportedQuery(f"a subquery is not supported; {CAN_DO}")
    divide = isinstance(node, exp.Avg)
    return unsupported(
        node, "ask for a SUM and a COUNT and divide" if divide else "the aggregates are COUNT and SUM"
    )


def weight(node: Node, scope: Scope) -> tuple[Weight, Truth]:
    """
    What each row weighs, and the condition under which it counts.

    Parameters
    ----------
    node : a COUNT or SUM of sqlglot
    scope : Scope

    Raises
    ------
    UnsupportedQuery
        What is counted or summed is none of: ``*``, a constant, a column, CASE; for SUM also a condition.
    """
    one, always = truth.constant(1, np.int64), truth.constant(truth.TRUE)
    inner = node.this
    while isinstance(inner, exp.Paren):
        only(inner, "this")
        inner = inner.this
    if isinstance(inner, exp.Distinct):
        raise unsupported(
            node, "DISTINCT inside an aggregate cannot be asked; ask for COUNT(*) with GROUP BY"
        )
    only(node, "this", "big_int")
    if isinstance(inner, exp.Case):
        return _case(inner, scope, count=type(node) is exp.Count), always
    if type(node) is exp.Sum:
        constant = value(inner)
        if isinstance(inner, exp.Column) or constant is not None:
            return _summand(inner, scope), always
        return Case(((scope.condition(inner), one),), truth.constant(0, np.int64)), always
    if type(inner) is exp.Star:
        only(inner)
        return one, always
    if isinstance(inner, exp.Column):
        return one, truth.mapped(scope.is_null(scope.column(inner)), truth.NOT)
    constant = value(inner)
    if constant is None:
        raise unsupported(node, "use COUNT(*) with FILTER (WHERE …) or WHERE")
    if constant.constant is None:
        raise UnsupportedQuery("COUNT(NULL) counts nothing; ask for COUNT(*)")
    return one, always


def _case(node: exp.Case, scope: Scope, *, count: bool) -> Case:
    if node.this is not None:
        raise unsupported(node, "write CASE WHEN column = constant THEN …")
    only(node, "ifs", "default")
    weigh = _presence if count else _summand
    branches = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        branches.append((scope.condition(branch.this), weigh(branch.args["true"], scope)))
    default = node.args.get("default")
    return Case(tuple(branches), weigh(exp.Null() if default is None else default, scope))


def _summand(node: Node, scope: Scope) -> Leaf:
    """What a value adds to a SUM; NULL adds nothing."""
    if isinstance(node, exp.Column):
        column = scope.column(node)
        attribute = column.attribute
        if not isinstance(attribute, Integers | Booleans):
            raise UnsupportedQuery(
                f"{clip(column.name)}: SUM is for integers and booleans, not for {attribute.kind}"
            )
        start = attribute.min if isinstance(attribute, Integers) else 0
        if max(abs(start), abs(start + attribute.values - 1)) > MAX_WEIGHT:
            raise UnsupportedQuery(f"{clip(column.name)}: SUM is for values up to {MAX_WEIGHT:,}")
        values = np.zeros(attribute.size, dtype=np.int64)
        values[: attribute.values] = start + np.arange(attribute.values)
        return Leaf(column.axis, values)
    constant = value(node)
    given: Any = 0 if constant is None or constant.constant is None else constant.constant
    if constant is None or not isinstance(given, int | Fraction):
        raise unsupported(
            node, "SUM adds whole numbers, a column of integers, or CASE WHEN … THEN … ELSE … END"
        )
    if given.denominator != 1 or not -MAX_WEIGHT <= given <= MAX_WEIGHT:
        raise unsupported(node, f"SUM adds whole numbers up to {MAX_WEIGHT:,}; scale and divide the answer")
    return truth.constant(int(given), np.int64)


def _presence(node: Node, scope: Scope) -> Leaf:
    """1 where COUNT counts a value, 0 where it is NULL."""
    if isinstance(node, exp.Column):
        column = scope.column(node)
        values = np.zeros(column.attribute.size, dtype=np.int64)
        values[: column.attribute.values] = 1
        return Leaf(column.axis, values)
    constant = value(node)
    if constant is None:
        raise unsupported(node, "THEN and ELSE take a constant or a column")
    return truth.constant(int(constant.constant is not None), np.int64)
