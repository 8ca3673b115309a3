"""Whether predictions ever hurt: streams of one kind, with and without a prediction set; exact variances."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.accuracy import PROCESSES, one_thread, statement_errors
from benchmarks.workloads import conjunctions, distinct, flights
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.kinds import ALIKE
from laprasdp.policy.policy import Policy
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.sql.reader import Reader
from laprasdp.stream.plan import Plan, make_plan

HORIZON, ASKED = 100, 20
BUDGET = Budget(1.0, 1e-6)
FIVE = ("ARR_DELAY >= 15", "ARR_DELAY >= 60", "DISTANCE < 600", "DISTANCE >= 1000 AND ARR_DELAY >= 30")
FIVE += ("UNIQUE_CARRIER = 'AA'",)
SETS = (5, 100, 1_000)
CARRIER, STATE, DELAY, DISTANCE = "UNIQUE_CARRIER", "ORIGIN_STATE_ABR", "ARR_DELAY", "DISTANCE"

Statement = tuple[Query, ...] | Groups


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    Mean error of statements that nobody predicted, at ε = 1 and δ = 1e-6 on flights, for a horizon of 100.

    Parameters
    ----------
    full : bool
        Also 1,000 predictions.
    quick : bool
        Five predictions only.

    Yields
    ------
    dict
        kind, predictions, with, without (records; with the prediction set, and for a session that has none),
        standard_error (of `with`, over the statements), independent, planned (least and largest error that
        the plan foretells for queries of this kind; of all kinds for others), predicted, predicted_best (mean
        error of the predicted queries, and with the whole budget on them).
    """
    sets = SETS[:1] if quick else SETS if full else SETS[:2]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(PROCESSES, os.cpu_count() or 1), context, initializer=one_thread) as pool:
        running = [(count, kind, pool.submit(_row, count, kind)) for count in (0, *sets) for kind in KINDS]
        try:
            alone = {kind: future.result() for count, kind, future in running if count == 0}
            for _, kind, future in running:
                yield {**future.result(), "without": alone[kind]["with"]}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@lru_cache(maxsize=4)
def predictions(count: int) -> Statement:
    """Five ordinary predictions, or conjunctions of one to three attributes."""
    domain = flights()
    if count <= len(FIVE):
        reader = Reader(domain, "flights")
        texts = [f"SELECT COUNT(*) FROM flights WHERE {where}" for where in FIVE[:count]]
        return tuple(reader.parse(text).queries[0] for text in texts)
    return distinct(conjunctions(domain, np.random.default_rng([5, 0])), count)


@lru_cache(maxsize=4)
def _before(count: int, overlap: float | None = None) -> Policy:
    policy = policy_named("primm", Setting(flights(), BUDGET, HORIZON, predictions(count), overlap=overlap))
    policy.due()
    return policy


def _row(count: int, kind: str) -> dict[str, Any]:
    policy = _before(count)
    asked = _stream(kind, predictions(count))
    fresh = copy.deepcopy(policy, {id(policy.setting): policy.setting})
    errors = statement_errors(fresh, asked)
    own = set(predictions(count))
    others = [
        error
        for statement, each in zip(asked, errors, strict=True)
        for query, error in zip(statement, each, strict=True)
        if error is not None and query not in own
    ]
    mean = math.fsum(others) / len(others)
    spread = float(np.std(others, ddof=1)) / len(others) ** 0.5 if len(others) > 1 else 0.0
    return {
        "kind": kind,
        "predictions": count,
        "with": round(mean, 3),
        "standard_error": round(spread, 3),
        "without": None,
        "independent": round(mean_absolute(math.sqrt(HORIZON) / BUDGET.mu), 3),
        "planned": _planned(count, kind),
        "predicted": _predicted(policy),
        "predicted_best": _predicted(_before(count, 1.0)) if count else None,
    }


@lru_cache(maxsize=4)
def _plan(count: int) -> Plan:
    return make_plan(_before(count))


def _planned(count: int, kind: str) -> list[float | None]:
    """What the plan foretells: of the kind that it is, or the range over all kinds where it is a mixture."""
    found = {each.kind: each.mae for each in _plan(count).kinds}
    names = [name for name in PLANNED.get(kind, ()) if name in found]
    known = [mae for name in (names or found) if (mae := found[name]) is not None]
    return [round(min(known), 3), round(max(known), 3)]


def _predicted(policy: Policy) -> float | None:
    variances = [policy.expected_variance(query) for query in policy.setting.predictions]
    known = [mean_absolute(math.sqrt(v)) for v in variances if v is not None]
    return round(math.fsum(known) / len(known), 3) if known else None


def _stream(kind: str, predicted: Statement) -> list[Statement]:
    drawn = KINDS[kind](flights(), predicted, np.random.default_rng([7, sorted(KINDS).index(kind)]))
    found: dict[Statement, None] = {}
    if kind in REPEATED:
        return list(itertools.islice(drawn, ASKED))
    for statement in itertools.islice(drawn, 50 * ASKED):
        if kind in MIXED or not set(statement) & set(predicted):
            found[statement] = None
        if len(found) == ASKED:
            break
    return list(found)


def _of(domain: Domain, **columns: Any) -> Query:
    weights = np.zeros((2,) * len(columns), dtype=np.int64)
    weights[(1,) * len(columns)] = 1
    return Query(domain, {name: np.asarray(c, dtype=np.int64) for name, c in columns.items()}, weights)


def _point(domain: Domain, name: str, rng: np.random.Generator) -> Any:
    return np.arange(domain[name].size) == rng.integers(domain[name].size)


def _range(domain: Domain, name: str, rng: np.random.Generator) -> Any:
    low, high = np.sort(rng.choice(domain[name].size + 1, 2, replace=False)).tolist()
    place = np.arange(domain[name].size)
    return (place >= low) & (place < high)


def _points(*wanted: str) -> Any:
    def draw(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
        while True:
            yield (_of(domain, **{name: _point(domain, name, rng) for name in wanted}),)

    return draw


def _some(size: int) -> Any:
    """Points of so many attributes, whichever."""

    def draw(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
        while True:
            names = [domain.names[i] for i in rng.choice(len(domain), size, replace=False)]
            yield (_of(domain, **{name: _point(domain, name, rng) for name in names}),)

    return draw


def _ranges(*wanted: str) -> Any:
    def draw(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
        while True:
            yield (_of(domain, **{name: _range(domain, name, rng) for name in wanted}),)

    return draw


def _half(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
    size = domain[STATE].size
    while True:
        yield (_of(domain, **{STATE: rng.permutation(size) < size // 2}),)


def _alike(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
    """The predicted shapes with other constants; ordinary ones where nothing is predicted."""
    shapes = [((DELAY,), False), ((DISTANCE,), False), ((DISTANCE, DELAY), False), ((CARRIER,), True)]
    while True:
        names, points = shapes[int(rng.integers(len(shapes)))]
        draw = _point if points else _range
        yield (_of(domain, **{name: draw(domain, name, rng) for name in names}),)


def _groups(*wanted: str) -> Any:
    """GROUP BY these, WHERE on another attribute, a different one each time."""

    def draw(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
        where = DELAY if DELAY not in wanted else DISTANCE
        by = tuple(sorted(domain.axis(name) for name in wanted))
        count = math.prod(domain.shape[axis] for axis in by)
        while True:
            whole = _of(domain, **{where: _range(domain, where, rng)})
            yield Groups(whole, by, np.arange(count))

    return draw


def _repeats(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
    pool = list(itertools.islice(KINDS["carrier and state"](domain, predicted, rng), 5))
    while True:
        yield pool[int(rng.integers(len(pool)))]


def _mixture(domain: Domain, predicted: Statement, rng: np.random.Generator) -> Iterator[Statement]:
    kinds = [k for k in KINDS if k not in (*MIXED, *REPEATED) and "group by" not in k]
    streams = [KINDS[kind](domain, predicted, rng) for kind in kinds]
    for place in itertools.count():
        if predicted and place % 2:
            yield (predicted[int(rng.integers(len(predicted)))],)
        else:
            yield next(streams[int(rng.integers(len(streams)))])


KINDS: dict[str, Any] = {
    "alike": _alike,
    "one carrier": _points(CARRIER),
    "one state": _points(STATE),
    "carrier and state": _points(CARRIER, STATE),
    "three attributes": _points(CARRIER, STATE, DELAY),
    "any three": _some(3),
    "range of distance": _ranges(DISTANCE),
    "set of 27 states": _half,
    "delay and distance": _ranges(DELAY, DISTANCE),
    "one cell": _some(4),
    "repeats": _repeats,
    "mixture": _mixture,
    "group by 54": _groups(STATE),
    "group by 756": _groups(CARRIER, STATE),
}
PLANNED = {
    "alike": (ALIKE,),
    "one carrier": ("one value of one attribute",),
    "one state": ("one value of one attribute",),
    "carrier and state": ("one value of two attributes",),
    "three attributes": ("one value of three attributes",),
    "any three": ("one value of three attributes",),
    "range of distance": ("a range of one attribute",),
    "set of 27 states": ("half of the values of one attribute",),
    "delay and distance": ("a range of two attributes",),
    "repeats": ("one value of two attributes",),
    "group by 54": ("a group of one attribute",),
    "group by 756": ("a group of two attributes",),
}
MIXED, REPEATED = ("mixture",), ("repeats",)
