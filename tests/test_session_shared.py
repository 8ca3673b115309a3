"""Sessions on one ledger: what others kept means the same, learned before the transaction or inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from small_session import opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.record.entries import Kept, Stamp
from laprasdp.stream.life import Life


class Counting(MemoryLedger):
    """Counts the entries that are read while nobody else can write, and before."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = self.before = 0

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with super().transaction(stamp) as transaction:
            since = transaction.since
            transaction.since = lambda position: self.read(since(position))
            yield transaction

    def read(self, kept: list[Kept]) -> list[Kept]:
        self.inside += len(kept)
        return kept

    def since(self, position: int) -> list[Kept]:
        kept = super().since(position)
        self.before += len(kept)
        return kept


def test_what_others_kept_is_learned_before_the_transaction() -> None:
    ledger = Counting()
    sessions = opened(ledger=ledger), opened(ledger=ledger)
    read = []
    for place in range(6):
        for session in sessions:
            session.ask(f"SELECT COUNT(*) FROM t WHERE age = {place}")
        read.append((ledger.inside, ledger.before))
    assert read[0][0] > 0  # they have not met before
    assert read[1][0] == read[-1][0]
    assert read[1][1] < read[-1][1]


def test_a_session_alone_reads_nothing_before_the_transaction() -> None:
    ledger = Counting()
    session = opened(ledger=ledger)
    ledger.since = None  # type: ignore[assignment,method-assign]
    for place in range(3):
        session.ask(f"SELECT COUNT(*) FROM t WHERE age = {place}")


class Late(Life):
    """Of a session that learns everything inside the transaction."""

    shared = property(lambda self: False)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=14))
@settings(max_examples=25, deadline=None)
def test_what_is_learned_early_is_what_is_learned_late(asked: list[tuple[int, int]]) -> None:
    shown = []
    for kind in (Life, Late):
        ledger, noise = MemoryLedger(), lp.SeededNoise(1)
        sessions = [opened(ledger=ledger, noise=noise, public=True) for _ in range(3)]
        for session in sessions:
            session.life.__class__ = kind
        answers: list[object] = []
        for who, age in asked:
            with suppress(lp.BudgetExhausted):
                answers.append(sessions[who].ask(f"SELECT COUNT(*) FROM t WHERE age <= {age}"))
            answers.append([session.state.position for session in sessions][who])
        shown.append((answers, [each.entry for each in ledger.since(0)], sessions[0].spent))
    assert shown[0][0] == shown[1][0]
    assert repr(shown[0][1:]) == repr(shown[1][1:])
