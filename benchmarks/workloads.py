"""Streams of the paper's kind, of public queries only: a prediction set, and what arrives in which order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from laprasdp.config import read_config
from laprasdp.queries.attribute import Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query

FLIGHTS = Path(__file__).parent.parent / "examples" / "flights" / "lapras.toml"
PREDICTED = 100
"""|P|, in every workload."""


@dataclass(frozen=True)
class Scenario:
    """
    What kind of stream.

    Attributes
    ----------
    cells : int or None
        n cells on a line; None for the four flight attributes.
    horizon : int
        S.
    order : {"random", "bad-first", "good-first"}
        Bad: not predicted.
    family : str
        Of the queries that were not predicted: random (each cell with probability one half), point, prefix
        or range on a line; conjunction on flights.
    overlap : float
        Share of the stream that was predicted.
    """

    cells: int | None
    horizon: int = 100
    order: str = "random"
    family: str = "random"
    overlap: float = 0.5

    @property
    def domain(self) -> Domain:
        return flights() if self.cells is None else Domain(cell=Integers(1, self.cells))

    @property
    def hits(self) -> int:
        """Statements of the stream that were predicted: floor of overlap times S."""
        return int(self.overlap * self.horizon + 1e-9)


@lru_cache(maxsize=1)
def flights() -> Domain:
    """Carrier, origin state, arrival delay and distance: 334,152 cells."""
    return read_config(FLIGHTS).domain


def predictions(scenario: Scenario, seed: int) -> tuple[Query, ...]:
    """
    The prediction set: 100 of all contiguous ranges, uniform without replacement; on flights, conjunctions.

    It depends on the domain and the seed only, so that all overlaps of a seed have the same.
    """
    rng = np.random.default_rng([seed, 0])
    domain = scenario.domain
    drawn = conjunctions(domain, rng) if scenario.cells is None else _ranges(domain, rng)
    return distinct(drawn, PREDICTED)


def stream(scenario: Scenario, seed: int) -> list[Query]:
    """
    The stream.

    Predicted queries come without replacement while there are enough, else each as likely every time; the
    others are distinct where the family is large enough, and none of them was predicted.
    """
    predicted = predictions(scenario, seed)
    rng = np.random.default_rng([seed, 1])
    if scenario.hits <= len(predicted):
        places = rng.permutation(len(predicted))[: scenario.hits]
    else:
        places = rng.integers(0, len(predicted), scenario.hits)
    good = [predicted[place] for place in places]
    others = FAMILIES[scenario.family](scenario.domain, np.random.default_rng([seed, 2]))
    bad = distinct(others, scenario.horizon - scenario.hits, set(predicted))
    if scenario.order == "bad-first":
        return [*bad, *good]
    if scenario.order == "good-first":
        return [*good, *bad]
    mixed = [*good, *bad]
    return [mixed[place] for place in np.random.default_rng([seed, 3]).permutation(len(mixed))]


def distinct(drawn: Iterator[Query], count: int, without: set[Query] | None = None) -> tuple[Query, ...]:
    """The first `count` that differ; with repetition where a family has too few."""
    found: dict[Query, None] = {}
    for query in itertools.islice(drawn, 200 * (count + 1)):
        if len(found) == count:
            break
        if not query.is_zero and query not in (without or ()):
            found[query] = None
    return tuple(itertools.islice(itertools.cycle(found), count))


def _line(domain: Domain, weights: np.ndarray) -> Query:
    return Query(domain, {"cell": np.arange(domain.size)}, weights.astype(np.int64))


def _ranges(domain: Domain, rng: np.random.Generator) -> Iterator[Query]:
    place = np.arange(domain.size)
    while True:
        low, high = np.sort(rng.choice(domain.size + 1, 2, replace=False)).tolist()
        yield _line(domain, (place >= low) & (place < high))


def _points(domain: Domain, rng: np.random.Generator) -> Iterator[Query]:
    while True:
        yield _line(domain, np.arange(domain.size) == rng.integers(domain.size))


def _prefixes(domain: Domain, rng: np.random.Generator) -> Iterator[Query]:
    while True:
        yield _line(domain, np.arange(domain.size) <= rng.integers(domain.size))


def _random(domain: Domain, rng: np.random.Generator) -> Iterator[Query]:
    while True:
        yield _line(domain, rng.integers(0, 2, domain.size))


def conjunctions(domain: Domain, rng: np.random.Generator) -> Iterator[Query]:
    """One to three flight attributes: a range of an ordered one, one to six values of a category."""
    while True:
        axes = rng.choice(len(domain), rng.integers(1, 4), replace=False)
        labels = {}
        for axis in axes.tolist():
            name = domain.names[axis]
            column = np.zeros(domain.shape[axis], dtype=np.int64)
            if name in ("ARR_DELAY", "DISTANCE"):
                low, high = np.sort(rng.integers(0, len(column), 2)).tolist()
                column[low : high + 1] = 1
            else:
                column[rng.choice(len(column), rng.integers(1, 7), replace=False)] = 1
            labels[name] = column
        weights = np.zeros((2,) * len(axes), dtype=np.int64)
        weights[(1,) * len(axes)] = 1
        if all(not column.all() for column in labels.values()):
            yield Query(domain, labels, weights)


FAMILIES: dict[str, Callable[[Domain, np.random.Generator], Iterator[Query]]] = {
    "random": _random,
    "point": _points,
    "prefix": _prefixes,
    "range": _ranges,
    "conjunction": conjunctions,
}
