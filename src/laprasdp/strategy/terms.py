"""A query as a short sum of products of one function an attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.queries.runs import Labels, class_sizes, unpacked
from laprasdp.strategy.subspaces import tensor_of


class Functions(NamedTuple):
    """Functions of the levels of one attribute, that agree on the levels of a class."""

    labels: Labels
    values: Floats  # (t, classes)

    @property
    def means(self) -> Floats:
        """(t,) their means over the levels."""
        sizes = class_sizes(self.labels, self.values.shape[1])
        return np.asarray(self.values @ (sizes / sizes.sum()))

    @property
    def written(self) -> Floats:
        """(t, levels) their values."""
        return np.asarray(self.values[:, unpacked(self.labels)])


class Terms(NamedTuple):
    """A query as a sum of products of one function an attribute."""

    coefficients: Floats  # (t,)
    factors: dict[int, Functions]  # by axis; 1 on the axes left out


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
    factors = {
        query.axes[along]: Functions(
            query.steps[along], fibres[used].astype(float).reshape(-1, fibres.shape[-1])
        )
    }
    others = [place for place in range(weights.ndim) if place != along]
    for column, place in zip(np.argwhere(used).T, others, strict=True):
        chosen = (np.arange(weights.shape[place]) == column[:, np.newaxis]).astype(float)
        factors[query.axes[place]] = Functions(query.steps[place], chosen)
    return Terms(np.ones(np.count_nonzero(used)), factors)
