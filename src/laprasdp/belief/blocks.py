"""Groups of whole statements, kept beside the rows of a belief: what they add to what rows tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.block import Block, block_of
from laprasdp.strategy.measurement import Rows


class Blocks:
    """The blocks that were learned; their noises are independent of one another and of all rows."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    def copy(self) -> Blocks:
        """Independent blocks in the same state."""
        other = Blocks()
        other._blocks = list(self._blocks)
        return other

    def learn(self, measurement: Rows, values: Floats) -> bool:
        """Keep a release if it is one of many groups; whether it is."""
        block = block_of(measurement, values)
        if block is not None:
            self._blocks.append(block)
        return block is not None

    def joined(self, query: Query, mean: float, variance: float) -> tuple[float, float]:
        """Value and variance of a query of which something else tells this; infinite if nothing does."""
        for found in (block.find(query) for block in self._blocks):
            if found is not None:
                mean, variance = map(float, _joined(mean, variance, found.value, found.variance))
        return mean, variance

    def joined_each(self, groups: Groups, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """The same of all groups of a statement."""
        for block in self._blocks:
            means, variances = _joined(means, variances, *block.find_each(groups))
        return means, variances

    def covariance(self, queries: Sequence[Query], joint: Floats) -> Floats:
        """(m, m) joint covariance, where `joint` is what everything else leaves."""
        shares, variances = np.isfinite(joint.diagonal()).astype(float), joint.diagonal().copy()
        noise = list[Floats]()
        for block in self._blocks:
            taken = [block.weights(query) for query in queries]
            known = np.array([weights is not None for weights in taken], dtype=bool)
            if not known.any():
                continue
            wide = np.full(len(queries), np.inf)
            weights = np.stack([each for each in taken if each is not None])
            wide[known] = np.einsum("ij,ij->i", weights, weights) * block.variance
            after = _joined(0.0, variances, 0.0, wide)[1]
            kept = np.divide(after, variances, out=np.zeros(len(queries)), where=np.isfinite(variances))
            new = np.divide(after, wide, out=np.zeros(len(queries)), where=known)
            shares, noise = shares * kept, [part * kept[:, np.newaxis] for part in noise]
            spread = np.zeros((len(queries), weights.shape[1]))
            spread[known] = weights * (new[known] * math.sqrt(block.variance))[:, np.newaxis]
            noise.append(spread)
            variances = after
        if not noise:
            return joint
        joint = np.where(np.outer(shares, shares) > 0, joint, 0.0) * np.outer(shares, shares)
        for spread in noise:
            joint += spread @ spread.T
        np.fill_diagonal(joint, variances)
        return joint


def _joined(one: Any, spread: Any, other: Any, wide: Any) -> tuple[Any, Any]:
    """Two independent estimates of one number joined by inverse variances, of which one may be infinite."""
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(wide), 1.0, np.where(np.isinf(spread), 0.0, wide / (spread + wide)))
        joint = np.where(np.isinf(spread), wide, np.where(share > 0, spread * share, 0.0))
    return np.where(share > 0, one, 0.0) * share + np.where(share < 1, other, 0.0) * (1 - share), joint
