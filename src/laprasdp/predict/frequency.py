"""Recency-weighted frequency: Gamma–Poisson counts with exponential decay; the honest baseline."""

from __future__ import annotations

import math

import numpy as np

from laprasdp.predict.component import Component, decay, good_turing, normal
from laprasdp.predict.log import Log
from laprasdp.predict.model import Context, Spread


class Frequency(Component):
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
    λ_j ∝ decayed count.  The share of what the log does not hold is Good and Turing's N₁/N, both decayed.
    """

    def __init__(self, half_life: float = math.inf) -> None:
        super().__init__()
        self.half_life = half_life

    def fit(self, log: Log) -> None:
        self._learn(log)
        self._missing = good_turing(log, decay(len(log), self.half_life))

    def _learn(self, log: Log) -> None:
        weights = decay(len(log), self.half_life)
        counts = np.bincount(log.ids, weights, minlength=len(log.statements)).astype(float)
        self._shares = normal(Spread(counts))

    def shares(self, horizon: int, context: Context) -> Spread:
        return self._shares
