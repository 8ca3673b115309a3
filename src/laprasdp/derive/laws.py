"""The law of a value that follows from released ones: its standard deviation, and intervals that hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import scipy.optimize

from laprasdp.arrays import Floats
from laprasdp.privacy.law import Law, half_width
from laprasdp.record.estimate import Estimate

ValueKind = Literal["unbiased", "consistent"]
_CUT = 0.01
"""The share of draws at an end above which a function is taken to be cut off there."""
UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class Tail:
    """
    What the errors are made of that a value follows from.

    Attributes
    ----------
    law : Law
    unit : float
        Least deviation of one part of a geometric error.
    """

    law: Law = "gaussian"
    unit: float = 0.0

    @classmethod
    def of(cls, estimates: Sequence[Estimate | None]) -> Tail:
        """The widest law of several errors."""
        found = [one for one in estimates if one is not None and one.law != "gaussian"]
        whole = [one.variance / one.parts for one in found if one.law == "geometric"]
        if whole:
            return cls("geometric", math.sqrt(min(whole)))
        return cls("laplace") if found else GAUSSIAN


GAUSSIAN = Tail()


class ValueLaw(Protocol):
    """What is known of the error of one value."""

    @property
    def kind(self) -> ValueKind:
        """Unbiased: its expectation is the truth; or consistent: near the truth where noise is small."""

    @property
    def std(self) -> float | None:
        """Standard deviation; None where there is none to tell."""

    def interval(self, level: float) -> tuple[float, float]:
        """An interval that holds the truth with probability `level`; infinite ends where nothing is known."""


@dataclass(frozen=True)
class LinearLaw:
    """
    Of a linear combination.

    Attributes
    ----------
    value, std : float
    law : Tail
        Gaussian where all errors are; otherwise the wider of both is taken.
    kind : ValueKind
        Consistent where the value is linear to first order only.
    """

    value: float
    std: float
    law: Tail = GAUSSIAN
    kind: ValueKind = "unbiased"

    def interval(self, level: float) -> tuple[float, float]:
        """Symmetric."""
        half = quantile(level, self.law) * self.std
        return self.value - half, self.value + half


@dataclass(frozen=True)
class RatioLaw:
    r"""
    Of a ratio of two linear combinations, by Fieller's theorem.

    Attributes
    ----------
    top, bottom : float
    top_variance, bottom_variance : float
    covariance : float or None
        Of the two; None where it is not known.
    law : Tail

    Notes
    -----
    The interval is :math:`\{\theta: |t-\theta b|\le z\,\sigma(t-\theta b)\}`: it holds the true ratio exactly
    when the error of :math:`t-\theta b` at the true :math:`\theta`, which is linear, is within its own
    interval.  Where the denominator may be 0 at this level it is unbounded.  With an unknown covariance
    :math:`\sigma(t-\theta b)` is taken as :math:`\sigma_t+|\theta|\sigma_b`, its largest value.

    References
    ----------
    Fieller.  Some problems in interval estimation.  J. R. Stat. Soc. B 16 (1954).
    """

    top: float
    bottom: float
    top_variance: float
    bottom_variance: float
    covariance: float | None
    law: Tail = GAUSSIAN

    @property
    def kind(self) -> ValueKind:
        """Consistent: a ratio of unbiased values is not unbiased."""
        return "consistent"

    @property
    def std(self) -> float | None:
        """To first order; None where the 95% interval is unbounded."""
        if self.interval(0.95) == UNBOUNDED:
            return None
        ratio = self.top / self.bottom
        return math.sqrt(self._variance(ratio)) / abs(self.bottom)

    def _variance(self, ratio: float) -> float:
        if self.covariance is None:
            return (math.sqrt(self.top_variance) + abs(ratio) * math.sqrt(self.bottom_variance)) ** 2
        found = self.top_variance - 2 * ratio * self.covariance + ratio**2 * self.bottom_variance
        return max(found, 0.0)

    def interval(self, level: float) -> tuple[float, float]:
        """Fieller's."""
        z = quantile(level, self.law)
        sign = -1.0 if self.bottom < 0 else 1.0
        t, b = sign * self.top, sign * self.bottom
        st, sb = math.sqrt(self.top_variance), math.sqrt(self.bottom_variance)
        if b <= z * sb:
            return UNBOUNDED
        if self.covariance is None:
            high, low = t + z * st, t - z * st
            return low / (b + z * sb if low >= 0 else b - z * sb), high / (
                b - z * sb if high >= 0 else b + z * sb
            )
        a = b * b - z * z * self.bottom_variance
        middle = t * b - z * z * self.covariance
        rest = middle**2 - a * (t * t - z * z * self.top_variance)
        root = math.sqrt(max(rest, 0.0))
        return (middle - root) / a, (middle + root) / a


@dataclass(frozen=True)
class RoundedLaw:
    """Of a value that is rounded to `digits`: that keeps the order, so the ends of its interval are too."""

    inner: LinearLaw | RatioLaw
    digits: int

    @property
    def kind(self) -> ValueKind:
        """Consistent."""
        return "consistent"

    @property
    def std(self) -> float | None:
        """Of the value before it is rounded."""
        return self.inner.std

    def interval(self, level: float) -> tuple[float, float]:
        """That of the value before it is rounded, rounded."""
        low, high = self.inner.interval(level)
        return (
            low if math.isinf(low) else round(low, self.digits),
            high if math.isinf(high) else round(high, self.digits),
        )


@dataclass(frozen=True)
class DrawnLaw:
    r"""
    Of any function of released values, from draws of their joint law: a parametric bootstrap.

    Attributes
    ----------
    draws : (k,) array
        Values of the function; empty where it has none for some draw.

    Notes
    -----
    The ends are quantiles by the expansion of Cornish and Fisher to the third moment,
    :math:`\mu+\sigma(z+\gamma(z^2-1)/6)`, which needs fewer draws than order statistics.  Where
    one draw in a hundred is the least, or the greatest, the function is cut off there, as STDDEV is at 0, and
    has no such expansion: then they are order statistics, which any growing function of a value keeps, and
    infinite where there are too few draws.

    References
    ----------
    Cornish, Fisher.  Moments and cumulants in the specification of distributions.  Rev. ISI 5 (1938).
    """

    draws: Floats

    @property
    def kind(self) -> ValueKind:
        """Consistent."""
        return "consistent"

    @property
    def std(self) -> float | None:
        """Of the draws."""
        return float(self.draws.std()) if len(self.draws) else None

    def interval(self, level: float) -> tuple[float, float]:
        """Between two quantiles of the function."""
        if not len(self.draws):
            return UNBOUNDED
        if self._cut_off:
            rest = (1 - level) / 2
            if rest * (len(self.draws) + 1) < 1:
                return UNBOUNDED
            low, high = np.quantile(self.draws, [rest, 1 - rest], method="weibull")
            return float(low), float(high)
        mean, std, z = float(self.draws.mean()), float(self.draws.std()), half_width(level, 1.0)
        skew = float(((self.draws - mean) ** 3).mean()) / std**3 if std else 0.0
        shift = min(max(skew, -1.0), 1.0) * (z * z - 1) / 6
        return mean + std * (shift - z), mean + std * (shift + z)

    @property
    def _cut_off(self) -> bool:
        """Whether many draws are the same at an end, and not all of them."""
        low, high = self.draws.min(), self.draws.max()
        most = max((self.draws == low).sum(), (self.draws == high).sum())
        return bool(low < high and most > _CUT * len(self.draws))


@dataclass(frozen=True)
class QuantileLaw:
    r"""
    Of a quantile that is read off cumulative counts.

    Attributes
    ----------
    points : sequence of float
        Ascending.
    lows : sequence of float
        The least value that is counted at each point and at none before: the point itself, unless several
        values are counted together.
    above : (k,) array
        :math:`D(v)=F(v)-p\,n` as released, for each point v.
    stds : (k,) array
        Of the error of each.
    law : Tail

    Notes
    -----
    The true quantile is the least v with :math:`D(v)\ge 0`.  The interval begins at the low end of the first
    point where D is not below 0 with confidence, and ends at the last whose predecessor is not above 0 with
    confidence, where D is the isotone curve nearest to what was released: of independent normal errors none
    is made larger in probability by that (Kelly), so the interval misses the quantile only if D errs there,
    or at the point before, beyond one end of its own interval.  Errors that hang together are beyond that
    theorem: there the measured coverage (docs/intervals.md) is all that is known.  It is the interval of one
    quantile; those of several quantiles of a statement do not all hold together as often.

    References
    ----------
    Woodruff.  Confidence intervals for medians and other position measures.  J. Am. Stat. Assoc. 47 (1952).
    Kelly.  Stochastic reduction of loss in estimating normal means by isotonic regression.  Ann. Stat. 17
    (1989).
    """

    points: Sequence[float]
    lows: Sequence[float]
    above: Floats
    stds: Floats
    law: Tail = GAUSSIAN

    @property
    def kind(self) -> ValueKind:
        """Consistent."""
        return "consistent"

    @property
    def std(self) -> float | None:
        """Half of the 68% interval."""
        low, high = self.interval(0.6826894921370859)
        return None if math.isinf(low) or math.isinf(high) else (high - low) / 2

    @cached_property
    def _curve(self) -> Floats:
        weights = 1 / np.maximum(self.stds, 1e-9 * float(self.stds.max(initial=1.0))) ** 2
        return np.asarray(scipy.optimize.isotonic_regression(self.above, weights=weights).x, dtype=float)

    def interval(self, level: float) -> tuple[float, float]:
        """By inverting a test at each point."""
        z, curve = quantile(level, self.law), self._curve
        may = np.flatnonzero(curve + z * self.stds >= 0)
        before = np.flatnonzero(curve - z * self.stds <= 0)
        if not len(may):
            return UNBOUNDED
        last = int(before[-1]) + 1 if len(before) else 0
        return float(self.lows[int(may[0])]), float(self.points[min(last, len(self.points) - 1)])


@dataclass(frozen=True)
class NoLaw:
    """Nothing is known of the error."""

    @property
    def kind(self) -> ValueKind:
        """Consistent."""
        return "consistent"

    @property
    def std(self) -> float | None:
        """None."""
        return None

    def interval(self, level: float) -> tuple[float, float]:
        """Unbounded."""
        return UNBOUNDED


def quantile(level: float, tail: Tail) -> float:
    """Half of the interval of an error of standard deviation 1; the widest of what its parts may add to."""
    found = half_width(level, 1.0)
    if tail.law != "gaussian":
        found = max(found, half_width(level, 1.0, "laplace"))
    if tail.law == "geometric" and tail.unit > 0:
        found = max(found, half_width(level, tail.unit, "geometric") / tail.unit)
    return found
