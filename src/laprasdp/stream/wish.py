"""What is wanted of an answer beside the answer: that it is exact enough and no better, or measured again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from laprasdp.derive.estimates import JointEstimate
from laprasdp.errors import BudgetExhausted, ConfigError, TooImprecise, UnsupportedQuery
from laprasdp.policy.policy import Grant, Policy
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.stream.shown import joint_of
from laprasdp.stream.worked import stds_of

Known = dict[Query, Estimate | None]

_NEAR = 0.99  # of the standard deviation that is wanted, which is near enough
_STEPS = 40


@dataclass(frozen=True)
class Wish:
    """
    What is wanted of an answer.

    Attributes
    ----------
    parsed : Statement or None
    max_std : float or None
        The largest standard deviation of what it shows.
    again : bool
        It is measured, whatever is known.

    Notes
    -----
    **Privacy.**  Everything here is a function of the statement and the policy's state: standard deviations
    are known before anything is measured, so what is measured for a wish, and whether it is refused, is
    public (docs/proofs/session.md).
    """

    parsed: Statement | None = None
    max_std: float | None = None
    again: bool = False

    @classmethod
    def of(cls, parsed: Statement, max_std: Any, again: Any) -> Self:
        """
        A wish of a statement.

        Raises
        ------
        ConfigError
            It is none that can be.
        UnsupportedQuery
            How exact the statement's values are hangs on values that are not released yet.
        """
        if not isinstance(again, bool):
            raise ConfigError(f"remeasure is True or False, not {again!r}")
        if max_std is None:
            return cls(parsed, None, again)
        number = isinstance(max_std, int | float) and not isinstance(max_std, bool)
        if not number or not 0 < max_std < math.inf:
            raise ConfigError(f"max_std is a positive number of what is shown, not {max_std!r}")
        for name, stds in stds_shown(parsed, JointEstimate((None,) * len(parsed.queries))).items():
            if None in stds:
                raise UnsupportedQuery(
                    f"max_std is for counts, sums and what is linear in them: how exact {name} is, is known "
                    "once it is answered; ask for the counts and sums that it is made of"
                )
        return cls(parsed, float(max_std), again)

    def known(self, policy: Policy, queries: Sequence[Query]) -> Known:
        """What is known of queries that is good enough, and not to be measured."""
        if self.again:
            return dict.fromkeys(queries)
        known = policy.recall_of(queries)
        if self.max_std is not None and None in known.values():
            anyhow = policy.imprecise(queries)
            found = {query: known[query] or anyhow[query] for query in queries}
            if None not in found.values() and self.std(policy, found) <= self.max_std:
                return found
        return known

    def check_known(self, policy: Policy, known: Known) -> None:
        """
        Whether what is known is good enough.

        Raises
        ------
        TooImprecise
        """
        if self.max_std is not None and (std := self.std(policy, known)) > self.max_std:
            raise TooImprecise(
                f"a standard deviation of {self.max_std:g} is not met by what is known, which has {std:.4g}: "
                "remeasure buys a better answer, where something is left for it"
            )

    def granted(self, policy: Policy, grant: Grant, known: Known, missing: Sequence[Query]) -> Grant:
        """
        The grant, or the least part of it that is good enough.

        Raises
        ------
        TooImprecise
            All of it is not.
        """
        if self.max_std is None:
            return grant
        wanted, made = self.max_std, {1.0: grant}

        def reached(share: float) -> float:
            """The largest standard deviation after a share of the grant."""
            try:
                made[share] = made.get(share) or policy.weaker(missing, grant, share)
                after = policy.after(made[share])
                found = after.renewed_of(missing) if self.again else after.latest_of(missing)
            except BudgetExhausted:
                return math.inf
            return self.std(after, {**known, **found})

        most = reached(1.0)
        if most > wanted:
            raise TooImprecise(
                f"a standard deviation of {wanted:g} cannot be met now: "
                f"what may be used for it buys {most:.4g}"
            )
        return made[_least(reached, most, wanted)]

    def std(self, policy: Policy, known: Known) -> float:
        """The largest standard deviation of what is shown."""
        assert self.parsed is not None
        estimates = [known.get(query) for query in self.parsed.queries]
        found = stds_shown(self.parsed, joint_of(policy, self.parsed, estimates))
        return max((std or 0.0 for stds in found.values() for std in stds), default=0.0)


def _least(reached: Callable[[float], float], most: float, wanted: float) -> float:
    """The least share that reaches what is wanted, nearly; all of it reaches `most`."""
    low, high, bottom, top = 0.0, 1.0, 0.0, most**-2 if most else math.inf  # precisions are nearly linear
    for step in range(_STEPS):
        if not math.isfinite(top) or top <= (1 / (_NEAR * wanted)) ** 2:
            break
        part = (wanted**-2 - bottom) / (top - bottom) if step % 3 < 2 else 0.5
        share = low + (high - low) * min(max(part * (1 + 1e-3), 1e-3), 1 - 1e-3)
        found = reached(share)
        if found <= wanted:
            high, top = share, found**-2 if found else math.inf
        else:
            low, bottom = share, found**-2
    return high


def stds_shown(parsed: Statement, joint: JointEstimate) -> dict[str, tuple[float | None, ...]]:
    """The standard deviations of what a statement shows, by column; None where one hangs on values."""
    if parsed.result is not None:
        return stds_of(parsed.result, joint)
    stds = (0.0 if one is None else math.sqrt(one.variance) for one in joint.estimates)
    return {parsed.column: tuple(stds)}
