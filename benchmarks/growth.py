"""Errors and times against attributes and levels, from the rows of ``python -m benchmarks scale --json``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from laprasdp.style import GREY, INK, NOTE, WARM

ERRORS = (
    ("predicted_mae", 1.0, "predicted, and all of the stream is", INK, "-"),
    ("predicted_mae", None, "predicted, half of the stream is", INK, "--"),
    ("unexpected_mae", None, "the other half", WARM, "--"),
    ("unexpected_mae", 0.0, "nothing is predicted", WARM, "-"),
    ("independent_mae", 1.0, "independent noise", GREY, ":"),
)
NAMES = {"attributes": "attributes of ten levels", "levels": "levels of one attribute"}
TIMES = (
    ("open_seconds", None, "first answer", INK, "-"),
    ("plan_seconds", None, "plan", NOTE, "--"),
)


def main() -> int:
    """Read rows from standard input and write the picture to the path given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args()
    rows = [row for row in map(json.loads, sys.stdin) if row["policy"] == "primm"]
    present = [axis for axis in NAMES if any(row["axis"] == axis for row in rows)]
    figure, axes = pyplot.subplots(
        2, len(present), figsize=(5.5 * len(present), 7), layout="constrained", sharex="col", squeeze=False
    )
    for column, axis in enumerate(present):
        own = [row for row in rows if row["axis"] == axis]
        _draw(axes[0, column], own, ERRORS)
        _draw(axes[1, column], own, TIMES)
        axes[0, column].set(ylim=(0, 40), ylabel="expected mean absolute error")
        axes[0, column].set_title(NAMES[axis], loc="left")
        axes[1, column].set(ylabel="seconds of the processor", yscale="log")
        if axis == "levels":
            axes[1, column].set(xscale="log")
    axes[0, 0].legend(frameon=False, fontsize=8)
    axes[1, 0].legend(frameon=False, fontsize=8)
    figure.savefig(chosen.path, dpi=130)
    return 0


def _draw(
    axes: Axes, rows: list[dict[str, Any]], lines: tuple[tuple[str, float | None, str, str, str], ...]
) -> None:
    for key, overlap, label, colour, style in lines:
        found = sorted(
            (row["value"], row[key]) for row in rows if row["overlap"] == overlap and row[key] is not None
        )
        axes.plot(*zip(*found, strict=True), style, color=colour, label=label, marker="o", ms=3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    sys.exit(main())
