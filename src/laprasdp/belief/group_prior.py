r"""Many groups at once before a prior of orthogonal subspaces: no query is looked at by itself.

A group is a point in each attribute of the GROUP BY times one function of the others, so that its variance,
its mean and its covariance with a query are products of numbers that are looked up by level.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.basis import Basis, View, view_of
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.factor import Dense, Root
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.subspaces import Axes, parts
from laprasdp.strategy.terms import terms


class GroupPrior:
    r"""
    The prior of some groups that it spans.

    Parameters
    ----------
    groups : Groups
        They name no long attribute.
    prior : Marginals
    roots : mapping of axis to Root
    """

    def __init__(self, groups: Groups, prior: Marginals, roots: Mapping[int, Root]) -> None:
        self._groups, self._prior, self._roots = groups, prior, roots

    def variances(self) -> Floats:
        """(g,) variance of each group before any row."""
        found = np.zeros(len(self._groups))
        for function, where in self._groups.slices:
            for subset, outer, inner in self._subsets(function):
                share = np.full(len(where), float(np.sum(inner**2)) / self._prior.precisions[subset])
                for axis, levels in self._levels(where):
                    squares = (self._matrix(axis) ** 2).sum(axis=0) if axis in outer else None
                    share *= squares[levels] if squares is not None else self._size(axis) ** -2.0
                found[where] += share
        return found

    def means(self, released: Mapping[Axes, Floats]) -> Floats:
        """(g,) mean of each group, from the values of each subspace."""
        found = np.zeros(len(self._groups))
        for function, where in self._groups.slices:
            for subset, outer, inner in self._subsets(function):
                tensor = released[subset]
                rest = [place for place, axis in enumerate(subset) if axis not in outer]
                kept = [place for place, axis in enumerate(subset) if axis in outer]
                weights = inner.reshape([tensor.shape[place] for place in rest])
                tensor = np.tensordot(tensor.transpose(kept + rest), weights, axes=len(rest))
                for place in kept:  # contracting the first axis puts its levels last
                    tensor = np.tensordot(tensor, self._matrix(subset[place]), axes=(0, 0))
                levels = dict(self._levels(where))
                share = np.broadcast_to(tensor[tuple(levels[axis] for axis in outer)], len(where))
                for axis in set(levels) - set(outer):
                    share = share / self._size(axis)
                found[where] += share / self._prior.precisions[subset] ** 0.5
        return found

    def covariances(self, basis: Basis) -> Floats:
        """(g, t) covariance of each group with each term of a basis."""
        found = np.zeros((len(self._groups), basis.count))
        along = {
            axis: basis.seen(axis) @ self._matrix(axis) for axis in self._groups.by if axis in self._roots
        }
        for function, where in self._groups.slices:
            own, levels = view_of(terms(function), self._roots), dict(self._levels(where))
            inside = {axis: each[:, levels[axis]].T for axis, each in along.items()}
            for subset, outer, _ in self._subsets(function):
                share = self._rest(own, subset, basis) * basis.coefficients
                product = np.tile(share / self._prior.precisions[subset], (len(where), 1))
                for axis in levels:
                    product *= inside[axis] if axis in outer else basis.means[axis] / self._size(axis)
                found[where] += product
        return found

    def _rest(self, own: View, subset: Axes, basis: Basis) -> Floats:
        """(t,) the product over the attributes outside GROUP BY."""
        product = np.tile(own.coefficients[:, np.newaxis], (1, basis.count))
        for axis in set(range(len(basis.means))) - set(self._groups.by):
            if axis not in own.means:
                product = product * basis.means[axis]
            elif axis in subset:
                product = product * (own.seen[axis][1] @ basis.seen(axis).T)
            else:
                product = product * np.outer(own.means[axis], basis.means[axis])
        return np.asarray(product.sum(axis=0))

    def _matrix(self, axis: int) -> Floats:
        """H of a short attribute."""
        root = self._roots[axis]
        assert isinstance(root, Dense)
        return root.matrix

    def _subsets(self, function: Query) -> list[tuple[Axes, Axes, Floats]]:
        """Released sets in which such groups have a part: set, its axes in GROUP BY, the function's part."""
        by, axes = set(self._groups.by), set(function.axes)
        wanted = [subset for subset in self._prior.precisions if set(subset) <= by | axes]
        inner = {subset: tuple(axis for axis in subset if axis not in by) for subset in wanted}
        found = parts(function, self._roots, list(dict.fromkeys(inner.values())))
        return [(s, tuple(axis for axis in s if axis in by), found[inner[s]]) for s in wanted]

    def _levels(self, where: npt.NDArray[np.intp]) -> list[tuple[int, npt.NDArray[np.intp]]]:
        return [
            (axis, levels[where]) for axis, levels in zip(self._groups.by, self._groups.levels, strict=True)
        ]

    def _size(self, axis: int) -> int:
        return self._prior.domain.shape[axis]
