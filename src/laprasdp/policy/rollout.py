"""What a policy would do with a stream: variances are public, so a stream can be played without any data."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from laprasdp.errors import BudgetExhausted
from laprasdp.policy.policy import Grant, Policy
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release, Reply
from laprasdp.strategy.threads import one_thread


@one_thread()
def opened(policy: Policy) -> Policy:
    """
    A copy of a policy after the releases that come before the next statement.

    Parameters
    ----------
    policy : Policy
        It is not changed.
    """
    fresh = copy.deepcopy(policy, {id(part): part for part in policy.settled()})
    while (grant := fresh.due()) is not None:
        fresh.learn(_silent(grant, opening=True))
    return fresh


@one_thread()
def play(policy: Policy, asked: Sequence[Query]) -> list[float | None]:
    """
    Variance of each answer of a stream.

    Parameters
    ----------
    policy : Policy
        It is not changed.
    asked : sequence of Query

    Returns
    -------
    list of float or None
        None where the policy has nothing left for a query.
    """
    fresh, found = opened(policy), list[float | None]()
    for query in asked:
        while (grant := fresh.due()) is not None:
            fresh.learn(_silent(grant, opening=True))
        estimate = fresh.recall(query)
        measured = estimate is None
        if estimate is None:
            try:
                fresh.learn(_silent(fresh.grant([query]), opening=False))
            except BudgetExhausted:
                found.append(None)
                continue
            estimate = fresh.latest(query)
        fresh.learn(Reply((query,), (estimate,), measured))
        found.append(estimate.variance)
    return found


def _silent(grant: Grant, *, opening: bool) -> Release:
    measurement = grant.measurement
    return Release(measurement, (0,) * measurement.draws, grant.charge, grant.allowance, opening)
