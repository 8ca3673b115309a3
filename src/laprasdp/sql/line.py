"""The values that a type can hold, as points on a line: what a comparison with a constant can tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Steps:
    """All multiples of a unit: whole numbers, decimals of one scale, days, instants."""

    unit: Fraction

    def up(self, point: Fraction, *, past: bool = False) -> Fraction:
        """
        The least value at `point` or above it; with `past`, above it.

        Examples
        --------
        >>> [str(Steps(Fraction(1, 10)).up(Fraction(7, 4), past=past)) for past in (False, True)]
        ['9/5', '9/5']
        """
        place = point / self.unit
        return (math.floor(place) + 1 if past else math.ceil(place)) * self.unit


@dataclass(frozen=True)
class FloatingPoint:
    """
    Binary floating-point numbers, without a largest one.

    Attributes
    ----------
    bits : int
        Of the significand.
    least : int
        The smallest positive value is 2 to this power.
    """

    bits: int
    least: int

    def _unit(self, point: Fraction) -> Fraction:
        """The distance of values around a point that is not 0."""
        above, below = abs(point.numerator), point.denominator
        power = above.bit_length() - below.bit_length()
        if (above << max(-power, 0)) < (below << max(power, 0)):
            power -= 1
        return Fraction(2) ** max(power - self.bits + 1, self.least)

    def nearest(self, point: Fraction) -> Fraction:
        """The value nearest to `point`; of two, the even one, as IEEE 754 rounds."""
        if not point:
            return point
        unit = self._unit(point)
        return round(point / unit) * unit

    def up(self, point: Fraction, *, past: bool = False) -> Fraction:
        """
        The least value at `point` or above it; with `past`, above it.

        Examples
        --------
        >>> float(SINGLE.up(Fraction(7, 10))), float(SINGLE.up(Fraction(-1), past=True))
        (0.7000000476837158, -0.9999999403953552)
        """
        tiny = Fraction(2) ** self.least
        if not point:
            return tiny if past else point
        unit = self._unit(point)
        found = math.ceil(point / unit) * unit
        return self.up(point + tiny / 2) if past and found == point else found


Line = Steps | FloatingPoint
WHOLE = Steps(Fraction(1))
SINGLE, DOUBLE = FloatingPoint(24, -149), FloatingPoint(53, -1074)
