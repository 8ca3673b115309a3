"""The design of PRIMM's first release on a small table: what to measure before the stream, and how strongly.

Candidates are compared by the errors that they lead to, for predicted queries and for typical others drawn
from public families, at the overlap that is expected or at several where none is.  No data is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.belief.measure import best_row
from laprasdp.queries.domain import Domain
from laprasdp.strategy.background import cell_moment, draw_vectors
from laprasdp.strategy.optimize import optimize_gram

MIXTURE = ("random", "point", "prefix", "range")
_FIRST = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9)  # shares of the budget for the first release
_QUICK = 200  # up to so many cells a design takes well under a second, and tries more
_MOSTLY = 0.6  # overlap from which on a design trusts the predictions more than later batches need it to
_ALL = 1 - 1e-3  # as good as everything, where nothing else is expected
_CAUTIOUS = {False: (0.03, 0.75), True: (0.8, 0.25)}  # trust and share for few cells, and for many


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
class Design:
    """
    What to release first.

    Attributes
    ----------
    strategy : (r, n) array
        Unit largest column norm; spans all cells.
    first : float
        Share of the budget for it; the stream has the rest.
    batch : (r, n) array
        The best strategy for the predicted queries alone, for later batches.
    background : (n, n) array
        Precision, of unit diagonal, that measuring typical other queries one by one adds up to.
    pure : bool
        Rather count each cell once with Laplace noise and the whole ε: nothing else is ever released.
    """

    strategy: Floats
    first: float
    batch: Floats
    background: Floats
    pure: bool = False


def design(
    domain: Domain,
    predicted: Predicted,
    horizon: int,
    overlap: float | None,
    *,
    laplace: float = math.inf,
    seed: int = 0,
) -> Design:
    """
    Choose strategy and share by comparing candidates.

    Parameters
    ----------
    domain : Domain
        Of n cells, small enough to write out.
    predicted : Predicted
        The prediction set; it may be empty.
    horizon : int
        S.
    overlap : float or None
        Share of the stream that is expected to be predicted.
    laplace : float
        Deviation of a cell counted with Laplace noise and the whole ε, against one with Gaussian noise and
        the whole μ.
    seed : int
        Typical queries are drawn with it.

    Notes
    -----
    Where the overlap is not known, or not large, later batches bring to the predicted queries what the
    stream does not need, so the first release keeps to a share and a trust that do well at every overlap:
    more for everybody where cells are few against the stream, less where they are many.  Otherwise the
    candidate of least expected absolute error is taken; families of unpredicted queries weigh the same.
    """
    rng = np.random.default_rng(seed)
    count = 2 if domain.size <= _QUICK else 1
    typical = [draw_vectors(domain, family, count, rng) for family in MIXTURE]
    errors, designs = [], []
    even = _histogram(domain.size, total=True)
    even = even.T @ even
    batch = optimal(domain, predicted, 1.0) if predicted else np.eye(domain.size)
    if _pure_is_better(domain, predicted, horizon, overlap, laplace, batch):
        return Design(batch, 1.0, batch, even, pure=True)
    if predicted and (overlap is None or 0 < overlap < _MOSTLY):
        trust, first = _CAUTIOUS[domain.size > 4 * horizon]
        return Design(optimal(domain, predicted, trust), first, batch, even)
    expected = overlap if overlap is not None and predicted else 0.0
    for strategy in _strategies(domain, predicted, expected, batch):
        precision = strategy.T @ strategy
        free = math.sqrt(2 / math.pi) * predicted.deviation(np.asarray(np.linalg.inv(precision)))
        for first in (*_FIRST, _ALL) if expected == 1 else _FIRST:
            halfway = precision * first + even * ((1 - first) / 2)
            inverse = np.asarray(np.linalg.inv(halfway))
            share = (1 - first) / max(1.0, (1 - expected) * horizon)
            others = [_other_error(halfway, inverse, queries, share) for queries in typical]
            mean = math.fsum(others) / len(others)
            errors.append(expected * free / math.sqrt(first) + (1 - expected) * mean)
            designs.append(Design(strategy, first, batch, even))
    return designs[int(np.argmin(errors))]


def _pure_is_better(
    domain: Domain,
    predicted: Predicted,
    horizon: int,
    overlap: float | None,
    laplace: float,
    batch: Floats,
) -> bool:
    """Whether Laplace counts beat the optimum of Gaussian noise for whatever is asked, one kind at a time."""
    pure = np.eye(domain.size) * laplace**2
    if predicted and overlap != 0:
        optimum = np.asarray(np.linalg.inv(batch.T @ batch))
        if predicted.deviation(pure) > predicted.deviation(optimum):
            return False
    for family in MIXTURE if overlap != 1 or not predicted else ():
        moment = cell_moment(domain, family)
        gaussian = min(horizon, optimize_gram(moment, gap=5e-2).value)  # each by itself, or all at once
        if laplace**2 * float(np.trace(moment)) > gaussian:
            return False
    return True


def _strategies(domain: Domain, predicted: Predicted, overlap: float, batch: Floats) -> list[Floats]:
    """Optimal strategies for some trusts in the predictions, and the histogram with and without the total."""
    found = [_histogram(domain.size, total=False), _histogram(domain.size, total=True)]
    if not predicted:
        return [*found, optimal(domain, predicted, 0.0)]
    if overlap == 1:
        return [*found, batch]
    trusts = (overlap, (1 + overlap) / 2) if domain.size <= _QUICK else ((1 + overlap) / 2,)
    return [*found, *(optimal(domain, predicted, trust) for trust in trusts)]


def optimal(domain: Domain, predicted: Predicted, trust: float) -> Floats:
    """
    The strategy of least absolute error where this share of the stream is predicted.

    Absolute errors are squared ones divided by their deviation, which is found by repetition.
    """
    families = [cell_moment(domain, family) for family in MIXTURE]
    inverse = np.eye(domain.size)
    for _ in range(3 if domain.size <= _QUICK else 2):
        others = sum(moment / math.sqrt(float(np.sum(moment * inverse))) for moment in families)
        gram = np.asarray(others) * (max(1 - trust, 1e-4) / len(families))
        if predicted:
            weights = predicted.importance / predicted.deviations(inverse)
            gram = gram + (predicted.vectors.T * weights) @ predicted.vectors * trust
        strategy = optimize_gram(gram, gap=1e-2).strategy
        inverse = np.asarray(np.linalg.inv(strategy.T @ strategy))
    return strategy


def _histogram(cells: int, *, total: bool) -> Floats:
    """One row a cell; with the total in the proportion that is optimal for random 0/1 queries."""
    if not total:
        return np.eye(cells)
    ratio = (math.sqrt(cells + 1) - 1) / cells
    point, whole = 1 / math.sqrt(1 + ratio), math.sqrt(ratio / (1 + ratio))
    return np.vstack([np.eye(cells) * point, np.full((1, cells), whole)])


def _other_error(precision: Floats, inverse: Floats, typical: Floats, share: float) -> float:
    """Error of a typical query after the best row that this share of the budget buys."""
    errors = []
    for query in typical:
        row = best_row(
            precision, inverse, query, np.full(len(query), math.sqrt(share)), tolerance=1e-2, sweeps=4
        )
        seen = inverse @ row
        before = float(query @ inverse @ query)
        errors.append(math.sqrt(before - float(query @ seen) ** 2 / (1 + float(row @ seen))))
    return math.sqrt(2 / math.pi) * math.fsum(errors) / len(errors)
