"""Corrects forecasts by what really came: the shares, and the chance to come at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from laprasdp.arrays import Floats
from laprasdp.predict.log import Log
from laprasdp.predict.model import TINY, Spread

CLUMPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, math.inf)
CONSIDERED = 500  # statements of a window that are looked at, the most expected ones
BINS = 25
TRUST = 10.0  # statements for which a bin leans on what was foretold
STEEP = 0.02  # so that no two statements become equal


class Calibration:
    """
    What became of what was foretold.

    Parameters
    ----------
    windows : sequence of (Log, Spread)
        The lines of a window, and the shares that were foretold for it.

    Attributes
    ----------
    clumping : float
        A statement's count is negative binomial with its expected count as mean and this shape, the likeliest
        one of `CLUMPS`; infinite is Poisson.

    Notes
    -----
    Both the shares and what the law says of them are corrected by isotonic regression of what came on what
    was foretold, in bins of equal size (Zadrozny, Elkan 2002).
    """

    def __init__(self, windows: Sequence[tuple[Log, Spread]]) -> None:
        self.clumping = math.inf
        self._share, self._chance = _Curve(), _Curve()
        found = [_marks(after, spread) for after, spread in windows]
        if not found:
            return
        told, came, lines = map(np.concatenate, zip(*found, strict=True))
        self._share = _Curve(told, came / lines)
        counts, asked = self._share.of(told) * lines, (came > 0).astype(float)
        self.clumping = min(CLUMPS, key=lambda shape: _loss(asked_at_all(counts, shape), asked))
        self._chance = _Curve(asked_at_all(counts, self.clumping), asked)

    def corrected(self, spread: Spread) -> Spread:
        """Shares that come true; they do not sum to more than those foretold."""
        new = self._share.of(np.array(list(spread.new.values())))
        made = Spread(self._share.of(spread.known), dict(zip(spread.new, new.tolist(), strict=True)))
        return made.times(min(1.0, spread.total / max(made.total, TINY)))

    def of(self, counts: Floats) -> Floats:
        """Probability that a statement of each expected count is asked at least once."""
        return np.minimum(self._chance.of(asked_at_all(counts, self.clumping)), 1.0)


class _Curve:
    """A rising curve through (0, 0): the mean of what came, given what was foretold."""

    def __init__(self, told: Floats | None = None, came: Floats | None = None) -> None:
        self._told, self._true = np.array([0.0, 1.0]), np.array([0.0, 1.0])
        if told is None or came is None or not len(told):
            return
        bins = [part for part in np.array_split(np.argsort(told, kind="stable"), BINS) if len(part)]
        size = np.array([len(part) for part in bins], dtype=float)
        mean = np.array([told[part].mean() for part in bins])
        found = np.array([came[part].mean() for part in bins])
        rising = isotonic_regression((size * found + TRUST * mean) / (size + TRUST), weights=size).x
        rising = (1 - STEEP) * rising + STEEP * mean
        end = max(1.0, 2 * mean[-1])
        self._told = np.concatenate([[0.0], mean, [end]])
        self._true = np.concatenate([[0.0], rising, [rising[-1] + (end - mean[-1])]])

    def of(self, told: Floats) -> Floats:
        """Where the curve is; straight beyond the last bin."""
        return np.asarray(np.interp(told, self._told, self._true))


def asked_at_all(counts: Floats, clumping: float = math.inf) -> Floats:
    """The same by the law alone, with this shape."""
    if math.isinf(clumping):
        return np.asarray(-np.expm1(-counts))
    return np.asarray(-np.expm1(-clumping * np.log1p(counts / clumping)))


def _marks(after: Log, spread: Spread) -> tuple[Floats, Floats, Floats]:
    """Of the statements most expected: shares foretold, how often they came, lines of the window."""
    ranked = list(spread.ranked(after, CONSIDERED))
    ids, lines = np.unique(after.ids, return_counts=True)
    came = {after.statements[n]: k for n, k in zip(ids.tolist(), lines.tolist(), strict=True)}
    counts = np.array([came.get(key, 0) for key, _ in ranked], dtype=float)
    return np.array([share for _, share in ranked]), counts, np.full(len(ranked), float(len(after)))


def _loss(chances: Floats, asked: npt.NDArray[np.float64]) -> float:
    chances = np.clip(chances, 1e-9, 1 - 1e-9)
    return float(-(asked * np.log(chances) + (1 - asked) * np.log1p(-chances)).sum())
