"""Measurements are exact: integer norms are never below the true ones, decoding is unbiased."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draw import MemoryTable, workloads
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.optimize import optimize
from laprasdp.strategy.span import Span, dots
from laprasdp.strategy.strength import measure, quantize

budgets = st.fractions(Fraction(1, 2**20), Fraction(4), max_denominator=2**30)


class Silence:
    """No noise, to look at what is measured."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [0] * count

    def laplace(self, count: int, scale_units: int) -> list[int]:
        return [0] * count


def true_charge(measurement: Rows, max_rows: int) -> list[Fraction]:
    """Squared column norms, cell by cell, in units of 2^-40, by fractions."""
    written = np.stack([query.vector() for query in measurement.queries]).astype(object)
    matrix = measurement.matrix
    if isinstance(matrix, int):
        rows = (
            written * matrix * np.array(measurement.times or [1] * len(written), dtype=object)[:, np.newaxis]
        )
    else:
        rows = matrix @ written
    return [
        Fraction(int(total), 4**measurement.bits) * max_rows**2 * 2**MU_BITS
        for total in (rows * rows).sum(axis=0)
    ]


@given(workloads(), budgets, st.integers(1, 3))
def test_one_by_one(workload: list[Query], mu_squared: Fraction, max_rows: int) -> None:
    distinct = list(dict.fromkeys(workload))
    measurement = measure(distinct, mu_squared, max_rows)
    charged, true = measurement.amounts(max_rows).vector().tolist(), true_charge(measurement, max_rows)
    assert all(t <= c < t + 1 for c, t in zip(charged, true, strict=True))
    assert max(true) <= mu_squared * 2**MU_BITS
    assert max(true) >= mu_squared * 2**MU_BITS * Fraction(999_999, 1_000_000)
    x = np.arange(distinct[0].domain.size)
    exact = [int(query.vector() @ x) for query in distinct]
    noisy = measurement.release(measurement.exact(MemoryTable(distinct[0].domain, x).marginal), Silence())
    assert isinstance(measurement.matrix, int)
    estimates = measurement.values(noisy) / measurement.scales
    assert estimates == pytest.approx(exact, rel=1e-12)


@settings(max_examples=60)
@given(workloads(), budgets, st.integers(1, 3))
def test_optimised_strategies(workload: list[Query], mu_squared: Fraction, max_rows: int) -> None:
    distinct = list(dict.fromkeys(workload))
    optimum = optimize(Workload(distinct).columns.values.astype(float), gap=1e-4)
    measurement = quantize(distinct, optimum.encode, mu_squared, max_rows)
    charged, true = measurement.amounts(max_rows).vector().tolist(), true_charge(measurement, max_rows)
    assert all(t <= c < t + 1 for c, t in zip(charged, true, strict=True))
    assert max(charged) <= mu_squared * 2**MU_BITS
    decode = measurement.decoding
    variances = np.einsum("ij,ij->i", decode, decode)
    assert variances == pytest.approx(optimum.variances * max_rows**2 / float(mu_squared), rel=2e-2)
    x = np.arange(distinct[0].domain.size)
    exact = [int(query.vector() @ x) for query in distinct]
    read = MemoryTable(distinct[0].domain, x).marginal
    values = measurement.values(measurement.release(measurement.exact(read), Silence()))
    assert decode @ values == pytest.approx(exact, rel=1e-9, abs=1e-9)


@given(workloads(), st.data())
def test_the_span_finds_combinations_and_their_variance(workload: list[Query], data: st.DataObject) -> None:
    distinct = list(dict.fromkeys(workload))
    scale = data.draw(st.floats(0.1, 2))
    written = np.stack([query.vector() for query in distinct]).astype(float)
    x = np.arange(written.shape[1])
    span = Span()
    span.add(distinct, np.eye(len(distinct)) * scale, scale * (written @ x))
    factors = data.draw(st.lists(st.integers(-2, 2), min_size=len(distinct), max_size=len(distinct)))
    target = Query.constant(distinct[0].domain, 0)
    for query, factor in zip(distinct, factors, strict=True):
        target = target.combine(query, lambda a, b, f=factor: a + f * b)
    target = target.canonical()
    if not target.is_zero:
        found = span.find(target)
        assert found is not None
        best = np.linalg.pinv((written * scale).T) @ target.vector()
        assert found.variance == pytest.approx(best @ best, rel=1e-6)
        assert found.value == pytest.approx(target.vector() @ x, rel=1e-6, abs=1e-6)
    residual = np.eye(len(x)) - np.linalg.pinv(written) @ written
    outside = int(np.argmax(np.diag(residual)))
    if residual[outside, outside] > 1e-6:
        point = np.zeros(distinct[0].domain.shape, dtype=int)
        point.flat[outside] = 1
        labels = {name: range(distinct[0].domain[name].size) for name in distinct[0].domain}
        assert span.find(Query(distinct[0].domain, labels, point)) is None


def test_large_weights_do_not_overflow() -> None:
    domain = lp.Domain(pay=lp.Integers(0, 3))
    query = Query(domain, {"pay": range(4)}, [0, 1, 2**39, 2**40])
    measurement = measure([query], Fraction(1, 7))
    true = true_charge(measurement, 1)
    assert all(t <= c < t + 1 for c, t in zip(measurement.amounts().vector().tolist(), true, strict=True))
    optimum = optimize(Workload([query]).columns.values.astype(float))
    optimised = quantize([query], optimum.encode, Fraction(1, 7))
    assert max(optimised.amounts().vector().tolist()) <= 2**MU_BITS / 7


def test_nothing_can_be_measured_with_nothing() -> None:
    query = Query.count(lp.Domain(a=lp.Booleans()), a=True)
    with pytest.raises(lp.BudgetExhausted, match="too small"):
        measure([query], Fraction(1, 2**90))
    with pytest.raises(lp.BudgetExhausted, match="too small"):
        quantize([query], np.ones((1, 1)), Fraction(1, 2**90))


def test_disjoint_groups_cost_what_one_costs() -> None:
    domain = lp.Domain(state=lp.Categories([f"s{i}" for i in range(50)]))
    groups = [Query.count(domain, state=f"s{i}") for i in range(50)]
    one, all_groups = measure(groups[:1], Fraction(1, 9)), measure(groups, Fraction(1, 9))
    assert one.matrix == all_groups.matrix
    assert all_groups.amounts().weights.max() == one.amounts().weights.max()


def test_inner_products_of_many_queries_are_those_of_each_pair() -> None:
    """From distinct columns, also where some attributes are named by nobody."""
    domain = lp.Domain(x=lp.Integers(0, 59), y=lp.Integers(0, 9), z=lp.Integers(0, 6))
    rng = np.random.default_rng(4)
    queries = [
        Query(domain, {"x": rng.integers(0, 3, 60), "y": rng.integers(0, 2, 10)}, rng.integers(-4, 5, (3, 2)))
        for _ in range(30)
    ]
    few = [Query(domain, {"x": np.arange(60) // size}, np.arange(60 // size)) for size in (10, 20, 30)]
    for one, other in ((queries, few * 30), (few * 30, few), (queries, queries * 3), (few[:1], few)):
        found = dots(one, other)
        assert np.array_equal(found, [[q.dot(p) for p in other] for q in one])
    empty: list[Query] = []
    assert dots(few, empty).shape == (3, 0)
