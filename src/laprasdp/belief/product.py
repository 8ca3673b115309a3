r"""What is known about a table over a product domain: a Gaussian belief in the space of the queries.

The prior is a release of orthogonal subspaces (`Marginals`); every later row is a combination of queries.
A query is a short sum of products of one function an attribute, so that the covariance of two queries is
a few inner products, and nothing is ever as large as the domain.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.belief.basis import Basis, moved, wide
from laprasdp.belief.direct import Direct, decoded, joint_of
from laprasdp.belief.group_prior import GroupPrior
from laprasdp.belief.query_prior import told_by
from laprasdp.belief.views import Views
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.drawn import Drawn, DrawnPart
from laprasdp.strategy.factor import root_of
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.threads import blas_threads

_REFRESH = 256  # releases after which the factor is computed afresh; a quarter of all rows if that is more
_FLOOR = 1e-15  # share of a prior variance that rows leave at least
_PAIRS = 2**22  # groups times terms looked at together


class ProductBelief:
    r"""
    The prior release conditioned on every row measured since.

    Parameters
    ----------
    prior : Marginals
        Released or only designed; `learn` it with its values to have means.

    Notes
    -----
    With :math:`C_i^+=H_i^\top H_i` and the bar for the mean over an attribute's levels,

    .. math:: cov(q,q')=\sum_s m_s^{-1}\prod_{i\in s}(H_iq_i)^\top H_iq'_i\prod_{i\notin s}\bar q_i\bar q'_i

    summed over pairs of terms.  Rows B over k basis queries with unit noise are kept whitened,
    :math:`V=L^{-1}B` with :math:`LL^\top=B\,cov\,B^\top+I`: a query costs one product with V, a row
    one more row of V.  A query with a part outside every subspace of the prior has no prior: its own
    measurements are its estimate, and what a release says about the others is taken with that query
    projected out, which is exact for an improper prior on it.  Such a query q is also known from a
    measurement of 2q less the number of rows, of which the prior knows.

    References
    ----------
    ResidualPlanner, arXiv:2305.08175 (2023), for the prior; Rasmussen, Williams.  Gaussian processes for
    machine learning (2006), section 2.7, for the improper part.
    """

    def __init__(self, prior: Marginals) -> None:
        self.prior = prior
        shape = prior.domain.shape
        self._roots = {axis: root_of(shape[axis], factor) for axis, factor in prior.factors.items()}
        self._released: dict[DrawnPart, Floats] | None = None
        self._views = Views(prior, self._roots)  # the same for all copies
        self._basis = Basis(len(shape), self._roots)
        self._places: dict[str, int] = {}
        self._queries: list[Query] = []
        self._expected: Floats = np.zeros(0)  # (b,) prior means of the basis queries
        self._log: list[tuple[list[int], Floats, Floats]] = []  # places, (r, b') rows, (r,) values
        self._whitened: Floats = np.zeros((0, 0))  # V, with room to grow
        self._surprise: Floats = np.zeros(0)  # (k,) whitened values less their means
        self._owned, self._fresh = True, 0  # releases when the factor was last computed afresh
        self._direct: dict[str, Direct] = {}
        self._releases = 0

    @property
    def rows(self) -> int:
        """k, the rows learned after the prior."""
        return len(self._surprise)

    @property
    def age(self) -> int:
        """How much it has learned after the prior: for each answer, when it was told."""
        return self.rows

    @property
    def queries(self) -> Sequence[Query]:
        """The queries that these rows are made of."""
        return self._queries

    def learn(self, measurement: Measurement, values: Floats | None) -> None:
        """
        Condition on a release.

        Parameters
        ----------
        measurement : Measurement
            The prior itself, nodes of it, or `Rows`.
        values : (r,) array or None
            Noisy values; None for a rehearsal: variances are those of the release, means NaN.
        """
        if isinstance(measurement, Drawn):
            if self._released is not None and values is not None:
                self._released = self._released | measurement.split(np.asarray(values, dtype=float))
            return
        if measurement is self.prior:
            split = None if values is None else self.prior.split(np.asarray(values, dtype=float))
            self._released = None if split is None else {(axes, ()): part for axes, part in split.items()}
            self._expected = np.array([self._prior(query)[0] for query in self._queries])
            self._refresh()
            return
        if not isinstance(measurement, Rows):
            raise TypeError("a belief learns from Rows and from the prior that it was made with")
        scale = 1 / np.sqrt(measurement.noise_variance)
        drawn = np.full(measurement.draws, np.nan) if values is None else np.asarray(values) * scale
        self._learn_rows(measurement, measurement.coefficients * scale, drawn)

    def estimate(self, query: Query) -> tuple[float, float] | None:
        """
        Unbiased value and exact variance, or None where nothing is known.

        The value is NaN after a rehearsal, and where nodes that it rests on were not drawn (`undrawn`).
        """
        mean, variance = self._told(query)
        return (float(mean), float(variance)) if variance < np.inf else None

    def estimates(self, queries: Sequence[Query]) -> list[tuple[float, float] | None]:
        """`estimate` of each query, all at once."""
        means, variances = self._told_each(queries)
        pairs = zip(means.tolist(), variances.tolist(), strict=True)
        return [pair if pair[1] < np.inf else None for pair in pairs]

    def _told(self, query: Query) -> tuple[float, float]:
        """Value and variance of a query; infinite where nothing is known."""
        if not self.covers(query):
            own = self._own(query)
            if own is None:
                return 0.0, np.inf
            rows, spread = self._rows_known if own.total else (0.0, 0.0)
            return own.value + own.total * rows, own.covariance(own) + own.total**2 * spread
        (mean, variance), (seen,) = self._prior(query), self._seen([query])
        return mean + float(seen @ self._surprise), _left(variance, seen)

    def _told_each(self, groups: Sequence[Query]) -> tuple[Floats, Floats]:
        """(g,) values and (g,) variances of queries, as groups are; infinite where nothing is known."""
        means, variances = np.zeros(len(groups)), np.full(len(groups), np.inf)
        if not isinstance(groups, Groups):
            spanned = [place for place, query in enumerate(groups) if self.covers(query)]
            for place in set(range(len(groups))) - set(spanned):
                means[place], variances[place] = ProductBelief._told(self, groups[place])
            lot = [groups[place] for place in spanned]
            seen = self._seen(lot) if lot else ()
            for place, query, along in zip(spanned, lot, seen, strict=True):
                mean, variance = self._prior(query)
                means[place], variances[place] = mean + along @ self._surprise, _left(variance, along)
            return means, variances
        for function, where in groups.slices:
            alone = not self.covers(groups[int(where[0])])
            if alone or not self.prior.long.keys().isdisjoint({*groups.by, *function.axes}):
                for place in where.tolist() if self._direct or not alone else ():
                    means[place], variances[place] = ProductBelief._told(self, groups[place])
                continue
            step = max(1, _PAIRS // max(self._basis.count, 1))
            for part in (where[i : i + step] for i in range(0, len(where), step)):
                means[part], variances[part] = self._spanned(groups.at(part))
        return means, variances

    def _spanned(self, groups: Groups) -> tuple[Floats, Floats]:
        """Values and variances of groups that the prior spans, from the prior and the rows."""
        prior, released = GroupPrior(groups, self.prior, self._roots), self._released
        tensors = (
            {} if released is None else {axes: part for (axes, nodes), part in released.items() if not nodes}
        )
        means = np.full(len(groups), np.nan) if released is None else prior.means(tensors)
        before = variances = prior.variances()
        if self.rows:
            joint = self._basis.by_query(prior.covariances(self._basis))
            with blas_threads(min(len(groups), self.rows)):
                seen = joint @ self._factor.T
                means = means + seen @ self._surprise
            variances = np.maximum(before - np.einsum("ij,ij->i", seen, seen), before * _FLOOR)
        return means, variances

    def variance(self, query: Query) -> float:
        """Exact variance of `query`, in squared records; infinite where nothing is known."""
        known = self.estimate(query)
        return np.inf if known is None else known[1]

    def covariance(self, queries: Sequence[Query], when: Sequence[int] | None = None) -> Floats:
        """
        Joint covariance of the errors of several queries.

        Parameters
        ----------
        queries : sequence of m Query
        when : sequence of m int, optional
            The age at which each was told; now by default.

        Returns
        -------
        (m, m) array
            A query of which nothing is known has infinite variance and covariance 0.  NaN between a
            query without and one with a prior where one dense release measured both: it is not tracked.

        Notes
        -----
        Two of different times have the covariance of the later one (docs/proofs/primm.md, theorem 1c).
        """
        times = np.full(len(queries), self.rows) if when is None else np.asarray(when)
        joint, known = (
            np.zeros((len(queries), len(queries))),
            np.array([*map(self.covers, queries)], dtype=bool),
        )
        own = {i: self._own(queries[i]) for i in np.flatnonzero(~known).tolist()}
        measured = {i: mine for i, mine in own.items() if mine is not None}
        ends, back = np.unique([times[i] for i in measured], return_inverse=True)  # when the total is told
        total = [Query.constant(self.prior.domain, 1)] * len(ends)
        lot, k = [*itertools.compress(queries, known), *total], int(known.sum())
        after = self._after(lot, np.concatenate([times[known], ends.astype(int)]))
        joint[np.ix_(known, known)] = after[:k, :k]
        for i in own:
            joint[i, i] = np.inf
        for (i, mine), end in zip(measured.items(), back.tolist(), strict=True):
            joint[i, known] = joint[known, i] = np.nan if mine.mixed else mine.total * after[k + end, :k]
        if measured:
            spread = after[k:, k:][np.ix_(back, back)]
            joint[np.ix_(list(measured), list(measured))] = joint_of(list(measured.values()), spread)
        return joint

    def _after(self, queries: Sequence[Query], times: npt.NDArray[np.int64]) -> Floats:
        """The joint covariance of queries that the prior spans, each as of so many rows."""
        if not len(queries):
            return np.zeros((0, 0))
        joint, seen = self._views.joint(queries).copy(), self._seen(queries)
        variances = [
            _left(variance, along[:time])
            for variance, along, time in zip(joint.diagonal().tolist(), seen, times.tolist(), strict=True)
        ]
        later = np.maximum.outer(times, times)
        for time in np.unique(times).tolist():
            with blas_threads(1):
                told = seen[:, :time] @ seen[:, :time].T
            joint -= np.where(later == time, told, 0.0)
        np.fill_diagonal(joint, variances)
        return joint

    def further(self, queries: Sequence[Query], start: int) -> Floats | None:
        """
        What the rows after the first `start` tell of several queries.

        Returns
        -------
        (m, k - start) array or None
            Covariance with them, whitened: it times its transpose is what they take from the joint one.
            None where one of the queries has estimates of its own besides.
        """
        if any(self._own(query) is not None for query in queries if not self.covers(query)):
            return None
        known = np.array([self.covers(query) for query in queries])
        found, lot = np.zeros((len(queries), self.rows - start)), [*itertools.compress(queries, known)]
        self._views.joint(lot)  # what `_seen` looks up
        found[known] = self._seen(lot, start)
        return found

    def covers(self, query: Query) -> bool:
        """Whether the prior spans `query`, and not by very many nodes of long attributes."""
        return self._views.covers(query)

    def parts(self, queries: Sequence[Query]) -> list[DrawnPart]:
        """Nodes of long attributes that the values of some queries rest on, where the prior spans them."""
        return self._views.parts(queries)

    def undrawn(self, queries: Sequence[Query]) -> list[DrawnPart]:
        """Those of them that were not drawn yet."""
        return [part for part in self.parts(queries) if part not in (self._released or ())]

    def drift(self) -> float:
        """Largest deviation of the factor from one computed afresh, relative to its largest entry."""
        fresh = self._whiten()[0]
        return float(np.abs(self._factor - fresh).max() / np.abs(fresh).max()) if fresh.size else 0.0

    def copy(self) -> Self:
        """An independent belief in the same state; arrays are shared until one of the two grows."""
        other = copy.copy(self)
        other._basis, other._owned = self._basis.copy(), False
        other._places, other._queries, other._log = dict(self._places), list(self._queries), list(self._log)
        other._direct = dict(self._direct)
        return other

    def __deepcopy__(self, memo: object) -> ProductBelief:
        return self.copy()

    def _own(self, query: Query) -> Direct | None:
        """What the query's own measurements say of it, or those of half of it around the total."""
        base, scale, shift = self._views.centred(query)
        found = self._direct.get(base.key)
        return None if found is None else found.scaled(scale, shift)

    @property
    def _rows_known(self) -> tuple[float, float]:
        """Mean and variance of the number of rows."""
        return ProductBelief._told(self, Query.constant(self.prior.domain, 1))

    @property
    def _factor(self) -> Floats:  # V, (k, b)
        return self._whitened[: self.rows, : len(self._queries)]

    def _prior(self, query: Query) -> tuple[float, float]:
        """Mean and variance of a query that the prior spans."""
        return told_by(self.prior, query, self._roots, self._views, self._released)

    def _seen(self, queries: Sequence[Query], start: int = 0) -> Floats:
        """(q, k - start) covariance of queries that the prior spans with the whitened rows from there on."""
        beside = self._views.beside(queries, self._queries)
        if beside is None:
            beside = self._basis.covariances(list(map(self._views.view, queries)), self.prior.precisions)
        with blas_threads(1):
            return np.asarray(beside @ self._factor[start:].T)

    def _learn_rows(self, measurement: Rows, rows: Floats, values: Floats) -> None:
        """Give each query without prior its own estimate, and project it out of the rows for the rest."""
        queries = tuple(measurement.queries)
        spanned = np.array([self.covers(query) for query in queries])
        open_ = np.flatnonzero(~spanned)
        if len(open_):
            self._releases += 1
            mixed = bool(((rows[:, spanned] != 0).any(axis=1) & (rows[:, open_] != 0).any(axis=1)).any())
            for place, weights in zip(open_, decoded(measurement, rows, open_), strict=False):
                base, scale, shift = self._views.centred(queries[place])
                own = Direct(float(weights @ values), -shift, {self._releases: weights}, mixed)
                own, before = own.scaled(1 / scale), self._direct.get(base.key)
                spread = self._rows_known[1] if before is not None else 0.0
                self._direct[base.key] = own if before is None else before.joined(own, spread)
            untouched = (rows[:, open_] == 0).all(axis=1)
            free = scipy.linalg.null_space(rows[:, open_].T).T if mixed else np.eye(len(rows))[untouched]
            rows, values = free @ rows, free @ values
        kept = np.flatnonzero(spanned & (rows != 0).any(axis=0))
        if len(kept):
            self._grow([queries[i] for i in kept], rows[:, kept], values)

    def _grow(self, queries: list[Query], rows: Floats, values: Floats) -> None:
        """Add rows over queries that have a prior."""
        before, k, r = len(self._queries), self.rows, len(rows)
        asked = [self._views.view(query) for query in queries]
        new = {query.mark: place for place, query in enumerate(queries) if query.mark not in self._places}
        self._places |= {key: before + place for place, key in enumerate(new)}
        self._queries += [queries[place] for place in new.values()]
        self._basis.add([asked[place] for place in new.values()])
        self._expected = np.append(self._expected, [self._prior(q)[0] for q in self._queries[before:]])
        places, b = [self._places[query.mark] for query in queries], len(self._queries)
        self._log.append((places, rows, values))
        if not self._owned or k + r > len(self._whitened) or b > self._whitened.shape[1]:
            self._whitened, self._owned = moved(self._factor[:, :before], (2 * (k + r), 2 * b)), True
        prior = self._basis.covariances(asked, self.prior.precisions)  # (b', b)
        old = self._whitened[:k, :b]
        with blas_threads(min(k + 1, r)):
            along = rows @ (prior @ old.T)  # (r, k)
            inner = rows @ prior[:, places] @ rows.T
            lower = np.linalg.cholesky((inner + inner.T) / 2 - along @ along.T + np.eye(r))
            surprise = values - rows @ self._expected[places] - along @ self._surprise
            news = np.column_stack([wide(places, rows, b) - along @ old, surprise])
            news = scipy.linalg.solve_triangular(lower, news, lower=True, check_finite=False)
        self._whitened[k : k + r, :b] = news[:, :b]
        self._surprise = np.concatenate([self._surprise, news[:, b]])
        if len(self._log) - self._fresh >= max(_REFRESH, self.rows // 4):
            self._refresh()

    def _whiten(self) -> tuple[Floats, Floats]:
        """V and the whitened surprises, from the rows as they were learned."""
        if not self._log:
            return self._factor, self._surprise
        b = len(self._queries)
        stacked = np.concatenate([wide(places, rows, b) for places, rows, _ in self._log])
        values = np.concatenate([values for _, _, values in self._log])
        prior = self._basis.covariances(list(map(self._views.view, self._queries)), self.prior.precisions)
        with blas_threads(len(stacked)):
            matrix = stacked @ ((prior + prior.T) / 2) @ stacked.T + np.eye(len(stacked))
            lower = np.linalg.cholesky(matrix)
            right = np.column_stack([stacked, values - stacked @ self._expected])
            solved = scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False)
        return solved[:, :b], solved[:, b]

    def _refresh(self) -> None:
        if self._log:
            factor, self._surprise = self._whiten()
            self._whitened, self._owned = np.ascontiguousarray(factor), True
        self._fresh = len(self._log)


def _left(prior: float, seen: Floats) -> float:
    """Variance that rows leave; rounding never makes it smaller than the prior's own."""
    return max(prior - float(seen @ seen), prior * _FLOOR)
