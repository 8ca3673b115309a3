"""How a prior sees queries: which it spans, by which nodes, and their covariance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.belief.basis import Basis, View, view_of
from laprasdp.belief.direct import centred
from laprasdp.queries.query import Query
from laprasdp.queries.runs import class_sizes, runs_of
from laprasdp.strategy.drawn import DrawnPart
from laprasdp.strategy.factor import Root
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.subspaces import Axes, subsets, tensor_of
from laprasdp.strategy.terms import terms

_KEPT = 2_000  # queries whose view is kept
_LOT = 64  # queries from which on their prior covariance is kept
_FINE = 1_000  # nodes of long attributes beyond which a query is rather measured by itself


class Views:
    """
    How one prior sees queries.

    Parameters
    ----------
    prior : Marginals
    roots : mapping of axis to Root
        Of its factors.
    """

    def __init__(self, prior: Marginals, roots: Mapping[int, Root]) -> None:
        self._prior, self._roots = prior, roots
        self._views: dict[str, View] = {}
        self._covered: dict[str, bool] = {}
        self._centred: dict[str, tuple[Query, int, int]] = {}
        self._lots: dict[tuple[str, ...], tuple[Floats, dict[str, Floats]]] = {}

    def view(self, query: Query) -> View:
        """How the prior sees a query."""
        found = self._views.get(query.mark)
        if found is None:
            if len(self._views) >= _KEPT:
                self._views.clear()
            found = self._views[query.mark] = view_of(terms(query), self._roots)
        return found

    def covers(self, query: Query) -> bool:
        """
        Whether the prior spans `query`: each part of it lies in a released subspace; exact.

        One that cuts very many nodes of long attributes is taken for one that it does not span.
        """
        found = self._covered.get(query.mark)
        if found is None:
            if len(self._covered) >= _KEPT:
                self._covered.clear()
            found = self._covered[query.mark] = self._spans(query)
        return found

    def _spans(self, query: Query) -> bool:
        every = subsets(query.axes)
        for axis, labels in zip(query.axes, query.steps, strict=True):
            long = self._prior.long.get(axis)
            if long is not None and len(runs_of(labels).starts) > _FINE * max(long.shape.branches):
                return False  # it cuts more nodes than that
        missing = [s for s in every if s not in self._prior.precisions]
        if any(self._has_part(query, s) for s in reversed(missing)):
            return False
        later = [s for s in every if s in self._prior.precisions and self._prior.later(s)]
        return sum(math.prod(map(len, self.cut(query, s))) for s in later) <= _FINE

    def parts(self, queries: Sequence[Query]) -> list[DrawnPart]:
        """Nodes of long attributes that the values of some queries rest on, where the prior spans them."""
        found: dict[DrawnPart, None] = {}
        for query in queries if self._prior.long else ():
            for axes in subsets(query.axes) if self.covers(query) else ():
                if axes in self._prior.precisions and self._prior.later(axes):
                    nodes = itertools.product(*(cut.tolist() for cut in self.cut(query, axes)))
                    found |= dict.fromkeys((axes, each) for each in nodes)
        return sorted(found)

    def cut(self, query: Query, axes: Axes) -> list[npt.NDArray[np.int64]]:
        """The nodes that a query cuts, for each long attribute of a set."""
        long, steps = self._prior.long, dict(zip(query.axes, query.steps, strict=True))
        return [long[axis].shape.cut(steps[axis]) for axis in axes if axis in long]

    def centred(self, query: Query) -> tuple[Query, int, int]:
        """`laprasdp.belief.direct.centred` of a query, kept."""
        found = self._centred.get(query.mark)
        if found is None:
            if len(self._centred) >= _KEPT:
                self._centred.clear()
            found = self._centred[query.mark] = centred(query)
        return found

    def joint(self, queries: Sequence[Query]) -> Floats:
        """Prior covariance of some queries; that of the last large lot is kept, for designs ask again."""
        keys = tuple(query.mark for query in queries)
        kept = self._lots.get(keys)
        if kept is not None:
            return kept[0]
        joint = self._between(queries, queries)
        joint = (joint + joint.T) / 2
        if len(keys) > _LOT:
            self._lots.clear()
            self._lots[keys] = joint, {}
        return joint

    def beside(self, queries: Sequence[Query], others: Sequence[Query]) -> Floats | None:
        """(q, b) prior covariance of the last large lot with others; None if the queries are not that lot."""
        kept = self._lots.get(tuple(query.mark for query in queries)) if len(queries) > _LOT else None
        if kept is None:
            return None
        columns = kept[1]
        if len(columns) > _KEPT:
            columns.clear()
        missing = [query for query in others if query.mark not in columns]
        if missing:
            new = self._between(queries, missing).T.copy()
            columns |= {query.mark: column for query, column in zip(missing, new, strict=True)}
        return np.column_stack([columns[query.mark] for query in others]) if others else None

    def _between(self, queries: Sequence[Query], others: Sequence[Query]) -> Floats:
        basis = Basis(len(self._prior.domain), self._roots)
        basis.add(list(map(self.view, others)))
        return basis.covariances(list(map(self.view, queries)), self._prior.precisions)

    def _has_part(self, query: Query, subset: Axes) -> bool:
        """Whether the query's projection on the subspace of a set is not zero, in exact integers."""
        tensor, sizes = tensor_of(query), {}
        for axis, labels, classes in zip(query.axes, query.steps, tensor.shape, strict=True):
            root = self._roots.get(axis)
            sizes[axis] = class_sizes(labels, classes) if root is None else root.sizes(labels, classes)
        bound = query.sensitivity * math.prod(2 * int(size.sum()) for size in sizes.values())
        tensor = tensor if bound < 2**62 else tensor.astype(object)
        for axis in query.axes:
            inner = np.tensordot(sizes[axis], tensor, axes=(0, 0))
            whole = int(sizes[axis].sum())
            tensor = np.moveaxis(whole * tensor - inner, 0, -1) if axis in subset else inner
        return bool(np.any(tensor))
