"""The experiments: tables, streams, errors, the runner, and every experiment at its smallest."""

from __future__ import annotations

import doctest
import gzip
import itertools
import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import threadpoolctl

import laprasdp as lp
from experiments import brush, data, idebench, run
from experiments.__main__ import NAMES, main, named
from experiments.comparison import compare, printed
from experiments.contender import INDEPENDENT, OFFLINE, lapras, own
from experiments.experiment import Cell
from experiments.metric import errors, expected_mae, summary
from experiments.store import Store
from experiments.sweep import measure
from experiments.tables import estimator, predictor
from experiments.trial import Outcome, Trial
from experiments.workload import BUDGET, Scenario, ranges
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.datasets import path
from laprasdp.pacing.estimate import estimate_unpredicted
from laprasdp.sql.parse import parse

ISSUE = ["dataset", "S", "n", "overlap", "method", "split", "accounting", "mae", "mae_min", "mae_max"]
ISSUE += ["expected_mae", "answered", "epsilon_true", "printed"]
WORKFLOW: list[dict[str, Any]] = [
    {"name": "a", "binning": [{"dimension": "UNIQUE_CARRIER"}]},
    {"name": "b", "binning": [{"dimension": "ORIGIN_STATE_ABR"}, {"dimension": "DISTANCE", "width": 9.0}]},
    {"name": "b", "source": "a"},
    {"name": "a", "selection": "((UNIQUE_CARRIER = 'AA') or (UNIQUE_CARRIER = 'DL'))"},
    {"name": "b", "filter": "((TAXI_IN >= 4.0 and TAXI_IN < 9.0)) and ((ORIGIN_STATE_ABR = 'CA'))"},
    {"name": "c", "binning": [{"dimension": "DISTANCE", "width": 9.0}]},
    {"name": "c", "filter": "((ORIGIN_STATE_ABR = 'CA') or (ORIGIN_STATE_ABR = 'TX'))"},
]
VIEWS: list[dict[str, Any]] = [
    {"name": "DISTANCE", "binning": [{"width": 100.0, "reference": 0}]},
    {"name": "ARR_TIME", "binning": [{"width": 1.0, "reference": 0}]},
]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> data.Data:
    """A data directory with one made workflow, brushes of five made people, and nothing else."""
    monkeypatch.setitem(predictor.SIZES, "brushes", (500,))  # to compare sizes takes a while
    folder = tmp_path / "data" / "idebench" / "default_workflows"
    folder.mkdir(parents=True)
    (folder / "made.json").write_text(json.dumps({"interactions": WORKFLOW}))
    workloads = tmp_path / "data" / "workloads"
    workloads.mkdir()
    (workloads / "crossfilter_setup.json").write_text(json.dumps({"flights": VIEWS}))
    rng, views = np.random.default_rng(0), [(view["name"], view["binning"][0]["width"]) for view in VIEWS]
    brushes = [
        ("flights", f"user {user}", str(place // 30), name, low * width, (low + size) * width)
        for user in range(5)
        for place in range(60)
        for (name, width), low, size in [(views[place // 9 % 2], *(3 * rng.integers(0, 4, 2)).tolist())]
    ]
    columns = ["dataset", "user", "task", "dimension", "lo", "hi"]
    pd.DataFrame(brushes, columns=columns).to_parquet(workloads / "crossfilter_traces.parquet")
    return data.Data(tmp_path / "data")


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
    assert counted["expected_mae"] == pytest.approx(5.30, abs=0.01)  # 4.73 if each answer were one count
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


# methods


def test_exact_errors_that_the_theory_gives() -> None:
    scenario = Scenario("adult-age", 0.0)
    basic, gaussian = (measure(scenario, one, data.Data(), 0, 2) for one in INDEPENDENT)
    assert basic["expected_mae"] == pytest.approx(194.74, abs=0.05)
    assert gaussian["expected_mae"] == pytest.approx(20.54, abs=0.01)
    assert 150 < basic["mae"] < 250
    errors_ = [
        measure(scenario, one, data.Data(), 0, 1)["expected_mae"]
        for one in lapras(("smooth",), accountings=("basic",))
    ]
    assert errors_ == pytest.approx([279.8, 509.5], rel=0.02)
    assert measure(scenario.__class__("adult-age", 1.0), OFFLINE[0], data.Data(), 0, 1)["expected_mae"] < 6.96


def test_a_refused_query_has_no_answer_and_is_no_error_of_the_run() -> None:
    stream = np.eye(4, dtype=np.int64)
    trial = Trial(np.array([5, 6, 7, 8]), stream[:2], stream, BUDGET)
    outcome = OFFLINE[0].answer(trial, 0)
    assert np.isfinite(outcome.answers).tolist() == [True, True, False, False]


# printed numbers


def test_rows_find_the_papers_numbers() -> None:
    row: dict[str, Any] = {
        "dataset": "adult-age",
        "S": 100,
        "Q": 100,
        "P": 100,
        "overlap": 0.0,
        "order": "random",
    }
    row |= {
        "method": "published_unsound",
        "split": "query-heavy",
        "accounting": "unsound",
        "family": "random",
    }
    assert printed(row, "2") == 201.7689
    row |= {"printed": 201.7689, "mae": 403.5378, "expected_mae_median": 348.3, "epsilon_true": 1.2}
    (found,) = compare([row], "2")
    assert (found.ratio, found.expected, found.epsilon) == (2.0, 348.3, 1.2)
    row |= {"method": "static", "accounting": "basic"}
    primm = row | {
        "method": "primm",
        "split": None,
        "accounting": "gaussian",
        "mae": 20.17689,
        "printed": None,
    }
    assert [one.ratio for one in compare([row, primm], "2")] == [2.0, 0.1]
    assert printed(row | {"method": "offline", "split": None, "overlap": 1.0}, "2") == 6.96
    assert printed(row | {"method": "smooth", "overlap": 0.5, "Q": 50}, "6", "nmae") == pytest.approx(0.323)


def test_the_best_of_those_that_agree_is_marked() -> None:
    rows = [
        {"dataset": "a", "overlap": 0.5, "method": method, "accounting": "basic", "mae": mae}
        for method, mae in (("static", 3.0), ("static", 2.0), ("smooth", 9.0))
    ]
    splits: Any = named("splits")
    assert [row["best"] for row in splits.finish(rows)] == [False, True, True]
    assert named("overlap").finish(rows) == rows


# the estimator


def test_the_estimates_law_is_that_of_all_streams() -> None:
    estimates = [
        estimate_unpredicted(8, 3, sorted(places)[2]) for places in itertools.combinations(range(1, 9), 5)
    ]
    mean = Fraction(sum(estimates), len(estimates))
    variance = sum((one - mean) ** 2 for one in estimates) / len(estimates)
    below = Fraction(sum(one < 5 for one in estimates), len(estimates))
    assert estimator.exact(8, 3, 5) == (mean, variance, below)
    assert mean == 5


# IDEBench


def test_examples_of_filters() -> None:
    assert doctest.testmod(idebench) == (0, 2)


def test_a_workflow_computes_what_is_linked() -> None:
    found = idebench.requests(WORKFLOW)
    carrier = frozenset({"UNIQUE_CARRIER = 'AA'", "UNIQUE_CARRIER = 'DL'"})
    taxi, california = frozenset({"TAXI_IN >= 4.0 and TAXI_IN < 9.0"}), frozenset({"ORIGIN_STATE_ABR = 'CA'"})
    texas = california | {"ORIGIN_STATE_ABR = 'TX'"}
    assert [(one.binned, one.parts) for one in found] == [
        (True, frozenset()),
        (True, frozenset()),
        (True, {carrier}),
        (True, {carrier, taxi, california}),
        (False, {texas}),
    ]


def test_counting_queries_have_the_tables_counts() -> None:
    read = idebench.counting(idebench.requests(WORKFLOW), 164)
    assert read is not None
    counts, stream, _ = read
    flights = pq.read_table(path("flights")).to_pandas()
    states = sorted(flights.ORIGIN_STATE_ABR.unique())
    carriers = flights[flights.UNIQUE_CARRIER.isin(["AA", "DL"])]
    by_state = [
        [int((state == rows.ORIGIN_STATE_ABR).sum()) for state in states]
        for rows in (flights, flights, carriers)
    ]
    taxi = carriers[(carriers.ORIGIN_STATE_ABR == "CA") & carriers.TAXI_IN.between(4, 8)]
    two = flights.ORIGIN_STATE_ABR.isin(["CA", "TX"]).sum()
    assert (stream @ counts).tolist() == [*itertools.chain(*by_state), len(taxi), two]
    assert counts.sum() == len(flights)
    assert len(np.unique(stream, axis=1).T) <= len(counts)
    assert idebench.counting(idebench.requests(WORKFLOW), 165) is None


def test_predictions_of_a_workflow_cover_the_overlap(shelf: data.Data) -> None:
    trial = idebench.Workflow(0.5, 60, 80).trial(shelf, 0, 0)
    predicted = {row.tobytes() for row in trial.predictions}
    share = np.mean([row.tobytes() in predicted for row in trial.stream])
    assert len(predicted) == len(trial.predictions) == 80
    assert 0.5 <= share < 0.55


# brushes


def test_a_user_who_was_left_out_is_predicted_by_the_others(shelf: data.Data) -> None:
    rows = predictor.measure("brushes", shelf, 0, 20, ("primm",), 0)
    found = {(row["method"], row["predictor"]): row for row in rows}
    assert len(found) == len(rows) == 5
    none, learned, oracle = (found["primm", name] for name in ("none", "learned", "oracle"))
    assert (none["overlap"], oracle["overlap"]) == (0, 1)
    assert learned["overlap"] > 0.5
    assert oracle["mae"] < learned["mae"] < none["mae"]
    assert oracle["log_loss"] < learned["log_loss"] < 1.05 * math.log(32)  # drawn evenly from 32
    assert found["histogram-total", "none"]["mae"] > 0
    assert all(row["answered"] == 1 for row in rows)


def test_answers_are_those_of_the_real_flights(shelf: data.Data) -> None:
    domain, _ = brush.brushes(shelf.file("workloads"), "flights")
    table = DuckDBTable(brush.flights(), domain, name="t")
    text = "SELECT COUNT(*) FROM t WHERE ARR_TIME >= 6 AND ARR_TIME < 12 AND DISTANCE >= 0 AND DISTANCE < 500"
    (query,) = parse(text, domain, "t").queries
    true = pd.read_parquet(path("flights"))
    inside = true.ARR_TIME.between(600, 1199) & (true.DISTANCE < 500)
    assert query.answer(table.marginal(query.axes)) == inside.sum() > 0


def test_a_release_is_designed_for_as_many_columns_as_it_can_be() -> None:
    domain = lp.Domain({name: lp.Integers(0, 29) for name in "abcd"})
    many = {lp.Query.count(domain, **{name: range(k)}): 1 / k for k in range(1, 25) for name in "abcd"}
    kept = predictor.designable(many)
    columns = lp.Workload(list(kept)).columns.values.shape[1]
    assert 11**4 <= columns <= predictor.COLUMNS < 12**4
    assert min(kept.values()) >= max(count for query, count in many.items() if query not in kept)


# the runner


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"size": "smallest", "data": data.Data(), "out": tmp_path, "workers": 0}
    chosen = [named("estimator")]
    whole = run.run(chosen, seed=0, **settings)[0].rows
    file = tmp_path / "estimator" / "rows.jsonl"
    lines = file.read_text().splitlines(True)
    file.write_text("".join(lines[:3]) + lines[3][:20])  # killed while it wrote the third cell
    seen: list[str] = []
    really = run._run

    def counted(cell: Cell) -> Any:
        seen.append(cell.key)
        return really(cell)

    monkeypatch.setattr(run, "_run", counted)
    assert run.run(chosen, seed=0, **settings)[0].rows == whole
    assert len(seen) == len(whole) - 2
    run.run(chosen, seed=1, **settings)  # other settings begin anew
    assert len(seen) == 2 * len(whole) - 2


def blas_threads() -> list[dict[str, Any]]:
    """Threads of every linear algebra library that a worker has loaded."""
    import scipy.linalg

    assert scipy.linalg.det(np.eye(2)) == 1
    return [{"threads": library["num_threads"]} for library in threadpoolctl.threadpool_info()]


def test_a_worker_has_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in run.THREADS:
        monkeypatch.setenv(name, "2")
    chosen = named("estimator")
    monkeypatch.setattr(type(chosen), "cells", lambda *_: [Cell("one", blas_threads)])
    monkeypatch.setattr(type(chosen), "draw", lambda *_: None)
    monkeypatch.setattr(type(chosen), "compare", lambda *_: [])
    (result,) = run.run([chosen], size="smallest", data=data.Data(), seed=0, out=tmp_path, workers=1)
    assert result.rows
    assert {row["threads"] for row in result.rows} == {1}
    assert {os.environ[name] for name in run.THREADS} == {"2"}


def test_a_cell_that_cannot_be_run_is_tried_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"size": "smallest", "seed": 0, "out": tmp_path, "workers": 0}
    (result,) = run.run([named("idebench")], data=data.Data(looked=(tmp_path / "x",)), **settings)
    assert not result.rows
    assert all("idebench/default_workflows is missing; looked in" in why for why in result.skipped.values())
    assert not Store(tmp_path / "idebench", {}).finished


def test_every_experiment_end_to_end(tmp_path: Path, shelf: data.Data) -> None:
    results = run.run(
        [named(name) for name in NAMES], size="smallest", data=shelf, seed=0, out=tmp_path, workers=0
    )
    for name, result in zip(NAMES, results, strict=True):
        assert result.rows, name
        assert not result.skipped
        assert result.experiment.name == name
        assert set(result.experiment.columns) <= {column for row in result.rows for column in row}
        told = json.loads((tmp_path / f"{name}.json").read_text())
        assert {"versions", "settings", "seconds", "machine", "date"} <= told.keys()
        for suffix in (".csv", ".png", ".svg"):
            assert (tmp_path / name).with_suffix(suffix).stat().st_size > 100
    text = (tmp_path / "index.html").read_text()
    assert all(result.experiment.title in text for result in results)


def test_the_command_prints_rows_of_the_issues_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest = named("overlap").cells("smallest", data.Data(), 0)[:3]
    monkeypatch.setattr(type(named("overlap")), "cells", lambda *_: smallest)
    assert main(["overlap", "--quick", "--json", "--out", str(tmp_path), "--workers", "0"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 3
    assert all(set(ISSUE) <= row.keys() for row in rows)
    assert {row["method"] for row in rows} == {"primm", "histogram", "histogram-total"}
