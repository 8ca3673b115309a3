"""LAPRAS as the paper gives it: one release over the prediction set, paced noise for all other queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted
from laprasdp.pacing.pacing import Pacing, Reading, Smooth, Static
from laprasdp.pacing.split import Pools, split_budget
from laprasdp.policy.policy import Grant, Policy
from laprasdp.policy.setting import Setting
from laprasdp.queries.distinct import Persons, parted
from laprasdp.queries.groups import chosen
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Release
from laprasdp.record.estimate import Estimate
from laprasdp.strategy.group_block import Combination
from laprasdp.strategy.joint import design_joint
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.person_rows import of_rows
from laprasdp.strategy.span import Span


class MatrixRelease:
    """
    The optimal strategy for the prediction set, on the grid, and how well it answers.

    Parameters
    ----------
    setting : Setting
        With at least one prediction.
    allowance : int
        Units of the accounting that the release may use.
    gap : float
        Relative distance from the certified optimum at which the design stops, where the predictions tell
        few columns apart.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi.  The matrix mechanism.  VLDB J. 24 (2015).
    """

    def __init__(self, setting: Setting, allowance: int, gap: float = 1e-4) -> None:
        self._accounting, self._rows = setting.ledger_unit, setting.unit.max_rows
        self.queries, self.allowance = setting.predictions, allowance
        mu_squared = self._accounting.mu_squared(allowance)
        self.measurement = design_joint(self.queries, gap=gap).at(mu_squared, self._rows)
        decode = self.measurement.decoding
        self.variances: Floats = np.einsum("ij,ij->i", decode, decode)

    def grant(self) -> Grant:
        amounts = self.measurement.amounts(self._rows)
        charge = self._accounting.charge(self.allowance, amounts, self.measurement.draws)
        return Grant(self.measurement, charge, self.allowance)


def predicted_by(release: Release) -> dict[str, Estimate]:
    """The answers of a matrix release by key, decoded with the strategy that it holds."""
    measurement = release.measurement
    assert isinstance(measurement, Rows)
    decode = measurement.decoding
    answers, variances = decode @ measurement.values(release.noisy), np.einsum("ij,ij->i", decode, decode)
    return {
        query.key: Estimate(float(value), float(variance), "predicted")
        for query, value, variance in zip(measurement.queries, answers, variances, strict=True)
    }


class Lapras(Policy):
    """
    Static, Smooth, or Smooth with the query cache.

    Parameters
    ----------
    setting : Setting
    name : str
    pace : class of Pacing
    cache : bool
        Answer a query from what has been released where it is a combination of measured queries and its
        variance is no worse than a fresh answer's at the paced budget.

    References
    ----------
    LAPRAS, Algorithm 1; docs/decisions/reading-of-the-paper.md for what it leaves open.
    """

    fixed = (*Policy.fixed, "_pace")
    again = ("_designed",)

    def __init__(
        self,
        setting: Setting,
        name: str,
        pace: Callable[[Pools, int, int, Reading], Pacing],
        *,
        cache: bool = False,
    ) -> None:
        self.name = name
        super().__init__(setting)
        total = self.accounting.total
        self._pools = split_budget(total, setting.split, predicted=bool(setting.predictions))
        self._pace = pace
        self._pacing = self._paced()
        self._designed: MatrixRelease | None = None
        self._predicted: dict[str, Estimate] = {}
        self._span = Span() if cache else None

    def _paced(self) -> Pacing:
        """The pacing before the stream."""
        setting = self.setting
        return self._pace(self._pools, self.accounting.total, setting.length, setting.reading)

    @property
    def _matrix(self) -> MatrixRelease:
        if self._designed is None:
            self._designed = MatrixRelease(self.setting, self._pools.matrix)
        return self._designed

    def due(self) -> Grant | None:
        return self._matrix.grant() if self.setting.predictions and not self._predicted else None

    def most_openings(self) -> int:
        return 0 if self._predicted else len(self.setting.predictions)

    @property
    def designs(self) -> bool:
        return bool(self.setting.predictions) and not self._predicted and self._designed is None

    def allowance(self, position: int) -> int:
        return self._pacing.allowance(position)

    def recall(self, query: Query) -> Estimate | None:
        known = self._held(query)
        if known is not None or self._span is None or isinstance(query, Persons):
            return known
        return self._cached([query], {query: self._span.find(query)})[query]

    def recall_of(self, queries: Sequence[Query]) -> dict[Query, Estimate | None]:
        if self._span is None or len(queries) < 2:
            return super().recall_of(queries)
        known = {query: self._held(query) for query in queries}
        missing = [
            place
            for place, query in enumerate(queries)
            if known[query] is None and not isinstance(query, Persons)
        ]
        if not missing:
            return known
        return known | self._cached(chosen(queries, missing), self._span.find_each(parted(queries)[1]))

    def imprecise(self, queries: Sequence[Query]) -> Mapping[Query, Estimate | None]:
        known = {query: self._held(query) for query in queries}
        found = self._span.find_each(parted(queries)[1]) if self._span is not None else {}
        cached = {query: Estimate(one.value, one.variance, "cache") for query, one in found.items() if one}
        return {query: one or cached.get(query) for query, one in known.items()}

    def _shown(self, query: Query) -> Estimate | None:
        return self._known.get(query.key) or self._predicted.get(query.key)

    def _held(self, query: Query) -> Estimate | None:
        """What was predicted or shown before."""
        if query.key in self._predicted:
            one = self._known.get(query.key, self._predicted[query.key])
            return one if one.source == "predicted" else replace(one, source="replay")  # measured again
        return super().recall(query)

    def _cached(
        self, queries: Sequence[Query], found: Mapping[Query, Combination | None]
    ) -> dict[Query, Estimate | None]:
        """What was found of some queries, where measuring them now would be no better."""
        cached = dict[Query, Estimate | None]()
        for query, fresh in zip(queries, self._fresh_variances(queries), strict=True):
            one = found[query]
            useful = one is not None and (fresh is None or one.variance <= fresh)
            cached[query] = Estimate(one.value, one.variance, "cache") if one and useful else None
        return cached

    def independent(self, queries: Sequence[Query]) -> bool:
        return super().independent(queries) and not any(query.key in self._predicted for query in queries)

    def learn(self, entry: Entry) -> None:
        super().learn(entry)
        if self._span is None or not isinstance(entry, Release):
            return
        measurement = entry.measurement
        assert isinstance(measurement, Rows)
        found = of_rows(measurement, measurement.values(entry.noisy))
        if found is not None:
            self._span.learn(*found)

    def expected_variance(self, query: Query) -> float | None:
        if query not in self._predicted_places:
            return None
        return float(self._matrix.variances[self._predicted_places[query]])

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        pacing, variances = self._paced(), []
        for position, unpredicted in enumerate(arrivals, start=1):
            if unpredicted:
                variances.append(self._variance_at(pacing.allowance(position)))
                pacing.advance(position)
        return variances

    @cached_property
    def _predicted_places(self) -> dict[Query, int]:
        return {query: place for place, query in enumerate(self.setting.predictions)}

    def _open(self, release: Release) -> None:
        self._predicted = predicted_by(release)
        over = self._pools.matrix - release.charge.units  # what the rounding of the strategy left
        self._pacing.grow(Pools(0, 0, 0, over), self.accounting.total, self.seen + 1)

    def _advance(self, position: int, used: int) -> None:
        self._pacing.advance(position, used)

    def _grow(self, extra: int) -> None:
        setting = self.setting
        if self.seen or self._predicted:
            pools = split_budget(extra, setting.split, predicted=False)
            self._pacing.grow(pools, self.accounting.total, self.seen + 1)
        else:  # nothing was shared out yet
            self._pools = split_budget(
                self.accounting.total, setting.split, predicted=bool(setting.predictions)
            )
            self._pacing = self._paced()
            self._designed = None

    def _fresh_variances(self, queries: Sequence[Query]) -> Sequence[float | None]:
        """Variance of each query if all are measured now, or None where that would be refused."""
        try:
            measurement = self.grant(queries).measurement
        except BudgetExhausted:
            return [None] * len(queries)
        assert isinstance(measurement, Rows)
        return list(1 / measurement.scales**2)


def static(setting: Setting) -> Lapras:
    """Static Allocation."""
    return Lapras(setting, "static", Static)


def smooth(setting: Setting) -> Lapras:
    """Smooth Allocation."""
    return Lapras(setting, "smooth", Smooth)


def smooth_cache(setting: Setting) -> Lapras:
    """Smooth Allocation with the query cache."""
    return Lapras(setting, "smooth-cache", Smooth, cache=True)
