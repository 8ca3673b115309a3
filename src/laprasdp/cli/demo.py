"""`lapras demo`: 100 private queries on a public table, so that the truth can stand beside every answer."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laprasdp import datasets
from laprasdp.answer import Answer
from laprasdp.attribute import Integers
from laprasdp.cli.show import bar, budget_line, console, price, progress, records, shorten, table
from laprasdp.domain import Domain
from laprasdp.errors import BudgetExhausted
from laprasdp.opening import open_session
from laprasdp.plan import Plan
from laprasdp.privacy.budget import Budget
from laprasdp.session import Session

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
    """A finished demo."""

    session: Session
    plan: Plan
    asked: tuple[Asked, ...]
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
            "independent_basic_mae": self.plan.independent_basic_mae,
            "independent_gaussian_mae": self.plan.independent_gaussian_mae,
            "interval_coverage": self.coverage,
            "seed": seed,
            "seconds": self.seconds,
            "picture": str(picture),
        }


def demo(policy: str, accounting: str, out: Path, seed: int, *, as_json: bool) -> int:
    """Run the demo, print it and draw its picture."""
    from laprasdp.cli.picture import draw

    outcome = answer_stream(policy, accounting, seed)
    picture = out / "demo.png"
    out.mkdir(parents=True, exist_ok=True)
    draw(outcome, picture)
    if as_json:
        print(json.dumps(outcome.row(picture, seed)))
    else:
        _print(outcome, picture)
    return 0


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
            truth = statement.queries[0].answer(exact.levels, exact.counts)
            asked.append(Asked(text, predicted, answer, truth))
            step()
    return Outcome(session, planned, tuple(asked), time.perf_counter() - start)


def brief(text: str) -> str:
    """A demo statement in words, for a narrow table."""
    numbers = re.findall(r"\d+", text.removeprefix(COUNT))
    if "BETWEEN" in text:
        return "age {} to {}".format(*numbers)
    return f"any of {len(numbers)} ages: {', '.join(numbers)}"


def _print(outcome: Outcome, picture: Path) -> None:
    session, plan = outcome.session, outcome.plan
    screen = console()
    screen.print(
        f"[bold]{HORIZON} counting queries over the ages of 48,842 people, answered under one budget: "
        f"ε = {plan.epsilon:g}, δ = {plan.delta:g}.[/]\n"
        "Each at once, with real noise. The table (UCI Adult) is public, so the truth stands beside it.\n"
    )
    screen.print(f"[bold]Plan[/] ({plan.policy}, {plan.accounting} accounting), made before any data is read")
    typical = min(plan.streams, key=lambda stream: abs(stream.overlap - PREDICTED / HORIZON))
    lines = table("", ">mean error")
    lines.add_row(
        f"  {len(plan.predicted)} predicted ranges of ages, from one release", records(plan.predicted_mae)
    )
    lines.add_row(
        f"  {HORIZON - PREDICTED} unpredicted sets of ages, each measured when it comes",
        records(typical.unpredicted_mae),
    )
    lines.add_row("  the whole stream", records(typical.mae))
    screen.print(lines)
    screen.print()
    charge = f">charge {session.unit}"
    rows = table(">#", ">true", ">answer", ">±95%", ">error", "<source", charge, "people with")
    for place, asked in enumerate(outcome.asked, start=1):
        answer, text = asked.answer, shorten(brief(asked.text), min(max(screen.width - 62, 14), 50))
        if answer is None:
            rows.add_row(str(place), f"{asked.truth:,}", "refused", "", "", "", "", text)
            continue
        low, high = answer.interval(0.95)
        numbers = [records(answer.value), records((high - low) / 2), records(asked.error)]
        source = answer.source + ("" if low <= asked.truth <= high else " *")
        rows.add_row(str(place), f"{asked.truth:,}", *numbers, source, price(answer.charge), text)
    screen.print(rows)
    screen.print(
        "* the 95% interval does not hold the truth: expected of one in twenty. Predicted\n"
        "  answers share one release, so their errors go together and misses come in groups.\n"
    )
    share = session.epsilon_spent / session.budget.epsilon
    screen.print(f"[bold]Budget[/]  {bar(share)}  {budget_line(session)}\n")
    _compare(outcome)
    screen.print(f"Picture: {picture}", markup=False)


def _compare(outcome: Outcome) -> None:
    screen, mae, plan = console(), outcome.mae(), outcome.plan
    screen.print("[bold]Mean absolute error[/] in records, at the same ε and δ")
    lines = table("", ">mean", ">ratio")
    expected = outcome.expected_mae
    for label, value in (
        (f"  this session, {len(outcome.answers)} answers: measured", mae),
        ("  this session: expected of its noise", expected),
        ("  independent noise, Gaussian accounting: expected", plan.independent_gaussian_mae),
        ("  independent noise, basic accounting: expected", plan.independent_basic_mae),
    ):
        ratio = value / expected if value is not None and expected else math.nan
        lines.add_row(label, "-" if value is None else records(value), f"{ratio:.1f}")
    screen.print(lines)
    coverage = outcome.coverage
    if coverage is not None:
        screen.print(f"\n{coverage:.0%} of the 95% intervals hold the truth. {outcome.seconds:.1f} s.")


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
