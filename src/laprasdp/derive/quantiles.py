"""Quantiles from cumulative counts: one isotone curve, and what DuckDB would read off it."""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize

from laprasdp.arrays import Floats


def cumulative(counts: Floats) -> Floats:
    """
    The isotone curve nearest to cumulative counts, not below 0.

    Parameters
    ----------
    counts : (k,) array
        Of the values up to each point, as released.

    References
    ----------
    Barlow, Bartholomew, Bremner, Brunk.  Statistical Inference under Order Restrictions (1972).
    """
    fitted: Floats = np.maximum(np.asarray(scipy.optimize.isotonic_regression(counts).x, dtype=float), 0.0)
    return fitted


def quantile_of(
    points: Floats,  # v, (k,)
    counts: Floats,  # F(v), (k,)
    share: float,
    *,
    continuous: bool,
    slack: float = 0.0,
    lows: Floats | None = None,  # (k,)
) -> float:
    """
    What DuckDB's QUANTILE_DISC or QUANTILE_CONT says of values with these cumulative counts.

    Parameters
    ----------
    points : (k,) array
        Ascending.
    counts : (k,) array
        Isotone.
    share : float
        Between 0 and 1.
    continuous : bool
        Interpolate between the two values around the place.
    slack : float
        How far noise may move ``share`` times the count: the place is not rounded up for less, up to 1/2.

    lows : (k,) array, optional
        The least value that is counted at each point: between the two the place decides.

    Returns
    -------
    float
        NaN where nothing is counted.

    Examples
    --------
    >>> points, counts = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    >>> [quantile_of(points, counts, 0.5, continuous=one) for one in (False, True)]
    [2.0, 2.5]
    """
    whole = float(counts[-1])
    if whole < 0.5:
        return math.nan
    if not continuous:
        index = max(math.ceil(share * whole - min(slack, 0.5)) - 1, 0)
        return _value_at(points, points if lows is None else lows, counts, index)
    place = max(share * (whole - 1), 0.0)
    low, high = (
        _value_at(points, points if lows is None else lows, counts, one)
        for one in (math.floor(place), math.ceil(place))
    )
    return low + (high - low) * (place - math.floor(place))


def _value_at(points: Floats, lows: Floats, counts: Floats, index: int) -> float:
    """The value at a place, from 0, among all in order."""
    step = min(int(np.searchsorted(counts, index + 0.5, side="left")), len(points) - 1)
    before = float(counts[step - 1]) if step else 0.0
    inside = min(max((index + 0.5 - before) / max(float(counts[step]) - before, 1.0), 0.0), 1.0)
    return float(lows[step] + (points[step] - lows[step]) * inside)
