"""A statement's turn: its outcome is decided, measured and appended inside one open ledger transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from laprasdp.data.table import Table
from laprasdp.errors import BudgetExhausted, TooImprecise
from laprasdp.policy.policy import Grant, Policy
from laprasdp.privacy.noise import NoiseSource
from laprasdp.queries.groups import chosen, gathered
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Refusal, Release, Reply
from laprasdp.strategy.measurement import Measurement
from laprasdp.stream.answer import Reason, Released
from laprasdp.stream.shown import Prices
from laprasdp.stream.state import State
from laprasdp.stream.wish import Known, Wish

Append = Callable[[Entry], None]
Measure = Callable[[Measurement], tuple[int, ...]]
ANY = Wish()
"""Nothing beside the answer is wanted."""


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

    @property
    def refused(self) -> BudgetExhausted:
        """The error of a refusal, which names what was released all the same."""
        assert isinstance(self.outcome, Refusal)
        also = "".join(f"; {one.reason} release: {one.charge:.3g} left the budget" for one in self.released)
        error = BudgetExhausted(self.outcome.reason + also)
        error.released = self.released
        return error


@dataclass(frozen=True)
class Choice:
    """
    What a state decides about a statement; a function of the entries that it has learned.

    Attributes
    ----------
    position : int
        How many entries that were.
    due : Grant or None
        What is released before the statement, whatever it is, or drawn of what was charged before, so that
        it can be answered; nothing else is decided then.
    weighed : pair of known and grant, Refusal or None
        What is known of each query that is not zero, and the grant for the others; or why there is none.
    flaw : str
        Why what is due cannot even be granted; empty where nothing is wrong.
    """

    position: int
    due: Grant | None = None
    weighed: tuple[Known, Grant | None] | Refusal | None = None
    flaw: str = ""


def choose(state: State, queries: Sequence[Query], analyst: str | None, wish: Wish = ANY) -> Choice:
    """
    Decide about a statement, unless something has to be released before it; may take as long as a design.

    Raises
    ------
    TooImprecise
        What may be measured for it is not enough for what is wanted.

    Notes
    -----
    **Privacy.**  A function of the state: no table is at hand.
    """
    try:
        due = state.policy.due() or state.policy.due_for([query for query in queries if not query.is_zero])
    except BudgetExhausted as error:
        return Choice(state.position, flaw=str(error))
    return Choice(state.position, due, _weigh(state, queries, analyst, wish) if due is None else None)


def measured(table: Table, noise: NoiseSource) -> Measure:
    """
    The function that measures a table; exact answers exist nowhere else.

    Notes
    -----
    **Privacy.**  Assumes that the charge of what is measured was checked.  Guarantees that what is read only
    goes into its noisy release.
    """
    return lambda measurement: measurement.release(measurement.exact(table.marginal), noise)


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
    ahead : Choice or None
        What was decided about the statement before the transaction; it holds where nothing was kept since.
    measure : callable
        Noisy answers of a measurement; see `measured`.
    wish : Wish
        What is wanted of the answer.
    fitted : bool
        Whether a fitted value is shown beside each value.

    Notes
    -----
    **Privacy.**  Everything is decided from the state; something is measured only for a grant that the filter
    has admitted.
    """

    append: Append
    analyst: str | None
    ahead: Choice | None
    _state: State
    measure: Measure
    wish: Wish = ANY
    fitted: bool = False

    @property
    def policy(self) -> Policy:
        """The policy, as far as it has learned."""
        return self._state.policy

    @property
    def ready(self) -> bool:
        """Whether nothing has to be designed inside the transaction, where others would wait for it."""
        return self._holds(self.ahead) or not self._state.policy.designs

    def refusal(self, queries: Sequence[Query]) -> Refusal | None:
        """Why the state refuses them now, if it does; None if a release comes first that may change it."""
        choice = self._choice(queries)
        if choice.flaw:
            return Refusal(gathered(queries), choice.flaw)
        return choice.weighed if isinstance(choice.weighed, Refusal) else None

    def settle(self, queries: Sequence[Query]) -> Settled:
        """
        Append what is due, then what has to be measured, then the outcome.

        Raises
        ------
        BudgetExhausted
            What is due does not fit, or what was measured did not suffice: take the transaction back.
        """
        released = list[Released]()
        opening = self._state.policy.drawn == 0
        choice = self._choice(queries)
        while choice.due is not None:
            reason: Reason = "opening" if opening else "raise" if self._state.raised else "batch"
            if choice.due.charge.units:
                released.append(Released(reason, choice.due.charge.price))
            self.append(self._released(choice.due, opening=True))
            choice = choose(self._state, queries, self.analyst, self.wish)
        if choice.flaw:
            raise BudgetExhausted(choice.flaw)
        assert choice.weighed is not None
        if isinstance(choice.weighed, Refusal):
            self.append(choice.weighed)
            return Settled(choice.weighed, {}, tuple(released))
        known, grant = choice.weighed
        prices: dict[Query, float] = {}
        if grant is not None:
            missing = _missing(queries, known)
            self.append(self._released(grant, opening=False))
            policy = self._state.policy
            known = {**known, **(policy.renewed_of if self.wish.again else policy.latest_of)(missing)}
            prices = dict.fromkeys(missing, grant.charge.price / len(missing))
        measured = grant is not None
        answers = tuple(map(known.get, queries))
        if self.fitted:
            answers = self._state.fits.fitted(self._state.policy, queries, answers)
        reply = Reply(gathered(queries), answers, measured, again=measured and self.wish.again)
        self.append(reply)
        return Settled(reply, prices, tuple(released))

    def _choice(self, queries: Sequence[Query]) -> Choice:
        """What is decided from everything that is kept, ahead if that was it already."""
        ahead = self.ahead
        if ahead is not None and self._holds(ahead):
            return ahead
        return choose(self._state, queries, self.analyst, self.wish)

    def _holds(self, choice: Choice | None) -> bool:
        return choice is not None and choice.position == self._state.position

    def _released(self, grant: Grant, *, opening: bool) -> Release:
        """Measure what the filter admits in this transaction."""
        self._state.filter.check(grant.charge)
        self._state.once.check(measurement := grant.measurement)
        return Release(measurement, self.measure(measurement), grant.charge, grant.allowance, opening)


def _weigh(
    state: State, queries: Sequence[Query], analyst: str | None, wish: Wish
) -> tuple[Known, Grant | None] | Refusal:
    """What is known of each query that is not zero and the grant for the others, or why there is none."""
    policy = state.policy
    known = wish.known(policy, chosen(queries, [k for k, query in enumerate(queries) if not query.is_zero]))
    if all(estimate is not None for estimate in known.values()):
        wish.check_known(policy, known)
        return known, None
    missing = _missing(queries, known)
    try:
        grant = policy.grant(missing)
        left = state.cap_left(grant.charge, analyst)
        if left is not None and 0 < left < 2 * grant.allowance:
            grant = policy.grant(missing, left)
        grant = wish.granted(policy, grant, known, missing)
        state.filter.check(grant.charge)
    except TooImprecise:
        raise
    except BudgetExhausted as refusal:
        return Refusal(gathered(queries), str(refusal))
    try:
        state.check_cap(grant.charge, analyst)
    except BudgetExhausted as refusal:
        return Refusal(gathered(queries), str(refusal), counted=False)
    return known, grant


def _missing(queries: Sequence[Query], known: Known) -> Sequence[Query]:
    """Those of which nothing is known, each once."""
    first = {query: place for place, query in reversed(list(enumerate(queries)))}
    return chosen(queries, [first[query] for query in known if known[query] is None])
