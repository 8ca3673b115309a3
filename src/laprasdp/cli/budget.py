"""`lapras budget`: what was spent, what is left and what that still buys; and the act of raising it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from laprasdp.cli.curve import draw_spending
from laprasdp.cli.show import bar, budget_line, console, price, progress, records, say, shorten, table
from laprasdp.config import Config, read_config
from laprasdp.errors import ConfigError
from laprasdp.forecast import Forecast, forecast
from laprasdp.ledger.ledger import Kept
from laprasdp.ledger.settings import Settings
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import check_raise
from laprasdp.session import Session
from laprasdp.spending import Share, Spending, budget_of

_SHOWN = 10  # rows of the table by query


def budget(path: Path, out: Path, *, as_json: bool) -> int:
    """Print what was spent and what is left, and draw it; the table is not opened."""
    config = read_config(path)
    name, settings, entries = _read(config)
    spending = Spending(settings, entries)
    if spending.budget != config.budget:
        say(f"lapras: {path} declares {config.budget}; the ledger's budget is {spending.budget}")
    with progress("rehearsing what is left"):
        policy, _ = replace(config, budget=spending.budget).policy_before()
        rest = forecast(policy, settings, entries)
    picture = out / "budget.png"
    out.mkdir(parents=True, exist_ok=True)
    draw_spending(spending, picture)
    if as_json:
        row = {"table": config.name, "ledger": name, "entries": len(entries), "policy": policy.name}
        row |= spending.row() | {"caps": dict(config.caps), "forecast": rest.row(), "picture": str(picture)}
        print(json.dumps(row))
    else:
        _print(config, name, spending, rest)
        console().print(f"Picture: {picture}", markup=False)
    return 0


def raise_budget(
    path: Path, epsilon: float, delta: float | None, analyst: str | None, *, yes: bool, as_json: bool
) -> int:
    """Record a larger budget, if whoever is at the terminal agrees."""
    config = read_config(path)
    ledger = config.kept().existing()
    old = budget_of(ledger.dataset.settings, ledger.since(0))
    new = Budget(epsilon, old.delta if delta is None else delta)
    check_raise(old, new)
    if not yes and not _agreed(old, new):
        return 1
    session = replace(config, budget=old, windows=None).open()
    assert isinstance(session, Session)
    session.raise_budget(new, analyst=analyst)
    if as_json:
        budgets = {"old": vars(old), "new": vars(new)}
        plain = {name: {key: one[key] for key in ("epsilon", "delta")} for name, one in budgets.items()}
        print(json.dumps({"ledger": ledger.database.name, "dataset": ledger.name, **plain}))
    else:
        print(f"raised: {old} is now {new}")
    if config.budget != new:
        say(f"lapras: now write epsilon = {new.epsilon!r} and delta = {new.delta!r} in [privacy] of {path}")
    return 0


def _agreed(old: Budget, new: Budget) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("a raise weakens what was promised: where there is no terminal, confirm by --yes")
    say(f"All that was and will be released is then private for {new} only, no longer for {old}.")
    if typer.confirm("Raise the budget?", err=True):
        return True
    say("lapras: nothing was changed")
    return False


def _read(config: Config) -> tuple[str, Settings, Sequence[Kept]]:
    """Name, settings and entries of the ledger; none where nothing was begun."""
    place = config.kept()
    if not place.begun:
        return str(place.where), config.policy_before()[0].settings(), []
    ledger = place.existing()
    return ledger.database.name, ledger.dataset.settings, list(ledger.since(0))


def _print(config: Config, name: str, spending: Spending, rest: Forecast) -> None:
    screen = console()
    screen.print(
        f"{config.name}, {name}: {spending.statements} statements, {spending.refused} of them refused; "
        f"{len(spending.releases)} releases.",
        markup=False,
    )
    share = spending.epsilon_spent / spending.budget.epsilon
    screen.print(f"[bold]Budget[/]  {bar(share)}  {budget_line(spending)}")
    for raised in spending.raises:
        who = f" by {raised.analyst}" if raised.analyst else ""
        screen.print(f"raised {raised.at:%Y-%m-%d}{who}: from {raised.old} to {raised.new}", markup=False)
    screen.print()
    if spending.statements:
        _by_analyst(spending.analysts, config.caps, spending.unit)
        _by_source(spending.sources, spending.unit)
        _by_query(spending)
    screen.print(f"[bold]Forecast[/]  {_forecast(rest)}\n")


def _by_analyst(analysts: Iterable[Share], caps: Mapping[str, float], unit: str) -> None:
    shown = {share.name: share for share in analysts}
    for name in caps:
        shown.setdefault(name, Share(name, 0, 0, 0.0, 0.0))
    rows = table("analyst", ">statements", ">refused", f">spent {unit}", ">spent ε", ">cap ε")
    for share in shown.values():
        cap = caps.get(share.name or "")
        rows.add_row(
            share.name or "(no name)",
            str(share.count),
            str(share.refused),
            price(share.spent),
            f"{share.epsilon_spent:.3g}",
            "" if cap is None else f"{cap:g}",
        )
    console().print(rows)
    console().print()


def _by_source(sources: Iterable[Share], unit: str) -> None:
    rows = table("source", ">answers", f">spent {unit}", ">spent ε")
    for share in sources:
        name, count = share.name or "", f"{share.count:,}"
        if name == "opening":
            name, count = f"{name} ({count} {'release' if share.count == 1 else 'releases'})", ""
        rows.add_row(name, count, price(share.spent), f"{share.epsilon_spent:.3g}")
    console().print(rows)
    console().print("What touches different cells shares a charge: parts may add up to more than is spent.\n")


def _by_query(spending: Spending) -> None:
    dearest, screen = spending.dearest, console()
    if not dearest:
        return
    rows = table(f">charge {spending.unit}", "<analyst", "<asked", "measured for, most expensive first")
    for one in dearest[:_SHOWN]:
        text = shorten(one.statement or "", max(screen.width - 50, 30))
        rows.add_row(price(one.charge), one.analyst or "", f"{one.at:%Y-%m-%d %H:%M}", text)
    screen.print(rows, markup=False)
    if len(dearest) > _SHOWN:
        screen.print(f"and {len(dearest) - _SHOWN} more; --json lists all")
    screen.print()


def _forecast(rest: Forecast) -> str:
    if not rest.queries:
        return "no typical query that has to be measured fits any more; what was released stays free."
    many = f"{rest.queries} or more" if rest.more else f"about {rest.queries}"
    known = f", {rest.free} of them from what is known by then" if rest.free else ""
    first, last = records(rest.first), records(rest.last)
    course = "" if first == last else f", {first} at first and {last} in the end"
    std = f"a standard deviation of about {records(rest.mean)}{course}"
    return f"{many} further typical queries fit{known}.\nThey have {std}."
