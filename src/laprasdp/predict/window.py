"""Templates × parameters: statements next to those that were asked, or made of the same parts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from laprasdp.predict.component import Component, decay, normal
from laprasdp.predict.ladder import Rungs, ladders, moved_by
from laprasdp.predict.log import Log
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.template import Key
from laprasdp.queries.domain import Domain

LIMIT = 10_000
COMBINATIONS = 4_000
RARE = 3.0


class RangeShapes:
    """The ladders of each template, found once."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._found: dict[str, Rungs] = {}
        self._statements: tuple[Key, ...] = ()
        self._dated = np.zeros(0, dtype=bool)

    def of(self, key: Key) -> Rungs:
        """The ladder of each literal."""
        if key.shape not in self._found:
            self._found[key.shape] = ladders(key, self._domain)
        return self._found[key.shape]

    def dated(self, statements: tuple[Key, ...]) -> npt.NDArray[np.bool_]:
        """Which statements have a date on a ladder."""
        if self._statements is not statements:
            shapes = {key.shape: key for key in statements}
            days = {
                shape: any(ladder is not None and ladder.days for ladder in self.of(key))
                for shape, key in shapes.items()
            }
            self._statements = statements
            self._dated = np.array([days[key.shape] for key in statements], dtype=bool)
        return self._dated

    def groups(self, key: Key) -> list[tuple[int, ...]]:
        """Places of the literals that belong together: the two ends of a range are one parameter."""
        by: dict[int, list[int]] = defaultdict(list)
        for place, ladder in enumerate(self.of(key)):
            by[-1 - place if ladder is None else ladder.axis].append(place)
        return [tuple(places) for places in by.values()]


class Neighbours(Component):
    """
    Ranges one step to the side of those that were asked, one step wider or narrower.

    Parameters
    ----------
    shapes : RangeShapes
    half_life : float
        As for `Frequency`.

    Notes
    -----
    A back-off: what was asked n times itself gets RARE/(RARE + n) of what its neighbours give it.  Only the
    `LIMIT` most frequent statements have neighbours here.
    """

    def __init__(self, shapes: RangeShapes, half_life: float = math.inf) -> None:
        super().__init__()
        self._shapes, self._half_life = shapes, half_life

    def _learn(self, log: Log) -> None:
        known, new = np.zeros(len(log.statements)), defaultdict[Key, float](float)
        numbers, top = frequent(log, self._half_life)
        for number, weight in top:
            around = list(neighbours(log.statements[number], self._shapes.of(log.statements[number])))
            for key in around:
                place = numbers.get(key)
                if place is None:
                    new[key] += weight / len(around)
                else:
                    known[place] += weight / len(around)
        known *= RARE / (RARE + np.bincount(log.ids, minlength=len(known)))
        self._shares = normal(Spread(known, new))

    def shares(self, horizon: int, context: Context) -> Spread:
        return self._shares


class Parts(Component):
    """
    Each parameter of a template by itself: conditions that were asked apart come together.

    A template with several parameters gives each combination of its frequent values the product of their
    frequencies.
    """

    def __init__(self, shapes: RangeShapes, half_life: float = math.inf) -> None:
        super().__init__()
        self._shapes, self._half_life = shapes, half_life

    def _learn(self, log: Log) -> None:
        numbers, top = frequent(log, self._half_life)
        totals: dict[str, float] = defaultdict(float)
        values: dict[str, list[dict[tuple[str, ...], float]]] = {}
        groups: dict[str, list[tuple[int, ...]]] = {}
        for number, weight in top:
            key = log.statements[number]
            if key.shape not in groups:
                groups[key.shape] = self._shapes.groups(key)
                values[key.shape] = [defaultdict(float) for _ in groups[key.shape]]
            totals[key.shape] += weight
            for places, held in zip(groups[key.shape], values[key.shape], strict=True):
                held[tuple(key.literals[place] for place in places)] += weight
        known, new = np.zeros(len(log.statements)), dict[Key, float]()
        for shape, parts in values.items():
            if len(parts) < 2:
                continue
            for key, share in _combined(shape, groups[shape], parts, totals[shape]):
                place = numbers.get(key)
                if place is None:
                    new[key] = share * totals[shape]
                else:
                    known[place] = share * totals[shape]
        self._shares = normal(Spread(known, new))

    def shares(self, horizon: int, context: Context) -> Spread:
        return self._shares


def frequent(log: Log, half_life: float = math.inf) -> tuple[dict[Key, int], list[tuple[int, float]]]:
    """The numbers of the `LIMIT` most frequent statements by key, and them with their decayed counts."""
    counts = np.bincount(log.ids, decay(len(log), half_life), minlength=len(log.statements))
    top = np.argsort(-counts, kind="stable")[:LIMIT]
    top = top[counts[top] > 0]
    numbers = {log.statements[number]: number for number in top.tolist()}
    return numbers, list(zip(top.tolist(), counts[top].tolist(), strict=True))


def neighbours(key: Key, rungs: Rungs) -> Iterator[Key]:
    """The statements one step away: one end moved, or both ends of a range together."""
    places = [
        None if ladder is None else ladder.place(x) for ladder, x in zip(rungs, key.literals, strict=True)
    ]
    moves: list[tuple[int, ...]] = [(slot,) for slot, place in enumerate(places) if place is not None]
    for first, second in itertools.pairwise(list(moves)):
        a, b = rungs[first[0]], rungs[second[0]]
        if a is not None and b is not None and a.axis == b.axis and a.upper != b.upper:
            moves.append((first[0], second[0]))
    for slots in moves:
        for step in (-1, 1):
            moved = moved_by(key, rungs, dict.fromkeys(slots, step))
            if moved is not None:
                yield moved


def _combined(
    shape: str, groups: list[tuple[int, ...]], parts: list[dict[tuple[str, ...], float]], total: float
) -> Iterator[tuple[Key, float]]:
    """The most frequent values of each parameter, multiplied out to at most `COMBINATIONS`."""
    ranked = [sorted(part.items(), key=lambda item: -item[1]) for part in parts]
    widths = [1] * len(ranked)
    while True:
        gains = [ranked[i][widths[i]][1] if widths[i] < len(ranked[i]) else -1.0 for i in range(len(ranked))]
        best = int(np.argmax(gains))
        if gains[best] < 0 or math.prod(widths) // widths[best] * (widths[best] + 1) > COMBINATIONS:
            break
        widths[best] += 1
    for chosen in itertools.product(*(part[:width] for part, width in zip(ranked, widths, strict=True))):
        literals = [""] * sum(map(len, groups))
        for places, (values, _) in zip(groups, chosen, strict=True):
            for place, value in zip(places, values, strict=True):
                literals[place] = value
        yield Key(shape, tuple(literals)), math.prod(weight / total for _, weight in chosen)
