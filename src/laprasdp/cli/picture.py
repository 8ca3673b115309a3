"""The demo's one picture: how far off each answer was, and what independent noise would have cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from laprasdp.cli.outcome import Asked, Outcome

INK, WARM, PALE, GREY, NOTE = "#17324d", "#c2571a", "#e6e9ec", "#8a949e", "#56606a"
STYLE: Any = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
}


def draw(outcome: Outcome, path: Path) -> None:
    """Write the picture of a finished demo to `path`, a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(
            1, 2, figsize=(12, 4.8), width_ratios=(1.9, 1), layout="constrained"
        )
        _errors(left, outcome)
        _bars(right, outcome)
        figure.savefig(path, dpi=160)
        pyplot.close(figure)


def _errors(axes: Any, outcome: Outcome) -> None:
    """Error and 95% interval of every answer by its place in the stream."""
    plan, total = outcome.plan, len(outcome.asked)
    half = 1.96 * plan.independent_gaussian_mae * math.sqrt(math.pi / 2)
    axes.axhspan(-half, half, color=PALE, lw=0, zorder=0)
    axes.axhline(0, color="black", lw=0.8, zorder=1)
    top = half
    for predicted, colour, marker in ((True, INK, "o"), (False, WARM, "D")):
        found = [
            (place, asked, (high - low) / 2)
            for place, asked in enumerate(outcome.asked, start=1)
            if asked.answer is not None and asked.predicted == predicted
            for low, high in [asked.answer.interval(0.95)]
        ]
        if not found:
            continue
        top = max(top, *(abs(asked.error or 0.0) + width for _, asked, width in found))
        axes.errorbar(
            [place for place, *_ in found],
            [asked.error for _, asked, _ in found],
            yerr=[width for *_, width in found],
            fmt=marker,
            color=colour,
            markerfacecolor=colour if predicted else "white",
            markersize=3.4 if predicted else 4.4,
            markeredgewidth=1.1,
            elinewidth=0.8 if predicted else 1.2,
            zorder=3 if predicted else 2,
        )
    axes.set_xlim(-1, total + 2)
    axes.set_ylim(-1.12 * top, 1.5 * top)
    note = "95% of independent noise, Gaussian accounting, lies in the grey band"
    axes.text(0.985, 0.025, note, ha="right", color=NOTE, fontsize=8.5, transform=axes.transAxes)
    _name_marks(axes, outcome)
    axes.set_xlabel("place in the stream")
    axes.set_ylabel("private answer − true count, in people")
    axes.set_title(_title(outcome.asked), loc="left", fontweight="bold", fontsize=11)


def _name_marks(axes: Any, outcome: Outcome) -> None:
    """What the two kinds of marks are, where there are such."""
    measured = any(answer.source == "measured" for _, answer in outcome.answers)
    labels = (
        (0.98, INK, "● predicted: from one release before the stream, then free", True),
        (
            0.915,
            WARM,
            f"◇ not predicted: {'measured when it comes' if measured else 'from it as well'}",
            False,
        ),
    )
    for height, colour, text, predicted in labels:
        if any(asked.predicted == predicted and asked.answer for asked in outcome.asked):
            axes.text(0.015, height, text, color=colour, transform=axes.transAxes, va="top")


def _title(asked: tuple[Asked, ...]) -> str:
    answered = sum(each.answer is not None for each in asked)
    return f"{answered} private answers, each with its 95% interval"


def _bars(axes: Any, outcome: Outcome) -> None:
    """Mean absolute errors, on a log scale, each with its number."""
    plan = outcome.plan
    rows = [
        ("this session,\nmeasured", outcome.mae(), INK),
        ("this session,\nexpected", outcome.expected_mae, INK),
        ("Smooth Allocation,\nGaussian accounting", outcome.smooth_mae["gaussian"], WARM),
        ("Smooth Allocation,\nas in the paper", outcome.smooth_mae["basic"], WARM),
        ("independent noise,\nGaussian accounting", plan.independent_gaussian_mae, NOTE),
        ("independent noise,\nbasic accounting", plan.independent_basic_mae, NOTE),
    ]
    shown = [(label, value, colour) for label, value, colour in rows if value]
    left = min(value for _, value, _ in shown) / 2
    for place, (_, value, colour) in enumerate(shown):
        axes.plot([left, value], [place, place], color=PALE, lw=5, solid_capstyle="butt", zorder=1)
        axes.plot(value, place, "o", color=colour, markersize=11, zorder=2)
        axes.text(
            value * 1.17, place, f"{value:.1f}", va="center", fontweight="bold", color=colour, fontsize=11
        )
    axes.set_xscale("log")
    axes.set_xlim(left, max(value for _, value, _ in shown) * 3)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_yticks(range(len(shown)), [label for label, *_ in shown])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("people, log scale")
    axes.set_title(
        f"Mean absolute error at ε = {plan.epsilon:g}, δ = {plan.delta:g}",
        loc="left",
        fontweight="bold",
        fontsize=11,
    )
