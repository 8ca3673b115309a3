"""A mixture of all predictors, with weights learned on lines that came after what they were fitted on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from laprasdp.predict.clock import Rhythm, Sliding
from laprasdp.predict.component import TINY, Component, decay, good_turing
from laprasdp.predict.follow import Following, Recall
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.log import Floats, Log
from laprasdp.predict.model import Context, Predictor, Spread
from laprasdp.predict.score import asked_at_all
from laprasdp.predict.window import Neighbours, Parts, Shapes

HELD_OUT = 0.2
WINDOWS = (4, 16)  # fewer for a long log, so that about WORK lines are gone through
WORK = 1_000_000
SESSIONS = 24  # places in each window from where the next lines of a session are foretold
MEMORY = 500  # statements of a session that are looked back on
PRIOR = 2.0  # lines that speak for each component before any is seen
CLUMPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, math.inf)


@dataclass(frozen=True, eq=False)
class _Case:
    """A window that came after what the components were fitted on: their shares of its lines."""

    shares: Floats  # (lines, components)
    covered: Floats  # (lines,) whether any component knew of the statement
    seen: Floats  # (lines,) whether the log held it


class Mixture(Predictor):
    """
    Frequencies of several memories, neighbours, combinations, the clock, and inside a session what follows.

    Parameters
    ----------
    horizon : int
        S: the weights are those that foretell windows of so many lines best.

    Notes
    -----
    Weights maximise the likelihood of the lines of up to `WINDOWS` windows in the last fifth of the log, each
    foretold by components that were fitted on the lines before it (expectation–maximisation with a Dirichlet
    prior).  There are two sets: for a stream that begins, and for a session that goes on.  B₀ is Good and
    Turing's estimate, times what it was off by on the windows.
    """

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self._missing = self._uncovered = 1.0

    @property
    def missing_mass(self) -> float:
        return self._missing

    @property
    def weights(self) -> dict[str, float]:
        """The share of each component in a stream that begins."""
        return dict(zip(self._names, self._fresh.tolist(), strict=True))

    @property
    def session_weights(self) -> dict[str, float]:
        """The share of each component in a session that goes on."""
        return dict(zip(self._names, self._inside.tolist(), strict=True))

    def fit(self, log: Log) -> None:
        parts = _parts(log, self._horizon)
        self._names = list(parts)
        fresh, inside, turing = list[_Case](), list[_Case](), list[float]()
        spreads: list[tuple[Log, Log, list[Spread]]] = []
        for origin, stop in _windows(len(log), self._horizon):
            before, after = log.lines(0, origin), log.lines(origin, stop)
            fitted = _fitted(parts, before)
            at = None if after.times is None else float(after.times[0])
            shares = [one.shares(len(after), Context(at=at)) for one in fitted]
            fresh.append(_case(shares, before, after))
            spreads.append((before, after, shares))
            turing.append(_turing(before))
            for context, following in _sessions(log, origin, self._horizon):
                shares = [one.shares(len(following), context) for one in fitted]
                inside.append(_case(shares, before, following))
        self._fresh = _weights(fresh, len(parts))
        self._inside = _weights(inside, len(parts))
        now = _turing(log)
        self._missing = _corrected(now, turing, [1 - case.seen for case in fresh])
        self._uncovered = _corrected(now, turing, [1 - case.covered for case in fresh])
        self.clumping = _clumping([(after, self._mixed(s, self._fresh)) for _, after, s in spreads])
        self._fitted = _fitted(parts, log)

    def expected_counts(self, horizon: int, context: Context) -> Spread:
        shares = [one.shares(horizon, context) for one in self._fitted]
        weights = self._inside if context.session else self._fresh
        return self._mixed(shares, weights).times(horizon * (1 - self._uncovered))

    def _mixed(self, shares: Sequence[Spread], weights: Floats) -> Spread:
        """The components' shares, weighted; those with nothing to say do not count."""
        present = [(w, s) for w, s in zip(weights.tolist(), shares, strict=True) if s.total > 0]
        whole = max(sum(w for w, _ in present), TINY)
        mixed = Spread(np.zeros_like(shares[0].known))
        for weight, share in present:
            mixed = mixed.plus(share.times(weight / whole))
        return mixed


def _parts(log: Log, horizon: int) -> dict[str, Callable[[], Component]]:
    """The components, by name."""
    shapes = Shapes(log.domain)
    parts: dict[str, Callable[[], Component]] = {"frequency": Frequency}
    life = float(horizon)
    while life < len(log) / 2:
        parts[f"frequency, half-life {life:g}"] = _recent(life)
        life *= 4
    longest = max(len(log) / 4, 1.0)
    return parts | {
        "neighbours": lambda: Neighbours(shapes, longest),
        "parts": lambda: Parts(shapes, longest),
        "rhythm": Rhythm,
        "sliding dates": lambda: Sliding(shapes, longest),
        "following": lambda: Following(shapes),
        "session, last 5": lambda: Recall(5.0),
        "session, last 40": lambda: Recall(40.0),
        "session": Recall,
    }


def _recent(half_life: float) -> Callable[[], Component]:
    return lambda: Frequency(half_life)


def _fitted(parts: dict[str, Callable[[], Component]], log: Log) -> list[Component]:
    fitted = [make() for make in parts.values()]
    for one in fitted:
        one.fit(log)
    return fitted


def _windows(lines: int, horizon: int) -> list[tuple[int, int]]:
    """Up to `WINDOWS` windows in the last fifth of the log."""
    held = int(HELD_OUT * lines)
    if held < 1:
        return []
    size = min(horizon, held)
    count = int(np.clip(WORK / lines, *WINDOWS))
    starts = np.linspace(lines - held, lines - size, min(count, held // size)).astype(int)
    return [(start, start + size) for start in starts.tolist()]


def _sessions(log: Log, origin: int, horizon: int) -> Iterator[tuple[Context, Log]]:
    """From evenly spaced lines after `origin`: what their session has asked, and its next lines."""
    places = np.linspace(origin, len(log) - 1, SESSIONS + 1).astype(int)[1:]
    for place in np.unique(places).tolist():
        own = np.flatnonzero(log.sessions == log.sessions[place])
        here = int(np.searchsorted(own, place))
        following = own[here : here + horizon]
        if here == 0 or len(following) == 0:
            continue
        keys = tuple(log.statements[n] for n in log.ids[own[max(here - MEMORY, 0) : here]].tolist())
        at = None if log.times is None else float(log.times[place])
        yield Context(at, keys), log.chosen(following)


def _case(shares: Sequence[Spread], before: Log, after: Log) -> _Case:
    ids, inverse = np.unique(after.ids, return_inverse=True)
    table = np.zeros((len(ids), len(shares)))
    for column, share in enumerate(shares):
        table[:, column] = share.known[ids]
        if share.new:
            table[:, column] += [share.new.get(after.statements[n], 0.0) for n in ids.tolist()]
    seen = np.isin(ids, before.ids).astype(float)
    return _Case(table[inverse], (table.sum(axis=1) > 0).astype(float)[inverse], seen[inverse])


def _weights(cases: Sequence[_Case], components: int) -> Floats:
    """Expectation–maximisation of the mixture's weights on the covered lines."""
    weights = np.full(components, 1 / components)
    if not cases:
        return weights
    lines = np.concatenate([case.shares for case in cases])
    lines = lines[lines.sum(axis=1) > 0]
    for _ in range(200):
        parts = lines * weights
        parts /= np.maximum(parts.sum(axis=1, keepdims=True), TINY)
        counts = parts.sum(axis=0) + PRIOR / components
        updated = counts / counts.sum()
        if np.abs(updated - weights).max() < 1e-6:
            break
        weights = updated
    return weights


def _turing(log: Log) -> float:
    return good_turing(log, decay(len(log), max(len(log) / 4, 1.0)))


def _corrected(now: float, before: Sequence[float], found: Sequence[Floats]) -> float:
    """Good and Turing's share of today, times what it was off by on the windows."""
    if not found:
        return now
    lines = np.concatenate(found)
    edge = 0.5 / (len(lines) + 1)
    return float(np.clip(now * (lines.mean() + edge) / (np.mean(before) + edge), 0.0, 1 - 1e-9))


def _clumping(windows: Sequence[tuple[Log, Spread]]) -> float:
    """The shape under which whether statements were asked at all was likeliest."""
    if not windows:
        return math.inf
    counts, asked = list[Floats](), list[Floats]()
    for after, spread in windows:
        ranked = list(spread.ranked(after, 500))
        present = {after.statements[n] for n in np.unique(after.ids).tolist()}
        counts.append(np.array([share * len(after) for _, share in ranked]))
        asked.append(np.array([key in present for key, _ in ranked], dtype=float))
    marks = np.concatenate(asked)
    losses = []
    for shape in CLUMPS:
        chance = np.clip(asked_at_all(np.concatenate(counts), shape), 1e-9, 1 - 1e-9)
        losses.append(float(-(marks * np.log(chance) + (1 - marks) * np.log1p(-chance)).sum()))
    return CLUMPS[int(np.argmin(losses))]
