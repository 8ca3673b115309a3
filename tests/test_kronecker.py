"""Marginal releases are exact on every table, never undercharged, and as good as designed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable, domains, queries
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.strategy.factor import strategy_of
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.optimize import optimize_gram
from laprasdp.strategy.subspaces import subsets, subspace_variances, subspace_weights

budgets = st.fractions(Fraction(1, 2**12), Fraction(4), max_denominator=2**30)


@st.composite
def designs(draw: st.DrawFn) -> tuple[Marginals, Fraction, int]:
    """A release over some sets of a small domain, with its allowance and rows a unit."""
    domain = draw(domains)
    chosen = draw(st.sets(st.sampled_from(subsets(tuple(range(len(domain)))))))
    weights = {axes: draw(st.floats(1e-3, 10)) for axes in chosen | {()}}
    mu_squared, max_rows = draw(budgets), draw(st.integers(1, 3))
    return design_marginals(domain, weights, {}, mu_squared, max_rows), mu_squared, max_rows


def written(measurement: Marginals) -> np.ndarray[Any, Any]:
    """(draws, n) integer rows, by Kronecker products."""
    blocks = []
    for axes, multiplier in zip(measurement.sets, measurement.multipliers, strict=True):
        kinds = [
            measurement.factors[axis] if axis in axes else np.ones((1, levels), dtype=np.int64)
            for axis, levels in enumerate(measurement.domain.shape)
        ]
        blocks.append(reduce(np.kron, kinds).astype(object) * multiplier)
    return np.concatenate(blocks)


@settings(max_examples=60, deadline=None)
@given(designs(), st.data())
def test_exact_and_never_undercharged(design: tuple[Marginals, Fraction, int], data: st.DataObject) -> None:
    measurement, mu_squared, max_rows = design
    rows, n = written(measurement), measurement.domain.size
    counts = data.draw(st.lists(st.integers(0, 2**54), min_size=n, max_size=n))
    exact = measurement.exact(MemoryTable(measurement.domain, counts).marginal)
    assert exact == [sum(a * x for a, x in zip(row, counts, strict=True)) for row in rows.tolist()]
    assert len(exact) == measurement.draws
    charged = measurement.amounts(max_rows).vector().tolist()
    norms = (rows * rows).sum(axis=0).tolist()
    true = [Fraction(norm * max_rows**2 * 2**MU_BITS, 4**measurement.bits) for norm in norms]
    assert all(t <= c for t, c in zip(true, charged, strict=True))
    assert max(charged) <= mu_squared * 2**MU_BITS
    assert max(charged) >= mu_squared * 2**MU_BITS * Fraction(98, 100)
    halved = [c / 2 for c in charged]  # negative control: half the charge is below the truth
    assert any(t > c for t, c in zip(true, halved, strict=True))


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**32))
def test_counts_of_any_size_and_coarse_limbs(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = lp.Domain(a=lp.Integers(0, 2), b=lp.Integers(0, 3))
    for top in (2, 2**20, 2**29):  # the last passes int64 however short the limbs: Python integers
        factors = {}
        for axis, levels in enumerate(domain.shape):
            drawn = rng.integers(-top, top, (levels - 1, levels - 1))
            factors[axis] = np.column_stack([drawn, -drawn.sum(axis=1)])
        counts = np.zeros(domain.shape, dtype=np.int64)
        counts[tuple(rng.integers(0, domain.shape))] = count
        measured = Marginals(domain, ((0, 1),), (1,), factors, bits=52)
        true = np.kron(factors[0].astype(object), factors[1].astype(object)) @ counts.reshape(-1).astype(
            object
        )
        assert measured.exact(MemoryTable(domain, counts.reshape(-1)).marginal) == true.tolist()


@settings(deadline=None)
@given(st.integers(2, 30), budgets, st.integers(0, 2**32))
def test_rounded_factors_stay_centred(levels: int, mu_squared: Fraction, seed: int) -> None:
    functions = np.random.default_rng(seed).standard_normal((levels + 2, levels))
    moment = functions.T @ functions
    strategy = strategy_of(levels, moment)
    assert strategy.shape == (levels - 1, levels)
    domain = lp.Domain(a=lp.Integers(1, levels))
    rounded = design_marginals(domain, {(0,): 1.0}, {0: moment}, mu_squared).factors[0]
    assert not rounded.sum(axis=1).any()
    steps = 2.0 ** round(math.log2(np.abs(rounded).max() / np.abs(strategy).max()))
    assert steps >= 2**6
    assert np.abs(rounded - strategy * steps).max() <= 1 + 1e-6


@settings(max_examples=60, deadline=None)
@given(domains.flatmap(lambda domain: st.lists(queries(domain), min_size=1, max_size=4)))
def test_subspace_variances_are_those_of_the_written_out_subspaces(asked: list[Query]) -> None:
    domain = asked[0].domain
    sets, variances = subspace_variances(asked, {})
    for axes, column in zip(sets, variances.T, strict=True):
        kinds = [
            strategy_of(levels, None) if axis in axes else np.ones((1, levels))
            for axis, levels in enumerate(domain.shape)
        ]
        inverse = np.linalg.pinv(reduce(np.kron, kinds))
        true = [float(np.sum((query.vector() @ inverse) ** 2)) for query in asked]
        assert column == pytest.approx(true, rel=1e-8, abs=1e-8)


def test_the_weights_minimise_the_error() -> None:
    domain = lp.Domain(a=lp.Integers(1, 4), b=lp.Integers(1, 5))
    asked = [Query.count(domain, a=range(1, k)) for k in (2, 3)] + [Query.count(domain, a=1, b=range(2, 5))]
    given_weights = np.array([3.0, 1.0, 2.0])
    sets, variances = subspace_variances(asked, {})
    for absolute, error in (
        (False, lambda m: given_weights @ (variances @ (1 / m))),
        (True, lambda m: given_weights @ np.sqrt(variances @ (1 / m))),
    ):
        weights = subspace_weights(asked, {}, given_weights, absolute=absolute)
        best = np.sqrt([weights[axes] for axes in sets])
        best /= best.sum()
        rng = np.random.default_rng(5)
        for _ in range(200):
            other = best * np.exp(0.1 * rng.standard_normal(len(best)))
            assert error(other / other.sum()) >= error(best) * (1 - 1e-9)


def test_ten_percent_above_the_dense_optimum() -> None:
    domain = lp.Domain(a=lp.Integers(1, 12), b=lp.Integers(1, 10))
    ranges = {0: range_moment(12), 1: range_moment(10)}
    asked = [
        Query.count(domain, a=range(i, j + 1), b=range(k, h + 1))
        for i, j in itertools.combinations_with_replacement(range(1, 13), 2)
        for k, h in itertools.combinations_with_replacement(range(1, 11), 2)
    ]
    sets, variances = subspace_variances(asked, ranges)
    a = subspace_weights(asked, ranges, absolute=False)
    m = np.sqrt([a[axes] for axes in sets])
    found = float((variances @ (m.sum() / m)).sum())
    dense = optimize_gram(np.kron(ranges[0], ranges[1]), gap=1e-3).lower_bound
    assert 1 <= found / dense < 1.21  # 10% in deviation


def test_refusals() -> None:
    domain = lp.Domain(a=lp.Integers(1, 3), b=lp.Booleans(), c=lp.Integers(1, 1))
    with pytest.raises(lp.BudgetExhausted, match="too small"):
        design_marginals(domain, {(0,): 1.0}, {}, Fraction(1, 2**100))
    with pytest.raises(lp.DomainError, match="positive"):
        design_marginals(domain, {(2,): 1.0, (0,): 0.0}, {}, Fraction(1))
    with pytest.raises(lp.DomainError, match="finite"):
        design_marginals(domain, {(0,): math.nan}, {}, Fraction(1))
    with pytest.raises(lp.DomainError, match="second moment"):
        design_marginals(domain, {(0,): 1.0}, {0: np.eye(2)}, Fraction(1))
    factor = np.array([[1, -1, 0]])
    with pytest.raises(lp.DomainError, match="given once"):
        Marginals(domain, ((0,), (0,)), (1, 1), {0: factor}, bits=52)
    with pytest.raises(lp.DomainError, match="ascending"):
        Marginals(domain, ((1, 0),), (1,), {0: factor, 1: np.array([[1, -1]])}, bits=52)
    with pytest.raises(lp.DomainError, match="factor of a"):
        Marginals(domain, ((0,),), (1,), {0: factor + 1}, bits=52)
    wide = lp.Domain(a=lp.Integers(1, 2000), b=lp.Integers(1, 2000))
    with pytest.raises(lp.UnsupportedQuery, match="marginal over a, b"):
        Marginals(wide, ((0, 1),), (1,), {}, bits=52)


def test_a_marginal_may_name_more_attributes_and_leave_out_empty_cells() -> None:
    domain = lp.Domain(a=lp.Integers(1, 3), b=lp.Booleans())
    measurement = design_marginals(domain, {(): 1.0, (0,): 1.0}, {}, Fraction(1))
    sparse = Marginal({0: np.array([2, 0]), 1: np.array([1, 1])}, np.array([5, 7]))
    whole = MemoryTable(domain, [0, 7, 0, 0, 0, 5]).marginal
    assert measurement.exact(lambda axes: sparse) == measurement.exact(whole)


def range_moment(levels: int) -> np.ndarray[Any, Any]:
    """Sum over all ranges on a line."""
    place = np.arange(levels)
    return (np.minimum.outer(place, place) + 1.0) * (levels - np.maximum.outer(place, place))
