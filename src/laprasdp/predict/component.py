"""What one simple predictor has to say: shares of the stream, from what a log holds."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.predict.calibration import asked_at_all
from laprasdp.predict.log import Log
from laprasdp.predict.model import TINY, Context, Predictor, Spread


class Component(Predictor):
    """
    A predictor that gives each statement a share of what the log foretells, and Good and Turing's share to
    what it does not.
    """

    def __init__(self) -> None:
        self._missing = 1.0

    @property
    def missing_mass(self) -> float:
        return self._missing

    def fit(self, log: Log) -> None:
        self._missing = good_turing(log, np.ones(len(log)))
        self._learn(log)

    def expected_counts(self, horizon: int, context: Context) -> Spread:
        return self.shares(horizon, context).times(horizon * (1 - self._missing))

    def chances(self, counts: Floats) -> Floats:
        return asked_at_all(counts)

    @abstractmethod
    def _learn(self, log: Log) -> None:
        """Learn from a log."""

    @abstractmethod
    def shares(self, horizon: int, context: Context) -> Spread:
        """Shares of the next `horizon` statements; they sum to 1, or to 0 where there is nothing to say."""


def decay(lines: int, half_life: float) -> Floats:
    """The weight of each line, (N,); the last one has 1."""
    return np.asarray(np.exp2((np.arange(lines) - (lines - 1)) / half_life), dtype=float)


def good_turing(log: Log, weights: Floats) -> float:
    """
    Share of the next lines that no line so far is equal to: the share of statements seen once (Good 1953).

    One line, or only different lines, leave nothing to learn from: at least 1/(2N) is kept on either side.
    """
    if not len(log):
        return 1.0
    once = np.bincount(log.ids, minlength=len(log.statements))[log.ids] == 1
    edge = 0.5 / len(log)
    return float(np.clip(weights[once].sum() / weights.sum(), edge, 1 - edge))


def normal(spread: Spread) -> Spread:
    """The same in shares that sum to 1; nothing where there is nothing."""
    return spread.times(1 / max(spread.total, TINY))
