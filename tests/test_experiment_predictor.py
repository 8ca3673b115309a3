"""The predictor experiment: workflows as SQL, windows of the sky, how |P| is chosen, and what is designed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import laprasdp as lp
from experiments import data, idebench, skyserver, workflow
from experiments.tables import predictor
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.sql.parse import parse

SELECTED = "((DISTANCE >= 0.0 and DISTANCE < 450.0) or (DISTANCE >= 900.0 and DISTANCE < 1350.0))"
PICKED = "((ORIGIN_STATE_ABR = 'CA') or (ORIGIN_STATE_ABR = 'TX')) and ((YEAR_DATE = '2015'))"
STEPS = [
    {"name": "states", "binning": [{"dimension": "ORIGIN_STATE_ABR"}]},
    {"name": "miles", "binning": [{"dimension": "DISTANCE", "width": 450.0}]},
    {"name": "states", "source": "miles"},
    {"name": "miles", "selection": SELECTED},
    {"name": "states", "filter": PICKED},
    {"name": "last", "binning": [{"dimension": "UNIQUE_CARRIER"}], "filter": PICKED},
    {"name": "last", "filter": "((YEAR_DATE = '1999')) and ((ORIGIN_STATE_ABR = 'CA'))"},
]


@pytest.fixture
def shelf(tmp_path: Path) -> data.Data:
    """Fourteen workflows, of which two ask nothing of states, and positions that go down."""
    folder = tmp_path / "idebench" / "default_workflows"
    folder.mkdir(parents=True)
    for place in range(14):
        steps = STEPS[1:2] if place > 11 else STEPS[: 1 + place % len(STEPS)]
        (folder / f"w{place:02}.json").write_text(json.dumps({"interactions": steps}))
    (tmp_path / "workloads").mkdir()
    starts = np.concatenate([[360.01, 359.2], 300 - np.arange(398) / 40])
    pd.DataFrame({"seq": np.arange(400), "ra_start": starts}).to_parquet(tmp_path / skyserver.FILE)
    return data.Data(tmp_path)


def test_statements_of_a_workflow_count_what_its_queries_count(shelf: data.Data) -> None:
    domain, found = workflow.workflows(shelf.file(workflow.FOLDER))
    table = DuckDBTable(workflow.flights(), domain, name="t")
    asked = [parse(key.text, domain, "t").queries[0] for key in found["w06"]]
    counts = [query.answer(table.marginal(query.axes)) for query in asked]
    read = idebench.counting(idebench.requests(STEPS), len(asked))
    assert read is not None
    cells, stream, _ = read
    assert counts == (stream @ cells).tolist()
    assert len(asked) == 3 * 54 + 2 + 1 + 1  # two unfiltered, one selected, two picked states, two totals


def test_ten_workflows_are_tested_and_learned_from_all_others(shelf: data.Data) -> None:
    _, found = workflow.workflows(shelf.file(workflow.FOLDER))
    studies = [workflow.study(shelf, place, 60) for place in range(workflow.TESTED)]
    tested = {study.user for study in studies}
    assert len(tested) == 10
    for study in studies:
        assert study.tested.stream == found[study.user][:60] != ()
        assert len(study.tested.log) == sum(len(own) for name, own in found.items() if name not in tested)
        assert all(len(one.log) < len(study.tested.log) for one in study.held_out)


def test_streams_of_the_sky_are_learned_from_the_first_half(shelf: data.Data) -> None:
    _, keys = skyserver.positions(shelf.file(skyserver.FILE))
    assert [key.literals for key in keys[:3]] == [("358.0", "360.0"), ("358.0", "360.0"), ("300.0", "302.0")]
    study = skyserver.study(shelf, 1, 40)
    assert (len(study.tested.log), study.tested.stream) == (200, keys[240:280])
    for one in study.held_out:
        known = len(one.log)
        assert known + 40 <= 200
        assert one.stream == keys[known : known + 40]


def test_the_size_is_chosen_on_streams_held_out_of_the_log(
    shelf: data.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, asked = workflow.study(shelf, 3, 60), []

    def answer(table: pd.DataFrame, *given: object) -> dict[str, float]:
        _, stream, counts, overlap, *_ = given
        asked.append((len(table), stream))
        assert (overlap is None) == (not counts)
        return {"mae": abs(len(counts) - 90)}  # type: ignore[arg-type]

    monkeypatch.setattr(predictor, "answer", answer)
    predictor.best_size.cache_clear()
    assert predictor.best_size("idebench", shelf, 3, 60) == 100
    assert {rows for rows, _ in asked} == {0}
    held_out = [predictor.queries(one) for one in study.held_out]
    assert all(stream in held_out for _, stream in asked)


def test_a_release_is_designed_for_as_many_columns_as_it_can_be() -> None:
    domain = lp.Domain({name: lp.Integers(0, 29) for name in "abcd"})
    many = {lp.Query.count(domain, **{name: range(k)}): 1 / k for k in range(1, 25) for name in "abcd"}
    kept = predictor.designable(many)
    columns = lp.Workload(list(kept)).columns.values.shape[1]
    assert 11**4 <= columns <= predictor.COLUMNS < 12**4
    assert min(kept.values()) >= max(count for query, count in many.items() if query not in kept)
