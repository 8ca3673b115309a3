"""A session: the only place where the private table, the noise and the ledger meet.

The order inside `Session.ask` is the privacy argument: canonical query → answer from the state if the
policy has one (public) → the policy's grant → the filter → a ledger transaction is opened → exact answers →
noise → charge, release and answer are kept together → the value is returned.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.answer import Answer, GroupedAnswer
from laprasdp.data.table import Table
from laprasdp.errors import BudgetExhausted, ConfigError, DomainError, UnsupportedQuery
from laprasdp.ledger.ledger import Entry, Ledger, Refusal, Release, Reply
from laprasdp.plan import Plan, describe, make_plan
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Estimate, Grant, Policy, Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import NoiseSource
from laprasdp.query import Query
from laprasdp.sql.parse import Statement, parse

DEFAULT_POLICY = "primm"
_MANY = 1_000  # groups above which neither their total nor their joint covariance is worked out


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

    Raises
    ------
    ConfigError
        Seeded noise on a table that is not declared public; table and policy over different domains.

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
    ) -> None:
        if noise.simulation and not public:
            raise ConfigError("seeded noise protects nobody: it is allowed only on a table declared public")
        if table.domain != policy.setting.domain or table.unit != policy.setting.unit:
            raise ConfigError("the table and the policy differ in their domain or privacy unit")
        self._table, self._policy, self._noise, self._ledger = table, policy, noise, ledger
        self._filter = policy.accounting.filter()
        self._predicted = tuple(predicted)
        self._position, self._torn = 0, False
        self._lock = threading.RLock()
        self._replay()

    @property
    def table(self) -> Table:
        """The private table."""
        return self._table

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self._policy.name

    @property
    def setting(self) -> Setting:
        """Everything public that the session was opened with."""
        return self._policy.setting

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
        """What is spent: ε under basic accounting, μ² under Gaussian."""
        return self._filter.spent

    @property
    def remaining(self) -> float:
        """What is left, in the same unit."""
        return self._filter.remaining

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ for all that was released."""
        return self._policy.accounting.epsilon_of(self._filter.spent)

    def plan(self) -> Plan:
        """Expected error of every predicted query and of typical others; no data, no charge."""
        return make_plan(self._policy, self._predicted)

    def parse(self, text: str) -> Statement:
        """Read a statement without asking it: what it means, or why it cannot be asked."""
        return parse(text, self._table.domain, self._table.name)

    def ask(self, statement: str | Query | Statement) -> Answer | GroupedAnswer:
        """
        Answer one statement, at once.

        Parameters
        ----------
        statement : str, Query or Statement
            SQL text; or a query made in Python.

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

        Notes
        -----
        **Privacy.**  Guarantees that nothing noisy leaves before its charge is kept; that an error or an
        interrupt before that point changes nothing and shows nothing; and that errors, refusals and charges
        depend on public things only.
        """
        parsed = self._parsed(statement)
        with self._lock:
            self._replay()
            self._prepare()
            known = {q: self._policy.recall(q) for q in dict.fromkeys(parsed.queries) if not q.is_zero}
            missing = [query for query, estimate in known.items() if estimate is None]
            price = 0.0
            if missing:
                release = self._release(self._granted(parsed.queries, missing), parsed.queries)
                known |= {query: self._policy.latest(query) for query in missing}
                price = release.charge.price / len(missing)
            elif known:
                self._keep(Reply(parsed.queries))
            return self._answers(parsed, known, dict.fromkeys(missing, price))

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

    def _prepare(self) -> None:
        """Make the releases that the policy wants before the next statement."""
        while (grant := self._policy.due()) is not None:
            self._filter.check(grant.charge)
            self._release(grant)

    def _granted(self, queries: tuple[Query, ...], missing: list[Query]) -> Grant:
        try:
            grant = self._policy.grant(missing)
            self._filter.check(grant.charge)
        except BudgetExhausted as refusal:
            self._keep(Refusal(queries, str(refusal)))
            raise
        return grant

    def _release(self, grant: Grant, queries: tuple[Query, ...] = ()) -> Release:
        measurement = grant.measurement
        with self._ledger.transaction() as transaction:
            noisy = measurement.release(measurement.exact(self._table.marginal), self._noise)
            release = Release(measurement, noisy, grant.charge, grant.allowance, not queries, queries)
            transaction.append(release)
        self._replay()
        return release

    def _keep(self, entry: Entry) -> None:
        with self._ledger.transaction() as transaction:
            transaction.append(entry)
        self._replay()

    def _replay(self) -> None:
        """Bring filter and policy to the end of the ledger; from the start if that was ever cut short."""
        if self._torn:
            self._policy = policy_named(self._policy.name, self._policy.setting)
            self._filter, self._position = self._policy.accounting.filter(), 0
        self._torn = True
        for entry in self._ledger.since(self._position):
            if isinstance(entry, Release):
                self._filter.spend(entry.charge)
            self._policy.learn(entry)
            self._position += 1
        self._torn = False

    def _answers(
        self, parsed: Statement, known: dict[Query, Estimate | None], prices: dict[Query, float]
    ) -> Answer | GroupedAnswer:
        estimates = [known.get(query) for query in parsed.queries]
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
            self.remaining,
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
