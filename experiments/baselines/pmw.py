"""Private multiplicative weights, online: a synthetic distribution, corrected where it is far off."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from experiments.trial import Floats, Ints, Outcome, Trial
from laprasdp.privacy.gaussian import mu_of_pure


@dataclass(frozen=True)
class PMW:
    r"""
    Private multiplicative weights of Hardt and Rothblum, for a fixed budget and warmed with the predictions.

    Attributes
    ----------
    updates : float
        c, the most queries that are answered from the table, as a share of the horizon; never above 2n, as
        n independent answers determine the table.
    threshold : float
        T, in standard deviations of the noise with which an error is compared.
    sparse : float
        Share of the budget for finding out which queries are hard; the rest is for answering them.
    total : float
        Share of the budget for the number of rows, which is not taken to be public.
    passes : int
        Rounds over all answers so far at each update.

    Notes
    -----
    **Mechanism.**  The state is a distribution over the cells, uniform at first, times a noisy number of
    rows.  A query is easy if its answer by the state is, up to noise, within T of the truth, and is then
    answered by the state.  Otherwise it is hard: the table answers with fresh noise, and the state is
    multiplied by :math:`\exp(q\,(m-\hat m)/2N)` for this and, as further passes, for all earlier answers m,
    as MWEM does.  After c hard queries the state answers everything.  The prediction set is asked before
    the stream; at most half of the updates are for it.

    **Accounting.**  Gaussian DP, whose squares add up under adaptive composition, in c+1 parts: the number
    of rows (sensitivity 1); and c times one run of `AboveThreshold`, pure ε₀-DP and hence μ-GDP with
    :math:`\mu=2\Phi^{-1}(e^{\varepsilon_0}/(1+e^{\varepsilon_0}))`, that ends with its first hard query,
    and one Gaussian answer.  Restarting c runs costs √c where one run with cut-off c costs c.  Given what
    was released, the state is fixed, so that an error has sensitivity one for neighbours that differ by one
    record.

    **Parameters.**  The theory's choice, c = 4(N/T)² ln n, is far above S for the tables here: it is S and
    T is small.  The constants were chosen on Adult's ages, once, by error at overlap 0, 0.5 and 1; this
    favours PMW.

    Standard deviations are nan: the error of an easy query depends on the table.

    References
    ----------
    Hardt, Rothblum.  A multiplicative weights mechanism for privacy-preserving data analysis.  FOCS 2010.
    Hardt, Ligett, McSherry.  A simple and practical algorithm for differentially private data release.
    NIPS 2012.  Lyu, Su, Li.  Understanding the sparse vector technique for differential privacy.
    PVLDB 10 (2017).
    """

    updates: float = 1.0
    threshold: float = 0.25
    sparse: float = 0.5
    total: float = 0.02
    passes: int = 10

    def __call__(self, trial: Trial, seed: int) -> Outcome:
        start = time.perf_counter()
        server = Server(trial, self, np.random.default_rng(seed))
        for row in trial.predictions:
            server.ask(row, keep=server.updates // 2)
        opened = time.perf_counter()
        answers = np.array([server.ask(row) for row in trial.stream])
        done = time.perf_counter()
        unknown = np.full(len(answers), math.nan)
        return Outcome(answers, unknown, trial.budget.epsilon, done - opened, opened - start)


class AboveThreshold:
    """
    Tells for one value after the other whether it is above a threshold, until the first that is.

    Parameters
    ----------
    epsilon : float
        The whole run, the first value above included, is ε-DP.
    rng : Generator

    Notes
    -----
    **Privacy.**  Noise of scale 1/ε₁ on the threshold, drawn once, and 2/ε₂ on each value, ε₁ + ε₂ = ε, for
    values that one record changes by at most one (Lyu, Su, Li, Algorithm 1 with c = 1; no numeric answer is
    part of it).  ε₁ : ε₂ = 1 : 2^(2/3) has the least noise (ibid.).
    """

    def __init__(self, epsilon: float, rng: np.random.Generator) -> None:
        first = epsilon / (1 + 2 ** (2 / 3))
        self.threshold_scale, self.value_scale = 1 / first, 2 / (epsilon - first)
        self._rng, self._shift = rng, rng.laplace(0, self.threshold_scale)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one comparison."""
        return math.sqrt(2) * math.hypot(self.threshold_scale, self.value_scale)

    def above(self, value: float, threshold: float) -> bool:
        """Compare; the run is over where this is true."""
        return value + self._rng.laplace(0, self.value_scale) >= threshold + self._shift


class Server:
    """
    The state of one run.

    Parameters
    ----------
    trial : Trial
    design : PMW
    rng : Generator

    Attributes
    ----------
    updates : int
        Hard queries that may still be answered.
    spent : float
        μ² of everything that was released so far, the run of comparisons that is under way included.
    """

    def __init__(self, trial: Trial, design: PMW, rng: np.random.Generator) -> None:
        self._counts, self._design, self._rng = trial.counts, design, rng
        cells, budget = len(trial.counts), trial.budget.mu**2
        self.spent = design.total * budget
        self.rows = max(1.0, float(trial.counts.sum()) + rng.normal() / math.sqrt(self.spent))
        self.updates = max(1, min(round(design.updates * trial.horizon), 2 * cells))
        each = (1 - design.total) * budget / self.updates
        self._epsilon, self._answer = _pure(design.sparse * each), (1 - design.sparse) * each
        self._run = self._started()
        self._logs: Floats = np.zeros(cells)
        self._state: Floats = np.full(cells, self.rows / cells)
        self._known: list[tuple[Ints, float]] = []

    def ask(self, row: Ints, keep: int = 0) -> float:
        """The answer to one query; by the state alone once no more than `keep` updates are left."""
        guess = float(row @ self._state)
        if self.updates <= keep:
            return guess
        truth = float(row @ self._counts)
        if not self._run.above(abs(truth - guess), self._design.threshold * self._run.deviation):
            return guess
        answer = truth + self._rng.normal() / math.sqrt(self._answer)
        self.spent += self._answer
        self.updates -= 1
        if self.updates:
            self._run = self._started()
        self._known.append((row, answer))
        for _ in range(self._design.passes):
            for query, value in self._known:
                self._correct(query, value)
        return answer

    def _started(self) -> AboveThreshold:
        self.spent += mu_of_pure(self._epsilon) ** 2
        return AboveThreshold(self._epsilon, self._rng)

    def _correct(self, query: Ints, value: float) -> None:
        self._logs = self._logs + query * ((value - float(query @ self._state)) / (2 * self.rows))
        weights = np.exp(self._logs - self._logs.max())
        self._state = self.rows * weights / weights.sum()


def _pure(mu_squared: float) -> float:
    """The largest ε such that pure ε-DP costs at most `mu_squared`, rounded down."""
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        if mu_of_pure(middle) ** 2 <= mu_squared:
            low = middle
        else:
            high = middle
    return low
