"""p-identity strategies: exact norms and errors, the gradient, and what is known of simple moments."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from laprasdp.errors import DomainError
from laprasdp.strategy.background import point_moment, prefix_moment, random_moment, range_moment
from laprasdp.strategy.p_identity import PIdentity, optimize_p_identity, start


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_norms_and_errors_are_exact(cells: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = PIdentity(rng.random((rows, cells)) * rng.integers(0, 2, (rows, cells)))
    strategy = found.strategy
    assert strategy.shape == (cells + rows, cells)
    assert (strategy >= 0).all()
    assert strategy.sum(axis=0) == pytest.approx(np.ones(cells))
    oracle = np.linalg.inv(strategy.T @ strategy)
    assert found.covariance == pytest.approx(oracle, rel=1e-9, abs=1e-9)
    root = rng.standard_normal((3, cells))
    assert found.value(root.T @ root) == pytest.approx(float(np.trace(root @ oracle @ root.T)))


def test_it_is_a_stationary_point_of_the_error_itself() -> None:
    """By the strategy's own definition and finite differences, not by the formulas of the search."""
    gram = prefix_moment(6)
    found = optimize_p_identity(gram, first=start(6, 2), steps=2_000)

    def error(roots: np.ndarray) -> float:
        strategy = PIdentity(roots.reshape(2, 6) ** 2).strategy
        return float(np.trace(gram @ np.linalg.inv(strategy.T @ strategy)))

    roots = np.sqrt(found.sums).reshape(-1)
    slope = scipy.optimize.approx_fprime(roots, error, 1e-7)
    away = scipy.optimize.approx_fprime(roots + 0.3, error, 1e-7)
    assert np.abs(slope).max() < 1e-3 * np.abs(away).max()  # negative control: elsewhere it is steep


def test_points_are_measured_by_themselves() -> None:
    found = optimize_p_identity(point_moment(20), steps=500)
    assert found.value(point_moment(20)) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(
    ("moment", "most"), [(random_moment, 1.001), (prefix_moment, 0.5), (range_moment, 0.75)]
)
def test_what_is_gained_against_counts(moment: object, most: float) -> None:
    gram = moment(74)  # type: ignore[operator]
    found = optimize_p_identity(gram, steps=300)
    assert found.value(gram) <= most * np.trace(gram)


def test_the_same_every_time_and_errors() -> None:
    one, other = (optimize_p_identity(range_moment(30)) for _ in range(2))
    assert np.array_equal(one.sums, other.sums)
    for wrong in (np.ones(3), np.ones((2, 3)), np.array([[np.nan]])):
        with pytest.raises(DomainError, match="square"):
            optimize_p_identity(wrong)
    with pytest.raises(DomainError, match="4 cells"):
        optimize_p_identity(np.eye(3), first=start(4, 1))


@given(st.integers(1, 12), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_whatever_is_asked_every_cell_is_measured(cells: int, seed: int) -> None:
    """Moments of one query, which say nothing of the other cells."""
    query = np.random.default_rng(seed).integers(0, 2, cells).astype(float)
    found = optimize_p_identity(np.outer(query, query), steps=300)
    assert np.isfinite(found.covariance).all()
    assert (found.covariance.diagonal() > 0).all()
    assert found.value(np.outer(query, query)) <= max(float(query.sum()), 1.0) * 4.5


def test_a_strategy_of_one_cell() -> None:
    found = optimize_p_identity(np.ones((1, 1)))
    assert Fraction(1, 2) < Fraction(found.value(np.ones((1, 1)))) < 2
