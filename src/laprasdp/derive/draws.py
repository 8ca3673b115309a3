"""Draws around released values, for the law of what follows from them in no closed form."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from laprasdp.arrays import Floats


def drawn(
    values: Floats,  # (m,)
    covariance: Floats,  # (m, m)
    count: int,
) -> Iterator[Floats]:  # (m,)
    """
    Values as they might have been released, were those that were released the truth.

    Parameters
    ----------
    values : (m,) array
        As released.
    covariance : (m, m) array
        Of their errors.
    count : int

    Notes
    -----
    Antithetic, and of exactly this covariance where the values are no more than a quarter of the draws, so
    that the mean of what is linear in them is exact, and its standard deviation too.  Always the same draws:
    a statement shows the same when it is asked again.

    **Privacy.**  A function of released numbers and public settings: it costs nothing.
    """
    spread, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(spread, 0.0))
    half = np.random.default_rng(0).standard_normal((count // 2, len(spread)))
    if 2 * len(spread) <= len(half):
        left, _, right = np.linalg.svd(half, full_matrices=False)
        half = left @ right * np.sqrt(len(half))
    for standard in (*half, *-half):
        yield values + root @ standard
