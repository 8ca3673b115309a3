"""`lapras demo`: 100 private queries on a public table, so that the truth can stand beside every answer."""

from __future__ import annotations

import json
import math
from pathlib import Path

from rich.markup import escape

from laprasdp.cli.office import office
from laprasdp.cli.outcome import Asked, Outcome, answer_stream
from laprasdp.cli.picture import draw
from laprasdp.cli.scene import BUDGET, HORIZON, Scene, census
from laprasdp.cli.show import bar, budget_line, console, price, records, shorten, table
from laprasdp.stream.plan import Plan
from laprasdp.stream.session import Session

SCENES = {"flights": office, "adult": census}
NUMBERS = 61  # columns that the numbers of an answer take


def demo(about: str, policy: str, accounting: str, out: Path, seed: int, *, as_json: bool) -> int:
    """Run the demo on the table called `about`, print it and draw its picture."""
    scene = SCENES[about](seed)
    picture = out / "demo.png"
    out.mkdir(parents=True, exist_ok=True)
    if as_json:
        outcome = answer_stream(scene, policy, accounting)
        draw(outcome, picture)
        print(json.dumps(outcome.row(picture, seed)))
        return 0
    told = _Told(scene)
    outcome = answer_stream(scene, policy, accounting, told.begin, told.tell)
    draw(outcome, picture)
    _end(outcome, picture)
    return 0


class _Told:
    """The stream on the screen, statement by statement as they come."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.screen, self.place = scene, console(), 0

    def begin(self, session: Session, plan: Plan, rows: int) -> None:
        """What is about to happen, the plan, and the head of the answers."""
        scene, screen = self.scene, self.screen
        screen.print(
            f"[bold]{HORIZON} counting queries over {rows:,} {scene.rows}, "
            f"answered under one budget: ε = {BUDGET.epsilon:g}, δ = {BUDGET.delta:g}.[/]\n"
            "Each at once, with real noise. The table is public, so the truth stands beside every answer.\n"
            f"{escape(scene.about)}\n"
        )
        screen.print(
            f"[bold]Plan[/] ({plan.policy}, {plan.accounting} accounting), made before any data is read"
        )
        typical = min(plan.streams, key=lambda stream: abs(stream.overlap - scene.predicted_share))
        lines = table("", ">mean error")
        lines.add_row(f"  {len(plan.predicted)} predicted queries", records(plan.predicted_mae))
        lines.add_row("  queries that nobody predicted", records(typical.unpredicted_mae))
        lines.add_row("  the whole stream", records(typical.mae))
        screen.print(lines)
        charge = f"charge {session.unit}"
        screen.print(
            f"\n[bold]{'#':>3} {'true':>7} {'answer':>9} {'±95%':>7} {'error':>7} {charge:>10} "
            f"{'':9} {scene.rows} with[/]"
        )

    def tell(self, asked: Asked) -> None:
        """One answer."""
        self.place += 1
        answer = asked.answer
        head = f"{self.place:>3} {asked.truth:>7,}"
        text = shorten(self.scene.brief(asked.text), max(self.screen.width - NUMBERS, 14))
        if answer is None:
            self.screen.print(f"{head} {'refused':>9}{'':36}{escape(text)}")
            return
        low, high = answer.interval(0.95)
        missed = "" if low <= asked.truth <= high else "*"
        told = f"{answer.source:9} {escape(text)}"
        numbers = f"{records(answer.value):>9} {records((high - low) / 2):>7} {records(asked.error):>6}"
        told = told if asked.predicted else f"[yellow]{told}[/]"
        self.screen.print(f"{head} {numbers}{missed:1} {price(answer.charge):>10} {told}")


def _end(outcome: Outcome, picture: Path) -> None:
    """What it cost, and what others would have given."""
    screen, session = console(), outcome.session
    screen.print(
        "* the 95% interval does not hold the truth: expected of one in twenty. Predicted answers share\n"
        "  one release, so their errors go together and misses come in groups.\n"
    )
    share = session.epsilon_spent / session.budget.epsilon
    screen.print(f"[bold]Budget[/]  {bar(share)}  {budget_line(session.account)}\n")
    _compare(outcome)
    screen.print(f"Picture: {picture}", markup=False)


def _compare(outcome: Outcome) -> None:
    screen, mae = console(), outcome.mae()
    screen.print("[bold]Mean absolute error[/] in records, at the same ε and δ")
    lines = table("", ">mean", ">ratio")
    expected = outcome.expected_mae
    for label, value in (
        (f"  this session, {len(outcome.answers)} answers: measured", mae),
        ("  this session: expected of its noise", expected),
        *((f"  {label}: expected", value) for label, value in outcome.others.items()),
    ):
        ratio = value / expected if value is not None and expected else math.nan
        lines.add_row(label, "-" if value is None else records(value), f"{ratio:.1f}")
    screen.print(lines)
    coverage = outcome.coverage
    if coverage is not None:
        screen.print(f"\n{coverage:.0%} of the 95% intervals hold the truth. {outcome.seconds:.1f} s.")
