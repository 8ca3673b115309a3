"""Which groups the rows of a statement are: those of a released table, until it is regrouped or joined."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laprasdp.scratch import Tree, children, quoted
from laprasdp.sql.block import Blocks
from laprasdp.sql.predicate import folded
from laprasdp.sql.result import GROUP


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


def unfiltered(tree: Tree, grouped: Sequence[ReleasedRows], blocks: Blocks) -> tuple[Tree | None, bool]:
    """
    The statement with all its groups, where each row is a group; and whether a window looks at some alone.
    """
    chains = _chains(tree, grouped)
    if chains is None:
        return None, False
    for chain, rows in chains:
        if len(chain) > 1 and rows.columns is not None:
            blocks.reform(chain[-1], list(rows.columns.values()))
    for chain, _ in chains:
        for one in chain:
            if not any(item["class"] == "STAR" for item in one["select_list"]):
                one["select_list"].append(blocks.names.scratch.expression(quoted(GROUP)))
    memo: dict[int, Any] = {}
    made: Tree = copy.deepcopy(tree, memo)
    made["modifiers"], narrowed = [], False
    for one in (one for chain, _ in chains for one in chain):
        twin = memo[id(one)]
        twin["modifiers"], twin["qualify"] = [], None
        if _windows(one) and one["where_clause"]:  # a window looks at the rows that WHERE leaves
            narrowed = True
        else:
            twin["where_clause"] = None
    for part in _united(made, within=True):
        part["modifiers"] = []
    return made, narrowed


def _chains(tree: Tree, grouped: Sequence[ReleasedRows]) -> list[tuple[list[Tree], ReleasedRows]] | None:
    """Of each SELECT of a UNION ALL those down to the groups that its rows are; None where they are none."""
    chains, held = list[tuple[list[Tree], ReleasedRows]](), set[int]()
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
    return any(one.get("class") == "WINDOW" for item in node["select_list"] for one in [item, *walk(item)])


def _narrowed(node: Tree) -> bool:
    """Whether a SELECT leaves some of its rows out."""
    limited = any(one.get(key) for one in node.get("modifiers") or () for key in ("limit", "offset"))
    return bool(limited or node["where_clause"] or node["qualify"])


def _distinct(node: Tree) -> bool:
    return any(one["type"] == "DISTINCT_MODIFIER" for one in node.get("modifiers") or ())


def walk(node: Tree) -> Iterator[Tree]:
    for _, _, part in children(node):
        yield part
        yield from walk(part)
