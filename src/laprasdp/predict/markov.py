"""What follows inside a session: the next range given the last one, and what was asked there already."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from laprasdp.predict.component import Component, normal
from laprasdp.predict.ladder import Rungs, moved_by
from laprasdp.predict.log import Log
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.template import Key
from laprasdp.predict.window import LIMIT, RangeShapes, frequent

TRUST = 3.0  # lines for which a statement leans on the moves of all, and these on frequencies
MOVES = 40
SETTLED = 100  # steps after which a chain has forgotten where it began

Moves = Counter[tuple[int, ...]]


class MarkovChain(Component):
    """
    A Markov chain of statements: what followed this one, else moves like those of all, else frequencies.

    Notes
    -----
    A move is a change of the literals along their ladders inside one template, as a brush makes it when it
    is dragged.  Back-off is linear: a statement that was followed n times trusts its own followers with
    weight n/(n + `TRUST`).  Only statements of the log, the `LIMIT` most frequent ones, are states.
    """

    def __init__(self, shapes: RangeShapes) -> None:
        super().__init__()
        self._shapes = shapes

    def _learn(self, log: Log) -> None:
        n = len(log.statements)
        self._numbers, top = frequent(log)
        order = np.argsort(log.sessions, kind="stable")
        ids, sessions = log.ids[order].astype(np.int64), log.sessions[order]
        inside = (sessions[1:] == sessions[:-1]) & (sessions[0] != sessions[-1])
        before, after = ids[:-1][inside], ids[1:][inside]
        pairs, counts = np.unique(before * n + after, return_counts=True)
        before, after = pairs // n, pairs % n
        followed = np.bincount(before, counts, minlength=n)
        self._base = np.bincount(ids, minlength=n) / max(len(ids), 1)
        self._own = followed / (followed + TRUST)
        shares = counts / (followed[before] + TRUST)
        self._chain = sparse.csr_array((shares, (after, before)), shape=(n, n))
        best = np.argsort(-counts, kind="stable")[:LIMIT]
        moves = self._moves(log, before[best].tolist(), after[best].tolist(), counts[best].tolist())
        self._moved = self._matrix(log, [number for number, _ in top], moves)

    def shares(self, horizon: int, context: Context) -> Spread:
        last = self._numbers.get(context.session[-1]) if context.session else None
        state, total = np.zeros(len(self._base)), np.zeros(len(self._base))
        if last is None:
            return Spread(total)
        state[last] = 1.0
        steps = min(horizon, SETTLED)
        for _ in range(steps):
            following = self._chain @ state + self._moved @ (state * (1 - self._own))
            state = following + self._base * max(1 - float(following.sum()), 0.0)
            total += state
        return normal(Spread(total + state * (horizon - steps)))

    def _moves(
        self, log: Log, before: Sequence[int], after: Sequence[int], counts: Sequence[int]
    ) -> dict[str, Moves]:
        """How often each move was made in each template."""
        found: dict[str, Moves] = defaultdict(Counter)
        for first, second, count in zip(before, after, counts, strict=True):
            one, two = log.statements[first], log.statements[second]
            if one.shape == two.shape and one != two:
                move = _move(one, two, self._shapes.of(one))
                if move is not None:
                    found[one.shape][move] += count
        return found

    def _matrix(self, log: Log, states: Sequence[int], moves: dict[str, Moves]) -> sparse.csr_array:
        """Where moves take each state, one a column; n moves are trusted n/(n + TRUST)."""
        rows, columns, values = [], [], []
        for number in states:
            key = log.statements[number]
            found = moves.get(key.shape, Counter())
            landed: list[tuple[int, int]] = []
            for steps, count in found.most_common(MOVES):
                target = moved_by(key, self._shapes.of(key), dict(enumerate(steps)))
                place = None if target is None else self._numbers.get(target)
                if place is not None:
                    landed.append((place, count))
            whole = sum(count for _, count in landed) * (1 + TRUST / max(found.total(), 1))
            rows += [place for place, _ in landed]
            columns += [number] * len(landed)
            values += [count / whole for _, count in landed]
        n = len(log.statements)
        return sparse.csr_array((values, (rows, columns)), shape=(n, n))


def _move(one: Key, two: Key, rungs: Rungs) -> tuple[int, ...] | None:
    """The steps from one statement to another of its template; None where a literal has no ladder."""
    steps = []
    for ladder, first, second in zip(rungs, one.literals, two.literals, strict=True):
        start = None if ladder is None else ladder.place(first)
        stop = None if ladder is None else ladder.place(second)
        if start is None or stop is None:
            return None
        steps.append(stop - start)
    return tuple(steps)


class Recall(Component):
    """
    What the session has asked so far, it asks again.

    Parameters
    ----------
    half_life : float
        Statements of the session after which one counts half.
    """

    def __init__(self, half_life: float = math.inf) -> None:
        super().__init__()
        self._half_life = half_life

    def _learn(self, log: Log) -> None:
        self._numbers, _ = frequent(log)
        self._size = len(log.statements)

    def shares(self, horizon: int, context: Context) -> Spread:
        known, new = np.zeros(self._size), defaultdict[Key, float](float)
        for age, key in enumerate(reversed(context.session)):
            weight, place = 2 ** (-age / self._half_life), self._numbers.get(key)
            if place is None:
                new[key] += weight
            else:
                known[place] += weight
        return normal(Spread(known, new))
