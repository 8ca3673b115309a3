"""From an SQL condition to truth values on levels; what is not listed here is refused by name."""

from __future__ import annotations

import difflib
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from sqlglot import exp

from laprasdp.arrays import Flags
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_WORK
from laprasdp.queries.attribute import Booleans, Categories, Dates, Op, spell
from laprasdp.queries.domain import Domain
from laprasdp.sql import compare, truth
from laprasdp.sql.compare import Common, check_text, common
from laprasdp.sql.constant import Value, value
from laprasdp.sql.reference import ColumnRef, natural
from laprasdp.sql.syntax import Node, clip, only, spell_node, unsupported
from laprasdp.sql.truth import Leaf, Truth, join, mapped

_LIKE = 299  # visits that one of LIKE is worth, beyond the first

_COMPARISONS: dict[type, Op] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRROR: dict[Op, Op] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SMALL = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
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
    types : mapping of attribute to DuckDB type
        Of the columns; an attribute that is not in it has the type that is natural to it.
    """

    def __init__(
        self, domain: Domain, table: str, *, quoted: bool = False, types: Mapping[str, str] | None = None
    ) -> None:
        self.domain, self.table, self.quoted = domain, table, quoted
        self._types = types or {}
        self._work = 0

    def column(self, node: exp.Column) -> ColumnRef:
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
        if name is None or folded(name) != folded(wanted):
            raise UnsupportedQuery(_unknown(wanted, exact, self.domain))
        attribute = self.domain[name]
        return ColumnRef(self.domain.axis(name), name, attribute, self._types.get(name) or natural(attribute))

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
            return self._comparison(node)
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
        if isinstance(operand, ColumnRef):
            if not isinstance(operand.attribute, Booleans):
                raise UnsupportedQuery(
                    f"{operand.name}: {operand.attribute.kind} are no truth values; compare it"
                )
            return self._compare("=", operand, Value(True))
        if operand.constant is None or isinstance(operand.constant, bool):
            return truth.constant(_level(operand.constant))
        raise UnsupportedQuery(f"{clip(spell(operand.constant))} is no truth value; compare it with a column")

    def is_null(self, column: ColumnRef) -> Truth:
        """True on the NULL level, false on all others."""
        values = np.zeros(column.attribute.size, dtype=np.int8)
        values[column.attribute.values :] = truth.TRUE
        return Leaf(column.axis, values)

    def grouped(self, node: Node) -> ColumnRef | None:
        """The column that a key of GROUP BY names; None if it is none."""
        column = self.column(node) if isinstance(node, exp.Column) else self.date(node)
        if column is not None and column.timed:
            name = clip(column.name)
            raise UnsupportedQuery(
                f"{name} holds times of day, and groups are whole days; write CAST({name} AS DATE)"
            )
        if column is not None and "COLLATE" in column.type:
            raise UnsupportedQuery(f"{clip(column.name)} has a collation, and groups are exact texts")
        return column

    def date(self, node: Node) -> ColumnRef | None:
        """The column of dates that ``CAST(column AS DATE)`` makes; None for any other node."""
        if type(node) is not exp.Cast or not isinstance(node.this, exp.Column):
            return None
        if node.to.this is not exp.DType.DATE or node.to.args.get("expressions"):
            return None
        only(node, "this", "to")
        column = self.column(node.this)
        return replace(column, type="DATE") if isinstance(column.attribute, Dates) else None

    def _operand(self, node: Node) -> ColumnRef | Value:
        while isinstance(node, exp.Paren):
            only(node, "this")
            node = node.this
        if isinstance(node, exp.Column):
            return self.column(node)
        if (date := self.date(node)) is not None:
            return date
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

    def _comparison(self, node: Node) -> Truth:
        only(node, "this", "expression")
        sides = (node.this, node.expression)
        if any(type(side) in (*_COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ) for side in sides):
            raise unsupported(node, "a chained comparison is written with BETWEEN or AND")
        left, right = map(self._operand, sides)
        return self._compare(_COMPARISONS[type(node)], left, right)

    def _compare(
        self,
        op: Op,
        left: ColumnRef | Value,
        right: ColumnRef | Value,
        shared: Common | None = None,
    ) -> Truth:
        """A comparison in the common type of its operands, or of all operands of BETWEEN or IN."""
        shared = shared or common([left, right])
        if isinstance(left, Value):
            if isinstance(right, Value):
                return truth.constant(_level(compare.constants(op, left, right, shared)))
            return self._compare(_MIRROR[op], right, left, shared)
        if isinstance(right, ColumnRef):
            raise UnsupportedQuery(
                f"a comparison of two columns ({clip(left.name)}, {clip(right.name)}) is not supported; "
                "compare a column with a constant"
            )
        if right.constant is None:
            return truth.constant(truth.UNKNOWN)
        return self._levels(left, lambda: compare.holds(left, op, right, shared))

    def _levels(self, column: ColumnRef, flags: Callable[[], Flags], *, cost: int = 0) -> Truth:
        """Truth values from flags on the values; unknown on NULL.  It visits each level, and costs more."""
        attribute = column.attribute
        self._work += attribute.size + cost
        if self._work > MAX_WORK:
            raise UnsupportedQuery(
                f"the statement has too many conditions on the many levels of {column.name}; ask in parts"
            )
        values = np.full(attribute.size, truth.UNKNOWN, dtype=np.int8)
        try:
            values[: attribute.values] = flags().view(np.int8) * truth.TRUE  # FALSE is 0
        except UnsupportedQuery as error:
            raise UnsupportedQuery(f"{column.name}: {error}") from None
        return Leaf(column.axis, values)

    def _between(self, node: exp.Between) -> Truth:
        if node.args.get("symmetric"):
            raise UnsupportedQuery("BETWEEN SYMMETRIC is not supported; write the smaller bound first")
        only(node, "this", "low", "high")
        item, low, high = (self._operand(node.args[key]) for key in ("this", "low", "high"))
        shared = common([item, low, high])
        bounds = [self._compare(">=", item, low, shared), self._compare("<=", item, high, shared)]
        return join(bounds, least=True)

    def _in(self, node: exp.In) -> Truth:
        if node.args.get("query") is not None:
            raise UnsupportedQuery("IN (a subquery) is not supported; list the values")
        if not node.expressions:
            raise unsupported(node, "IN takes a list of constants in parentheses")
        only(node, "this", "expressions")
        item, *listed = map(self._operand, (node.this, *node.expressions))
        shared = common([item, *listed])
        if not isinstance(item, ColumnRef):
            return join((self._compare("=", item, one, shared) for one in listed), least=False)
        columns = [one for one in listed if isinstance(one, ColumnRef)]
        values = [one for one in listed if isinstance(one, Value)]
        if columns:
            return self._compare("=", item, columns[0], shared)
        known = [one for one in values if one.constant is not None]
        found = self._levels(item, lambda: compare.among(item, known, shared), cost=len(known))
        null = truth.UNKNOWN if len(known) < len(values) else truth.FALSE
        return join([found, truth.constant(null)], least=False)

    def _is(self, node: exp.Is) -> Truth:
        only(node, "this", "expression")
        asked = value(node.expression)
        if asked is None or not (asked.constant is None or isinstance(asked.constant, bool)):
            raise unsupported(node, "IS takes [NOT] NULL, TRUE or FALSE")
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if asked.constant is None:
            column = self.column(inner) if isinstance(inner, exp.Column) else self.date(inner)
            if column is not None:
                return self.is_null(column)
        if asked.constant is None and (constant := value(inner)) is not None:
            return truth.constant(_level(constant.constant is None))
        if not isinstance(inner, exp.Column | exp.Boolean | exp.Null) and not isinstance(
            node.this, exp.Paren
        ):
            raise unsupported(node, "put the condition before IS in parentheses")
        return mapped(self.condition(inner), truth.IS[asked.constant])

    def _same(self, node: Node) -> Truth:
        only(node, "this", "expression")
        left, right = self._operand(node.this), self._operand(node.expression)
        if isinstance(left, Value):
            left, right = right, left
        if isinstance(right, Value) and right.constant is None:
            same = (
                self.is_null(left)
                if isinstance(left, ColumnRef)
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
        if not isinstance(item, ColumnRef) or not isinstance(pattern, Value):
            raise unsupported(node, "LIKE compares a column of categories with a pattern")
        if pattern.constant is not None and not isinstance(pattern.constant, str):
            raise unsupported(node, "the pattern of LIKE is text in single quotes")
        attribute, text = item.attribute, pattern.constant
        if not isinstance(attribute, Categories):
            raise UnsupportedQuery(f"{item.name}: LIKE is for categories, not for {attribute.kind}")
        if item.base == "UUID":
            raise UnsupportedQuery(f"{item.name}: LIKE is for texts, and the column holds UUID; use = or IN")
        if text is None:
            return truth.constant(truth.UNKNOWN)

        def flags() -> Flags:
            check_text(item)
            return attribute.like(text, escape)

        outcome = self._levels(item, flags, cost=_LIKE * attribute.size)
        return mapped(outcome, truth.NOT) if node.args.get("negate") else outcome


def same_name(identifier: exp.Identifier, name: str, *, quoted: bool = False) -> bool:
    """Does an SQL identifier mean `name`?  Quoted ones are exact, unquoted ones fold case."""
    if identifier.quoted or quoted:
        return bool(identifier.name == name)
    return folded(identifier.name) == folded(name)


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


def folded(name: str) -> str:
    """A name without its case; as in DuckDB, only ASCII letters have one."""
    return name.translate(_SMALL)


def _unknown(wanted: str, exact: bool, domain: Domain) -> str:
    other = domain.find(wanted)
    if exact and other is not None:
        return f'"{clip(wanted)}" is not declared; quoted names are exact: write "{clip(other)}" or no quotes'
    note = " (text takes single quotes)" if exact else ""
    for name in domain.names:
        if _letters(name) == _letters(wanted):
            same = unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", wanted)
            form = "Unicode form" if same else "case, which only the letters a to z have in DuckDB"
            return f"no attribute {clip(wanted)} in this {form}{note}; copy {clip(name)} as it is declared"
    near = nearest(wanted, domain.names)
    listed = ", ".join(clip(name, 40) for name in domain.names[:20]) + (", …" if len(domain) > 20 else "")
    hint = f"did you mean {near}?" if near else f"declared: {listed}"
    return f"no attribute {clip(wanted)}{note}; {hint}"


def _letters(name: str) -> str:
    """What two names have in common that look alike: composed letters without case."""
    return unicodedata.normalize("NFC", name).casefold()


def nearest(wanted: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant; names of one or two characters are too short to tell."""
    wanted = wanted[:200].casefold()
    long = {name.casefold(): name for name in names if len(name) > 2}
    near = difflib.get_close_matches(wanted, long, n=1) if len(wanted) > 2 else []
    return long[near[0]] if near else None
