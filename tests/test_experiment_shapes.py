"""Declared shapes on made brushes: the figures that are printed, and conditions of two views at a time."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from shelf import made_shelf

from experiments import brush, brush_shapes, data
from laprasdp.sql.parse import parse

shelf = pytest.fixture(made_shelf)


def test_two_views_at_a_time(shelf: data.Data) -> None:
    domain, _ = brush.brushes(shelf.file("workloads"), "flights")
    texts = ["ARR_TIME >= 6 AND ARR_TIME < 12", "DISTANCE < 500", "ARR_TIME < 5"]
    asked = [parse(f"SELECT COUNT(*) FROM t WHERE {text}", domain, "t").queries[0] for text in texts]
    both = [f"{texts[0]} AND {texts[1]}", f"{texts[1]} AND {texts[2]}"]
    wanted = [parse(f"SELECT COUNT(*) FROM t WHERE {text}", domain, "t").queries[0] for text in both]
    assert brush_shapes.together(asked) == wanted


def test_what_is_declared_is_printed_with_its_error(
    shelf: data.Data, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(brush_shapes, "WRONG", ("ranges of two attributes",))
    folder = str(shelf.file("workloads"))
    monkeypatch.setattr(sys, "argv", ["brush_shapes", "--data", folder, "--horizon", "20"])
    assert brush_shapes.main() == 0
    rows: list[dict[str, Any]] = list(map(json.loads, capsys.readouterr().out.splitlines()))
    found = {row["declared"]: row["mean"] for row in rows}
    assert found["learned"] < found["none"]
    assert found[brush_shapes.RIGHT] < found["none"] < found["ranges of two attributes"]
    assert np.isfinite(list(found.values())).all()
