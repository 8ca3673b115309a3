"""Pacing in μ² for any order of arrival: a fair share, or an any-order schedule where that is more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

TYPICAL = 100
"""Statements that a stream of unknown length is reckoned to hold at least."""
FORETOLD = 50
"""Statements that a declared overlap is worth where the stream turns out otherwise."""
_DOUBT = 0.25  # standard deviations that a cautious expectation adds


@dataclass(frozen=True)
class Competitive:
    r"""
    How much of what is left the k-th query that has to be measured may use.

    Parameters
    ----------
    horizon : int or None
        S; None where it is not known.
    share : float or None
        Share of the stream that is expected to need measuring; None where nothing is known of it.  Where more
        come than it says, the stream is believed, and the share counts as so many statements of it.
    strength : float
        How many arrivals the expectation is worth (the weight of a Beta prior).
    caution : float
        Weight of the any-order schedule, strictly between 0 and 1.
    reach : int
        A longer stream is reckoned to be half over: what is measured early serves all that comes later.

    Notes
    -----
    Fair share ``r/(R+1)`` with ``R = (S-t)(a+b)/(a+c+t)`` queries still expected, from a Beta(a, c) prior;
    the paper's estimate is a = c = 0.  The schedule :math:`m_k=M/(c_S(2k-1))` with
    :math:`c_S=\sum_{k\le S}1/(2k-1)` keeps :math:`\sum_k 1/m_k=c_SB^2/M` for any number B of queries in any
    order, and no deterministic schedule does better; for an unknown horizon :math:`m_k=M/(2k(1+\ln k)^2)`
    (docs/proofs/primm.md).
    """

    horizon: int | None
    share: float | None = None
    strength: float = 2.0
    caution: float = 0.2
    reach: int = TYPICAL

    @property
    def replans(self) -> frozenset[int]:
        """Statements after which what is left is shared out again, ever further apart."""
        return frozenset(math.ceil(1.4**power) for power in range(2, 60))

    def left(self, position: int) -> int:
        """Statements that are expected after `position` of them."""
        reckoned = max(self.reach - position, position)
        return reckoned if self.horizon is None else max(min(reckoned, self.horizon - position), 0)

    def remaining(self, position: int, measured: int) -> float:
        """
        Queries that will have to be measured after this one.

        Parameters
        ----------
        position : int
            t, statements so far, this one included.
        measured : int
            b, those among them that had to be measured, this one included.
        """
        left = self.left(position)
        prior, strength = (
            (0.5, self.strength) if self.share is None else (self.share, max(self.strength, FORETOLD))
        )
        expected = left * (strength * prior + measured) / (strength + position)
        if self.share is None or self.horizon is None:
            return expected
        known = self.share * self.horizon - measured  # exact where the share is
        return min(float(left), max(known, expected))

    def most_remaining(self, position: int, measured: int) -> float:
        """
        A cautious `remaining` after `position` statements, of which `measured` had to be measured.

        A part of a standard deviation of the Beta posterior above its mean; never more than is left.
        """
        left, expected = self.left(position), self.remaining(position, measured)
        if self.share is not None or left == 0:
            return expected
        rate, weight = expected / left, self.strength + position + 1
        return min(float(left), expected + _DOUBT * left * math.sqrt(rate * (1 - rate) / weight))

    def allowance(self, left: float, whole: float, position: int, measured: int) -> float:
        """
        μ² for this query.

        Parameters
        ----------
        left : float
            μ² that is left for the stream.
        whole : float
            μ² that the stream began with.
        position, measured : int
            As for `remaining`.
        """
        if self.horizon is not None and position >= self.horizon:
            return left  # nothing is to come that could use it
        fair = left / (self.remaining(position, measured) + 1)
        if self.horizon is None:
            schedule = whole / (2 * measured * (1 + math.log(measured)) ** 2)
        else:
            schedule = whole / (_odd_harmonic(self.horizon) * (2 * measured - 1))
        return max((1 - self.caution) * fair, min(left, self.caution * schedule))


@lru_cache(maxsize=64)
def _odd_harmonic(count: int) -> float:
    """``Σ 1/(2k-1)`` for k up to `count`."""
    return math.fsum(1 / (2 * k - 1) for k in range(1, count + 1))
