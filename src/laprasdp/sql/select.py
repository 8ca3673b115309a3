"""A statement as DuckDB reads it: what looks at private rows is measured, all the rest follows from that."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.limits import MAX_GROWTH, MAX_TABLES
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Scratch, ScratchError, Tree, children, quoted
from laprasdp.sql.block import Blocks, is_grouped
from laprasdp.sql.image import Images
from laprasdp.sql.lookup import TABLE, Lookup
from laprasdp.sql.measured import AGGREGATES
from laprasdp.sql.parse import parse
from laprasdp.sql.predicate import folded
from laprasdp.sql.reference import ColumnRef, natural
from laprasdp.sql.relation import Names, SelectRows
from laprasdp.sql.result import Output, Result
from laprasdp.sql.scalar import FUNCTIONS, check_scalar, growth, unknown_function
from laprasdp.sql.syntax import clip

Seen = SelectRows | frozenset[str]
"""What a FROM shows: private rows; or a released table, by the folded names of its noisy columns."""


class Selects:
    """
    Reads statements over one private table.

    Parameters
    ----------
    domain : Domain
    table : str
    types : mapping of attribute to DuckDB type
    lookups : mapping of name to Lookup
    """

    def __init__(
        self, domain: Domain, table: str, types: Mapping[str, str], lookups: Mapping[str, Lookup]
    ) -> None:
        self._domain, self._table, self._lookups = domain, table, lookups
        for name in lookups:
            if folded(name) == folded(table):
                raise ConfigError(f"the lookup {clip(name)} has the name of the table; call it otherwise")
        attributes = [domain[name] for name in domain.names]
        self._columns = [
            ColumnRef(axis, name, attribute, types.get(name) or natural(attribute))
            for axis, (name, attribute) in enumerate(zip(domain.names, attributes, strict=True))
        ]
        self.scratch = Scratch()
        self._images: Images | None = None
        self._lock = threading.RLock()

    def read(self, text: str) -> tuple[tuple[Query, ...], Result]:
        """
        What a statement has to have measured, and its result as a function of that.

        Raises
        ------
        UnsupportedQuery
            It cannot be asked.
        """
        with self._lock:
            return self._read(text)

    def _read(self, text: str) -> tuple[tuple[Query, ...], Result]:
        try:
            images = self._opened()
            images.begin()
            tree = self.scratch.read(text)
            check_functions(tree)
            if (count := _tables(tree, {})) > MAX_TABLES:
                raise UnsupportedQuery(f"the statement reads {count:,} tables; the limit is {MAX_TABLES:,}")
            if growth(tree) > MAX_GROWTH:  # before DuckDB plans it, which works out what is constant
                raise UnsupportedQuery("the statement may give too long texts; build shorter ones")
            outputs = self.scratch.describe(text)
            timed = frozenset(column.axis for column in self._columns if column.timed)
            names = Names(self.scratch, self._table, self._domain.names, self._lookups, timed)
            reading = _Reading(names, Blocks(names, images, self._domain), outputs)
            return reading.whole(tree)
        except ScratchError as error:
            raise UnsupportedQuery(f"DuckDB refuses it: {clip(str(error), 300)}") from None

    def named(self, text: str, otherwise: str) -> str:
        """DuckDB's name of the one aggregate of a statement; `otherwise` if it refuses the statement."""
        try:
            with self._lock:
                self._opened()
            keys = {folded(name) for name in self._domain.names}
            names = [name for name, _ in self.scratch.describe(text) if folded(name) not in keys]
            return names[0] if names else otherwise
        except ScratchError:
            return otherwise

    def _opened(self) -> Images:
        if self._images is None:
            self.scratch.create(self._table, {column.name: column.type for column in self._columns})
            for name, lookup in self._lookups.items():
                self.scratch.keep(f"{TABLE}{folded(name)}", lookup.rows)
                self.scratch.keep(name, lookup.rows.slice(0, 0))
            self._images = Images(self.scratch, self._columns, self._domain, self._plain)
        return self._images

    def _plain(self, condition: str) -> Query:
        """Where a condition holds that `parse` reads: on levels that are no values it knows more."""
        types = {column.name: column.type for column in self._columns}
        text = f"SELECT COUNT(*) FROM {quoted(self._table)} WHERE {condition}"
        return parse(text, self._domain, self._table, types=types).queries[0]


class _Reading:
    """One statement being read."""

    def __init__(self, names: Names, blocks: Blocks, outputs: Sequence[tuple[str, str]]) -> None:
        self.names, self.blocks, self.outputs = names, blocks, outputs
        self.ctes: dict[str, Seen] = {}

    def whole(self, tree: Tree) -> tuple[tuple[Query, ...], Result]:
        """The statement: its queries and its result."""
        tree = copy.deepcopy(tree)
        labels = [name for name, _ in self.outputs]
        noisy = self._node(tree, labels)
        if isinstance(noisy, SelectRows):
            raise UnsupportedQuery(
                "rows are private: ask for aggregates such as COUNT(*), with GROUP BY for the columns"
            )
        queries, blocks = self.blocks.made()
        outputs = tuple(
            Output(name, kind, folded(label) not in noisy)
            for (name, kind), label in zip(self.outputs, labels, strict=True)
        )
        unfiltered = self._unfiltered(tree)
        windowed = any(part.get("class") == "WINDOW" for part in _walk(tree))
        return queries, Result(tree, blocks, outputs, unfiltered, windowed)

    def _node(self, node: Tree, labels: Sequence[str] | None = None) -> Seen:
        """Put what is released in the place of private rows; say what is seen then."""
        kept = dict(self.ctes)
        for one in node.get("cte_map", {}).get("map", ()):
            inner = one["value"]
            seen = self._node(inner["query"]["node"])
            aliases = inner.get("aliases") or ()
            self.ctes[folded(one["key"])] = (
                seen.called(one["key"], aliases) if isinstance(seen, SelectRows) else seen
            )
            if not isinstance(seen, SelectRows) and aliases:
                raise UnsupportedQuery(
                    f"new names for the columns of {clip(one['key'])} are not supported; name them with AS"
                )
        if "cte_map" in node:
            node["cte_map"]["map"] = [
                one
                for one in node["cte_map"]["map"]
                if not isinstance(self.ctes[folded(one["key"])], SelectRows)
            ]
        seen = self._set(node, labels) if node["type"] == "SET_OPERATION_NODE" else self._select(node, labels)
        self.ctes = kept
        return seen

    def _set(self, node: Tree, labels: Sequence[str] | None) -> Seen:
        if node["setop_type"] != "UNION" or not node["setop_all"]:
            raise UnsupportedQuery("of set operations UNION ALL is supported; ask the SELECTs one by one")
        parts = node.get("children") or [node["left"], node["right"]]
        found = [self._node(part, labels) for part in parts]
        if any(isinstance(one, SelectRows) for one in found):
            raise UnsupportedQuery("UNION ALL takes SELECTs with aggregates; rows are private")
        for part in _modified(node):
            self._check_public(part)
        noisy: frozenset[str] = frozenset().union(*(one for one in found if not isinstance(one, SelectRows)))
        return noisy

    def _select(self, node: Tree, labels: Sequence[str] | None) -> Seen:
        if node["type"] != "SELECT_NODE":
            raise UnsupportedQuery("this kind of statement is not supported; ask SELECT … FROM the table")
        if node.get("sample"):
            raise UnsupportedQuery("a sample is not supported: all rows are counted; leave it out")
        seen = self._from(node["from_table"])
        if not isinstance(seen, SelectRows):
            return self._regrouped(node, seen, labels)
        if is_grouped(node):
            return self.blocks.add(node, seen, labels)
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
            name = item.get("alias") or (item.get("column_names") or [self.names.scratch.spell(item)])[-1]
            node_ = self.names.resolve(item, rows)
            fields.append(replace(rows.fields[0], table="", name=name, node=node_, hidden=False))
        return SelectRows(tuple(fields), rows.conditions)

    def _from(self, node: Tree) -> Seen:
        kind = node["type"]
        if kind == "BASE_TABLE":
            known = self.ctes.get(folded(node["table_name"])) if not node.get("schema_name") else None
            alias = node.get("alias") or node["table_name"]
            names = node.get("column_name_alias") or ()
            if known is None:
                self.names.check_table(node)
                return self.names.rows(alias).called(alias, names)
            if isinstance(known, SelectRows):
                return known.called(alias, names)
            return self._renamed(known, names)
        if kind == "SUBQUERY":
            seen = self._node(node["subquery"]["node"])
            names = node.get("column_name_alias") or ()
            return (
                seen.called(node.get("alias") or "", names)
                if isinstance(seen, SelectRows)
                else self._renamed(seen, names)
            )
        if kind == "JOIN":
            if self.names.lookup(node["left"]) and node["join_type"] == "INNER":
                node["left"], node["right"] = node["right"], node["left"]
            seen = self._from(node["left"])
            if isinstance(seen, SelectRows):
                return self.names.joined(seen, node)
            raise UnsupportedQuery(
                "a join of released tables is not supported; join the lookup before grouping"
            )
        if kind == "EMPTY":
            raise UnsupportedQuery(
                f"SELECT without FROM is not supported; the table is {clip(self.names.table)}"
            )
        raise UnsupportedQuery(f"this FROM is not supported; the table is {clip(self.names.table)}")

    def _renamed(self, seen: frozenset[str], names: Sequence[str]) -> frozenset[str]:
        if names:
            raise UnsupportedQuery(
                "new names for the columns of a subquery are not supported; name them with AS"
            )
        return seen

    def _regrouped(self, node: Tree, noisy: frozenset[str], labels: Sequence[str] | None) -> frozenset[str]:
        """A SELECT from what is released: it is DuckDB's as it stands."""
        for part in _parts(node):
            self._check_public(part)
        found = set[str]()
        for place, item in enumerate(node["select_list"]):
            if item["class"] == "STAR":
                if len(node["select_list"]) > 1 and labels is not None:
                    raise UnsupportedQuery("* beside other columns is not supported; name the columns")
                found |= noisy
                continue
            name = (
                (labels[place] if labels and place < len(labels) else None)
                or item.get("alias")
                or (item.get("column_names") or [self.names.scratch.spell(item)])[-1]
            )
            if any(_noisy(part, noisy) for part in [item, *_walk(item)]):
                found.add(folded(name))
        return frozenset(found)

    def _check_public(self, node: Tree) -> None:
        """Refuse what is no function of what was released."""
        kind = node.get("class")
        if kind == "FUNCTION" and str(node["function_name"]).lower() in PUBLIC:
            pass
        elif kind == "SUBQUERY":
            raise UnsupportedQuery(
                "a subquery in an expression is not supported; use WITH or a subquery in FROM"
            )
        elif kind not in ("STAR", "WINDOW", None):
            check_scalar(node, lambda: clip(self.names.scratch.spell(node)))
        for _, _, part in children(node):
            self._check_public(part)

    def _unfiltered(self, tree: Tree) -> Tree | None:
        """The statement with all its groups, where each row is a group."""
        if not self.blocks.mark(tree):
            return None
        made = copy.deepcopy(tree)
        parts = [made]
        while parts:
            part = parts.pop()
            part["modifiers"] = []
            if part["type"] == "SELECT_NODE":
                part["where_clause"] = part["qualify"] = None
            else:
                parts += part.get("children") or [part["left"], part["right"]]
        return made


def check_functions(node: Tree) -> None:
    """Refuse, before anything is worked out, a function or a source that is in none of the lists."""
    if node.get("class") == "FUNCTION":
        name = str(node["function_name"]).lower()
        if name not in AGGREGATES | PUBLIC | FUNCTIONS:
            raise unknown_function(name)
    if node.get("type") in ("TABLE_FUNCTION", "RECURSIVE_CTE_NODE", "PIVOT", "SHOW_REF", "COLUMN_DATA"):
        raise UnsupportedQuery("table functions, PIVOT and WITH RECURSIVE are not supported; name the table")
    for _, _, part in children(node):
        check_functions(part)


PUBLIC = frozenset(
    (
        *(
            "count",
            "count_star",
            "sum",
            "avg",
            "mean",
            "min",
            "max",
            "median",
            "stddev",
            "variance",
            "any_value",
        ),
        *("quantile_cont", "quantile_disc", "first", "row_number", "rank", "dense_rank", "count_if"),
    )
)


def _noisy(node: Tree, noisy: frozenset[str]) -> bool:
    if node.get("class") == "COLUMN_REF":
        return folded(node["column_names"][-1]) in noisy
    name = str(node.get("function_name", "")).lower()
    return node.get("class") == "WINDOW" or name in PUBLIC


def _walk(node: Tree) -> Iterator[Tree]:
    for _, _, part in children(node):
        yield part
        yield from _walk(part)


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


def _tables(node: Any, known: Mapping[str, int]) -> int:
    """Tables that are read, those of WITH as often as they are used."""
    if isinstance(node, list):
        return sum(_tables(one, known) for one in node)
    if not isinstance(node, dict):
        return 0
    for one in node.get("cte_map", {}).get("map", ()):
        known = {**known, folded(one["key"]): _tables(one["value"], known)}
    own = known.get(folded(node["table_name"]), 1) if node.get("type") == "BASE_TABLE" else 0
    return own + sum(_tables(part, known) for key, part in node.items() if key != "cte_map")
