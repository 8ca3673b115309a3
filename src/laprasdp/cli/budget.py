"""`lapras budget`: what was spent, what is left and what that still buys, of a table or of one period."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from laprasdp.cli.curve import draw_spending
from laprasdp.cli.periods import overview
from laprasdp.cli.remaining import left, tell_other_budget
from laprasdp.cli.show import bar, budget_line, console
from laprasdp.cli.spent import by_analyst, by_query, by_source, forecast_words, raised_words
from laprasdp.config import read_config
from laprasdp.config.begun import declared, read
from laprasdp.stream.rehearsal import Rehearsal
from laprasdp.stream.spending import Spending


def budget(path: Path, out: Path, period: str | None, *, as_json: bool) -> int:
    """Print what was spent and what is left, and draw it; the table is not opened."""
    config = read_config(path)
    if config.windows is not None and period is None:
        return overview(config, out, as_json=as_json)
    part = None if period is None else declared(config, period)
    name, kept = read(config, [part])
    settings, entries = kept[period]
    spending = Spending(settings, entries)
    tell_other_budget(config, part, spending.budget)
    rest = left(config, part, spending, kept[period])
    out.mkdir(parents=True, exist_ok=True)
    picture = out / (f"budget-{period}.png" if period else "budget.png")
    draw_spending(spending, picture)
    if as_json:
        row = {"table": config.name, "ledger": name, "entries": len(entries), "policy": settings["policy"]}
        row |= {"period": period} if part else {}
        row |= spending.row() | {"caps": dict(config.caps), "forecast": rest.row(), "picture": str(picture)}
        print(json.dumps(row))
    else:
        what = f"{config.name}, {name}" + (f", {part.period}" if part else "")
        _print(what, config.caps, spending, rest)
        console().print(f"Picture: {picture}", markup=False)
    return 0


def _print(what: str, caps: Mapping[str, float], spending: Spending, rest: Rehearsal) -> None:
    screen = console()
    screen.print(
        f"{what}: {spending.statements} statements, {spending.refused} of them refused; "
        f"{len(spending.releases)} releases.",
        markup=False,
    )
    share = spending.epsilon_spent / spending.budget.epsilon
    screen.print(f"[bold]Budget[/]  {bar(share)}  {budget_line(spending)}")
    for raised in spending.raises:
        screen.print(raised_words(raised), markup=False)
    screen.print()
    if spending.statements:
        by_analyst(spending.analysts, caps, spending.unit)
        by_source(spending.sources, spending.unit)
        by_query(
            spending.unit,
            [(one.charge, one.analyst, one.at, one.statement, "") for one in spending.dearest],
        )
    screen.print(f"[bold]Forecast[/]  {forecast_words(rest)}\n")
