"""Asking: what every session offers, of one table or of many periods; faces know nothing else of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from laprasdp.arguments import check_arguments
from laprasdp.errors import DomainError, LedgerError, UnsupportedQuery
from laprasdp.privacy.budget import Budget
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import describe
from laprasdp.queries.query import Query
from laprasdp.sql.parse import Statement
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.plan import Plan
from laprasdp.stream.price import Price
from laprasdp.stream.resultset import ResultSet

Question = str | Query | Statement
Told = Answer | GroupedAnswer | ResultSet


@dataclass(frozen=True)
class Account:
    """
    One budget, and what became of it.

    Attributes
    ----------
    budget : Budget
        As last raised.
    spent, remaining : float
        By all sessions on the ledger, in `unit`.
    unit : str
        What charges are measured in: ε or μ².
    epsilon_spent : float
        ε at the budget's δ for all that was released.
    period : str, optional
        The first date of the period that it is for, where there are several.
    """

    budget: Budget
    spent: float
    remaining: float
    unit: str
    epsilon_spent: float
    period: str | None = None

    @property
    def share_left(self) -> float:
        """What is left as a share of the whole."""
        whole = self.spent + self.remaining
        return self.remaining / whole if whole else 0.0


def tightest(accounts: Sequence[Account]) -> Account:
    """The account with the smallest share left; the first of several."""
    return min(accounts, key=lambda account: account.share_left)


def read(statement: Question, domain: Domain, parse: Callable[[str], Statement]) -> Statement:
    """
    What a question asks.

    Raises
    ------
    UnsupportedQuery
        It is none, or cannot be asked.
    DomainError
        It is over another domain.
    """
    if isinstance(statement, str):
        return parse(statement)
    if isinstance(statement, Query):
        statement = Statement(text=describe(statement), queries=(statement.canonical(),))
    if not isinstance(statement, Statement):
        raise UnsupportedQuery(f"a statement is SQL text or a Query, not {type(statement).__name__}")
    if any(query.domain != domain for query in statement.queries):
        raise DomainError("the query is over another domain than the table's")
    return statement


class Asking(Protocol):
    """
    A session that statements are asked of, one after another.

    Notes
    -----
    **Privacy.**  Whoever holds one sees answers, refusals and charges only; see `Session`.
    """

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The account of each budget: one of a table, one a period where there are periods."""

    @property
    def account(self) -> Account:
        """The account that has the smallest share left."""
        return tightest(self.accounts)

    def _line(self, table: str) -> str:
        """The table, its budget and what is left, in one line."""
        start = f"<{type(self).__name__} over {table}"
        try:
            left = self.account
        except LedgerError as error:
            return f"{start}: {error}>"
        where = "" if left.period is None else f" in the period from {left.period}"
        spent = f"ε = {left.epsilon_spent:.4g} of {left.budget.epsilon:g} spent at δ = {left.budget.delta:g}"
        return f"{start}: {spent}{where}, {left.share_left:.0%} left>"

    def parse(self, text: str) -> Statement:
        """Read a statement without asking it: what it means, or why it cannot be asked."""

    def admit(self, analyst: str | None) -> None:
        """Whether this analyst may ask at all; raises `UnknownAnalyst` otherwise."""

    def allot(self, caps: Mapping[str, float]) -> None:
        """Go on with other caps, of the ε that may be measured for each analyst; without any, all may ask."""

    def plan(self) -> Plan:
        """Expected error of every predicted query and of typical others; no data, no charge."""

    def price(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Price:
        """What a statement would be charged, and how exact it would be, if it were asked now."""

    def ask(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Told:
        """Answer one statement, at once; as exactly as is wanted and no better, or measured again."""

    def ask_many(self, statements: Iterable[Question], *, analyst: str | None = None) -> Iterator[Told]:
        """
        Answer statements one after another, each at once.

        Parameters
        ----------
        statements : iterable
            Read lazily: each is taken only when the one before it was answered.
        analyst : str, optional
            As for `ask`.

        Raises
        ------
        LaprasError
            From the first statement that is refused; `ask` them one by one to go on after a refusal.
        """
        check_arguments(statements=statements)
        for statement in statements:
            yield self.ask(statement, analyst=analyst)

    def close(self) -> None:
        """Let go of what the session has open; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
