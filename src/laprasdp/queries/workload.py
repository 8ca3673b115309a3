"""A workload: queries in a stack, with their Gram matrix and their distinct columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from laprasdp.errors import DomainError
from laprasdp.queries.columns import Columns, distinct_columns
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query


class Workload:
    """
    Queries over one domain, in order.

    Parameters
    ----------
    queries : sequence of Query
        At least one.

    Raises
    ------
    DomainError
        No query, or queries over different domains.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Integers
    >>> domain = Domain(age=Integers(0, 999_999))
    >>> ranges = [Query.count(domain, age=range(0, 50)), Query.count(domain, age=range(20, 99))]
    >>> Workload(ranges).columns.values
    array([[1, 1, 0, 0],
           [0, 1, 0, 1]])
    >>> Workload(ranges).gram
    array([[50., 30.],
           [30., 79.]])
    """

    def __init__(self, queries: Sequence[Query]) -> None:
        if not queries:
            raise DomainError("a workload needs at least one query")
        self.queries = tuple(queries)
        if any(query.domain != self.domain for query in self.queries):
            raise DomainError("the queries of a workload are over different domains")

    @property
    def domain(self) -> Domain:
        """The domain of all its queries."""
        return self.queries[0].domain

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.queries)

    @cached_property
    def gram(self) -> npt.NDArray[np.float64]:
        """(m, m) sums over all cells of the products of weights, ``W Wᵀ``."""
        result = np.empty((len(self), len(self)))
        for i, query in enumerate(self.queries):
            result[i, : i + 1] = result[: i + 1, i] = [query.dot(other) for other in self.queries[: i + 1]]
        return result

    @cached_property
    def columns(self) -> Columns:
        """The distinct columns of ``W``; the all-zero one is among them where it occurs."""
        return distinct_columns(self.queries)
