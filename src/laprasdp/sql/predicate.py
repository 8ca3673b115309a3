"""From an SQL condition to truth values on levels; what is not listed here is refused by name."""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
from sqlglot import exp

from laprasdp.attribute import Attribute, Booleans, Categories, Constant, Dates, Flags, Op, spell
from laprasdp.attribute.base import COMPARE
from laprasdp.domain import Domain
from laprasdp.errors import QuerySyntaxError, UnsupportedQuery
from laprasdp.limits import MAX_WORK
from laprasdp.sql import truth
from laprasdp.sql.syntax import Node, clip, only, spell_node, unsupported
from laprasdp.sql.truth import Leaf, Truth, join, mapped

MAX_DIGITS = 38
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

_COMPARISONS: dict[type, Op] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRROR: dict[Op, Op] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INSTEAD: dict[type, str] = {
    exp.ILike: "ILIKE is not supported; use LIKE (case counts) or IN",
    exp.Glob: "GLOB is not supported; use LIKE",
    exp.SimilarTo: "SIMILAR TO is not supported; use LIKE",
    exp.RegexpLike: "a regular expression is not supported; use LIKE",
    exp.RegexpFullMatch: "a regular expression is not supported; use LIKE",
    exp.Exists: "EXISTS (a subquery) is not supported; conditions are on the columns of one table",
    exp.Subquery: "a subquery is not supported; conditions are on the columns of one table",
    exp.Select: "a subquery is not supported; conditions are on the columns of one table",
    exp.Case: "CASE inside WHERE is not supported; write the condition itself",
    exp.Tuple: "a row of values in parentheses is not supported; compare column by column",
    exp.Interval: "INTERVAL is not supported; write the date itself",
    exp.Any: "ANY is not supported; use IN or OR",
    exp.Collate: "COLLATE is not supported; text compares by its characters",
    exp.Star: "* is not supported here; only COUNT(*) takes it",
    exp.Order: "ORDER BY inside an aggregate is not supported; leave it out",
    exp.Distinct: "DISTINCT inside an aggregate is not supported; ask for COUNT(*)",
}


@dataclass(frozen=True)
class Column:
    """A declared attribute that a statement names."""

    axis: int
    name: str
    attribute: Attribute


@dataclass(frozen=True)
class Value:
    """A constant; `double` where DuckDB holds it as a binary floating-point number.  None is NULL."""

    constant: Constant | None
    double: bool = False


class Scope:
    """
    What the names of a statement mean.

    Parameters
    ----------
    domain : Domain
    table : str
        The only qualifier that a column may have: the alias of the table, or its name.
    quoted : bool
        Unquoted qualifiers do not fold case to meet this one.
    """

    def __init__(self, domain: Domain, table: str, *, quoted: bool = False) -> None:
        self.domain, self.table, self.quoted = domain, table, quoted
        self._work = 0

    def column(self, node: exp.Column) -> Column:
        """The attribute that a column names."""
        only(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise UnsupportedQuery(f"{spell_node(node)} is not supported; name the columns")
        qualifier = node.args.get("table")
        if qualifier is not None and not same_name(qualifier, self.table, quoted=self.quoted):
            raise UnsupportedQuery(
                f"{clip(qualifier.name)} is not the table of this statement; it is {clip(self.table)}"
            )
        wanted, exact = node.this.name, bool(node.this.quoted)
        name = self.domain.find(wanted, exact=exact)
        if name is None:
            raise UnsupportedQuery(_unknown(wanted, exact, self.domain))
        return Column(self.domain.axis(name), name, self.domain[name])

    def condition(self, node: Node) -> Truth:
        """
        The truth values of a condition.

        Raises
        ------
        UnsupportedQuery
            A construct, a constant or a column that cannot be asked for; the message names it.
        """
        kind = type(node)
        if isinstance(node, exp.Paren):
            only(node, "this")
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            return join((self.condition(part) for part in _chain(node)), least=kind is exp.And)
        if isinstance(node, exp.Not):
            only(node, "this")
            return mapped(self.condition(node.this), truth.NOT)
        if kind in _COMPARISONS:
            only(node, "this", "expression")
            if any(
                type(side) in (*_COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ)
                for side in (node.this, node.expression)
            ):
                raise unsupported(node, "a chained comparison is written with BETWEEN or AND")
            return self._compare(
                _COMPARISONS[kind],
                self._operand(node.this),
                self._operand(node.expression),
            )
        special: dict[type, Callable[..., Truth]] = {
            exp.Between: self._between,
            exp.In: self._in,
            exp.Is: self._is,
            exp.Like: self._like,
            exp.Escape: self._escape,
            exp.NullSafeEQ: self._same,
            exp.NullSafeNEQ: self._same,
        }
        if kind in special:
            return special[kind](node)
        operand = self._operand(node)
        if isinstance(operand, Column):
            if not isinstance(operand.attribute, Booleans):
                raise UnsupportedQuery(
                    f"{operand.name}: {operand.attribute.kind} are no truth values; compare it"
                )
            return self._holds(operand, "=", True)
        if operand.constant is None or isinstance(operand.constant, bool):
            return truth.constant(_level(operand.constant))
        raise UnsupportedQuery(f"{clip(spell(operand.constant))} is no truth value; compare it with a column")

    def is_null(self, column: Column) -> Truth:
        """True on the NULL level, false on all others."""
        values = np.zeros(column.attribute.size, dtype=np.int8)
        values[column.attribute.values :] = truth.TRUE
        return Leaf(column.axis, values)

    def _operand(self, node: Node) -> Column | Value:
        while isinstance(node, exp.Paren):
            only(node, "this")
            node = node.this
        if isinstance(node, exp.Column):
            return self.column(node)
        found = value(node)
        if found is not None:
            return found
        if type(node) in _INSTEAD:
            raise UnsupportedQuery(_INSTEAD[type(node)])
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
            raise unsupported(
                node, "a condition in the place of a value; use IS TRUE, AND or OR, with parentheses"
            )
        raise unsupported(node, "a condition compares a column with a constant")

    def _compare(self, op: Op, left: Column | Value, right: Column | Value) -> Truth:
        if isinstance(left, Value):
            if isinstance(right, Value):
                return truth.constant(_level(_compare_constants(op, left, right)))
            return self._compare(_MIRROR[op], right, left)
        if isinstance(right, Column):
            raise UnsupportedQuery(
                f"a comparison of two columns ({clip(left.name)}, {clip(right.name)}) is not supported; "
                "compare a column with a constant"
            )
        if right.constant is None:
            return truth.constant(truth.UNKNOWN)
        return self._holds(left, op, right.constant)

    def _holds(self, column: Column, op: Op, constant: Constant) -> Truth:
        if isinstance(column.attribute, Dates) and isinstance(constant, str):
            constant = _date(constant, column.name)
        return self._levels(column, lambda: column.attribute.holds(op, constant))

    def _levels(self, column: Column, flags: Callable[[], Flags]) -> Truth:
        """Truth values from flags on the values; unknown on NULL."""
        attribute = column.attribute
        self._work += attribute.size
        if self._work > MAX_WORK:
            raise UnsupportedQuery(
                f"the statement has too many conditions on the many levels of {column.name}; ask in parts"
            )
        values = np.full(attribute.size, truth.UNKNOWN, dtype=np.int8)
        try:
            values[: attribute.values] = np.where(flags(), truth.TRUE, truth.FALSE)
        except UnsupportedQuery as error:
            raise UnsupportedQuery(f"{column.name}: {error}") from None
        return Leaf(column.axis, values)

    def _between(self, node: exp.Between) -> Truth:
        if node.args.get("symmetric"):
            raise UnsupportedQuery("BETWEEN SYMMETRIC is not supported; write the smaller bound first")
        only(node, "this", "low", "high")
        item, low, high = agreed([self._operand(node.args[key]) for key in ("this", "low", "high")])
        return join([self._compare(">=", item, low), self._compare("<=", item, high)], least=True)

    def _in(self, node: exp.In) -> Truth:
        if node.args.get("query") is not None:
            raise UnsupportedQuery("IN (a subquery) is not supported; list the values")
        if not node.expressions:
            raise unsupported(node, "IN takes a list of constants in parentheses")
        only(node, "this", "expressions")
        item, *listed = agreed([self._operand(node.this), *map(self._operand, node.expressions)])
        return join((self._compare("=", item, one) for one in listed), least=False)

    def _is(self, node: exp.Is) -> Truth:
        only(node, "this", "expression")
        asked = value(node.expression)
        if asked is None or not (asked.constant is None or isinstance(asked.constant, bool)):
            raise unsupported(node, "IS takes [NOT] NULL, TRUE or FALSE")
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if asked.constant is None and isinstance(inner, exp.Column):
            return self.is_null(self.column(inner))
        if asked.constant is None and (constant := value(inner)) is not None:
            return truth.constant(_level(constant.constant is None))
        if not isinstance(inner, exp.Column | exp.Boolean | exp.Null) and not isinstance(
            node.this, exp.Paren
        ):
            raise unsupported(node, "put the condition before IS in parentheses")
        return mapped(self.condition(inner), truth.IS[asked.constant])

    def _same(self, node: Node) -> Truth:
        only(node, "this", "expression")
        left, right = agreed([self._operand(node.this), self._operand(node.expression)])
        if isinstance(left, Value):
            left, right = right, left
        if isinstance(right, Value) and right.constant is None:
            same = (
                self.is_null(left)
                if isinstance(left, Column)
                else truth.constant(_level(left.constant is None))
            )
        else:
            same = mapped(self._compare("=", left, right), (truth.FALSE, truth.FALSE, truth.TRUE))
        return same if isinstance(node, exp.NullSafeEQ) else mapped(same, truth.NOT)

    def _escape(self, node: exp.Escape) -> Truth:
        only(node, "this", "expression")
        escape = value(node.expression)
        if not isinstance(node.this, exp.Like) or escape is None or not isinstance(escape.constant, str):
            raise unsupported(node, "ESCAPE follows LIKE and takes one character")
        return self._like(node.this, escape.constant)

    def _like(self, node: exp.Like, escape: str | None = None) -> Truth:
        only(node, "this", "expression", "negate")
        item = self._operand(node.this)
        pattern = self._operand(node.expression)
        if not isinstance(item, Column) or not isinstance(pattern, Value):
            raise unsupported(node, "LIKE compares a column of categories with a pattern")
        if pattern.constant is not None and not isinstance(pattern.constant, str):
            raise unsupported(node, "the pattern of LIKE is text in single quotes")
        attribute, text = item.attribute, pattern.constant
        if not isinstance(attribute, Categories):
            raise UnsupportedQuery(f"{item.name}: LIKE is for categories, not for {attribute.kind}")
        if text is None:
            return truth.constant(truth.UNKNOWN)
        outcome = self._levels(item, lambda: attribute.like(text, escape))
        return mapped(outcome, truth.NOT) if node.args.get("negate") else outcome


def value(node: Node) -> Value | None:
    """The constant that a node spells, or None if it is no constant."""
    match node:
        case exp.Paren():
            only(node, "this")
            return value(node.this)
        case exp.Null():
            return Value(None)
        case exp.Boolean():
            return Value(bool(node.this))
        case exp.Literal():
            return Value(str(node.this)) if node.is_string else _number(str(node.this))
        case exp.Neg():
            only(node, "this")
            inner = value(node.this)
            if inner is None or not (inner.constant is None or isinstance(inner.constant, Fraction)):
                return None
            return Value(None if inner.constant is None else -inner.constant, inner.double)
        case exp.Cast() if (
            type(node) is exp.Cast and isinstance(node.this, exp.Literal) and node.this.is_string
        ):
            only(node, "this", "to")
            if node.to.this is exp.DType.DATE:
                return Value(_date(str(node.this.this)))
    return None


def agreed(operands: Sequence[Column | Value]) -> list[Column | Value]:
    """The operands of one comparison in DuckDB's common type: one DOUBLE makes all numbers so."""
    if not any(isinstance(one, Value) and one.double for one in operands):
        return list(operands)
    return [
        Value(Fraction(float(one.constant)), True)
        if isinstance(one, Value) and isinstance(one.constant, Fraction)
        else one
        for one in operands
    ]


def same_name(identifier: exp.Identifier, name: str, *, quoted: bool = False) -> bool:
    """Does an SQL identifier mean `name`?  Quoted ones are exact, unquoted ones fold case."""
    if identifier.quoted or quoted:
        return bool(identifier.name == name)
    return bool(identifier.name.casefold() == name.casefold())


def _chain(node: Node) -> list[Node]:
    """The terms of a AND b AND c, in order, without recursion."""
    terms: list[Node] = []
    stack: list[Node] = [node]
    while stack:
        one = stack.pop()
        if type(one) is type(node):
            only(one, "this", "expression")
            stack += [one.args["expression"], one.args["this"]]
        else:
            terms.append(one)
    return terms


def _level(known: bool | None) -> int:
    return truth.UNKNOWN if known is None else truth.TRUE if known else truth.FALSE


def _compare_constants(op: Op, left: Value, right: Value) -> bool | None:
    first, second = (one.constant for one in cast(list[Value], agreed([left, right])))
    if first is None or second is None:
        return None
    if isinstance(first, dt.date) and isinstance(second, str):
        second = _date(second)
    if isinstance(first, str) and isinstance(second, dt.date):
        first = _date(first)
    if type(first) is not type(second):
        raise UnsupportedQuery(f"{clip(spell(first))} is not comparable with {clip(spell(second))}")
    return bool(COMPARE[op](first, second))


def _number(text: str) -> Value:
    if _NUMBER.fullmatch(text) is None:
        raise QuerySyntaxError(f"{clip(text)} is not a number")
    if "e" not in text.lower() and sum(map(str.isdigit, text)) <= MAX_DIGITS:
        return Value(Fraction(int(text) if text.isdigit() else text))
    try:
        return Value(Fraction(float(text)), True)
    except OverflowError:
        raise UnsupportedQuery(f"the number {clip(text)} is out of range") from None


def _date(text: str, column: str = "") -> dt.date:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            pass
    raise UnsupportedQuery(
        f"{column + ': ' if column else ''}{clip(spell(text))} is not a date like '2024-01-31'"
    )


def _unknown(wanted: str, exact: bool, domain: Domain) -> str:
    other = domain.find(wanted)
    if exact and other is not None:
        return f'"{clip(wanted)}" is not declared; quoted names are exact: write "{clip(other)}" or no quotes'
    folded = {name.casefold(): name for name in domain.names}
    near = difflib.get_close_matches(wanted[:200].casefold(), folded, n=1)
    listed = ", ".join(clip(name, 40) for name in domain.names[:20]) + (", …" if len(domain) > 20 else "")
    hint = f"did you mean {folded[near[0]]}?" if near else f"declared: {listed}"
    note = " (text takes single quotes)" if exact else ""
    return f"no attribute {clip(wanted)}{note}; {hint}"
