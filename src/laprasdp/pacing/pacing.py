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

    def advance(self, position: int, used: int | None = None) -> None:
        """
        The query at `position` was unpredicted.

        Parameters
        ----------
        position : int
        used : int, optional
            Units that were spent on it: all that it was allowed, where absent.
        """

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
    """Half of what is left for each query beyond the estimate; all of it where half is below a floor."""

    def __init__(self, units: int, floor: int) -> None:
        self.units, self.floor = units, max(floor, 1)

    def allowance(self) -> int:
        if self.units < self.floor:
            return 0
        half = self.units // 2
        return half if half >= self.floor else self.units

    def grow(self, extra: int, floor: int) -> None:
        self.units, self.floor = self.units + extra, max(floor, 1)


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
        self._reserve = Reserve(pools.reserve, int(total * RESERVE_FLOOR))
        self._unpredicted, self._estimate = 0, Fraction(0)

    def allowance(self, position: int) -> int:
        count = self._unpredicted + 1
        if count <= self._length:
            return self._warm_up // (self._length - self._unpredicted)
        if count <= self._estimate:  # an equal share of what is left is the same to all, but for rounding
            return int(self._rest / max(self._estimate - self._unpredicted, Fraction(1)))
        return self._overflow().allowance()

    def advance(self, position: int, used: int | None = None) -> None:
        used = self.allowance(position) if used is None else used
        self._unpredicted += 1
        if self._unpredicted <= self._length:
            self._warm_up -= used
        elif self._unpredicted <= self._estimate:
            self._rest -= used
        else:
            self._reserve = self._overflow()
            self._warm_up = self._rest = 0
            self._reserve.units -= used
        if self._unpredicted == self._length:
            self._estimate = estimate_unpredicted(self._horizon, self._unpredicted, position)
            self._rest += self._warm_up  # what was not used; the paper adds it too
            self._warm_up = 0

    def grow(self, extra: Pools, total: int, position: int) -> None:
        reserve, left = extra.reserve, self._length - self._unpredicted
        if left > 0:
            self._warm_up += extra.warm_up
            self._rest += extra.rest
        else:  # shares are settled
            reserve += extra.warm_up + extra.rest
        self._reserve.grow(reserve, int(total * RESERVE_FLOOR))

    def _overflow(self) -> Reserve:
        extra = self._warm_up + self._rest if self._reading.overflow == "leftover" else 0
        return Reserve(self._reserve.units + extra, self._reserve.floor)


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

    def advance(self, position: int, used: int | None = None) -> None:
        count = self._unpredicted + 1
        used = self.allowance(position) if used is None else used
        estimate = self._estimate(count, position)
        if count > self._length and count > estimate:
            self._reserve = self._overflow()
            self._pool = 0 if self._reading.overflow == "leftover" else self._pool
            self._reserve.units -= used
        else:
            self._pool -= used
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
        return Reserve(self._reserve.units + extra, self._reserve.floor)
