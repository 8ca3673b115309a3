"""Laws of errors: closed forms for one and two Laplace variables, samples for more, the Gaussian limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize

from laprasdp.privacy.law import expected_error, half_width

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


@pytest.mark.parametrize("level", LEVELS)
def test_many_are_gaussian(level: float) -> None:
    assert half_width(level, 1.0, "laplace", 1e5) == pytest.approx(half_width(level, 1.0), rel=1e-3)
    assert expected_error(1.0, "laplace", 1e5) == pytest.approx(expected_error(1.0), rel=1e-4)
