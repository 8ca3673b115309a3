"""The shape that most experiments share: streams × methods × runs, and what was printed for each row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from experiments import comparison, picture
from experiments.contender import Contender
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from experiments.metric import summary
from experiments.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS: dict[Size, int] = {"smallest": 2, "quick": 5, "standard": 5, "full": 25}
"""Runs, each with its own predictions, stream and noise; the paper has 5."""

FEWER: dict[Size, int] = {**RUNS, "quick": 3}
"""Where nothing printed has to be met."""

COLUMNS = (
    *("dataset", "S", "n", "overlap", "method", "split", "accounting"),
    *("mae", "mae_min", "mae_max", "expected_mae", "answered", "epsilon_true", "printed"),
)
ACCOUNTINGS = {"basic": "", "gaussian": "GDP", "unsound": ""}
LABELS = {
    "overlap": "share of the stream that was predicted",
    "mae": "mean absolute error, records",
    "nmae": "mean absolute error over the mean true answer",
}


class Scenario(Protocol):
    """A kind of stream, as `workload.Scenario`."""

    @property
    def dataset(self) -> str: ...
    @property
    def overlap(self) -> float: ...
    @property
    def horizon(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def predicted(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def order(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def key(self) -> str: ...
    def trial(self, data: Data, seed: int, run: int) -> Trial: ...


def measure(scenario: Scenario, contender: Contender, data: Data, seed: int, runs: int) -> Row:
    """
    Run one method on one kind of stream.

    Parameters
    ----------
    scenario : Scenario
    contender : Contender
    data : Data
    seed : int
    runs : int

    Returns
    -------
    dict
        What was run, then `metric.summary`.
    """
    trials = [scenario.trial(data, seed, run) for run in range(runs)]
    noise = crc32(f"{seed} {scenario.key} {contender.key}".encode())
    outcomes = [
        contender.answer(contender.trial(asked, scenario.overlap), noise + run)
        for run, asked in enumerate(trials)
    ]
    return {
        "dataset": scenario.dataset,
        "S": scenario.horizon,
        "n": len(trials[0].counts),
        "overlap": scenario.overlap,
        "method": contender.method,
        "split": contender.split,
        "accounting": contender.accounting,
        **summary([asked.truth for asked in trials], outcomes),
        "Q": scenario.length,
        "P": scenario.predicted,
        "order": scenario.order,
        "family": scenario.family,
        "false_positives": round(max(0.0, 1 - scenario.hits / scenario.predicted), 4),
    }


@dataclass(frozen=True)
class Sweep:
    """
    An experiment of this shape.

    Attributes
    ----------
    name, title, question, claim
        As in `Experiment`.
    scenarios : callable
        (size, data) to the streams.
    contenders : callable
        (size) to the methods.
    table : str, optional
        The paper's table, by number, whose numbers stand beside ours.
    metrics : tuple of str
        What the table prints; the first is drawn.
    drawn : tuple of str, optional
        Keys of the contenders that are drawn; all where it is empty.
    panels : tuple of str
        Columns of which each combination of values gets a panel.
    x : str
        Column along the horizontal axis.
    ranked : tuple of str
        Where it is not empty: a row is `best` if its first metric is the least of those that agree on these.
    """

    name: str
    title: str
    question: str
    claim: str
    scenarios: Callable[[Size, Data], Sequence[Scenario]]
    contenders: Callable[[Size], Sequence[Contender]]
    table: str | None = None
    metrics: tuple[str, ...] = ("mae",)
    drawn: tuple[str, ...] = ()
    panels: tuple[str, ...] = ("dataset",)
    x: str = "overlap"
    columns: Sequence[str] = COLUMNS
    ranked: tuple[str, ...] = ()

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One method on one kind of stream each."""
        runs = RUNS if self.table else FEWER
        return [
            Cell(
                f"{scenario.key}/{contender.key}",
                partial(_rows, scenario, contender, data, seed, runs[size], self.table, self.metrics),
            )
            for scenario in self.scenarios(size, data)
            for contender in self.contenders(size)
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, with `best` where the experiment ranks them."""
        if not self.ranked:
            return list(rows)
        metric = self.metrics[0]
        least = {
            values: min(row[metric] for row in part) for values, part in _grouped(rows, self.ranked).items()
        }
        return [
            {**row, "best": row[metric] == least[tuple(row[name] for name in self.ranked)]} for row in rows
        ]

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """The first metric along `x`, one panel for each combination of `panels`."""
        kept = [row for row in rows if not self.drawn or key(row) in self.drawn]
        parts = _grouped(kept, self.panels)
        wide = min(2, len(parts))
        axes = picture.panels(figure, -(-len(parts) // wide), wide)
        for spare in axes[len(parts) :]:
            spare.set_axis_off()
        for (values, part), place in zip(parts.items(), axes, strict=False):
            lines = _grouped(part, ("method", "split", "accounting")).values()
            series = [_series(line, self.x, self.metrics[0]) for line in lines]
            title = ", ".join(map(_words, self.panels, values))
            picture.lines(place, series, title=title, x=LABELS[self.x], y=LABELS[self.metrics[0]])

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Each printed number beside ours; and beside primm on the same streams, where it is LAPRAS's."""
        return comparison.compare(rows, self.table or "", self.metrics)


def _rows(
    scenario: Scenario,
    contender: Contender,
    data: Data,
    seed: int,
    runs: int,
    table: str | None,
    metrics: tuple[str, ...],
) -> list[Row]:
    """One row, with the paper's numbers: ``printed`` for the first metric, ``printed_METRIC`` for others."""
    row = measure(scenario, contender, data, seed, runs)
    for place, metric in enumerate(metrics):
        row["printed" if place == 0 else f"printed_{metric}"] = comparison.printed(row, table, metric)
    return [row]


def key(row: Row) -> str:
    """`Contender.key` of a row."""
    return "-".join(filter(None, (row["method"], row["split"], row["accounting"])))


def _grouped(rows: Iterable[Row], columns: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def _words(column: str, value: Any) -> str:
    name = {"P": "|P|"}.get(column, column)
    if isinstance(value, str):
        return f"{name} {value}" if column in ("family", "order") else value
    return f"{name} = {value:g}"


def _series(line: Sequence[Row], x: str, metric: str) -> picture.Series:
    line = sorted(line, key=lambda row: row[x])
    first = line[0]
    label = " ".join(filter(None, (first["method"], first["split"], ACCOUNTINGS[first["accounting"]])))
    low, high = ([row[f"mae_{end}"] for row in line] if metric == "mae" else () for end in ("min", "max"))
    places, values = [row[x] for row in line], [row[metric] for row in line]
    return picture.Series(label, places, values, low, high, first["method"])
