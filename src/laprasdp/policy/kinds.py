"""Kinds of query that nobody predicted: what may be asked of a table about which only the domain is known.

A stream may be of any of them, so designs are judged by each kind and not by one mixture of all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.errors import ConfigError
from laprasdp.limits import MANY
from laprasdp.policy.query_shapes import QueryShape, counted, is_ordered
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.subspaces import Axes

WIDEST = 3  # attributes of a typical query
_TRIES = 20
_PARTS = 65_536  # of a long attribute, half of which are any of its values

KindSets = tuple[QueryShape, list[Axes], float]
Predicate = Callable[[Domain, int, np.random.Generator], npt.NDArray[np.bool_]]

ALIKE = "like the predicted ones"
GROUP = "a group of "
"""How the kinds begin whose queries are asked together with all others of their GROUP BY."""


def kinds_of_query(
    domain: Domain,
    predictions: Sequence[Query],
    count: int,
    rng: np.random.Generator,
    importance: Floats | None = None,
    shapes: Sequence[QueryShape] = (),
    others: bool = True,
) -> dict[str, tuple[Query, ...]]:
    """
    Sample queries of every kind, those of declared shapes first.

    Parameters
    ----------
    domain : Domain
    predictions : sequence of m Query
    count : int
        Queries of each kind; fewer where a kind has no more that differ, more where it has more sets of
        attributes.  The first `count` are a sample of all sets.
    rng : Generator
    importance : (m,) array, optional
        Share of each prediction among those that are taken as models.
    shapes : sequence of QueryShape
        What the stream is declared to hold.
    others : bool
        Whether kinds that are not declared are sampled too.

    Returns
    -------
    mapping of str to tuple of Query
        Predicted shapes with other constants, unless shapes are declared; single values, and ranges, of one
        to three attributes; half of an attribute's values, whichever.  A kind that the domain does not have
        is left out.
    """
    found: dict[str, tuple[Query, ...]] = {}
    for name, (shape, sets, _) in _declared(domain, shapes).items():
        found[name] = _drawn(domain, sets, _PREDICATES[shape.what], count, rng)
    if others or not shapes:
        for kind, queries in _others(domain, count, rng).items():
            found.setdefault(kind, queries)
    if predictions and not shapes:  # last, so that the others are the same without predictions
        found[ALIKE] = typical_queries(domain, predictions, count, rng, importance)
    return {kind: queries for kind, queries in found.items() if queries} or {
        "all rows": (Query.constant(domain, 1),)
    }


def groups_of(
    domain: Domain, count: int, rng: np.random.Generator, shapes: Sequence[QueryShape] = ()
) -> dict[str, tuple[Groups, ...]]:
    """
    Sample GROUP BYs of one and of two attributes, and of declared shapes, by the kind that each group is of.

    Parameters
    ----------
    domain : Domain
    count : int
        Statements of each kind; fewer where there are no more that differ.
    rng : Generator
    shapes : sequence of QueryShape
        What the stream is declared to hold.

    Returns
    -------
    mapping of str to tuple of Groups
        All groups of each, `limits.MANY` at most, with a condition on one more attribute: where there is
        none, or groups are more, a kind is left out.
    """
    used = [axis for axis, size in enumerate(domain.shape) if size > 1]
    sets = {GROUP + counted((wide,)): [*itertools.combinations(used, wide)] for wide in (1, 2)}
    sets |= {name: each for name, (_, each, _) in _declared(domain, shapes).items() if name.startswith(GROUP)}
    found: dict[str, tuple[Groups, ...]] = {}
    for kind, every in sets.items():
        sizes = {by: math.prod(domain.shape[axis] for axis in by) for by in every}
        few = [by for by in every if len(by) < len(used) and sizes[by] <= MANY]
        each: dict[Groups, None] = {}
        for _ in range(_TRIES * count if few else 0):
            by = few[int(rng.integers(len(few)))]
            other = _some([axis for axis in used if axis not in by], 1, rng)
            where = _conjunction(domain, other, _predicate, rng)
            if not where.is_zero:
                each[Groups(where, by, np.arange(sizes[by]))] = None
            if len(each) == count:
                break
        if each:
            found[kind] = tuple(each)
    return found


def shapes_of(domain: Domain, shapes: Sequence[QueryShape]) -> dict[str, QueryShape]:
    """Each kind of `kinds_of_query` as a shape, but for the one that is like predictions."""
    found = {
        name: QueryShape(shape.what, () if shape.named else (len(sets[0]),), shape.named, share)
        for name, (shape, sets, share) in _declared(domain, shapes).items()
    }
    used = sum(size > 1 for size in domain.shape)
    for what, widest in (("values", WIDEST), ("ranges", WIDEST), ("sets", 1)):
        for wide in range(1, min(widest, used) + 1):
            shape = QueryShape(what, (wide,))
            with suppress(ConfigError):
                shape.sets(domain)
                found.setdefault(_KINDS[what] + counted((wide,)), shape)
    return found


def kind_shares(domain: Domain, shapes: Sequence[QueryShape]) -> dict[str, float]:
    """
    The share of the stream that each kind of declared shapes is expected to have.

    Raises
    ------
    ConfigError
        The domain has no query of a shape.
    """
    return {name: share for name, (_, _, share) in _declared(domain, shapes).items()}


def _declared(
    domain: Domain, shapes: Sequence[QueryShape]
) -> dict[str, tuple[QueryShape, list[Axes], float]]:
    """Each kind of declared shapes: its shape, the sets of attributes, and its share."""
    found: dict[str, KindSets] = {}
    for shape in shapes:
        every = shape.sets(domain)
        for wide, sets in every.items():
            name = _KINDS[shape.what] + (shape.named or counted((wide,)))
            before = found[name][2] if name in found else 0.0
            found[name] = shape, sets, before + shape.share / len(every)
    return found


def families_of(domain: Domain, shapes: Sequence[QueryShape], axis: int) -> dict[str, float]:
    """How often each family of `strategy.background` is asked of an attribute, by declared shapes."""
    found: dict[str, float] = {}
    for shape in shapes:
        family = family_of(shape, domain, axis)
        for sets in (every := shape.sets(domain)).values():
            asked = sum(axis in axes for axes in sets) / len(sets) / len(every)
            if asked:
                found[family] = found.get(family, 0.0) + shape.share * asked
    return found


def family_of(shape: QueryShape, domain: Domain, axis: int) -> str:
    """The family of what a shape asks of one attribute."""
    return _FAMILIES.get(shape.what) or ("range" if is_ordered(domain, axis) else "point")


def _others(domain: Domain, count: int, rng: np.random.Generator) -> dict[str, tuple[Query, ...]]:
    """What may be asked of every domain."""
    found: dict[str, tuple[Query, ...]] = {}
    used = [axis for axis, size in enumerate(domain.shape) if size > 1]
    ordered = [axis for axis in used if is_ordered(domain, axis) and domain.shape[axis] > 2]

    def drawn(axes: Sequence[int], wide: int, predicate: Predicate) -> tuple[Query, ...]:
        return _drawn(domain, list(itertools.combinations(axes, wide)), predicate, count, rng)

    for wide in range(1, min(WIDEST, len(used)) + 1):
        found[_KINDS["values"] + counted((wide,))] = drawn(used, wide, _point)
        if len(ordered) >= wide:
            found[_KINDS["ranges"] + counted((wide,))] = drawn(ordered, wide, _range)
    many = [axis for axis in used if domain.shape[axis] > 3]
    if many:
        found[_KINDS["sets"] + counted((1,))] = drawn(many, 1, _half)
    return found


def typical_queries(
    domain: Domain,
    predictions: Sequence[Query],
    count: int,
    rng: np.random.Generator,
    importance: Floats | None = None,
) -> tuple[Query, ...]:
    """
    Queries like the predicted ones with other constants; conjunctions over few attributes if there are none.

    Parameters
    ----------
    domain : Domain
    predictions : sequence of m Query
    count : int
    rng : Generator
    importance : (m,) array, optional
        Share of each prediction among those that are taken as models.
    """
    found: list[Query] = []
    for _ in range(count):
        if predictions:
            like = predictions[int(rng.choice(len(predictions), p=importance))]
            labels = {
                name: _redrawn(domain, axis, column, rng)
                for name, axis, column in zip(like.names, like.axes, like.labels, strict=True)
            }
            query = Query(domain, labels, like.weights.reshape(like.weights.shape[: len(like.axes)]))
        else:
            most = min(WIDEST, len(domain))
            axes = _some(range(len(domain)), int(rng.integers(1, most + 1)), rng)
            query = _conjunction(domain, axes, _predicate, rng)
        if not query.is_zero:
            found.append(query)
    return tuple(found) or (Query.constant(domain, 1),)


def _some(axes: Sequence[int], count: int, rng: np.random.Generator) -> list[int]:
    return [axes[place] for place in rng.choice(len(axes), size=count, replace=False)]


def _drawn(
    domain: Domain, sets: Sequence[Axes], predicate: Predicate, count: int, rng: np.random.Generator
) -> tuple[Query, ...]:
    """
    Queries that differ, over sets of axes: each set once, in random order, before any comes again.

    At least one for each set, so that no set is forgotten; of these the first `count` are a fair sample.
    """
    found: dict[Query, None] = {}
    for _ in range(max(_TRIES, math.ceil(count / len(sets)))):
        for place in rng.permutation(len(sets)).tolist():
            query = _conjunction(domain, sets[place], predicate, rng)
            if not query.is_zero:
                found[query] = None
        if len(found) >= max(count, len(sets)):
            break
    return tuple(itertools.islice(found, max(count, len(sets))))


def _conjunction(
    domain: Domain, axes: Sequence[int], predicate: Predicate, rng: np.random.Generator
) -> Query:
    weights = np.zeros((2,) * len(axes), dtype=np.int64)
    weights[(1,) * len(axes)] = 1
    return Query(domain, {domain.names[axis]: predicate(domain, axis, rng) for axis in axes}, weights)


def _point(domain: Domain, axis: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    size = domain.shape[axis]
    return np.asarray(np.arange(size) == rng.integers(size))


def _range(domain: Domain, axis: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A range of an ordered attribute; never nothing."""
    size = domain.shape[axis]
    low, high = np.sort(rng.choice(size + 1, 2, replace=False)).tolist()
    place = np.arange(size)
    return np.asarray((place >= low) & (place < high))


def _half(domain: Domain, axis: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    size = domain.shape[axis]
    parts = min(size, _PARTS)
    return np.asarray(rng.permutation(parts) < parts // 2)[np.arange(size) * parts // size]


def _predicate(domain: Domain, axis: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A range of an ordered attribute, a value of another."""
    return (_range if is_ordered(domain, axis) else _point)(domain, axis, rng)


def _redrawn(
    domain: Domain, axis: int, labels: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[Any]:
    """The same classes with other bounds, or other values of an attribute without order."""
    runs = np.flatnonzero(np.diff(labels)) + 1
    if not is_ordered(domain, axis) or 2 * len(runs) > len(labels):
        return np.asarray(rng.permutation(labels))
    cuts = np.sort(rng.choice(np.arange(1, len(labels)), len(runs), replace=False))
    kinds = labels[np.concatenate([[0], runs])]
    return np.asarray(kinds[np.searchsorted(cuts, np.arange(len(labels)), side="right")])


_KINDS = {
    "ranges": "a range of ",
    "values": "one value of ",
    "sets": "half of the values of ",
    "conjunctions": "conditions on ",
    "group-by": GROUP,
}
_FAMILIES = {"ranges": "range", "values": "point", "sets": "random", "group-by": "point"}
_PREDICATES: dict[str, Predicate] = {
    "ranges": _range,
    "values": _point,
    "sets": _half,
    "conjunctions": _predicate,
    "group-by": _point,
}
