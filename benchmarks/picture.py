"""MAE against overlap, from the rows of ``python -m benchmarks accuracy --json``, as one picture."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from experiments import picture

SHOWN = {
    "smooth-gaussian-matrix-heavy": "Smooth, matrix-heavy",
    "static-gaussian-query-heavy": "Static, query-heavy",
    "independent-gaussian": "independent noise",
    "histogram": "histogram",
    "histogram-total": "histogram + total",
    "laplace-counts": "Laplace counts",
    "primm-gaussian": "primm, Gaussian noise",
    "primm": "primm",
    "primm-known": "primm, overlap known",
    "clairvoyant": "clairvoyant, Gaussian noise",
}
ABOVE = "independent-basic"
"""Of another order than all others: told in words."""


def main() -> int:
    """Read rows from standard input and write the picture to the path given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--n", type=int, default=74)
    chosen = parser.parse_args()
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for row in map(json.loads, sys.stdin):
        place = row["n"], row["S"], row["delta"], row["order"], row["family"]
        if place == (chosen.n, 100, 1e-3, "random", "random"):
            found[row["method"]][row["overlap"]] = row["expected_mae"]
    figure = picture.figure()
    (axes,) = picture.panels(figure, height=5.0)
    series = [
        picture.Series(label, sorted(found[method]), [found[method][at] for at in sorted(found[method])])
        for method, label in SHOWN.items()
    ]
    title = f"Expected mean absolute error, n = {chosen.n}, S = 100, ε = 1, δ = 10⁻³"
    share = "share of the stream that was predicted"
    picture.lines(axes, series, title=title, x=share, y="expected error, records, log scale", log=True)
    told = f"independent noise with basic accounting: {max(found[ABOVE].values()):.0f} everywhere, far above"
    axes.text(1, 1, told, transform=axes.transAxes, ha="right", va="top", fontsize=8.5, color=picture.NOTE)
    figure.set_size_inches(8.5, 5.0)
    picture.save(figure, chosen.path.with_suffix(""))
    chosen.path.with_suffix(".svg").unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
