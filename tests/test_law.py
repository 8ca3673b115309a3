"""Laws of errors: closed forms for one and two Laplace variables, samples for more, the Gaussian limit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

from laprasdp.privacy.law import expected_error, half_width, ratio_of

LEVELS = [0.01, 0.5, 0.9, 0.95, 0.999]


@pytest.mark.parametrize("level", LEVELS)
def test_one_laplace_variable(level: float) -> None:
    assert half_width(level, 3.0, "laplace") == pytest.approx(-math.log1p(-level) * 3 / math.sqrt(2))
    assert half_width(level, 3.0, "laplace", 1 + 1e-9) == pytest.approx(
        half_width(level, 3.0, "laplace"), rel=2e-3
    )


@pytest.mark.parametrize("level", LEVELS)
def test_two_laplace_variables_of_scale_one(level: float) -> None:
    # their sum has density (1 + |x|) e^-|x| / 4, so P(|X| > t) = (1 + t/2) e^-t; its deviation is 2
    exact = scipy.optimize.brentq(lambda t: 1 - (1 + t / 2) * math.exp(-t) - level, 0, 50)
    assert half_width(level, 2.0, "laplace", 2) == pytest.approx(exact, rel=2e-3)
    assert expected_error(2.0, "laplace", 2) == pytest.approx(1.5)


@pytest.mark.parametrize("parts", [3, 17])
def test_more_of_them_by_samples(parts: int) -> None:
    rng = np.random.default_rng(parts)
    sums = np.abs(rng.laplace(size=(400_000, parts)).sum(axis=1))
    std = math.sqrt(2 * parts)
    for level in (0.5, 0.9, 0.95, 0.99):
        inside = float((sums <= half_width(level, std, "laplace", parts)).mean())
        assert abs(inside - level) < 4 * math.sqrt(level * (1 - level) / len(sums))
    wrong = float((sums <= half_width(0.5, std, "gaussian")).mean())
    assert abs(wrong - 0.5) > 4 * math.sqrt(0.25 / len(sums))
    assert expected_error(std, "laplace", parts) == pytest.approx(float(sums.mean()), rel=0.005)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_whole_numbers_by_adding_up_their_law(epsilon: Fraction, parts: int) -> None:
    reach = math.ceil(60 / epsilon)
    one = np.exp(-float(epsilon) * np.abs(np.arange(-reach, reach + 1)))
    one, mass = one / one.sum(), np.ones(1)
    for _ in range(parts):
        mass = np.convolve(mass, one)
    sizes = np.abs(np.arange(len(mass)) - len(mass) // 2)
    std = math.sqrt(float(mass @ sizes**2))
    assert ratio_of(std**2 / parts) == pytest.approx(math.exp(-epsilon), rel=1e-9)
    assert expected_error(std, "geometric", parts) == pytest.approx(float(mass @ sizes), rel=1e-7)
    for level in LEVELS:
        half = half_width(level, std, "geometric", parts)
        assert half == int(half)
        assert float(mass[sizes <= half].sum()) >= level - 1e-9
        assert float(mass[sizes < half].sum()) < level + 1e-9  # a whole number less would not do
    wrong = half_width(0.95, std, "laplace", parts)  # negative control: the law on the line
    assert epsilon < 1 or parts > 1 or float(mass[sizes <= wrong].sum()) < 0.95


def test_a_large_scale_is_as_good_as_the_line() -> None:
    for std in (1_999.0, 2_001.0):
        assert half_width(0.9, std, "geometric") == pytest.approx(half_width(0.9, std, "laplace"), rel=1e-3)
        assert expected_error(std, "geometric", 3) == pytest.approx(
            expected_error(std, "laplace", 3), rel=1e-4
        )


@pytest.mark.parametrize("level", LEVELS)
def test_many_are_gaussian(level: float) -> None:
    assert half_width(level, 1.0, "laplace", 1e5) == pytest.approx(half_width(level, 1.0), rel=1e-3)
    assert expected_error(1.0, "laplace", 1e5) == pytest.approx(expected_error(1.0), rel=1e-4)
