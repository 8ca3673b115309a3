"""What several periods settle together about one statement: a reply of each, or one refusal for all."""

from __future__ import annotations

from collections.abc import Mapping

from laprasdp.errors import BudgetExhausted
from laprasdp.record.entries import Refusal
from laprasdp.sql.parse import Statement
from laprasdp.stream.turn import Settled, Turn


class Refused(Exception):
    """A period refuses its part of a statement."""

    def __init__(self, period: str, refusal: Refusal) -> None:
        super().__init__(period, refusal)
        self.period, self.refusal = period, refusal
        self.reason = f"the period from {period}: {refusal.reason}"


def settled(asked: Mapping[str, Statement], turns: Mapping[str, Turn]) -> dict[str, Settled]:
    """
    Settle a statement in each period; nothing is measured where one refuses as it is.

    Raises
    ------
    Refused
        A period refuses, or what it measured did not suffice: take the transaction of all back.
    """
    for name, turn in turns.items():
        refusal = turn.refusal(asked[name].queries)
        if refusal is not None:
            raise Refused(name, refusal)
    found: dict[str, Settled] = {}
    for name, turn in turns.items():
        try:
            found[name] = turn.settle(asked[name].queries)
        except BudgetExhausted as error:
            raise Refused(name, Refusal(asked[name].queries, str(error))) from None
        outcome = found[name].outcome
        if isinstance(outcome, Refusal):
            raise Refused(name, outcome)
    return found
