"""Persons: how many have a row of some kind, where several rows of a person count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query


class Persons(Query):
    """
    The number of persons who have a row on which a 0/1 query is 1.

    It is no linear function of the cells: two rows of a person count once.  What is made of its classes and
    weights, as by `combine`, is a query of rows again.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Integers
    >>> from laprasdp.queries.domain import Domain
    >>> rows = Query.count(Domain(age=Integers(0, 4)), age=[1, 2])
    >>> Persons.of(rows) == rows, Persons.of(rows).rows == rows
    (False, True)
    """

    __slots__ = ()

    @classmethod
    def of(cls, rows: Query) -> Persons:
        """
        The persons of the rows that a query counts.

        Raises
        ------
        UnsupportedQuery
            Its weights are not 0 and 1.
        """
        if rows.weights.size and not 0 <= int(rows.weights.min()) <= int(rows.weights.max()) <= 1:
            raise UnsupportedQuery("a person counts once or not at all")
        found = object.__new__(cls)
        found.domain, found.axes, found.steps = rows.domain, rows.axes, rows.steps
        found.weights = rows.weights
        return found

    @property
    def rows(self) -> Query:
        """The number of their rows."""
        return self.spread(self.weights)

    @property
    def reads(self) -> tuple[int, ...]:
        return (*self.axes, len(self.domain))

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(b"persons " + self.rows.key.encode()).hexdigest()

    @cached_property
    def mark(self) -> str:
        return self.key

    def canonical(self) -> Persons:
        return Persons.of(super().canonical())

    def answer(self, marginal: Marginal) -> int:
        """
        The exact answer, from the persons of each combination of levels.  Private.

        Notes
        -----
        **Privacy.**  Guarantees that the rows of one person more change it by 0 or 1, also where two persons
        have one number (docs/proofs/persons.md).
        """
        there = self.weights_of(marginal) > 0
        return len(np.unique(marginal.levels[len(self.domain)][there]))

    def __repr__(self) -> str:
        return f"Persons({super().__repr__()})"


def counts_persons(queries: Sequence[Query]) -> bool:
    """Whether some of them count persons, not rows."""
    return isinstance(queries, list | tuple) and any(isinstance(query, Persons) for query in queries)


def parted(queries: Sequence[Query]) -> tuple[list[Query], Sequence[Query]]:
    """Those that count persons, and the others; groups count rows, and stay groups."""
    if not counts_persons(queries):
        return [], queries
    persons: list[Query] = [query for query in queries if isinstance(query, Persons)]
    return persons, [query for query in queries if not isinstance(query, Persons)]


def is_of_persons(queries: Sequence[Query], place: int) -> bool:
    """Whether the query at a place counts persons; no group does."""
    return isinstance(queries, list | tuple) and isinstance(queries[place], Persons)
