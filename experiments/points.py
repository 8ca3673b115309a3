"""Medians as points in groups, each with its range and its number, on a log scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from experiments.picture import STYLE, number
from laprasdp.style import INK, NOTE, PALE, SOFT, WARM

MARKS = (("o", NOTE, "white"), ("s", SOFT, SOFT), ("o", INK, INK), ("D", WARM, "white"))
"""One a name: marker, shade and filling."""


def points(
    axes: Axes,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Sequence[float]]],
    *,
    title: str,
    x: str,
) -> None:
    """
    Draw the median of each name below the other within a group, and its range as a thin line.

    Parameters
    ----------
    axes : Axes
        From `experiments.picture.panels`.
    groups : sequence of str
        Written beside their points, first on top.
    values : mapping of name to sequence of values
        For each group, in their order; four names at most, which are for a legend.
    title : str
        A sentence.
    x : str
        What the values are, with the unit.
    """
    known = [value for each in values.values() for some in each for value in some]
    with rc_context(STYLE):
        axes.set_title(title, loc="left", pad=10)
        axes.set(xlabel=x, xscale="log", xlim=(min(known) / 1.15, max(known) * 1.5))
    axes.grid(visible=False)
    for line, ((name, each), (marker, shade, filling)) in enumerate(zip(values.items(), MARKS, strict=False)):
        step = (line + 1) / (len(values) + 1) - 0.5
        found = [(place + step, some) for place, some in enumerate(each) if some]
        places = [place for place, _ in found]
        axes.hlines(
            places, [min(some) for _, some in found], [max(some) for _, some in found], color=shade, lw=1
        )
        middles = [median(some) for _, some in found]
        axes.plot(middles, places, marker, color=shade, mfc=filling, ms=6, ls="", label=name, zorder=3)
        for middle, (place, some) in zip(middles, found, strict=True):
            axes.annotate(
                number(middle),
                (max(some), place),
                (7, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=shade if shade != SOFT else INK,
            )
    for edge in range(1, len(groups)):
        axes.axhline(edge - 0.5, color=PALE, lw=1, zorder=0)
    axes.set_yticks(range(len(groups)), labels=groups)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
