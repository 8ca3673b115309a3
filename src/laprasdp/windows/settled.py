"""What several periods settle together about one statement: a reply of each, or one refusal for all."""

from __future__ import annotations

from collections.abc import Mapping

from laprasdp.errors import BudgetExhausted
from laprasdp.ledger.ledger import Refusal, Reply
from laprasdp.shown import Prices
from laprasdp.sql.parse import Statement
from laprasdp.turn import Turn

Settled = dict[str, tuple[Reply, Prices]]


class Refused(Exception):
    """A period refuses its part of a statement."""

    def __init__(self, period: str, refusal: Refusal) -> None:
        super().__init__(period, refusal)
        self.period, self.refusal = period, refusal
        self.reason = f"the period from {period}: {refusal.reason}"


def settled(asked: Mapping[str, Statement], turns: Mapping[str, Turn]) -> Settled:
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
    found: Settled = {}
    for name, turn in turns.items():
        try:
            outcome, prices = turn.settle(asked[name].queries)
        except BudgetExhausted as error:
            raise Refused(name, Refusal(asked[name].queries, str(error))) from None
        if isinstance(outcome, Refusal):
            raise Refused(name, outcome)
        found[name] = outcome, prices
    return found
