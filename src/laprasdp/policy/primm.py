"""PRIMM: a Gaussian belief that starts from one optimised release and learns from every further one.

Before the stream a release is made that is designed for the predicted queries and, to a lesser degree, for
all others.  Every query is answered from the belief.  A query that was not predicted is first measured, as
well as its share of what is left allows; what the stream turns out not to need goes to the predicted
queries still to come.  What belief and measurements are is left to the two kinds of table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetError, BudgetExhausted
from laprasdp.pacing.competitive import Competitive
from laprasdp.policy.policy import Grant, Policy
from laprasdp.policy.setting import Setting
from laprasdp.privacy.law import Law
from laprasdp.queries.distinct import Persons, counts_persons, parted
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Release, Reply
from laprasdp.record.estimate import Estimate, Source
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.person_rows import PersonRows, of_rows


class Believing(Protocol):
    """What every belief answers."""

    def estimate(self, query: Query) -> tuple[float, float] | None:
        """Unbiased value and exact variance, or None where nothing measured determines the query."""

    def estimates(self, queries: Sequence[Query]) -> Sequence[tuple[float, float] | None]:
        """`estimate` of each query of a statement."""

    def learn(self, measurement: Any, values: Floats) -> None:
        """Condition on what a release measured of rows."""

    @property
    def age(self) -> int:
        """How much it has learned: for each answer, when it was told."""

    def covariance(self, queries: list[Query], when: Sequence[int] | None = None) -> Floats:
        """(m, m) joint covariance of the errors of several queries, each told at an age, or now."""

    def copy(self) -> Self:
        """An independent belief in the same state."""


SMALL = 0.01
"""A measurement that gains less than this share of the variance is not worth its cost."""
LEAST = 2**20
"""Units below which nothing more is measured."""
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Of what is left, that a further batch may take."""


class Primm(Policy):
    """
    What PRIMM does on every table.

    Parameters
    ----------
    setting : Setting
        With Gaussian accounting.

    Notes
    -----
    Guarantee: docs/proofs/primm.md.
    """

    name = "primm"
    paced = False
    fixed = (*Policy.fixed, "places", "pacing", "_replans")
    kept = (*Policy.kept, "_told_at")
    again: ClassVar[tuple[str, ...]] = ("_kept",)
    belief: Believing

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if self.accounting.name != "gaussian":
            raise BudgetError('primm is accounted for in μ²: use accounting "gaussian", or "smooth-cache"')
        self.places = {query.key: place for place, query in enumerate(setting.predictions)}
        share = 1.0 if not setting.predictions else None if setting.overlap is None else 1 - setting.overlap
        self.pacing = Competitive(setting.horizon, share, caution=0.1 if share is None else 0.02)
        self.measured = 0  # statements that had to be measured
        self._told_at: dict[str, int] = {}  # the belief's age when a query was first shown as it is
        self._opened = 0
        self._kept: tuple[tuple[str, int, int], Measurement | None] | None = None
        self._batched = -1  # statements seen when the last batch was released
        self._replans = self.pacing.replans

    def due(self) -> Grant | None:
        opening = self._opening(self._opened)
        if opening is not None:
            return opening
        if not self.designs:
            return None
        others = self.pacing.most_remaining(self.seen, self.measured)
        weights, predicted = self.still_to_come(self.pacing.left(self.seen) - others)
        batch = self._batch(weights, predicted, others) if predicted > 0 else None
        if batch is None or not self.setting.budget.allows(self.drawn + batch.charge.draws + self.left):
            return None  # it may not take the noise values of the statements to come
        return batch

    def openings(self) -> Sequence[Grant]:
        found = list[Grant]()
        while (grant := self._opening(self._opened + len(found))) is not None:
            found.append(grant)
        return found

    @property
    def designs(self) -> bool:
        return self.seen in self._replans and self.seen != self._batched and bool(self.places)

    def recall(self, query: Query) -> Estimate | None:
        known = super().recall(query)
        if known is not None or not self._opened or isinstance(query, Persons):
            return known
        predicted = query.key in self.places
        if not predicted and self._planned_row(query) is not None:
            return None
        return self._believed(query, "predicted" if predicted else "background")

    def recall_of(self, queries: Sequence[Query]) -> dict[Query, Estimate | None]:
        """Groups are measured together, each that gains more than little by it; others are believed."""
        if not isinstance(queries, Groups) or len(queries) < 2:
            return super().recall_of(queries)
        known = {query: super(Primm, self).recall(query) for query in queries}
        places = [place for place, query in enumerate(queries) if known[query] is None]
        if not (self._opened and places):
            return known
        if len(places) == 1:  # for one, there may be a better row than itself
            return known | {queries[places[0]]: self.recall(queries[places[0]])}
        missing = queries.at(places)
        found = self.belief.estimates(missing)
        before = np.array([np.inf if each is None else each[1] for each in found])
        with np.errstate(invalid="ignore"):
            gains = np.where(np.isinf(before), 1.0, before / (before + self._noise_of(missing)))
        laws = self.laws_of(missing)
        for query, estimate, gain, law in zip(missing, found, gains, laws, strict=True):
            predicted = query.key in self.places
            if estimate is not None and (predicted or gain <= SMALL):
                source: Source = "predicted" if predicted else "background"
                known[query] = Estimate(*estimate, source, *law)
        return known

    def grant(self, queries: Sequence[Query], at_most: int | None = None) -> Grant:
        persons = counts_persons(queries)
        self._check_persons(queries)
        measurement = self._rows(queries) if persons or len(queries) > 1 else None
        if not persons:
            measurement = measurement or self._planned_row(queries[0])  # what is not measured is believed
        if measurement is None:
            raise BudgetExhausted("nothing is left to measure this with")
        return self._granted(measurement, 0)

    def weaker(self, queries: Sequence[Query], grant: Grant, share: float) -> Grant:
        assert isinstance(grant.measurement, Rows)
        return self._granted(grant.measurement.weaker(share), 0)

    def imprecise(self, queries: Sequence[Query]) -> Mapping[Query, Estimate | None]:
        known = {query: super(Primm, self).recall(query) for query in queries}
        for query, one in known.items():
            if one is None and self._opened and not isinstance(query, Persons):
                source: Source = "predicted" if query.key in self.places else "background"
                known[query] = self._believed(query, source)
        return known

    def renewed_of(self, queries: Sequence[Query]) -> Mapping[Query, Estimate]:
        again = super().renewed_of([query for query in queries if isinstance(query, Persons)])
        return {**self.latest_of(queries), **again}  # the belief has joined those of rows

    def learn(self, entry: Entry) -> None:
        for query, shown in (
            zip(entry.queries, entry.answers, strict=True) if isinstance(entry, Reply) else ()
        ):
            known = self._known.get(query.key)
            if shown is not None and (known is None or known.value != shown.value):
                self._told_at[query.key] = self.belief.age
        super().learn(entry)
        if isinstance(entry, Reply) and entry.measured:
            self.measured += 1

    def latest(self, query: Query) -> Estimate:
        if isinstance(query, Persons):
            return super().latest(query)
        estimate = self._believed(query, "predicted" if query.key in self.places else "measured")
        if estimate is None:
            raise BudgetExhausted("nothing is left to measure this with")
        return estimate

    def latest_of(self, queries: Sequence[Query]) -> Mapping[Query, Estimate]:
        persons, queries = parted(queries)
        latest = {query: self.latest(query) for query in persons}
        if not len(queries):
            return latest
        for query, found in zip(queries, self.belief.estimates(queries), strict=True):
            if found is None:
                raise BudgetExhausted("nothing is left to measure this with")
            source: Source = "predicted" if query.key in self.places else "measured"
            latest[query] = Estimate(*found, source, *self.law_of(query))
        return latest

    def laws_of(self, queries: Sequence[Query]) -> Sequence[tuple[Law, float]]:
        """`law_of` each query of a statement."""
        return [self.law_of(query) for query in queries]

    def joint_of(self, queries: Sequence[Query], variances: Sequence[float]) -> Callable[[], Floats] | None:
        if not self._opened:
            return None
        wanted, known = list(queries), {**self._fresh, **self._known}
        persons = np.array([isinstance(query, Persons) for query in wanted])
        rows = np.flatnonzero(~persons).tolist()
        believed = self._covariance([wanted[place] for place in rows], [variances[place] for place in rows])
        if not persons.any():
            return believed
        apart = [known[query.key].variance for query in wanted if isinstance(query, Persons)]

        def joint() -> Floats:
            found = np.zeros((len(wanted), len(wanted)))
            found[persons, persons] = apart  # each has noise of its own
            if rows:
                found[np.ix_(rows, rows)] = believed()
            return found

        return joint

    def still_to_come(self, predicted: float) -> tuple[Floats, float]:
        """
        What is known by now of the predicted queries to come, if so many are expected.

        Returns
        -------
        (m,) array
            Share of each in those that are asked for the first time; all 0 if none is left.
        float
            How many of them are expected.

        Notes
        -----
        A query that was answered costs nothing when it comes again.  For another one the statements that
        went by without it speak against it: λ is the mean of a Gamma prior of shape one, which t statements
        bring to λ/(1 + λt).  The share of first times is that of the predicted queries so far.
        """
        weights = self.setting.importance
        if self.setting.reading.repeats == "pay" or predicted <= 0:
            return weights, predicted
        answered = np.array([query.key in self._known for query in self.setting.predictions])
        each = predicted / self.pacing.left(self.seen) * weights
        weights = np.where(answered, 0.0, weights / (1 + each * self.seen))
        hits = max(self.seen - self.measured, 0)
        share = min((1 + float(answered.sum())) / (1 + hits), 1.0)
        whole = float(weights.sum())
        return (weights / whole, share * predicted) if whole > 0 else (weights, 0.0)

    def _planned_row(self, query: Query) -> Measurement | None:
        """The row for `query` in this state; recall and grant ask for the same one."""
        if not self._opened:
            return None
        place = (query.key, self.seen, self._opened)
        if self._kept is None or self._kept[0] != place:
            self._kept = place, self._row(query)
        return self._kept[1]

    @abstractmethod
    def _opening(self, made: int) -> Grant | None:
        """The next release before the stream when `made` batches have been released; None after the last."""

    @abstractmethod
    def _batch(self, weights: Floats, predicted: float, others: float) -> Grant | None:
        """A further release for the predicted queries, if it pays, with so many of both kinds expected."""

    @abstractmethod
    def _row(self, query: Query) -> Measurement | None:
        """The best measurement for `query` now, or None where it would gain too little to be worth it."""

    @abstractmethod
    def _rows(self, queries: Sequence[Query]) -> Measurement | None:
        """One measurement of several queries together, as the groups of a GROUP BY."""

    @abstractmethod
    def _noise_of(self, groups: Groups) -> Floats:
        """(g,) variance that each group would have by its own measurement, if all were measured now."""

    def _open(self, release: Release) -> None:
        self._condition(release)
        self._opened += 1
        if release.charge.units:  # what was charged before is no batch
            self._batched = self.seen

    @abstractmethod
    def _condition(self, release: Release) -> None:
        """Let the belief learn a release, and remember what it charged."""

    def _heard(self, release: Release) -> None:
        """Let the belief learn what was measured of rows; counts of persons are kept as they are."""
        measurement = release.measurement
        assert isinstance(measurement, Rows)
        found = of_rows(measurement, measurement.values(release.noisy))
        if found is not None:
            self.belief.learn(*found)
        if isinstance(measurement, PersonRows):
            super()._condition(release)

    def _covariance(self, queries: list[Query], variances: list[float]) -> Callable[[], Floats]:
        """What works out the joint covariance of what was told of queries, whatever is learned later."""
        belief, now, known = self.belief.copy(), self.belief.age, self._known
        when = [
            self._told_at.get(query.key, now)
            if query.key in known and known[query.key].variance == variance
            else now
            for query, variance in zip(queries, variances, strict=True)
        ]
        return lambda: belief.covariance(queries, when)

    def _believed(self, query: Query, source: Source) -> Estimate | None:
        found = self.belief.estimate(query)
        return None if found is None else Estimate(*found, source, *self.law_of(query))
