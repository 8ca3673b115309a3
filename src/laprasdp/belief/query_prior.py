"""What a prior alone says of one query: its mean from the drawn values, and its exact variance."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.views import Views
from laprasdp.queries.query import Query
from laprasdp.strategy.drawn import DrawnPart
from laprasdp.strategy.factor import Root
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.subspaces import Axes, parts, subsets
from laprasdp.strategy.tree import StrategyTree


def told_by(
    prior: Marginals,
    query: Query,
    roots: Mapping[int, Root],
    views: Views,
    released: Mapping[DrawnPart, Floats] | None,
) -> tuple[float, float]:
    """
    Mean and variance of a query that a prior spans.

    Parameters
    ----------
    prior : Marginals
    query : Query
    roots : mapping of axis to Root
        Of its factors.
    views : Views
        Of this prior.
    released : mapping of DrawnPart to array, or None
        Its noisy values; without them, and where they were not drawn, the mean is NaN.
    """
    precisions = prior.precisions
    wanted = [axes for axes in subsets(query.axes) if axes in precisions]
    mean, variance = np.nan if released is None else 0.0, 0.0
    for axes, part in parts(query, roots, wanted).items():
        flat = part.reshape(-1)
        variance += float(flat @ flat) / precisions[axes]
        if released is not None:
            values = _values(prior, query, axes, views, released)
            mean += float(flat @ values.reshape(-1)) / precisions[axes] ** 0.5
    return mean, variance


def _values(
    prior: Marginals, query: Query, axes: Axes, views: Views, released: Mapping[DrawnPart, Floats]
) -> Floats:
    """What was released for a set, at the nodes that the query cuts; NaN where it was not drawn."""
    if not prior.later(axes):
        return released[axes, ()]
    cut, factors = views.cut(query, axes), [prior.factors[axis] for axis in axes]
    ends, nodes = list[npt.NDArray[np.int64]](), iter(cut)
    for factor in factors:
        rows = [len(factor)] if not isinstance(factor, StrategyTree) else [
            factor.shape.rows[factor.shape.depth(node)] for node in next(nodes).tolist()
        ]  # fmt: skip
        ends.append(np.cumsum([0, *rows]))
    found = np.full([int(end[-1]) for end in ends], np.nan)
    for place in itertools.product(*(range(len(end) - 1) for end in ends)):
        chosen = (i for i, factor in zip(place, factors, strict=True) if isinstance(factor, StrategyTree))
        part = axes, tuple(int(each[i]) for each, i in zip(cut, chosen, strict=True))
        where = tuple(slice(end[i], end[i + 1]) for end, i in zip(ends, place, strict=True))
        found[where] = released.get(part, np.nan)
    return found
