"""From an expected count to the probability that a statement comes at all, as later lines taught it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from laprasdp.predict.log import Floats, Log
from laprasdp.predict.model import Spread

CLUMPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, math.inf)
CONSIDERED = 500  # statements of a window that are looked at, the most expected ones
BINS = 25
TRUST = 10.0  # statements of a bin for which it leans on the law


class Chance:
    """
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
    What that law says is corrected by isotonic regression of what was asked on what was foretold, in bins of
    equal size (Zadrozny, Elkan 2002).
    """

    def __init__(self, windows: Sequence[tuple[Log, Spread]]) -> None:
        self.clumping = math.inf
        self._told, self._true = np.array([0.0, 1.0]), np.array([0.0, 1.0])
        counts, asked = _marks(windows)
        if not len(counts):
            return
        self.clumping = min(CLUMPS, key=lambda shape: _loss(asked_at_all(counts, shape), asked))
        told = asked_at_all(counts, self.clumping)
        order = np.argsort(told, kind="stable")
        bins = [part for part in np.array_split(order, BINS) if len(part)]
        size = np.array([len(part) for part in bins], dtype=float)
        mean = np.array([told[part].mean() for part in bins])
        found = np.array([asked[part].mean() for part in bins])
        fitted = isotonic_regression((size * found + TRUST * mean) / (size + TRUST), weights=size).x
        self._told = np.concatenate([[0.0], mean, [1.0]])
        self._true = np.concatenate([[0.0], fitted, [1.0]])

    def of(self, counts: Floats) -> Floats:
        """Probability that a statement of each expected count is asked at least once."""
        return np.asarray(np.interp(asked_at_all(counts, self.clumping), self._told, self._true))


def asked_at_all(counts: Floats, clumping: float = math.inf) -> Floats:
    """The same by the law alone, with this shape."""
    if math.isinf(clumping):
        return np.asarray(-np.expm1(-counts))
    return np.asarray(-np.expm1(-clumping * np.log1p(counts / clumping)))


def _marks(windows: Sequence[tuple[Log, Spread]]) -> tuple[Floats, Floats]:
    """Expected counts of the statements most expected in each window, and 1 for those that came."""
    counts, asked = [np.zeros(0)], [np.zeros(0)]
    for after, spread in windows:
        ranked = list(spread.ranked(after, CONSIDERED))
        present = {after.statements[n] for n in np.unique(after.ids).tolist()}
        counts.append(np.array([share * len(after) for _, share in ranked]))
        asked.append(np.array([key in present for key, _ in ranked], dtype=float))
    return np.concatenate(counts), np.concatenate(asked)


def _loss(chances: Floats, asked: npt.NDArray[np.float64]) -> float:
    chances = np.clip(chances, 1e-9, 1 - 1e-9)
    return float(-(asked * np.log(chances) + (1 - asked) * np.log1p(-chances)).sum())
