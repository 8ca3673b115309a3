"""Backgrounds of a table of many cells: what is released before the stream for whatever may be asked.

One strategy for each attribute, multiplied out on sets of few attributes or of more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted
from laprasdp.limits import MAX_CLASSES
from laprasdp.policy.kinds import ALIKE, WIDEST, families_of, kind_shares
from laprasdp.policy.query_shapes import is_ordered
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.queries.runs import runs_of
from laprasdp.strategy.background import FAMILIES, point_moment, range_moment
from laprasdp.strategy.factor import Moment, shape_of
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.subspaces import Axes, subsets, subspace_weights, tensor_of
from laprasdp.strategy.tree import SHORT, cut_moments, depth_moments, point_moments

NARROW = 4
"""Attributes up to which the background has all sets that queries may use."""

_MANY = 20_000  # noise values of a background that is not worth trying beside one of fewer attributes
_ROWS = 1_000_000  # noise values that a background may have in all
_SHARED = 100_000  # the same where predicted queries rest on it alone, and of each set of long attributes


@dataclass(frozen=True, eq=False)
class Background:
    """
    A background release of some sets of attributes.

    Attributes
    ----------
    setting : Setting
    weights : mapping of axes to float
        Expected weight of each set.
    moments : mapping of axis to Moment
        Of what is asked of each attribute.
    """

    setting: Setting
    weights: Mapping[Axes, float]
    moments: Mapping[int, Moment]

    def at(self, share: float) -> Marginals:
        """The release with this share of the budget."""
        whole = Fraction(self.setting.ledger_unit.total, 2**MU_BITS)
        return _prior(self.setting, self.weights, self.moments, whole * Fraction(share))


def backgrounds(
    setting: Setting, kinds: Mapping[str, Sequence[Query]], *, shared: bool = False
) -> list[Background]:
    """
    Backgrounds to compare, of few attributes at a time first.

    Parameters
    ----------
    setting : Setting
    kinds : mapping of str to sequence of Query
        Unpredicted queries by kind.  Those like the predicted ones count where the overlap is declared.
    shared : bool
        Whether the predicted queries rest on the background alone.
    """
    moments = {axis: _moment(setting, axis) for axis in range(len(setting.domain))}
    weights = _weights(setting, kinds, moments, 0.0 if setting.overlap is None else 1.0, shared=shared)
    widest = max(map(len, weights))
    found: list[Background] = []
    for wide in range(widest + 1) if len(setting.domain) > NARROW and not shared else (widest,):
        narrow = {axes: weight for axes, weight in weights.items() if len(axes) <= wide}
        if found and _draws(setting, narrow) > _MANY:
            break
        found.append(Background(setting, narrow, moments))
    return found


def _weights(
    setting: Setting,
    kinds: Mapping[str, Sequence[Query]],
    moments: Mapping[int, Moment],
    own: float,
    *,
    shared: bool,
) -> dict[Axes, float]:
    """Expected weight of each set of attributes that queries use, small sets first, within the limits."""
    queries = [query for each in kinds.values() for query in each]
    if setting.families:
        counts, own = query_shares(setting, kinds) * (1 - (setting.overlap or 0.0)), setting.overlap or 0.0
    else:
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
    asked = [set(query.axes) for query in setting.predictions]
    for each in (s for s in subsets(axes) if len(s) <= widest):
        if setting.families and each not in found and not any(map(set(each).issubset, asked)):
            continue  # what is not declared is measured when it comes
        levels = [setting.domain.shape[axis] for axis in each if setting.domain.shape[axis] <= SHORT]
        draws = _draws(setting, [each])
        if shared and math.prod(setting.domain.shape[axis] - 1 for axis in each) > _SHARED:
            continue  # its groups are rather measured when they are asked for
        if math.prod(levels) <= MAX_CLASSES and rows + draws <= (_SHARED if shared else _ROWS):
            chosen[each], rows = max(found.get(each, 0.0), least), rows + draws
    return chosen


def query_shares(setting: Setting, kinds: Mapping[str, Sequence[Query]]) -> Floats:
    """Share of the stream that each query of all kinds stands for, where shapes are declared."""
    shares = kind_shares(setting.domain, setting.families)
    return np.concatenate(
        [np.full(len(each), shares.get(kind, 0.0) / len(each)) for kind, each in kinds.items()]
    )


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
    family = _family(setting, axis)
    named = [q.labels[q.axes.index(axis)] for q in setting.predictions if axis in q.axes]
    functions = [(labels[:, np.newaxis] == np.arange(labels.max() + 1)).astype(float) for labels in named]
    if not functions or size < 2:
        return family
    centred = np.concatenate(functions, axis=1)
    centred = centred - centred.mean(axis=0)
    own = centred @ centred.T
    trace = float(np.trace(own))
    return family if trace == 0 else (family + own * (size / trace)) / 2


def _family(setting: Setting, axis: int) -> Floats:
    """What nobody predicted of one attribute: of declared shapes, else ranges or points."""
    size = setting.domain.shape[axis]
    asked = families_of(setting.domain, setting.families, axis)
    if not asked:
        family = range_moment(size) if is_ordered(setting.domain, axis) else point_moment(size)
        return family * (size / float(np.trace(family)))
    found = np.zeros((size, size))
    for name, share in asked.items():
        centred = FAMILIES[name](size)
        centred = centred - centred.mean(axis=0)
        centred = centred - centred.mean(axis=1, keepdims=True)
        found += centred * (share / max(float(np.trace(centred)), 1e-300))
    return np.asarray(found * (size / max(float(np.trace(found)), 1e-300)))


def _depth_family(setting: Setting, axis: int) -> list[Floats]:
    """The same of a long attribute, by depth."""
    shape = shape_of(setting.domain.shape[axis])
    asked = families_of(setting.domain, setting.families, axis) or {
        "range" if is_ordered(setting.domain, axis) else "point": 1.0
    }
    found = [np.zeros((b, b)) for b in shape.branches]
    for name, share in asked.items():
        moments = (cut_moments if name == "range" else point_moments)(shape)
        whole = sum(float(np.trace(moment)) for moment in moments) if len(asked) > 1 else 1.0
        found = [one + moment * (share / whole) for one, moment in zip(found, moments, strict=True)]
    return found


def _depths(setting: Setting, axis: int) -> list[Floats]:
    """The same of a long attribute, by depth."""
    shape = shape_of(setting.domain.shape[axis])
    family = _depth_family(setting, axis)
    named = [
        (q.steps[place], np.eye(tensor_of(q).shape[place]))
        for q in setting.predictions
        if axis in q.axes
        for place in (q.axes.index(axis),)
    ]
    own = depth_moments(shape, *zip(*named, strict=True)) if named else family
    sums = [sum(float(np.trace(moment)) for moment in each) for each in (family, own)]
    return [one / sums[0] + two / max(sums[1], 1e-300) for one, two in zip(family, own, strict=True)]
