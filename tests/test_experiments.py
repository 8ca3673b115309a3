"""The experiments: methods, printed numbers, the estimator, the runner, and each one at its smallest."""

from __future__ import annotations

import itertools
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from shelf import made_shelf

from experiments import data, run
from experiments.__main__ import NAMES, main, named
from experiments.comparison import compare, printed
from experiments.contender import INDEPENDENT, OFFLINE, lapras
from experiments.experiment import Cell
from experiments.store import Store, finished
from experiments.sweep import measure
from experiments.tables import estimator
from experiments.trial import Trial
from experiments.workload import BUDGET, Scenario
from laprasdp.pacing.arrivals import estimate_unpredicted

ISSUE = ["dataset", "S", "n", "overlap", "method", "split", "accounting", "mae", "mae_min", "mae_max"]
ISSUE += ["expected_mae", "answered", "epsilon_true", "printed"]
shelf = pytest.fixture(made_shelf)

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


# the runner


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"size": "smallest", "data": data.Data(), "out": tmp_path, "workers": 0}
    chosen = [named("estimator")]
    whole = run.run(chosen, seed=0, **settings)[0].rows
    file = tmp_path / "estimator" / "rows.jsonl"
    lines = file.read_text().splitlines(True)
    file.write_text("".join(lines[:3]) + lines[3][:20])  # killed while it wrote the third cell
    seen: list[str] = []
    really = run.run_cell

    def counted(cell: Cell) -> Any:
        seen.append(cell.key)
        return really(cell)

    monkeypatch.setattr(run, "run_cell", counted)
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


def breaks() -> list[dict[str, Any]]:
    raise ValueError("no [such] thing")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_cell_that_fails_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    chosen = named("estimator")
    cells = [Cell("broken", breaks), Cell("sound", blas_threads)]
    monkeypatch.setattr(type(chosen), "cells", lambda *_: cells)
    monkeypatch.setattr(type(chosen), "draw", lambda *_: None)
    monkeypatch.setattr(type(chosen), "compare", lambda *_: [])
    assert main(["estimator", "--out", str(tmp_path), "--workers", str(workers)]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "estimator/broken: failed: ValueError: no [such] thing (test_experiments.py, line" in told
    assert [cell["key"] for cell in finished(tmp_path / "estimator")] == ["sound"]


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
