"""A witness of what a session has shown: holds the ledger to it after whatever has happened to it."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from draw import MemoryTable, cells

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.filter import CellCharge
from laprasdp.record.entries import Kept, Release, Reply
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 9), member=lp.Booleans())
CELLS = cells(DOMAIN)
STATEMENTS = [
    f"SELECT COUNT(*) FROM t WHERE age BETWEEN {low} AND {high}{also}"
    for (low, high), also in itertools.product(
        itertools.combinations(range(10), 2), ("", " AND member = TRUE", " AND member = FALSE")
    )
]


def opened(ledger: Any = None, *, policy: str = "independent", **more: Any) -> lp.Session:
    """A session over a table of a few cells, with a budget for 24 statements."""
    given: dict[str, Any] = {"budget": lp.Budget(1, 1e-6), "horizon": 24, "policy": policy}
    return open_session(MemoryTable(DOMAIN, np.arange(20)), DOMAIN, ledger=ledger, **given | more)


WHOLE = opened().remaining


class Witness:
    """
    Remembers every answer that was shown.

    Parameters
    ----------
    ledger : callable
        The ledger, as a process opens it that was not there before.
    policy : str
    """

    def __init__(self, ledger: Callable[[], SQLLedger], policy: str = "independent") -> None:
        self._ledger, self._policy = ledger, policy
        self.shown: dict[str, float] = {}
        self._new: list[str] = []
        self.faults_seen: list[str] = []

    def saw(self, statement: str, value: float) -> None:
        """An answer has left the session."""
        if self.shown.setdefault(statement, value) != value:
            self.faults_seen.append(f"{statement} was shown with another value")
        self._new.append(statement)

    def ask(self, session: lp.Session, statement: str) -> lp.Answer:
        """Ask, and see the answer."""
        answer = session.ask(statement)
        assert isinstance(answer, lp.Answer)
        self.saw(statement, answer.value)
        return answer

    def faults(self, *, everything: bool = False) -> list[str]:
        """
        What is wrong now, seen by a process that opens the ledger anew.

        What was seen since the last call is asked again; with `everything`, all that was ever seen.
        """
        ledger = self._ledger()
        try:
            found = [*self.faults_seen, *map(str, verify(ledger)), *self._missing(ledger.since(0))]
            session = opened(ledger, policy=self._policy)
            before = ledger.head.entries
            for statement in dict.fromkeys(self.shown if everything else self._new):
                answer = session.ask(statement)
                assert isinstance(answer, lp.Answer)
                if (answer.value, answer.charge) != (self.shown[statement], 0):
                    found.append(f"{statement} has another answer now")
            later = [kept.entry for kept in ledger.since(before)]
            if any(isinstance(entry, Release) and not entry.opening for entry in later):
                found.append("a replay was charged")
        except lp.LaprasError as error:
            return [*self.faults_seen, str(error)]
        finally:
            ledger.close()
        self._new.clear()
        return found

    def _missing(self, kept: Any) -> Iterator[str]:
        spent = np.zeros(len(CELLS), dtype=object)
        answers: dict[str | None, float] = {}
        for entry, after in itertools.zip_longest(kept, kept[1:]):
            if isinstance(entry.entry, Release):
                spent += charged(entry.entry)
                if not entry.entry.opening and not _answers(after):
                    yield f"entry {entry.position} is a charge without its answer"
            elif isinstance(entry.entry, Reply) and entry.entry.answers[0] is not None:
                answers.setdefault(entry.stamp.statement, entry.entry.answers[0].value)
        if max(spent) > WHOLE * 2**MU_BITS:
            yield "the sum of the charges is larger than the budget"
        for statement, value in self.shown.items():
            if answers.get(statement) != value:
                yield f"{statement} was shown, but is not kept"


def charged(release: Release) -> Any:
    """What a release charges each cell, in units."""
    assert isinstance(release.charge, CellCharge)
    amounts = release.charge.amounts
    classes = [
        labels[CELLS[:, DOMAIN.axis(name)]]
        for name, labels in zip(amounts.names, amounts.labels, strict=True)
    ]
    return np.broadcast_to(amounts.weights[tuple(classes)], len(CELLS)).astype(object)


def _answers(kept: Kept | None) -> bool:
    return kept is not None and isinstance(kept.entry, Reply) and kept.entry.measured


class Child:
    """
    A process of its own that does `work` and tells what it has shown, line by line, until it is killed.

    Parameters
    ----------
    work : callable
        Is given what tells that a statement was answered with a value.
    first : callable
        Is done before the child counts as begun.
    """

    def __init__(
        self, work: Callable[[Callable[[str, float], None]], None], first: Callable[[], object] = tuple
    ) -> None:
        self._reading, writing = os.pipe()
        self.number = os.fork()
        if not self.number:
            try:
                first()
                os.write(writing, b"\n")
                work(lambda statement, value: _tell(writing, statement, value))
            finally:
                os._exit(1)
        os.close(writing)
        os.read(self._reading, 1)

    def kill(self) -> None:
        """Kill it, at once."""
        os.kill(self.number, signal.SIGKILL)

    def end(self) -> tuple[bool, list[tuple[str, float]]]:
        """Wait for its end: whether it was killed, and what it has shown."""
        with os.fdopen(self._reading) as lines:
            shown = [(statement, value) for statement, value in map(json.loads, lines)]
        _, status = os.waitpid(self.number, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, shown


def _tell(pipe: int, statement: str, value: float) -> None:
    os.write(pipe, json.dumps([statement, value]).encode() + b"\n")
