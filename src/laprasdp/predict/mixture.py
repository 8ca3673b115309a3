"""A mixture of all predictors, with weights learned on lines that came after what they were fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.predict.blend import Blend, HeldOut, Templates, held_out
from laprasdp.predict.calibration import Calibration
from laprasdp.predict.clock import Rhythm, Sliding
from laprasdp.predict.component import Component, decay, good_turing
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.log import Log
from laprasdp.predict.markov import MarkovChain, Recall
from laprasdp.predict.model import Context, Predictor, Spread
from laprasdp.predict.score import SIZES
from laprasdp.predict.window import Neighbours, Parts, RangeShapes

HELD_OUT = 0.2
WINDOWS = (4, 8)  # fewer for a long log, so that about WORK lines are gone through
WORK = 1_000_000
SESSIONS = 12  # places in each window from where the next lines of a session are foretold
MEMORY = 500  # statements of a session that are looked back on
SURE = 10.0
SEVERAL = 4


class Mixture(Predictor):
    """
    Frequencies of several memories, neighbours, combinations, the clock, and inside a session what follows.

    Parameters
    ----------
    horizon : int
        S: the weights are those that foretell windows of so many lines best.
    step : callable, optional
        Called after each window that was learned from.

    Notes
    -----
    Weights are learned on windows in the last fifth of the log, each foretold by components that were fitted
    on the lines before it; see `Blend`.  There are two sets: for a stream that begins, and for a session that
    goes on.  B₀ is Good and Turing's estimate, times what it was off by on the windows.

    A stream that begins is left to plain frequency where that would have held more of the windows: likelihood
    rewards knowing rare statements, which can cost a prediction set its best places.
    """

    def __init__(self, horizon: int, step: Callable[[], None] = lambda: None) -> None:
        self._horizon, self._step = horizon, step
        self._missing = self._uncovered = 1.0

    @property
    def missing_mass(self) -> float:
        return self._missing

    @property
    def clumping(self) -> float:
        """How unevenly statements come; see `Calibration`."""
        return self._chance.clumping

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """The share of each component in the choice of a template: for a new stream, and inside a session."""
        return {
            when: dict(zip(self._names, blend.outer.tolist(), strict=True))
            for when, blend in (("stream", self._fresh), ("session", self._inside))
        }

    def fit(self, log: Log) -> None:
        parts, templates = _parts(log, self._horizon), Templates(log.statements)
        self._names = list(parts)
        fresh, inside, turing = list[HeldOut](), list[HeldOut](), list[float]()
        spreads: list[tuple[Log, list[Spread]]] = []
        for origin, stop in _windows(log, self._horizon):
            before, after = log.lines(0, origin), log.lines(origin, stop)
            fitted = _fitted(parts, before)
            shares = _foretold(fitted, after)
            fresh.append(held_out(shares, before, after, templates))
            spreads.append((after, shares))
            turing.append(_turing(before))
            for context, following in _sessions(log, origin, self._horizon):
                shares = [one.shares(len(following), context) for one in fitted]
                inside.append(held_out(shares, before, following, templates))
            self._step()
        self._fresh = Blend(fresh, len(parts), templates)
        if _holds_less(fresh, spreads, templates):
            self._fresh = Blend([], len(parts), templates, only=0)
        self._inside = Blend(inside or fresh, len(parts), templates)
        now = _turing(log)
        self._missing = _corrected(now, turing, [~case.seen for case in fresh], fresh)
        self._uncovered = _corrected(now, turing, [~case.covered for case in fresh], fresh)
        self._chance = Calibration([(after, self._fresh.mixed(s)) for after, s in spreads])
        self._follow_drift(parts, log, templates)
        self._fitted = _fitted(parts, log)

    def expected_counts(self, horizon: int, context: Context) -> Spread:
        shares = [one.shares(horizon, context) for one in self._fitted]
        if context.session:
            mixed = self._inside.mixed(shares)
        else:
            mixed = self._chance.corrected(self._fresh.mixed(shares))
        return mixed.times(horizon * (1 - self._uncovered))

    def chances(self, counts: Floats) -> Floats:
        return self._chance.of(counts)

    def _follow_drift(
        self, parts: dict[str, Callable[[], Component]], log: Log, templates: Templates
    ) -> None:
        """
        Weights and B₀ from the latest half window alone, if they are surely better there.

        Learned on its first half they have to beat those of all windows by `SURE` nats on the second.
        """
        half = min(self._horizon, len(log)) // 4
        if half < 1 or _one_after_another(log):
            return
        origin = len(log) - 2 * half
        before, first, second = log.lines(0, origin), log.lines(origin, origin + half), log.lines(-half, None)
        shares = _foretold(_fitted(parts, before), log.lines(origin, None))
        early, late = (held_out(shares, before, part, templates) for part in (first, second))
        if Blend([early], len(parts), templates).nats(late) - self._fresh.nats(late) > SURE:
            self._fresh = Blend([early, late], len(parts), templates)
            self._uncovered = _share([~early.covered, ~late.covered], [early, late])
            self._missing = _share([~early.seen, ~late.seen], [early, late])


def _parts(log: Log, horizon: int) -> dict[str, Callable[[], Component]]:
    """The components, by name."""
    shapes = RangeShapes(log.domain)
    parts: dict[str, Callable[[], Component]] = {"frequency": Frequency}
    life = max(horizon / 4, 1.0)
    while life < len(log) / 2:
        parts[f"frequency, half-life {life:g}"] = _recent(life)
        life *= 4
    longest = max(len(log) / 4, 1.0)
    return parts | {
        "neighbours": lambda: Neighbours(shapes, longest),
        "parts": lambda: Parts(shapes, longest),
        "rhythm": Rhythm,
        "sliding dates": lambda: Sliding(shapes, longest),
        "following": lambda: MarkovChain(shapes),
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


def _foretold(fitted: Sequence[Component], after: Log) -> list[Spread]:
    """What each component says of the lines to come, knowing only how many they are and when they begin."""
    at = None if after.times is None else float(after.times[0])
    return [one.shares(len(after), Context(at=at)) for one in fitted]


def _windows(log: Log, horizon: int) -> list[tuple[int, int]]:
    """
    Where the windows begin and end that the weights are learned on.

    They lie in the last fifth of the log.  If its sessions come one after another, so that a stream is a new
    session, they are the beginnings of sessions in its last half instead.
    """
    lines = len(log)
    number = int(np.clip(WORK / max(lines, 1), *WINDOWS))
    if begins := _one_after_another(log):
        late = begins[len(begins) // 2 :]
        ends = [*late[1:], lines]
        chosen = np.unique(np.linspace(0, len(late) - 1, number).astype(int)).tolist()
        return [(late[n], min(late[n] + horizon, ends[n])) for n in chosen]
    held = int(HELD_OUT * lines)
    if held < 1:
        return []
    size = min(horizon, held)
    starts = np.linspace(lines - held, lines - size, min(number, held // size)).astype(int)
    return [(start, start + size) for start in starts.tolist()]


def _one_after_another(log: Log) -> list[int]:
    """Where each session begins, if there are several and none comes back after another; else nothing."""
    begins = [0, *(np.flatnonzero(np.diff(log.sessions)) + 1).tolist()]
    return begins if len(begins) == len(np.unique(log.sessions)) >= SEVERAL else []


def _sessions(log: Log, origin: int, horizon: int) -> Iterator[tuple[Context, Log]]:
    """From evenly spaced lines after `origin`: what their session has asked, and its next lines."""
    if log.sessions.min() == log.sessions.max():
        return
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


def _turing(log: Log) -> float:
    return good_turing(log, decay(len(log), max(len(log) / 4, 1.0)))


def _holds_less(
    cases: Sequence[HeldOut], spreads: Sequence[tuple[Log, list[Spread]]], templates: Templates
) -> bool:
    """
    Whether prediction sets of the mixture hold less of the windows than those of plain frequency.

    Each window is judged by weights learned on the others.
    """
    gains = []
    for place, (after, shares) in enumerate(spreads):
        others = [case for n, case in enumerate(cases) if n != place]
        blend = Blend(others, len(shares), templates)
        gains.append(_held(blend.mixed(shares), after) - _held(shares[0], after))
    return len(gains) > 1 and bool(np.mean(gains) < 0)


def _held(spread: Spread, after: Log) -> float:
    """Share of the lines that is in prediction sets, mean over `SIZES`."""
    lines = {after.statements[n]: k for n, k in enumerate(np.bincount(after.ids).tolist()) if k}
    ranked = [lines.get(key, 0) for key, _ in spread.ranked(after, SIZES[-1])]
    return sum(sum(ranked[:size]) for size in SIZES) / (len(SIZES) * len(after))


def _share(which: Sequence[npt.NDArray[np.bool_]], cases: Sequence[HeldOut]) -> float:
    """The share of the lines of some cases that some of their statements make up."""
    lines = sum(float(case.lines[part].sum()) for part, case in zip(which, cases, strict=True))
    return lines / sum(float(case.lines.sum()) for case in cases)


def _corrected(
    now: float, before: Sequence[float], found: Sequence[npt.NDArray[np.bool_]], cases: Sequence[HeldOut]
) -> float:
    """Good and Turing's share of today, times what it was off by on the windows."""
    if not cases:
        return now
    edge = 0.5 / (1 + sum(float(case.lines.sum()) for case in cases))
    return float(np.clip(now * (_share(found, cases) + edge) / (np.mean(before) + edge), 0.0, 1 - 1e-9))
