"""An audit: run the whole path from statement to answer on neighbouring tables and bound ε from below.

A bound above the claim is evidence, at the stated failure probability, that the claim is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from laprasdp.data.table import Table
from laprasdp.errors import ConfigError
from laprasdp.query import Query
from laprasdp.session import Session

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Audit:
    """
    What the answers on neighbouring tables reveal.

    Attributes
    ----------
    epsilon : float
        Lower bound of ε at the claimed δ; it assumes nothing of the mechanism.
    mu : float
        Lower bound of μ, sharper: any μ-GDP mechanism stays below its μ.
    claimed_epsilon, claimed_mu : float
        What the session's budget claims.
    runs : int
        Sessions a table.
    failure : float
        Probability that a true claim yields a bound above it.
    """

    epsilon: float
    mu: float
    claimed_epsilon: float
    claimed_mu: float
    runs: int
    failure: float

    @property
    def passed(self) -> bool:
        """Whether neither bound is above the claim."""
        return self.epsilon <= self.claimed_epsilon and self.mu <= self.claimed_mu


def audit(
    open_on: Callable[[Table], Session],
    table: Table,
    neighbour: Table,
    statements: Sequence[Query],
    *,
    runs: int = 4_000,
    failure: float = 1e-6,
) -> Audit:
    """
    Ask the same statements of many fresh sessions on two neighbouring tables.

    Parameters
    ----------
    open_on : callable
        Opens a fresh session on a table, always with the same settings.
    table, neighbour : Table
        Tables that differ in one privacy unit, made up for the audit.
    statements : sequence of Query
        Asked one after another; at least one must be answered differently.
    runs : int
        Sessions a table.
    failure : float
        Probability that a sound session is reported as unsound.

    Notes
    -----
    Each session gives one score, the log-likelihood ratio up to constants of independent Gaussian answers.
    A threshold is chosen on half of the scores; on the other half Clopper–Pearson bounds of its two error
    rates give the bounds, with `failure` shared between all of them.  Time O(runs · statements).
    """
    shifts = [_exact(neighbour, query) - _exact(table, query) for query in statements]
    if not any(shifts):
        raise ConfigError("the statements do not tell the two tables apart")
    session = open_on(table)
    scores = [
        np.array([_score(open_on(each), statements, shifts) for _ in range(runs)])
        for each in (table, neighbour)
    ]
    epsilon, mu = bounds(scores[0], scores[1], delta=session.budget.delta, failure=failure)
    return Audit(epsilon, mu, session.budget.epsilon, session.budget.mu, runs, failure)


def bounds(low: Floats, high: Floats, *, delta: float, failure: float) -> tuple[float, float]:
    """
    Lower bounds of ε at `delta` and of μ from scores on two neighbouring tables.

    Parameters
    ----------
    low, high : (runs,) float arrays
        Scores on the table where they tend to be lower, and where higher.
    delta : float
    failure : float
        Probability that either bound is above the truth.

    Returns
    -------
    epsilon, mu : float
        At least 0.
    """
    grid = np.quantile(np.concatenate([low[::2], high[::2]]), np.linspace(0.005, 0.995, 199))
    share = failure / 4  # two bounds, each from two error rates
    found = []
    for which in (0, 1):
        tried = [_at(low[::2], high[::2], threshold, delta, share)[which] for threshold in grid]
        best = float(grid[int(np.argmax(tried))])
        found.append(max(0.0, _at(low[1::2], high[1::2], best, delta, share)[which]))
    return found[0], found[1]


def _at(low: Floats, high: Floats, threshold: float, delta: float, failure: float) -> tuple[float, float]:
    """Bounds of ε and μ from one threshold."""
    false_most = _upper(int((low > threshold).sum()), len(low), failure)
    true_least = 1 - _upper(int((high <= threshold).sum()), len(high), failure)
    epsilon = math.log((true_least - delta) / false_most) if true_least > delta else -math.inf
    return epsilon, float(ndtri(true_least) - ndtri(false_most))


def _upper(count: int, runs: int, failure: float) -> float:
    """Clopper–Pearson upper bound of a probability."""
    return 1.0 if count >= runs else float(betaincinv(count + 1, runs - count, 1 - failure))


def _score(session: Session, statements: Sequence[Query], shifts: Sequence[int]) -> float:
    answers = [session.ask(query) for query in statements]
    return math.fsum(
        shift * answer.value / answer.std**2  # type: ignore[union-attr]
        for shift, answer in zip(shifts, answers, strict=True)
        if shift
    )


def _exact(table: Table, query: Query) -> int:
    marginal = table.marginal(query.axes)
    return query.answer(marginal.levels, marginal.counts)
