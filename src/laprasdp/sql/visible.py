"""Which groups the rows of a statement are: those of a released table, until it is regrouped or joined."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laprasdp.scratch import Scratch, Tree, children, quoted, same
from laprasdp.sql.block import Blocks
from laprasdp.sql.predicate import folded
from laprasdp.sql.result import DRAW, GROUP


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """
    A released table, or what follows from such.

    Attributes
    ----------
    noisy : frozenset of str
        The folded names of its columns that are no public function of keys.
    node : Tree, optional
        The SELECT that shows it, where its rows are the groups of one block.
    columns : mapping of folded name to Tree
        What its columns are over that block.
    below : ReleasedRows, optional
        What that SELECT takes its rows from, if that is no block.
    """

    noisy: frozenset[str]
    node: Tree | None = None
    columns: Mapping[str, Tree] | None = None
    below: ReleasedRows | None = None


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """
    The rows of a statement as groups, as `Result` has them.

    Attributes
    ----------
    unfiltered, drawn, chosen : Tree or None
    narrowed : bool
    """

    unfiltered: Tree | None = None
    narrowed: bool = False
    drawn: Tree | None = None
    chosen: Tree | None = None


def rows_of(tree: Tree, grouped: Sequence[ReleasedRows], blocks: Blocks) -> GroupedRows:
    """
    How the rows of a statement are its groups; `tree` is changed so that each row ends in that of its own.

    Parameters
    ----------
    tree : Tree
    grouped : sequence of ReleasedRows
        The SELECTs of the statement whose rows are groups.
    blocks : Blocks
    """
    chains = _chains(tree, grouped)
    if chains is None:
        return GroupedRows()
    for chain, rows in chains:
        if len(chain) > 1 and rows.columns is not None:
            blocks.reform(chain[-1], list(rows.columns.values()))
    scratch = blocks.names.scratch
    every = [one for chain, _ in chains for one in chain]
    _append(every, scratch.expression(quoted(GROUP)))
    narrowed = any(_windows(one) and one["where_clause"] for one in every)
    plain = not any(one.get("class") == "SUBQUERY" for one in walk(tree))
    return GroupedRows(
        _all_groups(tree, every),
        narrowed,
        _all_groups(tree, every, scratch) if plain else None,
        _chosen(tree, every, scratch) if plain and any(map(_by_value, every)) else None,
    )


def _append(selects: Sequence[Tree], column: Tree) -> None:
    for one in selects:
        if not any(item["class"] == "STAR" for item in one["select_list"]):
            one["select_list"].append(copy.deepcopy(column))


def _all_groups(tree: Tree, every: Sequence[Tree], scratch: Scratch | None = None) -> Tree:
    """A statement without HAVING, ORDER BY and LIMIT; over tables of many draws if a scratch is given."""
    memo: dict[int, Any] = {}
    made: Tree = copy.deepcopy(tree, memo)
    for one in every:
        twin = memo[id(one)]
        twin["modifiers"], twin["qualify"] = [], None
        if not _windows(one):  # a window looks at the rows that WHERE leaves
            twin["where_clause"] = None
    for part in _united(made, within=True):
        part["modifiers"] = []
    if scratch is not None:
        _by_draw([memo[id(one)] for one in every], scratch)
    return made


def _by_draw(selects: Sequence[Tree], scratch: Scratch) -> None:
    """Let windows look at one draw, and rows end in its number."""
    draw = scratch.expression(quoted(DRAW))
    for one in selects:
        for item in [*one["select_list"], *([one["qualify"]] if one["qualify"] else [])]:
            for part in [item, *walk(item)]:
                if part.get("class") == "WINDOW":
                    part["partitions"].append(copy.deepcopy(draw))
    _append(selects, draw)


def _chosen(tree: Tree, every: Sequence[Tree], scratch: Scratch) -> Tree | None:
    """A statement over tables of many draws, with what LIMIT leaves of each."""
    memo: dict[int, Any] = {}
    made: Tree = copy.deepcopy(tree, memo)
    if made["type"] == "SET_OPERATION_NODE" and any(_limited(one) for one in _united(made, within=True)):
        return None
    twins = [memo[id(one)] for one in every]
    _by_draw(twins, scratch)
    for one in twins:
        if not _limited(one):
            one["modifiers"] = []
            continue
        orders = [order for part in one["modifiers"] for order in part.get("orders") or ()]
        known = all(order["expression"]["class"] not in ("CONSTANT", "STAR") for order in orders)
        if one["qualify"] or not orders or not known:
            return None
        first, last = _limits(one)
        if any(_looks(order["expression"]) for order in orders):
            named = [_aliased(order, one["select_list"]) for order in orders]
            if None in named:
                return None
            orders = [order for order in named if order is not None]
            inner, outer = dict(one) | {"modifiers": []}, scratch.read("SELECT * FROM (SELECT 1) AS w")
            outer["from_table"]["subquery"]["node"] = inner
            one |= outer
        text = f"row_number() OVER (PARTITION BY {quoted(DRAW)} ORDER BY x)"
        one["qualify"] = scratch.expression(f"{text} > {first}" + (f" AND {text} <= {last}" if last else ""))
        for part in list(walk(one["qualify"])):
            if part.get("class") == "WINDOW":
                part["orders"] = copy.deepcopy(orders)
        one["modifiers"] = []
    return made


def _aliased(order: Tree, items: Sequence[Tree]) -> Tree | None:
    """An ORDER BY of a column of SELECT by its name; None of anything else."""
    found = next((one for one in items if one.get("alias") and same(one, order["expression"])), None)
    if found is None:
        return None
    column = {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [found["alias"]]}
    return order | {"expression": column}


def _limits(node: Tree) -> tuple[int, int | None]:
    """How many rows LIMIT and OFFSET leave out at the begin, and the place of the last that they leave in."""
    found = {
        key: int(one[key]["value"]["value"])
        for one in node["modifiers"]
        for key in ("limit", "offset")
        if one.get(key)
    }
    first = found.get("offset", 0)
    return first, first + found["limit"] if "limit" in found else None


def _by_value(node: Tree) -> bool:
    """Whether a SELECT leaves out groups by what was released of them."""
    conditions = [node[key] for key in ("where_clause", "qualify") if node[key]]
    return _limited(node) or any(
        part.get("class") == "WINDOW" or (part.get("column_names") or ["k"])[0][:1] != "k"
        for one in conditions
        for part in [one, *walk(one)]
    )


def _limited(node: Tree) -> bool:
    return any(one.get(key) for one in node.get("modifiers") or () for key in ("limit", "offset"))


def _chains(tree: Tree, grouped: Sequence[ReleasedRows]) -> list[tuple[list[Tree], ReleasedRows]] | None:
    """Of each SELECT of a UNION ALL those down to the groups that its rows are; None where they are none."""
    chains, held = list[tuple[list[Tree], ReleasedRows]](), set[int]()
    if any(part.get("setop_all") is False for part in _united(tree, within=True)):
        return None  # rows that are equal are one
    for part in _united(tree):
        found = next((one for one in grouped if one.node is part), None)
        if found is None:
            return None
        chain, rows = [part], found
        while found.below is not None:
            found = found.below
            assert found.node is not None
            chain.append(found.node)
        chains.append((chain, rows))
        held.add(id(chain[-1]))
        looks = [place for place, one in enumerate(chain) if _windows(one)]
        narrow = any(map(_narrowed, chain[min(looks) + 1 :])) if looks else False
        nested = len(chain) > 1 and any(one.get("class") == "SUBQUERY" for one in walk(tree))
        if narrow or nested or any(map(_distinct, chain)):
            return None
    return chains if len(held) == len(chains) else None


def over(node: Tree, columns: Mapping[str, Tree]) -> Tree:
    """An expression with what columns are in their place."""
    if node.get("class") == "COLUMN_REF":
        return copy.deepcopy(columns.get(folded(node["column_names"][-1]), node))
    made = copy.deepcopy(node)
    for holder, key, part in list(children(made)):
        holder[key] = over(part, columns)
    return made


def _united(tree: Tree, *, within: bool = False) -> Iterator[Tree]:
    """The SELECTs of a UNION ALL; with those that hold them, if wanted."""
    if tree["type"] != "SET_OPERATION_NODE":
        yield tree
        return
    if within:
        yield tree
    for part in tree.get("children") or [tree["left"], tree["right"]]:
        yield from _united(part, within=within)


def _windows(node: Tree) -> bool:
    return any(map(_looks, node["select_list"]))


def _looks(node: Tree) -> bool:
    """Whether an expression looks at other rows."""
    return any(one.get("class") == "WINDOW" for one in [node, *walk(node)])


def _narrowed(node: Tree) -> bool:
    """Whether a SELECT leaves some of its rows out."""
    return bool(_limited(node) or node["where_clause"] or node["qualify"])


def _distinct(node: Tree) -> bool:
    return any(one["type"] == "DISTINCT_MODIFIER" for one in node.get("modifiers") or ())


def walk(node: Tree) -> Iterator[Tree]:
    for _, _, part in children(node):
        yield part
        yield from walk(part)
