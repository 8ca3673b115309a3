"""The optimum of the matrix mechanism against semidefinite solvers, closed forms and its own promises."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.strategy.dual import _curvature
from laprasdp.strategy.optimize import Optimum, optimize, optimize_gram

Floats = npt.NDArray[np.float64]
OBJECTIVES = ["squared", "absolute", "largest"]
ABSOLUTE = math.sqrt(2 / math.pi)


def ranges(n: int, m: int, seed: int) -> Floats:
    ends = np.sort(np.random.default_rng(seed).integers(0, n, size=(m, 2)), axis=1)
    cells = np.arange(n)
    return ((ends[:, :1] <= cells) & (cells <= ends[:, 1:])).astype(np.float64)


def binary(m: int, n: int, seed: int) -> Floats:
    return (np.random.default_rng(seed).random((m, n)) < 0.5).astype(np.float64)


def total(objective: str, weights: Floats, variances: Floats) -> float:
    """Value of an objective, written down a second time."""
    if objective == "squared":
        return math.fsum(weights * variances)
    if objective == "absolute":
        return ABSOLUTE * math.fsum(weights * np.sqrt(variances))
    return max(w * v for w, v in zip(weights, variances, strict=True))


def variances_of(workload: Floats, strategy: Floats) -> Floats:
    """Variance of each query from a strategy of any scale, by the pseudo-inverse."""
    inverse = np.linalg.pinv(strategy.T @ strategy, rcond=1e-12, hermitian=True)
    scale = (strategy**2).sum(axis=0).max()
    return np.einsum("ji,ik,jk->j", workload, inverse, workload) * scale


def oracle(workload: Floats, weights: Floats, objective: str, solver: str) -> float:
    """
    Value of a feasible strategy found by a general solver: never below the true optimum.

    The absolute error uses 1/v = max{c : K - c q qᵀ is positive semidefinite}, concave in K.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"cvxpy(\.|$)")
        warnings.filterwarnings("ignore", message=r".*(deprecat|inaccurate|feasible sparsity)")
        import cvxpy as cp

        m, p = workload.shape
        options: dict[str, Any] = {"SCS": {"eps": 1e-9, "max_iters": 50000}}.get(solver, {})
        if objective == "absolute":
            precision = cp.Variable((p, p), PSD=True)
            each = cp.Variable(m, pos=True)
            limits = [precision - each[j] * np.outer(q, q) >> 0 for j, q in enumerate(workload)]
            goal = cp.Minimize(weights @ cp.power(each, -0.5))
            cp.Problem(goal, [*limits, cp.diag(precision) <= 1]).solve(solver=solver, **options)
            found = np.asarray(precision.value)
        else:
            block = cp.Variable((m + p, m + p), symmetric=True)
            diagonal = cp.diag(block)
            each = cp.multiply(weights, diagonal[:m])
            goal = cp.Minimize(cp.sum(each) if objective == "squared" else cp.max(each))
            limits = [block >> 0, block[:m, m:] == workload, diagonal[m:] <= 1]
            cp.Problem(goal, limits).solve(solver=solver, **options)
            found = np.asarray(block.value)[m:, m:]
    power, vectors = np.linalg.eigh((found + found.T) / 2)
    assert power[0] > -1e-5 * power[-1], "the oracle's answer is not positive semidefinite"
    power = np.maximum(power, 1e-10 * power[-1])
    strategy = np.sqrt(power)[:, None] * vectors.T
    variances = ((workload @ vectors) ** 2 / power).sum(axis=1) * (strategy**2).sum(axis=0).max()
    return total(objective, weights, variances)


def check(
    workload: Floats, found: Optimum, objective: str = "squared", weights: Floats | None = None
) -> None:
    """Everything that an optimum promises, for any workload."""
    weights = np.ones(len(workload)) if weights is None else weights
    strategy = found.encode @ workload
    assert np.abs(found.decode @ strategy - workload).max() <= 1e-9 * np.abs(workload).max()
    assert np.sqrt((strategy**2).sum(axis=0).max()) == pytest.approx(1, abs=1e-12)
    assert found.encode.shape == found.decode.T.shape == (np.linalg.matrix_rank(workload), len(workload))
    assert found.variances == pytest.approx((found.decode**2).sum(axis=1), rel=1e-12)
    assert found.value == pytest.approx(total(objective, weights, found.variances), rel=1e-9)
    assert found.lower_bound <= found.value
    assert found.gap == pytest.approx(found.value / found.lower_bound - 1, abs=1e-15)


CASES = {
    "ranges": ranges(32, 32, 3),
    "tall": binary(24, 12, 5),
    "wide": binary(10, 24, 6),
    "deficient": np.vstack([np.eye(6), np.ones((1, 6)), np.repeat(np.eye(2), 3, axis=1), np.eye(6)[:2]]),
}


@pytest.mark.parametrize("solver", ["SCS", "CLARABEL"])
@pytest.mark.parametrize("objective", ["squared", "largest"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_semidefinite_solvers(name: str, objective: Any, solver: str) -> None:
    workload = np.unique(CASES[name], axis=1)
    workload = workload[:, workload.any(axis=0)]
    if objective == "largest" and len(workload) > 24:
        workload = workload[:16]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(workload))
    found = optimize(workload, weights=weights, objective=objective)
    check(workload, found, objective, weights)
    expected = oracle(workload, weights, objective, solver)
    assert found.gap <= 1e-6
    assert found.lower_bound <= expected * (1 + 1e-9)
    assert found.value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("solver", ["SCS", "CLARABEL"])
@pytest.mark.parametrize("workload", [ranges(7, 6, 1), binary(6, 5, 2), CASES["deficient"][[0, 3, 6, 7, 8]]])
def test_absolute_error_agrees_with_semidefinite_solvers(workload: Floats, solver: str) -> None:
    weights = np.random.default_rng(2).uniform(0.2, 3, len(workload))
    found = optimize(workload, weights=weights, objective="absolute")
    check(workload, found, "absolute", weights)
    expected = oracle(workload, weights, "absolute", solver)
    assert found.gap <= 1e-6
    assert found.lower_bound <= expected * (1 + 1e-9)
    assert found.value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_identity_and_total_have_closed_forms(n: int) -> None:
    identity = np.eye(n)
    assert optimize(identity).value == pytest.approx(n, rel=1e-9)
    assert optimize(identity, objective="absolute").value == pytest.approx(ABSOLUTE * n, rel=1e-9)
    assert optimize(identity, objective="largest").value == pytest.approx(1, rel=1e-9)
    one = optimize(np.full((1, n), 3.0))
    assert (one.value, one.encode.shape) == (pytest.approx(9, rel=1e-9), (1, 1))
    # n cells and a common background a: G = I + a 11ᵀ commutes with permutations, so λ is uniform
    moment = optimize_gram(np.eye(n) + 2 * np.ones((n, n)))
    assert moment.value == pytest.approx((n - 1 + math.sqrt(1 + 2 * n)) ** 2 / n, rel=1e-9)


@pytest.mark.parametrize("n", [4, 25])
def test_circulant_optimum_is_a_nuclear_norm(n: int) -> None:
    workload = sum(np.roll(np.eye(n), k, axis=1) for k in range(3))
    expected = np.abs(np.fft.fft(workload[0])).sum() ** 2 / n
    assert optimize(workload).value == pytest.approx(expected, rel=2e-6)
    assert optimize(workload, objective="largest").value == pytest.approx(expected / n, rel=2e-6)
    assert optimize(workload, objective="absolute").value == pytest.approx(
        ABSOLUTE * math.sqrt(n * expected), rel=2e-6
    )


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Invert δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) by bisection."""
    low, high = 1e-6, 50.0
    for _ in range(200):
        mu = (low + high) / 2
        spent = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
        low, high = (mu, high) if spent <= delta else (low, mu)
    return low


@pytest.mark.parametrize(("n", "expected"), [(74, 6.60), (100, 6.78)])
def test_known_mean_absolute_error_on_random_ranges(n: int, expected: float) -> None:
    mu = gaussian_mu(1, 1e-3 / 101)
    assert gaussian_mu(1, 1e-3) == pytest.approx(0.388401, abs=1e-6)
    errors = []
    for seed in range(6):
        found = optimize(ranges(n, 100, seed))
        assert found.gap <= 1e-6
        errors.append(ABSOLUTE * np.sqrt(found.variances).mean() / mu)
    assert np.mean(errors) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("workload", [ranges(100, 100, 0), binary(100, 100, 1), binary(12, 400, 2)])
def test_reaches_the_asked_gap(workload: Floats, objective: Any) -> None:
    found = optimize(workload, objective=objective)
    check(workload, found, objective)
    assert found.gap <= 1e-6
    assert found.iterations < 200


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["hilbert", "scales"])
def test_ill_conditioned_workloads_keep_a_valid_certificate(name: str, objective: Any) -> None:
    rng = np.random.default_rng(7)
    scales = rng.normal(size=(20, 12)) * 10.0 ** rng.uniform(-4, 4, size=12)
    workload = {"hilbert": 1 / (1 + np.arange(9)[:, None] + np.arange(9.0)), "scales": scales}[name]
    found = optimize(workload, objective=objective)
    assert np.abs(found.decode @ (found.encode @ workload) - workload).max() <= 1e-9 * np.abs(workload).max()
    assert 0 <= found.gap <= 1e-6


def test_many_columns_are_climbed_without_second_derivatives() -> None:
    workload = binary(12, 4000, 3)
    found = optimize(workload, gap=1e-2)
    check(workload, found)
    assert found.gap <= 1e-2
    assert found.iterations < 200


workloads = st.tuples(
    st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from([1, 3])
).map(lambda k: np.random.default_rng(k[2]).integers(-(k[3] // 3), k[3] + 1, size=k[:2]).astype(np.float64))
usable = workloads.filter(lambda table: bool(table.any()))
promise = settings(deadline=None, max_examples=40, derandomize=True)


@promise
@given(usable, st.sampled_from(OBJECTIVES), st.integers(0, 2**32 - 1))
def test_every_workload_keeps_the_promises(workload: Floats, objective: Any, seed: int) -> None:
    weights = np.random.default_rng(seed).uniform(0.1, 10, len(workload))
    found = optimize(workload, weights=weights, objective=objective)
    check(workload, found, objective, weights)
    assert found.gap <= 1e-6
    assert (found.variances[~workload.any(axis=1)] == 0).all()


@promise
@given(usable, st.sampled_from(OBJECTIVES), st.integers(0, 2**32 - 1))
def test_merging_permuting_and_scaling_change_nothing(workload: Floats, objective: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, p = workload.shape
    base = optimize(workload, objective=objective)
    columns = np.concatenate([rng.permutation(p), rng.integers(0, p, size=3)])
    repeated = np.hstack([workload[:, columns], np.zeros((m, 1))])
    found = optimize(repeated, objective=objective)
    check(repeated, found, objective)
    assert found.value == pytest.approx(base.value, rel=2e-6)
    order = rng.permutation(m)
    assert optimize(workload[order], objective=objective).value == pytest.approx(base.value, rel=2e-6)
    power = 1 if objective == "absolute" else 2
    scaled = optimize(-5.0 * workload, objective=objective).value
    assert scaled == pytest.approx(5.0**power * base.value, rel=2e-6)


@promise
@given(usable)
def test_a_gram_is_its_workload(workload: Floats) -> None:
    found = optimize_gram(workload.T @ workload)
    expected = optimize(workload)
    assert found.value == pytest.approx(expected.value, rel=2e-6)
    assert found.lower_bound <= expected.value
    assert found.precision == pytest.approx(found.strategy.T @ found.strategy, abs=1e-12)
    assert found.precision.diagonal().max() == pytest.approx(1, abs=1e-12)
    assert variances_of(workload, found.strategy).sum() == pytest.approx(found.value, rel=1e-6)


def test_rank_deficient_workload_counts_every_row() -> None:
    workload = np.vstack([CASES["deficient"], np.zeros((1, 6))])
    found = optimize(workload)
    check(workload, found)
    assert found.variances[-1] == 0
    twice = optimize(CASES["ranges"], weights=np.full(32, 2.0))
    assert optimize(np.vstack([CASES["ranges"]] * 2)).value == pytest.approx(twice.value, rel=2e-6)


def test_a_query_of_weight_zero_is_answered_when_the_others_span_it() -> None:
    workload = np.vstack([np.eye(4), np.ones((1, 4))])
    found = optimize(workload, weights=np.array([1, 1, 1, 1, 0.0]))
    assert found.variances == pytest.approx([1, 1, 1, 1, 4], rel=1e-6)
    with pytest.raises(UnsupportedQuery, match="no combination"):
        optimize(workload, weights=np.array([1, 1, 1, 0, 0.0]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_other_strategy_is_below_the_bound(objective: Any) -> None:
    """Negative control: perturbed strategies lie above the bound, and some lie below a bound 1% too high."""
    workload = ranges(20, 16, 4)
    distinct = np.unique(workload[:, workload.any(axis=0)], axis=1)
    found = optimize(distinct, objective=objective)
    weights, rng, nearest = np.ones(16), np.random.default_rng(9), math.inf
    for size in np.repeat([0.001, 0.01, 0.1], 20):
        mixing = found.encode + size * rng.normal(size=found.encode.shape)  # stays in the row space
        strategy = mixing @ distinct
        value = total(objective, weights, variances_of(distinct, strategy))
        assert value >= found.lower_bound
        nearest = min(nearest, value)
    assert nearest < 1.01 * found.lower_bound


def test_a_step_limit_reports_the_gap_it_reached() -> None:
    workload = np.tril(np.ones((20, 20)))
    found = optimize(workload, max_iterations=1)
    check(workload, found)
    assert found.iterations == 1
    assert found.gap > 0.1
    assert optimize(workload, gap=1e-9).gap <= 1e-9


@pytest.mark.parametrize(
    ("workload", "options", "error", "match"),
    [
        (np.zeros((2, 3)), {}, UnsupportedQuery, "zero"),
        (np.array([[np.nan, 1]]), {}, DomainError, "finite"),
        (np.ones(3), {}, DomainError, "matrix"),
        (np.ones((0, 3)), {}, DomainError, "matrix"),
        (np.eye(2) * 1e80, {}, DomainError, "largest entry"),
        (np.eye(2), {"weights": np.ones(3)}, DomainError, "2 finite numbers"),
        (np.eye(2), {"weights": np.array([1, -1.0])}, DomainError, "negative"),
        (np.eye(2), {"weights": np.array([1, 1e-40])}, DomainError, "factor"),
        (np.eye(2), {"weights": np.zeros(2)}, UnsupportedQuery, "weight zero"),
        (np.eye(2), {"objective": "median"}, DomainError, "objective"),
        (np.eye(2), {"gap": 0}, DomainError, "gap"),
        (np.eye(2), {"max_iterations": 0}, DomainError, "max_iterations"),
    ],
)
def test_bad_input_is_named(workload: Floats, options: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        optimize(workload, **options)


@pytest.mark.parametrize(
    ("gram", "error"),
    [(np.zeros((2, 2)), UnsupportedQuery), (-np.eye(2), DomainError), (np.ones((2, 3)), DomainError)],
)
def test_bad_gram_is_named(gram: Floats, error: type[Exception]) -> None:
    with pytest.raises(error, match="gram"):
        optimize_gram(gram)


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-5])
def test_curvature_is_that_of_the_kernel_to_two_percent(ratio: float) -> None:
    rng = np.random.default_rng(5)
    s, rows = np.geomspace(ratio, 1, 12), rng.normal(size=(7, 12))
    both = np.einsum("ak,bk,k->abk", rows, rows, s)
    exact = np.einsum("abk,abl,kl->ab", both, both, 1 / np.add.outer(s, s))
    assert np.allclose(_curvature(rows, s), exact, rtol=0.02, atol=0.02 * exact.diagonal().max())
