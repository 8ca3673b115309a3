"""The plan: what error the budget buys, before any of it is spent.  It needs public settings only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laprasdp.answer import expected_error
from laprasdp.policy.policy import Policy
from laprasdp.privacy.gaussian import mean_absolute, sigma_of
from laprasdp.query import Query

OVERLAPS = tuple(i / 10 for i in range(11))
_ARRIVALS = 4_000  # an expectation over random orders is averaged over about this many arrivals


@dataclass(frozen=True)
class PlannedQuery:
    """A predicted query and the standard deviation that its answer will have; None if it is refused."""

    query: str
    std: float | None


@dataclass(frozen=True)
class PlannedStream:
    """
    What a stream of `horizon` statements would see if this share of it were predicted.

    Attributes
    ----------
    overlap : float
        Share of predicted statements.
    unpredicted_mae : float or None
        Mean expected absolute error of the unpredicted 0/1 queries that are answered.
    mae : float or None
        The same over all that is answered.
    answered : float
        Share of statements that are answered.
    """

    overlap: float
    unpredicted_mae: float | None
    mae: float | None
    answered: float


@dataclass(frozen=True)
class Plan:
    """
    Expected errors by source, computed from public settings; nothing is spent and no data is read.

    Attributes
    ----------
    policy, accounting : str
    epsilon, delta : float
    horizon : int
    predicted : tuple of PlannedQuery
    streams : tuple of PlannedStream
        By overlap, from none to all predicted.
    independent_basic_mae, independent_gaussian_mae : float
        Independent noise for every 0/1 query of the stream, at the same (ε, δ).
    """

    policy: str
    accounting: str
    epsilon: float
    delta: float
    horizon: int
    predicted: tuple[PlannedQuery, ...]
    streams: tuple[PlannedStream, ...]
    independent_basic_mae: float
    independent_gaussian_mae: float

    @property
    def predicted_mae(self) -> float | None:
        """Mean expected absolute error of the predicted queries."""
        errors = [expected_error(query.std) for query in self.predicted if query.std]
        return math.fsum(errors) / len(errors) if errors else None

    def row(self) -> dict[str, Any]:
        """The plan as plain data, as ``--json`` prints it."""
        return {
            "policy": self.policy,
            "accounting": self.accounting,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "horizon": self.horizon,
            "predicted_mae": self.predicted_mae,
            "independent_basic_mae": self.independent_basic_mae,
            "independent_gaussian_mae": self.independent_gaussian_mae,
            "streams": [vars(stream) for stream in self.streams],
            "predicted": [vars(query) for query in self.predicted],
        }


def make_plan(policy: Policy, names: Sequence[str] = (), *, seed: int = 0) -> Plan:
    """
    Expected errors under `policy`.

    Parameters
    ----------
    policy : Policy
        Its state before the stream.
    names : sequence of str, optional
        How to call the predicted queries, one each.
    seed : int
        Orders of arrival are drawn with this seed; nothing private is simulated.
    """
    setting = policy.setting
    budget, rows, horizon = setting.budget, setting.unit.max_rows, setting.horizon
    variances = [policy.expected_variance(query) for query in setting.predictions]
    labels = list(names) or [describe(query) for query in setting.predictions]
    predicted = tuple(
        PlannedQuery(label, None if variance is None else math.sqrt(variance))
        for label, variance in zip(labels, variances, strict=True)
    )
    errors = [expected_error(math.sqrt(v)) for v in variances if v]
    mean_predicted = math.fsum(errors) / len(errors) if errors else None
    basic = mean_absolute(sigma_of(budget.epsilon / horizon, budget.delta / (horizon + 1), rows))
    return Plan(
        policy.name,
        policy.accounting.name,
        budget.epsilon,
        budget.delta,
        horizon,
        predicted,
        tuple(_stream(policy, mean_predicted, overlap, seed) for overlap in OVERLAPS),
        basic,
        mean_absolute(rows * math.sqrt(horizon) / budget.mu),
    )


def describe(query: Query) -> str:
    """A query without a statement, for tables."""
    return f"query over {', '.join(query.names) or 'all rows'} [{query.key[:8]}]"


def _stream(policy: Policy, predicted: float | None, overlap: float, seed: int) -> PlannedStream:
    horizon = policy.setting.horizon
    orders = max(1, min(8, _ARRIVALS // horizon))
    count = horizon - round(overlap * horizon)
    rng = np.random.default_rng(seed)
    unpredicted: list[float] = []
    for _ in range(orders):
        arrivals = rng.permutation(np.arange(horizon) < count)
        stds = [math.sqrt(v) for v in policy.rehearse(arrivals.tolist()) if v is not None]
        unpredicted += [expected_error(std, policy.law) for std in stds]
    free = horizon - count if predicted is not None else 0
    total = free * (predicted or 0.0) + math.fsum(unpredicted) / orders
    answered = free + len(unpredicted) / orders
    return PlannedStream(
        overlap,
        math.fsum(unpredicted) / len(unpredicted) if unpredicted else None,
        total / answered if answered else None,
        answered / horizon,
    )
