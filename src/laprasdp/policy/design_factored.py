r"""The design of a pure release on a table of some thousand cells: a p-identity strategy for each attribute.

The strategy is :math:`\bigotimes_iA_i` with :math:`A_i=[I;\Theta_i]\,\mathrm{diag}(1/s_i)`, whose columns
have L1 norm one.  Its error for a query that is a product over attributes is a product, so one factor after
another is optimised for the second moment that the others leave it.  No data is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.p_identity import ROWS, PIdentity, optimize_p_identity, start

_POWER = 3  # of the ratios that are averaged: 2 leaves some kind far off, and the largest alone all others
_SWEEPS = 12  # over all attributes, at most
_PATIENCE, _GAIN = 3, 0.995  # sweeps in which their mean has to fall to this share of itself
_STEPS = 15  # of L-BFGS, for one attribute in one of them


@dataclass(frozen=True, eq=False)
class ProductKind:
    r"""
    Queries whose second moment is a sum of products over attributes, :math:`\sum_tc_t\bigotimes_iM_{ti}`.

    Attributes
    ----------
    scales : (t,) array
        :math:`c_t`.
    moments : tuple of (t, levels, levels) array
        :math:`M_{ti}`, for each attribute.
    """

    scales: Floats
    moments: tuple[Floats, ...]

    def traces(self, spreads: Sequence[Floats]) -> Floats:
        """(attributes, t) variance that each factor gives each term."""
        pairs = zip(self.moments, spreads, strict=True)
        return np.array([np.einsum("tij,ij->t", moment, spread) for moment, spread in pairs])

    def moment(self, axis: int, weights: Floats) -> Floats:
        """(levels, levels) weighted sum of the moments of one attribute."""
        return np.asarray(np.tensordot(weights, self.moments[axis], axes=1))


@dataclass(frozen=True, eq=False)
class ProductQueries:
    """
    The same of some queries, each the product of a vector for each attribute.

    Attributes
    ----------
    scales : (m,) array
        The share of each.
    vectors : tuple of (m, levels) array
    """

    scales: Floats
    vectors: tuple[Floats, ...]

    @classmethod
    def of(cls, queries: Sequence[Query], importance: Floats) -> Self:
        """Queries, of which each that is no product stands as that of its root mean squares by attribute."""
        return cls(importance, tuple(map(np.array, zip(*map(_factors, queries), strict=True))))

    def traces(self, spreads: Sequence[Floats]) -> Floats:
        """(attributes, m) variance that each factor gives each query."""
        pairs = zip(self.vectors, spreads, strict=True)
        return np.array([((rows @ spread) * rows).sum(axis=1) for rows, spread in pairs])

    def moment(self, axis: int, weights: Floats) -> Floats:
        """(levels, levels) weighted second moment of the vectors of one attribute."""
        return np.asarray((self.vectors[axis].T * weights) @ self.vectors[axis])


def design_factored(
    shape: Sequence[int], kinds: Sequence[ProductKind | ProductQueries], wanted: Floats, shares: Floats
) -> tuple[PIdentity, ...]:
    """
    The p-identity strategies whose errors, against what is wanted of each kind, are small by `overall`.

    Parameters
    ----------
    shape : sequence of int
        Levels of each attribute.
    kinds : sequence of ProductKind or ProductQueries
    wanted : (k,) array
        A deviation for each of the k kinds, in any unit.
    shares : (k,) array
        What each is worth; they sum to one.

    Notes
    -----
    Minimises a weighted sum of variances, one attribute after another; then the weights are made those of
    which `overall` has the same slope, until this gains little.  The problem is not convex, so there is no
    certificate; the errors of what is found are exact.
    """
    found = tuple(start(size, min(ROWS, max(1, size // 4))) for size in shape)
    weights, best, least = shares * wanted**-2.0, found, [np.inf]
    for _ in range(_SWEEPS):
        spreads = [one.covariance for one in found]
        for axis, before in enumerate(found):
            gram = np.zeros_like(spreads[axis])
            for kind, weight in zip(kinds, weights, strict=True):
                others = np.delete(kind.traces(spreads), axis, axis=0).prod(axis=0)
                gram += kind.moment(axis, weight * kind.scales * others)
            made = optimize_p_identity(gram, first=before, steps=_STEPS)
            found = (*found[:axis], made, *found[axis + 1 :])
            spreads[axis] = made.covariance
        variances = [float(kind.scales @ kind.traces(spreads).prod(axis=0)) for kind in kinds]
        ratios = np.sqrt(variances) / wanted
        if overall(ratios, shares) < least[-1]:
            best = found
        least.append(min(least[-1], overall(ratios, shares)))
        if len(least) > _PATIENCE + 1 and least[-1] > _GAIN * least[-1 - _PATIENCE]:
            break
        weights = shares * wanted**-2.0 * ratios ** (_POWER - 2)
    return best


def overall(ratios: Floats, shares: Floats) -> float:
    """One number for the errors of all kinds: the root mean cube, in which what is far off counts more."""
    return math.pow(shares @ ratios**_POWER, 1 / _POWER)


def _factors(query: Query) -> list[Floats]:
    """A vector for each attribute, whose product is the query where it is one of weights above 0."""
    squares = query.vector().astype(float).reshape(query.domain.shape) ** 2
    axes, whole = range(squares.ndim), float(squares.sum())
    each = [np.sqrt(squares.sum(axis=tuple(other for other in axes if other != axis))) for axis in axes]
    return [one * whole ** (0.5 / squares.ndim - 0.5) if whole else one for one in each]
