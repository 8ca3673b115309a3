"""A failure inside `ask`: before the commit it changes and shows nothing, after it nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from draw import MemoryTable
from small_session import COUNTS, DOMAIN, charged_once, opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.queries.marginal import Marginal
from laprasdp.record.entries import Stamp


class Failing(MemoryTable):
    """Raises at the k-th read."""

    def __init__(self, error: BaseException, after: int) -> None:
        super().__init__(DOMAIN, COUNTS)
        self.error, self.after = error, after

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        self.after -= 1
        if self.after == 0:
            raise self.error
        return super().marginal(axes)


class FailingLedger(MemoryLedger):
    """Its second transaction fails at its end: before it is kept, or after."""

    def __init__(self, error: BaseException, *, kept: bool) -> None:
        super().__init__()
        self.error, self.kept, self.after = error, kept, 2

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            yield transaction
            self.after -= 1
            if self.after == 0 and not self.kept:
                raise self.error
        if self.after == 0 and self.kept:
            self.after = -1
            raise self.error


@pytest.mark.parametrize("error", [OSError("gone"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_before_the_commit_changes_and_shows_nothing(error: BaseException) -> None:
    session = opened(Failing(error, after=3))
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    spent = session.spent
    with pytest.raises(type(error)):
        session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert session.spent == spent
    answer = session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert isinstance(answer, lp.Answer)
    assert answer.source == "measured"
    assert session.spent == spent + answer.charge


def test_a_transaction_that_does_not_end_charges_nothing() -> None:
    session = opened(ledger=FailingLedger(OSError("disk full"), kept=False))
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    spent = session.spent
    with pytest.raises(OSError, match="disk full"):
        session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert session.spent == spent
    session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert session.spent > spent


def test_after_the_commit_an_interrupt_loses_nothing() -> None:
    ledger = FailingLedger(KeyboardInterrupt(), kept=True)
    session = opened(ledger=ledger)
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    statement = "SELECT COUNT(*) FROM t WHERE age < 5"
    with pytest.raises(KeyboardInterrupt):
        session.ask(statement)
    answer = session.ask(statement)
    assert isinstance(answer, lp.Answer)
    assert (answer.source, answer.charge) == ("replay", 0)
    assert charged_once(session, ledger)


@pytest.mark.parametrize("door", ["policy", "filter"])
def test_an_interrupt_while_an_entry_is_learned_takes_it_back(door: str) -> None:
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    spent, kept = session.spent, len(ledger.since(0))
    statement = "SELECT COUNT(*) FROM t WHERE age < 5"

    def interrupted(entry: object) -> None:
        raise KeyboardInterrupt

    if door == "policy":  # no public name stands between the two halves of what is learned
        session.state.policy.learn = interrupted
    else:
        session.state.filter.spend = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.ask(statement)
    assert len(ledger.since(0)) == kept
    assert session.spent == spent
    answer = session.ask(statement)
    assert isinstance(answer, lp.Answer)
    assert answer.source == "measured"
    assert charged_once(session, ledger)
