"""Sums of estimates: against sampled sums, and by hand."""

import math

import numpy as np
import pytest

from laprasdp.derive.estimates import JointEstimate, sum_of, sum_of_joints
from laprasdp.record.estimate import Estimate


def estimate(value, variance, source="measured", law="gaussian", parts=1.0):
    return Estimate(value, variance, source, law, parts)


def test_nothing_is_nothing():
    assert sum_of([]) is None
    assert sum_of([None, None]) is None


def test_values_and_variances_add_up():
    found = sum_of([estimate(1.5, 4.0), None, estimate(-3.0, 0.25)])
    assert found == estimate(-1.5, 4.25)
    assert sum_of([estimate(1, 1), estimate(1, 1, "replay")]).source == "mixed"


@pytest.mark.parametrize("count", [1, 2, 7])
def test_equal_laplace_parts_are_a_sum_of_so_many(count):
    found = sum_of([estimate(0, 2.0, law="laplace")] * count)
    assert (found.law, found.parts) == ("laplace", pytest.approx(count))
    assert found.variance == pytest.approx(2.0 * count)


def test_the_kurtosis_of_unequal_parts_is_kept():
    scales = [1.0, 0.5, 3.0]
    found = sum_of([estimate(0, 2 * scale**2, law="laplace") for scale in scales])
    fourth = 12 * sum(scale**4 for scale in scales)  # fourth cumulant of a Laplace variable is 12 b⁴
    assert 3 * found.variance**2 / found.parts == pytest.approx(fourth)


def test_joint_laws_add_up_where_each_is_known():
    """Two tables, the first asked for queries 0 and 2, the second for 1 and 2."""
    rng = np.random.default_rng(5)
    parts, places = {}, {"a": [0, 2], "b": [1, 2]}
    whole = np.zeros((3, 3))
    for name, own in places.items():
        root = rng.standard_normal((2, 2))
        covariance = root @ root.T
        estimates = tuple(estimate(float(i), covariance[i, i]) for i in range(2))
        parts[name] = JointEstimate(estimates, estimate(10.0, 1.0), covariance)
        spread = np.zeros((3, 2))
        spread[own, [0, 1]] = 1
        whole += spread @ covariance @ spread.T
    found = sum_of_joints(3, parts, places)
    assert found.covariance == pytest.approx(whole)
    assert [one.value for one in found.estimates] == [0.0, 0.0, 2.0]
    assert [one.variance for one in found.estimates] == pytest.approx(whole.diagonal().tolist())
    assert found.total == estimate(20.0, 2.0)
    assert math.isclose(found.estimates[2].expected_error, math.sqrt(whole[2, 2] * 2 / math.pi))


@pytest.mark.parametrize("missing", ["total", "errors"])
def test_what_one_part_lacks_the_sum_lacks(missing):
    whole = JointEstimate((estimate(1, 1),), estimate(1, 1), np.ones((1, 1)))
    part = JointEstimate((None,), **{"total": estimate(1, 1), "errors": np.ones((1, 1)), missing: None})
    found = sum_of_joints(1, {"a": whole, "b": part}, {"a": [0], "b": [0]})
    assert getattr(found, missing) is None
    assert found.estimates == (estimate(1, 1),)
