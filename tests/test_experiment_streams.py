"""What the experiments run on and are judged by: tables, streams, errors."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from experiments import data
from experiments.contender import own
from experiments.metric import errors, expected_mae, summary
from experiments.sweep import measure
from experiments.trial import Outcome
from experiments.workload import Scenario, ranges

# tables


def test_adult_is_complete() -> None:
    ages, countries = (data.Data().counts(name, 0) for name in ("adult-age", "adult-country"))
    assert (len(ages), len(countries)) == (74, 42)
    assert ages.sum() == countries.sum() == 48_842


def test_what_is_missing_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    found = data.find(tmp_path / "nowhere")
    assert found.root is None
    with pytest.raises(data.Skipped, match=r"gowalla_checkin_grid.*missing; looked in .*nowhere"):
        found.counts("gowalla-grid", 0)


def test_the_data_directory_is_found_beside_the_checkout_or_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "checkout" / "deep").mkdir(parents=True)
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(data, "__file__", str(tmp_path / "checkout" / "deep" / "data.py"))
    assert data.find().root == tmp_path / "shared" / "data"
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.find().root == tmp_path
    assert data.find(tmp_path / "checkout").root == tmp_path / "checkout"


def test_checkins_are_counted_by_location(tmp_path: Path) -> None:
    lines = [f"{i}\t2010-10-19T23:55:27Z\t30.2\t-97.7\t{place}" for i, place in enumerate([7, 3, 7, 7, 12])]
    file = tmp_path / data.CHECKINS
    file.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    assert data.checkins(file).tolist() == [1, 3, 1]
    assert data.find(tmp_path).checkins == file
    assert data.GOWALLA in data.find(tmp_path).datasets
    with pytest.raises(data.Skipped, match="gone is missing"):
        data.checkins(tmp_path / "gone")


# streams


def test_ranges_are_all_contiguous_intervals() -> None:
    rows = ranges(5)
    assert len(rows) == len(np.unique(rows, axis=0)) == 15
    for row in rows:
        ones = np.flatnonzero(row)
        assert np.array_equal(ones, np.arange(ones[0], ones[-1] + 1))


@pytest.mark.parametrize(("overlap", "hits"), [(0.0, 0), (0.3, 30), (0.7, 70), (1.0, 100)])
def test_a_stream_has_the_papers_share_of_predictions(overlap: float, hits: int) -> None:
    trial = Scenario("adult-age", overlap).trial(data.Data(), 0, 1)
    predicted = {row.tobytes() for row in trial.predictions}
    universe = {row.tobytes() for row in ranges(74)}
    asked = [row.tobytes() for row in trial.stream]
    assert len(predicted) == 100
    assert predicted <= universe
    assert len(set(asked)) == 100
    assert sum(text in predicted for text in asked) == hits
    assert set(np.unique(trial.stream)) <= {0, 1}
    found = [text in predicted for text in asked]
    assert hits in (0, 100) or found not in (sorted(found), sorted(found, reverse=True))  # mixed
    others = trial.stream[[not hit for hit in found]]
    assert not len(others) or abs(others.mean() - 0.5) < 0.5 / math.sqrt(others.size) * 5.5


def test_overlaps_of_a_run_share_predictions_and_runs_do_not() -> None:
    one, other, next_run = (
        Scenario("adult-age", overlap).trial(data.Data(), 0, at)
        for overlap, at in ((0.1, 0), (0.9, 0), (0.9, 1))
    )
    assert np.array_equal(one.predictions, other.predictions)
    assert not np.array_equal(other.predictions, next_run.predictions)


@pytest.mark.parametrize(("order", "first"), [("bad-first", False), ("good-first", True)])
def test_an_order_puts_one_kind_first(order: str, first: bool) -> None:
    trial = Scenario("adult-age", 0.4, 20, predicted=20, order=order, family="point").trial(data.Data(), 0, 0)
    predicted = {row.tobytes() for row in trial.predictions}
    found = [row.tobytes() in predicted for row in trial.stream]
    assert found == sorted(found, reverse=first)
    assert sum(found) == 8
    assert all(row.sum() == 1 for row, hit in zip(trial.stream, found, strict=True) if not hit)


def test_a_shorter_stream_is_paced_for_its_horizon() -> None:
    trial = Scenario("adult-age", 0.5, 100, 50, 50).trial(data.Data(), 0, 0)
    assert (len(trial.stream), trial.horizon, len(trial.predictions)) == (50, 100, 50)


# errors


def test_errors_by_hand() -> None:
    found = errors(np.array([10.0, 0.0, 4.0, 6.0]), np.array([13.0, 1.0, math.nan, 6.0]))
    assert found == pytest.approx(
        {
            "mae": 2.0,
            "rmse": math.sqrt(26 / 4),
            "nmae": 2.0 / 5.0,
            "nrmse": math.sqrt(26 / 4) / 10.0,
            "mape": (0.3 + 1.0 + 1.0 + 0.0) / 4,
            "smape": (6 / 23 + 2.0 + 2.0 + 0.0) / 4,
            "answered": 0.75,
            "mae_answered": 4 / 3,
        }
    )


def test_expected_error_of_refused_and_answered_queries() -> None:
    nothing = np.array([math.nan, 0.0])
    outcome = Outcome(nothing, np.array([math.nan, 2.0]), 1.0, 0.0, 0.0)
    assert expected_mae(np.array([-3.0, 5.0]), outcome) == pytest.approx((3 + 2 * math.sqrt(2 / math.pi)) / 2)
    sums = Outcome(np.zeros(2), np.full(2, 1.0), 1.0, 0.0, 0.0, "laplace", np.array([1.0, 1e6]))
    assert sums.expected_errors == pytest.approx([1 / math.sqrt(2), math.sqrt(2 / math.pi)], rel=1e-5)
    counted = measure(Scenario("adult-age", 1.0), own("laplace-counts"), data.Data(), 0, 25)
    assert counted["expected_mae"] == pytest.approx(5.066, abs=0.01)  # less if each answer were one count
    unknown = Outcome(np.zeros(2), np.array([math.nan, 2.0]), 1.0, 0.0, 0.0, "laplace")
    assert unknown.expected_errors[1] == pytest.approx(math.sqrt(2))
    assert math.isnan(expected_mae(np.zeros(2), unknown))


def test_a_summary_has_medians_and_bounds() -> None:
    truth = [np.array([0.0, 2.0])] * 3
    outcomes = [
        Outcome(np.array([a, 2.0]), np.full(2, 1.0), e, 0.0, 0.0) for a, e in ((2, 1.0), (6, 1.5), (20, 1.0))
    ]
    row = summary(truth, outcomes)
    assert (row["mae"], row["mae_min"], row["mae_max"], row["epsilon_true"]) == (3.0, 1.0, 10.0, 1.5)
