"""From an SQL statement to canonical queries: one, or one for every declared group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from laprasdp.errors import OtherTable, UnsupportedQuery
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.sql import truth
from laprasdp.sql.aggregate import AGGREGATES, refuse_aggregate, weight
from laprasdp.sql.group import group_by, group_levels, group_queries, order_by
from laprasdp.sql.predicate import Scope, same_name
from laprasdp.sql.reference import ColumnRef
from laprasdp.sql.result import Result
from laprasdp.sql.shapes import Shapes
from laprasdp.sql.syntax import (
    Node,
    check_read,
    check_text,
    clauses,
    clip,
    only,
    spell_node,
    too_deep,
    unsupported,
)
from laprasdp.sql.truth import Truth


@dataclass(frozen=True)
class Statement:
    """
    What a statement asks.

    Attributes
    ----------
    text : str
        As given, stripped.
    queries : tuple of Query, or Groups
        One; or one for every declared group, empty groups included, in the order of ORDER BY, else of
        the levels.
    by : tuple of str
        Attributes of GROUP BY, in its order, as the domain spells them.
    groups : tuple of tuples
        The labels of each group, aligned with `queries`; None is NULL.
    aggregate : str
        Name of the output column: the alias, or "count" or "sum".
    column : str
        The alias, or DuckDB's own name of the column.
    result : Result, optional
        The rows that it shows as a function of what its queries answer, where they are not those answers.
    """

    text: str
    queries: tuple[Query, ...] | Groups
    by: tuple[str, ...] = ()
    groups: tuple[tuple[Any, ...], ...] = ()
    aggregate: str = "count"
    column: str = "count_star()"
    result: Result | None = None


def parse(
    text: str,
    domain: Domain,
    table: str,
    shapes: Shapes | None = None,
    types: Mapping[str, str] | None = None,
) -> Statement:
    """
    Read one statement; nothing private is looked at and nothing is charged.

    Parameters
    ----------
    text : str
    domain : Domain
    table : str
        The declared name of the one table.
    shapes : Shapes, optional
        What was read before; without, sqlglot reads every text.
    types : mapping of attribute to DuckDB type, optional
        Of the table's columns, as `Table.types`; without, each attribute has its natural type.

    Returns
    -------
    Statement

    Raises
    ------
    QuerySyntaxError
        It cannot be read as SQL; the message has line and column.
    UnsupportedQuery
        It can be read but not be asked; the message names the construct and the nearest thing supported.

    Notes
    -----
    The meaning is DuckDB's on columns of these types, or the statement is refused.  A sum over no row is 0
    here and NULL in SQL.  Groups that WHERE leaves empty are answered too, where SQL would leave them out.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Integers
    >>> domain = Domain(age=Integers(0, 9))
    >>> parse("SELECT COUNT(*) FROM people WHERE age > 3", domain, "people").queries[0].weights
    array([0, 1])
    """
    text = text.strip()
    check_text(text)
    try:
        with (shapes or Shapes()).read(text) as select:
            return _statement(text, select, domain, table, types)
    except RecursionError:
        raise too_deep() from None
    except UnsupportedQuery as error:
        message = clip(str(error), 1000)
        if message == str(error):
            raise
        raise type(error)(message) from None


def _statement(
    text: str, select: exp.Select, domain: Domain, table: str, types: Mapping[str, str] | None
) -> Statement:
    clauses(select, "expressions", "from_", "where", "group", "order")
    scope = _scope(select.args.get("from_"), domain, table, types)
    items, aggregate, name = _select_list(select.expressions, scope)
    by = group_by(select.args.get("group"), items, scope)
    for column in items:
        if column is not None and column not in by:
            raise UnsupportedQuery(
                f"{clip(column.name)} is selected but not in GROUP BY; add it there, or leave it out"
            )
    if name in [column.name for column in by]:
        raise UnsupportedQuery(
            f"the aggregate would be called {clip(name)} like a group column; give it another alias (AS)"
        )
    order = order_by(select.args.get("order"), items, by, scope)
    conditions: list[Truth] = [truth.constant(truth.TRUE)]
    if (where := select.args.get("where")) is not None:
        only(where, "this")
        conditions.append(scope.condition(where.this))
    if isinstance(aggregate, exp.Filter):
        only(aggregate, "this", "expression")
        only(aggregate.expression, "this")
        conditions.append(scope.condition(aggregate.expression.this))
        aggregate = aggregate.this
    weighs, counted = weight(aggregate, scope)
    check_read(select)
    levels = group_levels(by, order)
    tensor = truth.tensor(domain, weighs, truth.join([*conditions, counted], least=True))
    if not by:
        query = Query.over(domain, tensor.axes, tensor.labels, tensor.weights).canonical()
        return Statement(text, (query,), aggregate=name)
    return Statement(
        text,
        group_queries(domain, tensor, by, levels),
        tuple(column.name for column in by),
        tuple(tuple(c.attribute.label(n) for c, n in zip(by, level, strict=True)) for level in levels),
        name,
    )


def _scope(source: exp.From | None, domain: Domain, table: str, types: Mapping[str, str] | None) -> Scope:
    if source is None:
        raise UnsupportedQuery(f"SELECT without FROM is not supported; the table is {clip(table)}")
    only(source, "this")
    node = source.this
    if isinstance(node, exp.Subquery):
        raise UnsupportedQuery(f"a subquery in FROM is not supported; the table is {clip(table)}")
    if not isinstance(node, exp.Table):
        raise unsupported(node, f"the table is {clip(table)}")
    if not isinstance(node.this, exp.Identifier):
        raise UnsupportedQuery(
            f"the table function {spell_node(node.this)} is not supported; the table is {clip(table)}"
        )
    clauses(node, "this", "alias")
    if not same_name(node.this, table):
        raise OtherTable(f"no table {clip(node.this.name)}; the declared table is {clip(table)}")
    alias = node.args.get("alias")
    if alias is None:
        return Scope(domain, table, types=types)
    if alias.args.get("columns") or not isinstance(alias.this, exp.Identifier):
        raise UnsupportedQuery(
            "new names for the columns of a table are not supported; use the declared names"
        )
    only(alias, "this")
    return Scope(domain, alias.this.name, quoted=bool(alias.this.quoted), types=types)


def _select_list(nodes: Sequence[Node], scope: Scope) -> tuple[list[ColumnRef | None], Node, str]:
    """All items by position, None for the aggregate; the aggregate; its name."""
    items: list[ColumnRef | None] = []
    found: Node = None
    name = ""
    for node in nodes:
        alias = ""
        if isinstance(node, exp.Alias):
            only(node, "this", "alias")
            alias, node = node.alias, node.this
        while isinstance(node, exp.Paren):
            only(node, "this")
            node = node.this
        star = isinstance(node, exp.Column) and not isinstance(node.this, exp.Identifier)
        column = None if star else scope.grouped(node)
        if column is not None:
            if alias:
                raise UnsupportedQuery(
                    f"an alias ({clip(alias)}) of a group column is not supported; it keeps its name"
                )
            items.append(column)
            continue
        function = node.this if type(node) is exp.Filter else node
        if type(function) not in AGGREGATES:
            raise refuse_aggregate(function, scope)
        if found is not None:
            raise UnsupportedQuery(
                "several aggregates in one statement are not supported; ask one statement for each"
            )
        found, name = node, alias or AGGREGATES[type(function)]
        items.append(None)
    if found is None:
        what = clip(items[0].name) if items and items[0] else "nothing"
        raise UnsupportedQuery(
            f"SELECT {what} without an aggregate is not supported; add COUNT(*) and GROUP BY"
        )
    return items, found, name
