"""Table 5: all queries that were not predicted come first, or last."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, Contender, lapras, published
from experiments.data import GOWALLA, Data
from experiments.experiment import Size
from experiments.sweep import COLUMNS, Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """Gowalla in three orders."""
    if size == "smallest":
        return [Scenario("adult-country", 0.5, 20, predicted=20, order="bad-first")]
    datasets = ["gowalla-grid", *([] if size == "quick" else ["gowalla-visitors"])]
    datasets += [GOWALLA] if data.checkins is not None else []
    orders = ("bad-first", "random") if size == "quick" else ("bad-first", "random", "good-first")
    return [
        Scenario(dataset, overlap, order=order)
        for dataset in datasets
        for order in orders
        for overlap in (0.0, 0.3, 0.5, 0.7, 1.0)
    ]


def contenders(size: Size) -> Sequence[Contender]:
    """The paper's, its arithmetic as printed, and what stands beside them."""
    return [*BESIDE, *lapras(), *published()]


EXPERIMENT = Sweep(
    name="order",
    title="Table 5: the order of arrival",
    question=(
        "The estimate of how many unpredicted queries come assumes a random order. What if all of "
        "them come first, or last? Gowalla, S = |P| = 100."
    ),
    claim=(
        "When all unpredicted queries come first, Static and Smooth have up to 2.5 times the "
        "expected error that they have in random order (overlap 0.7); PRIMM has at most 1.15 "
        "times."
    ),
    scenarios=scenarios,
    contenders=contenders,
    table="5",
    drawn=(
        "primm-gaussian",
        "independent-basic",
        "offline-basic",
        "static-query-heavy-basic",
        "static-matrix-heavy-basic",
        "smooth-query-heavy-basic",
        "smooth-matrix-heavy-basic",
    ),
    panels=("dataset", "order"),
    columns=("order", *COLUMNS),
)
