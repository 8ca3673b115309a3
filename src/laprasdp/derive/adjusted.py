"""Counts made of released ones that are not negative, whole, or agree with their total."""

from __future__ import annotations

import math

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import ConfigError


def agree(
    values: Floats,  # y, (m,)
    covariance: Floats,  # Σ, (m, m)
    total: float,  # T
) -> Floats:  # (m,)
    r"""
    The values nearest to `values` that add up to `total`, by generalised least squares.

    Parameters
    ----------
    values : (m,) array
        Unbiased.
    covariance : (m, m) array
        Of their errors; may be singular, as where some are known exactly.
    total : float

    Raises
    ------
    ConfigError
        The sum is known exactly and is not `total`.

    Notes
    -----
    Minimises :math:`(x-y)^\top\Sigma^{-1}(x-y)` under :math:`1^\top x=T`, so

    .. math:: x = y + \Sigma 1\,(T-1^\top y)/s, \qquad s = 1^\top\Sigma 1.

    If T has an error of variance :math:`\tau^2` that is independent of theirs, the covariance becomes
    :math:`\Sigma-(s-\tau^2)kk^\top` with :math:`k=\Sigma 1/s`: no combination of the groups has a larger
    variance than before as long as :math:`\tau^2\le s`, that is, T is no worse than the groups' own sum.

    **Privacy.**  A function of released numbers: it costs nothing.

    Examples
    --------
    >>> agree(np.array([1.0, 2.0]), np.diag([1.0, 3.0]), 7.0)
    array([2., 5.])
    """
    pull, short = covariance.sum(axis=1), total - math.fsum(values)
    spread = math.fsum(pull)
    if spread > 0:
        moved: Floats = values + pull * (short / spread)
        return moved
    if abs(short) > 1e-9 * max(1.0, abs(total)):
        raise ConfigError(f"the groups are known exactly and do not add up to a total of {total:g}")
    return values


def project(
    values: Floats,  # y, (m,)
    variances: Floats,  # v, (m,)
    total: float | None = None,  # T
) -> Floats:  # (m,)
    r"""
    The nearest values that are not negative, and add up to `total` where one is given.

    Parameters
    ----------
    values : (m,) array
    variances : (m,) array
        Values of variance 0 are not moved, unless they are negative.
    total : float, optional
        Not negative.

    Raises
    ------
    ConfigError
        What must not be moved does not leave such a total.

    Notes
    -----
    Minimises :math:`\sum_i (x_i-y_i)^2/v_i` over :math:`x\ge 0,\ \sum x=T`; the optimum is
    :math:`x_i=\max(0, y_i+\nu v_i)`, with :math:`\nu` found by one sort.  A projection: what is feasible
    stays as it is, and no feasible point is farther from the result than from `values`.

    **Privacy.**  A function of released numbers: it costs nothing.

    Examples
    --------
    >>> project(np.array([4.0, 1.0, -1.0]), np.ones(3), 4.0)
    array([3.5, 0.5, 0. ])
    """
    result: Floats = np.maximum(values, 0.0)
    if total is None:
        return result
    free = variances > 0
    left = total - math.fsum(result[~free])
    if left < -1e-9 * max(1.0, total) or (not free.any() and left > 1e-9 * max(1.0, total)):
        raise ConfigError(f"what is known exactly of the groups leaves no total of {total:g}")
    if not free.any() or (bool((values >= 0).all()) and abs(left - math.fsum(values[free])) <= 1e-15 * left):
        return result
    y, v = values[free], variances[free] / variances.max()
    order = np.argsort(-y / v, kind="stable")  # the i-th is positive as soon as ν passes −y/v
    levels = (max(left, 0.0) - np.cumsum(y[order])) / np.cumsum(v[order])
    positive = levels > (-y / v)[order]
    last = int(np.flatnonzero(positive)[-1]) if positive.any() else 0
    result[free] = np.maximum(y + v * levels[last], 0.0)
    return result


def round_to(values: Floats, total: float) -> Floats:
    """
    Whole numbers next to `values` that add up to the whole number nearest to `total`: largest remainders.

    Parameters
    ----------
    values : (m,) array
        That add up to about `total`.
    total : float

    Notes
    -----
    Each is rounded down or up, and the sum of distances is the least possible.  What is not negative stays
    so.

    **Privacy.**  A function of released numbers: it costs nothing.

    Examples
    --------
    >>> round_to(np.array([1.4, 1.4, 0.2]), 3.0)
    array([2., 1., 0.])
    """
    result: Floats = np.floor(values)
    short = round(total) - round(math.fsum(result))
    result[np.argsort(result - values, kind="stable")[: max(short, 0)]] += 1.0
    return result
