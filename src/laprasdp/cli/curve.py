"""The picture of spending: ε after each statement, below the budget as it was then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laprasdp.periods.spent import WindowedSpending
from laprasdp.stream.spending import Spending
from laprasdp.style import GREY, INK, NOTE, PALE, STYLE, WARM


def draw_spending(spending: Spending, path: Path) -> None:
    """Write the picture to `path`, a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(9, 4.4), layout="constrained")
        end = max(spending.statements, 1) * 1.03
        _budget(axes, spending, end)
        _spent(axes, spending, end)
        axes.set_xlabel("statements asked")
        axes.set_ylabel(f"ε at δ = {spending.budget.delta:g}")
        axes.set_xlim(0, end)
        axes.set_ylim(0, max(spending.budget.epsilon, spending.epsilon_spent) * 1.13)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(_title(spending), loc="left", fontweight="bold", fontsize=11)
        figure.savefig(path, dpi=160)
        pyplot.close(figure)


def draw_periods(spending: WindowedSpending, path: Path) -> None:
    """Write the picture of a table in periods: what each has spent, and when."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colormaps, pyplot
    from matplotlib.ticker import MaxNLocator

    count = len(spending.each)
    shades = [colormaps["viridis"](0.9 * place / max(count - 1, 1)) for place in range(count)]
    with pyplot.rc_context(STYLE):
        size = (10, max(4.4, 1.2 + 0.24 * count))
        figure, (left, right) = pyplot.subplots(
            1, 2, figsize=size, width_ratios=(1.5, 1), layout="constrained"
        )
        end = max(spending.statements, 1) * 1.03
        for shade, one in zip(shades, spending.each.values(), strict=True):
            places = [0, *(spending.place(release.at) for release in one.releases), end]
            heights = [0.0, *(release.epsilon_spent for release in one.releases), one.epsilon_spent]
            left.step(places, heights, where="post", color=shade, lw=1.6)
        left.set_xlim(0, end)
        left.set_ylim(bottom=0)
        left.set_xlabel("statements asked of any period")
        left.set_ylabel("ε spent of each period")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title(
            f"{spending.statements} statements in {count} periods", loc="left", fontweight="bold", fontsize=11
        )
        budgets = [one.budget.epsilon for one in spending.each.values()]
        right.barh(range(count), budgets, color=PALE)
        right.barh(range(count), [one.epsilon_spent for one in spending.each.values()], color=shades)
        right.set_yticks(range(count), list(spending.each))
        right.invert_yaxis()
        right.set_xlabel("ε spent, of the budget")
        figure.savefig(path, dpi=160)
        pyplot.close(figure)


def _budget(axes: Any, spending: Spending, end: float) -> None:
    """The budget as a line with a step at each raise."""
    places, heights = [0.0], [spending.begun.epsilon]
    for raised in spending.raises:
        places.append(raised.after)
        heights.append(raised.new.epsilon)
    places.append(end)
    heights.append(heights[-1])
    axes.step(places, heights, where="post", color=GREY, lw=1.4, ls=(0, (4, 3)))
    label = f"budget ε = {heights[-1]:g}"
    axes.annotate(label, (0.01, heights[-1]), (0, 5), ("axes fraction", "data"), "offset points", color=NOTE)


def _spent(axes: Any, spending: Spending, end: float) -> None:
    """What was spent, and which releases nobody had asked for."""
    places = [0.0, *(one.after + (not one.opening) for one in spending.releases)]
    heights = [0.0, *(one.epsilon_spent for one in spending.releases)]
    places.append(end)
    heights.append(spending.epsilon_spent)
    axes.fill_between(places, heights, step="post", color=PALE, lw=0)
    axes.step(places, heights, where="post", color=INK, lw=1.8)
    opening = [(one.after, one.epsilon_spent) for one in spending.releases if one.opening]
    if opening:
        axes.plot(*zip(*opening, strict=True), "o", color=WARM, markersize=5, clip_on=False)
        axes.text(
            0.985, 0.04, "● release before a statement, for all that is expected", ha="right", color=WARM,
            transform=axes.transAxes,
        )  # fmt: skip


def _title(spending: Spending) -> str:
    share = spending.epsilon_spent / spending.budget.epsilon
    span = ""
    if spending.releases:
        days = sorted({f"{one.at:%Y-%m-%d}" for one in spending.releases})
        span = f", {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")
    return f"ε = {spending.epsilon_spent:.3g} spent in {spending.statements} statements, {share:.0%}{span}"
