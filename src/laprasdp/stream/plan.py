"""The plan: what error the budget buys, before any of it is spent, and which budget buys a wanted error.

It needs public settings only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laprasdp.errors import BudgetError, ConfigError
from laprasdp.limits import LEAST_EPSILON
from laprasdp.policy.kinds import kind_shares, kinds_of_query
from laprasdp.policy.policy import Policy
from laprasdp.policy.rollout import opened, play
from laprasdp.privacy.budget import NOISE_SHARE, Budget
from laprasdp.privacy.gaussian import epsilon_of, mean_absolute, sigma_of
from laprasdp.privacy.law import expected_error
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
    played : mapping of str to sequence of Query
        The queries of each kind that this was told by.
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
    played: Mapping[str, Sequence[Query]] = field(default_factory=dict, repr=False)
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
    kinds: bool | Mapping[str, Sequence[Query]] = True,
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
    kinds : bool or mapping of str to sequence of Query
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
    played = policy.kinds() if kinds is True else kinds or {}
    if kinds is True and shapes and not played:
        rng = np.random.default_rng(seed)
        played = kinds_of_query(setting.domain, (), _TYPICAL, rng, shapes=shapes)
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


def smallest_epsilon(make: Callable[[Budget], Plan], delta: float, target_std: float) -> float:
    r"""
    The smallest ε, to 1%, whose plan reaches a standard deviation.

    Parameters
    ----------
    make : callable
        The plan under a budget; everything else about it stays the same.
    delta : float
        δ of the budget.
    target_std : float
        In records.  It is aimed at on average over the predicted queries, `Plan.typical_std`, or over
        typical unpredicted ones where none is predicted.

    Returns
    -------
    float
        Of four digits, rounded up, so that its plan reaches the target; at least `LEAST_EPSILON`.

    Raises
    ------
    ConfigError
        No budget of this δ reaches it, or the plan answers nothing.
    BudgetError
        δ allows no budget.

    Notes
    -----
    Under Gaussian accounting allowances are shares of μ² that do not depend on the budget, and designs do
    so only where Laplace counts are better from some ε on; else each standard deviation is c/μ, with c from
    any one plan, and

    .. math:: \mu^* = \mu\,\frac{\mathrm{std}}{\mathrm{target}}, \;\; \varepsilon^*=\varepsilon(\mu^*,\delta),

    exact but for the grid of the ledger; a second plan says whether it holds.  Where it does not, and under
    basic composition, which shares out ε, the smallest ε is bisected, in about ten plans.
    """
    if not (isinstance(target_std, int | float) and 0 < target_std < math.inf):
        raise ConfigError(f"a standard deviation to aim at is a positive number, not {target_std!r}")
    start = Budget(1.0, delta)
    plan = make(start)
    if plan.typical_std is None:
        raise ConfigError(f"{plan.policy} would answer no typical query here: there is nothing to aim at")
    most = _largest_epsilon(delta)
    least = make(Budget(most, delta)).typical_std or math.inf
    if least > target_std:
        raise ConfigError(
            f"no budget reaches a standard deviation of {target_std:g}: at δ = {delta:g}, "
            f"ε may be at most {most:.3g}, which leaves {least:.3g}"
        )
    guess = plan.typical_std / target_std
    if plan.accounting == "gaussian":
        guess = epsilon_of(start.mu * guess, delta * (1 - NOISE_SHARE))
        guess = min(max(guess, LEAST_EPSILON), most)
        there = make(Budget(guess, delta)).typical_std or math.inf
        if guess == LEAST_EPSILON or math.isclose(there, target_std, rel_tol=1e-4):
            return min(_rounded_up(guess), most) if guess > LEAST_EPSILON else LEAST_EPSILON
    found = _bisect(make, delta, target_std, min(max(guess, LEAST_EPSILON), most), most)
    return min(_rounded_up(found), most) if found > LEAST_EPSILON else LEAST_EPSILON


def _bisect(
    make: Callable[[Budget], Plan], delta: float, target_std: float, guess: float, most: float
) -> float:
    """An ε that reaches the target, where `most` does, and 0.8% less does not."""

    def reaches(epsilon: float) -> bool:
        std = make(Budget(epsilon, delta)).typical_std
        return std is not None and std <= target_std

    low = high = guess
    while high < most and not reaches(high):
        low, high = high, min(2 * high, most)
    while low == high > LEAST_EPSILON:
        low = max(high / 2, LEAST_EPSILON)
        if reaches(low):
            high = low
    while high > low * 1.008:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _largest_epsilon(delta: float) -> float:
    """The largest ε that a budget of this δ may have, to 0.1%; at least 1."""
    low, high = 1.0, 2.0**21
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        try:
            Budget(middle, delta)
        except BudgetError:
            high = middle
        else:
            low = middle
    return low


def _rounded_up(epsilon: float) -> float:
    """The next number of four digits; a step of at most 0.1%."""
    digits = 3 - math.floor(math.log10(epsilon))
    return round(math.ceil(epsilon * (1 + 1e-6) * 10.0**digits) / 10.0**digits, digits)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _kinds(policy: Policy, kinds: Mapping[str, Sequence[Query]]) -> tuple[PlannedKind, ...]:
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
