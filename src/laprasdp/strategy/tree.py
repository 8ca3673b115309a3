r"""A strategy for one attribute of very many levels: a tree of small strategies, none of them n × n.

The levels are split into equal blocks again and again.  Each node of the tree measures how its block is
spread over its children, by one small centred matrix that all nodes of a depth share.  Rows of different
nodes are orthogonal, so a query needs only the nodes whose block it cuts: a range two of them at each depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.queries.runs import Labels, class_sizes, runs_of

SHORT = 256
"""Levels up to which an attribute has one strategy, written out."""

_WIDEST = 64  # children of a node


def branches_of(levels: int) -> tuple[int, ...]:
    """
    Children of the nodes at each depth, from the top: as even as can be, few levels too many.

    Examples
    --------
    >>> branches_of(100), branches_of(1_000), branches_of(1_000_000)
    ((100,), (32, 32), (32, 32, 32, 31))
    """
    if levels <= SHORT:
        return (levels,)
    depth = next(d for d in range(2, 64) if math.ceil(levels ** (1 / d)) <= _WIDEST)
    found = [math.ceil(levels ** (1 / depth))] * depth
    for place in reversed(range(depth)):
        while math.prod(found) // found[place] * (found[place] - 1) >= levels:
            found[place] -= 1
    return tuple(found)


@dataclass(frozen=True, eq=False)
class TreeShape:
    """
    A tree over the levels of an attribute.

    Attributes
    ----------
    levels : int
    branches : tuple of int
        Children of a node at each depth, from the top; their product is at least `levels`.
    rows : tuple of int
        Rows of a node at each depth.

    Notes
    -----
    Nodes are numbered depth after depth, and their rows in the same order.  Where the product passes
    `levels`, a function of the levels goes on beyond them as it ends: no record is there.
    """

    levels: int
    branches: tuple[int, ...]
    rows: tuple[int, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of a child at each depth."""
        return tuple(math.prod(self.branches[depth + 1 :]) for depth in range(len(self.branches)))

    @property
    def padded(self) -> int:
        """Levels with those that are added."""
        return math.prod(self.branches)

    @cached_property
    def firsts(self) -> npt.NDArray[np.int64]:
        """(depths + 1,) number of the first node of each depth, and of all nodes."""
        wide = [size * b for size, b in zip(self.sizes, self.branches, strict=True)]
        return np.cumsum([0, *(-(-self.levels // each) for each in wide)])

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """(depths + 1,) number of the first row of each depth, and of all rows."""
        return np.cumsum([0, *np.diff(self.firsts) * np.array(self.rows)])

    def depth(self, node: int) -> int:
        """How deep a node is."""
        return int(np.searchsorted(self.firsts, node, side="right")) - 1

    def block(self, node: int) -> tuple[int, int, int]:
        """First level of a node's block, levels of each child, and its children."""
        depth = self.depth(node)
        size, b = self.sizes[depth], self.branches[depth]
        return (node - int(self.firsts[depth])) * size * b, size, b

    def cut(self, labels: Labels) -> npt.NDArray[np.int64]:
        """The nodes whose block is cut by a boundary of two classes, ascending."""
        cuts = runs_of(labels).starts[1:]
        found = []
        for depth, (size, b) in enumerate(zip(self.sizes, self.branches, strict=True)):
            inside = cuts[cuts % (size * b) != 0] // (size * b)
            found.append(self.firsts[depth] + np.unique(inside))
        return np.concatenate(found)


def shape_with(levels: int, matrices: Sequence[npt.NDArray[Any]]) -> TreeShape:
    """The tree whose nodes have these matrices at each depth."""
    return TreeShape(levels, tuple(m.shape[1] for m in matrices), tuple(m.shape[0] for m in matrices))


@dataclass(frozen=True, eq=False)
class StrategyTree:
    """
    The strategy as integers.

    Attributes
    ----------
    levels : int
    matrices : tuple of (rows, children) int64 array
        What a node of each depth measures of its children's counts; every row sums to zero.
    """

    levels: int
    matrices: tuple[Ints, ...]

    @cached_property
    def shape(self) -> TreeShape:
        """The tree."""
        return shape_with(self.levels, self.matrices)

    @property
    def largest_square(self) -> int:
        """No column has a larger squared norm: a level is in one child at each depth; exact."""
        return sum(largest_square(matrix) for matrix in self.matrices)


@dataclass(frozen=True, eq=False)
class TreeRoot:
    r"""H with :math:`H^\top H=(A^\top A)^+`, by depth."""

    shape: TreeShape
    roots: tuple[Floats, ...]  # (rows, children)

    @classmethod
    def of(cls, levels: int, matrices: Sequence[npt.NDArray[Any]]) -> TreeRoot:
        """The root of what a node of each depth measures."""
        roots = tuple(np.linalg.pinv(matrix.astype(float)).T for matrix in matrices)
        return cls(shape_with(levels, matrices), roots)

    def sizes(self, labels: Labels, classes: int) -> Ints:
        """(classes,) levels of each class, with those that are added to the last level's."""
        sizes = class_sizes(labels, classes)
        sizes[runs_of(labels).values[-1]] += self.shape.padded - self.shape.levels
        return sizes

    def project(self, labels: Labels, values: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """
        Functions of the levels as seen by the rows.

        Parameters
        ----------
        labels : (levels,) int array or Runs
        values : (t, classes) array

        Returns
        -------
        ids : (k,) int64 array
            Rows of the nodes that the classes cut, ascending; the functions are 0 on all others.
        (t, k) array
        """
        runs = runs_of(labels)
        steps = values[:, runs.values]  # (t, runs)
        sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(steps * runs.lengths, axis=1)], axis=1)
        nodes, shape = self.shape.cut(runs), self.shape
        ids, seen = [], []
        for depth, root in enumerate(self.roots):
            first, end = np.searchsorted(nodes, shape.firsts[depth : depth + 2])
            blocks = nodes[first:end] - shape.firsts[depth]
            size, b, rows = shape.sizes[depth], shape.branches[depth], shape.rows[depth]
            edges = blocks[:, np.newaxis] * (size * b) + size * np.arange(b + 1)
            place = np.searchsorted(runs.starts, edges, side="right") - 1
            below = sums[:, place] + steps[:, place] * (edges - runs.starts[place])
            seen.append((np.diff(below, axis=2) / size @ root.T).reshape(len(values), -1))
            ids.append((shape.offsets[depth] + blocks[:, np.newaxis] * rows + np.arange(rows)).reshape(-1))
        return np.concatenate(ids), np.concatenate(seen, axis=1)


def largest_square(matrix: Ints) -> int:
    """Largest squared column norm, exact."""
    top = int(np.abs(matrix).max())
    exact = matrix.astype(object) if top * top * len(matrix) >= 2**62 else matrix
    return int((exact * exact).sum(axis=0).max())


def depth_moments(shape: TreeShape, labels: Sequence[Labels], values: Sequence[Floats]) -> list[Floats]:
    """(children, children) second moments of the children's means, summed over nodes and functions."""
    eyes = TreeRoot(
        TreeShape(shape.levels, shape.branches, shape.branches), tuple(map(np.eye, shape.branches))
    )
    found = [np.zeros((b, b)) for b in shape.branches]
    ends = eyes.shape.offsets
    for each, table in zip(labels, values, strict=True):
        ids, seen = eyes.project(each, table)
        for depth, b in enumerate(shape.branches):
            part = seen[:, slice(*np.searchsorted(ids, ends[depth : depth + 2]))].reshape(-1, b)
            part = part - part.mean(axis=1, keepdims=True)
            found[depth] += part.T @ part
    return found


def cut_moments(shape: TreeShape) -> list[Floats]:
    """The same for a range whose two ends are anywhere; exact but for a grid of 64 places a child."""
    found = []
    for size, b in zip(shape.sizes, shape.branches, strict=True):
        fine = min(size, 64)
        place = np.arange(b * fine) / fine
        mean = np.clip(place[:, np.newaxis] - np.arange(b), 0, 1)
        mean = mean - mean.mean(axis=1, keepdims=True)
        found.append(2 * mean.T @ mean / len(place))
    return found


def point_moments(shape: TreeShape) -> list[Floats]:
    """The same for a single level, each as likely."""
    return [(np.eye(b) - 1 / b) / (b * size**2) for size, b in zip(shape.sizes, shape.branches, strict=True)]
