"""Estimates of several queries with their joint law, and sums of such from independent releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.limits import MANY
from laprasdp.record.estimate import Estimate

Errors = Floats | Callable[[], Floats | None] | None
"""A joint covariance, or what works it out once it is asked for; None where it is not known."""


@dataclass(frozen=True)
class JointEstimate:
    """
    What is known of the queries of one statement.

    Attributes
    ----------
    estimates : tuple of Estimate or None
        One for each query; None for a query that is 0 on every table.
    total : Estimate, optional
        Of the sum of the queries, where that is known.
    errors : (m, m) array or callable, optional
        The covariance of the errors, or what works it out, where it is known.

    Notes
    -----
    **Privacy.**  Holds released numbers; whatever is worked out from it costs nothing.
    """

    estimates: tuple[Estimate | None, ...]
    total: Estimate | None = None
    errors: Errors = field(default=None, compare=False, repr=False)

    @cached_property
    def covariance(self) -> Floats | None:
        """(m, m) covariance of the errors, worked out when it is first asked for."""
        return worked_out(self.errors)


def worked_out(errors: Errors) -> Floats | None:
    """The covariance itself."""
    return errors() if callable(errors) else errors


def sum_of(parts: Sequence[Estimate | None]) -> Estimate | None:
    """
    The sum of estimates whose errors are independent.

    Parameters
    ----------
    parts : sequence of Estimate or None
        None is 0 without error.

    Returns
    -------
    Estimate or None
        None where all parts are.  Its variance is the sum of theirs.  Laplace errors are added to Laplace
        variables of the same variance and kurtosis, which is exact for parts of one scale; on the integers
        too, where all are.
    """
    found = [part for part in parts if part is not None]
    if not found:
        return None
    sources = {part.source for part in found}
    variance = math.fsum(part.variance for part in found)
    excess = math.fsum(part.variance**2 / part.parts for part in found if part.law != "gaussian")
    each = [part.variance / part.parts for part in found]
    whole = all(part.law == "geometric" for part in found) and math.isclose(min(each), max(each))
    return Estimate(
        math.fsum(part.value for part in found),
        variance,
        sources.pop() if len(sources) == 1 else "mixed",
        "geometric" if whole else "laplace" if excess else "gaussian",
        variance**2 / excess if excess else 1.0,
    )


def sum_of_joints(
    count: int, parts: Mapping[str, JointEstimate], places: Mapping[str, Sequence[int]]
) -> JointEstimate:
    """
    The sum of what several tables know, each of some of the queries.

    Parameters
    ----------
    count : int
        Of the queries, m.
    parts : mapping of name to JointEstimate
        Of tables without a common row, so that their errors are independent.
    places : mapping of name to sequence of int
        Which of the m queries each part is about, in its order.

    Returns
    -------
    JointEstimate
        Total and covariance where every part has its own; no covariance of more than ``MANY`` queries.
    """
    of_query: list[list[Estimate | None]] = [[] for _ in range(count)]
    for name, part in parts.items():
        for place, estimate in zip(places[name], part.estimates, strict=True):
            of_query[place].append(estimate)
    totals = [part.total for part in parts.values()]
    known = count <= MANY and all(part.errors is not None for part in parts.values())

    def added() -> Floats | None:
        covariance = np.zeros((count, count))
        for name, part in parts.items():
            if part.covariance is None:
                return None
            covariance[np.ix_(places[name], places[name])] += part.covariance
        return covariance

    return JointEstimate(
        tuple(sum_of(found) for found in of_query),
        None if any(total is None for total in totals) else sum_of(totals),
        added if known else None,
    )
