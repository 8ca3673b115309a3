"""What came of a demo: every answer beside the truth, and beside what others would have given."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laprasdp import datasets
from laprasdp.cli.scene import BUDGET, HORIZON, Scene
from laprasdp.errors import BudgetExhausted
from laprasdp.policy.catalog import policy_named
from laprasdp.privacy.law import expected_error
from laprasdp.stream.answer import Answer
from laprasdp.stream.opening import open_session
from laprasdp.stream.plan import Plan
from laprasdp.stream.session import Session


@dataclass(frozen=True)
class Asked:
    """
    One statement of the stream, its answer (None if it was refused) and the truth.

    Attributes
    ----------
    text : str
    predicted : bool
        It is in the prediction set.
    answer : Answer or None
    unaided : Answer or None
        The answer of a session of the same policy without predictions, if it can do without.
    truth : int
        The exact count; known because the table is public.
    spent : float
        Share of the budget that was spent when it was answered.
    """

    text: str
    predicted: bool
    answer: Answer | None
    unaided: Answer | None
    truth: int
    spent: float

    @property
    def error(self) -> float | None:
        return None if self.answer is None else self.answer.value - self.truth


@dataclass(frozen=True)
class Outcome:
    """
    A finished demo.

    Attributes
    ----------
    scene : Scene
    session : Session
    plan : Plan
    rows : int
        Rows of the table.
    asked : tuple of Asked
    smooth_mae : dict
        What the paper's Smooth Allocation would be expected to give on the same stream, by accounting.
    seconds : float
    """

    scene: Scene
    session: Session
    plan: Plan
    rows: int
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
    def unaided_mae(self) -> float | None:
        """The same of a session without predictions."""
        return _mean([asked.unaided.expected_error for asked in self.asked if asked.unaided is not None])

    @property
    def planned_mae(self) -> float | None:
        """The plan's figure for a stream of this overlap."""
        near = min(self.plan.streams, key=lambda stream: abs(stream.overlap - self.scene.predicted_share))
        return near.mae

    @property
    def others(self) -> dict[str, float | None]:
        """Expected error of others on the same stream, at the same budget, by what they are."""
        plan = self.plan
        return {
            "without predictions": self.unaided_mae,
            "Smooth Allocation, Gaussian accounting": self.smooth_mae["gaussian"],
            "Smooth Allocation, basic accounting, as in the paper": self.smooth_mae["basic"],
            "independent noise, Gaussian accounting": plan.independent_gaussian_mae,
            "independent noise, basic accounting": plan.independent_basic_mae,
        }

    @property
    def coverage(self) -> float | None:
        """Share of the 95% intervals that hold the truth."""
        intervals = [(asked.truth, *answer.interval(0.95)) for asked, answer in self.answers]
        return _mean([float(low <= truth <= high) for truth, low, high in intervals])

    def row(self, picture: Path, seed: int) -> dict[str, Any]:
        """The outcome as plain data, as ``--json`` prints it."""
        return {
            "table": self.scene.table,
            "policy": self.session.policy,
            "accounting": self.session.accounting,
            "queries": len(self.asked),
            "predicted": sum(asked.predicted for asked in self.asked),
            "foretold_overlap": self.scene.overlap,
            "answered": len(self.answers),
            "epsilon": self.session.budget.epsilon,
            "delta": self.session.budget.delta,
            "epsilon_spent": self.session.epsilon_spent,
            "mae": self.mae(),
            "expected_mae": self.expected_mae,
            "planned_mae": self.planned_mae,
            "without_predictions_mae": self.unaided_mae,
            "smooth_basic_mae": self.smooth_mae["basic"],
            "smooth_gaussian_mae": self.smooth_mae["gaussian"],
            "independent_basic_mae": self.plan.independent_basic_mae,
            "independent_gaussian_mae": self.plan.independent_gaussian_mae,
            "interval_coverage": self.coverage,
            "seed": seed,
            "seconds": self.seconds,
            "picture": str(picture),
        }


def answer_stream(
    scene: Scene,
    policy: str,
    accounting: str,
    begun: Callable[[Session, Plan, int], None] = lambda session, plan, rows: None,
    shown: Callable[[Asked], None] = lambda asked: None,
) -> Outcome:
    """
    Open the table with predictions and without, plan, and answer the stream with real noise.

    `begun` is called with the session, its plan and the number of rows, and `shown` with each statement as
    soon as it is answered.
    """
    start = time.perf_counter()
    session = _opened(scene, policy, accounting, aided=True)
    unaided = None if policy == "offline" else _opened(scene, policy, accounting, aided=False)
    planned = session.plan()
    exact = {}  # the tables are public; on a private one nobody sees this
    rows = int(session.table.marginal((0,)).counts.sum())
    begun(session, planned, rows)
    asked = []
    for text, predicted in scene.stream:
        query = session.parse(text).queries[0]
        if query.axes not in exact:
            exact[query.axes] = session.table.marginal(query.axes)
        truth = query.answer(exact[query.axes])
        answer, plain = _answered(session, text), None if unaided is None else _answered(unaided, text)
        asked.append(Asked(text, predicted, answer, plain, truth, _spent(session)))
        shown(asked[-1])
    smooth = {kind: _smooth_mae(session, asked, kind) for kind in ("basic", "gaussian")}
    seconds = time.perf_counter() - start
    return Outcome(scene, session, planned, rows, tuple(asked), smooth, seconds)


def _opened(scene: Scene, policy: str, accounting: str, *, aided: bool) -> Session:
    return open_session(
        datasets.path(scene.table),
        scene.domain,
        budget=BUDGET,
        horizon=HORIZON,
        predictions=scene.predictions if aided else (),
        overlap=scene.overlap if aided else None,
        policy=policy,
        accounting=accounting,
        name=scene.table,
        public=True,
    )


def _spent(session: Session) -> float:
    """Share of the budget that is spent."""
    account = session.account
    return account.spent / (account.spent + account.remaining)


def _answered(session: Session, text: str) -> Answer | None:
    try:
        answer = session.ask(text)
    except BudgetExhausted:
        return None
    assert isinstance(answer, Answer)
    return answer


def _smooth_mae(session: Session, asked: list[Asked], accounting: str) -> float | None:
    """Expected error of Smooth Allocation on the statements that were asked, of what it would answer."""
    policy = policy_named("smooth", replace(session.setting, accounting=accounting))
    variances = policy.rehearse([not question.predicted for question in asked])
    variances += [policy.expected_variance(session.parse(q.text).queries[0]) for q in asked if q.predicted]
    return _mean([expected_error(math.sqrt(variance)) for variance in variances if variance is not None])


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
