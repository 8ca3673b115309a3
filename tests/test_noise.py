"""Noise sources: exact distribution, low-order bits, independence, and the bound on the lattice's difference.

The exact source has no seed, so its tests are statistical.  Each accepts when its p-value is above `ALPHA`:
a false alarm has probability about 1e-7 (chi-squared with at least 50 expected a bin, Kolmogorov-Smirnov,
or a sum of 30,000 and more), and below 1e-6 for the few p-values of one test together.
Each has a negative control, wrong noise that the same test must reject; at these sample sizes a control slips
through with probability far below 1e-7.
"""

import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from laprasdp.errors import BudgetError
from laprasdp.privacy.noise import LAPLACE_LIMIT, LATTICE_BITS, TV_BOUND, ExactNoise, NoiseSource, SeededNoise

ALPHA = 1e-7
COUNT = 60_000
STEPS = 2**LATTICE_BITS
THIRD = Fraction(1 / 3)  # a rational number of 54 bits

SOURCES: dict[str, Callable[[], NoiseSource]] = {"exact": ExactNoise, "seeded": lambda: SeededNoise(20)}


@pytest.fixture(scope="module", params=SOURCES)
def source(request: pytest.FixtureRequest) -> NoiseSource:
    return SOURCES[request.param]()


@pytest.fixture(scope="module")
def normals(source: NoiseSource) -> np.ndarray:
    """Unit Gaussians of the source, in standard deviations."""
    return np.array(source.gaussian(COUNT), dtype=float) / STEPS


@pytest.fixture(scope="module")
def exact_steps() -> np.ndarray:
    return np.array(ExactNoise().gaussian(COUNT), dtype=np.int64)


# ---- tests as p-values ---------------------------------------------------------------------------


def chi_squared_normal(values: np.ndarray) -> float:
    """p-value of `values` against N(0, 1) in 100 bins of equal probability."""
    bins = np.minimum((stats.norm.cdf(values) * 100).astype(int), 99)
    return float(stats.chisquare(np.bincount(bins, minlength=100)).pvalue)


def kolmogorov_normal(values: np.ndarray) -> float:
    return float(stats.kstest(values, "norm").pvalue)


def variance_normal(values: np.ndarray) -> float:
    """p-value of the sample variance about zero, against one."""
    square = float(np.sum(values**2))
    return 2 * min(stats.chi2.cdf(square, len(values)), stats.chi2.sf(square, len(values)))


def low_bits(steps: np.ndarray, bits: int) -> float:
    """p-value of the `bits` lowest bits against uniform."""
    return float(stats.chisquare(np.bincount(steps & (2**bits - 1), minlength=2**bits)).pvalue)


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """p-value of no correlation between two columns of unit variance and mean zero."""
    return 2 * float(stats.norm.sf(abs(np.mean(first * second)) * math.sqrt(len(first))))


def chi_squared_laplace(values: np.ndarray, scale: float) -> float:
    """p-value against P(z) = tanh(1/2s)·e^(−|z|/s), one bin an integer out to the last of 100 expected."""
    mass = math.tanh(1 / (2 * scale))
    last = int(scale * math.log(mass * len(values) / 100))
    inside = [mass * math.exp(-abs(z) / scale) for z in range(-last, last + 1)]
    tail = (1 - sum(inside)) / 2
    counts = np.bincount(np.clip(values, -last - 1, last + 1) + last + 1, minlength=2 * last + 3)
    expected = np.array([tail, *inside, tail]) * len(values)
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


def variance_of_laplace(scale: int | Fraction) -> float:
    """From its definition, term by term, to 30 digits."""
    with mpmath.workdps(30):
        ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return float(mpmath.nsum(lambda z: 2 * z**2 * ratio**z, [1, mpmath.inf]) * (1 - ratio) / (1 + ratio))


def spread_of_squares(values: np.ndarray) -> float:
    """Standard error of the mean square."""
    return float((values.astype(float) ** 2).std()) / math.sqrt(len(values))


# ---- the contract of every noise source ----------------------------------------------------------


@pytest.mark.parametrize("test", [chi_squared_normal, kolmogorov_normal, variance_normal])
def test_gaussian_is_standard_normal(normals: np.ndarray, test: Callable[[np.ndarray], float]) -> None:
    assert test(normals) > ALPHA
    assert test(normals * 0.9) < ALPHA  # negative control: a tenth less noise
    assert test(normals * 1.1) < ALPHA


def test_gaussian_values_are_independent(source: NoiseSource, normals: np.ndarray) -> None:
    assert correlation(normals[:-1], normals[1:]) > ALPHA
    again = np.array(source.gaussian(COUNT), dtype=float) / STEPS
    assert correlation(normals, again) > ALPHA
    sizes = (np.abs(normals) - math.sqrt(2 / math.pi)) / math.sqrt(1 - 2 / math.pi)
    assert correlation(sizes[:-1], sizes[1:]) > ALPHA
    echo = normals[1:] * math.sqrt(1 - 0.05**2) + 0.05 * normals[:-1]  # negative control
    assert correlation(normals[:-1], echo) < ALPHA


@pytest.mark.parametrize("scale", [1, 2, 5, 30, Fraction(3, 8), Fraction(13, 8), THIRD])
def test_laplace_is_the_discrete_laplace(source: NoiseSource, scale: int | Fraction) -> None:
    values = np.array(source.laplace(COUNT, scale), dtype=np.int64)
    assert chi_squared_laplace(values, float(scale)) > ALPHA
    assert chi_squared_laplace(values, float(scale) * 0.9) < ALPHA  # negative control
    assert abs(float(values.var()) - variance_of_laplace(scale)) < 6 * spread_of_squares(values)
    centred = values / math.sqrt(np.mean(values.astype(float) ** 2))
    assert correlation(centred[:-1], centred[1:]) > ALPHA


@pytest.mark.parametrize("scale", [2**30 + 1, LAPLACE_LIMIT])
def test_laplace_of_a_large_scale(source: NoiseSource, scale: int) -> None:
    values = np.array(source.laplace(COUNT // 2, scale), dtype=float) / scale
    assert stats.kstest(values, "laplace").pvalue > ALPHA
    assert stats.kstest(values * 0.9, "laplace").pvalue < ALPHA  # negative control


def test_noise_is_python_integers_and_none_for_nothing(source: NoiseSource) -> None:
    for values in (source.gaussian(3), source.laplace(3, 7)):
        assert len(values) == 3
        assert all(type(value) is int for value in values)
    assert source.gaussian(0) == []
    assert source.laplace(0, 7) == []
    assert any(source.gaussian(4))  # all four zero has probability below 1e-60


def test_a_source_refuses_what_is_not_a_count_or_a_scale(source: NoiseSource) -> None:
    for count in (-1, 1.0, True, None):
        with pytest.raises(BudgetError, match="number of noise values"):
            source.gaussian(count)
        with pytest.raises(BudgetError, match="number of noise values"):
            source.laplace(count, 1)
    for scale in (0, -1, 0.5, True, LAPLACE_LIMIT + 1, math.inf, Fraction(1, 3), Fraction(1, 2**13)):
        with pytest.raises(BudgetError, match="scale of Laplace noise"):
            source.laplace(1, scale)


# ---- the exact source ----------------------------------------------------------------------------


def test_low_order_bits_say_nothing(exact_steps: np.ndarray) -> None:
    for bits in (1, 2, 4, 8):
        assert low_bits(exact_steps, bits) > ALPHA
    for shift in range(48):  # each bit alone; the worst of 48 at a false-alarm rate of 1e-7 in all
        assert low_bits(exact_steps >> shift, 1) > ALPHA / 48
    doubles = np.array(SeededNoise(21).gaussian(COUNT), dtype=np.int64)
    assert low_bits(doubles, 1) < ALPHA  # negative control: a double above 2 ends in an even step
    assert low_bits(exact_steps & ~np.int64(4), 4) < ALPHA


def test_low_order_bits_do_not_depend_on_the_size(exact_steps: np.ndarray) -> None:
    large = exact_steps[np.abs(exact_steps) > STEPS]
    assert low_bits(large, 4) > ALPHA
    assert low_bits(large[large > 0], 4) > ALPHA


def test_two_exact_sources_differ() -> None:
    assert ExactNoise().gaussian(4) != ExactNoise().gaussian(4)  # equal with probability below 1e-60
    assert ExactNoise.simulation is False


def test_seeded_noise_repeats_and_says_that_it_is_a_simulation() -> None:
    first, second = SeededNoise(1), SeededNoise(1)
    assert first.gaussian(5) == second.gaussian(5)
    assert first.laplace(5, 9) == second.laplace(5, 9)
    assert SeededNoise(1).gaussian(5) != SeededNoise(2).gaussian(5)
    assert SeededNoise(1).simulation is True


def test_int64_is_never_reached() -> None:
    """2048 standard deviations, 2048 Laplace scales: both tails, by the bounds that the proof uses."""
    reach = 2**63 // STEPS
    assert reach == 2048
    assert -(reach**2) / 2 + math.log(2) < -(2**20)
    assert -(2**63 - 1) / LAPLACE_LIMIT + math.log(2) < -2047


def test_what_opendp_does_beyond_int64_is_to_clamp() -> None:
    """The proof folds this in: no wrap-around, no error."""
    import opendp.prelude as dp

    ExactNoise().gaussian(1)  # enables OpenDP's feature
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    values = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=2.0**100)([0] * 50)
    assert set(values) <= {2**63 - 1, -(2**63)}


def test_opendp_is_loaded_only_for_exact_noise() -> None:
    code = (
        "import sys, laprasdp.privacy.noise as n; n.SeededNoise(1).gaussian(1); n.ExactNoise();"
        "assert not any(name.startswith('opendp') for name in sys.modules);"
        "assert n.ExactNoise().gaussian(0) == [] and 'opendp' in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# ---- the difference between lattice noise and the rounded Gaussian -------------------------------


def total_variation(scale: int) -> mpmath.mpf:
    """TV between the discrete Gaussian on the integers and N(0, scale²) rounded, out to 14 deviations."""
    reach = 14 * scale
    weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)) for k in range(reach + 1)]
    normaliser = 2 * mpmath.fsum(weights) - 1
    edges = [mpmath.erfc((k - mpmath.mpf(1) / 2) / (scale * mpmath.sqrt(2))) / 2 for k in range(reach + 2)]
    gaps = [abs(w / normaliser - (edges[k] - edges[k + 1])) for k, w in enumerate(weights)]
    return mpmath.fsum(gaps) - gaps[0] / 2


@pytest.mark.parametrize("scale", range(2, 11))
def test_total_variation_bound(scale: int) -> None:
    with mpmath.workdps(40):
        distance = total_variation(scale)
        assert distance <= mpmath.mpf(1) / (20 * scale**2)
        assert distance <= (mpmath.mpf(1) / 48) * (
            mpmath.mpf("0.968") / scale**2 + mpmath.mpf("0.756") / scale**3
        )
        assert distance >= mpmath.mpf(1) / (60 * scale**2)  # the rate is right: about 1/(49.6 s²)


def test_the_constant_of_the_lattice() -> None:
    assert Fraction(1, 20 * STEPS**2) == TV_BOUND
