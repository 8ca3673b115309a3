"""What an analyst is shown of a reply, worked out from the state and without the data."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.derive.estimates import Errors, JointEstimate
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MANY
from laprasdp.policy.policy import Policy
from laprasdp.queries.groups import Groups, chosen
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.sql.result import Result
from laprasdp.strategy.threads import one_thread
from laprasdp.stream.answer import Answer, GroupedAnswer, Released
from laprasdp.stream.resultset import ResultSet
from laprasdp.stream.worked import rows_of

Prices = Mapping[Query, float]


@dataclass(frozen=True)
class Shown:
    """
    Words and numbers for a reply.

    Attributes
    ----------
    parsed : Statement
    joint : JointEstimate
        What the state that learned the reply knows of its queries.
    prices : mapping of Query to float
        What each query that was measured for it cost.
    remaining : float
        What was left after it.
    simulated : bool
        The noise is seeded.
    released : tuple of Released
        What was released before it that it did not ask for; shown at its first answer.
    """

    parsed: Statement
    joint: JointEstimate
    prices: Prices
    remaining: float
    simulated: bool
    released: tuple[Released, ...] = ()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """One for each query of the statement."""
        return tuple(
            Answer.of(
                self.parsed.text,
                estimate,
                self.prices.get(query, 0.0),
                self.remaining,
                group=group,
                simulated=self.simulated,
                released=() if place else self.released,
                column=self.parsed.column,
            )
            for place, (query, estimate, group) in enumerate(
                zip(self.parsed.queries, self.joint.estimates, groups_of(self.parsed), strict=True)
            )
        )

    @property
    def total(self) -> Answer | None:
        """A grouped statement without its GROUP BY, where that is known."""
        if self.joint.total is None:
            return None
        text = f"the total of {self.parsed.text}"
        return Answer.of(text, self.joint.total, 0.0, self.remaining, simulated=self.simulated)

    @property
    def whole(self) -> Answer | GroupedAnswer | ResultSet:
        """The answer to the statement."""
        if self.parsed.result is not None:
            return self.result(self.parsed.result)
        answers = self.answers
        if not self.parsed.by:
            return answers[0]
        return GroupedAnswer(self.parsed.text, answers, self.total, self.joint.errors)

    def result(self, result: Result) -> ResultSet:
        """The rows of a statement whose answers are not those of its queries."""
        names, rows, left_out = rows_of(result, self.joint)
        sources = {"constant" if one is None else one.source for one in self.joint.estimates}
        return ResultSet(
            self.parsed.text,
            names,
            rows,
            sources.pop() if len(sources) == 1 else "mixed" if sources else "constant",
            math.fsum(self.prices.get(query, 0.0) for query in self.parsed.queries),
            self.remaining,
            self.released,
            self.simulated,
            left_out,
        )


def groups_of(parsed: Statement) -> list[dict[str, Any] | None]:
    """The group of each query of a statement; None without GROUP BY."""
    if not parsed.by:
        return [None] * len(parsed.queries)
    return [dict(zip(parsed.by, labels, strict=True)) for labels in parsed.groups]


def joint_of(policy: Policy, parsed: Statement, estimates: Sequence[Estimate | None]) -> JointEstimate:
    """
    What a policy knows of the queries of a statement together.

    Parameters
    ----------
    policy : Policy
        That has learned the reply.
    parsed : Statement
    estimates : sequence of Estimate or None
        One for each of its queries, as the reply holds them.
    """
    if not (parsed.by or parsed.result):
        return JointEstimate(tuple(estimates))
    total = _total(policy, parsed) if parsed.by else None
    return JointEstimate(tuple(estimates), total, _errors(policy, parsed.queries, estimates))


def _total(policy: Policy, parsed: Statement) -> Estimate | None:
    """The sum of all groups, where that is known; nothing is measured for it."""
    queries = parsed.queries
    whole = queries.union if isinstance(queries, Groups) else _sum(queries)
    return None if whole is None or whole.is_zero else policy.recall(whole)


def _sum(queries: Sequence[Query]) -> Query | None:
    """The sum of some queries, or None where it has too many classes."""
    parts = list(queries)
    try:
        while len(parts) > 1:  # in pairs, so that most sums have few classes
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [one.combine(other, operator.add) for one, other in pairs] + parts[len(parts) & ~1 :]
    except UnsupportedQuery:
        return None
    return parts[0].canonical()


def _alone(variances: Sequence[float], queries: Sequence[Query]) -> Callable[[], Floats]:
    """The covariance of answers that have nothing in common but where they are one."""

    def covariance() -> Floats:
        first: dict[str, int] = {}
        same = np.array([first.setdefault(query.key, place) for place, query in enumerate(queries)])
        return np.where(same[:, np.newaxis] == same, np.array(variances), 0.0)

    return covariance


def _errors(policy: Policy, queries: Sequence[Query], estimates: Sequence[Estimate | None]) -> Errors:
    """What works out the joint covariance of answers that are all of the policy's present state."""
    live = [place for place, estimate in enumerate(estimates) if estimate is not None]
    if not live or len(queries) > MANY:
        return None
    asked = chosen(queries, live)
    variances = [estimate.variance for estimate in estimates if estimate is not None]
    known = policy.joint_of(asked, variances)
    if known is None and policy.independent(asked):
        known = _alone(variances, asked)
    if known is None:
        return None

    @one_thread()
    def covariance() -> Floats | None:
        found = known()
        if not np.isfinite(found).all() or not np.allclose(found.diagonal(), variances, rtol=1e-6):
            return None  # a replayed answer is older, and less precise than what is known now
        joint = np.zeros((len(queries), len(queries)))
        joint[np.ix_(live, live)] = found
        return joint

    return covariance
