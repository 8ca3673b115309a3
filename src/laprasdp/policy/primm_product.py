"""PRIMM on tables of many cells: the belief is over queries, each row measured the best of a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.errors import BudgetExhausted
from laprasdp.policy.crowd import candidates
from laprasdp.policy.design_product import ProductDesign, design_product
from laprasdp.policy.outlook import (
    ENOUGH,
    Indices,
    Telling,
    deviations,
    finite,
    mean_over,
    measured_deviation,
    told_deviation,
)
from laprasdp.policy.pieces import Bounds, alone, bounds_of, cut_off, pieces
from laprasdp.policy.policy import Grant
from laprasdp.policy.primm import LEAST, SHARES, SMALL, Primm
from laprasdp.policy.rollout import opened, play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.filter import charged, heaviest
from laprasdp.queries.distinct import parted
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.strategy.drawn import Drawn
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.person_rows import charged_on
from laprasdp.strategy.strength import measure

_BETTER = 0.01  # least gain of a batch, against the total error
_ALL, _ALIKE = 0.9, 0.75  # a row that touches all cells: where one does, most others are thought to
_TURN = 12  # typical queries of each kind
_LONG = 1_000  # statements after which typical ones begin again, where shapes are declared
_SEEN = 20  # measured queries that the expected crowd is worth


class PrimmProduct(Primm):
    """
    The predictive incremental matrix mechanism on a table of any number of cells.

    Parameters
    ----------
    setting : Setting
        With Gaussian accounting.
    design : ProductDesign, optional
        What is released first; the best that is found by default.

    Notes
    -----
    A query that has to be measured may use a part of what is left in the cells that it touches, so queries
    that touch different cells do not wait for each other.

    **Privacy.**  Sees public settings and ledger entries only.  The charge of each cell is added up as the
    filter does it (`laprasdp.privacy.filter.charged`), and no row is granted more than is left where it
    touches.
    """

    belief: GroupedBelief
    fixed = (*Primm.fixed, "design", "_planned", "_first", "_busy")
    again = (*Primm.again, "_cut", "_telling")

    def __init__(self, setting: Setting, design: ProductDesign | None = None) -> None:
        super().__init__(setting)
        self.design = design or design_product(setting, played)
        self.charged = Query.constant(setting.domain, 0)
        self._telling: Telling | None = None  # what the strategy tells, since the last release of it
        self._cut: tuple[int, Bounds] | None = None  # measured queries whose bounds are known, and these
        self._touches: Floats = np.zeros(len(self.design.crowd.share))
        self._first = self._batch_of(self.accounting.total * self.design.shares.prediction)
        self._busy = mean_over(
            np.where(self.design.centred, 1.0, self.design.crowded), self.design.query_shares
        )
        self.belief = self._planned = GroupedBelief(self.design.prior)
        if self._first is not None:
            self._planned.learn(self._first, None)

    def allowance(self, position: int) -> int:
        return self.accounting.total - int(self.charged.weights.max())

    def expected_variance(self, query: Query) -> float | None:
        variance = self._planned.variance(query)
        return variance if math.isfinite(variance) else None

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        """Variances of typical queries, each measured as well as its turn allows."""
        k, (before, shared, total) = len(self.design.typical), self._foreseen
        left = whole = self._power(self.accounting.total * self.design.shares.stream)
        order = self._order
        variances: list[float | None] = []
        for position, unpredicted in enumerate(arrivals, start=1):
            if not unpredicted:
                continue
            place = order[len(variances) % len(order)]
            share = self._part(left, whole, self.design.crowded[place], position, len(variances) + 1)
            if self.design.centred[place]:
                each = self._part(left, whole, 1.0, position, len(variances) + 1)
                variances.append(1 / (4 * each) + total / 4)
                left -= share * self._busy
                continue
            itself = float(measured_deviation(before[place], self.design.sharp[place] * share))
            piece = self._part(left, whole, self.design.apart[place], position, len(variances) + 1)
            told = float(told_deviation(before[place], before[k + place], shared[place], piece))
            variances.append(min(itself, told) ** 2)
            left -= share * self._busy if itself <= told else piece * self.design.apart[place]
        return variances

    @cached_property
    def _order(self) -> list[int]:
        """Typical queries as they may come: kinds in turn, or by the shares that are declared."""
        places, shares = range(len(self.design.typical)), self.design.query_shares
        if shares is None:
            return sorted(places, key=lambda place: (place % _TURN, place))
        times = np.ceil(shares * _LONG).astype(int).tolist()
        come = [((n + 0.5) / shares[place], place) for place in places for n in range(times[place])]
        return [place for _, place in sorted(come)]

    @cached_property
    def _foreseen(self) -> tuple[Floats, Floats, float]:
        """
        What is known before the stream of the typical queries and of the rows for them.

        Deviations, the covariance of each with its row, and the variance of the number of rows.
        """
        k = len(self.design.typical)
        cut, places = cut_off(self.design.typical, self.design.rows)
        total = Query.constant(self.setting.domain, 1)
        joint = finite(self._planned.covariance([*self.design.typical, *cut, total]))
        known = deviations(joint)
        own = np.concatenate([known[:k], known[places]])
        return own, joint[np.arange(k), places], float(joint[-1, -1])

    @cached_property
    def _lot(self) -> tuple[tuple[Query, ...], int, Indices]:
        """The strategy's, predicted and typical queries and what these add; where two of them begin."""
        assert self.design.joint is not None
        own, predicted = self.design.joint.queries, self.setting.predictions
        cut, places = cut_off(self.design.typical, self.design.rows)
        beside = () if own == predicted else predicted
        return (*own, *beside, *self.design.typical, *cut), len(own) if beside else 0, places

    def kinds(self) -> Mapping[str, Sequence[Query]]:
        return self.design.kinds

    def settled(self) -> Sequence[object]:
        return (*super().settled(), self.design, self._planned)

    def _opening(self, made: int) -> Grant | None:
        return self._granted(self._before[made], 0) if made < len(self._before) else None

    def due_for(self, queries: Sequence[Query]) -> Grant | None:
        parts = self.belief.undrawn(parted(queries)[1]) if self._opened else []
        return self._granted(Drawn.of(self.belief.prior, parts), 0) if parts else None

    @cached_property
    def _before(self) -> list[Measurement]:
        """What is released before the stream; of the prior, what the predicted queries rest on."""
        parts = self._planned.parts(self.setting.predictions)
        drawn = [Drawn.of(self.design.prior, parts)] if parts else []
        return [self.design.prior, *drawn, *([] if self._first is None else [self._first])]

    def _batch(self, weights: Floats, predicted: float, others: float) -> Grant | None:
        slack = self.allowance(self.seen + 1)
        if slack <= LEAST or self.design.joint is None:
            return None
        share = self._better_share(weights, predicted, others, slack)
        rows = self._batch_of((slack - 4) * share) if share else None
        return None if rows is None else self._granted(rows, 0)

    def _row(self, query: Query) -> Rows | None:
        crowd = self._crowded(query)
        if not self.belief.covers(query):
            return self._measured(*self._itself_or_around(query, crowd))
        rows = [query, *candidates(query, self.design.crowd)]
        crowds, whole = [crowd] * len(rows), len(rows)
        for piece in pieces(query, self._bounds()):
            rows.append(piece)
            crowds.append(self._crowded_piece(piece))
        joint = self.belief.covariance(rows)
        weight = max(float(self.design.crowd.touched(query).mean()), 1e-9)
        best, chosen = 0.0, None
        for place, row in enumerate(rows):
            units = self._allowed(row, crowds[place])
            if units <= LEAST or not np.isfinite(joint[place, place]):
                continue
            if place >= whole:
                rest = float(joint[0, 0] - joint[0, place] ** 2 / joint[place, place])
                units = min(units, self._units(row.sensitivity**2 / max(ENOUGH * rest, 1e-300)))
            noise = row.sensitivity**2 / self._power(units)
            costs = max(1.0, float(self.design.crowd.touched(row).mean()) / weight)
            signal = float(joint[0, place]) ** 2
            score = signal / (float(joint[place, place]) + noise * costs)
            if score > best and signal / (float(joint[place, place]) + noise) > SMALL * joint[0, 0]:
                best, chosen = score, (row, units)
        return None if chosen is None else self._measured(*chosen)

    def _bounds(self) -> Bounds:
        """Bounds on long attributes that something measured has."""
        queries, (seen, bounds) = self.belief.queries, self._cut or (0, {})
        self._cut = len(queries), bounds_of(queries[seen:], bounds) if seen < len(queries) else bounds
        return self._cut[1]

    def _itself_or_around(self, query: Query, crowd: float) -> tuple[Query, int]:
        """A query without a prior, or twice it less the total, whichever tells more; and the units for it."""
        units = self._allowed(query, crowd)
        high, low = int(query.weights.max()), int(query.weights.min())
        around = query.spread(2 * query.weights - high - low).canonical()
        wide = self._allowed(around, self._crowded(around))
        total = self.belief.variance(Query.constant(self.setting.domain, 1))
        if wide <= LEAST or around.is_zero or not math.isfinite(total):
            return query, units
        scale = (2 * query.sensitivity / around.sensitivity) ** 2  # how much more it tells
        itself = query.sensitivity**2 / self._power(units) if units > LEAST else math.inf
        half = query.sensitivity**2 / self._power(wide) / scale + total * ((high + low) / 2) ** 2
        return (around, wide) if half < itself else (query, units)

    def _rows(self, queries: Sequence[Query]) -> Rows | None:
        units = self._allowed_together(queries)
        if units <= LEAST:
            return None
        return measure(queries, self.accounting.mu_squared(units), self.setting.unit.max_rows)

    def _noise_of(self, groups: Groups) -> Floats:
        units = self._allowed_together(groups)
        noise = groups.union.sensitivity**2 / self._power(units) if units > LEAST else np.inf
        return np.full(len(groups), noise)

    def _allowed_together(self, queries: Sequence[Query]) -> int:
        """Units for a statement of several queries: what the most crowded and the dearest of them may use."""
        if not isinstance(queries, Groups):
            places = charged_on(queries, self.setting.unit.max_rows)
            return min(self._allowed(query, self._crowded(query)) for query in places)
        union = queries.union
        return self._allowed(union, self._met(self.design.crowd.touched(union), _SEEN * alone(union)))

    def _open(self, release: Release) -> None:
        super()._open(release)
        if self.design.joint is not None:
            self._telling = Telling(self.belief, self._lot[0], self.design.joint.encode)

    def _condition(self, release: Release) -> None:
        measurement = release.measurement
        if isinstance(measurement, Drawn):
            self.belief.learn(measurement, measurement.values(release.noisy))
            return
        amounts = measurement.amounts(self.setting.unit.max_rows)
        self.charged = charged(self.charged, amounts)
        if isinstance(measurement, Marginals):
            self.belief, self._cut = GroupedBelief(measurement), None
            self.belief.learn(measurement, measurement.values(release.noisy))
        else:
            self._heard(release)
        if not release.opening:
            self._touches = self._touches + self.design.crowd.touched(amounts)

    def _power(self, units: float) -> float:
        """Squared scale that so many units buy for a 0/1 query."""
        return units / 2.0**MU_BITS / self.setting.unit.max_rows**2

    def _units(self, power: float) -> int:
        """Units that buy a squared scale."""
        return math.ceil(min(power * 2.0**MU_BITS * self.setting.unit.max_rows**2, self.accounting.total))

    def _crowded(self, query: Query) -> float:
        """Share of the measurements to come that will meet the query in its most crowded cell."""
        cells = self.design.crowd.touched(query)
        found = self._met(cells, _SEEN * alone(query))
        if cells.mean() < _ALL:
            return found
        return max(found, (_SEEN * _ALIKE + float(self._touches.max())) / (_SEEN + self.measured))

    def _met(self, cells: npt.NDArray[np.bool_], least: float) -> float:
        """Share of the measurements to come that will meet the most crowded of some cells."""
        share = (_SEEN * self.design.crowd.share + self._touches) / (_SEEN + self.measured)
        least = max(least, _SEEN * self.design.crowd.anywhere)
        return float(share[cells].max(initial=least / (_SEEN + self.measured)))

    def _crowded_piece(self, row: Query) -> float:
        """The same of a piece, where what is measured of others are pieces too."""
        met = float(self._touches[self.design.crowd.touched(row)].max(initial=0))
        return (_SEEN * alone(row) + met) / (_SEEN + self.measured)

    def _part(self, left: float, whole: float, crowd: float, position: int, measured: int) -> float:
        """What one query may use of what is left where it touches."""
        fair = left / (1 + crowd * self.pacing.remaining(position, measured))
        paced = self.pacing.allowance(left, whole, position, measured)
        return max((1 - self.pacing.caution) * fair, paced)

    def _allowed(self, query: Query, crowd: float) -> int:
        """Units that a row over the cells of `query` may use now."""
        whole = self.accounting.total * self.design.shares.stream
        left = self.accounting.total - heaviest(self.charged, query)
        return int(self._part(left, whole, crowd, self.seen + 1, self.measured + 1)) if left > 0 else 0

    def _measured(self, row: Query, units: int) -> Rows | None:
        if units <= LEAST:
            return None
        try:
            return measure([row], self.accounting.mu_squared(units), self.setting.unit.max_rows)
        except BudgetExhausted:
            return None

    def _batch_of(self, units: float) -> Rows | None:
        """The strategy for the predicted queries, as strong as so many units allow."""
        if self.design.joint is None or units <= LEAST:
            return None
        try:
            return self.design.joint.at(self.accounting.mu_squared(int(units)), self.setting.unit.max_rows)
        except BudgetExhausted:
            return None

    def _better_share(self, weights: Floats, predicted: float, others: float, slack: float) -> float:
        """Share of what is left that leaves the least total error for the rest of the stream."""
        assert self.design.joint is not None
        left, m, strategy = self._power(slack), len(self.setting.predictions), self.design.joint
        if slack <= 2 * _BETTER * self.design.shares.prediction * self.accounting.total:
            return 0.0  # all of it would not make the predicted ones better by so much
        queries, start, places = self._lot
        design, count = self.design, len(self.design.typical)
        told = None if self._telling is None else self._telling.at(self.belief)
        if told is None:
            self._telling = Telling(self.belief, queries, strategy.encode)
            told = self._telling.now
        own, rows, totals = m + np.arange(count), m + places, list[float]()
        for share in SHARES:
            known = np.sqrt(np.maximum(told.variances(left * share), 0))[start:]
            rest, each = 0.0, max(left * (1 - share), 1e-300)
            if others:
                free = measured_deviation(known[own], design.sharp * each / (1 + self._busy * others))
                shared = told.covariances(start + own, start + rows, left * share)
                piece = told_deviation(known[own], known[rows], shared, each / (1 + design.apart * others))
                rest = mean_over(np.minimum(free, piece), design.query_shares)
            totals.append(predicted * float(weights @ known[:m]) + others * rest)
        place = int(np.argmin(totals))
        return SHARES[place] if totals[place] < totals[0] * (1 - _BETTER) else 0.0


def played(setting: Setting, design: ProductDesign) -> Callable[[Sequence[Query]], float]:
    """What plays streams to a design: the mean deviation of each; infinite if a query is refused."""
    before = opened(PrimmProduct(setting, design))

    def deviation(asked: Sequence[Query]) -> float:
        found = [math.inf if each is None else math.sqrt(each) for each in play(before, asked)]
        return math.fsum(found) / len(found)

    return deviation
