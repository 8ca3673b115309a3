r"""The design of PRIMM's releases on a table of many cells: what to measure before the stream, how strongly.

The background prior and the strategy of the predicted queries are designed once; only their shares of the
budget are compared, by the errors that they lead to for predicted queries and for typical others.  No data
is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from laprasdp.belief.product import ProductBelief
from laprasdp.errors import BudgetExhausted, UnsupportedQuery
from laprasdp.policy.crowd import Crowd, candidates, crowd_of, gathered
from laprasdp.policy.kinds import ALIKE, WIDEST, is_ordered, kinds_of_query
from laprasdp.policy.policy import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.query import MAX_CLASSES, Query
from laprasdp.strategy.background import point_moment, range_moment
from laprasdp.strategy.dual import Floats
from laprasdp.strategy.kronecker import Axes, Marginals, design_marginals, subsets, subspace_weights
from laprasdp.strategy.optimize import optimize
from laprasdp.strategy.threads import blas_threads
from laprasdp.workload import Workload

_TYPICAL = 12  # typical queries of each kind
_ROWS = 1_000_000  # noise values that the prior may have in all
_GAP = 1e-2
HURT = 1.3  # times the error without predictions, that a kind of unpredicted queries may have with them
_BACKGROUND = (0.02, *(share / 20 for share in range(1, 20)))
_STREAM = (0.02, *(share / 20 for share in range(1, 17)))
_LEAST = 0.002  # share of the stream where nothing is expected to be measured
_UNKNOWN = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # overlaps that stand for an unknown one
_CLOSE = 1.02  # of the least hurt, where no shares keep the limit
_WORSE = 1.12  # times the least error that predicted queries may have within the limits
_MOVED = 0.5  # part of the stream's share that later batches bring to the predicted queries, if all are


@dataclass(frozen=True)
class Shares:
    """Parts of the budget: for the prior, for the prediction release, for what the stream measures."""

    background: float
    prediction: float
    stream: float


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """
    What to release first.

    Attributes
    ----------
    prior : Marginals
        The background release at its share.
    encode : (r, m) array or None
        Strategy over the predicted queries, of largest column norm one; None where there is none.
    shares : Shares
    kinds : mapping of str to tuple of Query
        Unpredicted queries that stand for all others, by kind.
    sharp, crowded : (k,) arrays
        For each of them, how much more than itself its best row tells; and the share of the stream that
        meets it in its most crowded cell, if all are of its kind.
    crowd : Crowd
    """

    prior: Marginals
    encode: Floats | None
    shares: Shares
    kinds: Mapping[str, tuple[Query, ...]]
    sharp: Floats
    crowded: Floats
    crowd: Crowd

    @property
    def typical(self) -> tuple[Query, ...]:
        """All of them."""
        return tuple(query for queries in self.kinds.values() for query in queries)


def design_product(setting: Setting, *, seed: int = 0) -> ProductDesign:
    """
    Design both releases and choose the shares.

    Parameters
    ----------
    setting : Setting
    seed : int
        Typical queries are drawn with it.

    Raises
    ------
    BudgetExhausted
        The budget is too small to measure even the number of rows.

    Notes
    -----
    The score is the mean, over the overlaps that are possible and all kinds of other queries, of the fourth
    power of the error against the best candidate's, so that none is given up.  Where the overlap is not
    known, no kind may have more than `HURT` times the error that it has without predictions, nor more than
    independent noise.
    """
    domain, rng = setting.domain, np.random.default_rng(seed)
    every = kinds_of_query(domain, setting.predictions, _TYPICAL, rng, setting.importance)
    kinds = {kind: queries[:_TYPICAL] for kind, queries in every.items()}
    crowd = crowd_of([query for queries in kinds.values() for query in queries], rng)
    moments = {axis: _moment(setting, axis) for axis in range(len(domain))}
    weights = _weights(setting, every, moments, 0.0 if setting.overlap is None else 1.0)
    whole = Fraction(setting.ledger_unit.total, 2**MU_BITS)
    prior = _prior(setting, weights, moments, whole)
    encode = _encode(setting)
    bounded = encode is not None and setting.overlap is None
    limits = _limits(setting, every, kinds, crowd) if bounded else None
    outlook = Outlook(setting, prior, encode, kinds, crowd)
    shares = _shares(setting, outlook, limits)
    scaled = _prior(setting, weights, moments, whole * Fraction(shares.background))
    return ProductDesign(scaled, encode, shares, kinds, outlook.sharp, outlook.crowded, crowd)


def posterior(joint: Floats, rows: Floats, power: float) -> Floats:
    """
    Covariance after measuring combinations of the first queries.

    Parameters
    ----------
    joint : (k, k) array
    rows : (r, m) array
        Over the first m of the k queries.
    power : float
        Squared scale of the rows; noise is of unit variance.
    """
    if power <= 0:
        return joint
    along = rows @ joint[: rows.shape[1]]
    inner = along[:, : rows.shape[1]] @ rows.T + np.eye(len(rows)) / power
    left: Floats = joint - along.T @ np.linalg.solve((inner + inner.T) / 2, along)
    return left


def deviations(joint: Floats) -> Floats:
    """Standard deviations, where rounding may have left a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(joint.diagonal(), 0)))


def measured_deviation(deviation: Floats, power: Floats) -> Floats:
    """Deviations after each query was measured with this squared scale."""
    return np.asarray(deviation / np.sqrt(1 + power * deviation**2))


def sharpness(prior: ProductBelief, query: Query, crowd: Crowd, power: float) -> float:
    """
    How much more than the query itself the best row for it tells, where the query may use so much.

    Parameters
    ----------
    prior : ProductBelief
    query : Query
    crowd : Crowd
    power : float
        Squared scale that the query's own allowance buys.
    """
    rows = [query, *candidates(query, crowd)]
    if len(rows) == 1 or not prior.covers(query):
        return 1.0
    joint = prior.covariance(rows)
    weight = max(float(crowd.touched(query).mean()), 1e-9)
    before, best, found = float(joint[0, 0]), 0.0, 1.0
    for place, row in enumerate(rows):
        noise = row.sensitivity**2 / power
        costs = max(1.0, float(crowd.touched(row).mean()) / weight)
        signal = float(joint[0, place]) ** 2
        if signal / (float(joint[place, place]) + noise * costs) > best:
            best = signal / (float(joint[place, place]) + noise * costs)
            after = max(before - best, 1e-9 * before)
            found = (before / after - 1) / (power * before)
    return max(found, 1e-3)


def finite(joint: Floats) -> Floats:
    """A joint covariance in which nothing known has a large variance of its own."""
    known = np.isfinite(joint.diagonal())
    most = float(joint.diagonal()[known].max(initial=1.0))
    result = np.where(np.isnan(joint), 0.0, joint)
    result[~known] = result[:, ~known] = 0.0
    result[~known, ~known] = 1e6 * most
    return np.asarray(result)


class Outlook:
    """
    Errors that shares lead to, for the predicted queries and for each kind of others.

    Parameters
    ----------
    setting : Setting
    prior : Marginals
        The background release, if it had the whole budget.
    encode : (r, m) array or None
    kinds : mapping of str to tuple of Query
    crowd : Crowd
    """

    def __init__(
        self,
        setting: Setting,
        prior: Marginals,
        encode: Floats | None,
        kinds: Mapping[str, Sequence[Query]],
        crowd: Crowd,
    ) -> None:
        self.setting, self.m = setting, len(setting.predictions)
        typical = [query for queries in kinds.values() for query in queries]
        belief = ProductBelief(prior)
        joint = finite(belief.covariance([*setting.predictions, *typical]))
        sizes = [len(queries) for queries in kinds.values()]
        self.starts, self.sizes = np.cumsum([0, *sizes[:-1]]), np.array(sizes)
        self.power = setting.ledger_unit.total / 2.0**MU_BITS / setting.unit.max_rows**2
        self.crowded = np.repeat([gathered(crowd, queries) for queries in kinds.values()], sizes)
        fair = self.power / (1 + self.crowded * setting.length)
        self.sharp = np.array(
            [sharpness(belief, query, crowd, power) for query, power in zip(typical, fair, strict=True)]
        )
        self.prior = joint.diagonal()
        self.predicted = encode is not None
        if encode is not None:
            with blas_threads(len(joint)):
                along = encode @ joint[: self.m]
                self.values, turn = np.linalg.eigh(along[:, : self.m] @ encode.T)
                self.seen = (turn.T @ along) ** 2

    def deviations(self, shares: Shares, moved: float = 0.0) -> Floats:
        """(m + k,) before the stream; `moved` is the share that batches bring to the predicted ones."""
        power = self.power * (shares.prediction + moved)
        left = self.prior
        if self.predicted and power > 0:
            left = left - (1 / (self.values + shares.background / power)) @ self.seen
        return np.asarray(np.sqrt(np.maximum(left, 0) / shares.background))

    def others(self, shares: Shares, count: float) -> Floats:
        """Error of each kind where so many queries of it are measured."""
        each = self.power * shares.stream / (1 + self.crowded * count)
        errors = measured_deviation(self.deviations(shares)[self.m :], self.sharp * each)
        return np.asarray(np.add.reduceat(errors, self.starts) / self.sizes)


def _limits(
    setting: Setting,
    every: Mapping[str, Sequence[Query]],
    kinds: Mapping[str, Sequence[Query]],
    crowd: Crowd,
) -> Floats:
    """Error that each kind may have: little more than without predictions, and than independent noise."""
    alone = replace(setting, predictions=(), expected=(), overlap=None)
    moments = {axis: _moment(alone, axis) for axis in range(len(setting.domain))}
    unlike, others = ({k: queries for k, queries in found.items() if k != ALIKE} for found in (every, kinds))
    whole = Fraction(setting.ledger_unit.total, 2**MU_BITS)
    prior = _prior(alone, _weights(alone, unlike, moments, 1.0), moments, whole)
    shares = _shares(alone, Outlook(alone, prior, None, others, crowd), None)
    before = Outlook(alone, prior, None, kinds, crowd)
    errors = before.others(shares, setting.length)
    independent = math.sqrt(setting.length / before.power)
    return np.asarray(np.maximum(np.minimum(HURT * errors, independent), errors))


def _shares(setting: Setting, outlook: Outlook, limits: Floats | None) -> Shares:
    known = setting.overlap if setting.predictions else 0.0
    overlaps = _UNKNOWN if known is None else (known,)
    table, own, worst, candidates = [], [], [], _grid(outlook.predicted, known)
    for shares in candidates:
        row: list[Floats] = []
        free = outlook.deviations(shares)[: outlook.m]
        for overlap in overlaps:
            moved = _MOVED * overlap**2 * shares.stream if known is None else 0.0
            after = outlook.deviations(shares, moved)[: outlook.m] if moved else free
            others = outlook.others(shares, (1 - overlap) * setting.length)
            row.append(overlap * float(setting.importance @ after) + (1 - overlap) * others)
        table.append(np.concatenate(row))
        own.append(float(setting.importance @ free))
        worst.append(
            0.0 if limits is None else float((outlook.others(shares, setting.length) / limits).max())
        )
    errors, hurt, predicted = np.array(table), np.array(worst), np.array(own)
    scores = ((errors / errors.min(axis=0)) ** 4).mean(axis=1)
    if limits is not None:
        allowed = hurt <= max(1.0, float(hurt.min()) * _CLOSE)
        allowed &= predicted <= _WORSE * predicted[allowed].min()
        scores = np.where(allowed, scores, np.inf)
    return candidates[int(np.argmin(scores))]


def _grid(predicted: bool, overlap: float | None) -> list[Shares]:
    """Shares to compare."""
    found = []
    streams = (*_STREAM, _LEAST) if overlap == 1 else _STREAM
    for stream in streams:
        if not predicted or overlap == 0:
            found.append(Shares(1 - stream, 0.0, stream))
        if predicted:
            found += [Shares(b, 1 - b - stream, stream) for b in _BACKGROUND if b + stream < 0.995]
    return found


def _encode(setting: Setting) -> Floats | None:
    """The optimal strategy for the predicted queries; None where they tell too many cells apart."""
    if not setting.predictions:
        return None
    try:
        columns = Workload(setting.predictions).columns.values.astype(float)
        return optimize(columns, weights=setting.importance, gap=_GAP).encode
    except UnsupportedQuery:
        return None


def _weights(
    setting: Setting, kinds: Mapping[str, Sequence[Query]], moments: dict[int, Floats], own: float
) -> dict[Axes, float]:
    """Expected weight of each set of attributes that queries use, small sets first, within the limits."""
    queries = [query for each in kinds.values() for query in each]
    counts = np.concatenate(
        [np.full(len(each), (own if kind == ALIKE else 1.0) / len(each)) for kind, each in kinds.items()]
    )
    found = subspace_weights(
        [*queries, *setting.predictions], moments, np.concatenate([counts, own * setting.importance])
    )
    widest = max([WIDEST, *(len(query.axes) for query in setting.predictions)])
    axes = tuple(axis for axis, size in enumerate(setting.domain.shape) if size > 1)
    chosen, rows, least = {}, 0, 1e-12 * max(found.values())
    for each in (s for s in subsets(axes) if len(s) <= widest):
        levels = [setting.domain.shape[axis] for axis in each]
        draws = math.prod(size - 1 for size in levels)
        if math.prod(levels) <= MAX_CLASSES and rows + draws <= _ROWS:
            chosen[each], rows = max(found.get(each, 0.0), least), rows + draws
    return chosen


def _prior(
    setting: Setting, weights: dict[Axes, float], moments: dict[int, Floats], mu_squared: Fraction
) -> Marginals:
    """The background release; of fewer attributes at a time where the budget is tiny."""
    while True:
        try:
            return design_marginals(setting.domain, weights, moments, mu_squared, setting.unit.max_rows)
        except BudgetExhausted:
            widest = max(map(len, weights))
            if widest == 0:
                raise
            weights = {axes: weight for axes, weight in weights.items() if len(axes) < widest}


def _moment(setting: Setting, axis: int) -> Floats:
    """Second moment of what is asked of one attribute: half ranges or points, half what is predicted."""
    size = setting.domain.shape[axis]
    family = range_moment(size) if is_ordered(setting.domain, axis) else point_moment(size)
    family = family * (size / float(np.trace(family)))
    named = [q.labels[q.axes.index(axis)] for q in setting.predictions if axis in q.axes]
    functions = [(labels[:, np.newaxis] == np.arange(labels.max() + 1)).astype(float) for labels in named]
    if not functions or size < 2:
        return family
    centred = np.concatenate(functions, axis=1)
    centred = centred - centred.mean(axis=0)
    own = centred @ centred.T
    trace = float(np.trace(own))
    return family if trace == 0 else (family + own * (size / trace)) / 2
