"""The reliability curve: how often what was foretold at each probability was really asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from laprasdp.predict.score import Score
from laprasdp.style import GREY, INK, NOTE, STYLE, WARM


def draw(scores: Mapping[str, Score], path: Path) -> None:
    """Write the curves of all models, and their overlap by |P|, to `path`, a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
        left.plot([0, 1], [0, 1], color=GREY, lw=1, zorder=1)
        note = "areas: number of statements"
        left.text(0.98, 0.03, note, ha="right", color=NOTE, fontsize=8.5, transform=left.transAxes)
        for (model, found), colour in zip(scores.items(), (INK, WARM), strict=False):
            foretold = [point[0] for point in found.reliability]
            happened = [point[1] for point in found.reliability]
            label = f"{model}, error {found.calibration_error:.1%}"
            most = max((point[2] for point in found.reliability), default=1)
            sizes = [6 + 120 * point[2] / most for point in found.reliability]
            left.scatter(foretold, happened, s=sizes, color=colour, alpha=0.85, label=label, zorder=2)
            names = [str(one.size) for one in found.sizes]
            right.plot(names, [one.overlap for one in found.sizes], "o-", color=colour, label=model)
            expected = [one.expected_overlap for one in found.sizes]
            right.plot(names, expected, "_", color=colour, markersize=18, markeredgewidth=1.4)
        left.set_xlabel("foretold probability to be asked")
        left.set_ylabel("share that was asked")
        left.set_title("Reliability on later lines", loc="left", fontweight="bold", fontsize=11)
        left.legend(frameon=False, loc="upper left", markerscale=0.6)
        right.set_ylim(0, 1.02)
        right.set_xlabel("|P|, predicted statements")
        right.set_ylabel("share of the stream in P")
        right.set_title("Overlap; bars are what was foretold", loc="left", fontweight="bold", fontsize=11)
        right.legend(frameon=False, loc="lower right")
        figure.savefig(path, dpi=160)
        pyplot.close(figure)
