"""The matrix mechanism over a fixed set of queries, in floats, for public tables."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from experiments.trial import Floats, Ints
from laprasdp.strategy.optimize import Optimum, optimize


def designed(workload: Ints, gap: float = 1e-4) -> Optimum:
    """
    The certified optimum for the queries of `workload`; the last few are remembered.

    Parameters
    ----------
    workload : (m, n) array
    gap : float
        Relative distance from the lower bound at which the design stops.
    """
    return _designed(np.ascontiguousarray(workload, dtype=np.int64).tobytes(), workload.shape, gap)


@lru_cache(maxsize=8)
def _designed(content: bytes, shape: tuple[int, ...], gap: float) -> Optimum:
    return optimize(np.frombuffer(content, dtype=np.int64).reshape(shape).astype(np.float64), gap=gap)


def released(workload: Ints, counts: Ints, mu: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """
    Answers to every query of a workload from one Gaussian release.

    Parameters
    ----------
    workload : (m, n) array
    counts : (n,) array
    mu : float
        Gaussian-DP parameter of the release; neighbours differ by one record more.
    rng : Generator

    Returns
    -------
    answers, stds : (m,) arrays

    Notes
    -----
    The strategy ``A`` has largest column norm one, so ``A x + N(0, I/μ²)`` is μ-GDP; the answers are
    post-processing.
    """
    optimum = designed(workload)
    noise = optimum.decode @ rng.standard_normal(optimum.decode.shape[1]) / mu
    return workload @ counts + noise, np.sqrt(optimum.variances) / mu
