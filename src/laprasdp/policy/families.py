"""What is asked of a small table, over its cells: the predicted queries, and families of others.

Of every table some families may be asked; where shapes are declared, those are the floor beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.policy.kinds import family_of, kinds_of_query
from laprasdp.policy.query_shapes import QueryShape, is_ordered
from laprasdp.queries.domain import Domain
from laprasdp.strategy.background import FAMILIES, cell_moment, draw_vectors

MIXTURE = ("random", "point", "prefix", "range")
_WITHOUT_ORDER = MIXTURE[:2]  # of categories nobody asks for prefixes or ranges
_FLOOR = 0.1  # share of families that are not declared, in what a release is optimised for


@dataclass(frozen=True)
class Predicted:
    """
    The prediction set, written out.

    Attributes
    ----------
    vectors : (m, n) array
    importance : (m,) array
        Share of each query among them.
    """

    vectors: Floats
    importance: Floats

    def __bool__(self) -> bool:
        return len(self.vectors) > 0

    def deviations(self, inverse: Floats) -> Floats:
        """(m,) standard deviations under a belief of this covariance."""
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", self.vectors, inverse, self.vectors)))

    def deviation(self, inverse: Floats) -> float:
        """Their mean, by importance; 0 where there is none."""
        return float(self.importance @ self.deviations(inverse))


@dataclass(frozen=True)
class Family:
    """
    Unpredicted queries of one kind.

    Attributes
    ----------
    moment : (n, n) array
    share : float
        Of what a release is optimised for.
    declared : bool
        Whether designs are judged by it; they are by all where no shapes are declared.
    """

    moment: Floats
    share: float
    declared: bool = True


def families(domain: Domain, shapes: Sequence[QueryShape]) -> list[Family]:
    """
    The families that are expected.

    Parameters
    ----------
    domain : Domain
        Of n cells, few enough to write out.
    shapes : sequence of QueryShape
        None for those of every table.
    """
    if shapes:
        found = [Family(_moment(domain, shape), shape.share * (1 - _FLOOR)) for shape in shapes]
        rest = families(domain, ())
        return [*found, *(replace(one, share=one.share * _FLOOR, declared=False) for one in rest)]
    ordered = any(is_ordered(domain, axis) and size > 2 for axis, size in enumerate(domain.shape))
    names = MIXTURE if ordered else _WITHOUT_ORDER
    return [Family(cell_moment(domain, name), 1 / len(names)) for name in names]


def drawn(domain: Domain, shapes: Sequence[QueryShape], count: int, rng: np.random.Generator) -> list[Floats]:
    """Typical queries, (count, n) arrays of 0 and 1: one a family, or of each kind of declared shapes."""
    if not shapes:
        return [draw_vectors(domain, family, count, rng) for family in MIXTURE]
    kinds = kinds_of_query(domain, (), count, rng, shapes=shapes, others=False)
    return [np.array([query.vector() for query in queries[:count]], float) for queries in kinds.values()]


def shape_terms(domain: Domain, shape: QueryShape) -> tuple[Floats, tuple[Floats, ...]]:
    r"""
    The second moment of a shape as a sum of products over attributes, :math:`\sum_tc_t\bigotimes_iM_{ti}`.

    Returns
    -------
    (t,) array
        :math:`c_t`.
    tuple of (t, levels, levels) array
        :math:`M_{ti}`, for each attribute.
    """
    every = shape.sets(domain).values()
    scales = [1 / len(sets) / len(every) for sets in every for _ in sets]
    moments = [
        [
            FAMILIES[family_of(shape, domain, axis)](size) if axis in axes else np.ones((size, size))
            for sets in every
            for axes in sets
        ]
        for axis, size in enumerate(domain.shape)
    ]
    return np.array(scales), tuple(map(np.array, moments))


def _moment(domain: Domain, shape: QueryShape) -> Floats:
    """The second moment of a shape, written out."""
    scales, moments = shape_terms(domain, shape)
    terms = zip(scales.tolist(), zip(*moments, strict=True), strict=True)
    return np.asarray(sum(scale * reduce(np.kron, parts) for scale, parts in terms), dtype=float)
