"""`lapras budget` of a table in periods: what was spent of each, and of all of them for whom and on what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laprasdp.cli.curve import draw_periods
from laprasdp.cli.remaining import left, tell_other_budget
from laprasdp.cli.show import bar, console, table
from laprasdp.cli.spent import by_analyst, by_query, by_source, forecast_words, raised_words
from laprasdp.config import Config
from laprasdp.config.begun import read
from laprasdp.periods.period import Part
from laprasdp.periods.spent import WindowedSpending


def overview(config: Config, out: Path, *, as_json: bool) -> int:
    """The overview of a table in periods; the forecast is for the one that has the least left."""
    assert config.windows is not None
    parts = config.windows.parts(config.domain)
    name, kept = read(config, parts.values())
    spending = WindowedSpending({period: kept[period] for period in parts})
    tight = spending.tightest
    for period, part in parts.items():
        tell_other_budget(config, part, spending.each[period].budget)
    rest = left(config, parts[tight], spending.each[tight], kept[tight])
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "budget.png"
    draw_periods(spending, picture)
    if as_json:
        rows = [
            {
                "period": period,
                "last": part.period.last.isoformat(),
                "entries": len(kept[period][1]),
                **spending.each[period].row(),
            }
            for period, part in parts.items()
        ]
        row: dict[str, Any] = {"table": config.name, "ledger": name, "attribute": config.windows.attribute}
        row |= spending.row() | {"caps": dict(config.caps), "periods": rows}
        row |= {"forecast": {"period": tight, **rest.row()}, "picture": str(picture)}
        print(json.dumps(row))
        return 0
    console().print(
        f"{config.name}, {name}: {len(parts)} periods of {config.windows.attribute}; "
        f"{spending.statements} statements, {spending.refused} of them refused.\n",
        markup=False,
    )
    _print_spent(config, parts, spending)
    screen = console()
    screen.print(f"[bold]Forecast[/]  in the period from {tight}, which has the least left:", highlight=False)
    screen.print(f"{forecast_words(rest)}\n")
    screen.print(f"Picture: {picture}", markup=False)
    return 0


def _print_spent(config: Config, parts: Mapping[str, Part], spending: WindowedSpending) -> None:
    _by_period(parts, spending)
    if spending.statements:
        console().print("Budgets of periods do not add up: below stands the period where it is most.\n")
        by_analyst(spending.analysts, config.caps, spending.unit)
        by_source(spending.sources, spending.unit)
        by_query(
            spending.unit,
            [
                (one.most, one.analyst, one.at, one.statement, str(len(one.charges)))
                for one in spending.dearest
            ],
        )


def _by_period(parts: Mapping[str, Part], spending: WindowedSpending) -> None:
    rows = table("<period", ">statements", ">refused", ">releases", ">spent ε", ">of ε", ">left", "")
    for period, part in parts.items():
        one = spending.each[period]
        rows.add_row(
            str(part.period),
            f"{one.statements:,}",
            f"{one.refused:,}",
            f"{len(one.releases):,}",
            f"{one.epsilon_spent:.3g}",
            f"{one.budget.epsilon:g}",
            f"{one.share_left:.0%}",
            bar(1 - one.share_left, 20),
        )
    console().print(rows)
    for period, one in spending.each.items():
        for raised in one.raises:
            console().print(f"{period} {raised_words(raised)}", markup=False)
    console().print()
