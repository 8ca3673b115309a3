"""Laplace noise that can be made smaller later, at the price of the difference."""

from __future__ import annotations

import numpy as np

from experiments.trial import Floats


def refined(noise: Floats, before: float, after: float, rng: np.random.Generator) -> Floats:
    r"""
    Laplace noise of scale 1/after, so correlated with noise of scale 1/before that the pair costs `after`.

    Parameters
    ----------
    noise : (p,) array
        Independent Laplace noise of scale 1/before.
    before, after : float
        Inverse scales, which are ε for counts of sensitivity one; 0 < before < after.
    rng : Generator

    Returns
    -------
    (p,) array
        Its marginal law is Laplace of scale 1/after.

    Notes
    -----
    With :math:`b>b'` and :math:`\rho=(b'/b)^2`, noise of scale b is noise of scale b' plus an independent
    summand that is 0 with probability ρ and Laplace of scale b otherwise (characteristic functions:
    :math:`(1+b'^2t^2)/(1+b^2t^2)=\rho+(1-\rho)/(1+b^2t^2)`).  This samples the first given the sum.

    **Privacy.**  The old answer is the new one with noise added that does not depend on the table, so that
    both together are as private as the new one alone: after-DP, and the refinement costs after − before.

    References
    ----------
    Koufogiannis, Han, Pappas.  Gradual release of sensitive data under differential privacy.  J. Privacy
    Confid. 7 (2016).
    """
    size, gap, total = np.abs(noise), after - before, after + before
    left = np.exp(-size * gap)
    kept = rng.random(noise.shape) < before / after * left
    below, between, above = 1 / total, (1 - left) / gap, left / total
    place = rng.random(noise.shape) * (below + between + above)
    tail = rng.exponential(1 / total, noise.shape)
    inside = -np.log1p(-rng.random(noise.shape) * (1 - left)) / gap
    drawn = np.where(place < below, -tail, np.where(place < below + between, inside, size + tail))
    return np.where(kept, noise, np.copysign(1.0, noise) * drawn)
