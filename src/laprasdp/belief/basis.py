"""Queries that rows are made of, as terms seen by a prior; what others have in common with them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from laprasdp.arrays import Floats, Ints
from laprasdp.queries.runs import class_sizes
from laprasdp.strategy.factor import Dense, Root
from laprasdp.strategy.subspaces import Axes
from laprasdp.strategy.terms import Terms

_BLOCK = 2**20  # pairs of terms looked at together
_NONE = np.zeros(0, dtype=np.int64)


class View(NamedTuple):
    """The terms of one query as a prior sees them; all by the axes that the query names."""

    coefficients: Floats  # (t,)
    means: dict[int, Floats]  # (t,)
    seen: dict[int, tuple[Ints | None, Floats]]  # ids of rows, None for all, and (t, k)

    def terms(self, part: slice) -> View:
        """Some of the terms."""
        means = {axis: mean[part] for axis, mean in self.means.items()}
        seen = {axis: (ids, values[part]) for axis, (ids, values) in self.seen.items()}
        return View(self.coefficients[part], means, seen)


def view_of(found: Terms, roots: Mapping[int, Root]) -> View:
    """How a prior with these roots sees the terms of a query."""
    means, seen = {}, {}
    for axis, functions in found.factors.items():
        root, classes = roots.get(axis), functions.values.shape[1]
        sizes = (class_sizes if root is None else root.sizes)(functions.labels, classes)
        means[axis] = np.asarray(functions.values @ (sizes / sizes.sum()))
        if root is not None:
            seen[axis] = root.project(*functions)
    return View(found.coefficients, means, seen)


class Basis:
    """
    A stack of terms that grows; a copy shares the arrays until it grows itself.

    Parameters
    ----------
    axes : int
        Attributes of the domain.
    roots : mapping of axis to Root
        How the prior sees each attribute that it measures more of than constants.
    """

    def __init__(self, axes: int, roots: Mapping[int, Root]) -> None:
        wide = {axis: len(root.matrix) for axis, root in roots.items() if isinstance(root, Dense)}
        self._seen = {axis: np.zeros((0, rows)) for axis, rows in wide.items()}  # 0 if not named
        self._sparse = {axis: Sparse() for axis in roots if axis not in wide}
        self._means, self._coefficients = np.zeros((axes, 0)), np.zeros(0)  # (axes, room), (room,)
        self._starts: list[int] = []
        self._terms, self._owned = 0, True

    def add(self, views: Sequence[View]) -> None:
        """More queries."""
        counts = [len(view.coefficients) for view in views]
        ends = np.cumsum([self._terms, *counts])
        if ends[-1] > len(self._coefficients) or not self._owned:
            room, used = 2 * int(ends[-1]), slice(self._terms)
            self._seen = {axis: moved(x[used], (room, x.shape[1])) for axis, x in self._seen.items()}
            self._means = moved(self._means[:, used], (len(self._means), room))
            self._coefficients = moved(self._coefficients[used], (room,))
            self._owned = True
        for view, start, end in zip(views, ends[:-1], ends[1:], strict=True):
            new = slice(start, end)
            self._means[:, new] = 1
            for axis, means in view.means.items():
                self._means[axis, new] = means
            for axis, (_, seen) in view.seen.items():
                if axis in self._seen:
                    self._seen[axis][new] = seen
            self._coefficients[new] = view.coefficients
        for axis, table in self._sparse.items():
            rows = (
                view.seen.get(axis, (_NONE, np.zeros((t, 0)))) for view, t in zip(views, counts, strict=True)
            )
            self._sparse[axis] = table.grown([(_NONE if ids is None else ids, seen) for ids, seen in rows])
        self._starts += ends[:-1].tolist()
        self._terms = int(ends[-1])

    @property
    def count(self) -> int:
        """Terms of all queries."""
        return self._terms

    @property
    def coefficients(self) -> Floats:
        """(terms,) of each term."""
        return self._coefficients[: self._terms]

    @property
    def means(self) -> Floats:
        """(axes, terms) means of the terms' functions; 1 if not named."""
        return self._means[:, : self._terms]

    def seen(self, axis: int) -> Floats:
        """(terms, rows) how the prior sees the terms' functions of a short attribute; 0 if not named."""
        return self._seen[axis][: self._terms]

    def by_query(self, joint: Floats) -> Floats:
        """(g, b) sums of (g, terms) over the terms of each query."""
        return np.asarray(np.add.reduceat(joint, self._starts, axis=1))

    def copy(self) -> Basis:
        """An independent basis in the same state."""
        other = copy.copy(self)
        other._starts, other._owned = list(self._starts), False
        other._sparse = dict(self._sparse)
        return other

    def covariances(self, asked: Sequence[View], precisions: Mapping[Axes, float]) -> Floats:
        """(q, b) prior covariances of queries with those of the basis."""
        found = np.zeros((len(asked), len(self._starts)))
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, view in enumerate(asked):
            alike.setdefault(tuple(sorted(view.means)), []).append(place)
        for axes, places in alike.items():
            wanted = {s: m for s, m in precisions.items() if set(s) <= set(axes)}
            for part in self._blocks(asked, places):
                sums = self._alike([view for _, view in part], axes, wanted)
                np.add.at(found, [place for place, _ in part], sums)
        return found

    def _blocks(self, asked: Sequence[View], places: Sequence[int]) -> Iterator[list[tuple[int, View]]]:
        """The terms of some queries, so many together that their pairs with all of the basis fit a block."""
        step = max(1, _BLOCK // max(self._terms, 1))
        block, room = list[tuple[int, View]](), step
        for place in places:
            count = len(asked[place].coefficients)
            for part in (slice(i, i + step) for i in range(0, count, step)):
                taken = min(step, count - part.start)
                if taken > room:
                    yield block
                    block, room = [], step
                block.append((place, asked[place].terms(part) if count > step else asked[place]))
                room -= taken
        if block:
            yield block

    def _alike(self, views: Sequence[View], axes: Axes, wanted: Mapping[Axes, float]) -> Floats:
        """The same of queries that name the same attributes."""
        count = self._terms
        base = np.ones(count)
        for axis in set(range(len(self._means))) - set(axes):
            base = base * self._means[axis, :count]
        used = {axis for subset in wanted for axis in subset}
        inside, outside = {}, {}
        for axis in axes:
            means = np.concatenate([view.means[axis] for view in views])
            outside[axis] = np.outer(means, self._means[axis, :count])
            if axis in self._sparse and axis in used:
                inside[axis] = self._sparse[axis].products([view.seen[axis] for view in views])
            elif axis in used:
                seen = np.concatenate([view.seen[axis][1] for view in views])
                inside[axis] = seen @ self._seen[axis][:count].T
        coefficients = np.concatenate([view.coefficients for view in views])
        total = np.zeros((len(coefficients), count))
        for subset, precision in wanted.items():
            product = base / precision
            for axis in axes:
                product = product * (inside if axis in subset else outside)[axis]
            total += product
        total *= coefficients[:, np.newaxis]
        total *= self._coefficients[:count]
        starts = np.cumsum([0, *(len(view.coefficients) for view in views[:-1])])
        if len(starts) < len(total):
            total = np.add.reduceat(total, starts, axis=0)
        return np.add.reduceat(total, self._starts, axis=1) if count > len(self._starts) else total


class Sparse(NamedTuple):
    """Rows that have few numbers among very many; a column is kept for those that some row has."""

    ids: Ints = np.zeros(0, dtype=np.int64)  # ascending
    values: Floats = np.zeros(0)
    columns: Ints = np.zeros(0, dtype=np.int64)
    ends: Ints = np.zeros(1, dtype=np.int64)

    def grown(self, rows: Sequence[tuple[Ints, Floats]]) -> Sparse:
        """With more rows: (t, k) values at (k,) ids, several times."""
        every = np.unique(np.concatenate([self.ids, *(ids for ids, _ in rows)]))
        columns = [np.tile(np.searchsorted(every, ids), len(values)) for ids, values in rows]
        lengths = [length for ids, values in rows for length in [len(ids)] * len(values)]
        return Sparse(
            every,
            np.concatenate([self.values, *(values.reshape(-1) for _, values in rows)]),
            np.concatenate([np.searchsorted(every, self.ids)[self.columns], *columns]),
            np.concatenate([self.ends, self.ends[-1] + np.cumsum(lengths, dtype=np.int64)]),
        )

    def products(self, asked: Sequence[tuple[Ints | None, Floats]]) -> Floats:
        """(t, rows) inner products of all rows of `asked` with all of these."""
        values, columns, lengths = [], [], []
        for ids, seen in asked:
            assert ids is not None
            places = np.searchsorted(self.ids, ids)
            known = np.flatnonzero(np.append(self.ids, -1)[places] == ids)
            values.append(seen[:, known].reshape(-1))
            columns.append(np.tile(places[known], len(seen)))
            lengths += [len(known)] * len(seen)
        shape = len(lengths), len(self.ids)
        given = np.concatenate(values), np.concatenate(columns), np.cumsum([0, *lengths])
        mine = self.values, self.columns, self.ends
        own = scipy.sparse.csr_array(mine, shape=(len(self.ends) - 1, len(self.ids)))
        return np.asarray((scipy.sparse.csr_array(given, shape=shape) @ own.T).toarray())


def moved(array: Floats, shape: tuple[int, ...]) -> Floats:
    """The array in the corner of a larger one."""
    return np.pad(array, [(0, wide - size) for size, wide in zip(array.shape, shape, strict=True)])


def wide(places: list[int], rows: Floats, count: int) -> Floats:
    """(r, count) rows over all basis queries."""
    result = np.zeros((len(rows), count))
    np.add.at(result.T, places, rows.T)
    return result
