"""Growth with the table and the prediction set: errors from exact variances; a session's time and memory."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import laprasdp as lp
from benchmarks import entries, long, processes, tables
from benchmarks import groups as grouped
from benchmarks.accuracy import one_thread
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.queries.query import Query
from laprasdp.stream.plan import make_plan

LEVELS, HORIZON, ROWS = 10, 100, 100_000
BUDGET = lp.Budget(1.0, 1e-6)
ATTRIBUTES, SIZES = (2, 4, 6, 8, 10, 15), (10, 100, 300, 1_000)
PREDICTED = (10, 100, 1_000, 10_000)  # on four attributes
AXES = ("attributes", "predictions", "levels", "groups", "entries", "stream", "processes", "tables")
LINES = (100, 500, 720, 1_024, 2_000, 10_000, 40_981, 65_536, 1_000_000, 2_000_000)
QUICK_LINES = (500, 10_000, 65_536)
POLICIES, LONG = ("primm", "smooth"), 65_536
OVERLAPS = (1.0, None, 0.0)  # all predicted, unknown, nothing predicted


def rows(full: bool, quick: bool, axis: str | None = None) -> Iterator[dict[str, Any]]:
    """
    Conjunctions of ranges of one to three attributes of ten levels, and ranges of one attribute of many.

    S = 100, ε = 1, δ = 1e-6.

    Parameters
    ----------
    full : bool
        Also 15 attributes with 1,000 predictions, a stream of 10,000.
    quick : bool
        4, 10 and 15 attributes; 100 and 10,000 predictions; lines of 500, 10,000 and 65,536 levels; 1,000
        and 10,000 entries; a stream of 100; one and two processes.
    axis : str, optional
        This axis alone.

    Yields
    ------
    dict
        axis ("attributes", 100 predictions; "predictions", on four attributes, and on ten as another axis;
        "levels" of one attribute, 100 predictions), value, policy (smooth too on long lines, where all is
        predicted), overlap (1, with the whole stream predicted; None, not known, half of it predicted; 0, no
        predictions), predicted_mae, unexpected_mae, planned_unexpected_mae (ranges, of two attributes or of
        the one), independent_mae, design_seconds, open_seconds (with the releases before the stream),
        plan_seconds, ask_p50_ms, ask_p99_ms, peak_mib.  Times are of the processor.  On the axis "tables"
        predicted_error and unexpected_error are what the answers over a real table were off by; those of
        Gowalla are taken from the folder that LAPRAS_TABLES names, if it has them.  For the axes "groups",
        "entries", "stream" and "processes" see `benchmarks.groups.row`, `benchmarks.entries.row`,
        `benchmarks.long.row` and `benchmarks.processes.rows`.
    """
    if axis not in (None, *AXES):
        raise ValueError(f"there is no axis {axis}; there are {', '.join(AXES)}")
    for one in AXES if axis is None else (axis,):
        yield from _others(one, full, quick) if one in AXES[3:] else _sizes(one, full, quick)


def _sizes(chosen: str, full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """Growth of the domain and of the prediction set."""
    attributes = (4, 10, 15) if quick else ATTRIBUTES
    cells = [("attributes", value, (LEVELS,) * value, 100) for value in attributes]
    cells += [
        ("predictions", value, (LEVELS,) * 4, value) for value in (PREDICTED[1::2] if quick else PREDICTED)
    ]
    cells += [("predictions on ten", value, (LEVELS,) * 10, value) for value in (() if quick else SIZES)]
    cells += [("predictions on fifteen", 1_000, (LEVELS,) * 15, 1_000)] if full else []
    cells += [("levels", value, (value,), 100) for value in (QUICK_LINES if quick else LINES)]
    context = multiprocessing.get_context("spawn")
    for axis, value, shape, count in (cell for cell in cells if cell[0].split()[0] == chosen):
        for policy, overlap in itertools.product(POLICIES, OVERLAPS):
            if overlap == 0.0 and chosen == "predictions":
                continue
            if policy != "primm" and not (axis == "levels" and value >= LONG and overlap == 1.0):
                continue
            with ProcessPoolExecutor(1, context, initializer=one_thread) as pool:  # its memory is its own
                yield pool.submit(_row, axis, value, shape, count, policy, overlap).result()


def _others(chosen: str, full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """Growth of statements, of the ledger, of the stream, and of those who ask."""
    if chosen == "processes":
        yield from processes.rows(processes.COUNTS[:2] if quick else processes.COUNTS, 200 if quick else 800)
        return
    calls: list[tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]] = []
    if chosen == "tables":
        folder = Path(given) if (given := os.environ.get("LAPRAS_TABLES")) else None
        calls = [
            (tables.row, (name, path, overlap))
            for name in tables.COLUMNS
            for overlap in (1.0, None)
            if (path := tables.path_of(name, folder)) is not None
        ]
    if chosen == "groups":
        kinds = grouped.POLICIES[:2] if quick else grouped.POLICIES
        calls = [
            (grouped.row, (size, kind))
            for size in ((100, 10_000) if quick else grouped.SHAPES)
            for kind in kinds
        ]
    elif chosen == "entries":
        calls = [(entries.row, (value,)) for value in (entries.SIZES[:2] if quick else entries.SIZES)]
    elif chosen == "stream":
        lengths = long.LENGTHS[: 1 if quick else 3 if full else 2]
        calls = [(long.row, (value,)) for value in lengths]
    context = multiprocessing.get_context("spawn")
    for call, given in calls:
        with ProcessPoolExecutor(1, context, initializer=one_thread) as pool:
            yield pool.submit(call, *given).result()


def _row(
    axis: str, value: int, shape: tuple[int, ...], count: int, name: str, overlap: float | None
) -> dict[str, Any]:
    domain = lp.Domain(**{f"a{i:02d}": lp.Integers(0, levels - 1) for i, levels in enumerate(shape)})
    drawn = conjunctions(domain, count + HORIZON, np.random.default_rng(3))
    predicted, others = drawn[:count] if overlap != 0.0 else (), drawn[count:]
    began = time.process_time()
    given = Setting(domain, BUDGET, HORIZON, predicted, overlap=overlap if predicted else None)
    policy = policy_named(name, given)
    designed = time.process_time()
    plan = make_plan(policy)
    planned = time.process_time()
    kinds = {kind.kind: kind.mae for kind in plan.kinds}
    stream = _stream(predicted, others, overlap)
    known, new = _errors(policy, stream)
    opened, asks = _session(domain, given, stream, name)
    return {
        "axis": axis,
        "value": value,
        "policy": name,
        "overlap": overlap,
        "predicted_mae": known,
        "unexpected_mae": new,
        "planned_unexpected_mae": kinds.get(
            f"a range of {'two attributes' if len(shape) > 1 else 'one attribute'}"
        ),
        "independent_mae": round(mean_absolute(math.sqrt(max(HORIZON, count)) / BUDGET.mu), 2),
        "design_seconds": round(designed - began, 2),
        "open_seconds": round(opened, 2),
        "plan_seconds": round(planned - designed, 2),
        "ask_p50_ms": round(float(np.percentile(asks, 50)), 2),
        "ask_p99_ms": round(float(np.percentile(asks, 99)), 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def conjunctions(domain: lp.Domain, count: int, rng: np.random.Generator) -> tuple[Query, ...]:
    """Distinct ranges of one to three attributes, none of them all of an attribute."""
    found: dict[Query, None] = {}
    while len(found) < count:
        axes = rng.choice(len(domain), int(rng.integers(1, min(3, len(domain)) + 1)), replace=False)
        labels = {}
        for axis in axes.tolist():
            low, high = np.sort(rng.integers(0, domain.shape[axis], 2)).tolist()
            place = np.arange(domain.shape[axis])
            labels[domain.names[axis]] = (place >= low) & (place <= high)
        if not any(column.all() for column in labels.values()):
            weights = np.zeros((2,) * len(axes), dtype=np.int64)
            weights[(1,) * len(axes)] = 1
            found[Query(domain, labels, weights)] = None
    return tuple(found)


def _stream(predicted: Sequence[Query], others: Sequence[Query], overlap: float | None) -> list[Query]:
    rng = np.random.default_rng(4)
    hits = HORIZON if overlap == 1.0 else 0 if overlap == 0.0 else HORIZON // 2
    places = rng.permutation(len(predicted))[:hits] if predicted else []
    mixed = [*(predicted[place] for place in places), *others[: HORIZON - hits]]
    return [mixed[place] for place in rng.permutation(len(mixed))]


def _errors(policy: Policy, stream: Sequence[Query]) -> tuple[float | None, float | None]:
    """Mean error of the predicted queries of a stream, and of the others."""
    own, found = set(policy.setting.predictions), {True: list[float](), False: list[float]()}
    for query, variance in zip(stream, play(policy, stream), strict=True):
        if variance is not None:
            found[query in own].append(mean_absolute(math.sqrt(variance)))
    known, new = (round(math.fsum(each) / len(each), 2) if each else None for each in found.values())
    return known, new


def _session(
    domain: lp.Domain, given: Setting, stream: Sequence[Query], policy: str
) -> tuple[float, list[float]]:
    """Seconds until the first answer over 100,000 rows, and milliseconds of each other."""
    rng = np.random.default_rng(5)
    levels = zip(domain.names, domain.shape, strict=True)
    table = pa.table({name: rng.integers(0, size, ROWS) for name, size in levels})
    began = time.process_time()
    session = lp.open_session(
        table,
        domain,
        budget=BUDGET,
        horizon=HORIZON,
        predictions=given.predictions,
        overlap=given.overlap,
        policy=policy,
        name="t",
    )
    session.ask(stream[0])
    opened, asks = time.process_time() - began, []
    for query in stream[1:]:
        start = time.process_time()
        session.ask(query)
        asks.append(1e3 * (time.process_time() - start))
    return opened, asks
