"""The demo's stream: the workload of the paper's appendix on a public table, and what came of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from laprasdp import datasets
from laprasdp.cli.show import progress
from laprasdp.errors import BudgetExhausted
from laprasdp.policy.catalog import policy_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.law import expected_error
from laprasdp.queries.attribute import Integers
from laprasdp.queries.domain import Domain
from laprasdp.stream.answer import Answer
from laprasdp.stream.opening import open_session
from laprasdp.stream.plan import Plan
from laprasdp.stream.session import Session

AGE = Integers(17, 90)
BUDGET = Budget(epsilon=1.0, delta=1e-6)
HORIZON, PREDICTIONS, PREDICTED = 100, 100, 80
COUNT = "SELECT COUNT(*) FROM adult WHERE "


@dataclass(frozen=True)
class Asked:
    """
    One statement of the stream, its answer (None if it was refused) and the truth.

    Attributes
    ----------
    text : str
    predicted : bool
        It was drawn from the prediction set.
    answer : Answer or None
    truth : int
        The exact count; known because the table is public.
    """

    text: str
    predicted: bool
    answer: Answer | None
    truth: int

    @property
    def error(self) -> float | None:
        return None if self.answer is None else self.answer.value - self.truth


@dataclass(frozen=True)
class Outcome:
    """
    A finished demo.

    Attributes
    ----------
    session : Session
    plan : Plan
    people : int
        Rows of the table.
    asked : tuple of Asked
    smooth_mae : dict
        What the paper's Smooth Allocation would be expected to give on the same stream, by accounting.
    seconds : float
    """

    session: Session
    plan: Plan
    people: int
    asked: tuple[Asked, ...]
    smooth_mae: dict[str, float | None]
    seconds: float

    @property
    def answers(self) -> list[tuple[Asked, Answer]]:
        """What was answered."""
        return [(asked, asked.answer) for asked in self.asked if asked.answer is not None]

    def mae(self, predicted: bool | None = None) -> float | None:
        """Mean absolute error of what was answered; of predicted or of unpredicted statements alone."""
        return _mean(
            [abs(a.value - q.truth) for q, a in self.answers if predicted is None or q.predicted == predicted]
        )

    @property
    def expected_mae(self) -> float | None:
        """What `mae` is on average over the noise, exactly."""
        return _mean([answer.expected_error for _, answer in self.answers])

    @property
    def planned_mae(self) -> float | None:
        """The plan's figure for a stream of this overlap."""
        near = min(self.plan.streams, key=lambda stream: abs(stream.overlap - PREDICTED / HORIZON))
        return near.mae

    @property
    def coverage(self) -> float | None:
        """Share of the 95% intervals that hold the truth."""
        intervals = [(asked.truth, *answer.interval(0.95)) for asked, answer in self.answers]
        return _mean([float(low <= truth <= high) for truth, low, high in intervals])

    def row(self, picture: Path, seed: int) -> dict[str, Any]:
        """The outcome as plain data, as ``--json`` prints it."""
        return {
            "policy": self.session.policy,
            "accounting": self.session.accounting,
            "queries": len(self.asked),
            "predicted": sum(asked.predicted for asked in self.asked),
            "answered": len(self.answers),
            "epsilon": self.session.budget.epsilon,
            "delta": self.session.budget.delta,
            "epsilon_spent": self.session.epsilon_spent,
            "mae": self.mae(),
            "expected_mae": self.expected_mae,
            "planned_mae": self.planned_mae,
            "smooth_basic_mae": self.smooth_mae["basic"],
            "smooth_gaussian_mae": self.smooth_mae["gaussian"],
            "independent_basic_mae": self.plan.independent_basic_mae,
            "independent_gaussian_mae": self.plan.independent_gaussian_mae,
            "interval_coverage": self.coverage,
            "seed": seed,
            "seconds": self.seconds,
            "picture": str(picture),
        }


def draw_stream(seed: int) -> tuple[list[str], list[tuple[str, bool]]]:
    """
    The workload of the paper's appendix, drawn without looking at any data.

    Parameters
    ----------
    seed : int

    Returns
    -------
    predictions : list of str
        Distinct random ranges, uniform over all contiguous ranges of ages.
    stream : list of (str, bool)
        80 statements from the predictions and 20 that nobody predicted, each age in them with probability
        1/2; in random order, each with whether it was predicted.
    """
    rng = np.random.default_rng(seed)
    ages = range(AGE.min, AGE.max + 1)
    ranges = [(low, high) for low in ages for high in ages if low <= high]
    chosen = rng.choice(len(ranges), PREDICTIONS, replace=False)
    predictions = ["{}age BETWEEN {} AND {}".format(COUNT, *ranges[i]) for i in chosen]
    stream = [(predictions[i], True) for i in rng.choice(PREDICTIONS, PREDICTED, replace=False)]
    for _ in range(HORIZON - PREDICTED):
        named = [str(age) for age, flag in zip(ages, rng.random(len(ages)) < 0.5, strict=True) if flag]
        stream.append((f"{COUNT}age IN ({', '.join(named or [str(AGE.min)])})", False))
    return predictions, [stream[i] for i in rng.permutation(HORIZON)]


def answer_stream(policy: str, accounting: str, seed: int) -> Outcome:
    """Open the table, plan, and answer the stream with real noise."""
    predictions, stream = draw_stream(seed)
    start = time.perf_counter()
    session = open_session(
        datasets.path("adult"),
        Domain(age=AGE),
        budget=BUDGET,
        horizon=HORIZON,
        predictions=predictions,
        policy=policy,
        accounting=accounting,
        name="adult",
        public=True,
    )
    planned = session.plan()
    exact = session.table.marginal((0,))  # Adult is public; on a private table nobody sees this
    asked = []
    with progress("answering", HORIZON) as step:
        for text, predicted in stream:
            statement = session.parse(text)
            try:
                answer = session.ask(statement)
                assert isinstance(answer, Answer)
            except BudgetExhausted:
                answer = None
            truth = statement.queries[0].answer(exact)
            asked.append(Asked(text, predicted, answer, truth))
            step()
    smooth = {kind: _smooth_mae(session, asked, kind) for kind in ("basic", "gaussian")}
    people, seconds = int(exact.counts.sum()), time.perf_counter() - start
    return Outcome(session, planned, people, tuple(asked), smooth, seconds)


def _smooth_mae(session: Session, asked: list[Asked], accounting: str) -> float | None:
    """Expected error of Smooth Allocation on the statements that were asked, of what it would answer."""
    policy = policy_named("smooth", replace(session.setting, accounting=accounting))
    variances = policy.rehearse([not question.predicted for question in asked])
    variances += [policy.expected_variance(session.parse(q.text).queries[0]) for q in asked if q.predicted]
    return _mean([expected_error(math.sqrt(variance)) for variance in variances if variance is not None])


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
