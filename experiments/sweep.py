"""The shape that most experiments share: streams × methods × runs, one row each, and what was printed for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from experiments import picture
from experiments.contender import Contender
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from experiments.metric import summary
from experiments.workload import Scenario, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS: dict[Size, int] = {"smallest": 2, "quick": 5, "standard": 5, "full": 25}
"""Runs, each with its own predictions, stream and noise; the paper has 5."""

COLUMNS = ("dataset", "S", "n", "overlap", "method", "split", "accounting", "mae", "mae_min", "mae_max")
COLUMNS += ("expected_mae", "answered", "epsilon_true", "printed")


def measure(scenario: Scenario, contender: Contender, data: Data, seed: int, runs: int) -> list[Row]:
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
    list of dict
        One row: what was run, then `metric.summary`.
    """
    trials = [trial(scenario, data, seed, run) for run in range(runs)]
    noise = crc32(f"{seed} {scenario.key()} {contender.key}".encode())
    outcomes = [
        contender.answer(contender.trial(asked, scenario.overlap), noise + run)
        for run, asked in enumerate(trials)
    ]
    row: Row = {
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
    }
    return [row]


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
    table : str or None
        The paper's table, by number, whose numbers stand beside ours.
    metrics : tuple of str
        What the table prints.
    split_panels : str
        Column whose values get a panel each in the picture.
    x : str
        Column along the picture's horizontal axis.
    """

    name: str
    title: str
    question: str
    claim: str
    scenarios: Callable[[Size, Data], Sequence[Scenario]]
    contenders: Callable[[Size], Sequence[Contender]]
    table: str | None = None
    metrics: tuple[str, ...] = ("mae",)
    panels: tuple[str, ...] = ("dataset",)
    x: str = "overlap"
    columns: Sequence[str] = field(default=COLUMNS)

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One method on one kind of stream each."""
        return [
            Cell(
                f"{scenario.key()}/{contender.key}",
                partial(self.rows, scenario, contender, data, seed, RUNS[size]),
            )
            for scenario in self.scenarios(size, data)
            for contender in self.contenders(size)
        ]
