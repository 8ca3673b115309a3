"""What a range of a long attribute adds to one that is known: the pieces up to the nearest known bounds.

A piece touches few cells, which few other queries meet: much of what is left there may be used for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Ints
from laprasdp.queries.query import Query
from laprasdp.queries.runs import Runs, class_sizes, runs_of
from laprasdp.strategy.subspaces import tensor_of
from laprasdp.strategy.tree import SHORT

Bounds = Mapping[int, Ints]
"""Known bounds of each long attribute, ascending."""

_APART, _ALONE = 0.01, 0.05  # share of a stream that is thought to meet cells that none of it is known to
_MOST = 3  # bounds of a query for which pieces are looked for


def bounds_of(queries: Iterable[Query], known: Bounds | None = None) -> Bounds:
    """The bounds of queries on long attributes, and known ones; the ends of an attribute always are."""
    found = {axis: [cuts] for axis, cuts in (known or {}).items()}
    for query in queries:
        for axis, labels in zip(query.axes, query.steps, strict=True):
            size = query.domain.shape[axis]
            if size > SHORT:
                found.setdefault(axis, [np.array([0, size])]).append(runs_of(labels).starts)
    return {axis: np.unique(np.concatenate(starts)) for axis, starts in found.items()}


def pieces(query: Query, bounds: Bounds) -> list[Query]:
    """
    The query less others like it, each of whose bounds is the query's own or the nearest known one.

    Parameters
    ----------
    query : Query
    bounds : mapping of axis to ascending int array

    Returns
    -------
    list of Query
        None twice, none zero, and not the query itself.
    """
    found: dict[str, Query] = {}
    for place, axis in enumerate(query.axes):
        runs, known = runs_of(query.steps[place]), bounds.get(axis)
        cuts = runs.starts[1:]
        if known is None or not 0 < len(cuts) <= _MOST:
            continue
        above = np.searchsorted(known, cuts)
        near = np.stack([cuts, known[np.searchsorted(known, cuts, side="right") - 1], known[above]], axis=1)
        for chosen in itertools.product(*map(np.unique, near)):
            row = _less(query, place, np.array([0, *chosen, runs.size]), runs)
            if not row.is_zero and row.mark != query.mark:
                found[row.mark] = row
    return list(found.values())


def nearest(query: Query, bounds: Bounds) -> Query:
    """The query less the one whose bounds are the nearest known ones; itself where that is none."""
    for place, axis in enumerate(query.axes):
        runs, known = runs_of(query.steps[place]), bounds.get(axis)
        cuts = runs.starts[1:]
        if known is None or not 0 < len(cuts) <= _MOST:
            continue
        middles = (known[1:] + known[:-1]) / 2
        row = _less(query, place, np.array([0, *known[np.searchsorted(middles, cuts)], runs.size]), runs)
        return query if row.is_zero else row
    return query


def cut_off(queries: Sequence[Query], rows: Sequence[Query]) -> tuple[list[Query], npt.NDArray[np.intp]]:
    """The rows that are not the query itself, and the place of each row in the queries followed by them."""
    cut = np.array([row is not query for row, query in zip(rows, queries, strict=True)])
    places = np.where(cut, len(queries) - 1 + np.cumsum(cut), np.arange(len(queries)))
    return [row for row, kept in zip(rows, cut.tolist(), strict=True) if kept], places


def alone(query: Query) -> float:
    """Share of a stream that is thought to meet a query in cells that none of it is known to."""
    if all(query.domain.shape[axis] <= SHORT for axis in query.axes):
        return _ALONE
    return min(max(2 * _extent(query), _APART), _ALONE)


def _extent(query: Query) -> float:
    """Share of all cells that have a weight."""
    tensor = (tensor_of(query) != 0).astype(float)
    for labels in query.steps:
        sizes = class_sizes(labels, len(tensor))
        tensor = np.tensordot(sizes / sizes.sum(), tensor, axes=(0, 0))
    return float(tensor)


def _less(query: Query, place: int, ends: Ints, runs: Runs) -> Query:
    """The query less the one whose runs end elsewhere."""
    kept = np.flatnonzero(np.diff(ends) > 0)
    steps = list(query.steps)
    steps[place] = Runs(runs.size, ends[kept], runs.values[kept])
    return query.combine(Query.over(query.domain, query.axes, steps, query.weights), np.subtract).canonical()
