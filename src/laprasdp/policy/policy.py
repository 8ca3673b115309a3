"""What a policy is: it decides what to measure and answers from what was measured; it never sees data.

A policy's state changes in one place, `learn`, which reads public ledger entries; everything else only
looks.  So a state can be rebuilt from a ledger, and a failure between decision and release changes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from laprasdp.domain import Domain
from laprasdp.errors import BudgetExhausted, ConfigError
from laprasdp.law import Law
from laprasdp.ledger.estimate import Estimate
from laprasdp.ledger.ledger import Entry, Raise, Release, Reply
from laprasdp.pacing.competitive import TYPICAL
from laprasdp.pacing.pacing import Reading
from laprasdp.pacing.split import shares_of
from laprasdp.privacy.accounting import Accounting, accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Charge
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.query import Query
from laprasdp.strategy.dual import Floats
from laprasdp.strategy.measurement import Measurement, Rows, measure


@dataclass(frozen=True)
class Setting:
    """
    Everything public that a policy is built from.

    Attributes
    ----------
    domain : Domain
    budget : Budget
    horizon : int or None
        S ≥ 1, the statements that the budget is paced for; None where nobody knows, which primm allows.
    predictions : tuple of Query
        P; distinct, none of them the same on every cell.
    accounting : {"basic", "gaussian"}
    split : str
        How the paper's policies share the budget out.
    overlap : float or None
        Share of the stream that is expected to be predicted, where logs tell it; primm uses it.
    expected : tuple of float
        λ, how often each of `predictions` is expected, in any unit; empty where all are alike.  Only primm
        uses it.
    unit : PrivacyUnit
    reading : Reading
        How the paper is read where it is silent.
    """

    domain: Domain
    budget: Budget
    horizon: int | None
    predictions: tuple[Query, ...] = ()
    accounting: str = "gaussian"
    split: str = "matrix-heavy"
    overlap: float | None = None
    expected: tuple[float, ...] = ()
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        known = self.horizon is not None
        if known and (
            isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1
        ):
            raise ConfigError(f"the horizon must be a whole number of at least 1, not {self.horizon!r}")
        shares_of(self.split)
        if self.overlap is not None and not 0 <= self.overlap <= 1:
            raise ConfigError(f"the expected overlap lies between 0 and 1, not {self.overlap!r}")
        predictions = tuple(dict.fromkeys(self.predictions))
        if self.expected and len(self.expected) != len(predictions):
            raise ConfigError("every distinct predicted query, or none, has an expected count")
        object.__setattr__(self, "predictions", predictions)

    @cached_property
    def importance(self) -> Floats:
        """(m,) share of each predicted query among them all."""
        weights = np.array(self.expected or [1.0] * len(self.predictions))
        return np.asarray(weights / weights.sum()) if len(weights) else weights

    @property
    def length(self) -> int:
        """Statements that designs and plans reckon with."""
        return self.horizon or TYPICAL

    @cached_property
    def ledger_unit(self) -> Accounting:
        if self.horizon is None and self.accounting == "basic":
            raise ConfigError("basic accounting shares δ out: a horizon has to be declared")
        return accounting_named(self.accounting, self.budget, self.domain, self.length)

    def settings(self) -> dict[str, Any]:
        """All of it as plain data, for the ledger; a predicted query is named by its key."""
        return {
            "domain": [[name, declared] for name, declared in self.domain.settings().items()],
            "unit": asdict(self.unit),
            "budget": asdict(self.budget),
            "accounting": self.accounting,
            "horizon": self.horizon,
            "split": self.split,
            "overlap": self.overlap,
            "expected": list(self.expected),
            "reading": asdict(self.reading),
            "predictions": [query.key for query in self.predictions],
        }


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

    def __init__(self, setting: Setting) -> None:
        if self.paced and setting.horizon is None:
            raise ConfigError(f"{self.name} paces the budget: a horizon has to be declared")
        self.setting = setting
        self.accounting = setting.ledger_unit
        self.seen = 0  # statements so far: n
        self._known: dict[str, Estimate] = {}  # what was shown
        self._fresh: dict[str, Estimate] = {}  # what the last release measured

    def settings(self) -> dict[str, Any]:
        """Everything public that the state hangs on beside the ledger's entries, as plain data."""
        return {"policy": self.name, **self.setting.settings()}

    def due(self) -> Grant | None:
        """What to release before the next statement, whatever it is; most policies, once before the first."""
        return None

    def recall(self, query: Query) -> Estimate | None:
        """The answer of `query` from what has been released, or None where it has to be measured."""
        known = self._known.get(query.key)
        if known is None or self.setting.reading.repeats == "pay":
            return None
        return replace(known, source="replay")

    def grant(self, queries: Sequence[Query]) -> Grant:
        """
        What to measure for the part of a statement that has to be measured.

        Raises
        ------
        BudgetExhausted
            The policy has nothing left for it.
        """
        allowance = self.allowance(self.seen + 1)
        if allowance <= 0:
            raise BudgetExhausted(f"{self.name} has nothing left for queries outside the prediction set")
        return self._granted(self._measure(queries, allowance), allowance)

    @abstractmethod
    def allowance(self, position: int) -> int:
        """Units for a statement at `position` that has to be measured; 0 refuses it."""

    def learn(self, entry: Entry) -> None:
        """Bring the state past one ledger entry: a release conditions it, a reply is kept as it was shown."""
        if isinstance(entry, Release):
            if entry.opening:
                self._open(entry)
            else:
                self._condition(entry)
        elif isinstance(entry, Reply):
            for query, shown in zip(entry.queries, entry.answers, strict=True):
                if shown is not None:  # what was answered stays answered, free and the same
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
        assert isinstance(measurement.matrix, int)
        values = measurement.values(release.noisy)
        per_query = measurement.matrix / 2.0**measurement.bits
        variance = measurement.noise_variance / per_query**2
        return [Estimate(float(v) / per_query, variance, "measured", measurement.law) for v in values]

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

    def covariance(self, queries: Sequence[Query]) -> Floats | None:
        """(m, m) joint covariance of what is known of several queries now; None where it is not kept."""
        return None

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
            self._advance(self.seen + 1)
        self.seen += 1

    def _advance(self, position: int) -> None:
        """The statement at `position` had to be measured: use up its allowance."""

    def _measure(self, queries: Sequence[Query], allowance: int) -> Rows:
        return measure(queries, self.accounting.mu_squared(allowance), self.setting.unit.max_rows)

    def _granted(self, measurement: Measurement, allowance: int) -> Grant:
        amounts = measurement.amounts(self.setting.unit.max_rows)
        return Grant(measurement, self.accounting.charge(allowance, amounts, measurement.draws), allowance)

    def _variance_at(self, allowance: int) -> float | None:
        """Variance of one 0/1 query measured under `allowance`."""
        if allowance <= 0:
            return None
        mu_squared: Fraction = self.accounting.mu_squared(allowance)
        return float(self.setting.unit.max_rows**2 / mu_squared) if mu_squared > 0 else None
