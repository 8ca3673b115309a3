"""Table 3: more predictions than the stream asks for."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, KNOWN, Contender, lapras, published
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import COLUMNS, Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """50 statements of the 100 that the budget is paced for."""
    if size == "smallest":
        return [Scenario("adult-country", 1.0, 20, 10, predicted=20)]
    sizes = (50, 100, 200) if size == "quick" else (50, 100, 200, 500)
    return [
        Scenario("adult-age", overlap, length=50, predicted=m) for m in sizes for overlap in (0.0, 0.5, 1.0)
    ]


def contenders(size: Size) -> Sequence[Contender]:
    """The paper's at query-heavy, as in its table."""
    return [*BESIDE, KNOWN, *lapras(splits=("query-heavy",)), *published(("static",), ("query-heavy",))]


EXPERIMENT = Sweep(
    name="prediction-size",
    title="Table 3: the size of the prediction set",
    question=(
        "What do false positives cost, queries that were predicted and never came? Adult's ages, 50 "
        "statements of the 100 that the budget is paced for, which is what the printed numbers "
        "agree with, |P| up to 500."
    ),
    claim=(
        "False positives cost little: 50 or 200 ranges on a line of 74 cells share nearly all of "
        "what is measured. The printed optimum is 1.8 to 3.6 times the certified one."
    ),
    scenarios=scenarios,
    contenders=contenders,
    table="3",
    drawn=(
        "primm-gaussian",
        "primm-known-gaussian",
        "independent-basic",
        "offline-basic",
        "static-query-heavy-basic",
        "smooth-query-heavy-basic",
        "smooth-query-heavy-gaussian",
    ),
    panels=("P",),
    columns=("P", "false_positives", *COLUMNS),
)
