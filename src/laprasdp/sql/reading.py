"""One statement being read: private rows are measured, and released tables stand in their place."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.query import Query
from laprasdp.scratch import Tree, children
from laprasdp.sql.block import Blocks, is_grouped
from laprasdp.sql.joins import conjuncts, joined, with_conjuncts
from laprasdp.sql.predicate import folded
from laprasdp.sql.relation import Names, PublicRows, SelectRows
from laprasdp.sql.result import Output, Result
from laprasdp.sql.scalar import check_scalar
from laprasdp.sql.syntax import clip
from laprasdp.sql.visible import ReleasedRows, over, rows_of, walk

PUBLIC = frozenset(
    (
        *("count", "count_star", "count_if", "sum", "avg", "mean", "min", "max", "median", "stddev"),
        *("stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "any_value", "quantile_cont"),
        *("quantile_disc", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead", "rank"),
        *("dense_rank", "row_number", "ntile", "percent_rank", "cume_dist", "arg_max", "arg_min"),
    )
)  # fmt: skip
"""Aggregates and window functions over what is released."""


Seen = SelectRows | ReleasedRows | PublicRows
"""What a FROM shows: private rows, what is released, or a lookup."""


class SelectReading:
    """
    One statement being read.

    Parameters
    ----------
    names : Names
    blocks : Blocks
    outputs : sequence of pairs of str
        The names and types of the statement's columns.
    """

    def __init__(self, names: Names, blocks: Blocks, outputs: Sequence[tuple[str, str]]) -> None:
        self.names, self.blocks, self.outputs = names, blocks, outputs
        self.ctes: dict[str, Seen] = {}
        self.tables: dict[str, pa.Table] = {}
        self._grouped: list[ReleasedRows] = []
        blocks.subquery = self._subquery

    def whole(self, tree: Tree) -> tuple[tuple[Query, ...], Result]:
        """The statement: its queries and its result."""
        tree = copy.deepcopy(tree)
        labels = [name for name, _ in self.outputs]
        seen = self._node(tree, labels)
        if isinstance(seen, SelectRows):
            raise UnsupportedQuery(
                "rows are private: ask for aggregates such as COUNT(*), with GROUP BY for the columns"
            )
        if isinstance(seen, PublicRows):
            raise UnsupportedQuery("a lookup alone is public: read it yourself, or join the table with it")
        outputs = tuple(
            Output(name, kind, not _named(label, seen.noisy))
            for (name, kind), label in zip(self.outputs, labels, strict=True)
        )
        windowed = any(part.get("class") == "WINDOW" for part in walk(tree))
        rows = rows_of(tree, self._grouped, self.blocks)
        queries, blocks = self.blocks.made()
        return queries, Result(
            tree,
            blocks,
            outputs,
            rows.unfiltered,
            windowed,
            rows.narrowed,
            rows.drawn,
            rows.chosen,
            dict(self.tables),
        )

    def _node(self, node: Tree, labels: Sequence[str] | None = None) -> Seen:
        """Put what is released in the place of private rows; say what is seen then."""
        kept = dict(self.ctes)
        for one in node.get("cte_map", {}).get("map", ()):
            inner = one["value"]
            seen = self._node(inner["query"]["node"])
            aliases = inner.get("aliases") or ()
            if isinstance(seen, ReleasedRows) and aliases:
                raise UnsupportedQuery(
                    f"new names for the columns of {clip(one['key'])} are not supported; name them with AS"
                )
            self._show(
                one["key"], seen if isinstance(seen, ReleasedRows) else seen.called(one["key"], aliases)
            )
        if "cte_map" in node:
            node["cte_map"]["map"] = [
                one
                for one in node["cte_map"]["map"]
                if not isinstance(self.ctes[folded(one["key"])], SelectRows)
            ]
        seen = self._set(node, labels) if node["type"] == "SET_OPERATION_NODE" else self._select(node, labels)
        self.ctes = kept
        self.names.public = {name: one for name, one in kept.items() if isinstance(one, PublicRows)}
        return seen

    def _show(self, name: str, seen: Seen) -> None:
        self.ctes[folded(name)] = seen
        if isinstance(seen, PublicRows):
            self.names.public[folded(name)] = seen
        else:
            self.names.public.pop(folded(name), None)

    def _set(self, node: Tree, labels: Sequence[str] | None) -> Seen:
        if node["setop_type"] != "UNION":
            raise UnsupportedQuery("of set operations UNION is supported; ask the SELECTs one by one")
        parts = node.get("children") or [node["left"], node["right"]]
        found = [self._node(part, labels) for part in parts]
        if any(isinstance(one, SelectRows) for one in found):
            raise UnsupportedQuery("UNION takes SELECTs with aggregates; rows are private")
        for part in _modified(node):
            self._check_public(part)
        if all(isinstance(one, PublicRows) for one in found):
            raise UnsupportedQuery("UNION of lookups is not supported; declare them as one lookup")
        noisy: frozenset[str] = frozenset().union(
            *(one.noisy for one in found if isinstance(one, ReleasedRows))
        )
        return ReleasedRows(noisy)

    def _select(self, node: Tree, labels: Sequence[str] | None) -> Seen:
        if node["type"] != "SELECT_NODE":
            raise UnsupportedQuery("this kind of statement is not supported; ask SELECT … FROM the table")
        if node.get("sample"):
            raise UnsupportedQuery("a sample is not supported: all rows are counted; leave it out")
        if node["from_table"]["type"] == "EMPTY" and any(
            part["class"] == "SUBQUERY" for part in walk(node) if "class" in part
        ):
            return self._regrouped(node, ReleasedRows(frozenset()), labels)
        apart = conjuncts(node.get("where_clause"))
        seen = self._from(node["from_table"], apart)
        node["where_clause"] = with_conjuncts(apart)
        if isinstance(seen, PublicRows):
            return self._looked_up(node, seen)
        if isinstance(seen, ReleasedRows):
            return self._regrouped(node, seen, labels)
        if is_grouped(node):
            noisy, columns = self.blocks.add(node, seen, labels)
            return self._is_group(ReleasedRows(noisy, node, columns))
        return self._kept_rows(node, seen)

    def _kept_rows(self, node: Tree, rows: SelectRows) -> SelectRows:
        """A SELECT that filters and projects rows."""
        if node.get("modifiers") or node.get("qualify"):
            raise UnsupportedQuery(
                "ORDER BY, LIMIT, DISTINCT and QUALIFY of rows are not supported: rows are private; "
                "use them on groups"
            )
        if node.get("where_clause"):
            rows = rows.where(self.names.resolve(node["where_clause"], rows))
        fields = []
        for item in node["select_list"]:
            if item["class"] == "STAR":
                if (
                    item.get("replace_list")
                    or item.get("columns")
                    or item.get("expr")
                    or item.get("rename_list")
                ):
                    raise UnsupportedQuery("* with REPLACE is not supported; name the columns")
                left_out = [folded(str(one)) for one in item.get("exclude_list", ())]
                wanted = folded(item.get("relation_name") or "")
                fields += [
                    one
                    for one in rows.fields
                    if not one.hidden
                    and folded(one.name) not in left_out
                    and wanted in ("", folded(one.table))
                ]
                continue
            node_ = self.names.resolve(item, rows)
            fields.append(replace(rows.fields[0], table="", name=self._title(item), node=node_, hidden=False))
        return SelectRows(tuple(fields), rows.conditions)

    def _title(self, item: Tree) -> str:
        return str(item.get("alias") or (item.get("column_names") or [self.names.scratch.spell(item)])[-1])

    def _from(self, node: Tree, apart: list[Tree]) -> Seen:
        """
        What a FROM shows.

        Parameters
        ----------
        node : Tree
        apart : list of Tree
            The conditions of WHERE; those that join a lookup are taken out of it.
        """
        kind = node["type"]
        names = node.get("column_name_alias") or ()
        if kind == "BASE_TABLE":
            alias = node.get("alias") or node["table_name"]
            known = self.ctes.get(folded(node["table_name"])) if not node.get("schema_name") else None
            if known is None and (lookup := self.names.lookup(node)) is not None:
                self.tables[lookup.source["table_name"]] = self.names.lookups[folded(node["table_name"])].rows
                node["table_name"], node["alias"] = lookup.source["table_name"], alias
                return lookup.called(alias, names)
            if known is None:
                self.names.check_table(node)
                return self.names.rows(alias).called(alias, names)
            return self._renamed(known, alias, names)
        if kind == "SUBQUERY":
            return self._renamed(self._node(node["subquery"]["node"]), node.get("alias") or "", names)
        if kind == "JOIN":
            return self._joined(node, apart)
        if kind == "EMPTY":
            raise UnsupportedQuery(
                f"SELECT without FROM is not supported; the table is {clip(self.names.table)}"
            )
        raise UnsupportedQuery(f"this FROM is not supported; the table is {clip(self.names.table)}")

    def _renamed(self, seen: Seen, alias: str, names: Sequence[str]) -> Seen:
        if not isinstance(seen, ReleasedRows):
            return seen.called(alias, names)
        if names:
            raise UnsupportedQuery(
                "new names for the columns of a subquery are not supported; name them with AS"
            )
        return seen

    def _joined(self, node: Tree, apart: list[Tree]) -> Seen:
        left, right = self._from(node["left"], apart), self._from(node["right"], apart)
        if isinstance(left, PublicRows) and isinstance(right, SelectRows) and node["join_type"] == "INNER":
            left, right = right, left
        if isinstance(left, SelectRows) and isinstance(right, PublicRows):
            return joined(self.names, left, right, node, apart)
        if isinstance(left, SelectRows) or isinstance(right, SelectRows):
            raise UnsupportedQuery(
                "private rows are joined with a declared lookup alone, by JOIN or LEFT JOIN … ON; "
                "group the table first, or declare [lookup.name] with its file and key"
            )
        if isinstance(left, PublicRows) and isinstance(right, PublicRows):
            raise UnsupportedQuery("a join of lookups is not supported; declare them as one lookup")
        if node.get("condition"):
            self._check_public(node["condition"])
        noisy: frozenset[str] = frozenset().union(
            *(one.noisy for one in (left, right) if isinstance(one, ReleasedRows))
        )
        return ReleasedRows(noisy)

    def _looked_up(self, node: Tree, rows: PublicRows) -> PublicRows:
        """A SELECT from one lookup: DuckDB works it out, for it is public."""
        for part in _parts(node):
            self._check_public(part)
        return self.names.shown(node)

    def _regrouped(self, node: Tree, seen: ReleasedRows, labels: Sequence[str] | None) -> ReleasedRows:
        """A SELECT from what is released: it is DuckDB's as it stands."""
        for part in _parts(node):
            self._check_public(part)
        found = set[str]()
        columns = dict[str, Tree]()
        for place, item in enumerate(node["select_list"]):
            if item["class"] == "STAR":
                if len(node["select_list"]) > 1 and labels is not None:
                    raise UnsupportedQuery("* beside other columns is not supported; name the columns")
                found |= seen.noisy
                columns |= seen.columns or {}
                continue
            name = folded(labels[place] if labels and place < len(labels) else self._title(item))
            if any(_noisy(part, seen.noisy) for part in [item, *walk(item)]):
                found.add(name)
            if seen.columns is not None:
                columns[name] = over(item, seen.columns)
        if seen.node is None or is_grouped(node):
            return ReleasedRows(frozenset(found))
        return self._is_group(ReleasedRows(frozenset(found), node, columns, seen))

    def _is_group(self, rows: ReleasedRows) -> ReleasedRows:
        self._grouped.append(rows)
        return rows

    def _check_public(self, node: Tree) -> None:
        """Refuse what is no function of what was released."""
        kind = node.get("class")
        if kind == "FUNCTION" and str(node["function_name"]).lower() in PUBLIC:
            pass
        elif kind == "SUBQUERY":
            self._shown(node)
            if node.get("child"):
                self._check_public(node["child"])
            return
        elif kind not in ("STAR", "WINDOW", None):
            check_scalar(node, lambda: clip(self.names.scratch.spell(node)))
        for _, _, part in children(node):
            self._check_public(part)

    def _subquery(self, node: Tree) -> SelectRows | None:
        """
        Read a subquery of an expression.

        Parameters
        ----------
        node : Tree
            Changed in place, unless rows are given back.

        Returns
        -------
        SelectRows or None
            The private rows whose aggregates it shows as one row, which are measured with those around it;
            otherwise it shows what is released now.
        """
        select = node["subquery"]["node"]
        if node["subquery_type"] == "SCALAR" and self._is_one_row(select):
            apart = conjuncts(select["where_clause"])
            rows = self._from(select["from_table"], apart)
            assert isinstance(rows, SelectRows)
            where = with_conjuncts(apart)
            return rows if where is None else rows.where(self.names.resolve(where, rows))
        self._shown(node)
        return None

    def _shown(self, node: Tree) -> None:
        """Put what is released in the place of private rows in a subquery."""
        if isinstance(self._node(node["subquery"]["node"]), SelectRows):
            raise UnsupportedQuery("a subquery that shows rows is not supported: rows are private")

    def _is_one_row(self, node: Tree) -> bool:
        """Whether a SELECT shows one value of aggregates over private rows."""
        if node["type"] != "SELECT_NODE" or len(node["select_list"]) != 1 or node["cte_map"]["map"]:
            return False
        keys = ("group_expressions", "having", "qualify", "sample", "modifiers")
        plain = not any(node.get(key) for key in keys) and is_grouped(node)
        return plain and self._is_private(node["from_table"])

    def _is_private(self, node: Tree) -> bool:
        """Whether a FROM shows private rows, without subqueries."""
        if node["type"] == "JOIN":
            sides = [self._is_private(node[side]) for side in ("left", "right")]
            return any(sides) and all(
                side or self.names.lookup(node[key])
                for side, key in zip(sides, ("left", "right"), strict=True)
            )
        if node["type"] != "BASE_TABLE":
            return False
        known = self.ctes.get(folded(node["table_name"]))
        return isinstance(known, SelectRows) or (known is None and self.names.lookup(node) is None)


def _named(label: str, noisy: frozenset[str]) -> bool:
    """Whether a label is that of a noisy column, also of a second one of its name."""
    name = folded(label)
    return name in noisy or re.sub(r"_\d+\Z", "", name) in noisy


def _noisy(node: Tree, noisy: frozenset[str]) -> bool:
    if node.get("class") == "COLUMN_REF":
        return folded(node["column_names"][-1]) in noisy
    name = str(node.get("function_name", "")).lower()
    return node.get("class") in ("WINDOW", "SUBQUERY") or name in PUBLIC


def _parts(node: Tree) -> list[Tree]:
    """The expressions of a SELECT."""
    own: list[Any] = [*node["select_list"], *node["group_expressions"]]
    own += [node["where_clause"], node["having"], node["qualify"]]
    return [*(one for one in own if one), *_modified(node)]


def _modified(node: Tree) -> list[Tree]:
    """The expressions of ORDER BY, DISTINCT ON and LIMIT."""
    found: list[Tree] = []
    for one in node.get("modifiers") or ():
        found += [order["expression"] for order in one.get("orders") or ()]
        found += one.get("distinct_on_targets") or []
        found += [one[key] for key in ("limit", "offset") if one.get(key)]
    return found
