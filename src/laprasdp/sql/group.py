"""GROUP BY and ORDER BY: the declared groups, and one query for each."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sqlglot import exp

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_GROUP_WORK, MAX_GROUPS
from laprasdp.queries.attribute import Categories
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query, check_classes
from laprasdp.sql.predicate import Scope
from laprasdp.sql.reference import ColumnRef
from laprasdp.sql.syntax import clauses, clip, only, spell_node, unsupported
from laprasdp.sql.truth import Tensor


def group_by(node: exp.Group | None, items: Sequence[ColumnRef | None], scope: Scope) -> list[ColumnRef]:
    """The columns of GROUP BY; none if there is no such clause."""
    if node is None:
        return []
    clauses(node, "expressions")
    by: list[ColumnRef] = []
    for part in node.expressions:
        column = _named(part, items, scope, "GROUP BY")
        if column is None:
            raise UnsupportedQuery("GROUP BY the aggregate is not supported; name a declared column")
        if column in by:
            raise UnsupportedQuery(f"{clip(column.name)} is twice in GROUP BY; name it once")
        by.append(column)
    if not by:
        raise UnsupportedQuery("an empty GROUP BY is not supported; leave it out")
    return by


def _named(node: Any, items: Sequence[ColumnRef | None], scope: Scope, clause: str) -> ColumnRef | None:
    """The column that GROUP BY or ORDER BY names, by name or by position; None for the aggregate."""
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    if (column := scope.grouped(node)) is not None:
        return column
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        place = int(str(node.this)[:9])
        if not 1 <= place <= len(items):
            raise UnsupportedQuery(f"{clause} {place}: SELECT has {len(items)} columns")
        return items[place - 1]
    raise unsupported(node, f"{clause} takes declared columns")


def order_by(
    node: exp.Order | None,
    items: Sequence[ColumnRef | None],
    by: Sequence[ColumnRef],
    scope: Scope,
) -> list[tuple[int, bool, bool]]:
    """Place in `by`, descending, NULL first; for each key of ORDER BY."""
    if node is None:
        return []
    only(node, "expressions")
    keys = []
    for part in node.expressions:
        only(part, "this", "desc", "nulls_first")
        column = None
        if not part.this.find(exp.AggFunc):
            try:
                column = _named(part.this, items, scope, "ORDER BY")
            except UnsupportedQuery as error:
                raise UnsupportedQuery(f"ORDER BY takes the columns of GROUP BY only: {error}") from None
        if column is None or column not in by:
            raise UnsupportedQuery(
                f"ORDER BY {spell_node(part.this)} is not supported; it takes the columns of GROUP BY only"
            )
        keys.append((by.index(column), bool(part.args.get("desc")), bool(part.args.get("nulls_first"))))
    return keys


def _rank_of(place: int, rank: Sequence[int], group: tuple[int, ...]) -> int:
    return rank[group[place]]


def _sorted(names: Sequence[str], column: ColumnRef) -> list[int]:
    """The levels of texts in the order of DuckDB: by their characters, or as an ENUM lists them."""
    if column.base != "ENUM":
        return sorted(range(len(names)), key=names.__getitem__)
    listed = [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", column.type)]
    places = {text: place for place, text in enumerate(listed)}
    return sorted(range(len(names)), key=lambda level: places.get(names[level], len(places)))


def group_levels(by: Sequence[ColumnRef], order: Iterable[tuple[int, bool, bool]]) -> list[tuple[int, ...]]:
    """The levels of every declared group, in the order asked for."""
    sizes = [column.attribute.size for column in by]
    if math.prod(sizes) > MAX_GROUPS:
        widest = max(by, key=lambda column: column.attribute.size)
        raise UnsupportedQuery(
            f"GROUP BY has {math.prod(sizes):,} declared groups; the limit is {MAX_GROUPS:,}: "
            f"group by fewer columns or coarsen {clip(widest.name)} ({widest.attribute.size:,} levels)"
        )
    groups = list(itertools.product(*map(range, sizes)))
    for place, descending, nulls_first in reversed(list(order)):
        attribute = by[place].attribute
        rank = list(range(attribute.values))
        if isinstance(attribute, Categories):
            for position, level in enumerate(_sorted(attribute.names, by[place])):
                rank[level] = position
        if descending:
            rank = [-position for position in rank]
        rank.append(-attribute.size if nulls_first else attribute.size)
        groups.sort(key=partial(_rank_of, place, rank))
    return groups


def group_queries(
    domain: Domain, tensor: Tensor, by: Sequence[ColumnRef], groups: Sequence[tuple[int, ...]]
) -> Groups:
    """The query of every group: the weight where all levels are the group's, zero elsewhere."""
    grouped = {column.axis for column in by}
    rest = {domain.names[a]: x for a, x in zip(tensor.axes, tensor.labels, strict=True) if a not in grouped}
    split = [column for column in by if column.attribute.size > 1]
    shape = [n for a, n in zip(tensor.axes, tensor.weights.shape, strict=True) if a not in grouped]
    shape += [2] * len(split)
    check_classes(shape, [*rest, *(column.name for column in split)])
    work = len(groups) * (
        math.prod(shape) + sum(map(len, rest.values())) + sum(c.attribute.size for c in split)
    )
    if work > MAX_GROUP_WORK:
        raise UnsupportedQuery(
            f"{len(groups):,} groups of a condition this fine are too much work; "
            "group by fewer columns, or simplify WHERE"
        )
    order = sorted(range(len(by)), key=lambda place: by[place].axis)
    levels = np.array(groups, dtype=np.int64).T[order]
    shape = [by[place].attribute.size for place in order]
    whole = Query.over(domain, tensor.axes, tensor.labels, tensor.weights).canonical()
    axes = tuple(by[place].axis for place in order)
    return Groups(whole, axes, np.ravel_multi_index(tuple(levels), shape))
