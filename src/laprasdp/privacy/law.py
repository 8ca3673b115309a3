"""The law of an answer's error: Gaussian, or a sum of Laplace variables; its quantiles and its mean."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
import scipy.optimize
import scipy.special

Law = Literal["gaussian", "laplace"]

_NODES = 4_096


def half_width(level: float, std: float, law: Law = "gaussian", parts: float = 1.0) -> float:
    r"""
    Half of the symmetric interval that holds the error with probability `level`.

    Parameters
    ----------
    level : float
        Strictly between 0 and 1.
    std : float
        Standard deviation of the error, in records.
    law : {"gaussian", "laplace"}
    parts : float
        Of how many independent Laplace variables of one scale the error is the sum.

    Notes
    -----
    A sum of k Laplace variables is :math:`\sqrt{V}\,N` with N a standard normal and V Gamma of shape k
    (Kotz, Kozubowski, Podgórski 2001), which also gives a meaning to a k that is no whole number.
    """
    if law == "gaussian":
        return NormalDist().inv_cdf((1 + level) / 2) * std
    return _laplace_quantile(level, parts) * std


def expected_error(std: float, law: Law = "gaussian", parts: float = 1.0) -> float:
    """Expected absolute value of an error with this standard deviation and law, in records."""
    gaussian = std * math.sqrt(2 / math.pi)
    if law == "gaussian":
        return gaussian
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
