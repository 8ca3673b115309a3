"""The design of PRIMM's first release on a small table: what to measure before the stream, and how strongly.

Candidates are compared by the errors that they lead to, for predicted queries and for typical others drawn
from public families, at the overlap that is expected or at several where none is.  No data is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.belief.measure import best_row
from laprasdp.policy.families import MIXTURE, Family, Predicted, drawn, families
from laprasdp.policy.kinds import kind_shares
from laprasdp.policy.query_shapes import QueryShape
from laprasdp.queries.domain import Domain
from laprasdp.strategy.background import cell_moment
from laprasdp.strategy.optimize import optimize_gram
from laprasdp.strategy.p_identity import ROWS, PIdentity, optimize_p_identity, start

_FIRST = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9)  # shares of the budget for the first release
_QUICK = 200  # up to so many cells a design takes well under a second, and tries more
_MOSTLY = 0.6  # overlap from which on a design trusts the predictions more than later batches need it to
_ALL = 1 - 1e-3  # as good as everything, where nothing else is expected
_HURT = 1.08  # what predictions may cost any family, where nobody knows whether they come true
UNLIKELY = 1.2
"""Times the error of independent noise, that a family which is not declared may have, if any does not."""

_SHARES_OF_SUMS = (1.0, 0.5, 0.25, 0.1)
_CAUTIOUS = {False: (0.03, 0.75), True: (0.8, 0.25)}  # trust and share for few cells, and for many


@dataclass(frozen=True)
class Design:
    """
    What to release first.

    Attributes
    ----------
    strategy : (r, n) array
        Unit largest column norm; spans all cells.
    first : float
        Share of the budget for it; the stream has the rest.
    batch : (r, n) array
        The best strategy for the predicted queries alone, for later batches.
    background : (n, n) array
        Precision, of unit diagonal, that measuring typical other queries one by one adds up to.
    pure : bool
        Rather this strategy, of unit largest L1 column norm, with Laplace noise and the whole ε: nothing else
        is ever released.
    """

    strategy: Floats
    first: float
    batch: Floats
    background: Floats
    pure: bool = False


@dataclass(frozen=True)
class PureNoise:
    """
    Deviations of Laplace noise that has the whole ε, against one row of Gaussian noise with the whole μ.

    Attributes
    ----------
    counted : float
        Of a cell counted by itself, on the whole numbers.
    line : float
        Of a row of a strategy of L1 norm one.
    """

    counted: float
    line: float


def design(
    domain: Domain,
    predicted: Predicted,
    horizon: int,
    overlap: float | None,
    *,
    laplace: PureNoise | None = None,
    pure: bool = False,
    seed: int = 0,
    shapes: Sequence[QueryShape] = (),
) -> Design:
    """
    Choose strategy and share by comparing candidates.

    Parameters
    ----------
    domain : Domain
        Of n cells, small enough to write out.
    predicted : Predicted
        The prediction set; it may be empty.
    horizon : int
        S.
    overlap : float or None
        Share of the stream that is expected to be predicted.
    laplace : PureNoise, optional
        What the whole ε buys, where a pure release is a candidate.
    pure : bool
        Only those are.
    seed : int
        Typical queries are drawn with it.
    shapes : sequence of QueryShape
        What unpredicted queries are expected to be, where that is declared.

    Notes
    -----
    Where the overlap is not known, or not large, later batches bring to the predicted queries what the
    stream does not need, so the first release keeps to a share and a trust that do well at every overlap:
    more for everybody where cells are few against the stream, less where they are many.  Otherwise the
    candidate of least expected absolute error is taken; families of unpredicted queries weigh the same.

    A pure release is taken where its worst ratio is less.  A ratio is the error of what is predicted, or of a
    family, to that of the best strategy of either kind that knows what it is for; at an overlap between it is
    a mean of both.  Where the overlap is not known, predictions never cost a family more than a tenth.

    Where shapes are declared, designs are chosen by them; the families of every table share a tenth of what
    a release is optimised for, and no chosen release leaves one of them an error of more than `UNLIKELY`
    times that of independent noise, if any does not.
    """
    gaussian = _gaussian(domain, predicted, horizon, overlap, seed, shapes)
    if laplace is None:
        return gaussian
    return _of_either_kind(gaussian, domain, predicted, horizon, overlap, laplace, pure, shapes)


@dataclass(frozen=True)
class _Candidate:
    design: Design
    errors: Floats  # (k,) of each kind
    worst: float  # ratio over all kinds
    others: float  # and over those that nobody predicted


def _of_either_kind(
    gaussian: Design,
    domain: Domain,
    predicted: Predicted,
    horizon: int,
    overlap: float | None,
    laplace: PureNoise,
    only: bool,
    shapes: Sequence[QueryShape],
) -> Design:
    """The design of the least worst ratio."""
    kinds, others = _kinds(domain, predicted, overlap, shapes)
    own = int(bool(predicted) and overlap != 0)  # the predicted queries come first
    known = [
        min(
            min(horizon, optimize_gram(moment, gap=5e-2).value) ** 0.5,  # each by itself, or all at once
            laplace.counted * float(np.trace(moment)) ** 0.5,
            laplace.line * optimize_p_identity(moment).value(moment) ** 0.5,
        )
        for moment in kinds
    ]

    judged = np.array([True] * own + [family.declared for family in others])

    def candidate(design: Design, errors: Sequence[float]) -> _Candidate:
        ratios = np.where(judged, _ratios(np.array(errors), np.array(known), overlap if own else None), 0.0)
        return _Candidate(design, np.array(errors), float(ratios.max()), float(ratios[own:].max(initial=1.0)))

    def pure(strategy: Floats, covariance: Floats, unit: float) -> _Candidate:
        errors = [unit * float(np.sum(moment * covariance)) ** 0.5 for moment in kinds]
        return candidate(Design(strategy, 1.0, gaussian.batch, gaussian.background, pure=True), errors)

    def sums(found: PIdentity) -> _Candidate:
        return pure(found.strategy, found.covariance, laplace.line)

    first = candidate(gaussian, _after(gaussian, kinds, horizon, bool(own)))
    counts = pure(np.eye(domain.size), np.eye(domain.size), laplace.counted)
    best = _balanced(predicted, kinds, known, overlap, others)
    found = [
        *([] if only else [first]),
        counts,
        *(sums(PIdentity(best.sums * share)) for share in _SHARES_OF_SUMS),
    ]
    if own and overlap is None:
        nobody = Predicted(predicted.vectors[:0], predicted.importance[:0])
        rest = sums(_balanced(nobody, kinds[1:], known[1:], None, others))
        alone = min((rest, counts, *found[:1]), key=lambda one: one.others)
        most = _HURT * alone.errors[1:]
        found = [one for one in found if (one.errors[1:] <= most).all()] or [alone]
    unlikely = [float((one.errors[~judged] / horizon**0.5).max(initial=0.0)) for one in found]
    limit = max(UNLIKELY, min(unlikely))
    found = [one for one, most_of_it in zip(found, unlikely, strict=True) if most_of_it <= limit]
    return min(found, key=lambda one: one.worst).design


def _kinds(
    domain: Domain, predicted: Predicted, overlap: float | None, shapes: Sequence[QueryShape]
) -> tuple[list[Floats], list[Family]]:
    """Second moments of what may be asked: of the predicted queries first, then of each family."""
    others = families(domain, shapes) if not predicted or overlap != 1 else []
    found = [family.moment for family in others]
    if predicted and overlap != 0:
        found.insert(0, (predicted.vectors.T * predicted.importance) @ predicted.vectors)
    return found, others


def _after(gaussian: Design, kinds: Sequence[Floats], horizon: int, predicted: bool) -> list[float]:
    """Errors that a stream of each kind alone has under a Gaussian design, half way through."""
    precision, left = gaussian.strategy.T @ gaussian.strategy * gaussian.first, 1 - gaussian.first
    errors = []
    for place, moment in enumerate(kinds):
        if predicted and place == 0:
            whole = precision + gaussian.batch.T @ gaussian.batch * left
            errors.append(float(np.sum(moment * np.linalg.inv(whole))) ** 0.5)
            continue
        before = float(np.sum(moment * np.linalg.inv(precision + gaussian.background * (left / 2))))
        errors.append((before / (1 + before * left / horizon)) ** 0.5)
    return errors


def _balanced(
    predicted: Predicted,
    kinds: Sequence[Floats],
    known: Sequence[float],
    overlap: float | None,
    others: Sequence[Family],
) -> PIdentity:
    """
    A p-identity strategy: half for what is predicted, unless the overlap is known, the rest for all families.

    Each part is divided by the deviation that it has, so that absolute errors count, and the more what is far
    from the best for it is.
    """
    own = int(bool(predicted) and overlap != 0)  # the predicted queries
    trust = 0.0 if not own else 0.5 if overlap is None else min(overlap, 1 - 1e-4)
    cells = len(kinds[0])
    parts = np.array([trust] * own + [(1 - trust) * family.share for family in others])
    judged = np.array([True] * own + [family.declared for family in others])
    found, inverse = start(cells, min(ROWS, max(1, cells // 4))), np.eye(cells)
    for steps in (60, 60, 60, 200):
        deviations = np.array([math.sqrt(float(np.sum(moment * inverse))) for moment in kinds])
        ratios = np.where(judged, _ratios(deviations, np.array(known), overlap if own else None), 1.0)
        parts = parts * ratios**2 / (parts @ ratios**2)
        moments = list(kinds)
        if own:
            weights = predicted.importance / predicted.deviations(inverse)
            moments[0] = (predicted.vectors.T * weights) @ predicted.vectors * deviations[0]
        gram = sum(part / one * each for part, one, each in zip(parts, deviations, moments, strict=True))
        found = optimize_p_identity(np.asarray(gram), first=found, steps=steps)
        inverse = found.covariance
    return found


def _ratios(errors: Floats, known: Floats, overlap: float | None) -> Floats:
    """To the best that knows each kind; of a stream of it and what is predicted where that share is known."""
    if overlap is None or len(errors) == 1:
        return np.asarray(errors / known)
    mixed, best = (overlap * each[0] + (1 - overlap) * each[1:] for each in (errors, known))
    ratios = mixed / best
    return np.array([ratios.mean(), *ratios])


def _gaussian(
    domain: Domain,
    predicted: Predicted,
    horizon: int,
    overlap: float | None,
    seed: int,
    shapes: Sequence[QueryShape],
) -> Design:
    """The best design of Gaussian noise."""
    rng = np.random.default_rng(seed)
    count = 2 if domain.size <= _QUICK else 1
    typical = drawn(domain, shapes, count, rng)
    shares = np.array([*kind_shares(domain, shapes).values()]) if shapes else None
    errors, designs = [], []
    even = _histogram(domain.size, total=True)
    even = even.T @ even
    batch = optimal(domain, predicted, 1.0) if predicted else np.eye(domain.size)
    if predicted and (overlap is None or 0 < overlap < _MOSTLY):
        trust, first = _CAUTIOUS[domain.size > 4 * horizon]
        return Design(optimal(domain, predicted, trust, shapes), first, batch, even)
    expected = overlap if overlap is not None and predicted else 0.0
    for strategy in _strategies(domain, predicted, expected, batch, shapes):
        precision = strategy.T @ strategy
        free = math.sqrt(2 / math.pi) * predicted.deviation(np.asarray(np.linalg.inv(precision)))
        for first in (*_FIRST, _ALL) if expected == 1 else _FIRST:
            halfway = precision * first + even * ((1 - first) / 2)
            inverse = np.asarray(np.linalg.inv(halfway))
            share = (1 - first) / max(1.0, (1 - expected) * horizon)
            others = [_other_error(halfway, inverse, queries, share) for queries in typical]
            mean = math.fsum(others) / len(others) if shares is None else float(np.array(others) @ shares)
            errors.append(expected * free / math.sqrt(first) + (1 - expected) * mean)
            designs.append(Design(strategy, first, batch, even))
    return designs[int(np.argmin(errors))]


def _strategies(
    domain: Domain, predicted: Predicted, overlap: float, batch: Floats, shapes: Sequence[QueryShape]
) -> list[Floats]:
    """Optimal strategies for some trusts in the predictions, and the histogram with and without the total."""
    found = [_histogram(domain.size, total=False), _histogram(domain.size, total=True)]
    if not predicted:
        return [*found, optimal(domain, predicted, 0.0, shapes)]
    if overlap == 1:
        return [*found, batch]
    trusts = (overlap, (1 + overlap) / 2) if domain.size <= _QUICK else ((1 + overlap) / 2,)
    return [*found, *(optimal(domain, predicted, trust, shapes) for trust in trusts)]


def optimal(domain: Domain, predicted: Predicted, trust: float, shapes: Sequence[QueryShape] = ()) -> Floats:
    """
    The strategy of least absolute error where this share of the stream is predicted.

    Absolute errors are squared ones divided by their deviation, which is found by repetition.
    """
    inverse = np.eye(domain.size)
    for _ in range(3 if domain.size <= _QUICK else 2):
        gram = _moment(domain, predicted, trust, inverse, shapes)
        strategy = optimize_gram(gram, gap=1e-2).strategy
        inverse = np.asarray(np.linalg.inv(strategy.T @ strategy))
    return strategy


def _moment(
    domain: Domain, predicted: Predicted, trust: float, inverse: Floats, shapes: Sequence[QueryShape]
) -> Floats:
    """Second moment of a stream, each part divided by the deviation that it has under this covariance."""
    asked = (
        families(domain, shapes)
        if shapes
        else [Family(cell_moment(domain, name), 1 / len(MIXTURE)) for name in MIXTURE]
    )
    others = sum(one.moment * one.share / math.sqrt(float(np.sum(one.moment * inverse))) for one in asked)
    gram = np.asarray(others) * max(1 - trust, 1e-4)
    if predicted:
        weights = predicted.importance / predicted.deviations(inverse)
        gram = gram + (predicted.vectors.T * weights) @ predicted.vectors * trust
    return np.asarray(gram)


def _histogram(cells: int, *, total: bool) -> Floats:
    """One row a cell; with the total in the proportion that is optimal for random 0/1 queries."""
    if not total:
        return np.eye(cells)
    ratio = (math.sqrt(cells + 1) - 1) / cells
    point, whole = 1 / math.sqrt(1 + ratio), math.sqrt(ratio / (1 + ratio))
    return np.vstack([np.eye(cells) * point, np.full((1, cells), whole)])


def _other_error(precision: Floats, inverse: Floats, typical: Floats, share: float) -> float:
    """Error of a typical query after the best row that this share of the budget buys."""
    errors = []
    for query in typical:
        row = best_row(
            precision, inverse, query, np.full(len(query), math.sqrt(share)), tolerance=1e-2, sweeps=4
        )
        seen = inverse @ row
        before = float(query @ inverse @ query)
        errors.append(math.sqrt(before - float(query @ seen) ** 2 / (1 + float(row @ seen))))
    return math.sqrt(2 / math.pi) * math.fsum(errors) / len(errors)
