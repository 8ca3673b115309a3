"""A statement's turn: its outcome is decided, measured and appended inside one open ledger transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from laprasdp.answer import Reason, Released
from laprasdp.data.table import Table
from laprasdp.errors import BudgetExhausted
from laprasdp.ledger.estimate import Estimate
from laprasdp.ledger.ledger import Entry, Refusal, Release, Reply
from laprasdp.policy.policy import Grant
from laprasdp.privacy.noise import NoiseSource
from laprasdp.query import Query
from laprasdp.shown import Prices
from laprasdp.state import State

Append = Callable[[Entry], None]
Known = dict[Query, Estimate | None]


@dataclass(frozen=True)
class Settled:
    """
    What came of a statement.

    Attributes
    ----------
    outcome : Reply or Refusal
    prices : mapping of Query to float
        What each query that was measured cost.
    released : tuple of Released
        What was released before it, whatever was asked.
    """

    outcome: Reply | Refusal
    prices: Prices
    released: tuple[Released, ...] = ()


@dataclass(frozen=True)
class Turn:
    """
    One statement before a state that has learned everything that is kept.

    Attributes
    ----------
    append : callable
        Appends an entry to the transaction and lets the state learn it.
    analyst : str or None
        Who asks.

    Notes
    -----
    **Privacy.**  Everything is decided from the state; the table is read only for a grant that the filter has
    admitted, and what is read only goes into its noisy release.
    """

    append: Append
    analyst: str | None
    _state: State
    _table: Table
    _noise: NoiseSource

    def refusal(self, queries: Sequence[Query]) -> Refusal | None:
        """Why the state refuses them as it is; None also where a release is due first and may change it."""
        if self._state.policy.due() is not None:
            return None
        weighed = self._weigh(queries)
        return weighed if isinstance(weighed, Refusal) else None

    def settle(self, queries: Sequence[Query]) -> Settled:
        """
        Append what is due, then what has to be measured, then the outcome.

        Raises
        ------
        BudgetExhausted
            What is due does not fit, or what was measured did not suffice: take the transaction back.
        """
        policy, released = self._state.policy, list[Released]()
        opening = policy.drawn == 0
        while (grant := policy.due()) is not None:
            self._state.filter.check(grant.charge)
            reason: Reason = "opening" if opening else "raise" if self._state.raised else "batch"
            released.append(Released(reason, grant.charge.price))
            self.append(self._released(grant, opening=True))
        weighed = self._weigh(queries)
        if isinstance(weighed, Refusal):
            self.append(weighed)
            return Settled(weighed, {}, tuple(released))
        known, grant = weighed
        prices: dict[Query, float] = {}
        if grant is not None:
            missing = [query for query, estimate in known.items() if estimate is None]
            self.append(self._released(grant, opening=False))
            known |= {query: policy.latest(query) for query in missing}
            prices = dict.fromkeys(missing, grant.charge.price / len(missing))
        reply = Reply(tuple(queries), tuple(map(known.get, queries)), measured=grant is not None)
        self.append(reply)
        return Settled(reply, prices, tuple(released))

    def _weigh(self, queries: Sequence[Query]) -> tuple[Known, Grant | None] | Refusal:
        """What is known of each query that is not zero and the grant for the others, or why there is none."""
        policy = self._state.policy
        known = {query: policy.recall(query) for query in dict.fromkeys(queries) if not query.is_zero}
        missing = [query for query, estimate in known.items() if estimate is None]
        if not missing:
            return known, None
        try:
            grant = policy.grant(missing)
            left = self._state.cap_left(grant.charge, self.analyst)
            if left is not None and 0 < left < 2 * grant.allowance:
                grant = policy.grant(missing, left)
            self._state.filter.check(grant.charge)
        except BudgetExhausted as refusal:
            return Refusal(tuple(queries), str(refusal))
        try:
            self._state.check_cap(grant.charge, self.analyst)
        except BudgetExhausted as refusal:
            return Refusal(tuple(queries), str(refusal), counted=False)
        return known, grant

    def _released(self, grant: Grant, *, opening: bool) -> Release:
        """Measure what the filter has admitted; exact answers exist nowhere else."""
        measurement = grant.measurement
        noisy = measurement.release(measurement.exact(self._table.marginal), self._noise)
        return Release(measurement, noisy, grant.charge, grant.allowance, opening)
