"""Which values are linear combinations of aggregates or ratios of such: their law has a closed form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from laprasdp.scratch import Tree
from laprasdp.sql.result import ColumnForm, Formula, Linear, Quantile, Sum

_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"))
_NUMBERS = frozenset((*_WHOLE, "DECIMAL", "DOUBLE", "FLOAT"))


def form_of(node: Tree, slots: Sequence[Sum | Quantile]) -> Formula | int | None:
    """How an expression over a block's columns follows from its aggregates; None if in no closed form."""
    column = _column(node)
    if column is not None and column[0] == "m":
        slot = int(column[1:])
        return slot if isinstance(slots[slot], Quantile) else Formula(Linear({slot: Fraction(1)}))
    match node["class"]:
        case "CONSTANT":
            number = constant_of(node)
            return None if number is None else Formula(Linear(constant=number))
        case "CAST":
            return _cast(node, slots)
        case "FUNCTION":
            return _function(node, slots)
        case "WINDOW":
            return _window(node, slots)
        case "OPERATOR" if node["type"] in ("OPERATOR_COALESCE", "OPERATOR_NULLIF"):
            return form_of(node["children"][0], slots)
    return None


def column_form(node: Tree, slots: Sequence[Sum | Quantile]) -> ColumnForm:
    """What `form_of` says of a column of a result, which may be a list of values."""
    if node.get("function_name") == "list_value":
        return tuple(form_of(part, slots) for part in node["children"])
    return form_of(node, slots)


def constant_of(node: Tree) -> Fraction | None:
    """The number that a constant is; None for any other node."""
    if node["class"] != "CONSTANT":
        return None
    held: dict[str, Any] = node["value"]
    if held["is_null"] or held["type"]["id"] not in _NUMBERS or isinstance(held["value"], dict | str):
        return None
    if held["type"]["id"] == "DECIMAL":
        return Fraction(held["value"], 10 ** held["type"]["type_info"]["scale"])
    return Fraction(repr(held["value"]))


def _column(node: Tree) -> str | None:
    names = node.get("column_names") or [""]
    return names[0] if len(names) == 1 and names[0] else None


def _exact(node: Tree, slots: Sequence[Sum | Quantile]) -> Formula | None:
    """A form to go on from: nothing rounded."""
    found = form_of(node, slots)
    return found if isinstance(found, Formula) and found.digits is None else None


def _cast(node: Tree, slots: Sequence[Sum | Quantile]) -> Formula | int | None:
    found = form_of(node["child"], slots)
    kind = node["cast_type"]
    if kind["id"] in ("DOUBLE", "FLOAT"):
        return found
    if not isinstance(found, Formula) or found.digits is not None:
        return None
    if kind["id"] == "DECIMAL":
        return Formula(found.top, found.bottom, kind["type_info"]["scale"])
    return Formula(found.top, found.bottom, 0) if kind["id"] in _WHOLE else None


def _function(node: Tree, slots: Sequence[Sum | Quantile]) -> Formula | None:
    name, parts = node["function_name"], node["children"]
    if name == "nullif":
        return _exact(parts[0], slots)
    if name == "round":
        found = _exact(parts[0], slots)
        digits = constant_of(parts[1]) if len(parts) == 2 else Fraction(0)
        if found is None or digits is None:
            return None
        return Formula(found.top, found.bottom, int(digits))
    if name not in ("+", "-", "*", "/"):
        return None
    forms = [_exact(part, slots) for part in parts]
    if None in forms:
        return None
    one = forms[0]
    assert one is not None
    if len(forms) == 1:
        return Formula(one.top.scaled(Fraction(-1)), one.bottom) if name == "-" else one
    other = forms[1]
    assert other is not None
    if name in ("+", "-"):
        return _added(one, Formula(other.top.scaled(Fraction(-1)), other.bottom) if name == "-" else other)
    return _product(one, other) if name == "*" else _quotient(one, other)


def _added(one: Formula, other: Formula) -> Formula | None:
    if one.bottom == other.bottom:
        return Formula(one.top.plus(other.top), one.bottom)
    for ratio, rest in ((one, other), (other, one)):
        if rest.top.fixed and rest.bottom.fixed and rest.bottom.constant:
            constant = rest.top.constant / rest.bottom.constant
            return Formula(ratio.top.plus(ratio.bottom.scaled(constant)), ratio.bottom)
    return None


def _product(one: Formula, other: Formula) -> Formula | None:
    for form, rest in ((one, other), (other, one)):
        if rest.top.fixed and rest.bottom.fixed and rest.bottom.constant:
            return Formula(form.top.scaled(rest.top.constant / rest.bottom.constant), form.bottom)
    return None


def _quotient(one: Formula, other: Formula) -> Formula | None:
    if other.top.fixed:
        return _product(one, Formula(other.bottom, other.top)) if other.top.constant else None
    if one.bottom.fixed and other.bottom.fixed and one.bottom.constant:
        return Formula(one.top.scaled(other.bottom.constant / one.bottom.constant), other.top)
    return Formula(one.top, other.top) if one.bottom == other.bottom else None


def _window(node: Tree, slots: Sequence[Sum | Quantile]) -> Formula | None:
    """SUM(…) OVER (PARTITION BY keys): a sum over groups."""
    if (
        node["function_name"] != "sum"
        or node.get("orders")
        or node.get("filter_expr")
        or node.get("distinct")
    ):
        return None
    keys = [_column(part) or "" for part in node.get("partitions", ())]
    inner = _exact(node["children"][0], slots)
    if inner is None or not inner.bottom.fixed or any(key[:1] != "k" for key in keys):
        return None
    if (node["start"], node["end"]) != ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
        return None
    top = inner.top.scaled(1 / inner.bottom.constant)
    return Formula(Linear(over=((Fraction(1), top, tuple(int(key[1:]) for key in keys)),)))
