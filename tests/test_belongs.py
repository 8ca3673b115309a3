"""HAVING and LIMIT choose by noisy values: how probably each group is among the rows of the truth."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from exact import Beside
from small_table import small_table

from laprasdp.derive.estimates import JointEstimate
from laprasdp.record.estimate import Estimate
from laprasdp.stream.resultset import LeftOut, ResultRow
from laprasdp.stream.worked import rows_of


@pytest.fixture(scope="module")
def table() -> Beside:
    return small_table()


def asked(
    table: Beside, text: str, std: float, seed: int | None = None
) -> tuple[list[ResultRow], list[LeftOut]]:
    """The rows of a statement whose counts are released with independent errors; none without a seed."""
    statement = table.reader.parse(text)
    assert statement.result is not None
    exact = np.array([one.value for one in table.exact(statement).estimates if one])
    errors = np.zeros(len(exact)) if seed is None else np.random.default_rng(seed).normal(0, std, len(exact))
    estimates = tuple(Estimate(float(one), std**2, "measured") for one in exact + errors)
    _, rows, left_out = rows_of(statement.result, JointEstimate(estimates, None, np.eye(len(exact)) * std**2))
    return list(rows), list(left_out)


def chances(rows: list[ResultRow], left_out: list[LeftOut]) -> dict[Any, float]:
    found = {one.group["a"]: one.belongs for one in left_out}
    for row in rows:
        assert row.belongs is not None
        found[row.group["a"]] = row.belongs
    return found


def test_the_probability_of_a_threshold_is_the_normal_one(table: Beside) -> None:
    """At 400 fixed draws: within 5 standard deviations of the share."""
    counts = dict(table.theirs("SELECT a, COUNT(*) FROM t GROUP BY a"))
    found = chances(*asked(table, "SELECT a, COUNT(*) AS c FROM t GROUP BY a HAVING c > 650", 40.0))
    for a, count in counts.items():
        right = NormalDist().cdf((count - 650) / 40)
        if right > 0.02:
            assert found[a] == pytest.approx(right, abs=5 * math.sqrt(right * (1 - right) / 400) + 1e-9)


def test_a_group_is_told_of_exactly_where_it_may_be_on_the_other_side(table: Beside) -> None:
    rows, left_out = asked(table, "SELECT a, COUNT(*) AS c FROM t GROUP BY a HAVING c > 650", 0.001)
    assert not left_out
    assert {row.belongs for row in rows} == {1.0}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, COUNT(*) AS c FROM t GROUP BY a ORDER BY c DESC LIMIT 3",
        "SELECT a, COUNT(*) AS c FROM t GROUP BY a ORDER BY 2 DESC LIMIT 3",
        "SELECT a, COUNT(*) AS c FROM t GROUP BY a QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 3",
        "SELECT a, c FROM (SELECT a, COUNT(*) AS c FROM t GROUP BY a) ORDER BY c DESC LIMIT 3",
        "WITH r AS (SELECT a,rank() OVER (ORDER BY COUNT(*) DESC) n FROM t GROUP BY a) FROM r WHERE n < 4",
        "SELECT a, row_number() OVER (ORDER BY COUNT(*) DESC) AS n FROM t GROUP BY a ORDER BY n LIMIT 3",
    ],
)
def test_every_spelling_of_the_top_three_tells_the_same(text: str, table: Beside) -> None:
    found = chances(*asked(table, text, 60.0))
    plain = chances(*asked(table, "SELECT a, COUNT(*) AS c FROM t GROUP BY a ORDER BY c DESC LIMIT 3", 60.0))
    assert found == plain
    assert sum(found.values()) == pytest.approx(3, abs=0.05)  # but for those below 1%
    assert 0 < min(found.values()) < max(found.values()) <= 1


def test_a_ratio_an_offset_and_a_union_know_it_too(table: Beside) -> None:
    text = "SELECT a, AVG(n) AS m FROM t GROUP BY a ORDER BY m DESC LIMIT 2 OFFSET 1"
    assert sum(chances(*asked(table, text, 5.0)).values()) == pytest.approx(2, abs=0.05)
    text = "SELECT a, COUNT(*) AS c FROM t GROUP BY a HAVING c > 650 UNION ALL SELECT 9, COUNT(*) FROM t"
    rows, _ = asked(table, text, 40.0)
    assert all(row.belongs is not None for row in rows)


@pytest.mark.parametrize(
    "text",
    ["SELECT a, COUNT(*) + 0 FROM t GROUP BY a", "SELECT a, COUNT(*) * 1 FROM t GROUP BY a HAVING a > 2"],
)
def test_what_chooses_by_keys_alone_has_no_probability(text: str, table: Beside) -> None:
    rows, left_out = asked(table, text, 40.0)
    assert not left_out
    assert {row.belongs for row in rows} == {None}


def test_probabilities_are_calibrated(table: Beside) -> None:
    """
    Of 300 noisy top threes: about as many groups of each probability belong as it says.

    A share of k independent groups differs by 0.12 at most, five standard deviations at k = 300.
    """
    text = "SELECT a, COUNT(*) AS c FROM t GROUP BY a ORDER BY c DESC LIMIT 3"
    counts = dict(table.theirs("SELECT a, COUNT(*) FROM t GROUP BY a"))
    top = sorted(counts, key=lambda a: -counts[a])[:3]
    said, held = [], []
    for seed in range(300):
        for a, chance in chances(*asked(table, text, 60.0, seed)).items():
            said.append(chance)
            held.append(a in top)
    chance, right = np.array(said), np.array(held)
    sure = chance > 0.9
    assert sure.sum() > 300
    assert right[sure].mean() == pytest.approx(chance[sure].mean(), abs=0.12)
