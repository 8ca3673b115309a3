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
    Always the same draws, so that a statement shows the same when it is asked again.

    **Privacy.**  A function of released numbers and public settings: it costs nothing.
    """
    spread, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(spread, 0.0))
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield values + root @ rng.standard_normal(len(spread))
