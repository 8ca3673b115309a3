"""Pacing decides how much of the budget an unpredicted query may use now; it never acts.

Everything is in integers, so pools never drift and what is granted never adds up to more than they held.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from laprasdp.errors import ConfigError
from laprasdp.pacing.arrivals import WarmUp, estimate_unpredicted, warm_up_length
from laprasdp.pacing.split import Pools

RESERVE_FLOOR = Fraction(1, 1000)
"""ε_min as a share of the budget; the paper does not give it."""


@dataclass(frozen=True)
class Reading:
    """
    How the paper's pseudo-code is read where it is silent or contradicts itself.

    Attributes
    ----------
    warm_up : {"natural", "binary", "decimal", "squared"} or int
        T.
    estimate : {"frozen", "continuous"}
        Whether Smooth keeps B̂ after the T-th unpredicted query, as in the pseudo-code, or goes on
        estimating, as the text says.
    overflow : {"reserve", "leftover"}
        What queries beyond B̂ use: the reserve alone, as printed, or also what the pools have left over.
    repeats : {"replay", "pay"}
        Whether a repeated unpredicted query gets its earlier answer free, or pays again, as printed.
    """

    warm_up: WarmUp | int = "natural"
    estimate: Literal["frozen", "continuous"] = "frozen"
    overflow: Literal["reserve", "leftover"] = "reserve"
    repeats: Literal["replay", "pay"] = "replay"

    def __post_init__(self) -> None:
        for name, given, known in (
            ("estimate", self.estimate, ("frozen", "continuous")),
            ("overflow", self.overflow, ("reserve", "leftover")),
            ("repeats", self.repeats, ("replay", "pay")),
        ):
            if given not in known:
                raise ConfigError(f"{name} is {' or '.join(known)}, not {given!r}")
        warm_up_length(2, self.warm_up)


class Pacing(Protocol):
    """Decides the allowance of each unpredicted query."""

    def allowance(self, position: int) -> int:
        """
        Units for an unpredicted query that arrives now; 0 where none may be answered any more.

        Parameters
        ----------
        position : int
            Its place n in the stream, from 1.
        """

    def advance(self, position: int) -> None:
        """The query at `position` was unpredicted: use up its allowance."""

    def grow(self, extra: Pools, total: int, position: int) -> None:
        """
        Share out more, where the stream can still reach it.

        Parameters
        ----------
        extra : Pools
            What is new; `extra.matrix` is 0.
        total : int
            The whole budget from now on.
        position : int
            Place of the next statement.
        """


class Reserve:
    """Half of what is left for each query beyond the estimate, until it falls below a floor."""

    def __init__(self, units: int, floor: int) -> None:
        self.units, self._floor = units, floor

    def allowance(self) -> int:
        return self.units // 2 if self.units >= self._floor else 0

    def advance(self) -> None:
        self.units -= self.allowance()

    def grow(self, extra: int, floor: int) -> None:
        self.units, self._floor = self.units + extra, floor


class Static:
    """
    Static Allocation: constant shares, warm-up first, then by one estimate of what remains.

    Parameters
    ----------
    pools : Pools
    total : int
        The whole budget, of which the reserve's floor is a share.
    horizon : int
        S.
    reading : Reading
        `estimate` does not matter here.

    References
    ----------
    LAPRAS, Algorithm 1 and section "Static Allocation"; docs/decisions/reading-of-the-paper.md.
    """

    def __init__(self, pools: Pools, total: int, horizon: int, reading: Reading) -> None:
        self._horizon, self._reading = horizon, reading
        self._length = warm_up_length(horizon, reading.warm_up)
        self._warm_up, self._rest = pools.warm_up, pools.rest
        self._share_first, self._share_after = pools.warm_up // self._length, 0
        self._reserve = Reserve(pools.reserve, int(total * RESERVE_FLOOR))
        self._unpredicted, self._estimate = 0, Fraction(0)

    def allowance(self, position: int) -> int:
        count = self._unpredicted + 1
        if count <= self._length:
            return self._share_first
        if count <= self._estimate:
            return min(self._share_after, self._rest)
        return self._overflow().allowance()

    def advance(self, position: int) -> None:
        allowance = self.allowance(position)
        self._unpredicted += 1
        if self._unpredicted <= self._length:
            self._warm_up -= allowance
        elif self._unpredicted <= self._estimate:
            self._rest -= allowance
        else:
            self._reserve = self._overflow()
            self._warm_up = self._rest = 0
            self._reserve.advance()
        if self._unpredicted == self._length:
            self._estimate = estimate_unpredicted(self._horizon, self._unpredicted, position)
            self._rest += self._warm_up  # what the rounding of shares left; the paper adds it too
            self._warm_up = 0
            self._share_after = int(self._rest / max(self._estimate - self._length, Fraction(1)))

    def grow(self, extra: Pools, total: int, position: int) -> None:
        reserve, left = extra.reserve, self._length - self._unpredicted
        if left > 0:
            self._warm_up += extra.warm_up
            self._rest += extra.rest
            self._share_first = self._warm_up // left
        else:  # shares are settled
            reserve += extra.warm_up + extra.rest
        self._reserve.grow(reserve, int(total * RESERVE_FLOOR))

    def _overflow(self) -> Reserve:
        extra = self._warm_up + self._rest if self._reading.overflow == "leftover" else 0
        return Reserve(self._reserve.units + extra, self._reserve._floor)


class Smooth:
    """
    Smooth Allocation: one pool, shared evenly over what the latest estimate says is still to come.

    Parameters
    ----------
    pools : Pools
        Warm-up and rest together are the pool.
    total, horizon, reading
        As for `Static`.

    References
    ----------
    LAPRAS, Algorithm 1 and section "Smooth Allocation".
    """

    def __init__(self, pools: Pools, total: int, horizon: int, reading: Reading) -> None:
        self._horizon, self._reading = horizon, reading
        self._length = warm_up_length(horizon, reading.warm_up)
        self._pool = pools.warm_up + pools.rest
        self._reserve = Reserve(pools.reserve, int(total * RESERVE_FLOOR))
        self._unpredicted, self._frozen = 0, Fraction(0)

    def allowance(self, position: int) -> int:
        count = self._unpredicted + 1
        estimate = self._estimate(count, position)
        if count > self._length and count > estimate:
            return self._overflow().allowance()
        return int(self._pool / (max(Fraction(1), estimate - count) + 1))

    def advance(self, position: int) -> None:
        count = self._unpredicted + 1
        allowance, estimate = self.allowance(position), self._estimate(count, position)
        if count > self._length and count > estimate:
            self._reserve = self._overflow()
            self._pool = 0 if self._reading.overflow == "leftover" else self._pool
            self._reserve.advance()
        else:
            self._pool -= allowance
        if count == self._length:
            self._frozen = estimate
        self._unpredicted = count

    def grow(self, extra: Pools, total: int, position: int) -> None:
        count, pool = self._unpredicted + 1, extra.warm_up + extra.rest
        beyond = count > self._length and count > self._estimate(count, position)
        self._pool += 0 if beyond else pool  # beyond the estimate the pool is not used any more
        self._reserve.grow(extra.reserve + (pool if beyond else 0), int(total * RESERVE_FLOOR))

    def _estimate(self, count: int, position: int) -> Fraction:
        if count > self._length and self._reading.estimate == "frozen":
            return self._frozen
        return estimate_unpredicted(self._horizon, count, position)

    def _overflow(self) -> Reserve:
        extra = self._pool if self._reading.overflow == "leftover" else 0
        return Reserve(self._reserve.units + extra, self._reserve._floor)
