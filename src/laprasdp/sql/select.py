"""A statement as DuckDB reads it: what looks at private rows is measured, all the rest follows from that."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.limits import MAX_GROWTH, MAX_TABLES
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Scratch, ScratchError, Tree, children, quoted
from laprasdp.sql.block import Blocks
from laprasdp.sql.image import Images
from laprasdp.sql.lookup import TABLE, Lookup
from laprasdp.sql.moments import AGGREGATES
from laprasdp.sql.parse import parse
from laprasdp.sql.predicate import folded
from laprasdp.sql.reading import PUBLIC, SelectReading
from laprasdp.sql.reference import ColumnRef, natural
from laprasdp.sql.relation import Names
from laprasdp.sql.result import Result
from laprasdp.sql.scalar import FUNCTIONS, growth, unknown_function
from laprasdp.sql.syntax import clip

_SEARCHES = frozenset(("contains", "list_contains", "list_has", "array_contains", "array_has"))


class Selects:
    """
    Reads statements over one private table.

    Parameters
    ----------
    domain : Domain
    table : str
    types : mapping of attribute to DuckDB type
    lookups : mapping of name to Lookup
    derived : mapping of name to str
        SQL of the attributes, and of those that stand before it.
    unit : PrivacyUnit
        Its column may be counted.

    Raises
    ------
    ConfigError
        A name is taken, or an SQL text is no expression of the attributes.
    """

    def __init__(
        self,
        domain: Domain,
        table: str,
        types: Mapping[str, str],
        lookups: Mapping[str, Lookup],
        derived: Mapping[str, str],
        unit: PrivacyUnit,
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
        self._texts, self._derived, self._unit = derived, dict[str, Tree](), unit
        if derived:
            self._opened()

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
            tree = in_lists(self.scratch.read(text))
            if self._unit.column is not None:
                tree = persons_counted(tree, self._unit)
            check_functions(tree)
            if (count := _tables(tree, {})) > MAX_TABLES:
                raise UnsupportedQuery(f"the statement reads {count:,} tables; the limit is {MAX_TABLES:,}")
            if growth(tree) > MAX_GROWTH:  # before DuckDB plans it, which works out what is constant
                raise UnsupportedQuery("the statement may give too long texts; build shorter ones")
            outputs = self.scratch.describe(text)
            names = self._names()
            reading = SelectReading(names, Blocks(names, images, self._domain), outputs)
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
            types = {column.name: column.type for column in self._columns}
            person = self._unit.column
            if person is not None and folded(person) not in map(folded, types):
                types[person] = "VARCHAR"  # for the names of columns alone: no expression may name it
            self.scratch.create(self._table, types)
            for name, lookup in self._lookups.items():
                self.scratch.keep(f"{TABLE}{folded(name)}", lookup.rows)
                self.scratch.keep(name, lookup.rows.slice(0, 0))
            self._images = Images(self.scratch, self._columns, self._domain, self._plain)
            for name, text in self._texts.items():
                types[name] = self._derive(name, text, self._images)
                self.scratch.create(self._table, types)
        return self._images

    def _names(self) -> Names:
        timed = frozenset(column.axis for column in self._columns if column.timed)
        return Names(self.scratch, self._table, self._domain.names, self._lookups, timed, self._derived)

    def _derive(self, name: str, text: str, images: Images) -> str:
        """Learn a derived attribute; its type."""
        if folded(name) in map(folded, (*self._domain.names, *self._derived)):
            raise ConfigError(
                f"the derived attribute {clip(name)} has the name of another; call it otherwise"
            )
        try:
            node = in_lists(self.scratch.expression(f"({text})"))
            check_functions(node)
            names = self._names()
            resolved = names.resolve(node, names.rows(""))
            images.begin()
            images.image(resolved)
            kind = self.scratch.describe(f"SELECT ({text}) FROM {quoted(self._table)}")[0][1]
        except (ScratchError, UnsupportedQuery) as error:
            raise ConfigError(f"the derived attribute {clip(name)}: {clip(str(error), 300)}") from None
        self._derived[name] = resolved
        return kind

    def _plain(self, condition: str) -> Query:
        """Where a condition holds that `parse` reads: on levels that are no values it knows more."""
        types = {column.name: column.type for column in self._columns}
        text = f"SELECT COUNT(*) FROM {quoted(self._table)} WHERE {condition}"
        return parse(text, self._domain, self._table, types=types).queries[0]


def in_lists(node: Tree) -> Tree:
    """A tree with IN of constants in the place of a list that is searched, as in ``x IN [1, 2]``."""
    for holder, key, part in list(children(node)):
        holder[key] = in_lists(part)
    found = None
    if node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in _SEARCHES:
        found = node["children"] if len(node["children"]) == 2 else None
    elif node.get("class") == "SUBQUERY" and node["subquery_type"] == "ANY" and "child" in node:
        items = node["subquery"]["node"].get("select_list") or [{}]
        if node["comparison_type"] == "COMPARE_EQUAL" and items[0].get("function_name") == "unnest":
            found = [items[0]["children"][0], node["child"]]
    if found is None or found[0].get("function_name") != "list_value":
        return node
    held = found[0]["children"]
    if not held or any(one["class"] != "CONSTANT" or one["value"]["is_null"] for one in held):
        return node
    return {
        "class": "OPERATOR",
        "type": "COMPARE_IN",
        "alias": node["alias"],
        "query_location": node["query_location"],
        "children": [found[1], *held],
    }


def persons_counted(node: Tree, unit: PrivacyUnit) -> Tree:
    """
    A tree with COUNT(*) in the place of COUNT(person), and of COUNT(DISTINCT person) where they are one.

    With several rows a person, COUNT(DISTINCT *) stands for the latter.

    Notes
    -----
    **Privacy.**  Assumes that a row counts only if it has a person, and at most `unit.max_rows` rows of each
    do.  Guarantees that with one row a person both are the same number, of the same sensitivity: 1.
    """
    for holder, key, part in list(children(node)):
        holder[key] = persons_counted(part, unit)
    if node.get("class") != "FUNCTION" or str(node["function_name"]).lower() != "count":
        return node
    named = [part.get("column_names") or [""] for part in node["children"]]
    if len(named) != 1 or folded(named[0][-1]) != folded(str(unit.column)):
        return node
    distinct = bool(node["distinct"]) and unit.max_rows > 1
    return node | {"function_name": "count_star", "distinct": distinct, "children": []}


def check_functions(node: Tree) -> None:
    """Refuse, before anything is worked out, a function or a source that is in none of the lists."""
    if node.get("class") == "FUNCTION":
        name = str(node["function_name"]).lower()
        if name not in AGGREGATES | PUBLIC | FUNCTIONS | {"list_value"}:  # of the shares of quantiles
            raise unknown_function(name)
    if node.get("type") in ("TABLE_FUNCTION", "RECURSIVE_CTE_NODE", "PIVOT", "SHOW_REF", "COLUMN_DATA"):
        raise UnsupportedQuery("table functions, PIVOT and WITH RECURSIVE are not supported; name the table")
    for _, _, part in children(node):
        check_functions(part)


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
