"""Real tables: what answers are off by, beside what their exact variances say."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import laprasdp as lp
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query

HORIZON, PREDICTED = 100, 100
BUDGET = lp.Budget(1.0, 1e-6)
ORDERED = ("age", "education_num", "hours_per_week", "DISTANCE", "location", "row", "col")
COLUMNS = {
    "flights": ("UNIQUE_CARRIER", "ORIGIN_STATE_ABR", "DEST_STATE_ABR", "DISTANCE"),
    "adult": (
        "age", "workclass", "education_num", "marital_status", "occupation",
        "relationship", "race", "sex", "hours_per_week", "income",
    ),
    "gowalla": ("location",),
    "gowalla-grid": ("row", "col"),
}  # fmt: skip
FILES = {
    "flights": "flights_2015jan_idebench.parquet",
    "adult": "adult.parquet",
    "gowalla": "gowalla_location_visitors.parquet",
    "gowalla-grid": "gowalla_checkin_grid_256x256.parquet",
}
WIDE = 100  # levels that DISTANCE is cut into


def path_of(name: str, folder: Path | None) -> Path | None:
    """Where the table is: among the packaged ones, or in a folder of others; None if it is in neither."""
    packaged = Path(str(resources.files("laprasdp.datasets"))) / FILES[name]
    found = [path for path in (packaged, folder and folder / FILES[name]) if path and path.exists()]
    return found[0] if found else None


def coded(name: str, path: Path) -> tuple[lp.Domain, pa.Table, Marginal]:
    """The table with each attribute's values numbered, one row a record; and the records as a marginal."""
    given = pq.read_table(path)
    codes: dict[str, np.ndarray[Any, Any]] = {}
    attributes: dict[str, Any] = {}
    times = np.asarray(given["count"]) if "count" in given.column_names else None
    for column in COLUMNS[name]:
        if column == "location":
            codes[column], levels = np.arange(len(given)), len(given)
        elif column in ("row", "col"):
            codes[column], levels = np.asarray(given[column]).astype(np.int64), 256
        else:
            values, found = np.unique(np.asarray(given[column]), return_inverse=True)
            if column == "DISTANCE":
                found = values.astype(np.int64)[found] * WIDE // (int(values.max()) + 1)
                values = np.arange(WIDE)
            codes[column], levels = found.astype(np.int64), len(values)
        ordered = column in ORDERED
        attributes[column] = (
            lp.Integers(0, levels - 1) if ordered else lp.Categories([str(i) for i in range(levels)])
        )
    if times is not None:
        codes = {column: np.repeat(found, times) for column, found in codes.items()}
    table = {
        column: pa.array(found) if column in ORDERED else pa.array(found.astype(str))
        for column, found in codes.items()
    }
    ones = np.ones(len(next(iter(codes.values()))), dtype=np.int64)
    return lp.Domain(**attributes), pa.table(table), Marginal(dict(enumerate(codes.values())), ones)


def conjunctions(domain: lp.Domain, count: int, rng: np.random.Generator) -> tuple[Query, ...]:
    """Distinct conjunctions of one to three attributes: ranges, or some values of a category."""
    found: dict[Query, None] = {}
    while len(found) < count:
        axes = rng.choice(len(domain), int(rng.integers(1, min(3, len(domain)) + 1)), replace=False)
        labels = {}
        for axis in axes.tolist():
            place, size = np.arange(domain.shape[axis]), domain.shape[axis]
            if isinstance(domain[domain.names[axis]], lp.Integers):
                low, high = np.sort(rng.choice(size + 1, 2, replace=False)).tolist()
                labels[domain.names[axis]] = (place >= low) & (place < high)
            else:
                labels[domain.names[axis]] = np.isin(
                    place, rng.choice(size, min(6, size // 2), replace=False)
                )
        weights = np.zeros((2,) * len(axes), dtype=np.int64)
        weights[(1,) * len(axes)] = 1
        if not any(column.all() for column in labels.values()):
            found[Query(domain, labels, weights)] = None
    return tuple(found)


def row(name: str, path: Path, overlap: float | None) -> dict[str, Any]:
    """One session over a real table: half predicted with the overlap unknown, or all."""
    domain, table, records = coded(name, path)
    drawn = conjunctions(domain, PREDICTED + HORIZON, np.random.default_rng(3))
    predicted, others = drawn[:PREDICTED], drawn[PREDICTED:]
    hits = HORIZON if overlap == 1.0 else HORIZON // 2
    rng = np.random.default_rng(4)
    mixed = [*(predicted[i] for i in rng.permutation(PREDICTED)[:hits]), *others[: HORIZON - hits]]
    stream = [mixed[i] for i in rng.permutation(HORIZON)]
    began = time.process_time()
    session = lp.open_session(
        table, domain, budget=BUDGET, horizon=HORIZON, predictions=predicted, overlap=overlap, name="t"
    )
    told: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    own, asks, opened = set(predicted), list[float](), 0.0
    for query in stream:
        start = time.process_time()
        answer = session.ask(query)
        asks.append(1e3 * (time.process_time() - start))
        opened = opened or time.process_time() - began
        assert isinstance(answer, lp.Answer)
        told[query in own].append((mean_absolute(answer.std), abs(answer.value - query.answer(records))))
    return {
        "axis": "tables",
        "value": name,
        "policy": "primm",
        "overlap": overlap,
        "predicted_mae": _mean([expected for expected, _ in told[True]]),
        "predicted_error": _mean([error for _, error in told[True]]),
        "unexpected_mae": _mean([expected for expected, _ in told[False]]),
        "unexpected_error": _mean([error for _, error in told[False]]),
        "independent_mae": round(mean_absolute(math.sqrt(HORIZON) / BUDGET.mu), 2),
        "open_seconds": round(opened, 2),
        "ask_p50_ms": round(float(np.percentile(asks[1:], 50)), 2),
        "ask_p99_ms": round(float(np.percentile(asks[1:], 99)), 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 2) if values else None
