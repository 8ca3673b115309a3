"""The stages of a session's life: one table, on the page as in the code, and kept by sessions that fail."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_session import opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.record.entries import Kept, Stamp
from laprasdp.stream import life
from laprasdp.stream.life import MOVES, Event, Life, Stage

CLOSED = "the session is closed: open another one to go on"
WAYS: dict[Stage, list[Event]] = {
    Stage.ALONE: [],
    Stage.TORN: [Event.DOUBT],
    Stage.SHARED: [Event.LEARN, Event.OVERTAKEN],
    Stage.TORN_SHARED: [Event.LEARN, Event.OVERTAKEN, Event.LEARN],
    Stage.CLOSED: [Event.CLOSE],
}


def at(stage: Stage) -> Life:
    found = Life()
    for event in WAYS[stage]:
        found.move(event)
    assert found.stage is stage
    return found


def test_the_page_has_the_moves_of_the_code() -> None:
    drawn = re.search(r"```text\n(.*?)```", life.__doc__ or "", re.DOTALL)
    assert drawn is not None
    head, *rows = [line.split() for line in drawn[1].splitlines()]
    events = [Event[name] for name in head]
    told = {
        (Stage[row[0]], event): Stage[name]
        for row in rows
        for event, name in zip(events, row[1:], strict=True)
        if name != "-"
    }
    assert events == list(Event)
    assert [Stage[row[0]] for row in rows] == list(Stage)
    assert told == MOVES


@pytest.mark.parametrize(("stage", "event"), list(itertools.product(Stage, Event)))
def test_every_event_moves_as_the_table_says_or_is_refused(stage: Stage, event: Event) -> None:
    found = at(stage)
    if (stage, event) in MOVES:
        found.move(event)
        assert found.stage is MOVES[stage, event]
        return
    with pytest.raises(lp.LedgerError if stage is Stage.CLOSED else AssertionError) as caught:
        found.move(event)
    assert stage is not Stage.CLOSED or str(caught.value) == CLOSED
    assert found.stage is stage


@pytest.mark.parametrize("stage", Stage)
def test_a_stage_says_what_it_is(stage: Stage) -> None:
    found = at(stage)
    assert found.torn == ("TORN" in stage.name)
    assert found.shared == ("SHARED" in stage.name)
    assert found.closed == (stage is Stage.CLOSED)


class Failing(MemoryLedger):
    """Fails when it is told to: at the start or the end of a transaction, when read, or at an entry."""

    fails = ""

    def check(self, place: str) -> None:
        if place == self.fails:
            raise OSError(place)

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        self.check("begin")
        with super().transaction(stamp) as transaction:
            append = transaction.append

            def checked(entry: object) -> None:
                append(entry)  # type: ignore[arg-type]
                self.check("append")

            transaction.append = checked  # type: ignore[method-assign]
            yield transaction
            self.check("end")
        self.check("kept")

    def since(self, position: int) -> list[Kept]:
        self.check("read")
        return super().since(position)


FAILED = {"begin": False, "append": False, "end": True, "kept": True}
"""Whether the state has learned what is not known to be kept, where a ledger fails."""


@pytest.mark.parametrize("place", FAILED)
def test_a_failure_tears_a_state_that_has_learned(place: str) -> None:
    ledger = Failing()
    session = opened(ledger=ledger)
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    assert session.life.stage is Stage.ALONE
    ledger.fails = place
    with pytest.raises(OSError, match=place):
        session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert session.life.stage is (Stage.TORN if FAILED[place] else Stage.ALONE)
    ledger.fails = ""
    session.ask("SELECT COUNT(*) FROM t WHERE age < 5")
    assert not session.life.torn


def test_others_make_a_session_shared_until_it_is_asked_in_peace() -> None:
    ledger = MemoryLedger()
    one, other = opened(ledger=ledger), opened(ledger=ledger)
    stages = []
    for session, age in [(one, 1), (other, 2), (one, 3), (one, 4)]:
        session.ask(f"SELECT COUNT(*) FROM t WHERE age = {age}")
        stages.append(session.life.stage)
    assert stages == [Stage.ALONE, Stage.SHARED, Stage.SHARED, Stage.ALONE]
    one.close()
    assert (one.life.stage, other.life.stage) == (Stage.CLOSED, Stage.SHARED)


ACTS = st.tuples(st.sampled_from(["", *FAILED, "read"]), st.integers(0, 1), st.integers(0, 9))


@given(st.lists(ACTS, min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_whatever_fails_all_sessions_come_to_what_is_kept(
    acts: list[tuple[str, int, int]],
) -> None:
    ledger = Failing()
    sessions = [opened(ledger=ledger, horizon=40) for _ in range(2)]
    for fails, who, age in acts:
        ledger.fails = fails
        with suppress(OSError, lp.BudgetExhausted):
            sessions[who].ask(f"SELECT COUNT(*) FROM t WHERE age <= {age}")
        ledger.fails = ""
        assert fails or not sessions[who].life.torn
    with opened(ledger=ledger, horizon=40) as fresh:
        assert {session.spent for session in sessions} == {fresh.spent}
    assert not any(session.life.torn for session in sessions)
