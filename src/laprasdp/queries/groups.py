"""The queries of a GROUP BY: one function of the cells, cut along all levels of some attributes.

Groups touch disjoint cells, so together they cost what the dearest of them costs alone, and all of them are
read from one marginal.  Each query is made when it is looked at; nothing is kept for it before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Ints
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query

_EXACT = 2**26  # weights below this have quotients that doubles tell apart
_SMALL = 2**20  # weights below this add up in 64 bits, as in `Query.answer`


class Groups(Sequence[Query]):
    """
    Some or all groups of one function of the cells, in the order asked for.

    Parameters
    ----------
    whole : Query
        Canonical: the statement without its GROUP BY.
    by : tuple of int
        Axes that the groups are made of, ascending; at least one.
    places : (g,) int array
        Which groups, as places in C order of the levels of `by`; distinct.

    Attributes
    ----------
    whole, by, places
        As given.
    levels : tuple of (g,) int arrays
        Level of each group, an array for each axis of `by`.

    Raises
    ------
    DomainError
        The axes are not ascending ones of the domain, or a place is none or given twice.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Integers
    >>> domain = Domain(age=Integers(0, 9), sex=Integers(0, 1))
    >>> groups = Groups(Query.count(domain, age=range(3, 5)), (1,), np.arange(2))
    >>> groups[1] == Query.count(domain, age=range(3, 5), sex=1)
    True
    """

    def __init__(self, whole: Query, by: tuple[int, ...], places: npt.ArrayLike) -> None:
        shape = whole.domain.shape
        if not by or list(by) != sorted(set(by)) or not 0 <= by[0] <= by[-1] < len(shape):
            raise DomainError(f"groups are made of ascending axes, not of {by}")
        self.whole, self.by, self.shape = whole, by, tuple(shape[axis] for axis in by)
        self.places = np.array(places, dtype=np.int64)
        count = math.prod(self.shape)
        ends = (self.places.min(initial=0), self.places.max(initial=0))
        if self.places.ndim != 1 or ends[0] < 0 or ends[1] >= count:
            raise DomainError(f"there are {count:,} groups, numbered from 0")
        if len(np.unique(self.places)) != len(self.places):
            raise DomainError("a group is given twice")
        self.places.setflags(write=False)
        self.levels = tuple(np.unravel_index(self.places, self.shape))
        self._made: dict[int, Query] = {}

    @property
    def domain(self) -> Domain:
        return self.whole.domain

    @property
    def axes(self) -> tuple[int, ...]:
        """The attributes that are read to answer all groups, ascending."""
        return tuple(sorted({*self.by, *self.whole.axes}))

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, place: int) -> Query: ...
    @overload
    def __getitem__(self, place: slice) -> Groups: ...
    def __getitem__(self, place: int | slice) -> Query | Groups:
        if isinstance(place, slice):
            return Groups(self.whole, self.by, self.places[place])
        number = int(self.places[place])
        if number not in self._made:
            self._made[number] = self._query(place)
        return self._made[number]

    def __iter__(self) -> Iterator[Query]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return (self.whole, self.by) == (other.whole, other.by) and np.array_equal(self.places, other.places)

    def __hash__(self) -> int:
        return hash((self.whole, self.by, self.places.tobytes()))

    def __deepcopy__(self, memo: object) -> Self:
        return self  # what is seen of it never changes

    def __repr__(self) -> str:
        names = ", ".join(self.domain.names[axis] for axis in self.by)
        return f"Groups({len(self):,} of {self.whole!r} by {names})"

    def at(self, chosen: Sequence[int] | npt.NDArray[Any]) -> Groups:
        """The groups at some places of the sequence."""
        found = Groups(self.whole, self.by, self.places[np.asarray(chosen, dtype=np.intp)])
        found._made = self._made
        return found

    @cached_property
    def slices(self) -> list[tuple[Query, npt.NDArray[np.intp]]]:
        """
        What the groups weigh beside their own levels: each function once, with the places where it holds.

        Returns
        -------
        list of (Query, (g',) int array)
            A canonical function of the attributes outside `by`; places in the sequence.
        """
        inner, found = self._cut, []
        for kind, (function, _) in enumerate(inner[1]):
            where = np.flatnonzero(inner[0] == kind)
            if len(where):
                found.append((function, where))
        return found

    @cached_property
    def _cut(self) -> tuple[Ints, list[tuple[Query, Ints]]]:
        """For each group the number of its function outside `by`; and these, each with its tensor."""
        whole, by = self.whole, set(self.by)
        mine = [place for place, axis in enumerate(whole.axes) if axis in by]
        rest = [place for place, axis in enumerate(whole.axes) if axis not in by]
        tensor = whole.weights.reshape(whole.weights.shape[: len(whole.axes)]).transpose(mine + rest)
        heads = [tensor.shape[place] for place in range(len(mine))]
        flat = np.ascontiguousarray(tensor).reshape(math.prod(heads), -1)
        numbers: dict[bytes, int] = {}
        kinds = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in flat])
        axes, labels = tuple(whole.axes[p] for p in rest), tuple(whole.labels[p] for p in rest)
        functions = []
        for row in numbers:
            weights = np.frombuffer(row, dtype=np.int64).reshape(tensor.shape[len(mine) :])
            functions.append((Query.over(self.domain, axes, labels, weights).canonical(), weights))
        column = np.zeros(len(self), dtype=np.int64)
        for place in mine:
            axis = whole.axes[place]
            classes = whole.labels[place][self.levels[self.by.index(axis)]]
            column = column * whole.weights.shape[place] + classes
        return kinds[column], functions

    def _query(self, place: int) -> Query:
        """The canonical query of one group; as `Query` would make it, but without looking at all levels."""
        function = self._cut[1][int(self._cut[0][place])][0]
        if function.is_zero:
            return Query.constant(self.domain, 0)
        parts: dict[int, tuple[npt.NDArray[Any], int]] = {}  # labels, and the class of the group
        for axis, levels in zip(self.by, self.levels, strict=True):
            size, level = self.domain.shape[axis], int(levels[place])
            if size > 1:
                labels = np.zeros(size, dtype=np.uint8)
                labels[level if level else slice(1, None)] = 1  # the first level has class 0
                parts[axis] = labels, 0 if level == 0 else 1
        inner = function.weights.reshape(function.weights.shape[: len(function.axes)])
        axes = tuple(sorted({*parts, *function.axes}))
        weights = np.zeros([2 if axis in parts else inner.shape[function.axes.index(axis)] for axis in axes],
                           dtype=np.int64)  # fmt: skip
        weights[tuple(parts[axis][1] if axis in parts else slice(None) for axis in axes)] = inner
        labels_ = [parts[axis][0] if axis in parts else function.labels[function.axes.index(axis)]
                   for axis in axes]  # fmt: skip
        for array in (*labels_, weights):
            array.setflags(write=False)
        return Query.over(self.domain, axes, tuple(labels_), weights)

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """(g,) which of the groups some table can change."""
        kinds, functions = self._cut
        return ~np.array([function.is_zero for function, _ in functions])[kinds]

    @cached_property
    def union(self) -> Query:
        """
        The sum of the groups: on each cell the weight of the only group that it is in, or 0.

        Notes
        -----
        Where the groups that are left out would make it too large, it is `whole`, which is never smaller in
        size.
        """
        if self._complete:
            return self.whole
        mask = np.zeros(math.prod(self.shape), dtype=np.int64)
        mask[self.places] = 1
        labels = tuple(np.arange(size) for size in self.shape)
        chosen = Query.over(self.domain, self.by, labels, mask.reshape(self.shape)).canonical()
        try:
            return self.whole.combine(chosen, np.multiply).canonical()
        except UnsupportedQuery:
            return self.whole

    @property
    def _complete(self) -> bool:
        """Whether no group is left out that some table could change."""
        if len(self) == math.prod(self.shape):
            return True
        every = Groups(self.whole, self.by, np.arange(math.prod(self.shape)))
        return int(every.live.sum()) == int(self.live.sum())

    def answers(self, marginal: Marginal) -> list[int]:
        """
        The exact answer of each group, from counts over at least the attributes in `axes`.  Private.
        """
        index = tuple(
            column[marginal.levels[axis]]
            for axis, column in zip(self.whole.axes, self.whole.labels, strict=True)
        )
        small = self.whole.sensitivity < _SMALL
        weights = np.broadcast_to(self.whole.weights[index], marginal.counts.shape)
        products = weights * marginal.counts if small else weights.astype(object) * marginal.counts
        where = np.ravel_multi_index([marginal.levels[axis].astype(np.int64) for axis in self.by], self.shape)
        sums = np.zeros(math.prod(self.shape), dtype=np.int64 if small else object)
        np.add.at(sums, where, products)
        return [int(value) for value in sums[self.places]]

    def shares(self, query: Query) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] | None:
        """
        A function of the cells as a combination of all groups, as far as it is one.

        Parameters
        ----------
        query : Query

        Returns
        -------
        (n,) float array, (n,) bool array, or None
            For each group in C order of all levels of `by`, whether it was left out or not: how often it is
            taken; and whether the function is no multiple of the group on the group's cells.  None where the
            two together are too large to tell, or weights pass 2²⁶.
        """
        if max(query.sensitivity, self.whole.sensitivity) >= _EXACT:
            return None
        try:
            wanted = query.combine(self.whole, lambda a, b: a + 0 * b)
            held = query.combine(self.whole, lambda a, b: 0 * a + b)
        except UnsupportedQuery:
            return None
        mine = [place for place, axis in enumerate(wanted.axes) if axis in self.by]
        rest = [place for place, axis in enumerate(wanted.axes) if axis not in self.by]
        heads = [wanted.weights.shape[place] for place in mine]
        over, under = (
            np.broadcast_to(each.weights, wanted.weights.shape).transpose(mine + rest).reshape(*heads, -1)
            for each in (wanted, held)
        )
        there = under != 0
        ratio = np.divide(over, under, out=np.zeros(over.shape), where=there)
        first = np.take_along_axis(ratio, there.argmax(axis=-1)[..., np.newaxis], axis=-1)
        wrong = np.where(there, ratio != first, over != 0).any(axis=-1)
        index = [np.zeros(size, dtype=np.intp) for size in self.shape]
        shape = [1] * len(self.by)
        for place, size in zip(mine, heads, strict=True):
            which = self.by.index(wanted.axes[place])
            index[which], shape[which] = wanted.labels[place].astype(np.intp), size
        spread = np.ix_(*index)
        return first.reshape(shape)[spread].reshape(-1), wrong.reshape(shape)[spread].reshape(-1)


def gathered(queries: Sequence[Query]) -> Groups | tuple[Query, ...]:
    """A sequence of queries that never changes; groups stay groups."""
    return queries if isinstance(queries, Groups) else tuple(queries)


def chosen(queries: Sequence[Query], places: Sequence[int]) -> Sequence[Query]:
    """Those at some places; groups stay groups."""
    return queries.at(places) if isinstance(queries, Groups) else [queries[place] for place in places]
