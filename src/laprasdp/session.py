"""A session: the only place where the private table, the noise and the ledger meet.

The order inside `Session.ask` is the privacy argument: canonical query → a ledger transaction is opened and
what others released is learned → answer from the state if the policy has one (public) → the policy's grant →
the filter → exact answers → noise → release, charge and answer are kept together → the value is returned.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.answer import Answer, GroupedAnswer
from laprasdp.data.table import Table
from laprasdp.errors import BudgetExhausted, ConfigError, DomainError, LedgerError, UnsupportedQuery
from laprasdp.ledger.estimate import Estimate
from laprasdp.ledger.ledger import Entry, Kept, Ledger, Refusal, Release, Reply, Stamp, Transaction
from laprasdp.plan import Plan, describe, make_plan
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Grant, Policy, Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Filter
from laprasdp.privacy.noise import NoiseSource
from laprasdp.query import Query
from laprasdp.sql.parse import Statement, parse

DEFAULT_POLICY = "smooth-cache"
Prices = dict[Query, float]
Decided = tuple[Reply | Refusal, Prices]

_MANY = 1_000  # groups above which neither their total nor their joint covariance is worked out


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


class Session:
    """
    Answers statements over one table under one budget.

    Parameters
    ----------
    table : Table
    policy : Policy
        In its state before the stream.
    noise : NoiseSource
    ledger : Ledger
    public : bool
        The table is declared public, so seeded noise may be used to study the mechanism.
    predicted : sequence of str
        How the predicted queries are called, one each.
    clock : callable
        The time for the ledger's stamps, in UTC; nothing is decided by it.

    Raises
    ------
    ConfigError
        Seeded noise on a table that is not declared public; table and policy over different domains.
    LedgerError
        The ledger was begun with other settings, or cannot be read.

    Notes
    -----
    **Privacy.**  Assumes what `Table`, `NoiseSource`, `Filter` and `Ledger` assume.  Guarantees that all
    answers, refusals and charges together are (ε, δ)-differentially private for the privacy unit, however
    statements are chosen (docs/proofs/session.md).  Time and memory are not hidden.
    """

    def __init__(
        self,
        table: Table,
        policy: Policy,
        *,
        noise: NoiseSource,
        ledger: Ledger,
        public: bool = False,
        predicted: Sequence[str] = (),
        clock: Callable[[], datetime] = now,
    ) -> None:
        if noise.simulation and not public:
            raise ConfigError("seeded noise protects nobody: it is allowed only on a table declared public")
        if table.domain != policy.setting.domain or table.unit != policy.setting.unit:
            raise ConfigError("the table and the policy differ in their domain or privacy unit")
        self._table, self._policy, self._noise, self._ledger = table, policy, noise, ledger
        self._filter: Filter = policy.accounting.filter()
        self._predicted, self._clock = tuple(predicted), clock
        self._position = 0  # entries that filter and policy have learned
        self._torn = False  # they may have learned what is not kept, or a part of an entry
        self._lock = threading.RLock()
        begun = Budget(**ledger.open(policy.settings())["budget"])
        if begun != policy.setting.budget:
            self._begin(replace(policy.setting, budget=begun))
        self._catch_up(ledger.since)
        if self.budget != policy.setting.budget:
            raise LedgerError(f"the ledger's budget is {self.budget}, not {policy.setting.budget}")

    @property
    def table(self) -> Table:
        """The private table."""
        return self._table

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self._policy.name

    @property
    def accounting(self) -> str:
        """ "basic": charges are in ε; "gaussian": in μ²."""
        return self._policy.accounting.name

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._policy.setting.budget

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        return self._policy.accounting.unit

    @property
    def spent(self) -> float:
        """What is spent by all sessions on the ledger: ε under basic accounting, μ² under Gaussian."""
        return self._present.spent

    @property
    def remaining(self) -> float:
        """What is left, in the same unit."""
        return self._present.remaining

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ for all that was released."""
        return self._policy.accounting.epsilon_of(self.spent)

    def plan(self) -> Plan:
        """Expected error of every predicted query and of typical others; no data, no charge."""
        return make_plan(self._policy, self._predicted)

    def parse(self, text: str) -> Statement:
        """Read a statement without asking it: what it means, or why it cannot be asked."""
        return parse(text, self._table.domain, self._table.name)

    def ask(
        self, statement: str | Query | Statement, *, analyst: str | None = None
    ) -> Answer | GroupedAnswer:
        """
        Answer one statement, at once.

        Parameters
        ----------
        statement : str, Query or Statement
            SQL text; or a query made in Python.
        analyst : str, optional
            Who asks; the ledger keeps it.

        Returns
        -------
        Answer or GroupedAnswer
            A GROUP BY gives one answer a declared group.

        Raises
        ------
        UnsupportedQuery
            The statement cannot be asked.  It costs nothing.
        BudgetExhausted
            The policy or the budget has nothing left for it.  What was released stays free.
        LedgerError
            The ledger cannot keep it; nothing is shown.

        Notes
        -----
        **Privacy.**  Guarantees that nothing noisy leaves before its charge is kept; that an error or an
        interrupt before that point changes nothing and shows nothing; and that errors, refusals and charges
        depend on public things only.
        """
        parsed = self._parsed(statement)
        stamp = Stamp(self._clock(), analyst, parsed.text)
        with self._lock:
            try:
                outcome, prices = self._kept(stamp, lambda ledger: self._decide(ledger, parsed.queries))
            except BudgetExhausted as refusal:  # what was released for it and did not suffice is taken back
                refused = Refusal(parsed.queries, str(refusal))
                outcome, prices = self._kept(stamp, lambda ledger: (refused, {}))
            if isinstance(outcome, Refusal):
                raise BudgetExhausted(outcome.reason)
            return self._answers(parsed, outcome.answers, prices)

    def ask_many(self, statements: Iterable[str | Query | Statement]) -> Iterator[Answer | GroupedAnswer]:
        """
        Answer statements one after another, each at once.

        Parameters
        ----------
        statements : iterable
            Read lazily: each is taken only when the one before it was answered.

        Raises
        ------
        LaprasError
            From the first statement that is refused; `ask` them one by one to go on after a refusal.
        """
        for statement in statements:
            yield self.ask(statement)

    def _parsed(self, statement: str | Query | Statement) -> Statement:
        if isinstance(statement, Statement):
            return statement
        if isinstance(statement, str):
            return self.parse(statement)
        if not isinstance(statement, Query):
            raise UnsupportedQuery(f"a statement is SQL text or a Query, not {type(statement).__name__}")
        if statement.domain != self._table.domain:
            raise DomainError("the query is over another domain than the table's")
        return Statement(text=describe(statement), queries=(statement.canonical(),))

    def _kept(self, stamp: Stamp, decide: Callable[[Transaction], Decided]) -> Decided:
        """Decide about one statement and keep the outcome: one transaction, all of it or nothing."""
        with self._ledger.transaction(stamp) as transaction:
            self._catch_up(transaction.since)
            outcome, prices = decide(transaction)
            self._append(transaction, outcome)
        self._torn = False
        return outcome, prices

    def _decide(self, transaction: Transaction, queries: tuple[Query, ...]) -> Decided:
        """The outcome of a statement and the price of each query measured for it, releases made."""
        while (grant := self._policy.due()) is not None:
            self._filter.check(grant.charge)
            self._release(transaction, grant, opening=True)
        known = {query: self._policy.recall(query) for query in dict.fromkeys(queries) if not query.is_zero}
        missing = [query for query, estimate in known.items() if estimate is None]
        if not missing:
            return Reply(queries, tuple(map(known.get, queries))), {}
        try:
            grant = self._policy.grant(missing)
            self._filter.check(grant.charge)
        except BudgetExhausted as refusal:
            return Refusal(queries, str(refusal)), {}
        self._release(transaction, grant, opening=False)
        known |= {query: self._policy.latest(query) for query in missing}
        prices = dict.fromkeys(missing, grant.charge.price / len(missing))
        return Reply(queries, tuple(map(known.get, queries)), measured=True), prices

    def _release(self, transaction: Transaction, grant: Grant, *, opening: bool) -> None:
        """Measure what the filter has admitted; exact answers exist nowhere else."""
        measurement = grant.measurement
        noisy = measurement.release(measurement.exact(self._table.marginal), self._noise)
        self._append(transaction, Release(measurement, noisy, grant.charge, grant.allowance, opening))

    def _append(self, transaction: Transaction, entry: Entry) -> None:
        transaction.append(entry)
        self._learn(entry)  # torn until the transaction has ended

    def _catch_up(self, since: Callable[[int], Iterable[Kept]]) -> None:
        """Bring filter and policy to the end of the ledger; from the start if they are torn."""
        if self._torn:
            self._begin(self._policy.setting)
        for kept in since(self._position):
            try:
                self._learn(kept.entry)
            except BudgetExhausted as error:
                raise LedgerError(f"entry {kept.position} of the ledger: {error}") from None
        self._torn = False

    def _begin(self, setting: Setting) -> None:
        """Filter and policy before the first entry."""
        self._policy = policy_named(self._policy.name, setting)
        self._filter, self._position = self._policy.accounting.filter(), 0

    def _learn(self, entry: Entry) -> None:
        self._torn = True
        if isinstance(entry, Release):
            self._filter.spend(entry.charge)
        self._policy.learn(entry)
        self._position += 1

    @property
    def _present(self) -> Filter:
        """The filter after everything that is kept now."""
        with self._lock:
            self._catch_up(self._ledger.since)
            return self._filter

    def _answers(
        self, parsed: Statement, estimates: tuple[Estimate | None, ...], prices: Prices
    ) -> Answer | GroupedAnswer:
        if not parsed.by:
            return self._answer(parsed.text, estimates[0], prices.get(parsed.queries[0], 0.0))
        answers = tuple(
            self._answer(
                parsed.text, estimate, prices.get(query, 0.0), dict(zip(parsed.by, labels, strict=True))
            )
            for query, estimate, labels in zip(parsed.queries, estimates, parsed.groups, strict=True)
        )
        if len(answers) > _MANY:
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
            self._filter.remaining,
            group,
            "gaussian" if estimate is None else estimate.law,
            self._noise.simulation,
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
        estimate = None if whole.is_zero else self._policy.recall(whole)
        return None if estimate is None else self._answer(f"the total of {parsed.text}", estimate, 0.0)

    def _covariance(
        self, queries: Sequence[Query], estimates: Sequence[Estimate | None]
    ) -> npt.NDArray[np.float64] | None:
        """Joint covariance of answers that are all of the policy's present state, which knows it."""
        live = [place for place, estimate in enumerate(estimates) if estimate is not None]
        found = self._policy.covariance([queries[place] for place in live]) if live else None
        variances = [estimate.variance for estimate in estimates if estimate is not None]
        if found is None or not np.isfinite(found).all():
            return None
        if not np.allclose(found.diagonal(), variances, rtol=1e-6):
            return None  # a replayed answer is older, and less precise than what is known now
        joint = np.zeros((len(queries), len(queries)))
        joint[np.ix_(live, live)] = found
        return joint
