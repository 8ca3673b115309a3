"""PRIMM's pure release on some thousand cells: one strategy for each attribute, and nothing after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from laprasdp.arrays import Floats, Ints
from laprasdp.belief.factored import FactoredBelief
from laprasdp.errors import LedgerError
from laprasdp.policy.design_factored import ProductKind, ProductQueries, design_factored, overall
from laprasdp.policy.design_product import Kinds
from laprasdp.policy.families import shape_terms
from laprasdp.policy.kinds import kind_shares, kinds_of_query, shapes_of
from laprasdp.policy.policy import Grant, Policy
from laprasdp.policy.primm import LEAST, Primm
from laprasdp.policy.setting import Setting
from laprasdp.privacy.accounting import GaussianAccounting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.law import Law
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.strength import laplace_noise

_HURT = 1.08  # times the error without predictions that a kind should have with them
_REFUSED = 1e6  # times the deviation of one count, that a query which is refused counts as
_RARELY = 0.01  # share of a kind that is not declared, before shares are made to sum to one
_UNLIKELY = 1.2  # times the error of independent noise, that a kind which is not declared may have
_BITS, _MOST_BITS = 12, 40  # of the grid of one factor, and of all together
_TYPICAL = 20  # queries of each kind


class PrimmFactored(Primm):
    """
    The predictive incremental matrix mechanism where one pure release on a product strategy is all it makes.

    Parameters
    ----------
    setting : Setting
        Of a domain that `fits_product`.
    strategy : ProductRows
        What is measured, with any noise, unless a release measured something else.

    Notes
    -----
    **Privacy.**  Sees public settings and ledger entries only; the ε of its release is worked out again from
    the release's integers by the filter and by `laprasdp.ledger.claim`.
    """

    belief: FactoredBelief
    fixed = (*Primm.fixed, "strategy")
    measuring = False
    designs = False

    def __init__(self, setting: Setting, strategy: ProductRows) -> None:
        super().__init__(setting)
        self.strategy = strategy
        self.belief = FactoredBelief(setting.domain)
        self._taken: Budget | None = None  # what pure releases took of it

    def settled(self) -> Sequence[object]:
        return (*super().settled(), self.strategy)

    def allowance(self, position: int) -> int:
        return 0 if self._opened else self.accounting.total

    def most_openings(self) -> int:
        return 0 if self._opened else self.strategy.draws

    def expected_variance(self, query: Query) -> float:
        return self._forecast.variance(query)

    def kinds(self) -> Kinds:
        return self._typical

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        """The mean variance of typical queries, of all kinds alike or by the shares that are declared."""
        return [self._mean_variance] * sum(arrivals)

    def law_of(self, query: Query) -> tuple[Law, float]:
        return self._forecast.law(query)

    def laws_of(self, queries: Sequence[Query]) -> list[tuple[Law, float]]:
        return self._forecast.laws(queries)

    def deviations(self, kinds: Kinds) -> Floats:
        """(k,) mean standard deviation of each kind."""
        return np.array([self.stds(queries).mean() for queries in kinds.values()])

    def stds(self, queries: Sequence[Query]) -> Floats:
        """(m,) standard deviation of each query, by what the release will tell or told."""
        return np.sqrt([one[1] for one in self._forecast.estimates(queries) if one])

    @property
    def _forecast(self) -> FactoredBelief:
        """What is known, or will be after the release before the stream."""
        return self.belief if self._opened else self._planned

    @cached_property
    def _planned(self) -> FactoredBelief:
        """What is known after the release before the stream."""
        found = FactoredBelief(self.setting.domain)
        found.learn(self._noisy(self.setting.budget.epsilon_units), None)
        return found

    @cached_property
    def _typical(self) -> dict[str, tuple[Query, ...]]:
        setting, rng = self.setting, np.random.default_rng([0, 0])
        return kinds_of_query(
            setting.domain, setting.predictions, _TYPICAL, rng, setting.importance, setting.families
        )

    @property
    def _mean_variance(self) -> float:
        shares = kind_shares(self.setting.domain, self.setting.families)
        known = {kind: shares.get(kind, 0.0) if shares else 1.0 for kind in self._typical}
        weights = np.array([*known.values()])
        return float(np.average(self.deviations(self._typical) ** 2, weights=weights))

    def _noisy(self, epsilon_units: int) -> ProductRows:
        """The strategy with Laplace noise, as little as ε allows."""
        rows = self.belief.measured or self.strategy  # a raise measures again what was measured
        return replace(rows, **laplace_noise(rows.largest_change(self.setting.unit.max_rows), epsilon_units))

    def _opening(self, made: int) -> Grant | None:
        """All ε that is left, before the stream or after a raise."""
        assert isinstance(self.accounting, GaussianAccounting)
        left = self.setting.budget.epsilon_units - (self._taken.epsilon_units if self._taken else 0)
        if made != self._opened or left < LEAST:
            return None
        found = self._noisy(left)
        epsilon = found.laplace_epsilon(self.setting.unit.max_rows)
        return Grant(found, self.accounting.pure_charge(epsilon, found.draws, self._taken), 0)

    def _condition(self, release: Release) -> None:
        measurement = release.measurement
        if not isinstance(measurement, ProductRows):
            raise LedgerError("it measures something else than a product of strategies")
        self.belief.learn(measurement, measurement.values(release.noisy))
        self._taken = self.setting.budget

    def _batch(self, weights: Floats, predicted: float, others: float) -> Grant | None:
        return None

    def _row(self, query: Query) -> Measurement | None:
        return None

    def _rows(self, queries: Sequence[Query]) -> Measurement | None:
        return None

    def _noise_of(self, groups: Groups) -> Floats:
        return np.full(len(groups), np.inf)


def factored(
    setting: Setting,
    gaussian: tuple[Policy, Callable[[Sequence[Query]], float]] | None = None,
    before: PrimmFactored | None = None,
) -> tuple[PrimmFactored, Floats, Floats]:
    """
    The best such policy, and its errors against those of Gaussian noise.

    Parameters
    ----------
    setting : Setting
        Of a domain that `fits_product`.
    gaussian : pair of Policy and callable, optional
        What measures again and again, and what plays a stream to it: the mean deviation.
    before : PrimmFactored, optional
        What there is without predictions, which may cost its errors little.

    Returns
    -------
    PrimmFactored
    (k,) array
        A ratio for what is predicted, and for each kind of others, of Gaussian noise a stream of it alone.
        Where shapes are declared, another kind may have 1.2 times the error of independent noise.
    (k,) array
        What each is worth: the overlap, or a half, for what is predicted; the rest for the other kinds, by
        the shares that are declared, or alike.
    """
    own = bool(setting.predictions) and setting.overlap != 0
    shapes = shapes_of(setting.domain, setting.families) if not own or setting.overlap != 1 else {}
    rng = np.random.default_rng([0, 1])
    every = kinds_of_query(setting.domain, (), _TYPICAL, rng, None, setting.families)
    kinds = {name: every[name] for name in shapes if name in every}
    declared = kind_shares(setting.domain, setting.families)
    noise = setting.unit.max_rows / setting.budget.mu
    wanted, moments = list[float](), list[ProductKind | ProductQueries]()
    if own:
        wanted.append(_predicted(gaussian[0], setting) if gaussian else noise)
        moments.append(ProductQueries.of(setting.predictions, setting.importance))
    for name, queries in kinds.items():
        likely = not declared or name in declared
        known = gaussian[1](queries) if gaussian else noise
        if before is not None:
            known = min(known, _HURT * float(before.deviations({name: queries})[0]))
        wanted.append(known if likely else max(known, _UNLIKELY * math.sqrt(setting.length) * noise))
        moments.append(ProductKind(*shape_terms(setting.domain, shapes[name])))
    goal = np.minimum(np.array(wanted), _REFUSED * noise)

    def candidate(factors: Sequence[Floats], bits: int) -> tuple[PrimmFactored, Floats]:
        rows = ProductRows(setting.domain, _gridded(factors, bits), bits=bits * len(factors))
        made = PrimmFactored(setting, rows)
        errors = [setting.importance @ made.stds(setting.predictions)] if own else []
        return made, np.array([*errors, *made.deviations(kinds)]) / goal

    bits = min(_BITS, _MOST_BITS // len(setting.domain.shape))
    each = [declared.get(name, _RARELY) if declared else 1.0 for name in kinds]
    shares = np.array(([_overlap(setting) if each else 1.0] if own else []) + each)
    shares[own:] *= (1 - shares[:own].sum()) / (sum(each) or 1.0)
    found = design_factored(setting.domain.shape, moments, goal, shares)
    counts = candidate([np.eye(size) for size in setting.domain.shape], 0)
    sums = candidate([one.strategy for one in found], bits)
    return *min(counts, sums, key=lambda one: overall(one[1], shares)), shares


def _overlap(setting: Setting) -> float:
    return 0.5 if setting.overlap is None else setting.overlap


def _predicted(policy: Policy, setting: Setting) -> float:
    """Mean deviation of what is predicted, before the stream."""
    found = [policy.expected_variance(query) for query in setting.predictions]
    return float(setting.importance @ np.sqrt([math.inf if one is None else one for one in found]))


def _gridded(factors: Sequence[Floats], bits: int) -> tuple[Ints, ...]:
    """Whole numbers of 2^-bits, each level still in a row of its own; sums of nothing are left out."""
    found = list[Ints]()
    for factor in factors:
        levels = factor.shape[1]
        rows = np.rint(factor * 2.0**bits).astype(np.int64)
        rows[:levels] = np.maximum(rows[:levels], np.eye(levels, dtype=np.int64))
        found.append(rows[rows.any(axis=1)])
    return tuple(found)
