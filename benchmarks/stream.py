"""How long it takes to open a session and to answer a statement: exact noise, ledger in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.datasets import path

OVERLAP = 0.8
LINE = ("static", "smooth", "smooth-cache", "primm", "independent", "histogram-total")
PRODUCT = ("static", "smooth", "smooth-cache", "primm", "independent")


def rows(full: bool, quick: bool) -> Iterator[dict[str, object]]:
    """Rows {policy, n, S, setup_seconds, p50_ms, p99_ms}: ages of Adult, 500 cells, flights."""
    horizons = (50,) if quick else (100, 1_000) if full else (100,)
    ages = lp.Domain(age=lp.Integers(17, 90))
    line = lp.Domain(cell=lp.Integers(0, 499))
    table = pa.table({"cell": np.random.default_rng(0).integers(0, 500, 100_000)})
    for horizon in horizons:
        for policy in LINE:
            yield _row(policy, str(path("adult")), ages, _line(ages, horizon), horizon)
            if not quick:
                yield _row(policy, table, line, _line(line, horizon), horizon)
    if not quick:
        flights = read_config("examples/flights/lapras.toml").domain
        for policy in PRODUCT:
            yield _row(policy, str(path("flights")), flights, _product(flights, 100), 100)


def _row(
    policy: str, source: object, domain: lp.Domain, queries: list[lp.Query], horizon: int
) -> dict[str, object]:
    rng = np.random.default_rng(1)
    predicted = queries[:horizon]
    count = round(OVERLAP * horizon)
    stream = [
        *(predicted[i] for i in rng.permutation(horizon)[:count]),
        *queries[horizon:][: horizon - count],
    ]
    start = time.perf_counter()
    session = lp.open_session(
        source,
        domain,
        budget=lp.Budget(1, 1e-6),
        horizon=horizon,
        predictions=predicted,
        policy=policy,
        name="t",
    )
    session.ask(predicted[0])  # the release before the stream
    setup = time.perf_counter() - start
    times = []
    for place in rng.permutation(len(stream)):
        start = time.perf_counter()
        session.ask(stream[place])
        times.append(time.perf_counter() - start)
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    return {
        "policy": policy,
        "n": domain.size,
        "S": horizon,
        "setup_seconds": round(setup, 4),
        "p50_ms": round(float(p50), 3),
        "p99_ms": round(float(p99), 3),
    }


def _line(domain: lp.Domain, horizon: int) -> list[lp.Query]:
    """Distinct ranges for the predictions, then random 0/1 queries."""
    rng, name = np.random.default_rng(horizon), domain.names[0]
    cells = np.arange(domain.size)
    found: dict[lp.Query, None] = {}
    while len(found) < horizon:
        low, high = sorted(rng.choice(domain.size + 1, 2, replace=False))
        found[lp.Query(domain, {name: (cells >= low) & (cells < high)}, [0, 1])] = None
    while len(found) < 2 * horizon:
        found[lp.Query(domain, {name: rng.integers(0, 2, domain.size)}, [0, 1])] = None
    return list(found)


def _product(domain: lp.Domain, horizon: int) -> list[lp.Query]:
    """Distinct conjunctions of one to three attributes."""
    rng = np.random.default_rng(horizon)
    found: dict[lp.Query, None] = {}
    while len(found) < 2 * horizon:
        names = rng.choice(domain.names, rng.integers(1, 4), replace=False)
        labels = {}
        for name in names:
            low, high = sorted(rng.choice(domain[name].size + 1, 2, replace=False))
            place = np.arange(domain[name].size)
            labels[str(name)] = (place >= low) & (place < high)
        weights = np.zeros((2,) * len(names), dtype=int)
        weights[(1,) * len(names)] = 1
        query = lp.Query(domain, labels, weights)
        if not query.is_zero and query.axes:
            found[query] = None
    return list(found)
