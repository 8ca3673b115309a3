"""Scalar expressions over declared attributes: DuckDB works out their values on the declared levels.

A level that stands for one value has one point; a bin of whole numbers and a step of dates have a point for
each value in them, and an expression has to be the same on all of them.
"""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import json
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Ints
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_CLASSES, MAX_POINTS, MAX_SPELLED
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.scratch import Scratch, ScratchError, Tree, children, quoted
from laprasdp.sql.reference import ColumnRef
from laprasdp.sql.scalar import growth
from laprasdp.sql.syntax import clip
from laprasdp.sql.truth import FALSE, TRUE, UNKNOWN

AXIS, DAY = "lapras axis ", "day"
_ROOM, _SMALL = 256, 2**14  # images that are remembered, and the cells of each at most
_VALUE = 40  # characters of a number or date


@dataclass(frozen=True)
class Image:
    """
    An expression as a function of the cells.

    Attributes
    ----------
    cells : Query
        The place in `values` of the value of each cell.
    values : pa.Array
        The distinct values, in DuckDB's order, NULL last.
    """

    cells: Query
    values: pa.Array


def axis_of(node: Tree) -> int | None:
    """The axis whose level a node stands for."""
    names = node.get("column_names", ())
    return int(names[0].removeprefix(AXIS)) if names and names[0].startswith(AXIS) else None


def axes_of(node: Tree) -> Iterator[int]:
    """Every axis that an expression names."""
    axis = axis_of(node)
    if axis is not None:
        yield axis
    for _, _, part in children(node):
        yield from axes_of(part)


class Images:
    """
    Works out expressions on the declared levels, and remembers what it worked out.

    Parameters
    ----------
    scratch : Scratch
    columns : sequence of ColumnRef
        One for each attribute of the domain, in its order.
    domain : Domain
    plain : callable
        Where a condition that `parse` reads is true: 1, and 0 elsewhere.
    """

    def __init__(
        self, scratch: Scratch, columns: Sequence[ColumnRef], domain: Domain, plain: Callable[[str], Query]
    ) -> None:
        self._scratch, self._columns, self._domain, self._plain = scratch, columns, domain, plain
        self._levels: dict[int, Ints] = {}
        self._known: dict[str, Image] = {}
        self._now: dict[str, Image] = {}  # columns of this statement, which it may name several times
        self._taken = 0

    def image(self, node: Tree) -> Image:
        """
        The values of an expression whose columns are levels, and where each is taken.

        Raises
        ------
        UnsupportedQuery
            It fails on a declared level, is not the same on a whole bin, or the cells are too many.
        """
        key = json.dumps(_bare(node), sort_keys=True)
        if key in self._now:
            return self._now[key]
        self._check_size(node)
        if key not in self._known:
            found = self._image(node)
            if axis_of(node) is not None:
                self._now[key] = found
            if found.cells.weights.size > _SMALL:
                return found
            self._known[key] = found
            if len(self._known) > _ROOM:
                del self._known[next(iter(self._known))]
        return self._known[key]

    def begin(self) -> None:
        """Go to another statement, whose expressions have the whole limit."""
        self._taken = 0
        self._now.clear()

    def _image(self, node: Tree) -> Image:
        self._check_types(node)
        axis = axis_of(node)
        if axis is not None and not self.pointed(axis):
            return self._labels(axis)
        axes = sorted(set(axes_of(node)))
        select = self._select(axes)
        select["select_list"] = [node | {"alias": "value"}]
        found = self._run(select, node)
        found = found.append_column("place", pa.array(range(len(found))))
        ranked = self._scratch.read(
            'SELECT dense_rank() OVER (ORDER BY value) - 1, value FROM "lapras found" ORDER BY place'
        )
        try:
            ranks, values = self._scratch.run(ranked, {"lapras found": found}).columns
        except ScratchError as error:
            raise UnsupportedQuery(f"{self.shown(node)}: {error}") from None
        ids = np.asarray(ranks).astype(np.int64)
        first = np.unique(ids, return_index=True)[1]
        return Image(self._cells(axes, ids, node), values.combine_chunks().take(pa.array(first)))

    def truth(self, node: Tree) -> Query:
        """
        The truth value of a condition on each cell: FALSE, UNKNOWN or TRUE.

        Raises
        ------
        UnsupportedQuery
            As for `image`.
        """
        kind = node["type"]
        if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
            choose = np.minimum if kind == "CONJUNCTION_AND" else np.maximum
            parts = [self.truth(part) for part in node["children"]]
            whole = parts[0]
            for part in parts[1:]:
                whole = whole.combine(part, cast(Callable[[Ints, Ints], Ints], choose)).canonical()
            return whole
        if kind == "OPERATOR_NOT":
            inner = self.truth(node["children"][0])
            return inner.spread(2 - inner.weights)
        if not all(map(self._valued, [node, *_below(node)])):
            return self._compared(node)
        made = self._scratch.expression("CAST(x AS BOOLEAN)")
        image = self.image(made | {"child": node})
        level = {False: FALSE, None: UNKNOWN, True: TRUE}
        values = np.array([level[one] for one in image.values.to_pylist()], dtype=np.int64)
        return image.cells.spread(values[image.cells.weights]).canonical()

    def _valued(self, node: Tree) -> bool:
        """Whether a node is no column whose levels are no values."""
        axis = axis_of(node)
        if axis is None or node["column_names"][1] == DAY:
            return True
        column, attribute = self._columns[axis], self._columns[axis].attribute
        real = isinstance(attribute, Bins) and not attribute.whole
        other = isinstance(attribute, Categories) and attribute.other
        return not (real or other or column.timed or column.long or "COLLATE" in column.type)

    def _compared(self, node: Tree) -> Query:
        """A condition on levels that are no values: a comparison of a column with constants, or refused."""
        if any(map(_lost, [node, *_below(node)])):
            raise UnsupportedQuery(
                f"{self.shown(node)}: this column is compared with plain constants only, "
                "without exponents, lookups and other columns"
            )
        if any(part.get("class") == "FUNCTION" for part in _below(node)):
            self._check_types(node)
        text = self._spelled(node)
        true, false = self._plain(text), self._plain(f"NOT ({text})")
        unknown = Query.constant(self._domain, UNKNOWN).combine(true, lambda one, yes: one + yes)
        return unknown.combine(false, lambda one, no: one - no).canonical()

    def shown(self, node: Tree) -> str:
        """An expression for a message, with the names of its columns."""
        return clip(self._spelled(node))

    def _spelled(self, node: Tree) -> str:
        named = copy.deepcopy(node)
        self._name(named)
        return self._scratch.spell(named)

    def _name(self, node: Tree) -> None:
        axis = axis_of(node)
        if axis is not None:
            node["column_names"] = [self._columns[axis].name]
        for _, _, part in children(node):
            self._name(part)

    def _check_types(self, node: Tree, *, within: bool = False) -> None:
        """Refuse times of day whose day is not taken, and texts that do not compare by their characters."""
        axis = axis_of(node)
        if axis is not None:
            column, name = self._columns[axis], clip(self._columns[axis].name)
            if column.timed and node["column_names"][1:] != [DAY]:
                raise UnsupportedQuery(f"{name} holds times of day; write CAST({name} AS DATE)")
            if "COLLATE" in column.type:
                raise UnsupportedQuery(f"{name} has a collation, and texts compare by their characters here")
            if within and column.long:
                raise UnsupportedQuery(
                    f"{name} holds {column.type}, which DuckDB rounds one way or another in an expression; "
                    "compare the column itself, or declare a smaller type"
                )
        for _, _, part in children(node):
            self._check_types(part, within=True)

    def _run(self, select: Tree, node: Tree) -> pa.Table:
        try:
            return self._scratch.run(select)
        except ScratchError as error:
            raise UnsupportedQuery(
                f"{self.shown(node)} fails on a declared value: {clip(str(error), 200)}; "
                "narrow it with CASE, TRY_CAST or NULLIF"
            ) from None

    def _select(self, axes: Sequence[int]) -> Tree:
        """A SELECT from the points of these axes, in their order."""
        if not axes:
            return self._scratch.read("SELECT 1")
        tables = [quoted(f"{AXIS}{axis}") for axis in axes]
        order = ", ".join(f"{table}.place" for table in tables)
        return self._scratch.read(f"SELECT 1 FROM {', '.join(tables)} ORDER BY {order}")

    def _check_size(self, node: Tree) -> None:
        """Refuse an expression that takes long to work out, whether or not it was worked out before."""
        axes = sorted(set(axes_of(node)))
        if axis_of(node) is not None and not self.pointed(axes[0]):
            return
        points = math.prod(len(self._points(axis)) for axis in axes)
        self._taken += points
        if self._taken > MAX_POINTS:
            names = ", ".join(clip(self._columns[axis].name, 40) for axis in axes)
            raise UnsupportedQuery(
                f"with an expression over {names} the statement has {self._taken:,} values to work out; "
                f"the limit is {MAX_POINTS:,}: name fewer attributes in it or coarsen them"
            )
        widest = max([_VALUE, *(self._width(axis) for axis in axes)])
        if points * widest * growth(node) > MAX_SPELLED:
            raise UnsupportedQuery(f"{self.shown(node)} may give too long texts; build shorter ones")

    def _width(self, axis: int) -> int:
        """Characters of the longest label of texts."""
        attribute = self._columns[axis].attribute
        return max(map(len, attribute.names), default=0) if isinstance(attribute, Categories) else 0

    def _cells(self, axes: Sequence[int], ids: Ints, node: Tree) -> Query:
        """Ids of points as ids of cells, where all points of a level have the same."""
        levels = [self._points(axis) for axis in axes]
        tensor = ids.reshape([len(one) for one in levels])
        for place, (axis, mine) in enumerate(zip(axes, levels, strict=True)):
            first = np.unique(mine, return_index=True)[1]
            taken = tensor.take(first, axis=place)
            differs = (tensor != taken.take(mine, axis=place)).nonzero()[place]
            if len(differs):
                raise self._cut(axis, int(differs[0]), node)
            tensor = taken
        shape = [np.arange(size) for size in tensor.shape]
        return Query.over(self._domain, tuple(axes), tuple(shape), tensor).canonical()

    def _cut(self, axis: int, point: int, node: Tree) -> UnsupportedQuery:
        column, level = self._columns[axis], int(self._points(axis)[point])
        attribute = column.attribute
        edges: Any = getattr(attribute, "edges", (level, level + 1))
        return UnsupportedQuery(
            f"{self.shown(node)} cuts {clip(column.name)} between {edges[level]} and {edges[level + 1]}, "
            f"whose values are counted together; it may change at the edges only: "
            f"the nearest are {edges[level]} and {edges[level + 1]}"
        )

    def pointed(self, axis: int) -> bool:
        """Whether every level is one value."""
        attribute = self._columns[axis].attribute
        if isinstance(attribute, Categories):
            return not attribute.other
        if isinstance(attribute, Dates):
            return attribute.step == 1
        return not isinstance(attribute, Bins)

    def _labels(self, axis: int) -> Image:
        """A column whose levels are no single values, as the labels of its levels."""
        attribute = self._columns[axis].attribute
        labels = [attribute.label(level) for level in range(attribute.size)]
        cells = Query.over(self._domain, (axis,), (np.arange(len(labels)),), np.arange(len(labels)))
        return Image(cells, pa.array(labels, pa.string()))

    def _points(self, axis: int) -> Ints:
        """The level of each point of an axis; its table is kept in the scratch."""
        if axis not in self._levels:
            column = self._columns[axis]
            levels, values = _points_of(column)
            if column.attribute.nullable:
                levels, values = [*levels, column.attribute.values], [*values, None]
            table = pa.table({"place": np.arange(len(levels)), "value": _array(values)})
            kind = "DATE" if column.timed else column.type
            taken = f"place, CAST(value AS {kind}) AS {DAY if column.timed else 'value'}"
            self._scratch.keep(f"{AXIS}{axis}", table, taken)
            self._levels[axis] = np.array(levels, dtype=np.int64)
        return self._levels[axis]


def _below(node: Tree) -> Iterator[Tree]:
    """Every node below a node."""
    for _, _, part in children(node):
        yield part
        yield from _below(part)


def _lost(node: Tree) -> bool:
    """Whether a node does not survive being spelled: a DOUBLE, the day of a time, a subquery."""
    constant = node.get("class") == "CONSTANT" and node["value"]["type"]["id"] in ("DOUBLE", "FLOAT")
    day = axis_of(node) is not None and node["column_names"][1] == DAY
    return constant or day or node.get("class") == "SUBQUERY"


def _points_of(column: ColumnRef) -> tuple[Sequence[int], Sequence[Any]]:
    """The level of each value that a declared attribute can take, and the value; NULL apart."""
    attribute: Attribute = column.attribute
    name = clip(column.name)
    match attribute:
        case Integers(min=low, max=high):
            return range(attribute.values), range(low, high + 1)
        case Reals():
            return range(attribute.values), [attribute.value(level) for level in range(attribute.values)]
        case Booleans():
            return range(2), [False, True] if attribute.label(0) is False else [True, False]
        case Categories(names=names, other=other):
            if other:
                raise UnsupportedQuery(
                    f"{name} has one level for all other texts, on which an expression has no one value; "
                    "compare the column itself, or declare it without other"
                )
            return range(len(names)), list(names)
        case Bins(edges=edges, whole=whole):
            if not whole:
                raise UnsupportedQuery(
                    f"{name} holds bins of real numbers, on which an expression has no one value; "
                    "compare the column itself, or group by it"
                )
            if edges[-1] - edges[0] > MAX_CLASSES:
                raise UnsupportedQuery(f"{name} has too many values for an expression; compare it itself")
            sizes = [int(b - a) for a, b in itertools.pairwise(edges)]
            return np.repeat(np.arange(len(sizes)), sizes).tolist(), range(int(edges[0]), int(edges[-1]))
        case Dates(edges=days):
            sizes = [(b - a).days for a, b in itertools.pairwise(days)]
            dates = [days[0] + dt.timedelta(days=one) for one in range(sum(sizes))]
            return np.repeat(np.arange(len(sizes)), sizes).tolist(), dates
    raise UnsupportedQuery(f"{name} cannot stand in an expression; compare the column itself")


def _array(values: Sequence[Any]) -> pa.Array:
    """Public values; whole numbers beyond 64 bits as texts, which DuckDB casts exactly."""
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([None if one is None else str(one) for one in values])


def ids_of(keys: Sequence[Query], sizes: Sequence[int], domain: Domain) -> Query:
    """One number for each combination of the ids of several functions of the cells."""
    whole = Query.constant(domain, 0)
    for key, size in zip(keys, sizes, strict=True):
        whole = whole.spread(whole.weights * size).combine(key, operator.add).canonical()
    return whole


def _bare(node: Any) -> Any:
    """A tree without what has no meaning: where it stood, and what it was called."""
    if isinstance(node, dict):
        return {key: _bare(part) for key, part in node.items() if key not in ("query_location", "alias")}
    return [_bare(part) for part in node] if isinstance(node, list) else node
