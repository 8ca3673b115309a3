"""The demo's one picture: how far off each answer was, and what independent noise would have cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laprasdp.cli.outcome import Asked, Outcome
from laprasdp.style import HEADING, INK, NOTE, PALE, STYLE, WARM

KINDS = ((True, INK, "o"), (False, WARM, "D"))


def draw(outcome: Outcome, path: Path) -> None:
    """Write the picture of a finished demo to `path`, a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(12, 5.4), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(1.7, 1), height_ratios=(2.3, 1))
        errors = figure.add_subplot(grid[0, 0])
        _errors(errors, outcome)
        _spent(figure.add_subplot(grid[1, 0], sharex=errors), outcome)
        _bars(figure.add_subplot(grid[:, 1]), outcome)
        figure.savefig(path, dpi=160)
        pyplot.close(figure)


def _errors(axes: Any, outcome: Outcome) -> None:
    """Error and 95% interval of every answer by its place in the stream."""
    axes.axhline(0, color="black", lw=0.8, zorder=1)
    top = 0.0
    for (predicted, colour, marker), height in zip(KINDS, (0.99, 0.91), strict=True):
        found = [
            (place, asked.error or 0.0, (high - low) / 2)
            for place, asked in enumerate(outcome.asked, start=1)
            if asked.answer is not None and asked.predicted == predicted
            for low, high in [asked.answer.interval(0.95)]
        ]
        if not found:
            continue
        top = max(top, *(abs(error) + width for _, error, width in found))
        axes.errorbar(
            *zip(*found, strict=True),
            fmt=marker,
            color=colour,
            markerfacecolor=colour if predicted else "white",
            markersize=3.4 if predicted else 4.4,
            markeredgewidth=1.1,
            elinewidth=0.8 if predicted else 1.2,
            zorder=2 if predicted else 3,
        )
        label = f"{'● predicted' if predicted else '◇ nobody predicted it'}: {len(found)} answers"
        axes.text(0.01, height, label, color=colour, transform=axes.transAxes, va="top")
    axes.set_ylim(-1.05 * top, 1.35 * top)
    axes.set_ylabel(f"answer − truth, in {outcome.scene.rows}")
    axes.tick_params(labelbottom=False)
    axes.set_title(_title(outcome.asked), **HEADING)


def _spent(axes: Any, outcome: Outcome) -> None:
    """The share of the budget that was spent, by place in the stream: a step for each charge."""
    shares = [0.0, *(asked.spent for asked in outcome.asked)]
    axes.fill_between(range(len(shares)), shares, step="post", color=PALE, lw=0)
    axes.step(range(len(shares)), shares, where="post", color=INK, lw=1.6)
    free = sum(answer.charge == 0 for _, answer in outcome.answers)
    told = f"{shares[1]:.0%} with the first question, for all that is expected; {free} answers are free"
    axes.text(0.03, 0.08, told, color=INK, transform=axes.transAxes)
    axes.set_xlim(-1, len(shares))
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("spent, of the most\ncharged record")
    axes.set_xlabel("place in the stream")


def _title(asked: tuple[Asked, ...]) -> str:
    answered = sum(each.answer is not None for each in asked)
    return f"{answered} private answers, each with its 95% interval"


def _bars(axes: Any, outcome: Outcome) -> None:
    """Mean absolute errors, on a log scale, each with its number."""
    others = zip(outcome.others.items(), (INK, WARM, WARM, NOTE, NOTE), strict=True)
    rows = [
        ("this session,\nmeasured", outcome.mae(), INK),
        ("this session,\nexpected", outcome.expected_mae, INK),
        *((_wrapped(label), value, shade) for (label, value), shade in others),
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
    axes.set_xlabel(f"{outcome.scene.rows}, log scale")
    axes.set_title("Mean absolute error at this budget", **HEADING)


def _wrapped(label: str) -> str:
    """A label on two lines."""
    head, _, rest = label.partition(", ")
    return f"{head},\n{rest}" if rest else head
