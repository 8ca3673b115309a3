"""Marks: small drawings as SVG without styles of their own; the text beside each says the same."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

Spot = tuple[float, float]
_SVG = Markup('<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>')
_LINE = Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}" vector-effect="non-scaling-stroke"/>')


def bar(share: float) -> Markup:
    """A bar that is filled up to a share."""
    filled = _short(100 * min(max(share, 0.0), 1.0))
    parts = Markup('<rect class="ground" width="100" height="10" rx="1"/>')
    return _SVG.format(
        "bar", 100, 10, parts + Markup('<rect class="fill" width="{}" height="10"/>').format(filled)
    )


def interval(value: float, low: float, high: float, ends: Spot) -> Markup:
    """
    A value and its interval between two ends.

    Parameters
    ----------
    ends : (least, most)
        Of the axis, shared by all rows of a table.
    """
    parts = Markup("")
    if ends[0] < 0 < ends[1]:
        zero = _place(0.0, ends)
        parts += _LINE.format("zero", zero, 0, zero, 10)
    parts += _LINE.format("whisker", _place(low, ends), 5, _place(high, ends), 5)
    middle = _place(value, ends)
    parts += _LINE.format("point", middle, 1.5, middle, 8.5)
    return _SVG.format("interval", 100, 10, parts)


def plot(
    lines: Sequence[tuple[str, Sequence[Spot]]], ends: tuple[Spot, Spot], *, steps: bool = False
) -> Markup:
    """
    Lines by the class that draws each, between the ends of both axes; `steps` go along before they go up.
    """
    drawn = Markup("")
    for kind, points in lines:
        path, before = [], None
        for x, y in points:
            across, up = _place(x, ends[0]), _short(100 - float(_place(y, ends[1])))
            if steps and before is not None:
                path.append(f"{across},{before}")
            path.append(f"{across},{up}")
            before = up
        line = Markup('<polyline class="{}" points="{}" vector-effect="non-scaling-stroke"/>')
        drawn += line.format(kind, " ".join(path))
    return _SVG.format("plot", 100, 100, drawn)


def _place(value: float, ends: Spot) -> str:
    span = ends[1] - ends[0] or 1.0
    return _short(100 * min(max((value - ends[0]) / span, 0.0), 1.0))


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
