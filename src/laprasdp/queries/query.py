"""A query: one integer weight for every cell, kept as a small tensor over classes of levels.

A query groups the levels of each attribute it names into the few classes it tells apart and holds one
weight for every tuple of classes, so the number of cells never matters to it.  The canonical form has
no class too many: two statements that mean the same on the domain are one query, equal and of one hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.limits import MAX_CLASSES, MAX_WEIGHT
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.runs import (
    Labels,
    Runs,
    class_sizes,
    every_level,
    first_seen,
    labels_at,
    levels_of,
    narrowed,
    packed,
    refined,
    runs_of,
    together,
    unpacked,
)


class Query:
    """
    A linear counting query with integer weights, in canonical form.

    Parameters
    ----------
    domain : Domain
    labels : mapping of attribute name to (levels,) int array
        The class of each level; any numbering.
    weights : (c_1, …, c_k) int array
        One axis for each entry of `labels`, in the order of the mapping.

    Attributes
    ----------
    axes : tuple of int
        Positions of the attributes on which the weight really depends, ascending.
    steps : tuple of (levels,) int arrays or Runs
        Class of each level, numbered by first appearance; one an axis.
    weights : (c_1, …, c_k) int64 array

    Raises
    ------
    UnsupportedQuery
        The tensor passes ``MAX_CLASSES`` entries, or a weight passes ``MAX_WEIGHT``.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Integers
    >>> domain = Domain(age=Integers(0, 4))
    >>> Query.count(domain, age=[1, 2]) == Query(domain, {"age": [7, 9, 9, 7, 7]}, {7: 0, 9: 1})
    True
    """

    __slots__ = ("__dict__", "axes", "domain", "steps", "weights")

    def __init__(
        self,
        domain: Domain,
        labels: Mapping[str, Sequence[int] | npt.NDArray[Any]],
        weights: npt.ArrayLike | Mapping[int, int],
    ) -> None:
        given = [np.asarray(column, dtype=np.int64) for column in labels.values()]
        for name, column in zip(labels, given, strict=True):
            if column.shape != (domain[name].size,):
                raise DomainError(f"{name} has {domain[name].size} levels, not {column.size}")
        if isinstance(weights, Mapping):
            names = sorted(weights)
            given = [np.searchsorted(names, column) for column in given]
            weights = [weights[name] for name in names]
        tensor = np.asarray(weights)
        if tensor.dtype.kind not in "biu" and tensor.size:
            raise UnsupportedQuery("the weights of a query are whole numbers; scale the query and divide")
        check_classes(tensor.shape, list(labels))
        if tensor.size and max(int(tensor.max()), -int(tensor.min())) > MAX_WEIGHT:
            raise UnsupportedQuery(f"a weight passes the limit of {MAX_WEIGHT:,}")
        order = sorted(range(len(given)), key=lambda i: domain.axis(list(labels)[i]))
        axes = [domain.axis(list(labels)[i]) for i in order]
        self._fill(domain, axes, [given[i] for i in order], np.transpose(tensor, order).astype(np.int64))

    def _fill(self, domain: Domain, axes: Sequence[int], labels: Sequence[Labels], weights: Ints) -> None:
        occurring, columns, parts = [], [], list(map(packed, labels))
        for part in parts:
            seen, _, column = first_seen(part.values if isinstance(part, Runs) else part)
            occurring.append(seen)
            columns.append(column)
        weights = weights[np.ix_(*occurring)] if occurring else weights
        kept_axes: list[int] = []
        kept: list[Labels] = []
        for axis, column, part in zip(axes, columns, parts, strict=True):
            place = len(kept_axes)
            slices = np.moveaxis(weights, place, 0)
            numbers: dict[bytes, int] = {}
            merged = np.array([numbers.setdefault(part.tobytes(), len(numbers)) for part in slices])
            if len(numbers) < len(merged):
                weights = np.moveaxis(slices[first_seen(merged)[1]], 0, place)
            if len(numbers) == 1:
                weights = weights.squeeze(place)
                continue
            kept_axes.append(axis)
            found = narrowed(merged[column])
            kept.append(runs_of(Runs(part.size, part.starts, found)) if isinstance(part, Runs) else found)
        self.domain, self.axes, self.steps = domain, tuple(kept_axes), tuple(map(packed, kept))
        self.weights = np.array(weights, dtype=np.int64, order="C")
        for array in (*self.steps, self.weights):
            if not isinstance(array, Runs):
                array.setflags(write=False)

    @classmethod
    def count(cls, domain: Domain, /, **values: Any) -> Query:
        """
        Number of rows whose attributes take one of the given values.

        Parameters
        ----------
        domain : Domain
        **values : a value or an iterable of values
            In the spelling of the domain: integers, bin labels, categories, ISO dates, None for NULL.

        Examples
        --------
        >>> from laprasdp.queries.attribute import Integers
        >>> Query.count(Domain(age=Integers(0, 9)), age=range(3, 5)).weights
        array([0, 1])
        """
        labels = {}
        for name, wanted in values.items():
            if isinstance(wanted, str) or not isinstance(wanted, Iterable):
                wanted = [wanted]
            attribute = domain[name]
            levels = {attribute.label(level): level for level in range(attribute.size)}
            column = np.zeros(attribute.size, dtype=np.int64)
            for value in wanted:
                if value not in levels:
                    raise DomainError(f"{value!r} is not a declared value of {name}")
                column[levels[value]] = 1
            labels[name] = column
        tensor = np.zeros((2,) * len(labels), dtype=np.int64)
        tensor[(1,) * len(labels)] = 1
        return cls(domain, labels, tensor)

    @classmethod
    def constant(cls, domain: Domain, weight: int) -> Query:
        """The query with the same weight on every cell."""
        return cls(domain, {}, np.array(weight, dtype=np.int64))

    @classmethod
    def everywhere(cls, domain: Domain, amount: int) -> Query:
        """The same amount on every cell; it may be larger than a weight of a query."""
        return cls.constant(domain, 1).spread(np.array(amount, dtype=np.int64))

    @classmethod
    def over(cls, domain: Domain, axes: tuple[int, ...], labels: Sequence[Labels], weights: Ints) -> Query:
        """The function of the cells with these classes and weights, neither checked nor merged."""
        result = object.__new__(cls)
        result.domain, result.axes, result.weights = domain, axes, weights
        result.steps = tuple(map(packed, labels))
        return result

    def spread(self, weights: Ints) -> Query:
        """The function of the cells with these weights on the classes of this query; not canonical."""
        return Query.over(self.domain, self.axes, self.steps, weights)

    @property
    def labels(self) -> tuple[npt.NDArray[Any], ...]:
        """Class of each level of each of `axes`, (levels,) int arrays; written out afresh where long."""
        return tuple(map(unpacked, self.steps))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes on which the weight depends."""
        return tuple(self.domain.names[axis] for axis in self.axes)

    @cached_property
    def sensitivity(self) -> int:
        """Largest absolute weight of a cell: how much one row more changes the answer."""
        return max(int(self.weights.max()), -int(self.weights.min()))

    @cached_property
    def largest(self) -> int:
        """The largest weight of a cell."""
        return int(self.weights.max())

    @property
    def is_zero(self) -> bool:
        """Whether the weight is 0 on every cell: no table of this domain can change the answer."""
        return not self.weights.any()

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical form: the same for every statement of the same meaning."""
        digest = hashlib.sha256(repr((self.axes, self.weights.shape)).encode())
        for labels in self.labels:
            digest.update(labels.astype("<u4").tobytes())
        digest.update(self.weights.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def mark(self) -> str:
        """Like `key`, but of runs where labels are kept so: cheap on long ones, and for this process only."""
        if not any(isinstance(labels, Runs) for labels in self.steps):
            return self.key
        digest = hashlib.sha256(repr((self.axes, self.weights.shape)).encode())
        for labels in self.steps:
            runs = runs_of(labels)
            digest.update(len(runs.starts).to_bytes(8, "little") + runs.starts.astype("<i8").tobytes())
            digest.update(runs.values.astype("<u4").tobytes())
        digest.update(self.weights.astype("<i8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.key == other.key and self.domain == other.domain

    def __hash__(self) -> int:
        return hash(self.key)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing changes it

    def __repr__(self) -> str:
        classes = "×".join(map(str, self.weights.shape)) or "1"
        return f"Query({', '.join(self.names) or 'all rows'}; {classes})"

    def vector(self) -> Ints:
        """
        The weight of every cell, for domains small enough to write out.

        Returns
        -------
        (n,) int64 array
            Cells in C order of the domain's shape.
        """
        check_classes(self.domain.shape, self.domain.names, what="domain written out")
        index: list[Any] = [self.labels[self.axes.index(a)] for a in self.axes]
        tensor = self.weights[np.ix_(*index)] if index else self.weights
        shape = [size if axis in self.axes else 1 for axis, size in enumerate(self.domain.shape)]
        return np.broadcast_to(tensor.reshape(shape), self.domain.shape).reshape(-1)

    @property
    def reads(self) -> tuple[int, ...]:
        """The axes that a table is read over for `answer`; the last may be that of persons."""
        return self.axes

    def weights_of(self, marginal: Marginal) -> Ints:
        """(r,) the weight of each combination of levels, of at least the attributes in `axes`."""
        index = tuple(
            labels_at(steps, marginal.levels[a]) for a, steps in zip(self.axes, self.steps, strict=True)
        )
        return np.broadcast_to(self.weights[index], marginal.counts.shape)

    def answer(self, marginal: Marginal) -> int:
        """
        The exact answer, from counts over at least the attributes in `axes`.  Private.
        """
        weights = self.weights_of(marginal)
        if self.sensitivity < 2**20:
            return int(weights @ marginal.counts)
        return sum(map(int.__mul__, map(int, weights), map(int, marginal.counts)))

    def combine(self, other: Query, how: Callable[[Ints, Ints], Ints]) -> Query:
        """
        The query whose weight is ``how(weight of self, weight of other)`` on every cell.

        The classes of the result are the common refinement; they are not merged again, so a long sum
        stays cheap (the result is not canonical; wrap it in `canonical` where a key is needed).
        """
        axes, labels, mine, theirs = self._beside(other)
        weights = how(_indexed(self.weights, mine), _indexed(other.weights, theirs))
        return Query.over(self.domain, axes, labels, weights)

    def largest_on(self, other: Query) -> int:
        """
        Largest weight of a cell on which the weight of `other` is not 0; 0 where there is none.

        Raises
        ------
        UnsupportedQuery
            As from `combine`.
        """
        _, _, mine, theirs = self._beside(other)
        alive = other.weights != 0
        for place, (own, met) in enumerate(zip(mine, theirs, strict=True)):
            if met is None:
                continue
            axis = sum(part is not None for part in theirs[:place])
            used = np.flatnonzero(alive.any(axis=tuple(set(range(alive.ndim)) - {axis}))[met])
            theirs[place], mine[place] = met[used], own if own is None else own[used]
        weights, there = _indexed(self.weights, mine), _indexed(other.weights, theirs) != 0
        if there.all():
            return int(weights.max(initial=0))
        return int(np.where(there, weights, 0).max(initial=0))

    def _beside(
        self, other: Query
    ) -> tuple[tuple[int, ...], list[Labels], list[npt.NDArray[Any] | None], list[npt.NDArray[Any] | None]]:
        """Axes of both, the common refinement of their classes on each, and each one's class in both."""
        axes = sorted({*self.axes, *other.axes})
        labels, mine, theirs, counts = [], [], [], []
        for axis in axes:
            a = self.steps[self.axes.index(axis)] if axis in self.axes else None
            b = other.steps[other.axes.index(axis)] if axis in other.axes else None
            joint, count, in_a, in_b = refined(a, b)
            labels.append(joint)
            counts.append(count)
            mine.append(in_a)
            theirs.append(in_b)
        check_classes(counts, [self.domain.names[axis] for axis in axes])
        return tuple(axes), labels, mine, theirs

    def canonical(self) -> Query:
        """The same query with as few classes as possible."""
        return self._canonical

    @cached_property
    def _canonical(self) -> Query:
        result = object.__new__(Query)
        result._fill(self.domain, self.axes, self.steps, self.weights)
        return result

    def dot(self, other: Query) -> float:
        """Sum over all cells of the product of the two weights: an entry of the Gram matrix."""
        left, right = self.weights.astype(float), other.weights.astype(float)
        scale, sizes = 1.0, self.domain.shape
        for axis in reversed(range(len(sizes))):
            a = self.axes.index(axis) if axis in self.axes else None
            b = other.axes.index(axis) if axis in other.axes else None
            if a is not None and b is not None:
                p, q = self.weights.shape[a], other.weights.shape[b]
                table = _met(self.steps[a], other.steps[b], p, q)
                left = np.moveaxis(np.tensordot(left, table, axes=(a, 0)), -1, a)
            elif a is not None:
                left = np.tensordot(left, class_sizes(self.steps[a]).astype(float), axes=(a, 0))
            elif b is not None:
                right = np.tensordot(right, class_sizes(other.steps[b]).astype(float), axes=(b, 0))
            else:
                scale *= sizes[axis]
        return float(np.sum(left * right)) * scale


def check_classes(shape: Sequence[int], names: Sequence[str], *, what: str = "query") -> None:
    """Refuse a tensor that is too large, saying what to coarsen."""
    size = math.prod(shape)
    if size > MAX_CLASSES:
        widest = max(range(len(shape)), key=lambda i: shape[i])
        raise UnsupportedQuery(
            f"the {what} tells {size:,} classes of cells apart; the limit is {MAX_CLASSES:,}: "
            f"name fewer attributes or coarsen {names[widest]} ({shape[widest]:,} classes)"
        )


def _met(a: Labels, b: Labels, p: int, q: int) -> Floats:
    """(p, q) levels that have each class of a and each of b."""
    starts, (left, right) = together([a, b])
    lengths = None if starts is None else np.diff(starts, append=levels_of(a))
    return np.bincount(left.astype(np.int64) * q + right, lengths, p * q).reshape(p, q).astype(float)


def _is_every(labels: npt.NDArray[Any]) -> bool:
    every = every_level(len(labels))
    return labels is every or bool((labels == every).all())


def _indexed(weights: Ints, index: Sequence[npt.NDArray[Any] | None]) -> Ints:
    """Weights indexed by joint classes; axes the query does not name have length one."""
    tensor = weights
    for axis, part in enumerate(part for part in index if part is not None):
        if len(part) != tensor.shape[axis] or not _is_every(part):  # to copy takes long
            tensor = tensor.take(part, axis)
    return tensor.reshape([1 if part is None else len(part) for part in index])
