"""Races on one ledger: many processes, one budget that fits only a part of what they ask.

LAPRAS_RACE_ASKS sets how many statements each process asks; the full race is 2000.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.marginal import Marginal
from laprasdp.record.entries import Release, Reply
from laprasdp.record.format import units_of
from laprasdp.stream.opening import open_session

PROCESSES = 8
ASKS = int(os.environ.get("LAPRAS_RACE_ASKS", "60"))
LONG = 300 + ASKS  # seconds after which a race counts as a deadlock
SIDE = max(12, 4 * int(ASKS**0.5))  # (SIDE - 1)² statements
DOMAIN = lp.Domain(a=lp.Integers(0, SIDE - 1), b=lp.Integers(0, SIDE - 1))
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Place:
    """A dataset of a database, and how many releases its budget fits."""

    where: str
    dataset: str
    fits: int


@dataclass(frozen=True)
class Outcome:
    """What a process was shown: no value if it was refused; what was charged, in units of 2⁻⁴⁰ of μ²."""

    statement: str
    value: float | None
    units: int


def opened(place: Place, table: MemoryTable | None = None) -> lp.Session:
    return open_session(
        table or MemoryTable(DOMAIN, np.ones(SIDE**2, dtype=int)),
        DOMAIN,
        budget=lp.Budget(1, 1e-6),
        horizon=place.fits,
        policy="independent",
        ledger=SQLLedger(place.where, dataset=place.dataset, wait=LONG),
    )


def statement(number: int) -> str:
    """Each another one; the cell (0, 0) is in all of them, so that their charges add up."""
    a, b = divmod(number, SIDE - 1)
    return f"SELECT COUNT(*) FROM t WHERE a < {a + 1} AND b < {b + 1}"


def asked(session: lp.Session, number: int) -> Outcome:
    try:
        answer = session.ask(statement(number))
    except lp.BudgetExhausted:
        return Outcome(statement(number), None, 0)
    assert isinstance(answer, lp.Answer)
    units = answer.charge * 2**MU_BITS
    assert units.is_integer()
    return Outcome(statement(number), answer.value, int(units))


def race(place: Place, numbers: list[int], gate: Barrier, *, together: bool) -> list[Outcome]:
    """One process: ask all, from the same moment on, or each at the same moment as the others."""
    session = opened(place)
    gate.wait()
    outcomes = []
    for number in numbers:
        if together:
            gate.wait()
        outcomes.append(asked(session, number))
    return outcomes


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with SPAWN.Pool(PROCESSES) as pool:
        yield pool


@pytest.fixture(scope="module")
def gate() -> Iterator[Barrier]:
    with SPAWN.Manager() as manager:
        yield manager.Barrier(PROCESSES, timeout=LONG)


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres").url)


def run(pool: Pool, gate: Barrier, place: Place, parts: list[list[int]], together: bool) -> list[Outcome]:
    waiting = [pool.apply_async(race, (place, numbers, gate), {"together": together}) for numbers in parts]
    return list(itertools.chain.from_iterable(one.get(timeout=LONG) for one in waiting))


def check(place: Place, outcomes: list[Outcome]) -> int:
    """The ledger and what was shown say the same; gives the number of releases."""
    session = opened(place)
    ledger = session.ledger
    assert isinstance(ledger, SQLLedger)
    assert verify(ledger) == []
    kept = [(one.stamp.statement, one.entry) for one in ledger.since(0)]
    charges = [units_of(entry.charge) for _, entry in kept if isinstance(entry, Release)]
    limit = session.budget.mu_squared_units
    assert (
        sum(charges)
        == sum(outcome.units for outcome in outcomes)
        == session.state.filter.spent_units
        <= limit
    )
    shown: dict[str | None, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        shown[outcome.statement].append(outcome)
    replies: dict[str | None, list[Reply]] = defaultdict(list)
    for text, entry in kept:
        if isinstance(entry, Reply):
            replies[text].append(entry)
    for text, alike in shown.items():
        answers = [outcome.value for outcome in alike if outcome.value is not None]
        written = [reply.answers[0].value for reply in replies[text] if reply.answers[0] is not None]
        assert len(answers) == len(written)  # none is lost, and none was not shown
        assert len({*answers, *written}) <= 1
        assert sum(outcome.units > 0 for outcome in alike) == bool(answers)
    assert sum(map(len, replies.values())) == sum(outcome.value is not None for outcome in outcomes)
    return len(charges)


def test_what_many_spend_is_what_the_ledger_has_and_fits(pool: Pool, gate: Barrier, where: str) -> None:
    place = Place(where, "part", fits=2 * ASKS)
    half = ASKS // 2
    parts = []
    for process in range(PROCESSES):  # half of it is everybody's
        own = range(half * (1 + process), half * (2 + process))
        numbers = np.random.default_rng(process).permutation([*range(half), *own])
        parts.append([int(number) for number in numbers])
    outcomes = run(pool, gate, place, parts, together=False)
    assert check(place, outcomes) == place.fits < half * (1 + PROCESSES)
    refused = sum(outcome.value is None for outcome in outcomes)
    assert refused > 0


def test_one_question_at_the_same_moment_has_one_answer_and_one_charge(
    pool: Pool, gate: Barrier, where: str
) -> None:
    numbers = list(range(10))
    place = Place(where, "alike", fits=2 * ASKS + 1)
    outcomes = run(pool, gate, place, [numbers] * PROCESSES, together=True)
    assert None not in {outcome.value for outcome in outcomes}
    assert check(place, outcomes) == len(numbers)


class Stuck(MemoryTable):
    """Once it is read, its process says so and does not go on."""

    def __init__(self, reached: Any) -> None:
        super().__init__(DOMAIN, np.ones(SIDE**2, dtype=int))
        self.reached = reached

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        self.reached.set()
        time.sleep(LONG)
        raise AssertionError("nobody killed it")


def hold(place: Place, reached: Event, step: str) -> None:
    """Be the writer for ever: before anything is written, or with everything written but the commit."""
    session = opened(place, Stuck(reached) if step == "measuring" else None)
    ledger = session.ledger
    assert isinstance(ledger, SQLLedger)
    with ledger.database.together() if step == "committing" else nullcontext():
        session.ask(statement(1))
        reached.set()
        time.sleep(LONG)


@pytest.mark.parametrize("step", ["measuring", "committing"])
def test_a_writer_that_is_killed_blocks_nobody(pool: Pool, gate: Barrier, where: str, step: str) -> None:
    place = Place(where, f"killed {step}", fits=2 * ASKS + 2 + len(step))
    first = asked(opened(place), 0)
    reached = SPAWN.Event()
    writer = SPAWN.Process(target=hold, args=(place, reached, step))
    writer.start()
    assert reached.wait(LONG)
    waiting = [pool.apply_async(race, (place, [1, 0], gate), {"together": False}) for _ in range(PROCESSES)]
    time.sleep(0.5)
    assert not any(one.ready() for one in waiting)  # it does hold the lock
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    outcomes = list(itertools.chain.from_iterable(one.get(timeout=LONG) for one in waiting))  # or blocked
    writer.join()
    assert check(place, [first, *outcomes]) == 2
