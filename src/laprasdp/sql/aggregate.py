"""What a row weighs in COUNT and SUM."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_WEIGHT
from laprasdp.queries.attribute import Bins, Booleans, Categories, Integers, Reals
from laprasdp.sql import truth
from laprasdp.sql.compare import common
from laprasdp.sql.constant import Value, floating, value
from laprasdp.sql.predicate import Scope
from laprasdp.sql.reference import ColumnRef
from laprasdp.sql.syntax import CAN_DO, Node, clip, only, unsupported
from laprasdp.sql.truth import Case, Leaf, Truth, Weight

AGGREGATES: dict[type, str] = {exp.Count: "count", exp.Sum: "sum"}


def refuse_aggregate(node: Node, scope: Scope) -> UnsupportedQuery:
    """Why this cannot stand where COUNT and SUM can."""
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return UnsupportedQuery(f"SELECT * is not supported: rows are private; {CAN_DO}")
    if isinstance(node, exp.Window):
        return UnsupportedQuery("OVER (a window) is not supported; use GROUP BY")
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return UnsupportedQuery("IGNORE NULLS is not supported; leave it out: SUM adds nothing for NULL")
    if isinstance(node, exp.Subquery | exp.Select):
        return UnsupportedQuery(f"a subquery is not supported; {CAN_DO}")
    hint = "the aggregates are COUNT and SUM"
    if isinstance(node, exp.Avg):
        column = scope.column(node.this) if isinstance(node.this, exp.Column) else None
        if column is None or isinstance(column.attribute, Integers | Reals | Booleans):
            hint = "ask for a SUM and a COUNT and divide"
        else:
            hint = f"{clip(column.name)} holds {column.attribute.kind}: ask for COUNT(*) with GROUP BY"
    return unsupported(node, hint)


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
    if isinstance(inner, exp.Case | exp.If):
        return _case(inner, scope, count=type(node) is exp.Count), always
    if type(node) is exp.Sum:
        constant = value(inner)
        if constant is not None and constant.constant is None:
            raise UnsupportedQuery("SUM(NULL): there is no value but NULL; leave it out")
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


def _case(node: exp.Case | exp.If, scope: Scope, *, count: bool) -> Case:
    """CASE WHEN … THEN … ELSE … END, or IF(…, …, …), which is the same with one branch."""
    if isinstance(node, exp.If):
        only(node, "this", "true", "false")
        if node.args.get("false") is None:
            raise UnsupportedQuery("IF takes a condition and two values, like IF(age > 30, 1, 0)")
        parts, default = [node], node.args["false"]
    else:
        if node.this is not None:
            raise unsupported(node, "write CASE WHEN column = constant THEN …")
        only(node, "ifs", "default")
        parts, default = node.args["ifs"], node.args.get("default")
        for part in parts:
            only(part, "this", "true")
    default = exp.Null() if default is None else default
    _check_agree([*(part.args["true"] for part in parts), default], scope)
    weigh = _presence if count else _summand
    branches = [(scope.condition(part.this), weigh(part.args["true"], scope)) for part in parts]
    return Case(tuple(branches), weigh(default, scope))


def _check_agree(nodes: Sequence[Node], scope: Scope) -> None:
    """Refuse values of CASE that DuckDB would convert to a common type, unless that changes none."""
    given = [scope.column(node) if isinstance(node, exp.Column) else value(node) for node in nodes]
    operands = [one for one in given if isinstance(one, ColumnRef) or (one and one.constant is not None)]
    if len({_sort(one) for one in operands}) > 1:
        raise UnsupportedQuery("THEN and ELSE of different types are not supported; give all the same type")
    shared = common(operands)
    if shared.floating is None:
        return
    most = Fraction(2**shared.floating.bits)
    for one in operands:
        if isinstance(one, ColumnRef):
            exact = one.base in ("FLOAT", "DOUBLE") or one.reach <= most
        else:
            exact = not isinstance(one.constant, Fraction) or floating(one, shared.floating) == one.constant
        if not exact:
            raise UnsupportedQuery(
                "THEN and ELSE become FLOAT or DOUBLE here, which rounds one of them; use smaller numbers"
            )


def _sort(one: ColumnRef | Value) -> str:
    """Numbers, texts, dates or truth values."""
    held = one.attribute if isinstance(one, ColumnRef) else one.constant
    if isinstance(held, Booleans | bool):
        return "truth"
    if isinstance(held, Integers | Bins | Reals | Fraction):
        return "number"
    return "text" if isinstance(held, Categories | str) else "date"


def _summand(node: Node, scope: Scope) -> Leaf:
    """What a value adds to a SUM; NULL adds nothing."""
    if isinstance(node, exp.Column):
        column = scope.column(node)
        attribute = column.attribute
        if not isinstance(attribute, Integers | Booleans):
            raise UnsupportedQuery(
                f"{clip(column.name)}: SUM is for integers, reals and booleans, not for {attribute.kind}; "
                "ask for COUNT(*) with GROUP BY, or have it declared as one of these"
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
