"""Price: what a statement would be charged and how exact it would be answered, before it is asked.

A statement's turn is rehearsed on a copy of the state, with 0 for everything that would be measured.  No
policy decides by a noisy value: what to measure, its charge and its error follow from public settings and
from what was measured before, so the rehearsal ends as the turn would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from laprasdp.policy.policy import Policy
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Kept, Refusal, Stamp
from laprasdp.sql.parse import Statement
from laprasdp.strategy.measurement import Measurement
from laprasdp.stream.answer import Released
from laprasdp.stream.shown import joint_of
from laprasdp.stream.state import State
from laprasdp.stream.turn import ANY, Settled, Turn, choose
from laprasdp.stream.wish import Wish, stds_shown

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Price:
    """
    What would come of a statement if it were asked now.

    Attributes
    ----------
    charge : float
        What the statement itself would be charged; 0 where it is known by then, or refused.
    std : tuple of float or None
        The standard deviation of each of its answers, one a group of a GROUP BY; None where it is refused.
    released : tuple of Released
        What would be released before it, whatever is asked; `charge` does not hold it.
    refusal : str or None
        Why it would be refused.
    columns : mapping of name to tuple of float or None
        The standard deviation of each value of a statement of several, group after group; None where it
        hangs on values that are not known yet, as that of a ratio does.  `std` is then of what is measured.

    Notes
    -----
    It holds until something else is kept; nothing is reserved.
    """

    charge: float
    std: tuple[float | None, ...]
    released: tuple[Released, ...] = ()
    refusal: str | None = None
    columns: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    @classmethod
    def refused(cls, queries: Sequence[Query], reason: str, released: tuple[Released, ...] = ()) -> Price:
        """The price of what would not be answered."""
        return cls(0.0, (None,) * len(queries), released, reason)

    @classmethod
    def of(cls, parsed: Statement, settled: Settled, policy: Policy) -> Price:
        """The price of what was settled in a rehearsal, by the policy that has learned it."""
        queries, outcome = parsed.queries, settled.outcome
        if isinstance(outcome, Refusal):
            return cls.refused(queries, outcome.reason, settled.released)
        charge = math.fsum(settled.prices.get(query, 0.0) for query in queries)
        std = tuple(0.0 if shown is None else math.sqrt(shown.variance) for shown in outcome.answers)
        columns = stds_shown(parsed, joint_of(policy, parsed, outcome.answers)) if parsed.result else {}
        return cls(charge, std, settled.released, columns=columns)

    def row(self) -> dict[str, Any]:
        """The price as plain data, as ``--json`` prints it."""
        released = [one.row() for one in self.released]
        columns = {name: list(stds) for name, stds in self.columns.items()}
        return {
            "charge": self.charge, "std": list(self.std), "released": released, "refusal": self.refusal,
            **({"columns": columns} if columns else {}),
        }  # fmt: skip


def rehearsed(state: State, queries: Sequence[Query], analyst: str | None, wish: Wish = ANY) -> Turn:
    """
    A turn whose entries are kept nowhere.

    Parameters
    ----------
    state : State
        That nothing changes while the turn lasts.
    queries : sequence of Query
        Of the statement that will be settled.
    analyst : str, optional
    wish : Wish

    Notes
    -----
    **Privacy.**  A function of the state and public settings: no table and no noise are at hand.
    """
    ahead = choose(state, queries, analyst, wish)
    if ahead.due is None and not (isinstance(ahead.weighed, tuple) and ahead.weighed[1]):
        return Turn(lambda entry: None, analyst, ahead, state, _zeros, wish)  # nothing would be measured
    twin = state.twin()

    def append(entry: Entry) -> None:
        twin.learn(Kept(twin.position, Stamp(_NEVER, analyst), entry))

    return Turn(append, analyst, ahead, twin, _zeros, wish)


def _zeros(measurement: Measurement) -> tuple[int, ...]:
    return (0,) * measurement.draws
