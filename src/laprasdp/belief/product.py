r"""What is known about a table over a product domain: a Gaussian belief in the space of the queries.

The prior is a release of orthogonal subspaces (`Marginals`); every later row is a combination of queries.
A query is a short sum of products of one function an attribute, so that the covariance of two queries is
a few inner products, and nothing is ever as large as the domain.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.belief.basis import Basis, moved
from laprasdp.belief.direct import Direct, centred
from laprasdp.belief.groups import GroupPrior
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import Axes, Marginals, parts, root_of, subsets, tensor_of
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.terms import Terms, terms
from laprasdp.strategy.threads import blas_threads

_REFRESH = 256  # rows after which the factor is computed afresh; a quarter of all rows if that is more
_FLOOR = 1e-15  # share of a prior variance that rows leave at least
_BLOCK = 2**20  # pairs of terms looked at together
_PAIRS = 2**22  # groups times terms looked at together


@dataclass(frozen=True, eq=False)
class Prepared:
    """
    Queries whose joint covariance is asked for again and again: what the prior says of them is kept.

    Attributes
    ----------
    queries : tuple of m Query
    known : list of int
        Places of those that the prior spans.
    terms : list of Terms
        Of these.
    before : (k, k) array
        Their covariance before any row.
    """

    queries: tuple[Query, ...]
    known: list[int]
    terms: list[Terms]
    before: Floats


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
        self._roots = {axis: root_of(factor) for axis, factor in prior.factors.items()}
        self._inverses = {axis: root.T @ root for axis, root in self._roots.items()}
        self._released: dict[Axes, Floats] | None = None
        self._basis = Basis(prior.domain.shape)
        self._places: dict[str, int] = {}
        self._queries: list[Query] = []
        self._expected: Floats = np.zeros(0)  # (b,) prior means of the basis queries
        self._log: list[tuple[list[int], Floats, Floats]] = []  # places, (r, b') rows, (r,) values
        self._whitened: Floats = np.zeros((0, 0))  # V, with room to grow
        self._surprise: Floats = np.zeros(0)  # (k,) whitened values less their means
        self._owned, self._fresh = True, 0  # rows when the factor was last computed afresh
        self._direct: dict[str, Direct] = {}
        self._releases = 0

    @property
    def rows(self) -> int:
        """k, the rows learned after the prior."""
        return len(self._surprise)

    def learn(self, measurement: Measurement, values: Floats | None) -> None:
        """
        Condition on a release.

        Parameters
        ----------
        measurement : Measurement
            The prior itself, or `Rows`.
        values : (r,) array or None
            Noisy values; None for a rehearsal: variances are those of the release, means NaN.
        """
        if measurement is self.prior:
            self._released = None if values is None else self.prior.split(np.asarray(values, dtype=float))
            self._expected = np.array([self._prior(query)[0] for query in self._queries])
            self._refresh()
            return
        if not isinstance(measurement, Rows):
            raise TypeError("a belief learns from Rows and from the prior that it was made with")
        scale = 1 / np.sqrt(measurement.noise_variance)
        drawn = np.full(measurement.draws, np.nan) if values is None else np.asarray(values) * scale
        self._learn_rows(measurement, measurement.coefficients * scale, drawn)

    def estimate(self, query: Query) -> tuple[float, float] | None:
        """Unbiased value (NaN after a rehearsal) and exact variance, or None where nothing is known."""
        mean, variance = self._told(query)
        return (float(mean), float(variance)) if variance < np.inf else None

    def estimates(self, queries: Sequence[Query]) -> list[tuple[float, float] | None]:
        """`estimate` of each query; of groups all at once."""
        if not isinstance(queries, Groups):
            return [self.estimate(query) for query in queries]
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
        mean, variance = self._prior(query)
        seen = self._seen(query)
        return mean + float(seen @ self._surprise), _left(variance, seen)

    def _told_each(self, groups: Groups) -> tuple[Floats, Floats]:
        """(g,) values and (g,) variances of groups; infinite where nothing is known."""
        means, variances = np.zeros(len(groups)), np.full(len(groups), np.inf)
        for _, where in groups.slices:
            if not self.covers(groups[int(where[0])]):
                for place in where.tolist() if self._direct else ():
                    means[place], variances[place] = ProductBelief._told(self, groups[place])
                continue
            step = max(1, _PAIRS // max(self._basis.terms, 1))
            for part in (where[i : i + step] for i in range(0, len(where), step)):
                means[part], variances[part] = self._spanned(groups.at(part))
        return means, variances

    def _spanned(self, groups: Groups) -> tuple[Floats, Floats]:
        """Values and variances of groups that the prior spans, from the prior and the rows."""
        prior, basis = GroupPrior(groups, self.prior, self._roots), self._basis
        means = np.full(len(groups), np.nan) if self._released is None else prior.means(self._released)
        before = variances = prior.variances()
        if self.rows:
            factors = [factor[: basis.terms] for factor in basis.factors]
            kept = basis.means[:, : basis.terms], basis.coefficients[: basis.terms]
            joint = np.add.reduceat(prior.covariances(self._inverses, factors, *kept), basis.starts, axis=1)
            with blas_threads(min(len(groups), self.rows)):
                seen = joint @ self._factor.T
                means = means + seen @ self._surprise
            variances = np.maximum(before - np.einsum("ij,ij->i", seen, seen), before * _FLOOR)
        return means, variances

    def variance(self, query: Query) -> float:
        """Exact variance of `query`, in squared records; infinite where nothing is known."""
        known = self.estimate(query)
        return np.inf if known is None else known[1]

    def prepare(self, queries: Sequence[Query]) -> Prepared:
        """The part of a joint covariance that no row changes; good for every belief with this prior."""
        known = [i for i, query in enumerate(queries) if self.covers(query)]
        found, basis = [terms(queries[i]) for i in known], Basis(self.prior.domain.shape)
        for each in found:
            basis.add(each)
        before = self._joint(found, basis)
        before = (before + before.T) / 2
        np.fill_diagonal(before, [self._prior(queries[i])[1] for i in known])
        return Prepared(tuple(queries), known, found, before)

    def covariance(self, queries: Sequence[Query] | Prepared) -> Floats:
        """
        Joint covariance of the errors of several queries.

        Returns
        -------
        (m, m) array
            A query of which nothing is known has infinite variance and covariance 0.  NaN between a
            query without and one with a prior where one dense release measured both: it is not tracked.
        """
        asked = queries if isinstance(queries, Prepared) else self.prepare(queries)
        queries, known = asked.queries, asked.known
        joint = np.zeros((len(queries), len(queries)))
        own = {i: self._own(query) for i, query in enumerate(queries) if i not in set(known)}
        rows, spread = np.zeros(len(queries)), 0.0
        if any(mine is not None and mine.total for mine in own.values()):
            beside = ProductBelief.covariance(
                self, [*(queries[i] for i in known), Query.constant(self.prior.domain, 1)]
            )
            rows[known], spread = beside[-1, :-1], float(beside[-1, -1])
        if known:
            with_basis = self._joint(asked.terms, self._basis)
            with blas_threads(len(known)):
                seen = with_basis @ self._factor.T
                left = asked.before - seen @ seen.T
            np.fill_diagonal(left, np.maximum(left.diagonal(), asked.before.diagonal() * _FLOOR))
            joint[np.ix_(known, known)] = left
        for i, mine in own.items():
            if mine is None:
                joint[i, i] = np.inf
                continue
            joint[i, known] = joint[known, i] = np.nan if mine.mixed else mine.total * rows[known]
            for j, theirs in own.items():
                if theirs is not None:
                    joint[i, j] = mine.covariance(theirs) + mine.total * theirs.total * spread
        return joint

    def covers(self, query: Query) -> bool:
        """Whether the prior spans `query`: each part of it lies in a released subspace; exact."""
        missing = [s for s in subsets(query.axes) if s not in self.prior.precisions]
        return not any(_has_part(query, s) for s in reversed(missing))

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

    def _own(self, query: Query) -> Direct | None:
        """What the query's own measurements say of it, or those of half of it around the total."""
        base, scale, shift = centred(query)
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
        released = self.prior.precisions
        wanted = [s for s in subsets(query.axes) if s in released]
        mean, variance = np.nan if self._released is None else 0.0, 0.0
        for subset, part in parts(query, self._roots, wanted).items():
            flat = part.reshape(-1)
            variance += float(flat @ flat) / released[subset]
            if self._released is not None:
                mean += float(flat @ self._released[subset].reshape(-1)) / released[subset] ** 0.5
        return mean, variance

    def _seen(self, query: Query) -> Floats:
        """(k,) covariance of a query with the whitened rows."""
        (with_basis,) = self._joint([terms(query)], self._basis)
        with blas_threads(1):
            return np.asarray(self._factor @ with_basis)

    def _joint(self, asked: Sequence[Terms], basis: Basis) -> Floats:
        """(a, b) prior covariance of each query with each query of a basis."""
        alike, joint = defaultdict[Axes, list[int]](list), np.zeros((len(asked), len(basis.starts)))
        for place, each in enumerate(asked):
            alike[tuple(sorted(each.factors))].append(place)
        for axes, places in alike.items():
            coefficients = np.concatenate([asked[place].coefficients for place in places])
            factors = {a: np.concatenate([asked[place].factors[a] for place in places]) for a in axes}
            owners = np.repeat(places, [len(asked[place].coefficients) for place in places])
            step = max(1, _BLOCK // max(basis.terms, 1))
            for part in (slice(i, i + step) for i in range(0, len(owners), step)):
                cut = Terms(coefficients[part], {axis: factor[part] for axis, factor in factors.items()})
                np.add.at(joint, owners[part], self._covariances(cut, basis))
        return joint

    def _covariances(self, asked: Terms, basis: Basis) -> Floats:
        """(t, b) prior covariance of some terms over the same axes with each query of a basis."""
        count, axes = basis.terms, sorted(asked.factors)
        base = np.ones(count)
        for axis in set(range(len(basis.factors))) - set(axes):
            base = base * basis.means[axis, :count]
        inside, outside = {}, {}
        for axis in axes:
            factor = asked.factors[axis]
            outside[axis] = np.outer(factor.mean(axis=1), basis.means[axis, :count])
            if axis in self._inverses:
                inside[axis] = factor @ self._inverses[axis] @ basis.factors[axis][:count].T
        total = np.zeros((len(asked.coefficients), count))
        for subset, precision in self.prior.precisions.items():
            if set(subset) <= set(axes):
                product = base / precision
                for axis in axes:
                    product = product * (inside if axis in subset else outside)[axis]
                total += product
        total *= asked.coefficients[:, np.newaxis] * basis.coefficients[:count]
        return np.add.reduceat(total, basis.starts, axis=1) if count > len(basis.starts) else total

    def _learn_rows(self, measurement: Rows, rows: Floats, values: Floats) -> None:
        """Give each query without prior its own estimate, and project it out of the rows for the rest."""
        queries = tuple(measurement.queries)
        spanned = np.array([self.covers(query) for query in queries])
        open_ = np.flatnonzero(~spanned)
        if len(open_):
            self._releases += 1
            mixed = bool(((rows[:, spanned] != 0).any(axis=1) & (rows[:, open_] != 0).any(axis=1)).any())
            for place, weights in zip(open_, _decoded(measurement, rows, open_), strict=False):
                base, scale, shift = centred(queries[place])
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
        asked = [terms(query) for query in queries]
        for query, found in zip(queries, asked, strict=True):
            if query.key not in self._places:
                self._places[query.key] = len(self._queries)
                self._queries.append(query)
                self._basis.add(found)
        self._expected = np.append(self._expected, [self._prior(q)[0] for q in self._queries[before:]])
        places, b = [self._places[query.key] for query in queries], len(self._queries)
        self._log.append((places, rows, values))
        if not self._owned or k + r > len(self._whitened) or b > self._whitened.shape[1]:
            self._whitened, self._owned = moved(self._factor[:, :before], (2 * (k + r), 2 * b)), True
        prior = self._joint(asked, self._basis)  # (b', b)
        old = self._whitened[:k, :b]
        with blas_threads(min(k + 1, r)):
            along = rows @ (prior @ old.T)  # (r, k)
            inner = rows @ prior[:, places] @ rows.T
            lower = np.linalg.cholesky((inner + inner.T) / 2 - along @ along.T + np.eye(r))
            surprise = values - rows @ self._expected[places] - along @ self._surprise
            news = np.column_stack([_wide(places, rows, b) - along @ old, surprise])
            news = scipy.linalg.solve_triangular(lower, news, lower=True, check_finite=False)
        self._whitened[k : k + r, :b] = news[:, :b]
        self._surprise = np.concatenate([self._surprise, news[:, b]])
        if self.rows - self._fresh >= max(_REFRESH, self.rows // 4):
            self._refresh()

    def _whiten(self) -> tuple[Floats, Floats]:
        """V and the whitened surprises, from the rows as they were learned."""
        if not self._log:
            return self._factor, self._surprise
        b = len(self._queries)
        stacked = np.concatenate([_wide(places, rows, b) for places, rows, _ in self._log])
        values = np.concatenate([values for _, _, values in self._log])
        prior = self._joint([terms(query) for query in self._queries], self._basis)
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
        self._fresh = self.rows


def _left(prior: float, seen: Floats) -> float:
    """Variance that rows leave; rounding never makes it smaller than the prior's own."""
    return max(prior - float(seen @ seen), prior * _FLOOR)


def _wide(places: list[int], rows: Floats, count: int) -> Floats:
    """(r, count) rows over all basis queries."""
    wide = np.zeros((len(rows), count))
    np.add.at(wide.T, places, rows.T)
    return wide


def _has_part(query: Query, subset: Axes) -> bool:
    """Whether the query's projection on the subspace of a set is not zero, in exact integers."""
    bound = query.sensitivity * math.prod(2 * query.domain.shape[axis] for axis in query.axes)
    tensor = tensor_of(query) if bound < 2**62 else tensor_of(query).astype(object)
    for axis, labels in zip(query.axes, query.labels, strict=True):
        sizes = np.bincount(labels, minlength=len(tensor))
        inner = np.tensordot(sizes, tensor, axes=(0, 0))
        tensor = np.moveaxis(len(labels) * tensor - inner, 0, -1) if axis in subset else inner
    return bool(np.any(tensor))


def _decoded(measurement: Rows, rows: Floats, places: npt.NDArray[np.intp]) -> list[Floats]:
    """For some queries of a release, the weights on its values that give them; none where there are none."""
    if isinstance(measurement.matrix, int):
        return [np.eye(len(rows))[place] / rows[place, place] for place in places]
    try:
        return list(measurement.decoding[places] * np.sqrt(measurement.noise_variance))
    except (ArithmeticError, np.linalg.LinAlgError):
        return []
