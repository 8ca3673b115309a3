"""What shares of the budget lead to: errors of the predicted queries and of every kind of others.

Only public settings go in.  A measured query is reckoned at the best row for it that its turn allows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.belief.product import ProductBelief
from laprasdp.policy.crowd import Crowd, candidates
from laprasdp.policy.kinds import GROUP
from laprasdp.policy.pieces import alone, bounds_of, cut_off, nearest
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.strategy.joint import Joint
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.threads import blas_threads

ENOUGH = 0.25
"""Variance of a piece's noise, of what is not known of its query beside it: less is not worth its cost."""

Indices = npt.NDArray[np.intp]

_ANYWHERE = 0.2  # share of queries that meet a cell about which nothing is known, if all touch every cell
_MANY_MORE = 4  # rows of a strategy, for each learned since, up to which what it tells is brought forward
_ROUNDS = 3  # in which it is settled who is measured around half of the total


@dataclass(frozen=True)
class Shares:
    """Parts of the budget: for the prior, for the prediction release, for what the stream measures."""

    background: float
    prediction: float
    stream: float


class Outlook:
    """
    Errors that shares lead to, for the predicted queries and for each kind of others.

    Parameters
    ----------
    setting : Setting
    prior : Marginals
        The background release, if it had the whole budget.
    joint : Joint or None
        Strategy for the predicted queries.
    kinds : mapping of str to tuple of Query
    crowd : Crowd
    shares : (k,) array, optional
        Share of the stream that each query of all kinds stands for; all kinds alike otherwise.

    Attributes
    ----------
    crowded : (k,) array
        The share of the stream that meets each query in its most crowded cell, if all are of its kind: half
        of what is thought is the crowd of all kinds, half is learned from the stream.
    sharp : (k,) array
        How much more than itself the best row for it tells.
    crowd : Crowd
        With the queries that are measured around half of the total counted everywhere.
    rows : tuple of k Query
        What each adds to a predicted one with nearby bounds, if that is little; else itself.
    apart : (k,) array
        The share of the stream that is thought to meet that.
    """

    def __init__(
        self,
        setting: Setting,
        prior: Marginals,
        joint: Joint | None,
        kinds: Mapping[str, Sequence[Query]],
        crowd: Crowd,
        shares: Floats | None = None,
    ) -> None:
        self.setting, self.m, self.shares = setting, len(setting.predictions), shares
        typical = [query for queries in kinds.values() for query in queries]
        belief = ProductBelief(prior)
        bounds = bounds_of(setting.predictions)
        self.rows = tuple(nearest(query, bounds) for query in typical)
        pieces, places = cut_off(typical, self.rows)
        measured = () if joint is None or joint.queries == setting.predictions else joint.queries
        total = Query.constant(setting.domain, 1)
        every = finite(belief.covariance([*measured, *setting.predictions, *typical, *pieces, total]))
        sizes = [len(queries) for queries in kinds.values()]
        self.starts, self.sizes = np.cumsum([0, *sizes[:-1]]), np.array(sizes)
        self.power = setting.ledger_unit.total / 2.0**MU_BITS / setting.unit.max_rows**2
        covered = np.array([belief.covers(query) for query in typical])
        together = np.repeat([kind.startswith(GROUP) for kind in kinds], sizes)
        self._settle(typical, covered, together, crowd)
        fair = self.power / (1 + self.crowded * setting.length)
        self.sharp = np.array(
            [
                sharpness(belief, query, self.crowd, power) if known else 1.0
                for query, power, known in zip(typical, fair, covered, strict=True)
            ]
        )
        cut = places >= len(typical)
        self.apart = np.where(cut, [alone(row) for row in self.rows], self.crowded)
        self._first, self.predicted = len(measured), joint is not None
        self._own, self._rows = self.m + np.arange(len(typical)), self.m + places
        self._kept: dict[Shares, tuple[Floats, Floats]] = {}
        self._told = Refined(every, np.zeros((0, 1)) if joint is None else joint.encode)

    def _settle(
        self, typical: Sequence[Query], covered: np.ndarray, together: np.ndarray, crowd: Crowd
    ) -> None:
        """Who meets whom, and which queries without a prior are measured around half of the total."""
        own = np.array([crowd.touched(query) for query in typical]) | together[:, np.newaxis]
        least = np.array([alone(query) for query in typical])
        length, self.centred = self.setting.length, np.zeros(len(own), dtype=bool)
        for _ in range(_ROUNDS):
            met = own | self.centred[:, np.newaxis]
            around = mean_over(self.centred, self.shares)
            share = crowd.share + (1 - crowd.share) * around
            alike = np.repeat(np.add.reduceat(met, self.starts, axis=0, dtype=float), self.sizes, axis=0)
            others = np.repeat(np.maximum(self.sizes - 1, 1), self.sizes)[:, np.newaxis]
            thought = (share + np.maximum(alike - met, 0) / others) / 2
            anywhere = _ANYWHERE * around
            self.crowded = np.maximum(np.where(own, thought, 0).max(axis=1), np.maximum(least, anywhere))
            self.centred = ~covered & (4 * (1 + self.crowded * length) > 1 + length)
        self.crowd = replace(crowd, share=share, anywhere=anywhere)

    def deviations(self, shares: Shares, moved: float = 0.0) -> Floats:
        """(m + k + p + 1,) before the stream: p pieces, the total; `moved` is what batches bring to m."""
        if moved == 0:
            return self._looked(shares)[0]
        left = self._told.variances(self._relative(shares, moved))[self._first :]
        return np.asarray(np.sqrt(np.maximum(left, 0) / shares.background))

    def _looked(self, shares: Shares) -> tuple[Floats, Floats]:
        """Deviations before the stream; and (k,) the covariance of each with what it adds to a known one."""
        found = self._kept.get(shares)
        if found is None:
            power = self._relative(shares)
            left = np.maximum(self._told.variances(power)[self._first :], 0)
            shared = self._told.covariances(self._first + self._own, self._first + self._rows, power)
            found = np.sqrt(left / shares.background), shared / shares.background
            self._kept[shares] = found
        return found

    def _relative(self, shares: Shares, moved: float = 0.0) -> float:
        """Squared scale of the prediction release where the background has the whole budget."""
        return self.power * (shares.prediction + moved) / shares.background if self.predicted else 0.0

    def _pieces(self, shares: Shares, deviations: Floats, count: float) -> Floats:
        """(k,) deviations where what each adds to a known one is measured."""
        each, shared = self.power * shares.stream / (1 + self.apart * count), self._looked(shares)[1]
        return told_deviation(deviations[self._own], deviations[self._rows], shared, each)

    def others(self, shares: Shares, count: float) -> Floats:
        """Error of each kind where so many queries of it are measured."""
        power = self.power * shares.stream
        each = self.sharp * power / (1 + self.crowded * count)
        each = np.where(self.centred, 4 * power / (1 + count), each)
        before = self.deviations(shares)
        errors = measured_deviation(before[self._own], each)
        errors = np.where(self.centred, errors, np.minimum(errors, self._pieces(shares, before, count)))
        errors = np.sqrt(errors**2 + self.centred * before[-1] ** 2 / 4)
        return np.asarray(np.add.reduceat(errors, self.starts) / self.sizes)


class Refined:
    """
    What measuring combinations of the first queries, ever more strongly, tells of all.

    Parameters
    ----------
    joint : (k, k) array
        Covariance before.
    rows : (r, m) array
        Over the first m of the k queries; noise is of unit variance.
    """

    def __init__(self, joint: Floats, rows: Floats) -> None:
        self._joint, m = joint, rows.shape[1]
        with blas_threads(len(joint)):
            along = rows @ joint[:m]
            self._values, turn = np.linalg.eigh(along[:, :m] @ rows.T)
            self._seen = turn.T @ along
        self._squares, self._turned = self._seen**2, turn.T @ rows
        self._new: Floats = np.zeros((len(joint), 0))

    def after(self, new: Floats) -> Refined:
        """
        The same after other rows were learned, without another eigenproblem.

        Parameters
        ----------
        new : (k, j) array
            Covariance with the whitened rows: that of all is now `joint` less ``new @ new.T``.
        """
        other = copy.copy(self)
        with blas_threads(len(new)):
            other._seen = self._seen - (self._turned @ new[: self._turned.shape[1]]) @ new.T
        other._squares, other._new = other._seen**2, new
        return other

    def variances(self, power: float) -> Floats:
        """(k,) after the rows were measured with this squared scale."""
        left = self._joint.diagonal() - self._weights(power) @ self._squares
        if not self._new.size:
            return np.asarray(left)
        further = self._further(power)
        return np.asarray(
            left - np.einsum("kj,kj->k", self._new, self._new) - np.einsum("jk,jk->k", further, further)
        )

    def covariances(self, own: Indices, others: Indices, power: float) -> Floats:
        """Those of some queries with others, place by place."""
        told = np.tensordot(self._weights(power), self._seen[:, own] * self._seen[:, others], axes=1)
        if self._new.size:
            further = self._further(power)
            told = told + np.einsum("...j,...j->...", self._new[own], self._new[others])
            told = told + (further[:, own] * further[:, others]).sum(axis=0)
        return np.asarray(self._joint[own, others] - told)

    def _weights(self, power: float) -> Floats:
        """How much each direction tells."""
        return 1 / (self._values + 1 / power) if power > 0 else np.zeros(len(self._values))

    def _further(self, power: float) -> Floats:
        """(j, k) what the directions tell because the rows learned since have narrowed them (Woodbury)."""
        new, weights = self._turned @ self._new[: self._turned.shape[1]], self._weights(power)
        with blas_threads(len(new)):
            part = (weights[:, np.newaxis] * new).T
            lower = np.linalg.cholesky(np.eye(new.shape[1]) - part @ new)
            return np.asarray(scipy.linalg.solve_triangular(lower, part @ self._seen, lower=True))


class Telling:
    """
    What measuring a strategy again tells, after a release and, a few rows later, by these besides.

    Parameters
    ----------
    belief : GroupedBelief
        As it is now; it may learn more.
    queries : sequence of Query
        Those of the strategy first.
    rows : (r, m) array
    """

    def __init__(self, belief: GroupedBelief, queries: Sequence[Query], rows: Floats) -> None:
        self._belief, self._queries, self._rows = belief.copy(), queries, rows

    def __deepcopy__(self, memo: object) -> Telling:
        return self  # it never changes

    @cached_property
    def now(self) -> Refined:
        """At the state that it was made for."""
        return Refined(finite(self._belief.covariance(self._queries)), self._rows)

    def at(self, belief: GroupedBelief) -> Refined | None:
        """At a later state; None where it is rather worked out anew."""
        start = self._belief.rows
        few = 0 <= _MANY_MORE * (belief.rows - start) <= len(self._rows)
        new = belief.further(self._queries, start) if few else None
        return None if new is None else self.now.after(new)


def mean_over(values: npt.NDArray[Any], shares: Floats | None) -> float:
    """The mean of what each query has, by the share of the stream that it stands for, if that is known."""
    return float(values.mean() if shares is None else values @ shares)


def deviations(joint: Floats) -> Floats:
    """Standard deviations, where rounding may have left a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(joint.diagonal(), 0)))


def measured_deviation(deviation: Floats, power: Floats) -> Floats:
    """Deviations after each query was measured with this squared scale."""
    return np.asarray(deviation / np.sqrt(1 + power * deviation**2))


def told_deviation(own: Floats, rows: Floats, shared: Floats, power: Floats | float) -> Floats:
    """
    Deviations after a piece of each was measured, of this covariance with it.

    With this squared scale at most: more than `ENOUGH` of what the rest leaves is not looked for.
    """
    rest = np.maximum(own**2 - shared**2 / rows**2, 1e-9 * own**2)
    noise = np.maximum(1 / power, ENOUGH * rest)
    return np.asarray(np.sqrt(np.maximum(own**2 - shared**2 / (rows**2 + noise), 0)))


def sharpness(prior: ProductBelief, query: Query, crowd: Crowd, power: float) -> float:
    """
    How much more than the query itself the best row for it tells, where the query may use so much.

    Parameters
    ----------
    prior : ProductBelief
    query : Query
    crowd : Crowd
    power : float
        Squared scale that the query's own allowance buys.
    """
    rows = [query, *candidates(query, crowd)]
    if len(rows) == 1 or not prior.covers(query):
        return 1.0
    joint = prior.covariance(rows)
    weight = max(float(crowd.touched(query).mean()), 1e-9)
    before, best, found = float(joint[0, 0]), 0.0, 1.0
    for place, row in enumerate(rows):
        noise = row.sensitivity**2 / power
        costs = max(1.0, float(crowd.touched(row).mean()) / weight)
        signal = float(joint[0, place]) ** 2
        if signal / (float(joint[place, place]) + noise * costs) > best:
            best = signal / (float(joint[place, place]) + noise * costs)
            after = max(before - best, 1e-9 * before)
            found = (before / after - 1) / (power * before)
    return max(found, 1e-3)


def finite(joint: Floats) -> Floats:
    """A joint covariance in which nothing known has a large variance of its own."""
    known = np.isfinite(joint.diagonal())
    most = float(joint.diagonal()[known].max(initial=1.0))
    result = np.where(np.isnan(joint), 0.0, joint)
    result[~known] = result[:, ~known] = 0.0
    result[~known, ~known] = 1e6 * most
    return np.asarray(result)
