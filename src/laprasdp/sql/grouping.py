"""The groups of a SELECT: the cells of each, its queries, and a table of its keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Ints
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_GROUP_WORK, MAX_GROUPS
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.sql.image import Image, ids_of
from laprasdp.sql.result import GROUP
from laprasdp.sql.truth import TRUE


@dataclass
class GroupingSet:
    """
    The groups of one grouping set.

    Attributes
    ----------
    cells : Query
        The number of the group of each cell; -1 where no row is kept.
    count : int
    """

    cells: Query
    count: int


def grouped(
    keys: Sequence[Image], chosen: Sequence[int], kept: Query, domain: Domain
) -> tuple[GroupingSet, Ints]:
    """
    The groups of a grouping set that a row can be in, and the place of the value of each chosen key in each.

    Parameters
    ----------
    keys : sequence of Image
    chosen : sequence of int
        Which of them make up the set.
    kept : Query
        Where a row is kept: TRUE.
    domain : Domain
    """
    sizes = [len(keys[place].values) for place in chosen]
    if math.prod(sizes) > 2**62:
        raise UnsupportedQuery(f"GROUP BY has {math.prod(sizes):,} groups; the limit is {MAX_GROUPS:,}")
    ids = ids_of([keys[place].cells for place in chosen], sizes, domain)
    cells = ids.combine(kept, lambda one, held: np.where(held == TRUE, one, -1)).canonical()
    found = np.unique(cells.weights)
    found = found[found >= 0] if chosen else np.zeros(1, dtype=np.int64)
    if len(found) > MAX_GROUPS:
        raise UnsupportedQuery(
            f"GROUP BY has {len(found):,} declared groups; the limit is {MAX_GROUPS:,}: "
            "group by fewer columns, or coarsen them with date_trunc, FLOOR or CASE"
        )
    numbered = np.searchsorted(found, cells.weights)
    numbered = np.where(cells.weights < 0, -1, numbered)
    places = np.array(np.unravel_index(found, sizes)) if chosen else np.zeros((0, 1), dtype=np.int64)
    return GroupingSet(cells.spread(numbered), len(found)), places


def group_queries(weights: Query, groups: GroupingSet) -> list[Query]:
    """The query of each group: the weight where a cell is in it, zero elsewhere."""
    group = groups.cells.combine(weights, lambda one, weight: one + 0 * weight).weights
    joint = groups.cells.combine(weights, lambda one, weight: weight + 0 * one)
    if groups.count * (joint.weights.size + sum(map(len, joint.labels))) > MAX_GROUP_WORK:
        raise UnsupportedQuery(
            f"{groups.count:,} groups of a condition this fine are too much work; "
            "group by fewer columns, or simplify WHERE"
        )
    return [_part(joint, group == number) for number in range(groups.count)]


def _part(weights: Query, inside: Any) -> Query:
    """The weights inside, zero elsewhere; without the classes that lie outside."""
    tensor, labels = np.where(inside, weights.weights, 0), []
    for place, column in enumerate(weights.labels):
        others = tuple(axis for axis in range(inside.ndim) if axis != place)
        held = np.flatnonzero(inside.any(axis=others))
        if len(held) < inside.shape[place]:
            tensor = tensor.take(held, axis=place)
            padding = [(0, 0)] * tensor.ndim
            padding[place] = (0, 1)
            tensor = np.pad(tensor, padding)
            renumbered = np.full(inside.shape[place], len(held))
            renumbered[held] = np.arange(len(held))
            column = renumbered[column]
        labels.append(column)
    return Query.over(weights.domain, weights.axes, tuple(labels), tensor).canonical()


def keys_table(keys: Sequence[Image], sets: Sequence[tuple[Sequence[int], Ints]], before: int) -> pa.Table:
    """
    One row a group: its keys k0, k1, … with NULL where the grouping set has not got it; o0, o1, …, by which
    they sort; g0, g1, …: 1 where it has not got it; and the number of the group, after `before` others.
    """
    columns: dict[str, Any] = {}
    count = sum(places.shape[1] for _, places in sets)
    for number, key in enumerate(keys):
        index: list[Any] = []
        for chosen, places in sets:
            here = list(chosen).index(number) if number in chosen else None
            index += [None] * places.shape[1] if here is None else places[here].tolist()
        missing = [int(number not in chosen) for chosen, places in sets for _ in range(places.shape[1])]
        columns[f"g{number}"] = pa.array(missing, pa.int64())
        columns[f"k{number}"] = key.values.take(pa.array(index, pa.int64()))
        last = len(key.values) - 1
        null = last >= 0 and not key.values[last].is_valid
        columns[f"o{number}"] = pa.array([None if null and one == last else one for one in index], pa.int64())
    columns[GROUP] = pa.array(range(before, before + count), pa.int64())
    return pa.table(columns)
