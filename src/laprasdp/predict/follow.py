"""Inside a session: the next range given the last one, and what the session has asked already."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
from scipy import sparse

from laprasdp.predict.component import Component, TINY, normal
from laprasdp.predict.log import Log
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.template import Key
from laprasdp.predict.window import LIMIT, Shapes, frequent, moved_by

TRUST = 3.0  # lines for which a statement leans on the moves of all, and these on frequencies
MOVES = 40
SETTLED = 200  # steps after which a chain has forgotten where it began


class Following(Component):
    """
    A Markov chain of statements: what followed this one, else moves like those of all, else frequencies.

    Notes
    -----
    A move is a change of the literals along their ladders inside one template, as a brush makes it when it
    is dragged.  Back-off is linear: a statement that was followed n times trusts its own followers with
    weight n/(n + `TRUST`).  Only statements of the log, the `LIMIT` most frequent ones, are states.
    """

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self._shapes = shapes

    def _learn(self, log: Log) -> None:
        n = len(log.statements)
        self._numbers, top = frequent(log)
        order = np.argsort(log.sessions, kind="stable")
        ids, sessions = log.ids[order].astype(np.int64), log.sessions[order]
        inside = sessions[1:] == sessions[:-1]
        before, after = ids[:-1][inside], ids[1:][inside]
        self._base = np.bincount(ids, minlength=n) / max(len(ids), 1)
        pairs, counts = np.unique(before * n + after, return_counts=True)
        self._chain = sparse.csr_array(
            (counts.astype(float), (pairs // n, pairs % n)), shape=(n, n)
        )
        followed = np.bincount(before, minlength=n).astype(float)
        self._own = followed / (followed + TRUST)
        self._chain = sparse.csr_array(
            self._chain.multiply((1 / np.maximum(followed + TRUST, TINY))[:, None])
        )
        moves = self._moves(log, pairs // n, pairs % n, counts)
        self._moved = self._matrix(log, [number for number, _ in top], moves)

    def shares(self, horizon: int, context: Context) -> Spread:
        last = self._numbers.get(context.session[-1]) if context.session else None
        if last is None:
            return Spread(np.zeros(len(self._base)))
        state = np.zeros(len(self._base))
        state[last] = 1.0
        total = np.zeros(len(self._base))
        steps = min(horizon, SETTLED)
        backward, sideways = self._chain.T.tocsr(), self._moved.T.tocsr()
        for _ in range(steps):
            open_mass = state * (1 - self._own)
            moved = sideways @ open_mass
            following = backward @ state + moved
            state = following + self._base * max(1 - float(following.sum()), 0.0)
            total += state
        return normal(Spread(total + state * (horizon - steps)))

    def _moves(self, log: Log, before: np.ndarray, after: np.ndarray, counts: np.ndarray) -> dict[str, Counter]:
        found: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
        top = np.argsort(-counts, kind="stable")[:LIMIT]
        for first, second, count in zip(*(a[top].tolist() for a in (before, after, counts)), strict=True):
            one, two = log.statements[first], log.statements[second]
            if one.shape == two.shape and one != two:
                rungs = self._shapes.of(one)
                places = [
                    (None, None) if ladder is None else (ladder.place(a), ladder.place(b))
                    for ladder, a, b in zip(rungs, one.literals, two.literals, strict=True)
                ]
                if all(a is not None and b is not None for a, b in places):
                    found[one.shape][tuple(b - a for a, b in places)] += count  # type: ignore[operator]
        return found

    def _matrix(self, log: Log, states: list[int], moves: dict[str, Counter]) -> sparse.csr_array:
        """From each state to where a move takes it; rows sum to at most TRUST-damped 1."""
        rows, columns, values = [], [], []
        for number in states:
            key = log.statements[number]
            found = moves.get(key.shape)
            if not found:
                continue
            known = found.total() / (found.total() + TRUST)
            landed: list[tuple[int, float]] = []
            for steps, count in found.most_common(MOVES):
                target = moved_by(key, self._shapes.of(key), dict(enumerate(steps)))
                place = None if target is None else self._numbers.get(target)
                if place is not None:
                    landed.append((place, float(count)))
            whole = sum(count for _, count in landed)
            for place, count in landed:
                rows.append(number)
                columns.append(place)
                values.append(known * count / whole)
        n = len(log.statements)
        return sparse.csr_array((values, (rows, columns)), shape=(n, n))


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
