"""The belief over a product domain is the dense least-squares posterior, without its arrays."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable, domains, queries
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kronecker import range_moment, written

import laprasdp as lp
from laprasdp.belief import product
from laprasdp.belief.product import ProductBelief
from laprasdp.config.config import read_config
from laprasdp.privacy.budget import MU_BITS, Budget
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.optimize import optimize
from laprasdp.strategy.strength import measure, quantize
from laprasdp.strategy.subspaces import subsets, subspace_weights
from laprasdp.strategy.terms import terms

SMALL = lp.Domain(a=lp.Integers(1, 3), b=lp.Integers(1, 4), c=lp.Booleans())
FLIGHTS = read_config(Path(__file__).parent.parent / "examples" / "flights" / "lapras.toml").domain


class Silence:
    """No noise, to look at what is estimated."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [0] * count

    def laplace(self, count: int, scale_units: int) -> list[int]:
        return [0] * count


def prior_over(domain: lp.Domain, size: int, mu_squared: Fraction = Fraction(1)) -> Marginals:
    """All subsets up to a size, of unequal weights."""
    sets = [axes for axes in subsets(tuple(range(len(domain)))) if len(axes) <= size]
    return design_marginals(domain, {axes: 1.0 + i for i, axes in enumerate(sets)}, {}, mu_squared)


def random_query(rng: np.random.Generator, domain: lp.Domain, most: int) -> Query:
    """Random small weights over random classes of one to `most` attributes; never zero."""
    names = rng.choice(domain.names, size=rng.integers(1, most + 1), replace=False)
    labels = {name: rng.integers(0, 2, domain[name].size) for name in names}
    query = Query(domain, labels, rng.integers(-2, 4, (2,) * len(names)))
    return query if not query.is_zero else random_query(rng, domain, most)


def release(measurement: Any, table: MemoryTable, noise: Any) -> np.ndarray[Any, Any]:
    return measurement.values(measurement.release(measurement.exact(table.marginal), noise))


@given(domains.flatmap(queries))
def test_terms_add_up(query: Query) -> None:
    coefficients, factors = terms(query)
    total = np.zeros(query.domain.shape)
    for t, coefficient in enumerate(coefficients):
        part = np.full(query.domain.shape, coefficient)
        for axis, factor in factors.items():
            part = part * factor.written[t].reshape([-1 if i == axis else 1 for i in range(total.ndim)])
        total += part
    assert total.reshape(-1) == pytest.approx(query.vector())


def test_a_conjunction_is_one_term() -> None:
    assert len(terms(Query.count(SMALL, a=[1, 2], b=3, c=True)).coefficients) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_the_prior_is_the_written_out_one(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    prior = prior_over(SMALL, size)
    rows = written(prior).astype(float) / 2.0**prior.bits
    inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-12, hermitian=True)
    asked = [random_query(rng, SMALL, size) for _ in range(4)]
    stack = np.stack([query.vector() for query in asked]).astype(float)
    belief = ProductBelief(prior)
    true = stack @ inverse @ stack.T
    assert belief.covariance(asked) == pytest.approx(true, rel=1e-8, abs=1e-8)
    assert [belief.variance(query) for query in asked] == pytest.approx(np.diag(true), rel=1e-8)
    assert all(np.isnan(belief.estimate(query)[0]) for query in asked)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_the_posterior_is_the_written_out_one(seed: int, size: int, early: bool) -> None:
    rng = np.random.default_rng(seed)
    prior, table = prior_over(SMALL, size), MemoryTable(SMALL, rng.integers(0, 50, SMALL.size))
    rows = [written(prior).astype(float) / 2.0**prior.bits]
    values = [release(prior, table, SeededNoise(seed))]
    belief, planned = ProductBelief(prior), ProductBelief(prior)
    if early:
        belief.learn(prior, values[0])
    planned.learn(prior, None)
    for step in range(4):
        asked = list(dict.fromkeys(random_query(rng, SMALL, size) for _ in range(3)))
        if step % 2:
            encode = optimize(Workload(asked).columns.values.astype(float), gap=1e-2).encode
            measurement = quantize(asked, encode, Fraction(1, 3))
        else:
            measurement = measure(asked, Fraction(1, 7))
        rows.append(measurement.coefficients @ np.stack([query.vector() for query in asked]))
        values.append(release(measurement, table, SeededNoise(seed + step)))
        belief.learn(measurement, values[-1])
        planned.learn(measurement, None)
    if not early:  # the order of the releases does not matter
        belief.learn(prior, values[0])
    stacked = np.concatenate(rows)
    inverse = np.linalg.pinv(stacked.T @ stacked, rcond=1e-12, hermitian=True)
    queries_ = [random_query(rng, SMALL, size) for _ in range(4)]
    vectors = np.stack([query.vector() for query in queries_]).astype(float)
    true = vectors @ inverse @ vectors.T
    means = vectors @ inverse @ stacked.T @ np.concatenate(values)
    found = np.array([belief.estimate(query) for query in queries_])
    assert found[:, 0] == pytest.approx(means, rel=1e-8, abs=1e-7)
    assert found[:, 1] == pytest.approx(np.diag(true), rel=1e-8)
    assert belief.covariance(queries_) == pytest.approx(true, rel=1e-8, abs=1e-8)
    assert planned.covariance(queries_) == pytest.approx(true, rel=1e-8, abs=1e-8)
    assert all(np.isnan(planned.estimate(query)[0]) for query in queries_)
    assert belief.drift() < 1e-10


@settings(max_examples=25, deadline=None)
@given(domains.flatmap(lambda d: st.tuples(st.just(d), st.lists(queries(d), min_size=1))), st.data())
def test_silent_noise_gives_the_exact_answers(case: tuple[lp.Domain, list[Query]], data: Any) -> None:
    domain, asked = case
    counts = data.draw(st.lists(st.integers(0, 1000), min_size=domain.size, max_size=domain.size))
    prior, table = prior_over(domain, 3), MemoryTable(domain, counts)
    belief = ProductBelief(prior)
    belief.learn(prior, release(prior, table, Silence()))
    for query in asked:
        if not query.is_zero:
            measurement = measure([query], Fraction(1, 5))
            before = belief.variance(query)
            belief.learn(measurement, release(measurement, table, Silence()))
            assert belief.variance(query) <= before
    for query in asked:
        found = belief.estimate(query)
        assert found is not None
        assert found[0] == pytest.approx(int(query.vector() @ np.array(counts)), rel=1e-8, abs=1e-6)


def z_scores(factor: float, table_seed: int = 3) -> float:
    """Mean square of 6,000 z-scores over 300 releases; about 1 with deviation below 0.06."""
    rng = np.random.default_rng(table_seed)
    prior, table = prior_over(SMALL, 2), MemoryTable(SMALL, rng.integers(0, 50, SMALL.size))
    asked = [random_query(rng, SMALL, 2) for _ in range(20)]
    measured = list(dict.fromkeys(asked))[:5]
    measurement = measure(measured, Fraction(1, 2))
    true = np.array([query.vector() @ table.counts for query in asked])
    squares = []
    for seed in range(300):
        belief, noise = ProductBelief(prior), SeededNoise(seed)
        belief.learn(prior, release(prior, table, noise))
        belief.learn(measurement, release(measurement, table, noise))
        found = np.array([belief.estimate(query) for query in asked])
        squares.append(np.mean((found[:, 0] - true) ** 2 / found[:, 1]) * factor)
    return float(np.mean(squares))


def test_the_stated_variance_is_the_true_one() -> None:
    # 20 correlated squared normals a release: deviation of the mean is at most sqrt(2/300) = 0.082, and a
    # chi-squared mean leaves 1 ± 0.45 with probability below 1e-6 even if all 20 were equal.
    assert abs(z_scores(1.0) - 1) < 0.45
    assert abs(z_scores(4.0) - 1) > 0.45  # negative control: noise of half the stated deviation shows


def test_queries_outside_the_released_subspaces() -> None:
    prior = prior_over(SMALL, 1)
    table = MemoryTable(SMALL, np.arange(SMALL.size))
    belief = ProductBelief(prior)
    belief.learn(prior, release(prior, table, Silence()))
    inside = Query(SMALL, {"a": range(3), "b": range(4)}, np.add.outer([0, 1, 5], [2, 0, 3, 1]))
    outside, other = Query.count(SMALL, a=1, b=2), Query.count(SMALL, a=2, c=True)
    assert belief.covers(inside)  # two attributes, but no interaction
    assert belief.estimate(inside) == pytest.approx((inside.vector() @ table.counts, belief.variance(inside)))
    assert not belief.covers(outside)
    assert belief.estimate(outside) is None
    assert belief.variance(outside) == np.inf
    first, second = measure([outside, other], Fraction(1, 2)), measure([outside], Fraction(1, 4))
    before = belief.variance(inside)
    for measurement in (first, second):
        belief.learn(measurement, release(measurement, table, Silence()))
    precision = [(m.matrix / 2.0**m.bits) ** 2 for m in (first, second)]
    assert belief.estimate(outside) == pytest.approx((outside.vector() @ table.counts, 1 / sum(precision)))
    assert belief.variance(other) == pytest.approx(1 / precision[0])
    assert belief.variance(inside) == before
    joint = belief.covariance([inside, outside, other, Query.count(SMALL, b=1, c=True)])
    assert np.diag(joint) == pytest.approx([before, 1 / sum(precision), 1 / precision[0], np.inf])
    assert not (joint - np.diag(np.where(np.isinf(np.diag(joint)), 0, np.diag(joint))))[:3, :3].any()


def test_a_dense_release_with_queries_outside() -> None:
    prior = prior_over(SMALL, 1)
    table = MemoryTable(SMALL, np.arange(SMALL.size))
    belief = ProductBelief(prior)
    belief.learn(prior, release(prior, table, Silence()))
    asked = [Query.count(SMALL, a=1, b=2), Query.count(SMALL, a=[1, 2]), Query.count(SMALL, b=[2, 3])]
    encode = optimize(Workload(asked).columns.values.astype(float)).encode
    measurement = quantize(asked, encode, Fraction(1, 2))
    belief.learn(measurement, release(measurement, table, Silence()))
    for query in asked:
        found = belief.estimate(query)
        assert found is not None
        assert found[0] == pytest.approx(query.vector() @ table.counts, abs=1e-6)
    # the dense posterior with the query's own direction left improper
    rows = measurement.coefficients
    turn = np.linalg.svd(rows[:, :1])[0][:, 1:].T
    known = written(prior).astype(float) / 2.0**prior.bits
    vectors = np.stack([query.vector() for query in asked[1:]]).astype(float)
    stacked = np.concatenate([known, turn @ rows[:, 1:] @ vectors])
    inverse = np.linalg.pinv(stacked.T @ stacked, rcond=1e-12, hermitian=True)
    true = vectors @ inverse @ vectors.T
    assert belief.covariance(asked)[1:, 1:] == pytest.approx(true, rel=1e-8)
    assert np.isnan(belief.covariance(asked)[0, 1:]).all()


def test_copies_go_their_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "_REFRESH", 7)  # refreshes fall between
    rng = np.random.default_rng(8)
    prior = prior_over(SMALL, 3)
    asked = [random_query(rng, SMALL, 3) for _ in range(30)]
    belief = ProductBelief(prior)
    for query in asked[:10]:
        belief.learn(measure([query], Fraction(1, 9)), None)
    twins = [belief.copy(), belief.copy()]
    before = belief.covariance(asked)
    for twin, part in zip(twins, (asked[10:20], asked[20:]), strict=True):
        for query in part:
            twin.learn(measure([query], Fraction(1, 9)), None)
    assert (belief.covariance(asked) == before).all()
    later = belief.copy()
    for query in asked[10:20]:
        belief.learn(measure([query], Fraction(1, 9)), None)
    assert belief.covariance(asked) == pytest.approx(twins[0].covariance(asked), rel=1e-9, abs=1e-12)
    assert (later.covariance(asked) == before).all()
    assert max(twin.drift() for twin in twins) < 1e-12
    assert belief.rows == 20


def test_the_covariance_of_many_queries_is_that_of_few_in_every_state() -> None:
    """What is kept of a large lot belongs to the prior alone, so copies that learned other rows share it."""
    rng, domain = np.random.default_rng(4), lp.Domain(a=lp.Integers(0, 9), b=lp.Integers(0, 7))
    lot = list(dict.fromkeys(random_query(rng, domain, 2) for _ in range(90)))
    assert len(lot) > 64
    belief = ProductBelief(prior_over(domain, 2))
    for query in lot[:3]:
        other = belief.copy()
        other.learn(measure([random_query(rng, domain, 2)], Fraction(1, 2)), None)
        belief.learn(measure([query], Fraction(1, 3)), None)
        for each in (belief, other):
            joint = each.covariance(lot)
            few = each.covariance(lot[:20])
            np.testing.assert_allclose(joint[:20, :20], few, rtol=1e-9, atol=1e-12)
            assert joint.diagonal() == pytest.approx([each.variance(query) for query in lot], rel=1e-9)


def test_what_a_belief_does_not_learn_from() -> None:
    belief = ProductBelief(prior_over(SMALL, 1))
    with pytest.raises(TypeError, match="prior"):
        belief.learn(prior_over(SMALL, 2), None)
    with pytest.raises(ValueError, match="values"):
        belief.learn(belief.prior, np.zeros(1))


def test_basic_noise_has_its_own_variance() -> None:
    belief = ProductBelief(prior_over(SMALL, 1, Fraction(1, 2**20)))
    query = Query.count(SMALL, a=1)
    belief.learn(Rows((query,), 1, bits=0, law="laplace", scale=3), np.array([5.0]))
    assert belief.variance(query) == pytest.approx(1 / (2 * np.sinh(1 / 6) ** 2), rel=1e-3)


def conjunction(rng: np.random.Generator, most: int) -> Query:
    """One to three attributes: a range on the ordered ones, up to `most` values of a category."""
    axes = rng.choice(4, size=rng.integers(1, 4), replace=False)
    labels = {}
    for axis in axes:
        levels = FLIGHTS.shape[axis]
        column = np.zeros(levels, dtype=int)
        if axis >= 2:
            low, high = sorted(rng.integers(0, levels, 2))
            column[low : high + 1] = 1
        else:
            column[rng.choice(levels, rng.integers(1, most + 1), replace=False)] = 1
        labels[FLIGHTS.names[axis]] = column
    weights = np.zeros((2,) * len(axes), dtype=int)
    weights[(1,) * len(axes)] = 1
    return Query(FLIGHTS, labels, weights)


def test_flights() -> None:
    """334,152 cells, (1, 1e-6): one to three attributes, ranges of ordered ones, 1 or 2 values of others."""
    assert FLIGHTS.shape == (14, 54, 17, 26)
    rng = np.random.default_rng(0)
    asked = [conjunction(rng, 2) for _ in range(1200)]
    moments = {2: range_moment(17), 3: range_moment(26)}
    mu_squared = Fraction(Budget(1.0, 1e-6).mu_squared_units, 2**MU_BITS)
    prior = design_marginals(FLIGHTS, subspace_weights(asked[:200], moments), moments, mu_squared)
    assert prior.draws == 58_552
    assert len(prior.sets) == 15
    assert int(prior.amounts().weights) > 0.995 * mu_squared * 2**MU_BITS
    belief = ProductBelief(prior)
    deviations = np.sqrt([belief.variance(query) for query in asked[200:]])
    assert np.sqrt(2 / np.pi) * deviations.mean() == pytest.approx(23.5, rel=0.05)
    outside = Query.count(FLIGHTS, **{name: FLIGHTS[name].label(0) for name in FLIGHTS})
    assert belief.variance(outside) == np.inf
    before = [belief.variance(query) for query in asked[:50]]
    for query in asked[200:]:
        belief.learn(measure([query], mu_squared / 500), None)
    assert belief.rows == 1000
    written_out = 8 * FLIGHTS.size  # bytes of one number a cell: nothing of this size is ever formed
    tracemalloc.start()
    for query in asked[:20]:
        belief.estimate(query)
    assert tracemalloc.get_traced_memory()[1] < written_out / 4
    tracemalloc.stop()
    assert all(belief.variance(q) <= b for q, b in zip(asked[:50], before, strict=True))
    assert belief.drift() < 1e-10
