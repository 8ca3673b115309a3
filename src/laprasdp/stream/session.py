"""A session: it holds the private table, the noise, and a state that follows its ledger.

The order inside `Session.ask` is the privacy argument: canonical query → a ledger transaction is opened and
all that others released is learned → answer from the state if the policy has one (public) → the policy's
grant → the filter → exact answers → noise → release, charge and answer are kept together → the value is
returned.  What the state decides is worked out before the transaction, so that nobody waits for a design; it
holds where the transaction finds that nothing was kept since, and is worked out anew otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from laprasdp.arguments import check_arguments
from laprasdp.data.table import Table
from laprasdp.errors import BudgetExhausted, ConfigError, TooImprecise
from laprasdp.ledger.ledger import Ledger
from laprasdp.policy.policy import Policy
from laprasdp.policy.promise import check_promise
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import NoiseSource, load
from laprasdp.queries.query import Query
from laprasdp.record.entries import Raise, Refusal, Reply, Stamp
from laprasdp.record.origin import Origin
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.strategy.threads import one_thread
from laprasdp.stream.asking import Account, Asking, Question, Told, read
from laprasdp.stream.following import Following
from laprasdp.stream.life import Event
from laprasdp.stream.plan import Plan, make_plan
from laprasdp.stream.price import Price, rehearsed
from laprasdp.stream.shown import Shown, joint_of
from laprasdp.stream.state import State
from laprasdp.stream.turn import ANY, Choice, Settled, Turn, choose, measured
from laprasdp.stream.wish import Wish

TRIES = 3  # to find what a design hangs on unchanged when the transaction begins; the last one designs in it


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


class Session(Asking):
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
        How they are called, one each.
    caps : mapping of analyst to float, optional
        The ε, at the budget's δ, of what may be measured for each analyst; only they may ask then.
    clock : callable
        The time for the ledger's stamps, in UTC; nothing is decided by it.
    owned : ExitStack, optional
        What ends with the session beside its ledger, such as a table that was opened for it.
    reader : Reader, optional
        What reads its statements, where that knows lookups.
    origin : Origin, optional
        Which table it is, for the ledger.
    post : {"fitted"}, optional
        What is shown beside each unbiased value, as in `Stream`.

    Attributes
    ----------
    life : Life
        Where it stands to its ledger.

    Raises
    ------
    BudgetError
        A cap is no ε; or the ledger is empty and the budget is not enough for what the policy plans.
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
        caps: Mapping[str, float] | None = None,
        clock: Callable[[], datetime] = now,
        owned: ExitStack | None = None,
        reader: Reader | None = None,
        origin: Origin | None = None,
        post: str | None = None,
    ) -> None:
        if noise.simulation and not public:
            raise ConfigError("seeded noise protects nobody: it is allowed only on a table declared public")
        if table.domain != policy.setting.domain or table.unit != policy.setting.unit:
            raise ConfigError("the table and the policy differ in their domain or privacy unit")
        self._table, self._noise, self._fitted = table, noise, post == "fitted"
        self._predicted, self._clock, self._owned = tuple(predicted), clock, owned or ExitStack()
        self._reader = reader or Reader(table.domain, table.name, table.types)
        self._following = Following.opened(policy, caps or {}, ledger, origin)
        self.life, self._lock = self._following.life, self._following.lock

    def __repr__(self) -> str:
        return self._line(self._table.name)

    @property
    def table(self) -> Table:
        """The private table."""
        return self._table

    @property
    def ledger(self) -> Ledger:
        """What keeps everything that is released."""
        return self._following.ledger

    @property
    def state(self) -> State:
        """Filter, caps and policy after the last entry that was learned; only to look at."""
        return self._following.state

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self.state.policy.name

    @property
    def setting(self) -> Setting:
        """Everything public that the session was opened with."""
        return self.state.policy.setting

    @property
    def accounting(self) -> str:
        """ "basic": charges are in ε; "gaussian": in μ²."""
        return self.state.policy.accounting.name

    @property
    def budget(self) -> Budget:
        """The whole budget, as last raised."""
        return self._following.present.budget

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        return self.state.policy.accounting.unit

    @property
    def spent(self) -> float:
        """What is spent by all sessions on the ledger: ε under basic accounting, μ² under Gaussian."""
        return self._following.present.filter.spent

    @property
    def remaining(self) -> float:
        """What is left, in the same unit."""
        return self._following.present.filter.remaining

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ for all that was released."""
        return self.account.epsilon_spent

    @property
    def accounts(self) -> tuple[Account]:
        """The account of its one budget."""
        state = self._following.present
        spent, unit = state.filter.spent, state.policy.accounting
        return (Account(state.budget, spent, state.filter.remaining, unit.unit, unit.epsilon_of(spent)),)

    def close(self) -> None:
        """
        Let go of the ledger, and of the table if it was opened for this session; closing twice does nothing.

        What was answered stays in a durable ledger, where a session that is opened later goes on.
        """
        with self._lock:
            if not self.life.closed:
                self._following.close()
                self.life.move(Event.CLOSE)
                with self._owned:
                    self.ledger.close()

    def plan(self) -> Plan:
        """Expected error of every predicted query and of typical others; no data, no charge."""
        return make_plan(self._following.present.policy, self._predicted)

    def parse(self, text: str) -> Statement:
        """Read a statement without asking it: what it means, or why it cannot be asked."""
        return self._reader.parse(text)

    def admit(self, analyst: str | None) -> None:
        """Whether this analyst may ask at all; raises `UnknownAnalyst` otherwise."""
        self.state.admit(analyst)

    def allot(self, caps: Mapping[str, float]) -> None:
        """Go on with other caps; without any, all may ask.  A cap can only refuse more."""
        self._following.allot(caps)

    @one_thread()
    def ask(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Told:
        """
        Answer one statement, at once.

        Parameters
        ----------
        statement : str, Query or Statement
            SQL text; or a query made in Python.
        analyst : str, optional
            Who asks; the ledger keeps it, and what is measured counts against a cap of this name.
        max_std : float, optional
            The largest standard deviation of what is shown: no more is spent than that needs, and it is
            refused where that cannot be met.
        remeasure : bool
            Measure it, whatever is known, and join both; what was shown before stays in the ledger.

        Returns
        -------
        Answer, GroupedAnswer or ResultSet
            A GROUP BY gives one answer a declared group; a statement of several values gives its rows.

        Raises
        ------
        UnsupportedQuery
            The statement cannot be asked.  It costs nothing.
        BudgetExhausted
            The policy, the budget or the analyst's cap has nothing left for it.  What was released, for
            whomever, stays free.
        TooImprecise
            A standard deviation that is wanted cannot be met.  It costs nothing.
        ConfigError
            There are caps, and the analyst has none.
        LedgerError
            The ledger cannot keep it, or the session is closed; nothing is shown.

        Notes
        -----
        **Privacy.**  Guarantees that nothing noisy leaves before its charge is kept; that an error or an
        interrupt before that point changes nothing and shows nothing; and that errors, refusals and charges
        depend on public things only.
        """
        parsed = read(statement, self._table.domain, self.parse)
        wish, stamp = Wish.of(parsed, max_std, remeasure), Stamp(self._clock(), analyst, parsed.text)
        load(self._noise)  # before others wait for the transaction to end
        with self._lock:
            try:
                settled = self._settle(stamp, parsed.queries, wish)
            except BudgetExhausted as refusal:  # what was released for it and did not suffice is taken back
                with self.turn(stamp) as turn:
                    met = not isinstance(refusal, TooImprecise)
                    turn.append(Refusal(parsed.queries, str(refusal), counted=met))
                raise
            if isinstance(settled.outcome, Refusal):
                raise settled.refused
            return self.show(parsed, settled).whole

    @one_thread()
    def price(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Price:
        """
        What a statement would be charged and how exact it would be, if it were asked now by `ask`.

        Raises
        ------
        UnsupportedQuery, ConfigError, LedgerError
            As from `ask`.

        Notes
        -----
        **Privacy.**  A function of what is kept and of public settings; no data, no noise, no entry.
        """
        parsed = read(statement, self._table.domain, self.parse)
        wish = Wish.of(parsed, max_std, remeasure)
        try:
            with self.rehearsal(parsed.queries, analyst, wish) as turn:
                return Price.of(parsed, turn.settle(parsed.queries), turn.policy)
        except BudgetExhausted as stop:
            return Price.refused(parsed.queries, str(stop))

    @one_thread()
    def raise_budget(self, budget: Budget, *, analyst: str | None = None) -> None:
        """
        Go on with a larger budget: an act of the curator that the ledger records.

        Parameters
        ----------
        budget : Budget
            Not below the present one in ε or δ, and above it in one of them.
        analyst : str, optional
            Who raises it.

        Raises
        ------
        BudgetError
            It is no raise; or the noise values drawn so far, and those of the rest of the stream, would pass
            what it allows.

        Notes
        -----
        **Privacy.**  From here on everything shown, also before, is private for the new budget only
        (docs/proofs/session.md).
        """
        check_arguments(budget=budget)
        with self._following.transaction(Stamp(self._clock(), analyst)) as append:
            self.state.filter.check_widen(budget)
            append(Raise(old := self.state.budget, budget))
            if budget.coordinates < old.coordinates:
                check_promise(self.state.policy)

    def _settle(self, stamp: Stamp, queries: Sequence[Query], wish: Wish) -> Settled:
        for k in range(TRIES):
            ahead = self.foresee(queries, stamp.analyst, wish) if k or self._following.foresees else None
            with self.turn(stamp, ahead, wish) as turn:
                if turn.ready or k == TRIES - 1:
                    return turn.settle(queries)
        raise AssertionError("the last try settles it")

    def foresee(self, queries: Sequence[Query], analyst: str | None, wish: Wish = ANY) -> Choice:
        """
        Decide about a statement from what is known now, before others wait for the transaction to end.

        Raises
        ------
        BudgetExhausted, ConfigError, LedgerError
            As from `ask`.
        """
        self.admit(analyst)
        with self._lock:
            return choose(self._following.ahead, queries, analyst, wish)

    @contextmanager
    def turn(self, stamp: Stamp, ahead: Choice | None = None, wish: Wish = ANY) -> Iterator[Turn]:
        """
        A ledger transaction for one statement; what is appended is kept at its end, or not at all.

        Parameters
        ----------
        stamp : Stamp
        ahead : Choice, optional
            What `foresee` decided about the statement.
        wish : Wish

        Raises
        ------
        ConfigError, LedgerError
            As from `ask`.
        """
        self.admit(stamp.analyst)
        with self._following.transaction(stamp) as append:
            measure = measured(self._table, self._noise)
            yield Turn(append, stamp.analyst, ahead, self.state, measure, wish, self._fitted)

    @contextmanager
    def rehearsal(self, queries: Sequence[Query], analyst: str | None, wish: Wish = ANY) -> Iterator[Turn]:
        """A turn that ends as if these queries were asked now, and that is kept nowhere."""
        self.admit(analyst)
        with self._lock:
            yield rehearsed(self._following.present, queries, analyst, wish)

    def show(self, parsed: Statement, settled: Settled) -> Shown:
        """What the analyst is shown of a reply that was just kept."""
        assert isinstance(settled.outcome, Reply)
        joint = joint_of(self.state.policy, parsed, settled.outcome.answers)
        left, simulated = self.state.filter.remaining, self._noise.simulation
        return Shown(parsed, joint, settled.prices, left, simulated, settled.released)

    def doubt(self) -> None:
        """Read all of the ledger again at the next statement: what was learned last may not be in it."""
        self._following.doubt()
