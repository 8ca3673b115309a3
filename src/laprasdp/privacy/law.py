"""The law of an answer's error: Gaussian, or a sum of Laplace variables, on the line or on the integers."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
import scipy.optimize
import scipy.special

from laprasdp.arrays import Floats

Law = Literal["gaussian", "laplace", "geometric"]
"""Geometric: a sum of discrete Laplace variables on the integers."""

_NODES = 4_096
_FINE = 2_000.0  # a deviation of so many integers is as good as any number


def half_width(level: float, std: float, law: Law = "gaussian", parts: float = 1.0) -> float:
    r"""
    Half of the symmetric interval that holds the error with probability `level`.

    Parameters
    ----------
    level : float
        Strictly between 0 and 1.
    std : float
        Standard deviation of the error, in records.
    law : {"gaussian", "laplace", "geometric"}
    parts : float
        Of how many independent Laplace variables of one scale the error is the sum.

    Notes
    -----
    A sum of k Laplace variables is :math:`\sqrt{V}\,N` with N a standard normal and V Gamma of shape k
    (Kotz, Kozubowski, Podgórski 2001), which also gives a meaning to a k that is no whole number.  On the
    integers the least whole number is given whose interval holds the error with `level` or more.
    """
    if law == "gaussian":
        return NormalDist().inv_cdf((1 + level) / 2) * std
    if law == "geometric" and std < _FINE:
        return float(np.searchsorted(_within(std**2, parts), level))
    return _laplace_quantile(level, parts) * std


def expected_error(std: float, law: Law = "gaussian", parts: float = 1.0) -> float:
    """Expected absolute value of an error with this standard deviation and law, in records."""
    gaussian = std * math.sqrt(2 / math.pi)
    if law == "gaussian":
        return gaussian
    if law == "geometric" and std < _FINE:
        return float((1 - _within(std**2, parts)).sum())
    return gaussian * math.exp(math.lgamma(parts + 0.5) - math.lgamma(parts)) / math.sqrt(parts)


@lru_cache(maxsize=4_096)
def _laplace_quantile(level: float, parts: float) -> float:
    """In standard deviations."""
    if parts == 1:
        return -math.log1p(-level) / math.sqrt(2)
    places = (np.arange(_NODES) + 0.5) / _NODES
    deviations = np.sqrt(scipy.special.gammaincinv(parts, places) / parts)

    def missed(width: float) -> float:
        return level - float(scipy.special.erf(width / (math.sqrt(2) * deviations)).mean())

    most = -math.log1p(-level) + 10  # of one part, which has the longest tail, and some more
    return float(scipy.optimize.brentq(missed, 0.0, most, xtol=1e-9))


def ratio_of(variance: float) -> float:
    r"""
    The ratio p of a discrete Laplace variable, :math:`P(z)\propto p^{|z|}`, from its variance.

    Notes
    -----
    The variance is :math:`2p/(1-p)^2`; of the two roots of that quadratic, the one below 1, without
    cancellation.
    """
    return variance / (variance + 1 + math.sqrt(2 * variance + 1))


@lru_cache(maxsize=4_096)
def _within(variance: float, parts: float) -> Floats:
    r"""
    Probabilities that a sum on the integers is at most 0, 1, 2, ... in size, up to one.

    Notes
    -----
    From the characteristic function :math:`((1-p)^2/|1-pe^{it}|^2)^k` at the roots of unity: what is
    further off than half of their number is folded back, which is below 1e-12 at so many.
    """
    p = ratio_of(variance / parts)
    reach = 16 + 12 * math.sqrt(variance) + 30 / -math.log(p)
    count = 1 << math.ceil(math.log2(2 * reach))
    angles = np.arange(count // 2 + 1) * (2 * math.pi / count)
    squares = 1 + p * (p - 2 * np.cos(angles))  # |1 - p e^(it)|^2
    mass = np.maximum(np.fft.irfft(((1 - p) ** 2 / squares) ** parts, count)[: count // 2], 0)
    within: Floats = np.minimum(2 * np.cumsum(mass) - mass[0], 1)
    return within
