"""What is made of released values is feasible, is the optimum it claims to be, and changes nothing."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from draw import MemoryTable
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import laprasdp as lp
from laprasdp.derive.consistent import agree, project, round_to
from laprasdp.stream.answer import Answer, GroupedAnswer

DOMAIN = lp.Domain(age=lp.Integers(0, 9), sex=lp.Categories(["f", "m"], nullable=True))
COUNTS = np.arange(30) % 7
numbers = st.floats(-1e4, 1e4).map(lambda x: round(x, 3))
variances = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))


@st.composite
def groups(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values and variances of one to eight groups; those known exactly are zero, the first never is."""
    size = draw(st.integers(1, 8))
    spread = np.array(draw(st.lists(variances, min_size=size, max_size=size)))
    spread[0] = draw(st.floats(1e-3, 1e4))
    values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    return np.where(spread > 0, values, 0.0), spread


def covariances(seed: int, size: int) -> np.ndarray[Any, Any]:
    """A random covariance, dense and sometimes singular."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, rng.integers(1, size + 2)))
    return np.asarray(factor @ factor.T)


def grouped(values: Any, spread: Any, total: float | None = None, covariance: Any = None) -> GroupedAnswer:
    answers = tuple(
        Answer("q", float(value), math.sqrt(variance), "measured", 0.1, 0.9, {"g": place})
        for place, (value, variance) in enumerate(zip(values, spread, strict=True))
    )
    known = None if total is None else Answer("q", total, 1.0, "measured", 0.1, 0.8)
    return GroupedAnswer("q", answers, known, covariance)


@given(groups(), st.one_of(st.none(), numbers), st.booleans(), st.booleans())
def test_what_is_consistent_is_feasible_and_changes_nothing(
    drawn: Any, total: float | None, nonnegative: bool, rounded: bool
) -> None:
    values, spread = drawn
    answer = grouped(values, spread, total)
    before = dataclasses.asdict(answer)
    made = answer.consistent(nonnegative=nonnegative, rounded=rounded)
    assert dataclasses.asdict(answer) == before
    assert len(made) == len(values)
    if nonnegative:
        assert min(made) >= 0
    if rounded:
        assert all(value == int(value) for value in made)
    if total is not None:
        goal = max(total, 0.0) if nonnegative else total
        goal = round(goal) if rounded else goal
        assert math.fsum(made) == pytest.approx(goal, abs=0 if rounded else 1e-6)
    elif not rounded:
        assert list(made) == (np.maximum(values, 0) if nonnegative else values).tolist()
    assert all(value == 0 for value, variance in zip(made, spread, strict=True) if variance == 0)


@given(groups(), st.floats(0, 2e4))
def test_a_projection_is_idempotent_and_the_nearest_point(drawn: Any, total: float) -> None:
    values, spread = drawn
    once = project(values, spread, total)
    assert once.min() >= 0
    assert once.sum() == pytest.approx(total, abs=1e-6)
    assert project(once, spread, total) == pytest.approx(once, abs=1e-6)
    assert np.array_equal(project(project(values, spread), spread), project(values, spread))
    free = spread > 0  # for every feasible z: (y − x)ᵀV⁻¹(z − x) ≤ 0; the corners are enough
    pull = (values - once)[free] / spread[free]
    corners = np.eye(free.sum()) * total - once[free]
    rounding = 1e-9 * (1 + np.abs(pull).sum()) * (1 + total + np.abs(values).max())
    assert np.all(corners @ pull <= rounding)


def test_the_projection_agrees_with_an_independent_solver() -> None:
    rng = np.random.default_rng(1)
    for size in (2, 3, 5, 8):
        values, spread = rng.normal(2, 4, size), rng.uniform(0.5, 3, size)
        total = float(rng.uniform(0.5, 10))
        found = minimize(
            lambda x, y=values, v=spread: float((((x - y) ** 2) / v).sum()),
            np.full(size, total / size),
            jac=lambda x, y=values, v=spread: 2 * (x - y) / v,
            bounds=[(0, None)] * size,
            constraints={"type": "eq", "fun": lambda x, t=total: x.sum() - t, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert project(values, spread, total) == pytest.approx(found.x, abs=1e-5)


@given(st.integers(0, 10_000), st.integers(2, 7), st.floats(0, 1))
def test_agreeing_never_makes_a_combination_less_precise(seed: int, size: int, share: float) -> None:
    sigma = covariances(seed, size)
    spread = float(sigma.sum())
    if spread < 1e-6:
        return
    gain = agree(np.zeros(size), sigma, 1.0)  # x = y + gain (T − 1ᵀy), as an explicit matrix:
    linear = np.hstack([np.eye(size) - np.outer(gain, np.ones(size)), gain[:, np.newaxis]])
    joint = np.zeros((size + 1, size + 1))
    joint[:size, :size], joint[size, size] = sigma, share * spread
    after = linear @ joint @ linear.T
    assert after == pytest.approx(sigma - (spread - share * spread) * np.outer(gain, gain), abs=1e-8)
    assert np.linalg.eigvalsh(sigma - after).min() >= -1e-8 * np.abs(sigma).max()
    assert np.all(after.diagonal() <= sigma.diagonal() * (1 + 1e-9) + 1e-9)
    joint[size, size] = 2 * spread  # a total worse than the groups' own sum: the limit of the promise
    assert np.trace(linear @ joint @ linear.T) > np.trace(sigma)


def test_agreeing_is_generalised_least_squares() -> None:
    rng = np.random.default_rng(2)
    for size in (2, 4, 7):
        factor = rng.normal(size=(size, size))
        sigma, values, total = factor @ factor.T, rng.normal(5, 3, size), float(rng.normal(5 * size, 3))
        system = np.zeros((size + 1, size + 1))  # the conditions of the optimum, with a multiplier
        system[:size, :size], system[:size, size], system[size, :size] = np.linalg.inv(sigma), 1, 1
        target = np.append(np.linalg.solve(sigma, values), total)
        assert agree(values, sigma, total) == pytest.approx(np.linalg.solve(system, target)[:size])
        stacked = np.vstack([np.eye(size), np.ones(size)])  # and the limit of an ever better total
        weight = np.zeros((size + 1, size + 1))
        weight[:size, :size], weight[size, size] = np.linalg.inv(sigma), 1e8
        estimate = np.linalg.solve(
            stacked.T @ weight @ stacked, stacked.T @ weight @ np.append(values, total)
        )
        assert agree(values, sigma, total) == pytest.approx(estimate, rel=1e-4, abs=1e-4)


@given(groups())
def test_rounding_keeps_the_total_and_moves_less_than_one(drawn: Any) -> None:
    values, _ = drawn
    made = round_to(values, math.fsum(values))
    assert made.sum() == round(math.fsum(values))
    assert np.abs(made - values).max() < 1 + 1e-9
    assert np.array_equal(round_to(made, float(made.sum())), made)


def test_what_is_known_exactly_is_not_bent() -> None:
    exact = grouped([0.0, 0.0], [0.0, 0.0])
    assert exact.consistent() == (0.0, 0.0)
    with pytest.raises(lp.ConfigError, match="known exactly"):
        exact.consistent(Answer("q", 3.0, 1.0, "measured", 0.1, 0.8))
    with pytest.raises(lp.ConfigError, match="leaves no total of 3"):
        project(np.array([5.0, 1.0]), np.array([0.0, 1.0]), 3.0)


def test_one_answer() -> None:
    answer = Answer("q", -3.2, 2.0, "measured", 0.1, 0.9)
    assert (answer.nonnegative, answer.rounded, answer.value) == (0.0, 0, -3.2)
    assert dataclasses.replace(answer, value=6.7).rounded == 7
    assert isinstance(answer.rounded, int)


def test_groups_of_known_joint_covariance_keep_their_sum() -> None:
    sigma = np.array([[2.0, -1.0], [-1.0, 2.0]])
    assert grouped([8.0, -2.0], [2.0, 2.0], covariance=sigma).consistent() == (6.0, 0.0)
    assert grouped([8.0, -2.0], [2.0, 2.0]).consistent() == (8.0, 0.0)


def opened(policy: str, *predictions: str, **more: Any) -> lp.Session:
    return lp.open_session(
        MemoryTable(DOMAIN, COUNTS),
        DOMAIN,
        budget=lp.Budget(1, 1e-3),
        horizon=20,
        policy=policy,
        predictions=list(predictions),
        **more,
    )


TOTAL, BY_SEX = (
    "SELECT COUNT(*) FROM t WHERE age < 4",
    "SELECT sex, COUNT(*) FROM t WHERE age < 4 GROUP BY sex",
)


@pytest.mark.parametrize("policy", ["independent", "static", "smooth-cache", "histogram", "primm"])
def test_a_total_that_was_answered_is_the_one_agreed_with(policy: str) -> None:
    session = opened(policy, TOTAL)
    total, spent = session.ask(TOTAL), session.spent
    groups = session.ask(BY_SEX)
    assert isinstance(total, Answer)
    assert isinstance(groups, GroupedAnswer)
    assert groups.total is not None
    assert (groups.total.value, groups.total.std, groups.total.charge) == (total.value, total.std, 0.0)
    assert math.fsum(groups.consistent()) == pytest.approx(total.nonnegative)
    assert math.fsum(groups.consistent(rounded=True)) == total.rounded
    if policy != "primm":  # which may release a batch besides, and charges each cell by itself
        assert session.spent >= (spent + groups.charge) * (1 - 1e-9)


def test_a_total_that_nobody_asked_for_is_not_measured() -> None:
    session = opened("independent")
    groups = session.ask(BY_SEX)
    assert isinstance(groups, GroupedAnswer)
    assert groups.total is None
    assert groups.covariance == pytest.approx(np.diag([answer.std**2 for answer in groups]))
    again = session.ask(BY_SEX)
    assert isinstance(again, GroupedAnswer)
    assert again.charge == 0
    assert min(groups.consistent()) >= 0
    assert math.fsum(groups.consistent()) == pytest.approx(
        max(math.fsum(answer.value for answer in groups), 0.0)
    )


def test_the_belief_of_primm_gives_a_joint_covariance_that_stays() -> None:
    session = opened("primm", release="gaussian")
    groups = session.ask("SELECT age, COUNT(*) FROM t WHERE age < 4 GROUP BY age")
    assert isinstance(groups, GroupedAnswer)
    joint = groups.covariance
    assert joint is not None
    assert joint.diagonal() == pytest.approx([answer.std**2 for answer in groups])
    assert not joint[4:].any()  # groups that WHERE excludes are known exactly
    assert np.abs(joint[0, 1:4]).max() > 0
    kept = math.fsum(answer.value for answer in groups)
    assert math.fsum(groups.consistent()) == pytest.approx(max(kept, 0.0), abs=1e-9)
    session.ask("SELECT COUNT(*) FROM t WHERE age IN (0, 2, 5)")
    replayed = session.ask(groups.query)
    assert isinstance(replayed, GroupedAnswer)
    assert [answer.value for answer in replayed] == [answer.value for answer in groups]
    assert replayed.covariance == pytest.approx(joint, rel=1e-9)


def test_an_empty_group_by_is_zero() -> None:
    groups = opened("smooth-cache").ask("SELECT sex, COUNT(*) FROM t WHERE age > 5 AND age < 3 GROUP BY sex")
    assert isinstance(groups, GroupedAnswer)
    assert groups.consistent(rounded=True) == (0.0, 0.0, 0.0)


def test_answers_show_themselves_in_one_line() -> None:
    answer = Answer("SELECT 1", 1234.5, 10.0, "measured", 0.1, 0.9)
    assert repr(answer) == "<1,234.5 ± 19.6, measured: SELECT 1>"
    assert (f"{answer:.1f}", f"{answer}", float(answer)) == ("1234.5", repr(answer), 1234.5)
    groups = GroupedAnswer("SELECT 2", tuple(dataclasses.replace(answer, group={"s": one}) for one in "ab"))
    assert repr(groups) == "<2 groups: SELECT 2>"
    assert groups["b"] == groups[1]
    with pytest.raises(KeyError):
        groups["c"]


def test_groups_are_drawn_with_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    groups = GroupedAnswer(
        "q", tuple(Answer("q", value, 2.0, "measured", 0.1, 0.9, {"s": f"{value}"}) for value in (7.0, -3.0))
    )
    axes = groups.plot()
    assert [bar.get_width() for bar in axes.patches] == [7.0, -3.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["7.0", "-3.0"]
    with pytest.raises(lp.ConfigError, match="no column 'm'"):
        groups.plot("m")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    for face in (groups.plot, groups.to_pandas):
        with pytest.raises(lp.ConfigError, match="pip install"):
            face()


def test_bins_are_spelled_as_in_toml() -> None:
    assert lp.Bins(start=0, stop=30, width=10) == lp.Bins([0, 10, 20, 30])
    for wrong in ({"start": 0}, {"edges": [0, 1], "start": 0, "stop": 1, "width": 1}, {}):
        with pytest.raises(lp.DomainError):
            lp.Bins(**wrong)
