"""What a policy would do with a stream: variances are public, so a stream can be played without any data."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

from laprasdp.errors import BudgetExhausted
from laprasdp.policy.policy import Grant, Policy
from laprasdp.queries.groups import Groups, chosen, gathered
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release, Reply
from laprasdp.record.estimate import Estimate
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
def play(policy: Policy, asked: Sequence[Query | Groups]) -> list[float | None]:
    """
    Variance of each answer of a stream; of a GROUP BY, the mean over its groups.

    Parameters
    ----------
    policy : Policy
        It is not changed.
    asked : sequence of Query or Groups

    Returns
    -------
    list of float or None
        None where the policy has nothing left for a statement.
    """
    fresh, found = opened(policy), list[float | None]()
    for statement in asked:
        queries = statement if isinstance(statement, Groups) else (statement,)
        while (grant := fresh.due()) is not None:
            fresh.learn(_silent(grant, opening=True))
        known = fresh.recall_of(queries)
        missing = chosen(queries, [place for place, query in enumerate(queries) if known[query] is None])
        latest: Mapping[Query, Estimate] = {}
        if missing:
            try:
                fresh.learn(_silent(fresh.grant(missing), opening=False))
            except BudgetExhausted:
                found.append(None)
                continue
            latest = fresh.latest_of(missing)
        told = tuple(known[query] or latest[query] for query in queries)
        fresh.learn(Reply(gathered(queries), told, bool(missing)))
        found.append(math.fsum(estimate.variance for estimate in told) / len(told))
    return found


def _silent(grant: Grant, *, opening: bool) -> Release:
    measurement = grant.measurement
    return Release(measurement, (0,) * measurement.draws, grant.charge, grant.allowance, opening)
