"""Intervals of what follows from noisy values hold as often as they say, unbounded where they must be."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from laprasdp.derive.draws import drawn
from laprasdp.derive.laws import DrawnLaw, LinearLaw, QuantileLaw, RatioLaw, RoundedLaw, ValueLaw
from laprasdp.derive.quantiles import cumulative, quantile_of

LEVELS = (0.8, 0.9, 0.95)
DRAWS = (
    20_000  # a share of 0.8 is then within 0.003 of its mean but once in six times; 0.02 is seven of these
)


def coverage(truth: float, laws: list[ValueLaw]) -> list[float]:
    ends = [[law.interval(level) for law in laws] for level in LEVELS]
    return [float(np.mean([low <= truth <= high for low, high in each])) for each in ends]


@pytest.mark.parametrize("bottom", [30, 100, 1_000, 100_000])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.7])
@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.9])
def test_an_interval_of_a_ratio_covers_at_its_level(bottom: int, share: float, correlation: float) -> None:
    std, top = (5.0, 8.0), share * bottom
    covariance = correlation * std[0] * std[1]
    rng = np.random.default_rng(3)
    noise = rng.multivariate_normal([0, 0], [[std[1] ** 2, covariance], [covariance, std[0] ** 2]], DRAWS)
    laws: list[ValueLaw] = [
        RatioLaw(top + t, bottom + b, std[1] ** 2, std[0] ** 2, covariance) for t, b in noise
    ]
    for found, level in zip(coverage(top / bottom, laws), LEVELS, strict=True):
        assert abs(found - level) < 0.02, (found, level)
    halved: list[ValueLaw] = [
        RatioLaw(top + t, bottom + b, std[1] ** 2 / 4, std[0] ** 2 / 4, covariance / 4) for t, b in noise
    ]
    assert coverage(top / bottom, halved)[2] < 0.93  # the test can fail


def test_an_unknown_covariance_makes_an_interval_no_shorter() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        t, b, s, c = rng.normal(0, 50), rng.normal(0, 50), *rng.uniform(1, 20, 2)
        wide = RatioLaw(t, b, s**2, c**2, None)
        for correlation in (-1.0, -0.3, 0.5, 1.0):
            narrow = RatioLaw(t, b, s**2, c**2, correlation * s * c)
            for level in LEVELS:
                (a, d), (e, f) = wide.interval(level), narrow.interval(level)
                assert a <= e + 1e-9 * abs(e) or math.isinf(a)
                assert d >= f - 1e-9 * abs(f) or math.isinf(d)


def test_a_ratio_whose_denominator_may_be_zero_is_unbounded_and_has_no_std() -> None:
    law = RatioLaw(10.0, 15.0, 25.0, 100.0, 0.0)
    assert law.interval(0.95) == (-math.inf, math.inf)
    assert law.std is None
    assert all(map(math.isfinite, law.interval(0.8)))


def test_rounding_keeps_an_interval_around_the_rounded_truth() -> None:
    law = RoundedLaw(LinearLaw(12.34, 1.0), 1)
    assert law.interval(0.95) == (10.4, 14.3)
    assert law.kind == "consistent"


def deviation(moments: np.ndarray) -> float:
    n, x, xx = moments
    return math.sqrt(max((xx - x * x / n) / (n - 1), 0.0))


FUNCTIONS: dict[str, Callable[[np.ndarray], float]] = {
    "stddev": deviation,
    "product of shares": lambda v: float(v[1] / v[0] * v[2] / v[0]),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("count", [30, 300, 30_000])
def test_draws_cover_at_their_level(name: str, count: int) -> None:
    """2,000 repetitions: a share is within 0.005 to 0.009 of its mean, 0.02 is allowed, the seed is fixed."""
    function = FUNCTIONS[name]
    truth = np.array([count, 3.0 * count, 25.0 * count])
    std = np.array([0.04, 0.15, 0.6]) * count / math.sqrt(max(count / 30, 1))
    covariance = np.diag(std**2)
    covariance[0, 1] = covariance[1, 0] = 0.5 * std[0] * std[1]
    rng = np.random.default_rng(5)
    noise = rng.multivariate_normal(np.zeros(3), covariance, 2_000)
    laws: list[ValueLaw] = []
    for released in truth + noise:
        values = np.array([function(one) for one in drawn(released, covariance, 400)])
        laws.append(DrawnLaw(values))
    for found, level in zip(coverage(function(truth), laws), LEVELS, strict=True):
        assert abs(found - level) < 0.02, (found, level)


@pytest.mark.parametrize("truth", [0.5, 3.0, 6.0])
def test_draws_of_a_function_that_is_cut_off_cover_at_their_level(truth: float) -> None:
    """The root of a variance that noise may make negative; 0.04 is four standard deviations of a share."""
    around = np.array(list(drawn(np.zeros(1), np.eye(1), 400)))[:, 0]
    held = dict.fromkeys((0.8, 0.9, 0.95), 0)
    for value in np.random.default_rng(2).normal(truth, 4.0, size=2_000):
        law = DrawnLaw(np.sqrt(np.maximum(value + 4.0 * around, 0.0)))
        for level in held:
            low, high = law.interval(level)
            held[level] += low <= math.sqrt(truth) <= high
    for level, count in held.items():
        assert level - 0.04 < count / 2_000, level
    law = DrawnLaw(np.sqrt(np.maximum(1.0 + 4.0 * around, 0.0)))
    assert law.interval(1 - 1e-6) == (-math.inf, math.inf)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scale", [3, 40])
def test_an_interval_of_a_quantile_covers_at_least_at_its_level(share: float, scale: int) -> None:
    rng = np.random.default_rng(6)
    counts = rng.poisson(scale, 40).cumsum().astype(float)
    points = np.arange(40.0)
    truth = quantile_of(points, counts, share, continuous=False)
    noise = rng.normal(0, 4.0, (5_000, 40))
    stds = 4.0 * np.sqrt(np.where(points < 39, 1 + share**2, (1 - share) ** 2))
    laws: list[ValueLaw] = [
        QuantileLaw(points.tolist(), points.tolist(), counts + e - share * (counts[-1] + e[-1]), stds)
        for e in noise
    ]
    for found, level in zip(coverage(truth, laws), LEVELS, strict=True):
        assert found > level - 0.02, (found, level)


def test_an_interval_of_a_quantile_is_shorter_than_from_the_counts_as_they_were_released() -> None:
    """Of 30 rows among noise of 10 a count."""
    rng = np.random.default_rng(8)
    points = np.arange(21.0)
    counts = np.histogram(rng.binomial(20, 0.5, 30), np.arange(22))[0].cumsum()
    stds = np.where(points < 20, 10 * math.sqrt(1.25), 5.0)
    found, raw = [], []
    for e in rng.normal(0, 10.0, (500, 21)):
        above = counts + e - (counts[-1] + e[-1]) / 2
        low, high = QuantileLaw(points.tolist(), points.tolist(), above, stds).interval(0.8)
        found.append(high - low)
        z = 1.2815515655446004
        may, before = np.flatnonzero(above + z * stds >= 0), np.flatnonzero(above - z * stds <= 0)
        raw.append(min(before[-1] + 1, 20) - may[0] if len(before) else 0 - may[0])
    assert np.mean(found) < 0.8 * np.mean(raw)


def test_a_curve_is_isotone_and_quantiles_follow_it() -> None:
    rng = np.random.default_rng(7)
    curve = cumulative(np.array([3.0, 1.0, 5.0, 4.0, 9.0]))
    assert np.allclose(curve, [2.0, 2.0, 4.5, 4.5, 9.0])
    for _ in range(50):
        noisy = cumulative(rng.poisson(5, 30).cumsum() + rng.normal(0, 6, 30))
        asked = [quantile_of(np.arange(30.0), noisy, p, continuous=True) for p in np.linspace(0, 1, 21)]
        assert asked == sorted(asked)
