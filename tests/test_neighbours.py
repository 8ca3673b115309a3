"""Neighbours: what is charged covers a unit that is added or removed; one that changes is two steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draw import cells, workloads
from growing import FEB, JAN, MAR, entries, opened
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.privacy.budget import MU_BITS
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.strength import measure

CHARGE = Fraction(1401, 100_000)
TWO = lp.Domain(there=lp.Booleans())


def moved(measurement: Rows, tables: np.ndarray) -> float:
    """Squared distance that rows in each cell move a release: μ² of telling the two tables apart."""
    rows = measurement.coefficients @ np.array([query.vector() for query in measurement.queries])
    return float(np.square(rows @ tables).sum())


def charged(measurement: Rows, max_rows: int = 1) -> float:
    return int(measurement.amounts(max_rows).weights.max()) / 2.0**MU_BITS


@pytest.mark.parametrize(
    ("weights", "times"),
    [([[1, 0], [0, 1]], 2), ([[1, -1]], 4), ([[1, 1]], 0)],
    ids=["each cell by itself", "their difference", "their sum"],
)
def test_the_figures_of_the_page(weights: list[list[int]], times: int) -> None:
    measurement = measure([Query(TWO, {"there": [0, 1]}, row) for row in weights], CHARGE)
    assert charged(measurement) == pytest.approx(0.01401, rel=1e-9)
    assert moved(measurement, np.array([1, 0])) == pytest.approx(0.01401, rel=1e-9)  # added or removed
    assert moved(measurement, np.array([-1, 1])) == pytest.approx(times * 0.01401, rel=1e-9)  # changed


@given(st.data(), st.integers(1, 3))
def test_a_unit_more_is_covered_and_a_changed_one_is_two_steps(data: st.DataObject, most: int) -> None:
    measurement = measure(data.draw(workloads()), Fraction(1, 3), most)
    whole = measurement.queries[0].domain
    rows = st.lists(st.integers(0, len(cells(whole)) - 1), max_size=most)
    one, other = (np.bincount(data.draw(rows), minlength=whole.size)[: whole.size] for _ in range(2))
    charge = charged(measurement, most) * (1 + 1e-9)
    assert moved(measurement, one) <= charge
    assert moved(measurement, one - other) <= 4 * charge


def test_in_a_period_too() -> None:
    session = opened()
    session.ask("SELECT COUNT(*) FROM t WHERE day = '2024-01-05' GROUP BY n")
    release = next(entry for entry in entries(session)[JAN] if isinstance(entry, Release))
    assert isinstance(release.measurement, Rows)
    one, other, _ = (query.vector() for query in release.measurement.queries)
    spent = session.spent
    assert moved(release.measurement, one) == pytest.approx(spent[JAN], rel=1e-6)
    assert moved(release.measurement, one - other) == pytest.approx(2 * spent[JAN], rel=1e-6)
    assert (spent[FEB], spent[MAR]) == (0, 0)
