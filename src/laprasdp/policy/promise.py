"""Whether a budget is enough for the stream that a policy plans; one that is not is refused at opening."""

from __future__ import annotations

from laprasdp.errors import BudgetError
from laprasdp.policy.policy import Policy
from laprasdp.privacy.budget import NOISE_SHARE
from laprasdp.strategy.threads import one_thread


@one_thread()
def check_promise(policy: Policy) -> None:
    """
    Whether the rest of a planned stream can be answered under the policy's budget.

    Parameters
    ----------
    policy : Policy
        In any state.

    Raises
    ------
    BudgetError
        The noise values that the budget allows are fewer than those that are still to be released before
        the stream and one for each statement of its rest that may have to be measured; or a typical
        statement's allowance is too small to measure anything.  The message says which budgets would do.

    Notes
    -----
    `Budget.allows` decides, as it does in every filter.  A GROUP BY that has to be measured takes a value a
    group, so it can still be refused.

    **Privacy.**  A function of public settings and ledger entries; nothing is spent.
    """
    budget = policy.setting.budget
    if not budget.allows(policy.drawn + policy.most_openings() + policy.left):
        before = sum(grant.charge.draws for grant in policy.openings())
        if not budget.allows(policy.drawn + before + policy.left):
            raise BudgetError(_too_few(policy, before))
    if policy.left and not policy.setting.predictions and policy.rehearse([True]) == [None]:
        raise BudgetError(
            f"{budget} shared over {policy.setting.length} statements leaves {policy.name} too little to "
            "measure one: declare a larger ε or a shorter horizon"
        )


def _too_few(policy: Policy, before: int) -> str:
    """Why the noise values do not suffice, and what would fit."""
    budget, domain = policy.setting.budget, policy.setting.domain
    needed = policy.drawn + before + policy.left
    parts = [f"{policy.drawn:,} so far", f"{before:,} before the stream", f"{policy.left:,} for statements"]
    takes = " and ".join(part for part in parts if not part.startswith("0 "))
    fitting = [f"ε = {one.epsilon:g}, δ = {one.delta:g}" for one in budget.allowing(needed)]
    would = f"{' or '.join(fitting)} would fit" if fitting else "a larger δ would fit"
    cells = f"{domain.size:,} cell{'s' if domain.size > 1 else ''}"
    return (
        f"ε = {budget.epsilon:g}, δ = {budget.delta:g} allow {budget.coordinates:,} noise values (out of "
        f"{NOISE_SHARE:g}·δ), but {policy.name} over {cells} takes {takes}: {would}"
    )
