"""A query as a short sum of products of one function an attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import tensor_of


class Terms(NamedTuple):
    """A query as a sum of products of one function an attribute."""

    coefficients: Floats  # (t,)
    factors: dict[int, Floats]  # axis to (t, levels); 1 on the axes left out


def terms(query: Query) -> Terms:
    """
    A query as a sum of rank-one terms: its non-zero fibres along the axis that has the fewest.

    A conjunction is one term; a query over one attribute too.
    """
    weights = tensor_of(query)
    if not query.axes:
        return Terms(np.array([float(weights)]), {})
    along = int(np.argmin([np.count_nonzero(weights.any(axis=place)) for place in range(weights.ndim)]))
    fibres = np.moveaxis(weights, along, -1)
    used = np.asarray(fibres.any(axis=-1))
    if not used.any():
        return Terms(np.zeros(1), {})
    factors = {query.axes[along]: fibres[used].astype(float)[:, query.labels[along]]}
    others = [place for place in range(weights.ndim) if place != along]
    for column, place in zip(np.argwhere(used).T, others, strict=True):
        factors[query.axes[place]] = (query.labels[place] == column[:, np.newaxis]).astype(float)
    return Terms(np.ones(np.count_nonzero(used)), factors)
