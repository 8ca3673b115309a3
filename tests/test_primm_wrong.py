"""PRIMM with a prediction set of which nothing comes true: what it costs against no predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.query import Query

CELLS, LENGTH = 24, 100
LINE = lp.Domain(cell=lp.Integers(0, CELLS - 1))
TABLE = MemoryTable(LINE, np.arange(CELLS) * 7)
FAMILIES = ("random", "range", "point", "prefix")


def asked(family: str) -> list[Query]:
    """A stream over the upper half of the cells, or of random queries over all."""
    rng, half = np.random.default_rng(1), CELLS // 2
    if family == "random":
        return [drawn(rng) for _ in range(LENGTH)]
    if family == "point":
        return [Query.count(LINE, cell=[cell]) for cell in rng.integers(half, CELLS, LENGTH).tolist()]
    if family == "prefix":
        return [Query.count(LINE, cell=range(end)) for end in rng.integers(half, CELLS, LENGTH).tolist()]
    return [between(rng, half, CELLS) for _ in range(LENGTH)]


def wrong(kind: str) -> list[Query]:
    """Predictions about the other half, or about everything."""
    rng, half = np.random.default_rng(2), CELLS // 2
    if kind == "points":
        return [Query.count(LINE, cell=[cell]) for cell in range(half)]
    if kind == "ranges":
        return list(dict.fromkeys(between(rng, 0, half) for _ in range(100)))
    if kind == "random":
        return [drawn(rng) for _ in range(100)]
    return [Query.constant(LINE, 1)]


def drawn(rng: np.random.Generator) -> Query:
    """Each cell with probability one half."""
    return Query(LINE, {"cell": range(CELLS)}, rng.integers(0, 2, CELLS))


def between(rng: np.random.Generator, low: int, high: int) -> Query:
    """A range of some cells."""
    start, end = np.sort(rng.choice(np.arange(low, high + 1), 2, replace=False)).tolist()
    return Query.count(LINE, cell=range(start, end))


def error(stream: list[Query], predictions: list[Query], **more: Any) -> float:
    """Mean expected absolute error over the stream, of which everything is answered."""
    session = lp.open_session(
        TABLE,
        LINE,
        budget=lp.Budget(1, 1e-3),
        horizon=LENGTH,
        predictions=predictions,
        public=True,
        noise=SeededNoise(0),
        **more,
    )
    answers = list(session.ask_many(stream))
    return math.fsum(answer.std for answer in answers if isinstance(answer, lp.Answer)) / len(answers)


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_that_are_all_wrong_cost_at_most_a_tenth(family: str) -> None:
    stream = asked(family)
    alone = error(stream, [])
    for kind in ("points", "ranges", "random", "total"):
        predictions = [query for query in wrong(kind) if query not in stream]
        assert error(stream, predictions) <= 1.1 * alone, kind


def test_an_overlap_that_is_claimed_and_wrong_is_not_guarded() -> None:
    """What the tenth does not hold for: primm is told that nine of ten statements will be the total."""
    stream = asked("point")
    assert error(stream, wrong("total"), overlap=0.9) > 1.5 * error(stream, [])
