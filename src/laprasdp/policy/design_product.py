r"""The design of PRIMM's releases on a table of many cells: what to measure before the stream, how strongly.

The background prior and the strategy of the predicted queries are designed once; only their shares of the
budget are compared, by the errors that they lead to for predicted queries and for typical others.  No data
is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted
from laprasdp.limits import MANY_PREDICTED, MAX_CLASSES
from laprasdp.policy.crowd import Crowd, crowd_of
from laprasdp.policy.kinds import ALIKE, WIDEST, is_ordered, kinds_of_query
from laprasdp.policy.outlook import Outlook, Shares
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.queries.runs import runs_of
from laprasdp.strategy.background import point_moment, range_moment
from laprasdp.strategy.factor import Moment, shape_of
from laprasdp.strategy.joint import Joint, design_joint, design_line
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.subspaces import Axes, subsets, subspace_weights, tensor_of
from laprasdp.strategy.tree import SHORT, cut_moments, depth_moments, point_moments

_MANY = 20_000  # noise values of a background that is not worth trying beside one of fewer attributes
_NARROW = 4  # attributes up to which the background has all sets that queries may use
_TYPICAL = 12  # typical queries of each kind
_ROWS = 1_000_000  # noise values that the prior may have in all
_GAP = 1e-2
_TRUST = 0.9  # share of predicted queries that their release is designed for, where it is not known
HURT = 1.26  # times the error without predictions, that a kind of unpredicted queries may have with them
_MOST = 0.75  # share of unpredicted queries that counts as most
HURT_AROUND = 1.37  # the same where most are measured around half of the total: played it is 1.29
_BACKGROUND = (0.02, *(share / 20 for share in range(1, 20)))
_STREAM = (0.02, *(share / 20 for share in range(1, 20)))
_LEAST = 0.002  # share of the stream where nothing is expected to be measured
_UNKNOWN = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # overlaps that stand for an unknown one
_WIDER = 1.05  # how much better a background of more attributes has to be
_CLOSE = 1.02  # of the least hurt, where no shares keep the limit
_WORSE = 1.05  # times the least error that predicted queries may have within the limits
_MOVED = 0.5  # part of the stream's share that later batches bring to the predicted queries, if all are


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """
    What to release first.

    Attributes
    ----------
    prior : Marginals
        The background release at its share.
    joint : Joint or None
        Strategy for the predicted queries; None where nothing is predicted, or more than
        `limits.MANY_PREDICTED`: they share what the background measures.
    shares : Shares
    kinds : mapping of str to tuple of Query
        Unpredicted queries that stand for all others, by kind.
    sharp, crowded : (k,) arrays
        For each of them, how much more than itself its best row tells; and the share of the stream that
        meets it in its most crowded cell, if all are of its kind.
    rows : tuple of k Query
        What each adds to a predicted one with nearby bounds, if that is little; else itself.
    apart : (k,) array
        The share of the stream that is thought to meet that.
    centred : (k,) bool array
        Whether it has no prior, and is measured around half of the total.
    crowd : Crowd
    """

    prior: Marginals
    joint: Joint | None
    shares: Shares
    kinds: Mapping[str, tuple[Query, ...]]
    sharp: Floats
    crowded: Floats
    rows: tuple[Query, ...]
    apart: Floats
    centred: npt.NDArray[np.bool_]
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
    known, no kind may have more than `HURT` times the error that it has without predictions, `HURT_AROUND`
    times where most have no prior, nor more than independent noise.
    """
    domain, rng = setting.domain, np.random.default_rng(seed)
    many = len(setting.predictions) > MANY_PREDICTED
    if many:
        setting = _some(setting, rng)
    known = setting.predictions, _TYPICAL, rng, setting.importance
    every, others = kinds_of_query(domain, *known), kinds_of_query(domain, *known)
    power = 1 if len(domain) <= _NARROW else 2
    crowd = crowd_of([queries[:_TYPICAL] for queries in others.values()], rng, power)
    kinds = {kind: queries[:_TYPICAL] for kind, queries in every.items()}
    predicted = setting.predictions
    joint = _joint(setting) if predicted and not many else None
    limits = None
    if joint is not None and setting.overlap is None:
        alone = _alone(setting, every, kinds, crowd)
        before = Outlook(alone.setting, alone.prior, None, kinds, crowd)
        errors = before.others(alone.shares, setting.length)
        independent = math.sqrt(setting.length / before.power)
        hurt = HURT_AROUND if before.centred.mean() > _MOST else HURT
        limits = np.maximum(np.minimum(hurt * errors, independent), errors)
    found = _best(setting, joint, every, kinds, crowd, limits)
    scaled = found.prior_at(found.shares.background)
    outlook = found.outlook
    return ProductDesign(
        scaled,
        joint,
        found.shares,
        kinds,
        outlook.sharp,
        outlook.crowded,
        outlook.rows,
        outlook.apart,
        outlook.centred,
        outlook.crowd,
    )


def _some(setting: Setting, rng: np.random.Generator) -> Setting:
    """So many predicted queries as stand for all: of each set of attributes one, others by importance."""
    first = {query.axes: place for place, query in reversed([*enumerate(setting.predictions)])}
    keys = rng.exponential(size=len(setting.predictions)) / np.maximum(setting.importance, 1e-300)
    keys[list(first.values())[:MANY_PREDICTED]] = 0.0
    kept = [setting.predictions[place] for place in np.sort(np.argsort(keys)[:MANY_PREDICTED]).tolist()]
    return replace(setting, predictions=tuple(kept), expected=())


def _joint(setting: Setting) -> Joint:
    """The strategy for the predicted queries; on one long attribute, also for others between their bounds."""
    overlap = _TRUST if setting.overlap is None else setting.overlap
    others = min(max(1 - overlap, _GAP) / max(overlap, _GAP), 1.0)
    line = design_line(setting.predictions, setting.importance, others, gap=_GAP)
    return line or design_joint(setting.predictions, setting.importance, gap=_GAP)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A background of some sets of attributes, and the shares that are best with it."""

    setting: Setting
    weights: Mapping[Axes, float]
    moments: Mapping[int, Moment]
    prior: Marginals
    outlook: Outlook
    shares: Shares

    def prior_at(self, share: float) -> Marginals:
        whole = Fraction(self.setting.ledger_unit.total, 2**MU_BITS)
        return _prior(self.setting, self.weights, self.moments, whole * Fraction(share))


def _alone(
    setting: Setting,
    every: Mapping[str, Sequence[Query]],
    kinds: Mapping[str, Sequence[Query]],
    crowd: Crowd,
) -> _Candidate:
    """What would be designed if nothing were predicted."""
    unlike, others = ({k: queries for k, queries in found.items() if k != ALIKE} for found in (every, kinds))
    return _best(
        replace(setting, predictions=(), expected=(), overlap=None), None, unlike, others, crowd, None
    )


def _best(
    setting: Setting,
    joint: Joint | None,
    every: Mapping[str, Sequence[Query]],
    kinds: Mapping[str, Sequence[Query]],
    crowd: Crowd,
    limits: Floats | None,
) -> _Candidate:
    """The best background, of sets of few attributes or of more, with its shares."""
    moments = {axis: _moment(setting, axis) for axis in range(len(setting.domain))}
    weights = _weights(setting, every, moments, 0.0 if setting.overlap is None else 1.0)
    whole = Fraction(setting.ledger_unit.total, 2**MU_BITS)
    widest = max(map(len, weights))
    shared = joint is None and bool(setting.predictions)  # which rest on the background alone
    tried = range(widest + 1) if len(setting.domain) > _NARROW and not shared else (widest,)
    outlooks: list[tuple[dict[Axes, float], Marginals, Outlook]] = []
    for wide in tried:
        narrow = {axes: weight for axes, weight in weights.items() if len(axes) <= wide}
        if outlooks and _draws(setting, narrow) > _MANY:
            break
        prior = _prior(setting, narrow, moments, whole)
        outlooks.append((narrow, prior, Outlook(setting, prior, joint, kinds, crowd)))
    place, shares = _shares(setting, [outlook for *_, outlook in outlooks], limits)
    narrow, prior, outlook = outlooks[place]
    return _Candidate(setting, narrow, moments, prior, outlook, shares)


def _shares(setting: Setting, outlooks: Sequence[Outlook], limits: Floats | None) -> tuple[int, Shares]:
    """The best shares, and with which of the backgrounds."""
    known = setting.overlap if setting.predictions else 0.0
    overlaps = _UNKNOWN if known is None else (known,)
    table, own, worst = [], [], []
    grid = _grid(outlooks[0].predicted, known)
    candidates = [(place, shares) for place in range(len(outlooks)) for shares in grid]
    for place, shares in candidates:
        outlook, row = outlooks[place], list[Floats]()
        free = outlook.deviations(shares)[: outlook.m]
        for overlap in overlaps:
            moved = _MOVED * overlap**2 * shares.stream if known is None else 0.0
            after = outlook.deviations(shares, moved)[: outlook.m] if moved else free
            others = outlook.others(shares, (1 - overlap) * setting.length)
            row.append(overlap * float(setting.importance @ after) + (1 - overlap) * others)
        table.append(np.concatenate(row))
        own.append(float(setting.importance @ free))
        if limits is not None:
            worst.append(float((outlook.others(shares, setting.length) / limits).max()))
    errors, hurt, predicted = np.array(table), np.array(worst), np.array(own)
    scores = ((errors / errors.min(axis=0)) ** 4).mean(axis=1)
    scores *= np.array([_WIDER**place for place, _ in candidates])
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


def _weights(
    setting: Setting, kinds: Mapping[str, Sequence[Query]], moments: Mapping[int, Moment], own: float
) -> dict[Axes, float]:
    """Expected weight of each set of attributes that queries use, small sets first, within the limits."""
    queries = [query for each in kinds.values() for query in each]
    counts = np.concatenate(
        [np.full(len(each), (own if kind == ALIKE else 1.0) / len(each)) for kind, each in kinds.items()]
    )
    total = Query.constant(setting.domain, 1)  # what is measured around half of it needs to know it
    coarse = [total if _fine(setting, query) else query for query in queries]
    weights = np.concatenate([counts, own * setting.importance])
    found = subspace_weights([*coarse, *setting.predictions], moments, weights)
    widest = max([WIDEST, *(len(query.axes) for query in setting.predictions)])
    axes = tuple(axis for axis, size in enumerate(setting.domain.shape) if size > 1)
    chosen, rows, least = {}, 0, 1e-12 * max(found.values())
    for each in (s for s in subsets(axes) if len(s) <= widest):
        levels = [setting.domain.shape[axis] for axis in each if setting.domain.shape[axis] <= SHORT]
        draws = _draws(setting, [each])
        if math.prod(levels) <= MAX_CLASSES and rows + draws <= _ROWS:
            chosen[each], rows = max(found.get(each, 0.0), least), rows + draws
    return chosen


def _draws(setting: Setting, sets: Iterable[Axes]) -> int:
    """Noise values that a background of these sets has before the stream."""
    shape = setting.domain.shape
    at_once = (axes for axes in sets if all(shape[axis] <= SHORT for axis in axes))
    return sum(math.prod(shape[axis] - 1 for axis in axes) for axes in at_once)


def _fine(setting: Setting, query: Query) -> bool:
    """Whether a query cuts a long attribute into so many pieces that no background is made for it."""
    sizes = setting.domain.shape
    return any(
        sizes[axis] > SHORT and len(runs_of(labels).starts) > SHORT
        for axis, labels in zip(query.axes, query.steps, strict=True)
    )


def _prior(
    setting: Setting, weights: Mapping[Axes, float], moments: Mapping[int, Moment], mu_squared: Fraction
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


def _moment(setting: Setting, axis: int) -> Moment:
    """Second moment of what is asked of one attribute: half ranges or points, half what is predicted."""
    size = setting.domain.shape[axis]
    if size > SHORT:
        return _depths(setting, axis)
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


def _depths(setting: Setting, axis: int) -> list[Floats]:
    """The same of a long attribute, by depth."""
    shape = shape_of(setting.domain.shape[axis])
    family = (cut_moments if is_ordered(setting.domain, axis) else point_moments)(shape)
    named = [
        (q.steps[place], np.eye(tensor_of(q).shape[place]))
        for q in setting.predictions
        if axis in q.axes
        for place in (q.axes.index(axis),)
    ]
    own = depth_moments(shape, *zip(*named, strict=True)) if named else family
    sums = [sum(float(np.trace(moment)) for moment in each) for each in (family, own)]
    return [one / sums[0] + two / max(sums[1], 1e-300) for one, two in zip(family, own, strict=True)]
