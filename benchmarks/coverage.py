"""How often intervals of ratios, averages, deviations and quantiles hold the truth, at small denominators.

``python -m benchmarks coverage --full``: 2,000 draws of the noise; 200 without it, 20 with ``--quick``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.derive.estimates import JointEstimate
from laprasdp.queries.attribute import Categories, Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.worked import rows_of

DENOMINATORS = {"a": 30, "b": 100, "c": 300, "d": 1_000, "e": 10_000}
LEVELS = (0.8, 0.9, 0.95)
STDS = (2.0, 5.0, 10.0)
"""Standard deviation of the noise of one count; of a sum as many times that as its largest weight."""
SHARED = 0.3
"""Correlation of the noise of any two answers."""
TOP = 20  # the largest value of x
STATEMENTS = {
    "linear": "SELECT g, COUNT_IF(x > 12) - COUNT_IF(x < 3) AS v FROM t GROUP BY g",
    "ratio": "SELECT g, 100.0 * COUNT_IF(x > 12) / COUNT(*) AS v FROM t GROUP BY g",
    "average": "SELECT g, AVG(x) AS v FROM t GROUP BY g",
    "share of all": "SELECT g, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS v FROM t GROUP BY g",
    "median": "SELECT g, QUANTILE_DISC(x, 0.5) AS v FROM t GROUP BY g",
    "quantile 0.9": "SELECT g, QUANTILE_DISC(x, 0.9) AS v FROM t GROUP BY g",
    "deviation": "SELECT g, STDDEV_POP(x) AS v FROM t GROUP BY g",
    "root": "SELECT g, SQRT(GREATEST(COUNT_IF(x > 5), 0)) AS v FROM t GROUP BY g",
}
_DOMAIN = Domain(g=Categories(list(DENOMINATORS)), x=Integers(0, TOP))


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    One row a kind of value, denominator and noise.

    Parameters
    ----------
    full : bool
        2,000 draws.
    quick : bool
        20 draws.
    """
    draws = 2_000 if full else 20 if quick else 200
    for kind, text in STATEMENTS.items():
        for std in STDS:
            yield from _covered(kind, text, std, draws)


def _covered(kind: str, text: str, std: float, draws: int) -> Iterator[dict[str, Any]]:
    statement = Reader(_DOMAIN, "t").parse(text)
    assert statement.result is not None
    exact = _exact(statement)
    stds = std * np.array([float(np.abs(query.weights).max()) for query in statement.queries])
    covariance = np.outer(stds, stds) * (SHARED + (1 - SHARED) * np.eye(len(stds)))
    noise = np.random.default_rng(16).multivariate_normal(np.zeros(len(stds)), covariance, size=draws)
    truth = _values(statement, exact, np.zeros_like(covariance))
    held = {group: dict.fromkeys(LEVELS, 0) for group in truth}
    unbounded = dict.fromkeys(truth, 0)
    started = time.process_time()
    for one in noise:
        for group, figure in _values(statement, exact + one, covariance).items():
            for level in LEVELS:
                low, high = figure.interval(level)
                held[group][level] += low - 1e-9 <= truth[group].value <= high + 1e-9
            unbounded[group] += math.isinf(figure.interval(0.95)[0])
    seconds = (time.process_time() - started) / draws
    for group, found in held.items():
        yield {
            "kind": kind,
            "denominator": DENOMINATORS[group],
            "std": std,
            "draws": draws,
            **{f"at {level:.0%}": round(100 * count / draws, 1) for level, count in found.items()},
            "unbounded": round(100 * unbounded[group] / draws, 1),
            "milliseconds": round(1e3 * seconds, 2),
        }


def _exact(statement: Statement) -> Floats:
    """The answers of a statement's queries on a table with so many rows in each group."""
    groups = np.repeat(np.arange(len(DENOMINATORS)), list(DENOMINATORS.values()))
    drawn = np.random.default_rng(1).binomial(TOP, 0.5, size=len(groups))
    levels = {0: groups, 1: drawn.astype(np.int64)}
    ones = np.ones(len(groups), dtype=np.int64)
    return np.array(
        [
            float(query.answer(Marginal({axis: levels[axis] for axis in query.axes}, ones)))
            for query in statement.queries
        ]
    )


def _values(statement: Statement, answers: Floats, covariance: Floats) -> dict[str, Any]:
    """The value of each group, with its law."""
    assert statement.result is not None
    variances = covariance.diagonal()
    estimates = tuple(
        Estimate(float(value), max(float(variance), 1e-18), "measured")
        for value, variance in zip(answers, variances, strict=True)
    )
    _, found, _ = rows_of(statement.result, JointEstimate(estimates, None, covariance))
    return {row["g"]: row["v"] for row in found}
