"""How long it takes to open a session and to answer a statement: exact noise, ledger in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.datasets import path

OVERLAP = 0.8
LINE = ("static", "smooth", "smooth-cache", "primm", "independent", "histogram-total")
PRODUCT = ("static", "smooth", "smooth-cache", "primm", "independent")


def rows(full: bool, quick: bool) -> Iterator[dict[str, object]]:
    """
    Rows {policy, n, S, asked_before, setup_seconds, p50_ms, p99_ms, p50_measured_ms}.

    Ages of Adult, 500 cells, flights; the last is of 100 statements after 1,000 that nobody predicted.  Four
    of five statements were predicted; the last figure is the median of those that had to be measured.
    """
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
            yield _row(policy, str(path("flights")), flights, _product(flights, 200), 100)
        more = _product(flights, 1_200)
        yield _row("primm", str(path("flights")), flights, more[:200], 100, before=more[200:])


def _row(
    policy: str,
    source: object,
    domain: lp.Domain,
    queries: list[lp.Query],
    statements: int,
    *,
    before: Sequence[lp.Query] = (),
) -> dict[str, object]:
    rng = np.random.default_rng(1)
    predicted = queries[:statements]
    count = round(OVERLAP * statements)
    stream = [
        *(predicted[i] for i in rng.permutation(statements)[:count]),
        *queries[statements:][: statements - count],
    ]
    horizon = statements + len(before)
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
    for query in before:
        session.ask(query)
    times, measured = [], []
    for place in rng.permutation(len(stream)):
        start = time.perf_counter()
        answer = session.ask(stream[place])
        times.append(time.perf_counter() - start)
        assert isinstance(answer, lp.Answer)
        if answer.source == "measured":
            measured.append(times[-1])
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    return {
        "policy": policy,
        "n": domain.size,
        "S": horizon,
        "asked_before": len(before),
        "setup_seconds": round(setup, 4),
        "p50_ms": round(float(p50), 3),
        "p99_ms": round(float(p99), 3),
        "p50_measured_ms": round(float(np.median(measured)) * 1e3, 3) if measured else None,
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


def _product(domain: lp.Domain, count: int) -> list[lp.Query]:
    """Distinct conjunctions of one to three attributes."""
    rng = np.random.default_rng(100)
    found: dict[lp.Query, None] = {}
    while len(found) < count:
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
