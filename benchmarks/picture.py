"""MAE against overlap, from the rows of ``python -m benchmarks accuracy --json``, as one picture."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

SHOWN = {
    "independent-basic": ("independent noise, basic", "#8a949e", ":"),
    "smooth-gaussian-matrix-heavy": ("Smooth, matrix-heavy", "#c2571a", "--"),
    "static-gaussian-query-heavy": ("Static, query-heavy", "#c2571a", ":"),
    "independent-gaussian": ("independent noise, Gaussian", "#8a949e", "--"),
    "histogram": ("histogram", "#56606a", "--"),
    "histogram-total": ("histogram + total", "#56606a", "-"),
    "laplace-counts": ("Laplace counts", "#2c7a4b", "-"),
    "primm": ("primm", "#17324d", "-"),
    "primm-known": ("primm, overlap known", "#17324d", "--"),
    "clairvoyant": ("clairvoyant, Gaussian", "black", ":"),
}


def main() -> int:
    """Read rows from standard input and write the picture to the path given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--n", type=int, default=74)
    chosen = parser.parse_args()
    lines: dict[str, dict[float, float]] = defaultdict(dict)
    for row in map(json.loads, sys.stdin):
        plain = (row["n"], row["S"], row["order"], row["family"]) == (chosen.n, 100, "random", "random")
        if plain and row["method"] in SHOWN:
            lines[row["method"]][row["overlap"]] = row["expected_mae"]
    figure, axes = pyplot.subplots(figsize=(8, 5.6), layout="constrained")
    ends: list[tuple[float, str, str]] = []
    for method, (label, colour, style) in SHOWN.items():
        places = sorted(lines[method])
        heights = [lines[method][place] for place in places]
        axes.plot(places, heights, style, color=colour, lw=2.2 if "primm" in method else 1.4)
        ends.append((heights[0], label, colour))
    floor = 0.0
    for height, label, colour in sorted(ends):
        floor = max(height, floor * 1.15)  # labels keep apart
        axes.annotate(label, (0, height), xytext=(-0.02, floor), ha="right", va="center", color=colour)
    axes.set(yscale="log", xlim=(-0.42, 1), xlabel="share of the stream that was predicted")
    axes.set_title(f"Expected mean absolute error, n = {chosen.n}, S = 100, ε = 1, δ = 10⁻³", loc="left")
    axes.set_xticks([i / 5 for i in range(6)])
    axes.set_yticks([5, 10, 20, 50, 100, 200], labels=["5", "10", "20", "50", "100", "200"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(chosen.path, dpi=130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
