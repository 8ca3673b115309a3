"""What is left of a ledger's budget, or of a period's, and what that still buys."""

from __future__ import annotations

from laprasdp.cli.show import progress, say
from laprasdp.config import Config
from laprasdp.config.begun import Begun, declared
from laprasdp.periods.period import Part
from laprasdp.policy.policy import Policy
from laprasdp.privacy.budget import Budget
from laprasdp.stream.rehearsal import Rehearsal, rehearse
from laprasdp.stream.spending import Spending


def policy_now(config: Config, part: Part | None, budget: Budget) -> Policy:
    """The policy before the stream, of the table or of a period, with the budget that its ledger has now."""
    now = config.with_budget(budget)
    return now.policy_before(part and declared(now, part.period.name))[0]


def left(config: Config, part: Part | None, spending: Spending, kept: Begun) -> Rehearsal:
    """What the rest of a budget still buys."""
    with progress("rehearsing what is left"):
        return rehearse(policy_now(config, part, spending.budget), *kept)


def declared_budget(config: Config, part: Part | None) -> Budget:
    """The budget that `lapras.toml` declares."""
    return config.budget if part is None or part.period.budget is None else part.period.budget


def tell_other_budget(config: Config, part: Part | None, budget: Budget) -> None:
    """Say on stderr where `lapras.toml` declares another budget than the ledger has."""
    wanted = declared_budget(config, part)
    if budget != wanted:
        where = f" for {part.period}" if part else ""
        say(f"lapras: {config.path} declares {wanted}{where}; the ledger's budget is {budget}")
