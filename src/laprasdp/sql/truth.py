"""Conditions and weights over levels: SQL's three truth values, evaluated on classes and never on cells.

False, unknown and true are 0, 1, 2; AND is the least, OR the greatest, NOT is ``2 - x`` (Kleene's logic).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_VISITS
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import check_classes
from laprasdp.queries.runs import first_seen

FALSE, UNKNOWN, TRUE = 0, 1, 2
NOT = (TRUE, UNKNOWN, FALSE)
# What IS [NULL, TRUE, FALSE] makes of false, unknown and true.
IS = {None: (FALSE, TRUE, FALSE), True: (FALSE, FALSE, TRUE), False: (TRUE, FALSE, FALSE)}


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Leaf:
    """
    One number for every level of one attribute, or one number for all rows.

    Attributes
    ----------
    axis : int or None
    values : (levels,) or () array
        Truth values, or weights.
    """

    axis: int | None
    values: Array


@dataclass(frozen=True, eq=False)
class Joined:
    """The least (AND) or the greatest (OR) of its parts."""

    least: bool
    parts: tuple[Truth, ...]


@dataclass(frozen=True, eq=False)
class Mapped:
    """A truth value made from another: NOT, IS NULL, IS TRUE, IS FALSE."""

    part: Truth
    table: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Case:
    """The weight of the first condition that is true."""

    branches: tuple[tuple[Truth, Leaf], ...]
    default: Leaf


Truth = Leaf | Joined | Mapped
Weight = Leaf | Case


def constant(value: int, dtype: Any = np.int8) -> Leaf:
    """The same number for all rows."""
    return Leaf(None, np.array(value, dtype=dtype))


def join(parts: Iterable[Truth], *, least: bool) -> Truth:
    """AND (`least`) or OR of the parts; parts on one attribute become one."""
    single: dict[int | None, Array] = {}
    rest: list[Truth] = []
    choose = np.minimum if least else np.maximum
    for part in parts:
        if isinstance(part, Leaf):
            held = single.get(part.axis)
            single[part.axis] = part.values if held is None else choose(held, part.values)
        else:
            rest.append(part)
    joined = [*(Leaf(axis, values) for axis, values in single.items()), *rest]
    return joined[0] if len(joined) == 1 else Joined(least, tuple(joined))


def mapped(part: Truth, table: tuple[int, int, int]) -> Truth:
    """The truth values of `part` replaced by the entries of `table`."""
    if isinstance(part, Leaf):
        return Leaf(part.axis, np.array(table, dtype=np.int8)[part.values])
    return Mapped(part, table)


@dataclass(frozen=True)
class Tensor:
    """
    A weight over classes of levels, as `Query` takes it.

    Attributes
    ----------
    axes : tuple of int
        Ascending.
    labels : tuple of (levels,) int arrays
    weights : (c_1, …, c_k) int64 array
    """

    axes: tuple[int, ...]
    labels: tuple[Array, ...]
    weights: npt.NDArray[np.int64]


def tensor(domain: Domain, weight: Weight, condition: Truth) -> Tensor:
    """
    The weight of every row for which the condition is true, zero for all others.

    Raises
    ------
    UnsupportedQuery
        The classes or the conditions are too many; nothing of their size has been allocated.
    """
    leaves: dict[int, dict[bytes, Array]] = {}
    for leaf in [*_leaves(weight), *_leaves(condition)]:
        if leaf.axis is not None:
            leaves.setdefault(leaf.axis, {})[leaf.values.tobytes()] = leaf.values
    axes = tuple(sorted(leaves))
    labels, representatives = [], []
    for axis in axes:
        if len(leaves[axis]) * domain.shape[axis] > MAX_VISITS:
            raise UnsupportedQuery(
                f"{len(leaves[axis]):,} different conditions on {domain.names[axis]}, which has "
                f"{domain.shape[axis]:,} levels, are too many; ask in parts or coarsen it"
            )
        _, first, joint = first_seen(_joined(leaves[axis].values()))
        labels.append(joint)
        representatives.append(first)
    shape = [len(first) for first in representatives]
    check_classes(shape, [domain.names[axis] for axis in axes])
    classes = _Classes(axes, representatives)
    true = classes.truth(condition) == TRUE
    weights = np.where(true, classes.weight(weight), 0)
    return Tensor(axes, tuple(labels), np.broadcast_to(weights, shape))


def _joined(columns: Iterable[Array]) -> Array:
    """One number for each level, the same for two levels if all columns are the same on both."""
    joint, room = np.zeros(1, dtype=np.int64), 1  # numbers are below `room`
    for values in columns:
        kinds, numbers = (
            3,
            values,
        )  # truth values; as many as fit into 62 bits are joined before any are sorted
        if values.dtype != np.int8:
            distinct, _, numbers = first_seen(values)
            kinds = len(distinct)
        if room * kinds > 2**62:
            distinct, _, joint = first_seen(joint)
            room = len(distinct)
        joint = joint * kinds + numbers
        room *= kinds
    return joint


class _Classes:
    """Evaluates on one representative level of every class."""

    def __init__(self, axes: Sequence[int], representatives: Sequence[Array]) -> None:
        self.places = {axis: place for place, axis in enumerate(axes)}
        self.representatives = representatives

    def leaf(self, leaf: Leaf) -> Array:
        shape = [1] * len(self.representatives)
        if leaf.axis is None:
            return leaf.values.reshape(shape)
        place = self.places[leaf.axis]
        shape[place] = -1
        return leaf.values[self.representatives[place]].reshape(shape)

    def truth(self, node: Truth) -> Array:
        match node:
            case Leaf():
                return self.leaf(node)
            case Joined():
                return reduce(np.minimum if node.least else np.maximum, map(self.truth, node.parts))
            case Mapped():
                return np.array(node.table, dtype=np.int8)[self.truth(node.part)]

    def weight(self, node: Weight) -> Array:
        if isinstance(node, Leaf):
            return self.leaf(node)
        result = self.leaf(node.default)
        for condition, value in reversed(node.branches):
            result = np.where(self.truth(condition) == TRUE, self.leaf(value), result)
        return result


def _leaves(node: Truth | Weight) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Joined():
            for part in node.parts:
                yield from _leaves(part)
        case Mapped():
            yield from _leaves(node.part)
        case Case():
            yield node.default
            for condition, value in node.branches:
                yield from _leaves(condition)
                yield value
