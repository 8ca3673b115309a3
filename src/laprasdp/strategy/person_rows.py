"""A measurement of queries one by one, of which some count persons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.errors import UnsupportedQuery
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.distinct import Persons, counts_persons
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Rows


@dataclass(frozen=True)
class PersonRows(Rows):
    """
    A multiple of each of several queries, some of which count persons.

    Notes
    -----
    **Privacy.**  Assumes that at most ``max_rows`` rows of a person count.  Guarantees charges that cover
    what a person changes (docs/proofs/persons.md): each count of persons by at most one, and no more of
    them than rows of the person lie in.  So ``max_rows`` is charged where it would be ``max_rows²`` for the
    rows, or 1 on every cell where that is less; each as many times squared as the query is measured.
    """

    @property
    def places(self) -> list[int]:
        """Which of the queries count rows."""
        return [place for place, query in enumerate(self.queries) if not isinstance(query, Persons)]

    @cached_property
    def _persons(self) -> Rows:
        """The rows of those whose persons are counted, each by itself."""
        places = [place for place, query in enumerate(self.queries) if isinstance(query, Persons)]
        persons = tuple(query.rows for query in self.queries if isinstance(query, Persons))
        return Rows(persons, 1, bits=0, times=self.of_places(places))

    @cached_property
    def _rows(self) -> Rows | None:
        """Those that count rows, if any."""
        if not (places := self.places):
            return None
        rows = tuple(self.queries[place] for place in places)
        return Rows(rows, 1, bits=0, times=self.of_places(places))

    def of_places(self, places: Sequence[int]) -> tuple[int, ...]:
        """How many times the queries at some places are measured; empty as `times`."""
        return tuple(self.times[place] for place in places) if self.times else ()

    @property
    def _each(self) -> list[int]:
        """How many times each count of persons is measured."""
        return list(self._persons.times or [1] * len(self._persons.queries))

    def everywhere(self, max_rows: int) -> bool:
        """Whether counts of persons are charged on all cells alike: where they are fewer than their rows."""
        return sum(times**2 for times in self._each) < max_rows * self._persons.largest_square

    def _charged(self, max_rows: int) -> Query:
        """What each cell is charged, in squared multiples."""
        amounts, factor = self._persons.squares(), max_rows
        if self.everywhere(max_rows):
            whole = sum(times**2 for times in self._each)
            amounts, factor = Query.everywhere(amounts.domain, whole), 1
        amounts = amounts.spread(_times(amounts.weights, factor))
        if self._rows is None:
            return amounts
        rows = self._rows.squares()
        rows = rows.spread(_times(rows.weights, max_rows**2))
        try:
            return rows.combine(amounts, lambda one, other: np.asarray(one + other, dtype=object))
        except UnsupportedQuery:  # too many classes: no cell is charged less
            return Query.everywhere(rows.domain, int(rows.weights.max()) + int(amounts.weights.max()))

    def largest(self, max_rows: int) -> int:
        return int(self._charged(max_rows).weights.max())

    def amounts(self, max_rows: int = 1) -> Query:
        assert isinstance(self.matrix, int)
        squares, factor = self._charged(max_rows), self.matrix**2 << MU_BITS
        exact = [-(-int(value) * factor >> 2 * self.bits) for value in squares.weights.reshape(-1)]
        return squares.spread(np.array(exact, dtype=np.int64).reshape(squares.weights.shape))

    def largest_change(self, max_rows: int) -> int:
        persons = min(sum(self._each), max_rows * self._persons.largest_sum)
        return persons + (0 if self._rows is None else max_rows * self._rows.largest_sum)


def _times(weights: npt.NDArray[Any], factor: int) -> npt.NDArray[Any]:
    return np.asarray(np.asarray(weights, dtype=object) * factor, dtype=object)


def charged_on(queries: Sequence[Query], max_rows: int) -> Sequence[Query]:
    """Functions of the cells that are not 0 where each query is charged when all are measured together."""
    if not counts_persons(queries):
        return queries
    everywhere = PersonRows(tuple(queries), 1, bits=0).everywhere(max_rows)
    return [
        query.rows if isinstance(query, Persons) and not everywhere
        else Query.constant(query.domain, 1) if isinstance(query, Persons) else query
        for query in queries
    ]  # fmt: skip


def of_rows(measurement: Rows, values: Floats) -> tuple[Rows, Floats] | None:
    """The part of a measurement that is of functions of the cells, with its values; None where none is."""
    if not isinstance(measurement, PersonRows):
        return measurement, values
    if not (places := measurement.places):
        return None
    rows = Rows(
        tuple(measurement.queries[place] for place in places), measurement.matrix, bits=measurement.bits,
        law=measurement.law, scale=measurement.scale, scale_bits=measurement.scale_bits,
        times=measurement.of_places(places),
    )  # fmt: skip
    return rows, values[places]
