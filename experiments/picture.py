"""The house style of the pictures: readable in grey, labels at the lines, the same bytes for the same rows.

A method has its marker and its shade in every picture; methods of one kind differ by line style.  Errors that
span more than a decade and a half are on a log scale.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation
from scipy.optimize import isotonic_regression

from laprasdp import style
from laprasdp.style import INK, NOTE, WARM

DPI = 144
DECADES = 1.5
STYLE: Any = style.STYLE | {
    "axes.grid": True,
    "axes.grid.axis": "y",
    "lines.markersize": 4.5,
    "svg.hashsalt": "laprasdp",
}
KINDS = {  # marker, shade, line width
    "primm": ("o", INK, 2.4),
    "histogram": ("s", NOTE, 1.4),
    "laplace": (">", NOTE, 1.4),
    "independent": ("x", NOTE, 1.4),
    "offline": ("D", "#000000", 1.4),
    "clairvoyant": ("d", "#000000", 1.4),
    "static": ("^", WARM, 1.4),
    "smooth": ("v", WARM, 1.4),
    "published": ("+", "#96683c", 1.4),
    "printed": ("*", "#96683c", 1.4),
    "cachedp": ("P", "#3f7d5a", 1.4),
    "pmw": ("p", "#3f7d5a", 1.4),
    "privatesql": ("h", "#3f7d5a", 1.4),
}
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 3)))


@dataclass(frozen=True)
class Series:
    """
    One line.

    Attributes
    ----------
    label : str
        Written at its end.
    x, y : sequences of float
        Of one length; a y of None is a gap.
    low, high : sequences of float, optional
        Least and largest over the runs, drawn as thin bars.
    method : str
        Gives marker and shade; the label where it is empty.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    method: str = ""

    @property
    def kind(self) -> str:
        """The method that the marker stands for; of several that fit, the longest name."""
        name = (self.method or self.label).lower()
        return max((kind for kind in KINDS if name.startswith(kind)), key=len, default="")


@dataclass(frozen=True)
class Bar:
    """
    One bar, which a chart writes as a point where the values are on a log scale.

    Attributes
    ----------
    label : str
    value : float or None
        None where there is none, which is written.
    low, high, printed : float, optional
        Least and largest over the runs; what the paper prints.
    method : str
        As of `Series`.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    printed: float | None = None
    method: str = ""


def figure() -> Figure:
    """An empty figure in the house style; `panels` gives it its size."""
    with rc_context(STYLE):
        return Figure(dpi=DPI, layout="constrained")


def panels(figure: Figure, rows: int = 1, columns: int = 1, height: float | None = None) -> list[Axes]:
    """
    Axes in a grid, in reading order; the figure is made as large as they need.

    Parameters
    ----------
    figure : Figure
    rows, columns : int
    height : float, optional
        Of a panel, in inches.
    """
    width = 8.0 if columns == 1 else 6.2
    figure.set_size_inches(width * columns, rows * (height or (5.2 if rows == columns == 1 else 4.4)))
    with rc_context(STYLE):
        return [*figure.subplots(rows, columns, squeeze=False).flat]


def lines(
    axes: Axes,
    series: Iterable[Series],
    *,
    title: str,
    x: str,
    y: str,
    labels: bool = True,
    log: bool | None = None,
) -> None:
    """
    Draw lines with their names at their right ends.

    Parameters
    ----------
    axes : Axes
        From `panels`.
    series : iterable of Series
    title : str
        A sentence.
    x, y : str
        What the axes show, with the unit.
    labels : bool
        False where another panel of the same figure has the same lines.
    log : bool, optional
        Of the y axis; by default where the values span more than 1.5 decades.
    """
    drawn = [one for one in series if any(value is not None for value in one.y)]
    _dress(axes, title, x, y)
    if not drawn:
        return _empty(axes)
    logarithmic = _spans(value for one in drawn for value in one.y) if log is None else log
    seen: Counter[str] = Counter()
    with rc_context(STYLE):
        for place, one in enumerate(drawn):
            marker, shade, width = KINDS.get(one.kind, ("o", "#444444", 1.4))
            style = DASHES[seen[one.kind] % len(DASHES)]
            seen[one.kind] += 1
            heights = [math.nan if value is None else value for value in one.y]
            axes.plot(
                one.x,
                heights,
                linestyle=style,
                marker=marker,
                color=shade,
                lw=width,
                mfc=shade,
                mec=shade,
                zorder=3,
            )
            aside = ScaledTranslation(
                (place - (len(drawn) - 1) / 2) * min(1.6, 9 / len(drawn)) / 72, 0, axes.figure.dpi_scale_trans
            )
            ranges = [
                (at, low, high)
                for at, low, high in zip(one.x, one.low, one.high, strict=False)
                if low is not None and high is not None and (low > 0 or not logarithmic)
            ]
            if ranges:
                at, low, high = zip(*ranges, strict=True)
                axes.vlines(at, low, high, color=shade, lw=0.7, transform=axes.transData + aside, zorder=2)
                axes.update_datalim([*zip(at, low, strict=True), *zip(at, high, strict=True)])
            if labels:
                last = max(place for place, value in enumerate(one.y) if value is not None)
                _name(axes, one.label, one.x[last], heights[last], shade, bold=one.kind == "primm")
    axes.autoscale_view()
    _scale(axes.yaxis, axes, logarithmic, [value for one in drawn for value in one.y if value is not None])
    return None


def bars(axes: Axes, values: Iterable[Bar], *, title: str, x: str, log: bool | None = None) -> None:
    """
    Draw horizontal bars, first on top; on a log scale, where a length says nothing, points.

    Parameters
    ----------
    axes : Axes
        From `panels`.
    values : iterable of Bar
    title : str
        A sentence.
    x : str
        What the values are, with the unit.
    log : bool, optional
        By default where the values span more than 1.5 decades.
    """
    drawn = list(values)
    known = [value for one in drawn for value in (one.value, one.printed) if value is not None]
    _dress(axes, title, x, "")
    if not known:
        return _empty(axes)
    logarithmic = _spans(known) if log is None else log
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    for place, one in enumerate(drawn):
        marker, shade, _ = KINDS.get(Series(one.label, (), (), method=one.method).kind, ("o", "#444444", 1.4))
        words = "no value" if one.value is None else number(one.value)
        if one.value is not None and logarithmic:
            axes.plot([one.value], [place], marker, color=shade, ms=6, zorder=3)
        elif one.value is not None:
            axes.barh([place], [one.value], height=0.6, color=shade, alpha=0.85, zorder=2)
        if one.low is not None and one.high is not None:
            axes.hlines([place], [one.low], [one.high], color="#111111", lw=0.8, zorder=3)
        if one.printed is not None:
            axes.plot([one.printed], [place], "|", color="#111111", ms=14, mew=1.6, zorder=4)
            words += f"  (printed {number(one.printed)})"
        ends = [end for end in (one.value, one.high, one.printed) if end is not None]
        axes.annotate(
            words,
            (max(ends, default=min(known)), place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            annotation_clip=False,
        )
    axes.set_yticks(range(len(drawn)), labels=[one.label for one in drawn])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    _scale(axes.xaxis, axes, logarithmic, known)
    return None


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """
    Write a figure as PNG and SVG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    stem : Path
        Without a suffix.

    Returns
    -------
    (Path, Path)
        PNG and SVG.
    """
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    with rc_context(STYLE):
        figure.draw_without_rendering()
        for axes in figure.axes:
            _wrap(axes)
        figure.draw_without_rendering()
        for axes in figure.axes:
            _spread(axes)
        figure.savefig(png, dpi=DPI, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


def number(value: float) -> str:
    """Three digits, thousands grouped."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _dress(axes: Axes, title: str, x: str, y: str) -> None:
    with rc_context(STYLE):
        axes.set_title(title, loc="left", pad=10)
        axes.set(xlabel=x, ylabel=y)


def _empty(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no rows", transform=axes.transAxes, ha="center", va="center", color="#444444")
    axes.set_axis_off()


def _spans(values: Iterable[float | None]) -> bool:
    known = [value for value in values if value is not None and value > 0]
    return bool(known) and math.log10(max(known) / min(known)) > DECADES


def _scale(axis: Any, axes: Axes, logarithmic: bool, values: Sequence[float]) -> None:
    """Plain numbers on the axis of values; from zero where it is linear."""
    name = axis.axis_name
    if not logarithmic:
        if min(values) >= 0:
            axes.set(**{f"{name}lim": (0, None)})
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        return
    axes.set(**{f"{name}scale": "log"})
    low, high = getattr(axes, f"get_{name}lim")()
    wide = math.log10(high / low) > 3.3
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _name(axes: Axes, label: str, x: float, y: float, shade: str, *, bold: bool) -> None:
    axes.annotate(
        label,
        (x, y),
        xytext=(1.03, 0.5),
        textcoords="axes fraction",
        color=shade,
        va="center",
        fontsize=8.5,
        fontweight="bold" if bold else "normal",
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-",
            "color": shade,
            "lw": 0.5,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 3,
        },
        gid="label",
    )


def _wrap(axes: Axes) -> None:
    """Break the title where the axes and the labels beside them end."""
    box = axes.get_window_extent()
    right = max([box.x1, *(Text.get_window_extent(label).x1 for label in _labels(axes))])
    letters = (right - box.x0) * 72 / axes.figure.dpi / (0.62 * STYLE["axes.titlesize"])
    axes.set_title(textwrap.fill(axes.get_title("left"), max(20, int(letters))), loc="left", pad=10)


def _spread(axes: Axes) -> None:
    """Move the labels apart, as little as keeps their order."""
    labels = sorted(_labels(axes), key=lambda label: axes.transData.transform(label.xy)[1])
    if not labels:
        return
    box = axes.get_window_extent()
    gap = max(Text.get_window_extent(label).height for label in labels) * 1.08
    steps = gap * np.arange(len(labels))
    wished = np.array([axes.transData.transform(label.xy)[1] for label in labels])
    placed = np.clip(isotonic_regression(wished - steps).x, box.y0, max(box.y0, box.y1 - steps[-1])) + steps
    for label, height in zip(labels, placed, strict=True):
        label.set_position((1.03, (height - box.y0) / box.height))


def _labels(axes: Axes) -> list[Annotation]:
    return [text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == "label"]
