"""The plan: what error the budget buys, before any of it is spent, and which budget buys a wanted error.

It needs public settings only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laprasdp.policy.kinds import groups_of, kind_shares, kinds_of_query
from laprasdp.policy.policy import Policy
from laprasdp.policy.rollout import opened, play
from laprasdp.privacy.gaussian import mean_absolute, sigma_of
from laprasdp.privacy.law import expected_error
from laprasdp.queries.groups import Groups
from laprasdp.queries.prediction import describe
from laprasdp.queries.query import Query
from laprasdp.strategy.threads import one_thread

OVERLAPS = tuple(i / 10 for i in range(11))
HURT = 1.3
"""Times the error without predictions, above which the plan warns."""

_TYPICAL = 12  # queries of each kind, where the policy has none
_ARRIVALS = 4_000  # an expectation over random orders is averaged over about this many arrivals


@dataclass(frozen=True)
class PlannedQuery:
    """A predicted query, the standard deviation of its answer and its expected error; None if refused."""

    query: str
    std: float | None = None
    mae: float | None = None


@dataclass(frozen=True)
class PlannedStream:
    """
    What a stream would see if this share of it were predicted.

    It has `horizon` statements, or a typical number of them where that is not known.

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
    unpredicted_std : float or None
        Mean standard deviation of the unpredicted 0/1 queries that are answered.
    """

    overlap: float
    unpredicted_mae: float | None
    mae: float | None
    answered: float
    unpredicted_std: float | None


@dataclass(frozen=True)
class PlannedKind:
    """
    Unpredicted queries of one kind, the first of a stream of nothing else.

    Attributes
    ----------
    kind : str
    std, mae : float or None
        Mean standard deviation and expected absolute error; None where one of them would be refused.
    """

    kind: str
    std: float | None
    mae: float | None


@dataclass(frozen=True)
class Plan:
    """
    Expected errors by source, computed from public settings; nothing is spent and no data is read.

    Attributes
    ----------
    policy, accounting : str
    epsilon, delta : float
    horizon : int or None
    predicted : tuple of PlannedQuery
    streams : tuple of PlannedStream
        By overlap, from none to all predicted.
    independent_basic_mae, independent_gaussian_mae : float
        Independent noise for every 0/1 query of the stream, at the same (ε, δ).
    approximate : bool
        What the streams say of unpredicted queries is an estimate, because it depends on which ones come.
    kinds : tuple of PlannedKind
        What unpredicted queries would see by their kind, where that matters.
    played : mapping of str to sequence of Query or Groups
        The statements of each kind that this was told by.
    shapes : mapping of str to float
        The kinds that are declared, and the share of the stream that each is expected to have.
    """

    policy: str
    accounting: str
    epsilon: float
    delta: float
    horizon: int | None
    predicted: tuple[PlannedQuery, ...]
    streams: tuple[PlannedStream, ...]
    independent_basic_mae: float
    independent_gaussian_mae: float
    approximate: bool = False
    kinds: tuple[PlannedKind, ...] = ()
    played: Mapping[str, Sequence[Query | Groups]] = field(default_factory=dict, repr=False)
    shapes: Mapping[str, float] = field(default_factory=dict)

    @property
    def predicted_mae(self) -> float | None:
        """Mean expected absolute error of the predicted queries."""
        return _mean([query.mae for query in self.predicted if query.mae])

    @property
    def predicted_std(self) -> float | None:
        """Mean standard deviation of the predicted queries that are answered free."""
        return _mean([query.std for query in self.predicted if query.std])

    @property
    def worst(self) -> PlannedQuery | None:
        """The predicted query that is answered free with the largest error."""
        return max((query for query in self.predicted if query.std), key=lambda q: q.std or 0.0, default=None)

    @property
    def typical_std(self) -> float | None:
        """`predicted_std`; where no query is predicted, that of a stream of typical unpredicted ones."""
        return self.streams[0].unpredicted_std if self.predicted_std is None else self.predicted_std

    def mae_at(self, overlap: float) -> float | None:
        """Mean expected absolute error of a stream of which this share is predicted."""
        known = [(stream.overlap, stream.mae) for stream in self.streams if stream.mae is not None]
        if not known:
            return None
        places, errors = np.array(known).T
        return float(np.interp(overlap, places, errors))

    @property
    def range_mae(self) -> tuple[float, float] | None:
        """Least and largest error of unpredicted queries over their kinds."""
        known = [kind.mae for kind in self.kinds if kind.mae is not None]
        return (min(known), max(known)) if known else None

    def losses(self, alone: Plan) -> tuple[str, ...]:
        """
        What is worse than without predictions: sentences for a warning.

        Parameters
        ----------
        alone : Plan
            Of the same budget without predictions.
        """
        before, found = {kind.kind: kind.mae for kind in alone.kinds}, []
        for kind in self.kinds:
            without = before.get(kind.kind)
            if without is None or kind.mae is None:
                continue
            if kind.mae > HURT * without:
                found.append(f"{kind.kind}: {kind.mae:.3g} with the predictions, {without:.3g} without them")
        predicted, whole = self.predicted_mae, alone.streams[0].mae
        if predicted is not None and whole is not None and predicted > whole:
            found.append(f"predicted queries: {predicted:.3g}; {whole:.3g} for any query without predictions")
        return tuple(found)

    def row(self) -> dict[str, Any]:
        """The plan as plain data, as ``--json`` prints it."""
        return {
            "policy": self.policy,
            "accounting": self.accounting,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "horizon": self.horizon,
            "approximate": self.approximate,
            "predicted_mae": self.predicted_mae,
            "predicted_std": self.predicted_std,
            "independent_basic_mae": self.independent_basic_mae,
            "independent_gaussian_mae": self.independent_gaussian_mae,
            "kinds": [vars(kind) for kind in self.kinds],
            **({"shapes": dict(self.shapes)} if self.shapes else {}),
            "streams": [vars(stream) for stream in self.streams],
            "predicted": [vars(query) for query in self.predicted],
        }


@one_thread()
def make_plan(
    policy: Policy,
    names: Sequence[str] = (),
    *,
    kinds: bool | Mapping[str, Sequence[Query | Groups]] = True,
    seed: int = 0,
) -> Plan:
    """
    Expected errors under `policy`.

    Parameters
    ----------
    policy : Policy
        Its state before the stream.
    names : sequence of str, optional
        How to call the predicted queries, one each.
    kinds : bool or mapping of str to sequence of Query or Groups
        Whether to tell unpredicted queries apart by their kind; or which ones to tell of.
    seed : int
        Orders of arrival are drawn with this seed; nothing private is simulated.
    """
    setting = policy.setting
    budget, rows, length = setting.budget, setting.unit.max_rows, setting.length
    variances = [policy.expected_variance(query) for query in setting.predictions]
    labels = list(names) or [describe(query) for query in setting.predictions]
    predicted = tuple(
        PlannedQuery(label)
        if variance is None
        else PlannedQuery(label, std := math.sqrt(variance), expected_error(std, *policy.law_of(query)))
        for label, variance, query in zip(labels, variances, setting.predictions, strict=True)
    )
    errors = [query.mae for query in predicted if query.mae]
    basic = mean_absolute(sigma_of(budget.epsilon / length, budget.delta / (length + 1), rows))
    shapes = setting.families
    played: Mapping[str, Sequence[Query | Groups]] = policy.kinds() if kinds is True else kinds or {}
    rng = np.random.default_rng(seed)
    if kinds is True and shapes and not played:
        played = kinds_of_query(setting.domain, (), _TYPICAL, rng, shapes=shapes)
    if kinds is True and played:
        played = {**played, **groups_of(setting.domain, _TYPICAL, rng, shapes)}
    return Plan(
        policy.name,
        policy.accounting.name,
        budget.epsilon,
        budget.delta,
        setting.horizon,
        predicted,
        tuple(_stream(policy, _mean(errors), overlap, seed) for overlap in OVERLAPS),
        basic,
        mean_absolute(rows * math.sqrt(length) / budget.mu),
        approximate=policy.name == "primm",
        kinds=_kinds(policy, played),
        played=played,
        shapes=kind_shares(setting.domain, shapes),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _kinds(policy: Policy, kinds: Mapping[str, Sequence[Query | Groups]]) -> tuple[PlannedKind, ...]:
    """Every kind of unpredicted query, played to the policy by itself."""
    found = []
    before = opened(policy) if kinds else policy
    for kind, queries in kinds.items():
        variances = play(before, queries)
        stds = [math.sqrt(variance) for variance in variances if variance is not None]
        whole = len(stds) == len(variances)
        mean = _mean(stds) if whole else None
        found.append(PlannedKind(kind, mean, None if mean is None else expected_error(mean, policy.law)))
    return tuple(found)


def _stream(policy: Policy, predicted: float | None, overlap: float, seed: int) -> PlannedStream:
    horizon = policy.setting.length
    orders = max(1, min(8, _ARRIVALS // horizon))
    count = horizon - round(overlap * horizon)
    rng = np.random.default_rng(seed)
    stds: list[float] = []
    for _ in range(orders):
        arrivals = rng.permutation(np.arange(horizon) < count)
        stds += [math.sqrt(v) for v in policy.rehearse(arrivals.tolist()) if v is not None]
    unpredicted = [expected_error(std, policy.law) for std in stds]
    free = horizon - count if predicted is not None else 0
    total = free * (predicted or 0.0) + math.fsum(unpredicted) / orders
    answered = free + len(unpredicted) / orders
    return PlannedStream(
        overlap, _mean(unpredicted), total / answered if answered else None, answered / horizon, _mean(stds)
    )
