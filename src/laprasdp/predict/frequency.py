"""Recency-weighted frequency: Gamma–Poisson counts with exponential decay, and Good–Turing for the rest."""

from __future__ import annotations

import math

import numpy as np

from laprasdp.predict.log import Floats, Log
from laprasdp.predict.model import Context, Predictor, Spread


class Frequency(Predictor):
    """
    What was asked is asked again, as often as lately.

    Parameters
    ----------
    half_life : float
        Lines after which a line counts half; infinite counts all alike.

    Notes
    -----
    With a Gamma prior on each statement's rate and exponential forgetting the posterior is again a Gamma,
    with the decayed count as shape (West, Harrison 1997, ch. 10); the improper prior Gamma(0, 0) leaves
    λ_j ∝ decayed count.  The share of what the log does not hold is Good and Turing's N₁/N, both decayed
    (Good 1953).
    """

    def __init__(self, half_life: float = math.inf) -> None:
        self.half_life = half_life

    @property
    def missing_mass(self) -> float:
        return self._missing

    def fit(self, log: Log) -> None:
        weights = decay(len(log), self.half_life)
        self._missing = good_turing(log, weights)
        counts = np.bincount(log.ids, weights, minlength=len(log.statements))
        self._shares = Spread(counts / counts.sum() if len(log) else counts)

    def shares(self) -> Spread:
        """Relative decayed frequencies."""
        return self._shares

    def expected_counts(self, horizon: int, context: Context) -> Spread:
        return self._shares.times(horizon * (1 - self._missing))


def decay(lines: int, half_life: float) -> Floats:
    """The weight of each line, (N,); the last one has 1."""
    return np.asarray(np.exp2((np.arange(lines) - (lines - 1)) / half_life), dtype=float)


def good_turing(log: Log, weights: Floats) -> float:
    """
    Share of the next lines that no line so far is equal to: the decayed share of statements seen once.

    One line, or only different lines, leave nothing to learn from: at least 1/(2N) is kept on either side.
    """
    if not len(log):
        return 1.0
    once = np.bincount(log.ids, minlength=len(log.statements))[log.ids] == 1
    edge = 0.5 / len(log)
    return float(np.clip(weights[once].sum() / weights.sum(), edge, 1 - edge))
