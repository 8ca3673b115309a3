"""PRIMM on small tables: the belief is over the cells, each measurement the best that its cost buys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.measure import best_row
from laprasdp.policy.design import Design, PureNoise, design
from laprasdp.policy.families import Predicted, families
from laprasdp.policy.policy import Grant
from laprasdp.policy.primm import LEAST, SHARES, SMALL, Primm
from laprasdp.policy.setting import Setting
from laprasdp.privacy.accounting import GaussianAccounting
from laprasdp.privacy.budget import MU_BITS, Budget
from laprasdp.privacy.filter import CellCharge
from laprasdp.privacy.law import Law
from laprasdp.queries.distinct import counts_persons
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.person_rows import charged_on
from laprasdp.strategy.strength import measure, times_of, with_laplace

_BITS = 28  # grid of measured rows: weights and their squares fit int64
_PURE_BITS = 20  # of those with Laplace noise, whose answers fit int64 with tables of 2^40 rows


class PrimmDense(Primm):
    """
    The predictive incremental matrix mechanism on a table of few cells.

    Parameters
    ----------
    setting : Setting
        Its domain has at most `laprasdp.limits.MAX_CELLS` cells.
    first : Design, optional
        What a ledger was begun with, on more cells than a Gaussian design is made for.
    """

    belief: DenseBelief
    fixed = (*Primm.fixed, "_predicted", "_first")
    again = (*Primm.again, "_kept_forecast")

    def __init__(self, setting: Setting, first: Design | None = None) -> None:
        super().__init__(setting)
        cells = setting.domain.size
        vectors = np.array([query.vector() for query in setting.predictions], dtype=float)
        self._predicted = Predicted(vectors.reshape(-1, cells), setting.importance)
        self._first = self._designed() if first is None else first
        self.belief = DenseBelief(cells)
        self._kept_forecast: DenseBelief | None = None
        self.charged = np.zeros(cells, dtype=np.int64)
        self._taken: Budget | None = None  # what pure releases took of it
        self.measuring = not self._first.pure

    @property
    def _design(self) -> Design:
        """What was designed; of Gaussian noise where the ledger was begun with that."""
        return self._gaussian if self._opened and self._taken is None else self._first

    @cached_property
    def _gaussian(self) -> Design:
        if not self._first.pure:
            return self._first
        setting = self.setting
        return design(
            setting.domain, self._predicted, setting.length, setting.overlap, shapes=setting.families
        )

    def _designed(self) -> Design:
        setting = self.setting
        epsilon, root = setting.budget.epsilon / setting.unit.max_rows, math.sqrt(0.5)
        unit = setting.budget.mu / setting.unit.max_rows  # against a Gaussian row
        laplace = PureNoise(counted=unit * root / math.sinh(epsilon / 2), line=unit / root / epsilon)
        return design(
            setting.domain,
            self._predicted,
            setting.length,
            setting.overlap,
            laplace=None if setting.release == "gaussian" else laplace,
            pure=setting.release == "pure",
            shapes=setting.families,
        )

    def most_openings(self) -> int:
        return 0 if self._opened and self._taken is None else len(self._first.strategy)

    def allowance(self, position: int) -> int:
        return int(self._slack().max())

    def expected_variance(self, query: Query) -> float:
        return self._forecast.variance(query)

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        """Variances of random 0/1 queries, or of declared shapes, each measured as its turn allows."""
        if self._design.pure:
            return [self._typical(self._forecast.inverse)] * sum(arrivals)
        left = whole = self._units(self.accounting.total) * (1 - self._design.first)
        precision: Floats = self._forecast.precision
        variances = list[float]()
        inverse = self._forecast.inverse
        for position, unpredicted in enumerate(arrivals, start=1):
            if not unpredicted:
                continue
            share = self.pacing.allowance(left, whole, position, len(variances) + 1)
            left -= share
            before = self._typical(inverse)
            variances.append(before / (1 + share * before))
            precision = precision + self._design.background * share
            if len(variances) % 10 == 0:
                inverse = np.asarray(np.linalg.inv(precision))
        return list(variances)

    @cached_property
    def _asked(self) -> Floats | None:
        """Second moment of unpredicted queries, where shapes are declared."""
        setting = self.setting
        if not setting.families:
            return None
        found = [one for one in families(setting.domain, setting.families) if one.declared]
        whole = math.fsum(one.share for one in found)
        return np.asarray(sum(one.moment * (one.share / whole) for one in found))

    def _typical(self, inverse: Floats) -> float:
        """Mean variance of unpredicted queries; of random 0/1 ones where no shapes are declared."""
        if self._asked is not None:
            return float(np.sum(self._asked * inverse))
        return (float(inverse.sum()) + float(inverse.trace())) / 4

    def _opening(self, made: int) -> Grant | None:
        if self._taken is not None or (self._design.pure and not made):
            return self._pure_grant() if made == self._opened else None
        if made:
            return None
        return self._granted(self._grid(self._design.strategy * self._norm(self._design.first)), 0)

    def _batch(self, weights: Floats, predicted: float, others: float) -> Grant | None:
        slack = float(self._slack().min())
        share = self._better_share(weights, predicted, others, slack) if slack > LEAST else 0.0
        if share == 0:
            return None
        norm = self._norm((slack * share - 4) / self.accounting.total)
        return self._granted(self._grid(self._design.batch * norm), 0)

    def _row(self, query: Query) -> Rows | None:
        vector, allowance = query.vector().astype(float), self._allowance()
        if not allowance.any():
            return None
        row = best_row(
            self.belief.precision, self.belief.inverse, vector, allowance, tolerance=1e-4, sweeps=12
        )
        seen = self.belief.inverse @ row
        gain = float(vector @ seen) ** 2 / (1 + float(row @ seen))
        worth = gain > SMALL * float(vector @ self.belief.inverse @ vector)
        return self._grid(row[np.newaxis]) if worth else None

    def _rows(self, queries: Sequence[Query]) -> Rows | None:
        if counts_persons(queries):
            return self._one_by_one(queries)
        rows, scales = self._scaled(queries)
        rows = rows * scales[:, np.newaxis]
        if not np.isfinite(rows).all() or not rows.any():
            return None
        if not isinstance(queries, Groups):
            return self._grid(rows)
        (whole,) = self._grid(rows.sum(axis=0, keepdims=True)).queries  # each cell is in one of them
        groups = Groups(whole, queries.by, queries.places)
        return Rows(groups.at(np.flatnonzero(groups.live)), 1, bits=_BITS)

    def _one_by_one(self, queries: Sequence[Query]) -> Rows | None:
        """Each query with one noise, as strongly as the fullest cell that is charged allows."""
        most, allowance = self.setting.unit.max_rows, self._allowance()
        touched = [query.vector() != 0 for query in charged_on(queries, most)]
        units = float(allowance[np.any(touched, axis=0)].min(initial=np.inf)) ** 2 * most**2 * 2.0**MU_BITS
        if not LEAST < units < np.inf:
            return None
        return measure(queries, self.accounting.mu_squared(int(units)), most)

    def _noise_of(self, groups: Groups) -> Floats:
        _, scales = self._scaled(groups)
        return np.asarray(np.divide(1.0, scales**2, out=np.full(len(groups), np.inf), where=scales > 0))

    def _scaled(self, queries: Sequence[Query]) -> tuple[Floats, Floats]:
        """(m, n) rows, and (m,) how strongly each can be measured beside the others."""
        rows = np.array([query.vector() for query in queries], dtype=float)
        times = np.array(times_of(queries, self.setting.unit.max_rows) or [1] * len(rows), dtype=float)
        norms, allowance = np.sqrt(((rows * times[:, np.newaxis]) ** 2).sum(axis=0)), self._allowance()
        scales = np.divide(allowance, norms, out=np.zeros_like(norms), where=norms > 0)
        return rows, np.asarray(np.where(rows != 0, scales, np.inf).min(axis=1) * times, dtype=float)

    def _condition(self, release: Release) -> None:
        self._heard(release)
        assert isinstance(release.charge, CellCharge)
        if release.charge.pure:  # what the ledger holds, whatever would be designed now
            self._taken = self.setting.budget
        self.measuring = self._taken is None
        self.charged = self.charged + release.charge.amounts.vector()

    def law_of(self, query: Query) -> tuple[Law, float]:
        return (self.belief if self._opened else self._forecast).law(query)

    def _pure_grant(self) -> Grant | None:
        """The strategy with Laplace noise and all ε that is left; on the whole numbers if it is all cells."""
        assert isinstance(self.accounting, GaussianAccounting)
        left = self.setting.budget.epsilon_units - (self._taken.epsilon_units if self._taken else 0)
        if left < LEAST:
            return None
        most, strategy = self.setting.unit.max_rows, self._first.strategy
        if not self._first.pure:  # as this version would not begin
            strategy = np.eye(self.setting.domain.size)
        bits = 0 if len(strategy) == self.setting.domain.size else _PURE_BITS
        rows = self._written(np.rint(strategy * 2.0**bits).astype(np.int64))
        found = with_laplace(Rows(rows, 1, bits=bits), left, most)
        charge = self.accounting.pure_charge(found.laplace_epsilon(most), found.draws, self._taken)
        return Grant(found, charge, 0)

    def _written(self, rows: npt.NDArray[np.int64]) -> tuple[Query, ...]:
        """Rows of weights of all cells as queries."""
        domain = self.setting.domain
        labels = {name: np.arange(size) for name, size in zip(domain.names, domain.shape, strict=True)}
        return tuple(Query(domain, labels, row.reshape(domain.shape)) for row in rows if row.any())

    @property
    def _forecast(self) -> DenseBelief:
        """What is known after the release before the stream."""
        if self._taken is not None:
            return self.belief
        if self._kept_forecast is None:
            grant = self._opening(0)
            assert grant is not None
            assert isinstance(grant.measurement, Rows)
            self._kept_forecast = DenseBelief(self.setting.domain.size)
            self._kept_forecast.learn(grant.measurement, None)
        return self._kept_forecast

    def _units(self, units: float) -> float:
        """Squared column norm that so many units buy."""
        return units / 2.0**MU_BITS / self.setting.unit.max_rows**2

    def _norm(self, share: float) -> float:
        """Column norm that a share of the budget buys."""
        return math.sqrt(self._units(self.accounting.total * share))

    def _slack(self) -> Floats:
        """Units that each cell has left."""
        slack: Floats = np.maximum(self.accounting.total - self.charged, 0).astype(float)
        return slack

    def _allowance(self) -> Floats:
        """Column norm that each cell may add for the next query that has to be measured."""
        slack, whole = self._slack(), self.accounting.total * (1 - self._design.first)
        most = float(slack.max())
        if most <= LEAST:
            return np.zeros(len(slack))
        now = self.pacing.allowance(most, whole, self.seen + 1, self.measured + 1)
        units: Floats = np.maximum(np.floor(slack * min(1.0, now / most)) - 2, 0)
        return np.sqrt(units / 2.0**MU_BITS) / self.setting.unit.max_rows

    def _grid(self, rows: Floats) -> Rows:
        """Rows on the grid, rounded toward zero, so that no cell is charged more than intended."""
        return Rows(self._written(np.trunc(rows * 2.0**_BITS).astype(np.int64)), 1, bits=_BITS)

    def _better_share(self, weights: Floats, predicted: float, others: float, slack: float) -> float:
        """Share of what is left that leaves the least total error for the rest of the stream."""
        still = Predicted(self._predicted.vectors, weights)
        unit, even = self._design.batch.T @ self._design.batch, self._design.background
        half, left = np.full(len(unit), 0.5), self._units(slack)
        best, chosen = math.inf, 0.0
        for share in SHARES:
            precision = self.belief.precision + unit * (left * share)
            inverse = np.asarray(np.linalg.inv(precision))
            known = still.deviation(inverse)
            halfway = np.linalg.inv(precision + even * (left * (1 - share) / 2))  # rows measured by then help
            before = float(half @ halfway @ half) + float(halfway.trace()) / 4
            each = left * (1 - share) / (others + 1)
            total = predicted * known + others * math.sqrt(before / (1 + each * before))
            if total < best * (1 - 1e-3):
                best, chosen = total, share
        return chosen


class LaplaceCounts(PrimmDense):
    """Laplace counts of all cells, with the whole ε, whether they are better for every query or not."""

    name = "laplace-counts"

    def _designed(self) -> Design:
        even = np.eye(self.setting.domain.size)
        return Design(even, 1.0, even, even, pure=True)
