"""What a policy is: it decides what to measure and answers from what was measured; it never sees data.

A policy's state changes in one place, `learn`, which reads public ledger entries; everything else only
looks.  So a state can be rebuilt from a ledger, and a failure between decision and release changes nothing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted, ConfigError
from laprasdp.policy.setting import Setting
from laprasdp.privacy.filter import Charge
from laprasdp.privacy.law import Law
from laprasdp.privacy.noise import LATTICE_BITS
from laprasdp.queries.distinct import counts_persons
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Raise, Release, Reply
from laprasdp.record.estimate import Estimate, joined, one_by_one
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.strength import lattice_scale, measure

_CRUMB = Fraction(1, 1000)  # of an allowance: so little is not left over for a query of its own


@dataclass(frozen=True)
class Grant:
    """What may be measured now, and its price; nothing has happened yet."""

    measurement: Measurement
    charge: Charge
    allowance: int


class Policy(ABC):
    """
    One algorithm for a stream of queries.

    Parameters
    ----------
    setting : Setting

    Notes
    -----
    **Privacy.**  A policy is given public settings and ledger entries only.  What it grants is checked by
    the filter before it is measured, so a wrong policy can waste the budget but not pass it.
    """

    name: str
    law: Law = "gaussian"  # of the error of its answers
    paced = True  # it cannot do without a horizon
    measuring: bool = True  # a statement may have to be measured
    fixed: ClassVar[tuple[str, ...]] = ("name", "setting", "accounting")
    """Attributes that no entry changes, or that the budget decides."""
    again: ClassVar[tuple[str, ...]] = ()
    """Attributes that are worked out again where they are None."""
    kept: ClassVar[tuple[str, ...]] = ("_known", "_apart")
    """Attributes that no release changes, only a reply."""

    def __init__(self, setting: Setting) -> None:
        if self.paced and setting.horizon is None:
            raise ConfigError(f"{self.name} paces the budget: a horizon has to be declared")
        self.setting = setting
        self.accounting = setting.ledger_unit
        self.seen = 0  # statements so far: n
        self.drawn = 0  # noise values so far
        self._used = 0  # units that the last release took, if no statement ended since
        self._known: dict[str, Estimate] = {}  # what was shown
        self._fresh: dict[str, Estimate] = {}  # what the last release measured
        self._apart: dict[str, bool] = {}  # what was shown whose error is of its own measurements alone

    def settings(self) -> dict[str, Any]:
        """Everything public that the state hangs on beside the ledger's entries, as plain data."""
        return {"policy": self.name, **self.setting.settings()}

    def due(self) -> Grant | None:
        """What to release before the next statement, whatever it is; most policies, once before the first."""
        return None

    def due_for(self, queries: Sequence[Query]) -> Grant | None:
        """What has to be drawn of a release that was charged before, so that `queries` can be answered."""
        return None

    def openings(self) -> Sequence[Grant]:
        """What is still to be released before the stream."""
        grant = self.due()
        return [] if grant is None else [grant]

    def most_openings(self) -> int:
        """No fewer noise values than `openings` draws, and known before anything is designed."""
        return sum(grant.charge.draws for grant in self.openings())

    @property
    def left(self) -> int:
        """Statements of the horizon that may still have to be measured."""
        return max(self.setting.length - self.seen, 0) if self.measuring else 0

    @property
    def designs(self) -> bool:
        """Whether `due` has to design a release now, which may take long; else it is known at once."""
        return False

    def recall(self, query: Query) -> Estimate | None:
        """The answer of `query` from what has been released, or None where it has to be measured."""
        known = self._known.get(query.key)
        if known is None or self.setting.reading.repeats == "pay":
            return None
        return replace(known, source="replay")

    def recall_of(self, queries: Sequence[Query]) -> dict[Query, Estimate | None]:
        """What `recall` says of each query of a statement."""
        return {query: self.recall(query) for query in queries}

    def grant(self, queries: Sequence[Query], at_most: int | None = None) -> Grant:
        """
        What to measure for the part of a statement that has to be measured.

        Parameters
        ----------
        queries : sequence of Query
        at_most : int, optional
            Units that whoever asks has left for it.  Where that is less than two allowances, the last shares
            are all of it: it is halved, or taken whole where that is one allowance, give or take a crumb.

        Raises
        ------
        BudgetExhausted
            The policy has nothing left for it.
        """
        self._check_persons(queries)
        allowance = self.allowance(self.seen + 1)
        if at_most is not None and at_most < 2 * allowance:
            allowance = at_most if at_most <= allowance * (1 + _CRUMB) else at_most // 2
        if allowance <= 0:
            raise BudgetExhausted(f"{self.name} has nothing left for queries outside the prediction set")
        return self._granted(self._measure(queries, allowance), allowance)

    def _check_persons(self, queries: Sequence[Query]) -> None:
        if not self.measuring and counts_persons(queries):
            raise BudgetExhausted(
                "what was measured before the stream took the whole budget and tells nothing of persons; "
                'ask for COUNT(*), or begin a ledger with release = "gaussian" or policy = "smooth-cache", '
                "which keep some for them"
            )

    def weaker(self, queries: Sequence[Query], grant: Grant, share: float) -> Grant:
        """
        What to measure for no more than a share of what `grant` would be charged.

        Raises
        ------
        BudgetExhausted
            That is too little to measure anything.
        """
        allowance = max(int(grant.allowance * share), 1)
        return self._granted(self._measure(queries, allowance), allowance)

    def after(self, grant: Grant) -> Policy:
        """A copy that has learned a release for a statement, whose noisy values are all taken for 0."""
        shared = [*self.settled(), *(getattr(self, name) for name in self.kept)]
        twin, measurement = copy.deepcopy(self, {id(part): part for part in shared}), grant.measurement
        none = (0,) * measurement.draws
        twin.learn(Release(measurement, none, grant.charge, grant.allowance, opening=False))
        return twin

    def imprecise(self, queries: Sequence[Query]) -> Mapping[Query, Estimate | None]:
        """What is known of queries, also where measuring them would be better."""
        return self.recall_of(queries)

    def learned(self) -> dict[str, Any]:
        """What the entries have changed, to be kept beside them."""
        left_out = {*self.fixed, *self.again}
        return {name: part for name, part in lasting(self).items() if name not in left_out}

    def resumed(self, setting: Setting, learned: Mapping[str, Any]) -> Self:
        """A policy of this setting, whose budget alone may differ, with what another one has `learned`."""
        twin = copy.copy(self)
        twin.__dict__ = {**lasting(self), **dict.fromkeys(self.again), **learned}
        twin.setting, twin.accounting = setting, setting.ledger_unit
        return twin

    @abstractmethod
    def allowance(self, position: int) -> int:
        """Units for a statement at `position` that has to be measured; 0 refuses it."""

    def learn(self, entry: Entry) -> None:
        """Bring the state past one ledger entry: a release conditions it, a reply is kept as it was shown."""
        if isinstance(entry, Release):
            self.drawn += entry.charge.draws
            if entry.opening:
                self._open(entry)
            else:
                self._condition(entry)
                self._used = entry.charge.units
        elif isinstance(entry, Reply):
            for query, shown in zip(entry.queries, entry.answers, strict=True):
                if shown is not None:  # what was answered stays answered, free and the same
                    if shown.source == "measured" and self.independent([query]):
                        self._apart[query.key] = True
                    self._known[query.key] = shown
            self._pass(measured=entry.measured)
        elif isinstance(entry, Raise):
            before = self.accounting.total
            self.setting = replace(self.setting, budget=entry.new)
            self.accounting = self.setting.ledger_unit
            self._grow(self.accounting.total - before)
        elif entry.counted:
            self._pass(measured=True)

    def latest(self, query: Query) -> Estimate:
        """The answer of a query that the last release was made for."""
        return self._fresh[query.key]

    def _read(self, release: Release) -> list[Estimate]:
        """The answers of the queries that `release` measured one by one."""
        measurement = release.measurement
        assert isinstance(measurement, Rows)
        return one_by_one(measurement, release.noisy)

    def latest_of(self, queries: Sequence[Query]) -> Mapping[Query, Estimate]:
        """What `latest` says of each query that the last release was made for."""
        return {query: self.latest(query) for query in queries}

    def renewed_of(self, queries: Sequence[Query]) -> Mapping[Query, Estimate]:
        """`latest_of` queries that were measured again, joined to what was known of each before."""
        return {query: joined(self._shown(query), one) for query, one in self.latest_of(queries).items()}

    def _shown(self, query: Query) -> Estimate | None:
        """What was shown of a query, or would be, whatever else was measured."""
        return self._known.get(query.key)

    @abstractmethod
    def expected_variance(self, query: Query) -> float | None:
        """Variance of a query that the opening release answers, before it is made; None for others."""

    def law_of(self, query: Query) -> tuple[Law, float]:
        """The law of the error of an answer to `query`, and of how many parts it is the sum."""
        return self.law, 1.0

    @abstractmethod
    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        """
        Variances that a typical stream would see, computed from public settings alone.

        Parameters
        ----------
        arrivals : sequence of bool
            For each statement of the stream, whether it is unpredicted.

        Returns
        -------
        list of float or None
            For each unpredicted one, the variance of a 0/1 query; None where it would be refused.
        """

    def kinds(self) -> Mapping[str, Sequence[Query]]:
        """Queries of every kind that nobody predicted, where errors depend on the kind; public."""
        return {}

    def settled(self) -> Sequence[object]:
        """Parts of the state that never change, so that copies may share them."""
        return (self.setting, self.accounting)

    def joint_of(self, queries: Sequence[Query], variances: Sequence[float]) -> Callable[[], Floats] | None:
        """
        What works out the (m, m) joint covariance of answers to several queries.

        Parameters
        ----------
        queries : sequence of m Query
        variances : sequence of m float
            Of their answers, which may be older than what is known now.

        Returns
        -------
        callable or None
            It goes by this state, whatever is learned later; None where no covariance is kept.
        """
        return None

    def independent(self, queries: Sequence[Query]) -> bool:
        """Whether what is known of each of several queries has noise of its own, that no other one has."""
        return all(
            query.key in self._apart or (query.key in self._fresh and query.key not in self._known)
            for query in queries
        )

    def _open(self, release: Release) -> None:
        raise AssertionError(f"{self.name} makes no opening release")

    def _grow(self, extra: int) -> None:
        """The budget was raised by `extra` units; `setting` and `accounting` are those of the new one."""

    def _condition(self, release: Release) -> None:
        """Learn a release that was made for a statement: its queries were measured one by one."""
        assert isinstance(release.measurement, Rows)
        measured = [query.key for query in release.measurement.queries]
        self._fresh = dict(zip(measured, self._read(release), strict=True))

    def _pass(self, *, measured: bool) -> None:
        """One statement further; its allowance is used up if it had to be measured."""
        if measured:
            self._advance(self.seen + 1, self._used)
        self.seen, self._used = self.seen + 1, 0

    def _advance(self, position: int, used: int) -> None:
        """The statement at `position` had to be measured, for so many units; 0 where it was refused."""

    def _measure(self, queries: Sequence[Query], allowance: int) -> Rows:
        return measure(queries, self.accounting.mu_squared(allowance), self.setting.unit.max_rows)

    def _granted(self, measurement: Measurement, allowance: int) -> Grant:
        amounts = measurement.amounts(self.setting.unit.max_rows)
        return Grant(measurement, self.accounting.charge(allowance, amounts, measurement.draws), allowance)

    def _variance_at(self, allowance: int) -> float | None:
        """Variance of one 0/1 query measured under `allowance`."""
        if allowance <= 0:
            return None
        try:
            scale = lattice_scale(self.accounting.mu_squared(allowance), self.setting.unit.max_rows**2)
        except BudgetExhausted:
            return None
        return 4.0**LATTICE_BITS / scale**2


def lasting(thing: object) -> dict[str, Any]:
    """The attributes of an object but for those that are properties, worked out once and kept."""
    kind = type(thing)
    return {
        name: part for name, part in vars(thing).items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }  # fmt: skip
