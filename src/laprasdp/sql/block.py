"""A SELECT over private rows: its groups, its aggregates, and the same over what is released of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_GROUPS
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Tree, children, quoted, same
from laprasdp.sql.forms import column_form, constant_of
from laprasdp.sql.grouping import GroupingSet, grouped, keys_table
from laprasdp.sql.image import Images, axis_of
from laprasdp.sql.measured import Measured
from laprasdp.sql.moments import AGGREGATES
from laprasdp.sql.predicate import folded
from laprasdp.sql.relation import Names, SelectRows
from laprasdp.sql.result import RELEASED, Block
from laprasdp.sql.scalar import check_scalar
from laprasdp.sql.syntax import clip
from laprasdp.sql.truth import TRUE

_WHOLE_ONLY = frozenset(("//", "%", "mod", "&", "|", "<<", ">>", "xor", "~", "gcd", "lcm", "even"))


def is_grouped(node: Tree) -> bool:
    """Whether a SELECT shows groups, or one row for all: not the rows themselves."""
    if node["group_expressions"] or node.get("having") or node["aggregate_handling"] == "FORCE_AGGREGATES":
        return True
    distinct = any(one["type"] == "DISTINCT_MODIFIER" for one in node.get("modifiers") or ())
    return distinct or any(map(aggregates, node["select_list"]))


def aggregates(node: Tree) -> bool:
    """Whether an expression holds an aggregate over rows."""
    if node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in AGGREGATES:
        return True
    return any(aggregates(part) for _, _, part in children(node) if part.get("class") != "SUBQUERY")


@dataclass(frozen=True)
class _Key:
    """What a SELECT is grouped by: over levels, and whether it is the labels of levels."""

    node: Tree
    label: bool


class Blocks:
    """
    The SELECTs of one statement that are measured.

    Parameters
    ----------
    names : Names
    images : Images
    domain : Domain
    """

    def __init__(self, names: Names, images: Images, domain: Domain) -> None:
        self.names, self.images, self.domain = names, images, domain
        self._blocks: list[Block] = []
        self._selects: list[Tree] = []
        self._places: dict[Query, int] = {}
        self._groups = 0
        self.subquery: Callable[[Tree], SelectRows | None] = _refused

    def add(
        self, node: Tree, rows: SelectRows, labels: Sequence[str] | None
    ) -> tuple[frozenset[str], dict[str, Tree]]:
        """
        Have the aggregates of a SELECT measured, and let it select from what is released.

        Parameters
        ----------
        node : Tree
            Changed in place.
        rows : SelectRows
            What its FROM shows.
        labels : sequence of str, optional
            The names of its columns; DuckDB's own otherwise.

        Returns
        -------
        frozenset of str
            The folded names of its columns that are no public function of its keys.
        dict of folded name to Tree
            Its columns over what is released.
        """
        found = _Block(self, node, rows, labels)
        block = found.block(self._places, self._groups)
        self._groups += len(block.keys)
        if len(self._places) > MAX_GROUPS or self._groups > MAX_GROUPS:
            raise UnsupportedQuery(
                f"the statement needs {max(len(self._places), self._groups):,} counts; the limit is "
                f"{MAX_GROUPS:,}: ask in parts"
            )
        found.rewrite(f"{RELEASED}{len(self._blocks)}")
        self._blocks.append(block)
        self._selects.append(node)
        columns = zip(map(folded, found.titles), found.selected, strict=True)
        return found.noisy, dict(columns)

    def made(self) -> tuple[tuple[Query, ...], tuple[Block, ...]]:
        """The distinct queries of all blocks, and the blocks."""
        return tuple(self._places), tuple(self._blocks)

    def reform(self, node: Tree, columns: Sequence[Tree]) -> None:
        """Let the rows of a block show other columns, as a SELECT from it does."""
        place = next(place for place, one in enumerate(self._selects) if one is node)
        block = self._blocks[place]
        self._blocks[place] = replace(block, forms=tuple(column_form(one, block.slots) for one in columns))


class _Block:
    def __init__(self, blocks: Blocks, node: Tree, rows: SelectRows, labels: Sequence[str] | None) -> None:
        self.blocks, self.names = blocks, blocks.names
        self.images, self.domain = blocks.images, blocks.domain
        self.node, self.rows = node, rows
        self.items: list[Tree] = node["select_list"]
        self.aliases: Mapping[str, Tree] = {
            folded(one["alias"]): one for one in reversed(self.items) if one.get("alias")
        }
        self.titles = list(labels) if labels is not None else [self._title(one) for one in self.items]
        if any(one["class"] == "STAR" for one in self.items) or len(self.titles) != len(self.items):
            raise UnsupportedQuery("* is not supported: rows are private; name the keys and the aggregates")
        self.keys: list[_Key] = []
        self.measured = Measured(self.images, self.names.scratch, self.domain)

    def block(self, places: dict[Query, int], before: int) -> Block:
        """Read it: its groups and what each has to have measured."""
        node, sets = self.node, self._key_sets()
        condition = list(self.rows.conditions)
        if node["where_clause"]:
            condition.append(self.names.resolve(node["where_clause"], self.rows, self.aliases))
        kept = self._kept(condition)
        images = [self.images.image(key.node) for key in self.keys]
        self.selected: list[Tree] = []
        before_it: dict[str, Tree] = {}  # the aliases that stand before an item, as in DuckDB
        for item in self.items:
            self.selected.append(self._value(item, before_it))
            if item.get("alias"):
                before_it.setdefault(folded(item["alias"]), item)
        self.having = self._value(node["having"], self.aliases) if node.get("having") else None
        self.qualify = self._value(node["qualify"], self.aliases) if node.get("qualify") else None
        self.modifiers = [self._modifier(one) for one in node.get("modifiers") or ()]
        pairs = [(chosen, *grouped(images, chosen, kept, self.domain)) for chosen in sets]
        groups: list[GroupingSet] = [one for _, one, _ in pairs]
        table = keys_table(images, [(chosen, spots) for chosen, _, spots in pairs], before)
        slots = self.measured.ask(groups, places)
        forms = tuple(column_form(one, slots) for one in self.selected)
        return Block(table, slots, forms)

    def rewrite(self, source: str) -> None:
        """Let the SELECT take its groups from a released table."""
        node, scratch = self.node, self.names.scratch
        node["select_list"] = [
            one | {"alias": title} for one, title in zip(self.selected, self.titles, strict=True)
        ]
        node["from_table"] = scratch.read(f"SELECT 1 FROM {quoted(source)}")["from_table"]
        node["where_clause"], node["having"], node["qualify"] = self.having, None, self.qualify
        node["group_expressions"], node["group_sets"] = [], []
        node["aggregate_handling"], node["modifiers"] = "STANDARD_HANDLING", self.modifiers

    @property
    def noisy(self) -> frozenset[str]:
        """The folded names of the columns that are no public function of the keys."""
        return frozenset(
            folded(title) for title, one in zip(self.titles, self.selected, strict=True) if not _public(one)
        )

    def _title(self, item: Tree) -> str:
        if item.get("alias"):
            return str(item["alias"])
        names = item.get("column_names")
        return str(names[-1]) if names else self.names.scratch.spell(item)

    def _key_sets(self) -> list[list[int]]:
        node, scratch = self.node, self.names.scratch
        given: list[Tree] = list(node["group_expressions"])
        if not given and node["aggregate_handling"] == "FORCE_AGGREGATES":
            given = [one for one in self.items if not aggregates(one)]
        if not given and not any(map(aggregates, self.items)) and _distinct(node):
            given = list(self.items)
            node["modifiers"] = [one for one in node["modifiers"] if one["type"] != "DISTINCT_MODIFIER"]
        sets = [list(one) for one in node["group_sets"]] or [list(range(len(given)))]
        numbers: list[int] = []
        for one in given:
            place = constant_of(one)
            if place is not None and place.denominator == 1:
                if not 1 <= place <= len(self.items):
                    raise UnsupportedQuery(f"GROUP BY {place}: SELECT has {len(self.items)} columns")
                one = self.items[int(place) - 1]
            if aggregates(one):
                raise UnsupportedQuery(
                    f"GROUP BY {clip(scratch.spell(one))}: an aggregate is no key; name a column"
                )
            key = self.names.resolve(one, self.rows, self.aliases)
            known = next((n for n, held in enumerate(self.keys) if same(held.node, key)), None)
            if known is None:
                known = len(self.keys)
                self.keys.append(_Key(key, self._labelled(key)))
            numbers.append(known)
        return [sorted({numbers[place] for place in one}) for one in sets]

    def _labelled(self, key: Tree) -> bool:
        axis = axis_of(key)
        return axis is not None and not self.images.pointed(axis)

    def _value(self, node: Tree, aliases: Mapping[str, Tree] | None = None) -> Tree:
        """An expression over what is released: keys and aggregates are columns of it."""
        kind = node["class"]
        if kind == "FUNCTION" and str(node["function_name"]).lower() in AGGREGATES:
            return self._aggregate(node)
        if kind == "WINDOW":
            made = copy.deepcopy(node)
            for holder, name, part in list(children(made)):
                if part.get("class"):
                    holder[name] = self._value(part, aliases)
                elif part.get("expression"):
                    part["expression"] = self._value(part["expression"], aliases)
            return made
        if node["type"] == "GROUPING_FUNCTION":
            return self._grouping(node)
        key = self._key_of(node)
        if key is not None:
            return self.names.scratch.expression(f'"k{key}"')
        if kind == "COLUMN_REF":
            name = folded(node["column_names"][-1])
            if len(node["column_names"]) == 1 and aliases and name in aliases:
                return self._value(aliases[name])
            if self.rows.field(node["column_names"]) is None:
                raise self.names.unknown(node["column_names"], self.rows)
            raise UnsupportedQuery(
                f"{self._shown(node)} is neither in GROUP BY nor inside an aggregate; "
                "add it there, or leave it out"
            )
        if kind == "SUBQUERY":
            return self._subquery(node, aliases)
        check_scalar(node, lambda: self._shown(node))
        made = copy.deepcopy(node)
        for holder, name, part in list(children(made)):
            if "class" in part:
                holder[name] = self._value(part, aliases)
        self._check_exact(made, node)
        return made

    def _grouping(self, node: Tree) -> Tree:
        """GROUPING of keys: a bit for each, 1 where the grouping set has not got it."""
        keys = [self._key_of(one) for one in node["children"]]
        if None in keys:
            raise UnsupportedQuery(f"{self._shown(node)}: GROUPING takes keys of GROUP BY")
        bits = [f'"g{key}" * {2**place}' for place, key in enumerate(reversed(keys))]
        return self.names.scratch.expression(" + ".join(bits))

    def _subquery(self, node: Tree, aliases: Mapping[str, Tree] | None) -> Tree:
        """One number beside the groups, measured with them; or what a released table shows."""
        made = copy.deepcopy(node)
        if made.get("child"):
            made["child"] = self._value(made["child"], aliases)
        rows = self.blocks.subquery(made)
        if rows is None:
            return made
        inner = _Block(self.blocks, made["subquery"]["node"], rows, None)
        inner.measured = self.measured.within(self._kept(rows.conditions))
        return inner._value(inner.items[0])

    def _kept(self, conditions: Iterable[Tree]) -> Query:
        """Where all conditions are true."""
        kept = Query.constant(self.domain, TRUE)
        for one in conditions:
            kept = kept.combine(
                self.images.truth(one), lambda a, b: a * 0 + (a + b == 2 * TRUE) * TRUE
            ).canonical()
        return kept

    def _check_exact(self, made: Tree, node: Tree) -> None:
        """Refuse what DuckDB works out of whole numbers, or of values, and not of what is released."""
        parts = [part for _, _, part in children(made) if "class" in part]
        if any(self._label(part) for part in parts):
            raise UnsupportedQuery(
                f"{self._shown(node)}: the groups of this column are whole bins or steps; "
                "use the column itself as a key"
            )
        whole = made["class"] == "FUNCTION" and str(made["function_name"]).lower() in _WHOLE_ONLY
        if whole and not all(map(_public, parts)):
            raise UnsupportedQuery(
                f"{self._shown(node)}: this needs whole numbers, and noisy values are none; use / and ROUND"
            )

    def _label(self, node: Tree) -> bool:
        names = node.get("column_names") or [""]
        return names[0][:1] == "k" and names[0][1:].isdigit() and self.keys[int(names[0][1:])].label

    def _key_of(self, node: Tree) -> int | None:
        if aggregates(node) or not self.keys:
            return None
        try:
            meant = self.names.resolve(node, self.rows)
        except UnsupportedQuery:
            return None
        return next((place for place, key in enumerate(self.keys) if same(key.node, meant)), None)

    def _shown(self, node: Tree) -> str:
        return clip(self.names.scratch.spell(node))

    def _aggregate(self, node: Tree) -> Tree:
        name, shown = str(node["function_name"]), self._shown(node)
        shown = name.upper() + shown.removeprefix(f'"{name}"').removeprefix(name)
        last = node["children"][-1] if "quantile" in name and node["children"] else {}
        if last.get("function_name") == "list_value":  # of several shares
            made = copy.deepcopy(last)
            made["children"] = [
                self._aggregate(node | {"children": [*node["children"][:-1], one]})
                for one in last["children"]
            ]
            return made
        arguments = [self.names.resolve(one, self.rows) for one in node["children"]]
        orders = (node.get("order_bys") or {}).get("orders") or []
        falling = False
        if orders:
            if "quantile" not in name or len(orders) != 1:
                raise UnsupportedQuery(
                    f"{shown}: ORDER BY inside an aggregate is not supported; leave it out"
                )
            arguments.insert(0, self.names.resolve(orders[0]["expression"], self.rows))
            falling = orders[0]["type"] == "DESCENDING"
        condition = node.get("filter")
        condition = self.names.resolve(condition, self.rows) if condition else None
        if not falling:
            return self.measured.aggregate(node, arguments, condition, shown)
        minus = self.names.scratch.expression("-(x)")  # counted from the other end
        arguments[0] = minus | {"children": [arguments[0]]}
        return minus | {"children": [self.measured.aggregate(node, arguments, condition, shown)]}

    def _modifier(self, node: Tree) -> Tree:
        made = copy.deepcopy(node)
        if made["type"] == "LIMIT_PERCENT_MODIFIER":
            raise UnsupportedQuery("LIMIT with a percentage is not supported; give a number of rows")
        if made["type"] == "DISTINCT_MODIFIER" and made.get("distinct_on_targets"):
            raise UnsupportedQuery("DISTINCT ON is not supported; use GROUP BY")
        for key in ("limit", "offset"):
            if made.get(key) and constant_of(made[key]) is None:
                raise UnsupportedQuery(f"{key.upper()} takes a number")
        if made.get("orders"):
            made["orders"] = [one for order in made["orders"] for one in self._order(order)]
        return made

    def _order(self, order: Tree) -> list[Tree]:
        node = order["expression"]
        place = constant_of(node)
        if node["class"] == "STAR":
            return [order | {"expression": self._sorting(one)} for one in self.selected]
        if place is not None:
            if place.denominator != 1 or not 1 <= place <= len(self.items):
                raise UnsupportedQuery(f"ORDER BY {place}: SELECT has {len(self.items)} columns")
            return [order | {"expression": self._sorting(self.selected[int(place) - 1])}]
        names = node.get("column_names") or []
        if len(names) == 1:
            for title, one in zip(self.titles, self.selected, strict=True):
                if folded(title) == folded(names[0]):
                    return [order | {"expression": self._sorting(one)}]
        return [order | {"expression": self._sorting(self._value(node, self.aliases))}]

    def _sorting(self, node: Tree) -> Tree:
        """What a column sorts by: labels of levels in the order of the levels."""
        if self._label(node):
            return self.names.scratch.expression(f'"o{node["column_names"][0][1:]}"')
        return node


def _refused(node: Tree) -> SelectRows | None:
    raise UnsupportedQuery("a subquery is not supported here; use WITH or a subquery in FROM")


def _distinct(node: Tree) -> bool:
    return any(one["type"] == "DISTINCT_MODIFIER" for one in node.get("modifiers") or ())


def _public(node: Tree) -> bool:
    """Whether an expression over a released table looks at keys and constants alone."""
    names = node.get("column_names")
    if node.get("class") in ("WINDOW", "SUBQUERY") or (names and names[0][:1] == "m"):
        return False
    return all(_public(part) for _, _, part in children(node))
