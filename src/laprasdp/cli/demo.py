"""`lapras demo`: 100 private queries on a public table, so that the truth can stand beside every answer."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from laprasdp.cli.outcome import COUNT, HORIZON, PREDICTED, Outcome, answer_stream
from laprasdp.cli.picture import draw
from laprasdp.cli.show import bar, budget_line, console, price, records, shorten, table


def demo(policy: str, accounting: str, out: Path, seed: int, *, as_json: bool) -> int:
    """Run the demo, print it and draw its picture."""
    outcome = answer_stream(policy, accounting, seed)
    picture = out / "demo.png"
    out.mkdir(parents=True, exist_ok=True)
    draw(outcome, picture)
    if as_json:
        print(json.dumps(outcome.row(picture, seed)))
    else:
        _print(outcome, picture)
    return 0


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
        f"[bold]{HORIZON} counting queries over the ages of {outcome.people:,} people, "
        f"answered under one budget: ε = {plan.epsilon:g}, δ = {plan.delta:g}.[/]\n"
        "Each at once, with real noise. The table (UCI Adult) is public, so the truth stands beside it.\n"
    )
    screen.print(f"[bold]Plan[/] ({plan.policy}, {plan.accounting} accounting), made before any data is read")
    typical = min(plan.streams, key=lambda stream: abs(stream.overlap - PREDICTED / HORIZON))
    lines = table("", ">mean error")
    lines.add_row(f"  {len(plan.predicted)} predicted ranges of ages", records(plan.predicted_mae))
    lines.add_row(
        f"  {HORIZON - PREDICTED} unpredicted sets of ages",
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
    screen.print(f"[bold]Budget[/]  {bar(share)}  {budget_line(session.account)}\n")
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
        ("  Smooth Allocation, Gaussian accounting: expected", outcome.smooth_mae["gaussian"]),
        ("  Smooth Allocation, basic accounting, as in the paper", outcome.smooth_mae["basic"]),
        ("  independent noise, Gaussian accounting: expected", plan.independent_gaussian_mae),
        ("  independent noise, basic accounting: expected", plan.independent_basic_mae),
    ):
        ratio = value / expected if value is not None and expected else math.nan
        lines.add_row(label, "-" if value is None else records(value), f"{ratio:.1f}")
    screen.print(lines)
    coverage = outcome.coverage
    if coverage is not None:
        screen.print(f"\n{coverage:.0%} of the 95% intervals hold the truth. {outcome.seconds:.1f} s.")
