"""A join of private rows with a lookup: its columns are functions of what the key is joined with."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from laprasdp.errors import UnsupportedQuery
from laprasdp.scratch import Tree, children, quoted
from laprasdp.sql.predicate import folded
from laprasdp.sql.relation import Field, Names, PublicRows, SelectRows
from laprasdp.sql.syntax import clip


def joined(names: Names, rows: SelectRows, public: PublicRows, node: Tree, apart: list[Tree]) -> SelectRows:
    """
    Private rows with the columns of a lookup beside them.

    Parameters
    ----------
    names : Names
    rows : SelectRows
    public : PublicRows
    node : Tree
        The join.
    apart : list of Tree
        The conditions of WHERE: for tables with a comma between them that which joins them is taken out.

    Raises
    ------
    UnsupportedQuery
        It is no join of each row with at most one of the lookup.
    """
    kind, crossed = node["join_type"], node.get("ref_type") == "CROSS"
    if kind not in ("INNER", "LEFT", "SEMI", "ANTI") or node.get("ref_type") not in (
        "REGULAR",
        "CROSS",
        "NATURAL",
    ):
        raise UnsupportedQuery(
            "a join takes the table and a declared lookup, by JOIN or LEFT JOIN … ON; "
            "rows of the lookup that no row has are no rows of the table"
        )
    conditions = apart if crossed else conjuncts(node.get("condition"))
    used = [str(one) for one in node.get("using_columns") or ()]
    if node.get("ref_type") == "NATURAL":
        used = [one for one in public.columns if rows.field([one]) is not None]
    if used:
        own, key = _used(names, used, rows, public)
    else:
        own, key = _equated(names, conditions, rows, public)
    rest = [] if crossed else conditions
    beside = SelectRows(tuple(Field(public.alias, one, {}) for one in public.columns))
    mine = [one for one in rest if _only(one, beside, rows)]
    source = names.narrowed(public, mine)
    others = [one for one in rest if not any(one is other for other in mine)]
    inside = names.scratch.expression(f"0 IN (SELECT {quoted(own)} FROM x)")
    inside["subquery"]["node"]["from_table"] = source
    inside["child"] = key
    if kind in ("SEMI", "ANTI"):
        if others:
            raise _other_conditions(public)
        known = names.scratch.expression("coalesce(x, false)")
        known["children"][0] = inside
        if kind == "SEMI":
            return rows.where(known)
        without = names.scratch.expression("NOT x")
        without["children"][0] = known
        return rows.where(without)
    names.check_key(source, own, public)
    fields = list(rows.fields)
    for name in public.columns:
        part = names.scratch.expression(f"(SELECT q.{quoted(name)} FROM x AS q WHERE q.{quoted(own)} = 0)")
        part["subquery"]["node"]["from_table"] = source | {"alias": "q"}
        part["subquery"]["node"]["where_clause"]["right"] = key
        fields.append(Field(public.alias, name, part, folded(name) in map(folded, used)))
    both = SelectRows(tuple(fields), rows.conditions)
    if kind == "LEFT":
        if others:
            raise _other_conditions(public)
        return both
    return both.where(inside, *(names.resolve(one, both) for one in others))


def conjuncts(condition: Tree | None) -> list[Tree]:
    """The conditions that AND joins."""
    if not condition:
        return []
    if condition["type"] == "CONJUNCTION_AND":
        return [one for part in condition["children"] for one in conjuncts(part)]
    return [condition]


def with_conjuncts(conditions: Sequence[Tree]) -> Tree | None:
    """All conditions as one."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "children": list(conditions)}


def _used(names: Names, used: Sequence[str], rows: SelectRows, public: PublicRows) -> tuple[str, Tree]:
    if len(used) != 1:
        raise UnsupportedQuery(
            f"{clip(public.alias)} is joined by one column, its key; name it with USING or ON"
        )
    own = next((one for one in public.columns if folded(one) == folded(used[0])), None)
    found = rows.field(used)
    if own is None or found is None:
        raise names.unknown(used, rows)
    return own, copy.deepcopy(found.node)


def _equated(names: Names, conditions: list[Tree], rows: SelectRows, public: PublicRows) -> tuple[str, Tree]:
    """The key of a lookup and what it is joined with; the condition that says so is taken away."""
    beside = SelectRows(tuple(Field(public.alias, one, {}) for one in public.columns))
    for condition in conditions:
        if condition["type"] != "COMPARE_EQUAL":
            continue
        for one, other in (("left", "right"), ("right", "left")):
            column = condition[one].get("column_names")
            own = beside.field(column) if column else None
            if own is None or (len(column) == 1 and rows.field(column) is not None):
                continue
            if any(True for _ in _columns(condition[other], beside, rows)):
                continue
            key = names.resolve(condition[other], rows)
            conditions[:] = [held for held in conditions if held is not condition]
            return own.name, key
    raise UnsupportedQuery(
        f"a lookup is joined ON {clip(public.alias)}.key = a column or expression of the table"
    )


def _columns(node: Tree, beside: SelectRows, rows: SelectRows) -> list[Tree]:
    """The columns of a lookup that an expression names."""
    names = node.get("column_names")
    if node.get("class") == "COLUMN_REF" and names:
        mine = beside.field(names) is not None and not (len(names) == 1 and rows.field(names) is not None)
        return [node] if mine else []
    return [one for _, _, part in children(node) for one in _columns(part, beside, rows)]


def _only(node: Tree, beside: SelectRows, rows: SelectRows) -> bool:
    """Whether a condition names columns of the lookup and of nothing else."""
    return (
        bool(_columns(node, beside, rows))
        and not _columns(node, rows, beside)
        and not _ambiguous(node, beside, rows)
    )


def _ambiguous(node: Tree, beside: SelectRows, rows: SelectRows) -> bool:
    names = node.get("column_names")
    if node.get("class") == "COLUMN_REF" and names:
        return len(names) == 1 and beside.field(names) is not None and rows.field(names) is not None
    return any(_ambiguous(part, beside, rows) for _, _, part in children(node))


def _other_conditions(public: PublicRows) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"{clip(public.alias)} is joined ON its key and conditions of its own columns; put others into WHERE"
    )
