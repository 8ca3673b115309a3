"""The clipped release: no record adds more than its limit, whatever was missed; else nothing is lost."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.format import read_measurement, write_measurement
from laprasdp.strategy.clipped import Clipped, quantize_clipped
from laprasdp.strategy.joint import FEW_COLUMNS, design_joint
from laprasdp.strategy.patterns import Patterns
from laprasdp.strategy.search import search_strategy

DOMAIN = lp.Domain(
    a=lp.Integers(1, 4), b=lp.Categories(["x", "y", "z"]), c=lp.Booleans(), d=lp.Integers(1, 3)
)
CELLS = list(itertools.product(*map(range, DOMAIN.shape)))


def table(counts: np.ndarray[Any, Any]) -> Any:
    """Exact marginals of counts, one for each cell of the domain."""
    tensor = counts.reshape(DOMAIN.shape)

    def read(axes: tuple[int, ...]) -> Marginal:
        others = tuple(axis for axis in range(len(DOMAIN)) if axis not in axes)
        summed = tensor.sum(axis=others)
        places = np.nonzero(summed) if axes else ()
        levels = dict(zip(axes, places, strict=True))
        return Marginal(levels, np.atleast_1d(summed[places] if axes else summed).astype(np.int64))

    return read


@st.composite
def queries(draw: st.DrawFn, most: int = 5) -> tuple[Query, ...]:
    """Distinct queries with small integer weights over some attributes."""
    found: dict[Query, None] = {}
    for _ in range(draw(st.integers(1, most))):
        axes = draw(st.lists(st.integers(0, 3), min_size=0, max_size=3, unique=True))
        labels = {
            DOMAIN.names[a]: draw(
                st.lists(st.integers(0, 1), min_size=DOMAIN.shape[a], max_size=DOMAIN.shape[a])
            )
            for a in axes
        }
        size = 2 ** len(axes)
        weights = draw(st.lists(st.integers(-2, 3), min_size=size, max_size=size))
        query = Query(DOMAIN, labels, np.array(weights).reshape((2,) * len(axes)))
        if not query.is_zero:
            found[query] = None
    return tuple(found) or (Query.constant(DOMAIN, 1),)


@st.composite
def measurements(draw: st.DrawFn) -> Clipped:
    """A random matrix with a limit that many cells pass: no search was made at all."""
    asked = draw(queries())
    rows, bits = len(asked), draw(st.integers(0, 30))
    entries = st.integers(-(2**bits) * 3, 2**bits * 3)
    matrix = draw(st.lists(st.lists(entries, min_size=rows, max_size=rows), min_size=rows, max_size=rows))
    limit = draw(st.integers(0, 4**bits * 8))
    return Clipped(asked, np.array(matrix, dtype=object), bits=bits, limit=limit)


@settings(max_examples=150, deadline=None)
@given(
    measured=measurements(),
    counts=st.lists(st.integers(0, 3) | st.integers(0, 2**40), min_size=len(CELLS), max_size=len(CELLS)),
    record=st.integers(0, len(CELLS) - 1),
)
def test_neighbours_differ_by_at_most_the_limit_however_wrong_the_search_was(
    measured: Clipped, counts: list[int], record: int
) -> None:
    one, other = np.array(counts), np.array(counts)
    other[record] += 1
    moved = [
        after - before
        for before, after in zip(measured.exact(table(one)), measured.exact(table(other)), strict=True)
    ]
    assert sum(step * step for step in moved) <= measured.limit
    charged = int(measured.amounts().weights)
    assert Fraction(charged, 2**MU_BITS) >= Fraction(measured.limit, 4**measured.bits)
    assert int(measured.amounts(3).weights) >= 9 * (charged - 1)


@settings(max_examples=100, deadline=None)
@given(measured=measurements(), counts=st.lists(st.integers(0, 9), min_size=len(CELLS), max_size=len(CELLS)))
def test_what_passes_no_limit_is_summed_exactly_and_what_passes_is_shortened(
    measured: Clipped, counts: list[int]
) -> None:
    matrix = np.asarray(measured.matrix)
    total = np.zeros(len(matrix), dtype=object)
    for cell, count in enumerate(counts):
        pattern = np.array([int(query.vector()[cell]) for query in measured.queries], dtype=object)
        added = matrix @ pattern
        square = int(added @ added)
        if square > measured.limit:  # by the definition, in exact integers
            up, down = math.isqrt(measured.limit << 128), math.isqrt(square << 128) + 1
            added = np.array(
                [(abs(v) * up // down) * (1 if v > 0 else -1) for v in added.tolist()], dtype=object
            )
            assert int(added @ added) <= measured.limit
        total = total + count * added
    assert measured.exact(table(np.array(counts))) == total.tolist()


def test_without_the_clip_neighbours_differ_by_more() -> None:
    """The control: the same sums, not clipped, break the bound."""
    asked = (Query.count(DOMAIN, a=[1, 2]), Query.count(DOMAIN, b="x"))
    plain = Clipped(asked, np.array([[5, 0], [0, 5]], dtype=object), bits=0, limit=10**6)
    tight = Clipped(asked, plain.matrix, bits=0, limit=25)
    one = np.zeros(len(CELLS), dtype=np.int64)
    other = one.copy()
    other[0] = 1  # a = 1, b = x: both queries hold
    assert sum(v * v for v in plain.exact(table(other))) == 50 > tight.limit
    assert 16 <= sum(v * v for v in tight.exact(table(other))) <= 25


def test_persons_of_several_rows_move_it_by_at_most_the_charge() -> None:
    asked = (Query.count(DOMAIN, a=1), Query.count(DOMAIN, b="x"), Query.count(DOMAIN, c=True))
    measured = quantize_clipped(asked, np.eye(3), Fraction(2, 7), max_rows=3)
    one = np.arange(len(CELLS))
    for rows in itertools.product(range(0, len(CELLS), 7), repeat=3):
        other = one.copy()
        for row in rows:
            other[row] += 1
        moved = [b - a for a, b in zip(measured.exact(table(one)), measured.exact(table(other)), strict=True)]
        assert Fraction(sum(v * v for v in moved), 4**measured.bits) <= Fraction(2, 7)
    assert int(measured.amounts(3).weights) <= math.floor(Fraction(2, 7) * 2**MU_BITS)


def test_a_ledger_keeps_the_limit() -> None:
    asked = (Query.count(DOMAIN, a=1), Query.count(DOMAIN, b="x"))
    measured = quantize_clipped(asked, np.array([[0.9, 0.1], [0.0, 0.8]]), Fraction(1, 3))
    again = read_measurement(write_measurement(measured), DOMAIN)
    assert isinstance(again, Clipped)
    assert (again.limit, again.bits, again.queries) == (measured.limit, measured.bits, measured.queries)
    assert again.amounts() == measured.amounts()
    counts = np.arange(len(CELLS))
    assert again.exact(table(counts)) == measured.exact(table(counts))


def test_values_come_back_without_bias() -> None:
    """The mean of 400 releases: each of 6 answers within 5 standard errors, a chance of 4e-6."""
    asked = tuple(Query.count(DOMAIN, a=range(1, k + 1), b=v) for k in (1, 2, 4) for v in "xy")
    measured = quantize_clipped(asked, search_strategy(asked).encode, Fraction(1, 5))
    counts, noise = np.arange(len(CELLS)) * 3, SeededNoise(5)
    exact = measured.exact(table(counts))
    drawn = np.array([measured.values(measured.release(exact, noise)) for _ in range(400)])
    answers = drawn @ measured.decoding.T
    true = np.array([int(query.vector() @ counts) for query in asked])
    std = np.sqrt((measured.decoding**2).sum(axis=1))
    assert np.abs((answers.mean(axis=0) - true) / (std / 20)).max() < 5
    assert np.abs(answers.std(axis=0) / std - 1).max() < 0.2


@settings(max_examples=60, deadline=None)
@given(asked=queries(), seed=st.integers(0, 5))
def test_patterns_are_the_weights_on_every_cell(asked: tuple[Query, ...], seed: int) -> None:
    patterns = Patterns(asked)
    cells = [
        tuple(labels[cell[axis]] for axis, labels in zip(patterns.axes, patterns.labels, strict=True))
        for cell in CELLS
    ]
    written = np.array([query.vector() for query in asked]).T
    assert np.array_equal(patterns.values(np.array(cells, dtype=np.intp).reshape(len(CELLS), -1)), written)
    form = np.random.default_rng(seed).normal(size=(3, len(asked)))
    start = patterns.random(4, np.random.default_rng(seed))
    found, squares = patterns.climb(start, form)
    reached = ((patterns.values(found) @ form.T) ** 2).sum(axis=1)
    assert squares == pytest.approx(reached)
    assert (squares >= ((patterns.values(start) @ form.T) ** 2).sum(axis=1) * (1 - 1e-12)).all()
    assert squares.max() <= ((written @ form.T) ** 2).sum(axis=1).max() * (1 + 1e-12)


def conjunctions(attributes: int, count: int, seed: int) -> tuple[Query, ...]:
    """Ranges of one to three attributes of ten levels."""
    domain = lp.Domain(**{f"a{i}": lp.Integers(0, 9) for i in range(attributes)})
    rng, found = np.random.default_rng(seed), dict[Query, None]()
    while len(found) < count:
        names = [f"a{i}" for i in rng.choice(attributes, int(rng.integers(1, 4)), replace=False)]
        bounds = {name: np.sort(rng.choice(11, 2, replace=False)) for name in names}
        found[Query.count(domain, **{n: range(low, high) for n, (low, high) in bounds.items()})] = None
    return tuple(found)


def test_the_search_comes_close_to_the_certified_optimum_over_all_columns() -> None:
    asked = conjunctions(3, 25, 4)
    exact = design_joint(asked, gap=1e-4)
    assert not exact.clipped
    best = exact.at(Fraction(1)).decoding
    found = search_strategy(asked)
    optimum = np.sqrt((best**2).sum(axis=1)).mean()
    assert optimum * 0.97 < np.sqrt(found.variances).mean() < optimum * 1.03
    patterns = Patterns(asked)
    cells = np.array(list(itertools.product(*map(range, patterns.sizes))))
    squares = ((patterns.values(cells) @ found.encode.T) ** 2).sum(axis=1)
    assert squares.max() <= 1  # the margin covers whatever was missed: no record is clipped


def test_many_attributes_are_searched_and_never_refused() -> None:
    asked = conjunctions(10, 60, 2)
    joint = design_joint(asked)
    assert joint.clipped
    assert joint.at(Fraction(1, 20)).draws == len(asked)
    assert len(asked[0].domain) ** 10 > FEW_COLUMNS
    found = search_strategy(asked)
    equal = math.sqrt(
        max(Patterns(asked).climb(Patterns(asked).random(200, np.random.default_rng(0)), np.eye(60))[1])
    )
    assert np.sqrt(found.variances).mean() < 0.6 * equal  # of the same budget on all queries alike
