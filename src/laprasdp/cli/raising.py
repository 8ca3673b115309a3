"""`lapras budget raise`: a larger budget, on record."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from laprasdp.cli.remaining import declared_budget, policy_now
from laprasdp.cli.show import say
from laprasdp.config import read_config
from laprasdp.config.begun import declared, existing
from laprasdp.errors import ConfigError
from laprasdp.periods.period import Part
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import check_raise
from laprasdp.privacy.noise import ExactNoise
from laprasdp.stream.rehearsal import Empty
from laprasdp.stream.session import Session
from laprasdp.stream.spending import budget_of


def raise_budget(
    path: Path,
    epsilon: float,
    delta: float | None,
    period: str | None,
    analyst: str | None,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Record a larger budget, if whoever is at the terminal agrees; the table is not opened."""
    config = read_config(path)
    if config.windows is not None and period is None:
        raise ConfigError("a raise is for one period: name it by --period and its first date")
    part = None if period is None else declared(config, period)
    ledger = existing(config, period)[period]
    old = budget_of(ledger.dataset.settings, ledger.since(0))
    new = Budget(epsilon, old.delta if delta is None else delta)
    check_raise(old, new)
    if not yes and not _agreed(old, new, part):
        return 1
    policy = policy_now(config, part, old)
    table = Empty(policy.setting.domain, policy.setting.unit)
    Session(table, policy, noise=ExactNoise(), ledger=ledger).raise_budget(new, analyst=analyst)
    if as_json:
        budgets = {"old": vars(old), "new": vars(new)}
        plain = {name: {key: one[key] for key in ("epsilon", "delta")} for name, one in budgets.items()}
        row = {"ledger": ledger.database.name, "dataset": ledger.name}
        print(json.dumps(row | ({"period": period} if part else {}) | plain))
    else:
        print(f"raised{f', {part.period}' if part else ''}: {old} is now {new}")
    if declared_budget(config, part) != new:
        section = f"[windows.budgets.{period}]" if part else "[privacy]"
        say(f"lapras: now write epsilon = {new.epsilon!r} and delta = {new.delta!r} in {section} of {path}")
    return 0


def _agreed(old: Budget, new: Budget, part: Part | None) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("a raise weakens what was promised: where there is no terminal, confirm by --yes")
    what = f"of {part.period} " if part else ""
    say(f"All that was and will be released {what}is then private for {new} only, no longer for {old}.")
    if typer.confirm("Raise the budget?", err=True):
        return True
    say("lapras: nothing was changed")
    return False
