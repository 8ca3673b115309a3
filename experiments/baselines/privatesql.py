"""A PrivateSQL-style synopsis: the whole budget in one release tuned to the prediction set, nothing kept."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from experiments.trial import Floats, Outcome, Trial
from laprasdp.strategy.optimize import optimize_gram


@dataclass(frozen=True)
class PrivateSQL:
    r"""
    One private synopsis of the table; every query is answered from it, at no further cost.

    Attributes
    ----------
    background : float
        Weight of single cells beside the predicted queries, as a share of their total weight.

    Notes
    -----
    **Mechanism.**  PrivateSQL turns a representative workload into views and spends the budget before the
    first query on one synopsis of each; here there is one view, the histogram, and the synopsis is the
    matrix mechanism's release :math:`Ax+z`, with the strategy that is optimal for the second moment
    :math:`\sum_jq_jq_j^\top` of the prediction set.  As in HDMM, whose strategies always hold the identity,
    the strategy is made to have full rank: the moment is mixed with a multiple of the identity.  So each
    query has an unbiased answer by least squares and an exact deviation, and none is refused; those that
    were not predicted pay for it in variance.  With no prediction the synopsis is a noisy histogram.
    PrivateSQL's policies over several relations and its truncation of joins have no part in a single table.

    **Accounting.**  One Gaussian release of largest column norm one at
    :math:`\sigma=1/\mu(\varepsilon,\delta)`, so (ε, δ)-DP for neighbours that differ by one record more.
    (PrivateSQL uses ε-DP synopses; Gaussian noise is what the other methods here have.)

    References
    ----------
    Kotsogiannis, Tao, He, Fanaeepour, Machanavajjhala, Hay, Miklau.  PrivateSQL: a differentially private SQL
    query engine.  PVLDB 12 (2019).  McKenna, Miklau, Hay, Machanavajjhala.  Optimizing error of
    high-dimensional statistical queries under differential privacy.  PVLDB 11 (2018).
    """

    background: float = 0.01

    def __call__(self, trial: Trial, seed: int) -> Outcome:
        start = time.perf_counter()
        rng, cells = np.random.default_rng(seed), len(trial.counts)
        predictions = trial.predictions.astype(np.float64)
        gram = predictions.T @ predictions
        weight = self.background * np.trace(gram) / cells if gram.any() else 1.0
        optimum = optimize_gram(gram + weight * np.eye(cells), gap=1e-3)
        strategy, mu = optimum.strategy, trial.budget.mu
        synopsis = strategy @ trial.counts + rng.standard_normal(len(strategy)) / mu
        inverse: Floats = np.asarray(np.linalg.inv(optimum.precision), dtype=np.float64)
        estimate = inverse @ (strategy.T @ synopsis)
        opened = time.perf_counter()
        answers = trial.stream @ estimate
        stds = np.sqrt(np.einsum("ij,ij->i", trial.stream @ inverse, trial.stream)) / mu
        done = time.perf_counter()
        return Outcome(answers, stds, trial.budget.epsilon, done - opened, opened - start)
