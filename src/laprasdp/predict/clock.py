"""Time of day: what comes at some hours of the day or the week, and windows of dates that move on."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.predict.component import Component, normal
from laprasdp.predict.log import Log
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.template import Key
from laprasdp.predict.window import LIMIT, RangeShapes

HOUR, DAY = 3600.0, 86400.0
WEEK = 168  # hours
BACK_OFF = 4.0  # lines for which an hour of the week leans on the same hour of all days
MAX_HOURS = 24 * 366


class Rhythm(Component):
    """
    Each hour of the week has statements of its own, as far as it is known; else each hour of the day has.

    Says nothing for a log without times, or of less than two days.
    """

    def _learn(self, log: Log) -> None:
        self._known: Floats | None = None
        if log.times is None or not len(log) or log.times[-1] - log.times[0] < 2 * DAY:
            self._size = len(log.statements)
            return
        hours = (log.times // HOUR).astype(np.int64)
        self._profile, self._end = Profile(log.times), float(log.times[-1])
        n = len(log.statements)
        self._size = n
        pairs, counts = np.unique(hours % WEEK * n + log.ids, return_counts=True)
        self._of_week, self._ids, self._counts = pairs // n, pairs % n, counts.astype(float)
        self._known = np.bincount(log.ids, minlength=n).astype(float) / len(log)

    def shares(self, horizon: int, context: Context) -> Spread:
        if self._known is None:
            return Spread(np.zeros(self._size))
        slices = self._profile.ahead(self._end if context.at is None else context.at, horizon)
        of_week = np.bincount(self._of_week, self._counts, minlength=WEEK)
        of_day = of_week.reshape(7, 24).sum(axis=0)
        share = np.zeros(WEEK)
        for hour, part in slices.items():
            share[hour % WEEK] += part
        # Back-off: week's hour → day's hour → all, each with BACK_OFF lines of trust in the next.
        own = share / (of_week + BACK_OFF)
        day_share = (share * BACK_OFF / (of_week + BACK_OFF)).reshape(7, 24).sum(axis=0)
        day = np.tile(day_share / (of_day + BACK_OFF), 7)
        rest = float((day_share * BACK_OFF / (of_day + BACK_OFF)).sum())
        counted = self._counts * (own + day)[self._of_week]
        return normal(Spread(np.bincount(self._ids, counted, self._size) + rest * self._known))


class Profile:
    """How many lines come in each hour of the week, of late."""

    def __init__(self, times: Floats) -> None:
        hours = (times // HOUR).astype(np.int64)
        last = hours[-1]
        first = max(int(hours[0]), int(last) - 4 * WEEK)
        seen = np.bincount(hours[hours >= first] - first, minlength=int(last) - first + 1).astype(float)
        of_week = (np.arange(len(seen)) + first) % WEEK
        per_week = np.bincount(of_week, seen, minlength=WEEK)
        number = np.bincount(of_week, minlength=WEEK)
        of_day = per_week.reshape(7, 24).sum(axis=0) / np.maximum(number.reshape(7, 24).sum(axis=0), 1)
        self._rate = (per_week + np.tile(of_day, 7)) / (number + 1)

    def ahead(self, at: float, horizon: int) -> dict[int, float]:
        """Hours since 1970 to shares of the next `horizon` lines."""
        slices: dict[int, float] = {}
        hour, left, part = int(at // HOUR), float(horizon), 1 - at % HOUR / HOUR
        for _ in range(MAX_HOURS):
            lines = min(self._rate[hour % WEEK] * part, left)
            if lines > 0:
                slices[hour] = lines / horizon
            left -= lines
            hour, part = hour + 1, 1.0
            if left <= 1e-9 * horizon:
                break
        return slices


class _Relative(NamedTuple):
    """A statement with its dates as steps from the one that holds the day it was asked on."""

    key: Key
    steps: tuple[int | None, ...]


class Sliding(Component):
    """
    Windows of dates that move with the calendar: yesterday, the last seven days, the month so far.

    A window counts if it was asked with the same distance from its own day on two days at least.  Says
    nothing for a log without times, or for statements without dates.
    """

    def __init__(self, shapes: RangeShapes, half_life: float) -> None:
        super().__init__()
        self._shapes, self._half_life = shapes, half_life

    def _learn(self, log: Log) -> None:
        self._numbers: dict[Key, int] = {}
        self._found: list[tuple[_Relative, float]] = []
        self._size = len(log.statements)
        if log.times is None or not len(log):
            return
        lines = np.flatnonzero(self._shapes.dated(log.statements)[log.ids])
        if not len(lines):
            return
        dated = {n: log.statements[n] for n in np.unique(log.ids[lines]).tolist()}
        weights = np.exp2((lines - len(log)) / self._half_life)
        days = (log.times[lines] // DAY).astype(np.int64)
        self._profile, self._end = Profile(log.times), float(log.times[-1])
        pairs, inverse = np.unique(days * self._size + log.ids[lines], return_inverse=True)
        sums = np.bincount(inverse, weights)
        top = np.argsort(-sums, kind="stable")[:LIMIT]
        found: dict[_Relative, tuple[int, float]] = {}
        for pair, weight in zip(pairs[top].tolist(), sums[top].tolist(), strict=True):
            relative = self._relative(dated[pair % self._size], pair // self._size)
            if relative is not None:
                number, sofar = found.get(relative, (0, 0.0))
                found[relative] = number + 1, sofar + weight
        self._found = [(relative, weight) for relative, (number, weight) in found.items() if number > 1]
        self._numbers = {key: n for n, key in dated.items()}

    def shares(self, horizon: int, context: Context) -> Spread:
        known, new = np.zeros(self._size), defaultdict[Key, float](float)
        if self._found:
            days: dict[int, float] = defaultdict(float)
            start = self._end if context.at is None else context.at
            for hour, share in self._profile.ahead(start, horizon).items():
                days[hour // 24] += share
            for relative, weight in self._found:
                for day, share in days.items():
                    key = self._absolute(relative, day)
                    place = None if key is None else self._numbers.get(key)
                    if place is not None:
                        known[place] += weight * share
                    elif key is not None:
                        new[key] += weight * share
        return normal(Spread(known, new))

    def _relative(self, key: Key, day: int) -> _Relative | None:
        literals, steps = list(key.literals), list[int | None]()
        for slot, ladder in enumerate(self._shapes.of(key)):
            place = ladder.place(key.literals[slot]) if ladder is not None and ladder.days else None
            today = None if ladder is None or place is None else bisect_right(ladder.rungs, _date(day)) - 1
            steps.append(None if place is None or today is None else place - today)
            if steps[-1] is not None:
                literals[slot] = ""
        if not any(step is not None for step in steps):
            return None
        return _Relative(Key(key.shape, tuple(literals)), tuple(steps))

    def _absolute(self, relative: _Relative, day: int) -> Key | None:
        literals = list(relative.key.literals)
        for slot, (step, ladder) in enumerate(
            zip(relative.steps, self._shapes.of(relative.key), strict=True)
        ):
            if step is None or ladder is None:
                continue
            rung = ladder.rung(bisect_right(ladder.rungs, _date(day)) - 1 + step)
            if rung is None:
                return None
            literals[slot] = rung
        return Key(relative.key.shape, tuple(literals))


def _date(day: int) -> str:
    return f"'{dt.date(1970, 1, 1) + dt.timedelta(days=day)}'"
