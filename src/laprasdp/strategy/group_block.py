"""A block: the groups of one statement with their noisy values, and every query that is a sum of groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.limits import MAX_JOINT
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Rows

_KEPT = 10_000  # queries whose combination is kept


@dataclass(frozen=True)
class Combination:
    """A query as a combination of measured rows: its unbiased value and exact variance."""

    value: float
    variance: float


class GroupBlock:
    """
    Groups that were measured one by one, all with the same noise.

    Parameters
    ----------
    groups : Groups
    values : (g,) array
        Unbiased, of independent noise.
    variance : float
        Of each, in squared records.

    Notes
    -----
    A function of the cells is a combination of the groups if on the cells of each group it is a multiple of
    that group, and 0 elsewhere; that is told in exact integers.  So roll-ups are sums of what is kept.
    """

    def __init__(self, groups: Groups, values: Floats, variance: float) -> None:
        self.groups, self.variance = groups, variance
        self._values = np.zeros(math.prod(groups.shape))
        self._values[groups.places] = values
        self._there = np.zeros(len(self._values), dtype=bool)
        self._there[groups.places] = True

    def weights(self, query: Query) -> Floats | None:
        """(n,) how often `query` takes each group, in C order of all levels; None if it is no combination."""
        if not set(query.axes) <= set(self.groups.axes):
            return None
        found = self.groups.shares(query)
        if found is None or found[1].any() or found[0][~self._there].any():
            return None
        return found[0]

    @cached_property
    def _found(self) -> dict[str, Combination | None]:
        """What was looked for, by the query's mark."""
        return {}

    def find(self, query: Query) -> Combination | None:
        """The value and variance of `query`, or None where it is no combination of the groups."""
        if query.mark not in self._found:
            if len(self._found) >= _KEPT:
                self._found.clear()
            weights = self.weights(query)
            self._found[query.mark] = None if weights is None else Combination(
                float(weights @ self._values), float(weights @ weights) * self.variance
            )  # fmt: skip
        return self._found[query.mark]

    def find_all(self, queries: Sequence[Query]) -> tuple[Floats, Floats]:
        """The same for any queries, one by one."""
        each = [self.find(query) for query in queries]
        known = [found or Combination(0.0, math.inf) for found in each]
        return np.array([one.value for one in known]), np.array([one.variance for one in known])

    def find_each(self, groups: Groups) -> tuple[Floats, Floats]:
        """
        The same for the groups of another statement.

        Returns
        -------
        (g,) array, (g,) array
            Values and variances; the variance is infinite where a group is no combination.
        """
        if not set(groups.by) <= set(self.groups.by):
            return self.find_all(groups)
        found = self.groups.shares(groups.whole)
        if found is None:
            return np.zeros(len(groups)), np.full(len(groups), np.inf)
        shares, wrong = found
        wrong = wrong | ((shares != 0) & ~self._there)
        owner = self._owners(groups)
        count = math.prod(groups.shape)
        values, squares, spoiled = (
            np.asarray(np.bincount(owner, weights=each, minlength=count)[groups.places], dtype=float)
            for each in (shares * self._values, shares**2, wrong)
        )
        return values, np.where(spoiled > 0, math.inf, squares * self.variance)

    def _owners(self, groups: Groups) -> npt.NDArray[np.intp]:
        """(n,) in which of the other statement's groups each of all groups lies."""
        levels = np.unravel_index(np.arange(len(self._values)), self.groups.shape)
        wanted = tuple(levels[self.groups.by.index(axis)] for axis in groups.by)
        return np.asarray(np.ravel_multi_index(wanted, groups.shape))


def block_of(measurement: Rows, values: Floats) -> GroupBlock | None:
    """
    What a release says of its groups, where they are too many to be learned as rows.

    Parameters
    ----------
    measurement : Rows
    values : (r,) array
        As from `Measurement.values`.
    """
    groups = measurement.queries
    if not isinstance(groups, Groups) or len(groups) <= MAX_JOINT:
        return None
    assert isinstance(measurement.matrix, int)
    scale = measurement.matrix / 2.0**measurement.bits
    return GroupBlock(groups, values / scale, measurement.noise_variance / scale**2)
