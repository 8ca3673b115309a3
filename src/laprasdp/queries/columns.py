"""Distinct columns of a workload over a product domain that is never written out.

Cells on which every query of a workload has the same weight are one column.  Attributes are taken one
after another: a *state* says, for each query, which part of its tensor is left; states that are alike
merge at once, so the work follows the number of distinct columns and not the number of cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_CLASSES, MAX_COLUMNS
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.queries.runs import (
    Labels,
    Runs,
    class_sizes,
    first_seen,
    packed,
    relabelled,
    together,
    unpacked,
)

_ENTRIES = 2**26  # queries times columns
_CHUNK = 2**26  # bytes of states looked at together
_STACKED = 2**24  # levels times queries up to which the labels of a level are sorted as one row


@dataclass(frozen=True)
class Columns:
    """
    The distinct columns of a workload, and the way from a cell to its column.

    Attributes
    ----------
    values : (m, p) int64 array
        Weight of each query on each distinct column.
    axes : tuple of int
        The attributes that any query names, ascending.
    labels : tuple of (levels,) int arrays or Runs
        Joint class of each level of each of these attributes.
    steps : tuple of (states, classes) int arrays
        State and class to the next state; the last states are the columns.
    """

    values: Ints
    axes: tuple[int, ...]
    labels: tuple[Labels, ...]
    steps: tuple[npt.NDArray[np.intp], ...]

    @property
    def sizes(self) -> Floats:
        """(p,) combinations of levels of `axes` that each column stands for."""
        count: Floats = np.ones(1)
        for labels, step in zip(self.labels, self.steps, strict=True):
            each = np.multiply.outer(count, class_sizes(labels, step.shape[1]))
            count = np.bincount(step.reshape(-1), each.reshape(-1)).astype(float)
        return count

    def locate(self, levels: Mapping[int, npt.NDArray[Any]], rows: int) -> npt.NDArray[np.intp]:
        """
        The column of each of some cells.

        Parameters
        ----------
        levels : mapping of axis to (rows,) int array

        Returns
        -------
        (rows,) int array
        """
        state = np.zeros(rows, dtype=np.intp)
        for axis, labels, step in zip(self.axes, self.labels, self.steps, strict=True):
            state = step[state, unpacked(labels)[levels[axis]]]
        return state

    def spread(self, template: Query, amounts: Ints) -> Query:
        """
        The query whose weight on a cell is the amount of the cell's column.

        Parameters
        ----------
        template : Query
            Any query of the domain.
        amounts : (p,) int array

        Raises
        ------
        UnsupportedQuery
            The joint classes pass ``MAX_CLASSES``.
        """
        state = np.zeros((), dtype=np.intp)
        for step in self.steps:
            if state.size * step.shape[1] > MAX_CLASSES:
                raise UnsupportedQuery(f"the charge tells more than {MAX_CLASSES:,} classes of cells apart")
            state = step[state]
        return Query.over(template.domain, self.axes, self.labels, amounts[state])


def distinct_columns(queries: Sequence[Query], most: int = MAX_COLUMNS) -> Columns:
    """
    Merge the cells on which all queries agree.

    Parameters
    ----------
    queries : sequence of m queries over one domain
    most : int
        Refuse more distinct columns than this.

    Raises
    ------
    UnsupportedQuery
        More than `most` distinct columns, or fewer with more than 134 queries.

    Notes
    -----
    Time :math:`O(m \\sum_d s_d c_d)` for :math:`s_d` states before attribute d and its :math:`c_d`
    joint classes, and sorting them.
    """
    domain = queries[0].domain
    axes = sorted({axis for query in queries for axis in query.axes})
    limit = min(most, _ENTRIES // len(queries))
    _check(domain, axes, _least(queries), limit)
    trees = [_transitions(query) for query in queries]
    states = np.zeros((1, len(queries)), dtype=np.uint32)
    labels, steps = [], []
    for axis in axes:
        naming = [i for i, query in enumerate(queries) if axis in query.axes]
        classes, joint = joint_classes([queries[i].steps[queries[i].axes.index(axis)] for i in naming])
        labels.append(joint)
        moves = [trees[i].tables[queries[i].axes.index(axis)][:, classes[:, k]] for k, i in enumerate(naming)]
        states, step = _advance(states, naming, moves)
        steps.append(step)
        _check(domain, axes, len(states), limit)
    values = np.stack([tree.leaves[states[:, i]] for i, tree in enumerate(trees)])
    return Columns(values, tuple(axes), tuple(labels), tuple(steps))


def _least(queries: Sequence[Query]) -> int:
    """Columns that the queries over one attribute alone tell apart: all combinations of their classes."""
    alone: dict[int, list[Labels]] = {}
    for query in queries:
        if len(query.axes) == 1:
            alone.setdefault(query.axes[0], []).append(relabelled(query.steps[0], query.weights.reshape(-1)))
    return math.prod(len(joint_classes(labels)[0]) for labels in alone.values())


def joint_classes(each: Sequence[Labels]) -> tuple[npt.NDArray[Any], Labels]:
    """
    Group the levels of an attribute by several labellings at once.

    Parameters
    ----------
    each : sequence of m labellings of the same levels

    Returns
    -------
    classes : (c, m) int array
        The labels of each joint class.
    labels : (levels,) int array or Runs
        The joint class of each level.
    """
    starts, labels = together(each)
    if len(labels) * len(labels[0]) > _STACKED:  # sorting rows so long takes minutes
        joint = np.zeros(len(labels[0]), dtype=np.int64)
        for column in labels:
            joint = first_seen(joint * (int(column.max()) + 1) + column)[2]
        first = first_seen(joint)[1]
        classes = np.stack([column[first] for column in labels], axis=1)
    else:
        classes, joint = _unique_rows(np.stack(labels, axis=1))
    if starts is None:
        return classes, joint
    size = next(runs.size for runs in each if isinstance(runs, Runs))
    return classes, packed(Runs(size, starts, joint))


def _check(domain: Domain, axes: Sequence[int], columns: int, limit: int) -> None:
    if columns > limit:
        widest = max(axes, key=lambda axis: domain.shape[axis])
        raise UnsupportedQuery(
            f"the workload tells at least {columns:,} columns apart; the limit is {limit:,}: "
            f"coarsen {domain.names[widest]} ({domain.shape[widest]:,} levels) or predict fewer queries"
        )


@dataclass(frozen=True)
class _Tree:
    tables: list[npt.NDArray[np.uint32]]  # (nodes, classes) to nodes, one an axis
    leaves: Ints


def _transitions(query: Query) -> _Tree:
    """The query's tensor as a chain of tables: equal sub-tensors are one node."""
    nodes = query.weights[np.newaxis]
    tables = []
    for classes in query.weights.shape:
        parts = nodes.reshape(len(nodes) * classes, *nodes.shape[2:])
        numbers: dict[bytes, int] = {}
        ids = np.array([numbers.setdefault(part.tobytes(), len(numbers)) for part in parts], dtype=np.uint32)
        tables.append(ids.reshape(len(nodes), classes))
        nodes = parts[np.unique(ids, return_index=True)[1]]
    return _Tree(tables, nodes.reshape(-1))


def _advance(
    states: npt.NDArray[np.uint32], naming: list[int], moves: list[npt.NDArray[np.uint32]]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """All states after one more attribute, merged, and where each (state, class) leads."""
    classes = moves[0].shape[1]
    rows = max(1, _CHUNK // (4 * states.shape[1] * classes))
    found, inverse = [], []
    for start in range(0, len(states), rows):
        part = np.repeat(states[start : start + rows, np.newaxis], classes, axis=1)
        for query, move in zip(naming, moves, strict=True):
            part[:, :, query] = move[states[start : start + rows, query]]
        unique, where = _unique_rows(part.reshape(-1, states.shape[1]))
        found.append(unique)
        inverse.append(where)
    if len(found) == 1:
        return found[0], inverse[0].reshape(-1, classes)
    merged, where = _unique_rows(np.concatenate(found))
    offsets = np.cumsum([0, *(len(unique) for unique in found)])
    step = np.concatenate([where[offset + part] for offset, part in zip(offsets, inverse, strict=False)])
    return merged, step.reshape(-1, classes)


def _unique_rows(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Distinct rows and the place of each row among them; exact, by bytes."""
    top = int(rows.max(initial=0))
    narrow = np.ascontiguousarray(
        rows.astype(np.uint8 if top < 2**8 else np.uint16 if top < 2**16 else np.uint32)
    )
    width = math.prod(narrow.shape[1:]) * narrow.itemsize
    opaque = narrow.view(np.dtype((np.void, width))).reshape(-1)
    _, first, inverse = np.unique(opaque, return_index=True, return_inverse=True)
    return rows[first], inverse.reshape(-1)
