"""What shares of the budget lead to: errors of the predicted queries and of every kind of others.

Only public settings go in.  A measured query is reckoned at the best row for it that its turn allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.belief.product import ProductBelief
from laprasdp.policy.crowd import Crowd, candidates
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.threads import blas_threads

_ALONE = 0.05  # share of the stream that is thought to meet a query that meets none of the typical ones
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
    encode : (r, m) array or None
        Strategy over the predicted queries.
    kinds : mapping of str to tuple of Query
    crowd : Crowd

    Attributes
    ----------
    crowded : (k,) array
        The share of the stream that meets each query in its most crowded cell, if all are of its kind: half
        of what is thought is the crowd of all kinds, half is learned from the stream.
    sharp : (k,) array
        How much more than itself the best row for it tells.
    crowd : Crowd
        With the queries that are measured around half of the total counted everywhere.
    """

    def __init__(
        self,
        setting: Setting,
        prior: Marginals,
        encode: Floats | None,
        kinds: Mapping[str, Sequence[Query]],
        crowd: Crowd,
    ) -> None:
        self.setting, self.m = setting, len(setting.predictions)
        typical = [query for queries in kinds.values() for query in queries]
        belief = ProductBelief(prior)
        joint = finite(belief.covariance([*setting.predictions, *typical]))
        sizes = [len(queries) for queries in kinds.values()]
        self.starts, self.sizes = np.cumsum([0, *sizes[:-1]]), np.array(sizes)
        self.power = setting.ledger_unit.total / 2.0**MU_BITS / setting.unit.max_rows**2
        covered = np.array([belief.covers(query) for query in typical])
        self._settle(typical, covered, crowd)
        self.total = belief.variance(Query.constant(setting.domain, 1))
        fair = self.power / (1 + self.crowded * setting.length)
        self.sharp = np.array(
            [
                sharpness(belief, query, self.crowd, power) if known else 1.0
                for query, power, known in zip(typical, fair, covered, strict=True)
            ]
        )
        self.predicted = encode is not None
        self._refined = Refined(joint, np.zeros((0, self.m)) if encode is None else encode)

    def _settle(self, typical: Sequence[Query], covered: np.ndarray, crowd: Crowd) -> None:
        """Who meets whom, and which queries without a prior are measured around half of the total."""
        own = np.array([crowd.touched(query) for query in typical])
        length, self.centred = self.setting.length, np.zeros(len(own), dtype=bool)
        for _ in range(_ROUNDS):
            met = own | self.centred[:, np.newaxis]
            share = crowd.share + (1 - crowd.share) * self.centred.mean()
            alike = np.repeat(np.add.reduceat(met, self.starts, axis=0, dtype=float), self.sizes, axis=0)
            others = np.repeat(np.maximum(self.sizes - 1, 1), self.sizes)[:, np.newaxis]
            thought = (share + np.maximum(alike - met, 0) / others) / 2
            self.crowded = np.where(own, thought, _ALONE).max(axis=1)
            self.centred = ~covered & (4 * (1 + self.crowded * length) > 1 + length)
        self.crowd = replace(crowd, share=share)

    def deviations(self, shares: Shares, moved: float = 0.0) -> Floats:
        """(m + k,) before the stream; `moved` is the share that batches bring to the predicted ones."""
        power = self.power * (shares.prediction + moved)
        return np.asarray(np.sqrt(self._refined.variances(power / shares.background) / shares.background))

    def others(self, shares: Shares, count: float) -> Floats:
        """Error of each kind where so many queries of it are measured."""
        power = self.power * shares.stream
        each = self.sharp * power / (1 + self.crowded * count)
        each = np.where(self.centred, 4 * power / (1 + count), each)
        errors = measured_deviation(self.deviations(shares)[self.m :], each)
        errors = np.sqrt(errors**2 + self.centred * self.total / shares.background / 4)
        return np.asarray(np.add.reduceat(errors, self.starts) / self.sizes)


class Refined:
    r"""
    Variances after measuring combinations of the first queries, however strongly.

    Parameters
    ----------
    joint : (k, k) array
        Covariance before.
    rows : (r, m) array
        Over the first m of the k queries; noise is of unit variance.

    Notes
    -----
    With :math:`U\,\mathrm{diag}(\nu)\,U^\top=R\,joint\,R^\top` a squared scale of p takes
    :math:`\sum_i(U^\top R\,joint)_{iq}^2/(\nu_i+1/p)` off the variance of query q.
    """

    def __init__(self, joint: Floats, rows: Floats) -> None:
        self.before = joint.diagonal()
        with blas_threads(len(rows)):
            along = rows @ joint[: rows.shape[1]]
            inner = along[:, : rows.shape[1]] @ rows.T
            self._values, turn = np.linalg.eigh((inner + inner.T) / 2)
            self._seen = (turn.T @ along) ** 2

    def variances(self, power: float) -> Floats:
        """(k,) where the rows have this squared scale."""
        if power <= 0:
            return np.asarray(np.maximum(self.before, 0))
        return np.asarray(np.maximum(self.before - (1 / (self._values + 1 / power)) @ self._seen, 0))


def deviations(joint: Floats) -> Floats:
    """Standard deviations, where rounding may have left a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(joint.diagonal(), 0)))


def measured_deviation(deviation: Floats, power: Floats) -> Floats:
    """Deviations after each query was measured with this squared scale."""
    return np.asarray(deviation / np.sqrt(1 + power * deviation**2))


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
