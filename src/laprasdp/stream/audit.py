"""An audit: run the whole path from statement to answer on neighbouring tables and bound ε from below.

A bound above the claim is evidence, at the stated failure probability, that the claim is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from laprasdp.arrays import Floats
from laprasdp.data.table import Table
from laprasdp.errors import ConfigError
from laprasdp.privacy.gaussian import mu_of_pure
from laprasdp.queries.query import Query
from laprasdp.strategy.threads import one_thread
from laprasdp.stream.answer import Answer
from laprasdp.stream.session import Session


@dataclass(frozen=True)
class Audit:
    """
    What the answers on neighbouring tables reveal.

    Attributes
    ----------
    epsilon : float
        Lower bound of ε at the claimed δ, at 0 where the noise is Laplace; it assumes nothing of the
        mechanism.
    mu : float
        Lower bound of μ, sharper: any μ-GDP mechanism stays below its μ.
    claimed_epsilon : float
        What the session's budget claims.
    claimed_mu : float or None
        The same as μ; that of an ε-DP release where the session's noise is Laplace, and none under basic
        accounting otherwise.
    runs : int
        Sessions a table.
    failure : float
        Probability that a true claim yields a bound above it.
    """

    epsilon: float
    mu: float
    claimed_epsilon: float
    claimed_mu: float | None
    runs: int
    failure: float

    @property
    def passed(self) -> bool:
        """Whether no bound is above what is claimed."""
        below = self.claimed_mu is None or self.mu <= self.claimed_mu
        return below and self.epsilon <= self.claimed_epsilon


@one_thread()
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
        One has the rows of one privacy unit more (docs/notation.md); both made up for the audit.
    statements : sequence of Query
        Asked one after another; at least one must be answered differently.
    runs : int
        Sessions a table.
    failure : float
        Probability that a sound session is reported as unsound.

    Notes
    -----
    A session whose answers have Laplace errors spends no δ on them: it is held to ε alone, and to the μ that
    every ε-DP release has (`laprasdp.privacy.gaussian.mu_of_pure`).

    Half of the runs choose a direction in the space of answers (Fisher's discriminant, best for Gaussian
    errors) and a threshold along it; on the other half Clopper–Pearson bounds of the two error rates give
    the bounds, with `failure` shared between all of them.  Time O(runs · statements).
    """
    shifts = [_exact(neighbour, query) - _exact(table, query) for query in statements]
    if not any(shifts):
        raise ConfigError("the statements do not tell the two tables apart")
    first = open_on(table)
    budget, delta = first.budget, first.budget.delta
    claimed_mu = budget.mu if first.accounting == "gaussian" else None
    if any(_asked(first, query).law != "gaussian" for query in statements):  # then all of it is pure
        claimed_mu, delta = mu_of_pure(budget.epsilon), 0.0
    low, high = (
        np.array([[_asked(one, query).value for query in statements] for one in map(open_on, [each] * runs)])
        for each in (table, neighbour)
    )
    direction = _fisher(low[::2], high[::2])
    epsilon, mu = bounds(low @ direction, high @ direction, delta=delta, failure=failure)
    return Audit(epsilon, mu, budget.epsilon, claimed_mu, runs, failure)


def bounds(low: Floats, high: Floats, *, delta: float, failure: float) -> tuple[float, float]:
    """
    Lower bounds of ε at `delta` and of μ from scores on two neighbouring tables.

    Parameters
    ----------
    low, high : (runs,) float arrays
        Scores on the table where they tend to be lower, and where higher.  Even places choose a threshold,
        odd ones give the bounds.
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


def _fisher(low: Floats, high: Floats) -> Floats:
    """The direction that best tells two Gaussian clouds of one covariance apart."""
    spread = np.cov(low, rowvar=False) + np.cov(high, rowvar=False)
    direction: Floats = np.linalg.pinv(np.atleast_2d(spread), rcond=1e-9) @ (
        high.mean(axis=0) - low.mean(axis=0)
    )
    return direction


def _asked(session: Session, query: Query) -> Answer:
    answer = session.ask(query)
    assert isinstance(answer, Answer)
    return answer


def _exact(table: Table, query: Query) -> int:
    return query.answer(table.marginal(query.reads))
