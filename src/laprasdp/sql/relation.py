"""What the names of a SELECT mean: columns of the table, of lookups, and of subqueries that keep rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from laprasdp.errors import OtherTable, UnsupportedQuery
from laprasdp.limits import MAX_TOKENS
from laprasdp.scratch import Scratch, Tree, children, quoted
from laprasdp.sql.image import AXIS, DAY, axis_of
from laprasdp.sql.lookup import TABLE, Lookup
from laprasdp.sql.predicate import folded, nearest
from laprasdp.sql.scalar import CLOCK, check_scalar, daily, unknown_function
from laprasdp.sql.syntax import clip


@dataclass(frozen=True)
class Field:
    """A column that a name may mean: its qualifier, its name, and what it is on the levels."""

    table: str
    name: str
    node: Tree
    hidden: bool = False  # by USING: found by its qualifier only


@dataclass(frozen=True)
class SelectRows:
    """
    Private rows as a SELECT sees them.

    Attributes
    ----------
    fields : tuple of Field
    conditions : tuple of Tree
        SelectRows for which one of them is not true are left out.
    """

    fields: tuple[Field, ...]
    conditions: tuple[Tree, ...] = ()

    def called(self, alias: str, names: Sequence[str] = ()) -> SelectRows:
        """The same rows under another name, and their first columns under other names."""
        fields = [replace(one, table=alias) for one in self.fields if not one.hidden]
        for place, name in enumerate(names[: len(fields)]):
            fields[place] = replace(fields[place], name=name)
        return SelectRows(tuple(fields), self.conditions)

    def where(self, *conditions: Tree) -> SelectRows:
        """Those of the rows for which the conditions hold too."""
        return SelectRows(self.fields, (*self.conditions, *conditions))

    def field(self, names: Sequence[str]) -> Field | None:
        """
        The column of a name, or of a qualifier and a name; None where there is none.

        Raises
        ------
        UnsupportedQuery
            Several columns have the name.
        """
        parts = [folded(one) for one in names]
        if len(parts) == 3 and parts[0] == "main":
            parts = parts[1:]
        found = [
            one
            for one in self.fields
            if folded(one.name) == parts[-1]
            and (not one.hidden if len(parts) == 1 else len(parts) == 2 and folded(one.table) == parts[0])
        ]
        if len(found) > 1:
            raise UnsupportedQuery(
                f"{clip('.'.join(names))} is a column of several tables; write its table before it"
            )
        return found[0] if found else None


@dataclass(frozen=True)
class PublicRows:
    """
    The rows of a lookup, or of a SELECT from one.

    Attributes
    ----------
    source : Tree
        The table of FROM that shows them, of what the scratch keeps.
    columns : tuple of str
    alias : str
    """

    source: Tree
    columns: tuple[str, ...]
    alias: str

    def called(self, alias: str, names: Sequence[str] = ()) -> PublicRows:
        """The same rows under another name."""
        if names:
            raise UnsupportedQuery(
                "new names for the columns of a lookup are not supported; name them with AS"
            )
        return replace(self, alias=alias)


class Names:
    """
    Puts what names mean in their place.

    Parameters
    ----------
    scratch : Scratch
        Where the lookups are kept.
    table : str
    columns : sequence of str
        The attributes, in the order of the domain.
    lookups : mapping of name to Lookup
    timed : set of int
        The axes whose columns hold times of day: of those CAST(… AS DATE) is a level.
    derived : mapping of name to Tree
        Further columns, over levels.
    """

    def __init__(
        self,
        scratch: Scratch,
        table: str,
        columns: Sequence[str],
        lookups: Mapping[str, Lookup],
        timed: frozenset[int],
        derived: Mapping[str, Tree],
    ) -> None:
        self.scratch, self.table, self.columns, self.timed = scratch, table, columns, timed
        self.lookups = {folded(name): one for name, one in lookups.items()}
        self.public: dict[str, PublicRows] = {}
        self._written = 0
        self.derived = derived

    def rows(self, alias: str) -> SelectRows:
        """All rows of the private table."""
        made = self.scratch.expression("x.y")
        own = {
            name: made | {"column_names": [f"{AXIS}{axis}", "value"]}
            for axis, name in enumerate(self.columns)
        }
        return SelectRows(
            tuple(Field(alias or self.table, name, node) for name, node in {**own, **self.derived}.items())
        )

    def resolve(self, node: Tree, rows: SelectRows, aliases: Mapping[str, Tree] | None = None) -> Tree:
        """
        An expression with levels in the place of its columns.

        Parameters
        ----------
        node : Tree
        rows : SelectRows
        aliases : mapping of folded name to Tree, optional
            What else a name may mean, where it is no column.

        Raises
        ------
        UnsupportedQuery
            A name means nothing, or something in it is no function of columns.
        """
        if node["class"] == "COLUMN_REF":
            names = node["column_names"]
            found = rows.field(names)
            if found is not None:
                self._written += size_of(found.node)
                if self._written > MAX_TOKENS:
                    raise UnsupportedQuery(
                        "the statement is too long with its subqueries written out; "
                        f"the limit is {MAX_TOKENS:,} words: ask in parts"
                    )
                return copy.deepcopy(found.node)
            if aliases and len(names) == 1 and folded(names[0]) in aliases:
                return self.resolve(aliases[folded(names[0])], rows)
            raise self.unknown(names, rows)
        if node["class"] == "SUBQUERY":
            return self._subquery(node, rows, aliases)
        check_scalar(node, lambda: clip(self.scratch.spell(node)))
        made = copy.deepcopy(node)
        for holder, key, part in list(children(made)):
            if "class" in part:
                holder[key] = self.resolve(part, rows, aliases)
        if made["class"] == "CAST" and made["cast_type"]["id"] == "DATE":
            axis = axis_of(made["child"])
            if axis is not None and axis in self.timed:
                made = {**made["child"], "column_names": [f"{AXIS}{axis}", DAY]}
        place = daily(made) if made["class"] == "FUNCTION" else None
        axis = None if place is None else axis_of(made["children"][place])
        if axis is not None and axis in self.timed:
            day = {**made["children"][place], "column_names": [f"{AXIS}{axis}", DAY]}
            made["children"][place] = self.scratch.expression("CAST(x AS TIMESTAMP)") | {"child": day}
        return made

    def unknown(self, names: Sequence[str], rows: SelectRows) -> UnsupportedQuery:
        """The refusal of a name that means nothing."""
        if folded(names[-1]) in CLOCK:
            return unknown_function(folded(names[-1]))
        known = list(dict.fromkeys(one.name for one in rows.fields))
        near = nearest(names[-1], known)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(clip(one, 40) for one in known[:20])}"
        return UnsupportedQuery(f"no column {clip('.'.join(names))}; {hint}")

    def lookup(self, node: Tree) -> PublicRows | None:
        """The lookup that a table of FROM names, under the name that it has there."""
        if node.get("type") != "BASE_TABLE" or node.get("schema_name") not in ("", "main", None):
            return None
        name, alias = folded(node["table_name"]), node.get("alias") or node["table_name"]
        if not node.get("schema_name") and name in self.public:
            return self.public[name].called(alias)
        if name not in self.lookups:
            return None
        columns = tuple(self.lookups[name].rows.column_names)
        return PublicRows(self._source(f"{TABLE}{name}"), columns, alias)

    def _source(self, table: str) -> Tree:
        source: Tree = self.scratch.read(f"SELECT 1 FROM {quoted(table)}")["from_table"]
        return source

    def shown(self, select: Tree) -> PublicRows:
        """What a SELECT over a lookup shows, as a table of FROM."""
        source = self.scratch.read("SELECT 1 FROM (SELECT 1) AS q")["from_table"]
        source["subquery"]["node"] = copy.deepcopy(select)
        limited = self.scratch.read("SELECT * FROM x LIMIT 0")
        limited["from_table"] = source
        return PublicRows(source, tuple(self.scratch.run(limited).column_names), "")

    def narrowed(self, public: PublicRows, conditions: Sequence[Tree]) -> Tree:
        """The rows of a lookup for which conditions on its own columns hold, as a table of FROM."""
        if not conditions:
            return public.source
        for one in conditions:
            self._check(one)
        select = self.scratch.read("SELECT * FROM x WHERE a AND b")
        select["from_table"] = public.source | {"alias": public.alias}
        select["where_clause"]["children"] = list(conditions)
        return self.shown(select).source

    def _check(self, node: Tree) -> None:
        check_scalar(node, lambda: clip(self.scratch.spell(node)))
        for _, _, part in children(node):
            if "class" in part:
                self._check(part)

    def check_key(self, source: Tree, key: str, public: PublicRows) -> None:
        """Refuse a lookup that has several rows for one value of what it is joined by."""
        asked = self.scratch.read(f"SELECT count({quoted(key)}) - count(DISTINCT {quoted(key)}) FROM x")
        asked["from_table"] = source
        if self.scratch.run(asked).columns[0][0].as_py():
            raise UnsupportedQuery(
                f"{clip(public.alias)} has several rows of one {clip(key)}; join it by a column whose values "
                "come once"
            )

    def _subquery(self, node: Tree, rows: SelectRows, aliases: Mapping[str, Tree] | None) -> Tree:
        """A subquery over a lookup, which is public."""
        made = copy.deepcopy(node)
        select = made["subquery"]["node"]
        found = self.lookup(select.get("from_table") or {})
        plain = select["type"] == "SELECT_NODE" and not any(
            select.get(key) for key in ("group_expressions", "having", "qualify", "sample", "modifiers")
        )
        if found is None or not plain or select["cte_map"]["map"]:
            raise UnsupportedQuery(
                "a subquery in a condition on rows is not supported, but for SELECT … FROM a lookup WHERE …; "
                "ask it first, and write its value into the condition"
            )
        alias = found.alias
        select["from_table"] = found.source | {"alias": alias}
        own = SelectRows(
            tuple(
                Field(alias, name, self.scratch.expression(f"{quoted(alias)}.{quoted(name)}"))
                for name in found.columns
            )
        )
        if "EXISTS" in made["subquery_type"]:
            select["select_list"] = self.scratch.read("SELECT 1")["select_list"]
        both = SelectRows((*own.fields, *(one for one in rows.fields if own.field([one.name]) is None)))
        select["select_list"] = [self.resolve(one, both) for one in select["select_list"]]
        if select.get("where_clause"):
            select["where_clause"] = self.resolve(select["where_clause"], both)
        if made.get("child"):
            made["child"] = self.resolve(made["child"], rows, aliases)
        return made

    def check_table(self, node: Tree) -> None:
        """Refuse a table of FROM that is not the declared one."""
        if node.get("catalog_name") or node.get("schema_name") not in ("", "main", None):
            raise UnsupportedQuery(f"name the declared table {clip(self.table)} alone")
        if folded(node["table_name"]) != folded(self.table):
            raise OtherTable(f"no table {clip(node['table_name'])}; the declared table is {clip(self.table)}")
        if node.get("at_clause") or node.get("sample"):
            raise UnsupportedQuery(
                "a sample or a version of the table is not supported; all rows are counted"
            )


def size_of(node: Tree) -> int:
    """The nodes of an expression."""
    return 1 + sum(size_of(part) for _, _, part in children(node))
