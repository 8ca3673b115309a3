"""The plan under every policy, and the budget that a wanted error takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.limits import LEAST_EPSILON
from laprasdp.policy.catalog import POLICIES, policy_named
from laprasdp.policy.setting import Setting
from laprasdp.queries.query import Query
from laprasdp.stream.answer import expected_error
from laprasdp.stream.plan import Plan, make_plan
from laprasdp.stream.target import smallest_epsilon

DOMAIN = lp.Domain(age=lp.Integers(0, 29))
RANGES = tuple(Query.count(DOMAIN, age=range(low, low + 8)) for low in range(0, 20, 4))
DELTA = 1e-6
GAUSSIAN = [name for name in POLICIES if name != "laplace"]
LAPLACE = ("primm", "laplace-counts")  # primm may go over to Laplace noise
SCALING = [name for name in GAUSSIAN if name not in LAPLACE]
BASIC = [name for name in POLICIES if name not in LAPLACE]


def planned(budget: lp.Budget, policy: str, predictions: tuple[Query, ...] = RANGES, **more: Any) -> Plan:
    return make_plan(policy_named(policy, Setting(DOMAIN, budget, 20, predictions, **more)))


@pytest.mark.parametrize("policy", SCALING)
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 12.0])
def test_errors_are_one_over_mu_whatever_the_budget(policy: str, epsilon: float) -> None:
    one, other = lp.Budget(1.0, DELTA), lp.Budget(epsilon, DELTA)
    first, second = planned(one, policy), planned(other, policy)
    ratio = one.mu / other.mu

    def errors(plan: Plan) -> list[float]:
        found = [query.std for query in plan.predicted] + [s.unpredicted_std for s in plan.streams]
        return [error for error in found if error is not None]

    assert errors(second) == pytest.approx([ratio * error for error in errors(first)], rel=1e-5)


@pytest.mark.parametrize("policy", GAUSSIAN)
@pytest.mark.parametrize("predictions", [RANGES, ()], ids=["predictions", "none"])
def test_the_closed_form_agrees_with_a_plan_made_at_its_result(policy: str, predictions: Any) -> None:
    if policy == "offline" and not predictions:
        return
    for target in (2.0, 20.0, 200.0):
        calls: list[float] = []

        def make(budget: lp.Budget, calls: list[float] = calls) -> Plan:
            calls.append(budget.epsilon)
            return planned(budget, policy, predictions)

        epsilon = smallest_epsilon(make, DELTA, target)
        assert len(calls) == 3 or policy in LAPLACE
        reached, less = (
            planned(lp.Budget(x, DELTA), policy, predictions).typical_std for x in (epsilon, epsilon * 0.99)
        )
        assert reached is not None
        assert less is not None
        assert reached <= target < less
        assert reached >= 0.99 * target or policy == "primm"  # whose errors jump where the noise changes
        assert epsilon == float(f"{epsilon:.4g}")


@pytest.mark.parametrize("policy", BASIC)
def test_basic_composition_is_bisected(policy: str) -> None:
    def make(budget: lp.Budget) -> Plan:
        return planned(budget, policy, accounting="basic")

    for target in (15.0, 150.0):
        epsilon = smallest_epsilon(make, DELTA, target)
        reached, less = (make(lp.Budget(x, DELTA)).typical_std for x in (epsilon, epsilon * 0.99))
        assert reached is not None
        assert less is not None
        assert reached <= target < less


@pytest.mark.parametrize(("policy", "accounting"), [("primm", "gaussian"), ("smooth", "basic")])
def test_the_ends_of_the_search(policy: str, accounting: str) -> None:
    def make(budget: lp.Budget) -> Plan:
        return planned(budget, policy, accounting=accounting)

    assert smallest_epsilon(make, DELTA, 1e9) == LEAST_EPSILON
    with pytest.raises(lp.ConfigError, match=r"of 1e-09: at δ = 1e-06, ε may be at most 33.6, which leaves"):
        smallest_epsilon(make, DELTA, 1e-9)
    for nonsense in (0.0, -1.0, math.nan, math.inf, "5"):
        with pytest.raises(lp.ConfigError, match="positive number"):
            smallest_epsilon(make, DELTA, nonsense)


def test_a_policy_that_would_answer_nothing_has_nothing_to_aim_at() -> None:
    refused = planned(lp.Budget(1.0, DELTA), "offline")
    nothing = Plan(
        "offline", "gaussian", 1.0, DELTA, 20, (), refused.streams, 1.0, 1.0
    )  # fmt: skip
    with pytest.raises(lp.ConfigError, match="nothing to aim at"):
        smallest_epsilon(lambda budget: nothing, DELTA, 5.0)


def test_predictions_that_a_policy_ignores_are_typical_queries() -> None:
    plan = planned(lp.Budget(1.0, DELTA), "independent")
    assert plan.predicted_std is None
    assert plan.worst is None
    assert plan.typical_std == plan.streams[0].unpredicted_std


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_planned(policy: str) -> None:
    accounting = "basic" if policy == "laplace" else "gaussian"
    plan = planned(lp.Budget(1.0, DELTA), policy, accounting=accounting)
    assert plan.approximate == (policy == "primm")
    assert plan.row()["approximate"] == plan.approximate
    law = "geometric" if policy == "laplace" else "gaussian"
    for stream in plan.streams[:-1]:
        if stream.unpredicted_std is not None:
            assert stream.unpredicted_mae == pytest.approx(expected_error(stream.unpredicted_std, law))
    stds = [query.std for query in plan.predicted if query.std]
    if stds:
        assert plan.worst is not None
        assert plan.worst.std == max(stds)
        assert plan.predicted_std == pytest.approx(np.mean(stds))
        mean = expected_error(float(np.mean(stds)))
        assert plan.predicted_mae == pytest.approx(mean, rel=0.04 if policy in LAPLACE else 1e-9)


@pytest.mark.parametrize("policy", ["smooth-cache", "primm"])
def test_predicted_errors_are_those_of_the_session(policy: str) -> None:
    session = lp.open_session(
        MemoryTable(DOMAIN, [5] * 30),
        DOMAIN,
        budget=lp.Budget(1.0, DELTA),
        horizon=20,
        policy=policy,
        predictions=RANGES,
    )
    for query, expected in zip(RANGES[:1], session.plan().predicted, strict=False):
        answer = session.ask(query)
        assert isinstance(answer, lp.Answer)
        assert answer.std == pytest.approx(expected.std, rel=1e-4)


def test_predictions_make_primm_no_worse() -> None:
    budget = lp.Budget(1.0, DELTA)
    known, alone = planned(budget, "primm"), planned(budget, "primm", ())
    assert known.predicted_std is not None
    assert alone.typical_std is not None
    assert known.predicted_std < alone.typical_std
