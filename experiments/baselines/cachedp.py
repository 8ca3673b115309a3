"""CacheDP under a fixed global budget: a private cache of tree counts, bought and refined as needed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from experiments.baselines.laplace import refined
from experiments.baselines.tree import Tree
from experiments.trial import Floats, Ints, Outcome, Trial

_FLOOR = 1e-9
"""Share of the budget below which nothing more is bought."""


@dataclass(frozen=True)
class CacheDP:
    r"""
    CacheDP, warmed with the prediction set.

    Attributes
    ----------
    warm : float
        Share of ε with which the strategy rows of the prediction set are bought before the stream.
    fanouts : tuple of int
        Fan-outs of the tree among which the plan chooses; a tree with one level of cells is always one.

    Notes
    -----
    **Mechanism.**  The strategy of every workload is a set of rows of one global matrix, a k-ary tree of
    counts.  The cache keeps a noisy count for each row that was bought, with its noise scale.  A query of
    accuracy requirement (α, β), here a variance v, goes through

    - MMM: rows that are cached accurately enough are free; the others are paid for, at the largest noise
      scale b that meets v, on the set of rows of least cost.  If the cache alone meets v, nothing is paid.
    - RP: a paid row that is cached with noise of scale b' is refined to b, which costs 1/b − 1/b' in place
      of 1/b (`experiments.baselines.laplace`).
    - SE: answers use every cached row, by least squares with the inverse variances.
    - PQ: the nodes of a level are disjoint, so that the whole level costs what one of its nodes does; a
      level is therefore always bought as a whole.

    **Accounting.**  Basic composition of ε, δ unused: level l at scale b_l is (1/b_l)-DP for neighbours
    that differ by one record, refinements included, so the run is (Σ_l 1/b_l)-DP.  What is bought depends
    on queries and scales only, never on noise or data; `Cache.buy` refuses to pass ε.

    **Fixed budget.**  CacheDP is given an accuracy and spends what it takes; here ε is given.  One v is
    required of all queries, the least that a rehearsal affords: the rest of the stream is drawn from the
    prediction set, in the expected share (one half if unknown, corrected by what arrives), and from the
    unpredicted queries seen so far (before the first: each cell with probability one half).  v is set
    before the stream and set anew at positions 2, 4, 8, …  If a query needs more than is left, what is left
    buys the best variance for it, and the cache answers from then on; a query that is no combination of
    cached rows is then refused.

    **Errors** are sums of independent Laplace noise, symmetric mixtures of Gaussians: their mean absolute
    value lies between 0.707 and 0.798 standard deviations, near the latter where many counts enter, so that
    the Gaussian law of the outcome is an upper bound.

    **What the description leaves free.**  The shape of the tree (here: fan-out by rehearsal); the sets of
    rows that MMM compares (here: all ranges of levels); how SE picks rows (here: all, weighted, which no
    choice beats); when RP applies (here: always, as it is never worse than fresh noise on the same row);
    (α, β) as a variance, by Chebyshev :math:`\alpha=\sqrt{v/\beta}`; and all of "fixed budget".

    References
    ----------
    Mazmudar, Humphries, Liu, Rafuse, He.  Cache me if you can: accuracy-aware inference engine for
    differentially private data exploration.  PVLDB 16 (2022), arXiv:2211.15732.
    """

    warm: float = 0.5
    fanouts: tuple[int, ...] = (2, 3, 4, 8, 16)

    def __call__(self, trial: Trial, seed: int) -> Outcome:
        start = time.perf_counter()
        noise, plan = (np.random.default_rng([seed, stage]) for stage in range(2))
        cells, epsilon = len(trial.counts), trial.budget.epsilon
        overlap = 0.5 if trial.expected_overlap is None else trial.expected_overlap
        guess = plan.integers(0, 2, (trial.horizon, cells))
        tried = []
        for fanout in sorted({min(fanout, max(cells, 2)) for fanout in (*self.fanouts, cells)}):
            tree = Tree(cells, fanout)
            cache = Cache(tree, trial.counts, epsilon, noise)
            known, others = tree.energies(trial.predictions), tree.energies(guess)
            levels = cache.warmed(known, self.warm * epsilon)
            rehearsed = _drawn(known, others, overlap, trial.horizon, np.random.default_rng(seed))
            _, error = affordable(tree, levels, rehearsed, epsilon - float(levels.sum()))
            tried.append((error, fanout, cache, levels, known, others))
        _, _, cache, levels, known, others = min(tried, key=lambda each: each[:2])
        cache.buy(levels)
        opened = time.perf_counter()
        predicted = {row.tobytes() for row in trial.predictions}
        asked = cache.tree.energies(trial.stream)
        fresh = np.array([row.tobytes() not in predicted for row in trial.stream])
        answers, stds = np.full(len(asked), math.nan), np.full(len(asked), math.nan)
        required = 0.0
        for place, (row, energies) in enumerate(zip(trial.stream, asked, strict=True)):
            if place & (place - 1) == 0:
                seen = asked[:place][fresh[:place]]
                share = (2 * overlap + place - len(seen)) / (2 + place)
                future = _drawn(known, seen if len(seen) else others, share, trial.horizon - place, plan)
                required, _ = affordable(cache.tree, cache.levels, future, cache.left)
            answers[place], stds[place] = cache.ask(row, energies, required)
        done = time.perf_counter()
        return Outcome(answers, stds, epsilon, done - opened, opened - start)


class Cache:
    """
    Noisy counts of whole levels of a tree.

    Parameters
    ----------
    tree : Tree
    counts : (n,) array
        The table.
    epsilon : float
        What may be spent altogether.
    rng : Generator
        Of the noise.

    Attributes
    ----------
    levels : (h+1,) array
        Inverse noise scale of each level, which is the ε it has cost; 0 where it was not bought.
    """

    def __init__(self, tree: Tree, counts: Ints, epsilon: float, rng: np.random.Generator) -> None:
        self.tree, self.epsilon, self._rng = tree, epsilon, rng
        self.levels = np.zeros(tree.height + 1)
        self._exact = tree.sums(counts)
        self._noise = [np.zeros_like(level) for level in self._exact]
        self._cells = np.zeros(tree.cells)

    @property
    def left(self) -> float:
        """ε that is not spent."""
        return self.epsilon - float(self.levels.sum())

    def variance(self, energies: Floats) -> float:
        """Of the answer that the cache has now; infinite where it has none."""
        return float(self.tree.variances(energies, self.levels**2 / 2))

    def warmed(self, energies: Floats, epsilon: float) -> Floats:
        """The levels that answer a workload best, by total variance, for `epsilon`."""
        if not len(energies):
            return self.levels
        return _best(self.tree, self.levels, energies.sum(axis=0), epsilon)

    def ask(self, row: Ints, energies: Floats, required: float) -> tuple[float, float]:
        """Answer and standard deviation; nan where the budget does not reach."""
        if self.variance(energies) > required and self.left > _FLOOR * self.epsilon:
            levels = cheapest(self.tree, self.levels, energies, required)
            if levels is None or float(levels.sum()) > self.epsilon:
                levels = _best(self.tree, self.levels, energies, self.left)
            self.buy(levels)
        variance = self.variance(energies)
        return (
            (float(row @ self._cells), math.sqrt(variance)) if variance < math.inf else (math.nan, math.nan)
        )

    def buy(self, levels: Floats) -> None:
        """
        Release or refine counts until each level has the inverse scale given; none may fall.

        Notes
        -----
        **Privacy.**  The cost is the rise of Σ_l 1/b_l, since one record changes one count of a level by one.
        """
        if (levels < self.levels).any() or float(levels.sum()) > self.epsilon * (1 + 1e-12):
            raise ValueError("levels may only rise, and their sum is at most the budget")
        for level, (before, after) in enumerate(zip(self.levels, levels, strict=True)):
            if after > before > 0:
                self._noise[level] = refined(self._noise[level], before, after, self._rng)
            elif after > before:
                self._noise[level] = self._rng.laplace(0, 1 / after, self._exact[level].shape)
        self.levels = levels
        noisy = [exact + noise for exact, noise in zip(self._exact, self._noise, strict=True)]
        self._cells = self.tree.estimate(noisy, levels**2 / 2)


def cheapest(tree: Tree, levels: Floats, energies: Floats, required: float) -> Floats | None:
    """
    MMM with RP: the levels of least cost with which a query has at most the required variance.

    Parameters
    ----------
    tree : Tree
    levels : (h+1,) array
        Inverse scales that are cached.
    energies : (h+1,) array
        Of the query.
    required : float
        In squared records, positive.

    Returns
    -------
    (h+1,) array or None
        None where no range of levels meets it.
    """
    paid = _ranges(tree.height)
    high = np.full(len(paid), 8 * math.sqrt(2 * energies.sum() / required))
    low = high * 1e-6

    def after(scale: Floats) -> Floats:
        return np.maximum(levels, paid * scale[:, None])

    met = tree.variances(energies, after(high) ** 2 / 2) <= required
    if not met.any():
        return None
    for _ in range(30):
        middle = np.sqrt(low * high)
        enough = tree.variances(energies, after(middle) ** 2 / 2) <= required
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    found = after(high)
    best: Floats = found[np.where(met, found.sum(axis=1), math.inf).argmin()]
    return best


def _best(tree: Tree, levels: Floats, energies: Floats, epsilon: float) -> Floats:
    """The levels of least variance for a query, at one scale on a range of levels, for `epsilon` more."""
    paid = _ranges(tree.height)
    low, high = np.zeros(len(paid)), np.full(len(paid), float(levels.max()) + epsilon)
    for _ in range(50):
        middle = (low + high) / 2
        fits = (np.maximum(levels, paid * middle[:, None]) - levels).sum(axis=1) <= epsilon
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    found = np.maximum(levels, paid * low[:, None])
    best: Floats = found[tree.variances(energies, found**2 / 2).argmin()]
    return best


def affordable(tree: Tree, levels: Floats, stream: Floats, epsilon: float) -> tuple[float, float]:
    """
    The least variance that can be required of all queries of a stream, and their mean deviation then.

    Parameters
    ----------
    tree : Tree
    levels : (h+1,) array
        Inverse scales that are cached.
    stream : (S, h+1) array
        Energies of the queries, in order.
    epsilon : float
        What may be spent.

    Notes
    -----
    Bisection to 2% on a rehearsal without data or noise.
    """
    norm = float(stream.sum(axis=1).max(initial=1.0))
    low, high = math.log(1e-6), math.log(1e8 * norm)
    error = math.inf
    while high - low > 0.02:
        middle = (low + high) / 2
        cost, deviation = _rehearsed(tree, levels, stream, math.exp(middle), epsilon)
        if cost <= epsilon:
            high, error = middle, deviation
        else:
            low = middle
    return math.exp(high), error


def _rehearsed(
    tree: Tree, levels: Floats, stream: Floats, required: float, epsilon: float
) -> tuple[float, float]:
    """What a stream costs, or more than `epsilon`, and the mean standard deviation of its answers."""
    first, place, total = levels, 0, 0.0
    while place < len(stream):
        variances = tree.variances(stream[place:], levels**2 / 2)
        short = np.flatnonzero(variances > required)
        reach = int(short[0]) if len(short) else len(variances)
        total += float(np.sqrt(variances[:reach]).sum())
        place += reach
        if reach < len(variances):
            bought = cheapest(tree, levels, stream[place], required * (1 - 1e-9))
            if bought is None or float((bought - first).sum()) > epsilon:
                return math.inf, math.inf
            levels = bought
    return float((levels - first).sum()), total / max(len(stream), 1)


def _ranges(height: int) -> Floats:
    """((h+1)(h+2)/2, h+1) the ranges of levels, as rows of 0 and 1."""
    place = np.arange(height + 1)
    return np.array([(place >= i) & (place <= j) for i in place for j in place[i:]], dtype=np.float64)


def _drawn(known: Floats, others: Floats, overlap: float, count: int, rng: np.random.Generator) -> Floats:
    """A stream of `count` queries, each from the first family with probability `overlap`."""
    if not len(known):
        overlap = 0.0
    hit = rng.random(count) < overlap
    stream = others[rng.integers(0, len(others), count)]
    if hit.any():
        stream[hit] = known[rng.integers(0, len(known), int(hit.sum()))]
    return stream
