"""Other families of unpredicted queries, in other orders."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, HEAVY, KNOWN, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import COLUMNS, Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """Adult's ages; every family in random order, and every order."""
    if size == "smallest":
        return [Scenario("adult-country", 0.5, 20, predicted=20, family="prefix")]
    overlaps = (0.0, 0.5, 0.9) if size == "quick" else (0.0, 0.3, 0.5, 0.7, 0.9)
    orders = ("random", "bad-first") if size == "quick" else ("random", "bad-first", "good-first")
    return [
        Scenario("adult-age", overlap, order=order, family=family)
        for family in ("random", "range", "prefix", "point")
        for order in orders
        for overlap in overlaps
        if size != "quick" or order == "random" or family == "random"
    ]


def contenders(size: Size) -> Sequence[Contender]:
    """Accounting is Gaussian throughout, so that pacing and strategy alone differ."""
    return [*BESIDE, KNOWN, *lapras(("smooth",), HEAVY, ("gaussian",))]


EXPERIMENT = Sweep(
    name="robustness",
    title="Other families and orders",
    question=(
        "Unpredicted queries may be of another kind than the paper's random 0/1 ones, and come in "
        "another order. Adult's ages, S = |P| = 100; `offline` is told the stream and is the best "
        "single release for it."
    ),
    claim=(
        "For every family and order PRIMM's expected error stays within 1.4 times that of the best "
        "single Gaussian release that knows the stream. On tables as small as these, Laplace counts "
        "of all cells are below both where unpredicted queries are random or points."
    ),
    scenarios=scenarios,
    contenders=contenders,
    drawn=(
        "primm-gaussian",
        "primm-known-gaussian",
        "histogram-total-gaussian",
        "laplace-counts-gaussian",
        "independent-gaussian",
        "offline-gaussian",
        "smooth-matrix-heavy-gaussian",
    ),
    panels=("family", "order"),
    columns=("family", "order", *COLUMNS),
)
