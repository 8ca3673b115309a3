"""Growth with the length of a stream on flights: time of an ask, error by position, memory."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

import laprasdp as lp
from benchmarks.workloads import conjunctions, distinct, flights
from laprasdp.datasets import path
from laprasdp.privacy.gaussian import mean_absolute

LENGTHS = (100, 1_000, 10_000)
PREDICTED, BUDGET = 100, lp.Budget(1.0, 1e-6)


def row(value: int) -> dict[str, Any]:
    """
    A stream of so many different statements on flights, a tenth of them predicted or 100, in any order.

    Returns
    -------
    dict
        axis, value, answered, measured_p50_ms, measured_p99_ms, known_p50_ms (the same statements again),
        mean_mae (expected errors of those that nobody predicted), tenths (the same by tenth of the stream),
        worst_tenth (the largest of them against the mean), grown_mib (memory after the first tenth).  Times
        are of the processor.
    """
    domain, rng = flights(), np.random.default_rng(7)
    count = min(PREDICTED, value // 10)
    queries = distinct(conjunctions(domain, np.random.default_rng([7, value])), value)
    predicted, order = queries[:count], rng.permutation(value)
    session = lp.open_session(
        str(path("flights")), domain, budget=BUDGET, horizon=value, predictions=predicted, name="flights"
    )
    session.ask(predicted[0])
    measured, errors, known, memory = [], list[list[float]](), [], 0
    for tenth in np.array_split(order, 10):
        errors.append([])
        for place in tenth:
            began = time.process_time()
            try:
                answer = session.ask(queries[place])
            except lp.BudgetExhausted:
                continue
            taken = 1e3 * (time.process_time() - began)
            assert isinstance(answer, lp.Answer)
            if answer.charge:
                measured.append(taken)
            if place >= count:
                errors[-1].append(mean_absolute(answer.std))
        memory = memory or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for place in order[:1_000]:
        began = time.process_time()
        try:
            session.ask(queries[place])
        except lp.BudgetExhausted:
            continue
        known.append(1e3 * (time.process_time() - began))
    tenths = [round(float(np.mean(each)), 2) if each else None for each in errors]
    mean = float(np.mean(np.concatenate(errors)))
    return {
        "axis": "stream",
        "value": value,
        "answered": sum(map(len, errors)) + count,
        "measured_p50_ms": round(float(np.percentile(measured, 50)), 2),
        "measured_p99_ms": round(float(np.percentile(measured, 99)), 2),
        "known_p50_ms": round(float(np.percentile(known, 50)), 3),
        "mean_mae": round(mean, 2),
        "tenths": tenths,
        "worst_tenth": round(max(one for one in tenths if one is not None) / mean, 2),
        "grown_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) >> 10,
    }
