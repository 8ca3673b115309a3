"""What opens can be answered: a budget that allows too few noise values for a plan is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import invoke
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy.catalog import POLICIES, policy_named
from laprasdp.policy.setting import Setting
from laprasdp.queries.query import Query
from laprasdp.stream.plan import make_plan

DOMAIN = lp.Domain(age=lp.Integers(0, 39))
TABLE = MemoryTable(DOMAIN, range(40))
PREDICTED = tuple(Query.count(DOMAIN, age=range(low, low + 5)) for low in range(0, 30, 4))
TIGHT = [lp.Budget(1, 1e-19), lp.Budget(30, 1e-6)]
"""Budgets that allow 10 and 37 noise values."""


def opened(policy: str, budget: lp.Budget, horizon: int = 50, **more: Any) -> lp.Session:
    accounting = {"accounting": "basic"} if policy == "laplace" else {}
    return lp.open_session(TABLE, DOMAIN, budget=budget, horizon=horizon, policy=policy, **accounting, **more)


@pytest.mark.parametrize("budget", TIGHT, ids=str)
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"offline"}))
def test_a_budget_of_too_few_noise_values_does_not_open(policy: str, budget: lp.Budget) -> None:
    ledger = MemoryLedger()
    with pytest.raises(lp.BudgetError, match="noise values") as refused:
        opened(policy, budget, predictions=PREDICTED, ledger=ledger)
    says = str(refused.value)
    assert f"ε = {budget.epsilon:g}, δ = {budget.delta:g} allow {budget.coordinates} noise values" in says
    assert "40 cells" in says
    assert says.endswith("would fit")
    opened(policy, lp.Budget(1, 1e-6), ledger=ledger)  # nothing was begun with the other budget


@settings(max_examples=15, deadline=None)
@given(
    policy=st.sampled_from(sorted(POLICIES)),
    budget=st.one_of(
        st.builds(lp.Budget, st.floats(26, 33), st.just(1e-6)),
        st.builds(lp.Budget, st.floats(0.05, 1), st.floats(2e-20, 4e-18)),
    ),
    horizon=st.integers(1, 60),
    accounting=st.sampled_from(["basic", "gaussian"]),
    predicted=st.booleans(),
)
def test_what_opens_answers_its_whole_stream_and_what_is_proposed_opens(
    policy: str, budget: lp.Budget, horizon: int, accounting: str, predicted: bool
) -> None:
    """Every statement of the horizon is another query of one noise value."""
    predictions = PREDICTED if predicted or policy == "offline" else ()
    declared: dict[str, Any] = {"accounting": accounting, "predictions": predictions, "policy": policy}
    try:
        session = lp.open_session(TABLE, DOMAIN, budget=budget, horizon=horizon, **declared)
    except lp.BudgetError as refused:
        if "would fit" not in str(refused):
            return  # the policy has no such accounting, or δ is shared out below its unit
        fitting = str(refused).rpartition(": ")[2].removesuffix(" would fit").split(" or ")
        for one in fitting:
            epsilon, delta = (float(part.split(" = ")[1]) for part in one.split(", "))
            lp.open_session(TABLE, DOMAIN, budget=lp.Budget(epsilon, delta), horizon=horizon, **declared)
        return
    asked = [Query.count(DOMAIN, age=[*range(low), 39]) for low in range(39)] + [
        Query.count(DOMAIN, age=[low, 38]) for low in range(30)
    ]
    for query in PREDICTED if policy == "offline" else asked[:horizon]:
        session.ask(query)  # no refusal


def test_the_plan_and_the_command_refuse_alike(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n3\n")
    config = tmp_path / "lapras.toml"
    config.write_text(
        '[source]\nfile = "people.csv"\n[domain]\nage = { type = "integers", min = 0, max = 199 }\n'
        "[privacy]\nepsilon = 30\ndelta = 1e-6\n"
        '[ledger]\nfile = "people.ledger"\n'
    )
    (tmp_path / "asked.sql").write_text("SELECT COUNT(*) FROM people;")
    for command in (["plan"], ["run", str(tmp_path / "asked.sql")], ["ask", "SELECT COUNT(*) FROM people"]):
        line = invoke(*command, "--config", config, code=1).stderr
        assert "ε = 30, δ = 1e-06 allow 37 noise values" in line
        assert line.count("\n") == 1
    config.write_text(config.read_text().replace("epsilon = 30", "epsilon = 1"))
    invoke("ask", "SELECT COUNT(*) FROM people", "--config", config)  # nothing was begun before


def test_periods_refuse_alike() -> None:
    dates = lp.Domain(day=lp.Dates("2024-01-01", "2024-02-29"))
    with pytest.raises(lp.BudgetError, match=r"the period 2024-01-01 to 2024-01-31: ε = 32, .* would fit$"):
        lp.open_windows(
            MemoryTable(dates, [1] * 60), dates, attribute="day", periods="month", budget=lp.Budget(32, 1e-6)
        )


@pytest.mark.parametrize("policy", ["independent", "smooth", "histogram", "primm"])
def test_a_raise_that_would_lead_there_is_refused(policy: str) -> None:
    session = opened(policy, lp.Budget(1, 1e-6), predictions=PREDICTED)
    with pytest.raises(lp.BudgetError, match="noise values"):
        session.raise_budget(lp.Budget(32, 1e-6))
    assert session.budget == lp.Budget(1, 1e-6)
    session.raise_budget(lp.Budget(2, 1e-6))
    session.ask(PREDICTED[0])
    assert session.budget == lp.Budget(2, 1e-6)


def test_a_ledger_that_holds_answers_still_shows_them() -> None:
    """A budget that cannot serve the rest of its stream does not take back what was released."""
    ledger, budget = MemoryLedger(), lp.Budget(30, 1e-6)
    first = opened("independent", budget, horizon=30, ledger=ledger)
    groups = "SELECT COUNT(*) FROM t GROUP BY age"
    with pytest.raises(lp.BudgetExhausted, match="noise values"):
        first.ask(groups)
    shown = first.ask(PREDICTED[0])
    assert opened("independent", budget, horizon=30, ledger=ledger).ask(PREDICTED[0]).value == shown.value


def test_a_plan_promises_nothing_that_cannot_be_measured() -> None:
    """ε is fewer units than there are statements."""
    tiny = Setting(DOMAIN, lp.Budget(1e-9, 1e-3), 10**4, accounting="basic")
    for policy in ("independent", "laplace"):
        plan = make_plan(policy_named(policy, tiny))
        assert plan.streams[0].answered == 0
        with pytest.raises(lp.BudgetError, match="too little to measure one"):
            lp.open_session(
                TABLE, DOMAIN, budget=tiny.budget, horizon=tiny.horizon, policy=policy, accounting="basic"
            )
