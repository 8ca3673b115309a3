"""IDEBench's workflows, and brushes of people over linked views, as counting queries."""

from __future__ import annotations

import doctest
import itertools
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from shelf import WORKFLOW, made_shelf

from experiments import brush, data, idebench
from experiments.tables import predictor
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.datasets import path
from laprasdp.sql.parse import parse

shelf = pytest.fixture(made_shelf)

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
    assert len(found) == len(rows) == 5 + len(predictor.SHAPED)
    none, learned, oracle = (found["primm", name] for name in ("none", "learned", "oracle"))
    assert (none["overlap"], oracle["overlap"]) == (0, 1)
    assert learned["overlap"] > 0.5
    assert oracle["mae"] < learned["mae"] < none["mae"]
    assert found["primm", "shapes"]["mae"] < found["primm", "shape"]["mae"] < none["mae"]
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
