"""The baselines keep their budgets, and do what the papers that they come from promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from experiments.baselines.cachedp import Cache, CacheDP, affordable, cheapest
from experiments.baselines.laplace import refined
from experiments.baselines.pmw import PMW, AboveThreshold, Server
from experiments.baselines.privatesql import PrivateSQL
from experiments.baselines.published import published_unsound
from experiments.baselines.tree import Tree
from experiments.trial import Floats, Method, Outcome, Trial
from laprasdp import Budget
from laprasdp.privacy.gaussian import delta_of
from laprasdp.strategy.optimize import optimize

RARE = 1e-6
"""False alarms of a statistical test."""


def make_trial(
    overlap: float, seed: int, *, cells: int = 74, horizon: int = 100, rows: int = 10_000, known: bool = True
) -> Trial:
    """The paper's workload: predicted ranges, unpredicted random 0/1 queries, random order."""
    rng = np.random.default_rng(seed)
    place = np.arange(cells)
    ends = [(i, j) for i in range(cells) for j in range(i + 1, cells + 1)]
    chosen = rng.choice(len(ends), min(100, len(ends)), replace=False)
    predictions = np.array([(place >= ends[c][0]) & (place < ends[c][1]) for c in chosen], dtype=np.int64)
    hits = int(overlap * horizon + 1e-9)
    stream = np.concatenate([predictions[:hits], rng.integers(0, 2, (horizon - hits, cells))])
    shape = np.exp(-((place - 0.3 * cells) ** 2) / (0.08 * cells**2))
    counts = rng.multinomial(rows, shape / shape.sum())
    return Trial(counts, predictions, rng.permutation(stream), Budget(1, 1e-3), overlap if known else None)


def mean_expected(outcome: Outcome) -> float:
    return float(np.nanmean(outcome.expected_errors))


# The paper's arithmetic

PRINTED = {  # Table 2, Adult, Static
    "query-heavy": {0.0: 201.7689, 0.1: 181.1706, 0.2: 145.9802, 0.3: 119.6441, 0.4: 105.7823, 0.5: 89.0490},
    "matrix-heavy": {
        0.0: 368.5622,
        0.1: 324.4794,
        0.2: 254.2288,
        0.3: 200.7279,
        0.4: 149.6603,
        0.5: 123.4891,
    },
}


@pytest.mark.parametrize("split", PRINTED)
def test_the_double_counting_explains_the_printed_static_numbers(split: str) -> None:
    method = published_unsound("static", split)
    for overlap, printed in PRINTED[split].items():
        trials = [make_trial(overlap, seed) for seed in range(10)]
        ours = np.mean([mean_expected(method(trial, seed)) for seed, trial in enumerate(trials)])
        assert ours == pytest.approx(printed, rel=0.2)


def test_the_printed_numbers_cost_seven_sixths_of_the_budget() -> None:
    assert published_unsound("static", "query-heavy")(make_trial(0, 0), 0).epsilon_true == pytest.approx(
        7 / 6
    )
    assert published_unsound("smooth", "query-heavy")(make_trial(0, 0), 0).epsilon_true == 1


def test_smooth_at_overlap_zero_is_an_equal_share_of_its_pool() -> None:
    outcome = published_unsound("smooth", "query-heavy")(make_trial(0, 0), 0)
    assert mean_expected(outcome) == pytest.approx(277.9, rel=0.02)


# CacheDP


@given(
    cells=st.integers(1, 20), fanout=st.integers(2, 5), seed=st.integers(0, 2**32), levels=st.integers(1, 63)
)
@settings(max_examples=50, deadline=None)
def test_a_tree_is_least_squares(cells: int, fanout: int, seed: int, levels: int) -> None:
    tree, rng = Tree(cells, fanout), np.random.default_rng(seed)
    used = np.array([levels >> level & 1 for level in range(tree.height + 1)], dtype=float)
    weights = used * rng.uniform(0.5, 2, tree.height + 1)
    rows = np.concatenate(
        [np.kron(np.eye(fanout**i), np.ones(int(size))) for i, size in enumerate(tree.sizes)]
    )
    each = np.concatenate([np.full(fanout**i, weight) for i, weight in enumerate(weights)])
    inverse = np.linalg.pinv(rows.T @ (each[:, None] * rows), rcond=1e-9)
    noisy = [rng.normal(size=fanout**i) for i in range(tree.height + 1)]
    expected = inverse @ rows.T @ (each * np.concatenate(noisy))
    np.testing.assert_allclose(tree.estimate(noisy, weights), expected[:cells], atol=1e-9)
    query = rng.integers(0, 2, cells)
    wide = np.zeros(len(inverse))
    wide[:cells] = query
    inside = np.allclose(rows.T @ (each[:, None] * rows) @ inverse @ wide, wide, atol=1e-9)
    found = tree.variances(tree.energies(query), weights)
    assert found == pytest.approx(wide @ inverse @ wide) if inside else found == math.inf


def make_cache(seed: int = 0, cells: int = 64, fanout: int = 2, epsilon: float = 1.0) -> Cache:
    rng = np.random.default_rng(seed)
    return Cache(Tree(cells, fanout), rng.integers(0, 100, cells), epsilon, rng)


def test_a_query_in_the_row_space_of_the_cache_costs_nothing() -> None:
    cache = make_cache()
    first = (np.arange(64) < 32).astype(int)
    energies = cache.tree.energies
    cache.ask(first, energies(first), 50.0)
    spent = cache.epsilon - cache.left
    assert spent == pytest.approx(math.sqrt(2 / 50), rel=1e-6)
    for free in (first, 1 - first):
        _, std = cache.ask(free, energies(free), 50.0)
        assert std <= math.sqrt(50)
    assert cache.epsilon - cache.left == spent
    other = np.random.default_rng(1).permutation(first)
    cache.ask(other, energies(other), 5000.0)
    assert cache.epsilon - cache.left > spent


def test_relaxing_privacy_is_cheaper_than_a_fresh_release() -> None:
    cache = make_cache()
    row = np.ones(64, dtype=int)
    energies = cache.tree.energies(row)
    cache.ask(row, energies, 200.0)
    before, spent = cache.variance(energies), cache.epsilon - cache.left
    cache.ask(row, energies, 50.0)
    paid = cache.epsilon - cache.left - spent
    assert cache.variance(energies) <= 50 < before
    # A fresh release beside the old one needs 1/50 - 1/200 more precision, at b²= 2 a unit of precision.
    assert paid < 0.6 * math.sqrt(2 * (1 / 50 - 1 / before))
    assert paid == pytest.approx(math.sqrt(2 / 50) - math.sqrt(2 / before), rel=1e-6)


def kept_law(noise: Floats, scale: float) -> float:
    return float(stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue)


def test_refined_noise_is_laplace_and_the_old_is_it_plus_independent_noise() -> None:
    rng = np.random.default_rng(5)
    old = rng.laplace(0, 1 / 0.3, 100_000)
    new = refined(old, 0.3, 0.8, rng)
    assert kept_law(new, 1 / 0.8) > RARE
    added = old - new
    kept = added == 0
    assert stats.binomtest(int(kept.sum()), len(kept), (0.3 / 0.8) ** 2).pvalue > RARE
    assert kept_law(added[~kept], 1 / 0.3) > RARE
    assert stats.pearsonr(added, new).pvalue > RARE
    assert stats.spearmanr(np.abs(added), np.abs(new)).pvalue > RARE
    # Negative controls: other noise, and a correlation that is there, are found out.
    assert kept_law(new / 2, 1 / 0.8) < RARE
    assert stats.spearmanr(np.abs(old), np.abs(new)).pvalue < RARE


def test_cached_counts_have_the_noise_that_was_paid_for() -> None:
    def errors(levels: list[list[float]]) -> Floats:
        cache = Cache(Tree(4096, 4096), np.zeros(4096, dtype=np.int64), 1.0, np.random.default_rng(7))
        for bought in levels:
            cache.buy(np.array(bought))
        return np.array([cache.ask(row, np.zeros(2), 1.0)[0] for row in np.eye(4096, dtype=np.int64)])

    for levels in ([[0.0, 0.6]], [[0.0, 0.1], [0.0, 0.3], [0.0, 0.6]]):
        assert kept_law(errors(levels), 1 / 0.6) > RARE
        assert kept_law(errors(levels), 1 / 0.75) < RARE  # the test can fail


def test_a_cached_count_is_refined_and_not_drawn_anew() -> None:
    cache = Cache(Tree(4096, 4096), np.zeros(4096, dtype=np.int64), 1.0, np.random.default_rng(8))
    cells = np.eye(4096, dtype=np.int64)
    answers = []
    for scale in (0.3, 0.6):
        cache.buy(np.array([0.0, scale]))
        answers.append(np.array([cache.ask(row, np.zeros(2), 1.0)[0] for row in cells]))
    kept = np.isclose(answers[0], answers[1], rtol=1e-12, atol=0)
    assert stats.binomtest(int(kept.sum()), len(kept), (0.3 / 0.6) ** 2).pvalue > RARE


@given(seed=st.integers(0, 2**32), fanout=st.integers(2, 6), cells=st.integers(2, 40), scale=st.floats(-3, 6))
@settings(max_examples=40, deadline=None)
def test_a_cache_never_passes_its_budget(seed: int, fanout: int, cells: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    cache = make_cache(seed, cells, fanout)
    for row in rng.integers(0, 2, (30, cells)):
        before = cache.levels
        _, std = cache.ask(row, cache.tree.energies(row), 10 ** (scale + rng.uniform(-2, 2)))
        assert (cache.levels >= before).all()
        assert cache.levels.sum() <= 1 + 1e-12
        assert math.isnan(std) or std**2 == pytest.approx(cache.variance(cache.tree.energies(row)))
    with pytest.raises(ValueError, match="at most the budget"):
        cache.buy(cache.levels + 1)


def test_the_cheapest_purchase_is_no_dearer_than_any_tried_by_hand() -> None:
    tree, rng = Tree(64, 4), np.random.default_rng(2)
    cached = np.array([0.1, 0.0, 0.2, 0.05])
    energies = tree.energies(rng.integers(0, 2, 64))
    found = cheapest(tree, cached, energies, 60.0)
    assert found is not None
    assert tree.variances(energies, found**2 / 2) <= 60
    for scale in np.geomspace(0.01, 10, 400):
        for low in range(4):
            for high in range(low, 4):
                paid = cached.copy()
                paid[low : high + 1] = np.maximum(cached[low : high + 1], scale)
                if tree.variances(energies, paid**2 / 2) <= 60:
                    assert paid.sum() >= found.sum() * (1 - 1e-6)


def test_a_rehearsal_finds_what_the_budget_affords() -> None:
    tree = Tree(64, 64)
    stream = tree.energies(np.eye(64, dtype=np.int64))
    required, deviation = affordable(tree, np.zeros(2), stream, 1.0)
    assert required == pytest.approx(2.0, rel=0.03)  # all cells at ε = 1: variance 2
    assert deviation == pytest.approx(math.sqrt(2), rel=0.03)


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_cachedp_lasts_the_stream_and_uses_its_predictions(overlap: float) -> None:
    trial = make_trial(overlap, 1)
    outcome = CacheDP()(trial, 1)
    assert outcome.epsilon_true == 1
    assert np.isfinite(outcome.answers).all()
    errors = np.abs(outcome.answers - trial.truth)
    assert (errors < 12 * outcome.stds).all()
    # One noisy histogram with Laplace noise at ε = 1 answers a query on half of all cells within 8.6.
    assert np.mean(outcome.stds) < 10
    assert np.mean(errors) < 12


# Private multiplicative weights


@pytest.mark.parametrize("rows", [1_000, 100_000])
@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_pmw_never_passes_its_budget(rows: int, overlap: float) -> None:
    trial = make_trial(overlap, 3, rows=rows)
    server = Server(trial, PMW(), np.random.default_rng(3))
    hard = server.updates
    for row in [*trial.predictions, *trial.stream, *trial.stream]:
        server.ask(row)
        assert delta_of(math.sqrt(server.spent), 1.0) <= 1e-3
    assert server.updates < hard
    if rows == 100_000 and overlap == 0:  # all updates are used, and with them all of the budget
        assert server.updates == 0
        assert server.spent == pytest.approx(trial.budget.mu**2, rel=1e-9)


def test_pmw_answers_easy_queries_from_its_state_for_nothing() -> None:
    trial = make_trial(0, 4)
    server = Server(trial, PMW(threshold=1e6), np.random.default_rng(4))
    spent = server.spent
    for row in trial.stream:
        assert server.ask(row) == pytest.approx(server.rows * row.mean())  # the state is still uniform
    assert server.spent == spent


def test_the_error_of_pmw_falls_with_the_number_of_rows() -> None:
    def error(rows: int) -> float:
        """Of a share of the table, median over runs."""
        trials = [make_trial(0.5, seed, rows=rows) for seed in range(3)]
        errors = [np.abs(PMW()(trial, 0).answers - trial.truth).mean() / rows for trial in trials]
        return float(np.median(errors))

    errors = [error(rows) for rows in (1_000, 10_000, 100_000)]
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2


def loss(run: AboveThreshold, value_scale: float, below: int) -> float:
    """Largest loss over k values below the threshold and one above, each moved by one the worst way."""
    shift = np.linspace(-60, 60, 60_001) * run.threshold_scale
    density = np.exp(-np.abs(shift) / run.threshold_scale)

    def chance(move: float) -> float:
        low = stats.laplace.cdf(shift - move, scale=value_scale) ** below
        return float(np.trapezoid(density * low * stats.laplace.sf(shift + move, scale=value_scale), shift))

    return math.log(chance(0) / chance(1))


def test_comparing_with_a_threshold_keeps_its_epsilon() -> None:
    run = AboveThreshold(0.5, np.random.default_rng(0))
    losses = [loss(run, run.value_scale, below) for below in (0, 1, 10, 1000, 100_000)]
    assert max(losses) <= 0.5 + 1e-6
    assert max(losses) > 0.45
    # Negative control: the scale 1/ε₂, of a variant that is not private, passes ε.
    assert max(loss(run, run.value_scale / 2, below) for below in (1000, 100_000)) > 0.55


# PrivateSQL


def test_a_synopsis_answers_everything_within_its_exact_deviation() -> None:
    trial = make_trial(0.5, 5, cells=8, horizon=10)
    outcomes = [PrivateSQL()(trial, seed) for seed in range(1000)]
    scaled = np.array([(outcome.answers - trial.truth) / outcome.stds for outcome in outcomes])
    assert np.isfinite(scaled).all()
    low, high = stats.chi2.interval(1 - RARE, len(scaled))
    for place in (0, -1):
        squares = (scaled[:, place] ** 2).sum()
        assert low < squares < high
        assert 0.8**2 * squares < low  # the test can fail
        assert stats.kstest(scaled[:, place], stats.norm.cdf).pvalue > RARE


def test_a_synopsis_is_tuned_to_the_predictions() -> None:
    trial = make_trial(1, 6)
    optimum = math.sqrt(2 / math.pi) * np.sqrt(optimize(trial.predictions.astype(float)).variances).mean()
    expected = mean_expected(PrivateSQL()(trial, 0))
    assert 0.98 * optimum / trial.budget.mu <= expected <= 1.1 * optimum / trial.budget.mu
    assert expected < 0.5 * mean_expected(PrivateSQL()(make_trial(0, 6), 0))


def test_without_predictions_a_synopsis_is_a_histogram() -> None:
    trial = make_trial(0, 7)
    blind = Trial(trial.counts, np.zeros((0, 74), dtype=np.int64), trial.stream, trial.budget)
    expected = np.sqrt(trial.stream.sum(axis=1)) / trial.budget.mu
    np.testing.assert_allclose(PrivateSQL()(blind, 0).stds, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "method", [CacheDP(), PMW(), PrivateSQL(), published_unsound()], ids=lambda method: type(method).__name__
)
def test_a_seed_settles_the_answers_and_no_prediction_is_needed(method: Method) -> None:
    trial = make_trial(0.5, 8, cells=12, horizon=10, known=False)
    blind = Trial(trial.counts, np.zeros((0, 12), dtype=np.int64), trial.stream, trial.budget, horizon=50)
    for each in (trial, blind):
        first, second, third = (method(each, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first.answers, second.answers)
        assert not np.array_equal(first.answers, third.answers)
        assert first.answers.shape == first.stds.shape == (10,)
