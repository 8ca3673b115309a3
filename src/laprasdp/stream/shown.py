"""What an analyst is shown of a reply; all of it follows from the state, after the data."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MANY
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.stream.answer import Answer, GroupedAnswer, Released
from laprasdp.stream.state import State

Prices = Mapping[Query, float]


@dataclass(frozen=True)
class Shown:
    """
    Words and numbers for replies.

    Attributes
    ----------
    state : State
        That has learned the reply.
    simulated : bool
        The noise is seeded.
    released : tuple of Released
        What was released before it that it did not ask for; shown at its first answer.
    """

    state: State
    simulated: bool
    released: tuple[Released, ...] = ()

    def answer(
        self, parsed: Statement, estimates: Sequence[Estimate | None], prices: Prices
    ) -> Answer | GroupedAnswer:
        """
        The answer to a statement.

        Parameters
        ----------
        parsed : Statement
        estimates : sequence of Estimate or None
            One for each of its queries, as the reply holds them.
        prices : mapping of Query to float
            What each query that was measured for it cost.
        """
        first, *others = (
            self._answer(
                parsed.text,
                estimate,
                prices.get(query, 0.0),
                dict(zip(parsed.by, labels, strict=True)) if parsed.by else None,
            )
            for query, estimate, labels in zip(parsed.queries, estimates, parsed.groups or [()], strict=True)
        )
        first = replace(first, released=self.released)
        if not parsed.by:
            return first
        answers = (first, *others)
        if len(answers) > MANY:
            return GroupedAnswer(parsed.text, answers)
        return GroupedAnswer(
            parsed.text, answers, self._total(parsed), self._covariance(parsed.queries, estimates)
        )

    def _answer(
        self, text: str, estimate: Estimate | None, price: float, group: dict[str, Any] | None = None
    ) -> Answer:
        value, variance, source = (
            (0.0, 0.0, "constant")
            if estimate is None
            else (estimate.value, estimate.variance, estimate.source)
        )
        return Answer(
            text,
            value,
            math.sqrt(variance),
            source,
            price,
            self.state.filter.remaining,
            group,
            "gaussian" if estimate is None else estimate.law,
            1.0 if estimate is None else estimate.parts,
            self.simulated,
        )

    def _total(self, parsed: Statement) -> Answer | None:
        """A grouped statement without its GROUP BY, where that is known; nothing is measured for it."""
        parts = list(parsed.queries)
        try:
            while len(parts) > 1:  # in pairs, so that most sums have few classes
                pairs = zip(parts[::2], parts[1::2], strict=False)
                parts = [one.combine(other, operator.add) for one, other in pairs] + parts[len(parts) & ~1 :]
        except UnsupportedQuery:  # of too many classes
            return None
        whole = parts[0].canonical()
        estimate = None if whole.is_zero else self.state.policy.recall(whole)
        return None if estimate is None else self._answer(f"the total of {parsed.text}", estimate, 0.0)

    def _covariance(
        self, queries: Sequence[Query], estimates: Sequence[Estimate | None]
    ) -> npt.NDArray[np.float64] | None:
        """Joint covariance of answers that are all of the policy's present state, which knows it."""
        live = [place for place, estimate in enumerate(estimates) if estimate is not None]
        found = self.state.policy.covariance([queries[place] for place in live]) if live else None
        variances = [estimate.variance for estimate in estimates if estimate is not None]
        if found is None or not np.isfinite(found).all():
            return None
        if not np.allclose(found.diagonal(), variances, rtol=1e-6):
            return None  # a replayed answer is older, and less precise than what is known now
        joint = np.zeros((len(queries), len(queries)))
        joint[np.ix_(live, live)] = found
        return joint
