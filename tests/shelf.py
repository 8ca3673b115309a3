"""A data directory for the tests of experiments: a made workflow, and brushes of made people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import data
from experiments.tables import predictor

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


def made_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> data.Data:
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
