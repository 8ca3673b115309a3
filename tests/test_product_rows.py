"""A product strategy: what it measures, what that costs and what follows, beside everything written out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from draw import MemoryTable
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.arrays import Floats, Ints
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.factored import FactoredBelief
from laprasdp.errors import DomainError
from laprasdp.privacy.noise import ExactNoise
from laprasdp.queries.query import Query
from laprasdp.record.format import read_measurement, write_measurement
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.p_identity import optimize_p_identity
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.strength import laplace_noise

DOMAIN = lp.Domain(a=lp.Integers(0, 4), b=lp.Categories(["x", "y", "z"]), c=lp.Integers(0, 1))
EPSILON = 2**40  # units of 1


def drawn(seed: int) -> ProductRows:
    rng = np.random.default_rng(seed)
    factors = []
    for size in DOMAIN.shape:
        sums = rng.integers(-3, 9, (int(rng.integers(0, 3)), size))
        factors.append(np.concatenate([np.diag(rng.integers(1, 9, size)), sums]).astype(np.int64))
    return ProductRows(DOMAIN, tuple(factors), bits=5)


def noisy(rows: ProductRows, max_rows: int = 1, epsilon: int = EPSILON) -> ProductRows:
    return replace(rows, **laplace_noise(rows.largest_change(max_rows), epsilon))


def written(rows: ProductRows) -> Ints:
    """All rows over all cells."""
    return np.asarray(reduce(np.kron, rows.factors), dtype=np.int64)


def as_rows(rows: ProductRows) -> Rows:
    """The same measurement, each row by itself."""
    labels = {name: np.arange(size) for name, size in zip(DOMAIN.names, DOMAIN.shape, strict=True)}
    queries = tuple(Query(DOMAIN, labels, row.reshape(DOMAIN.shape)) for row in written(rows) if row.any())
    return Rows(queries, 1, bits=rows.bits, law=rows.law, scale=rows.scale, scale_bits=rows.scale_bits)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_it_is_the_rows_written_out(seed: int, max_rows: int) -> None:
    """Answers, the ε that a unit of several rows is promised, and the charge: exact integers of all rows."""
    rows, whole = drawn(seed), written(drawn(seed))
    counts = np.random.default_rng(seed).integers(0, 2**40, DOMAIN.size)
    assert (
        rows.exact(MemoryTable(DOMAIN, counts).marginal)
        == (whole.astype(object) @ counts.astype(object)).tolist()
    )
    assert rows.draws == len(whole)
    most = max_rows * int(np.abs(whole).sum(axis=0).max())
    assert rows.largest_change(max_rows) == most
    strength = noisy(rows, max_rows).laplace_epsilon(max_rows)
    assert 1 - 1e-6 < strength <= 1
    squares = (whole.astype(object) ** 2).sum(axis=0).max() * max_rows**2
    assert int(rows.amounts(max_rows).weights.max()) >= squares * 2**40 / 4**rows.bits


@given(st.integers(0, 10_000), st.data())
def test_no_neighbour_moves_the_answers_further_than_is_charged(seed: int, data: st.DataObject) -> None:
    """A unit of two rows is added: by L1 the answers move by no more than the scale times ε."""
    rows = noisy(drawn(seed), 2)
    counts = np.random.default_rng(seed).integers(0, 9, DOMAIN.size)
    more = counts.copy()
    for _ in range(2):
        more[data.draw(st.integers(0, DOMAIN.size - 1))] += 1
    before, after = (rows.exact(MemoryTable(DOMAIN, one).marginal) for one in (counts, more))
    moved = sum(abs(one - other) for one, other in zip(before, after, strict=True))
    assert moved <= rows.largest_change(2)
    assert moved / rows.steps <= 1


@given(st.integers(0, 10_000))
def test_what_follows_is_what_follows_from_the_rows_written_out(seed: int) -> None:
    """Values, variances, laws and joint covariances, after one release and a second of another strength."""
    rng = np.random.default_rng(seed)
    first = noisy(drawn(seed))
    mine, other = FactoredBelief(DOMAIN), DenseBelief(DOMAIN.size)
    labels = {name: np.arange(size) for name, size in zip(DOMAIN.names, DOMAIN.shape, strict=True)}
    queries = [Query(DOMAIN, labels, rng.integers(-2, 3, DOMAIN.shape)) for _ in range(4)]
    queries += [Query.count(DOMAIN, a=[1, 2]), Query.count(DOMAIN, b="y", c=1), Query.constant(DOMAIN, 1)]
    queries = [query for query in queries if not query.is_zero]
    for epsilon in (EPSILON, EPSILON // 3):
        release = noisy(drawn(seed), epsilon=epsilon)
        values = rng.normal(size=release.draws) * 10
        mine.learn(release, values)
        other.learn(as_rows(release), values[written(first).any(axis=1)])
        each, theirs = mine.estimates(queries), other.estimates(queries)
        assert np.allclose(np.array(each), np.array(theirs), rtol=1e-7, atol=1e-7)
        for query in queries:
            assert mine.variance(query) == pytest.approx(other.variance(query))
            assert mine.law(query)[1] == pytest.approx(other.law(query)[1])
            assert mine.law(query)[0] == other.law(query)[0] == "laplace"
    assert np.allclose(mine.mean, other.mean, atol=1e-6)
    when = rng.integers(1, 3, len(queries)).tolist()
    assert np.allclose(mine.covariance(queries), other.covariance(queries))
    assert np.allclose(mine.covariance(queries, when), other.covariance(queries, when))


def test_counts_of_all_cells_are_whole_numbers() -> None:
    counts = ProductRows(DOMAIN, tuple(np.eye(size, dtype=np.int64) for size in DOMAIN.shape), bits=0)
    release = noisy(counts)
    assert release.discrete
    assert release.counts
    exact = release.exact(MemoryTable(DOMAIN, np.arange(DOMAIN.size)).marginal)
    belief = FactoredBelief(DOMAIN)
    belief.learn(release, release.values(release.release(exact, ExactNoise())))
    asked = Query.count(DOMAIN, b=["x", "z"])
    found = belief.estimate(asked)
    assert found is not None
    assert found[0] == round(found[0])
    assert belief.law(asked) == ("geometric", DOMAIN.size * 2 / 3)
    assert found[1] == pytest.approx(DOMAIN.size * 2 / 3 / (2 * math.sinh(0.5) ** 2))
    belief.learn(noisy(counts, epsilon=EPSILON // 2), np.zeros(DOMAIN.size))
    assert belief.law(asked)[0] == "laplace"  # least squares of two are no whole numbers


def test_errors_are_what_is_said() -> None:
    """Of 4,000 releases, the mean and the variance of a query's error: within four standard errors."""
    release = noisy(drawn(7))
    counts = np.arange(DOMAIN.size) % 7
    exact = release.exact(MemoryTable(DOMAIN, counts).marginal)
    query, noise = Query.count(DOMAIN, a=[0, 3], b="y"), ExactNoise()
    truth, errors = float(query.vector() @ counts), list[float]()
    for _ in range(4_000):
        belief = FactoredBelief(DOMAIN)
        belief.learn(release, release.values(release.release(exact, noise)))
        found = belief.estimate(query)
        assert found is not None
        errors.append(found[0] - truth)
    spread: Floats = np.array(errors)
    variance = belief.variance(query)
    kurtosis = 3 + 3 / belief.law(query)[1]
    assert abs(spread.mean()) < 4 * math.sqrt(variance / 4_000)
    assert abs((spread**2).mean() / variance - 1) < 4 * math.sqrt((kurtosis - 1) / 4_000)


def test_other_rows_are_not_learned_as_if_they_were_the_same() -> None:
    belief = FactoredBelief(DOMAIN)
    belief.learn(noisy(drawn(1)), None)
    with pytest.raises(ValueError, match="as it was"):
        belief.learn(noisy(drawn(2)), None)


def test_it_is_read_as_it_was_written() -> None:
    release = noisy(drawn(3))
    read = read_measurement(write_measurement(release), DOMAIN)
    assert isinstance(read, ProductRows)
    assert write_measurement(read) == write_measurement(release)
    assert all(map(np.array_equal, read.factors, release.factors))


@pytest.mark.parametrize(
    ("place", "factor"),
    [
        (0, np.eye(4, dtype=np.int64)),  # of another attribute
        (1, np.ones((3, 3), dtype=np.int64)),  # levels that it does not tell apart
        (2, np.eye(2)),
        (2, np.eye(2, dtype=np.int64) * 2**31),
    ],
)
def test_a_factor_that_does_not_fit_is_refused(place: int, factor: Ints) -> None:
    factors = [np.eye(size, dtype=np.int64) for size in DOMAIN.shape]
    factors[place] = factor
    with pytest.raises(DomainError, match="the factor of"):
        ProductRows(DOMAIN, tuple(factors), bits=0)
    with pytest.raises(DomainError, match="for each attribute"):
        ProductRows(DOMAIN, tuple(factors[:2]), bits=0)


def test_a_product_of_the_best_is_the_best_product() -> None:
    """For one kind that is a product, each factor by itself: the design cannot be better than that."""
    prefixes = np.tril(np.ones((6, 6)))
    gram = prefixes.T @ prefixes
    alone = optimize_p_identity(gram).value(gram)
    rows = np.kron(optimize_p_identity(gram).strategy, optimize_p_identity(gram).strategy)
    both = np.kron(prefixes, prefixes)
    assert np.trace(both @ np.linalg.inv(rows.T @ rows) @ both.T) == pytest.approx(alone**2)
    assert np.abs(rows).sum(axis=0).max() == pytest.approx(1)
