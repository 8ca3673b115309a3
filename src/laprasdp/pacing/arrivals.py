"""The estimate of how many queries of a stream are unpredicted, and when it is made."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from laprasdp.errors import ConfigError

WarmUp = Literal["natural", "binary", "decimal", "squared"]


def warm_up_length(horizon: int, reading: WarmUp | int = "natural") -> int:
    """
    T, the unpredicted queries before their number is estimated for good.

    Parameters
    ----------
    horizon : int
        S, at least 1.
    reading : {"natural", "binary", "decimal", "squared"} or int
        ``⌈log² S⌉`` with that logarithm; "squared" is ``⌈log₂ S⌉²``; a number is T itself.  The paper does
        not say; the natural logarithm alone explains its tables.

    Examples
    --------
    >>> [warm_up_length(100, r) for r in ("natural", "binary", "decimal", "squared", 7)]
    [22, 45, 4, 49, 7]
    """
    if isinstance(reading, int) and not isinstance(reading, bool):
        if reading < 1:
            raise ConfigError(f"the warm-up takes at least one query, not {reading}")
        return reading
    if not isinstance(reading, str):
        raise ConfigError(f"warm_up must be the name of a reading or a number, not {reading!r}")
    lengths = {
        "natural": math.ceil(math.log(horizon) ** 2),
        "binary": math.ceil(math.log2(horizon) ** 2),
        "decimal": math.ceil(math.log10(horizon) ** 2),
        "squared": math.ceil(math.log2(horizon)) ** 2,
    }
    if reading not in lengths:
        raise ConfigError(
            f"no reading {reading!r} of the warm-up; there are {', '.join(lengths)} or a number"
        )
    return max(1, lengths[reading])


def estimate_unpredicted(horizon: int, unpredicted: int, position: int) -> Fraction:
    """
    B̂, seen from the moment that the b-th unpredicted query arrives.

    Parameters
    ----------
    horizon : int
        S.
    unpredicted : int
        b ≥ 1, this one included.
    position : int
        n ≥ b, its place in the stream, from 1.

    Returns
    -------
    Fraction
        ``S(b-1)/(n-1)``; all that is left of the stream, ``S-n+1``, at b = 1 (at least 1).

    Notes
    -----
    In a stream of S in random order with B ≥ b ≥ 2 unpredicted, the expectation is exactly B (the paper's
    theorem on expectation; negative hypergeometric stopping time).

    Examples
    --------
    >>> estimate_unpredicted(100, 22, 43)
    Fraction(50, 1)
    """
    if unpredicted == 1:
        return Fraction(max(1, horizon - position + 1))
    return Fraction(horizon * (unpredicted - 1), position - 1)


def variance_bound(horizon: int, warm_up: int, unpredicted: int) -> float:
    """
    What the variance of B̂ at b = T stays below: ``S(T-1)/((S-1)(T-2)) · B(B-1) - B²``.

    Notes
    -----
    For T ≥ 3 and B ≥ T (the paper's theorem on variance).
    """
    ratio = horizon * (warm_up - 1) / ((horizon - 1) * (warm_up - 2))
    return ratio * unpredicted * (unpredicted - 1) - unpredicted**2
