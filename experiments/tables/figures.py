"""The paper's figures: error against overlap on every table, S = 50 and 100."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import HISTOGRAMS, INDEPENDENT, OFFLINE, PRIMM, SYSTEMS, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """Each table at S = 50 and 100; |P| = S."""
    if size == "smallest":
        return [Scenario("adult-country", overlap, 20, predicted=20) for overlap in (0.5, 1.0)]
    overlaps = [0.0, 0.5, 1.0] if size == "quick" else [step / 10 for step in range(11)]
    return [
        Scenario(dataset, overlap, horizon, predicted=horizon)
        for dataset in data.datasets
        for horizon in (50, 100)
        for overlap in overlaps
    ]


def contenders(size: Size) -> Sequence[Contender]:
    """What the figures show, and ours."""
    return [
        PRIMM,
        *HISTOGRAMS,
        *INDEPENDENT,
        *OFFLINE,
        *lapras(accountings=("basic",)),
        SYSTEMS[0],
        *(lapras(accountings=("gaussian",)) if size != "quick" else ()),
    ]


EXPERIMENT = Sweep(
    name="figures",
    title="Figures: Adult and Gowalla",
    question=(
        "Error of each method against the share of the stream that was predicted, on Adult's age "
        "(74 cells) and country (42) and on 100 cells of Gowalla, S = |P| = 50 and 100. The "
        "pictures of the paper print no numbers. Gowalla's check-ins per location cannot be had "
        "here: gowalla-grid has check-ins in cells of a grid, gowalla-visitors distinct visitors by "
        "location."
    ),
    claim=(
        "The tables hardly matter: noise depends on the queries and the budget only. Sound Static "
        "and Smooth start above independent noise and fall with the overlap; PRIMM, noisy counts "
        "of all cells and CacheDP are ten times below independent noise at every overlap."
    ),
    scenarios=scenarios,
    contenders=contenders,
    drawn=(
        "primm-gaussian",
        "histogram-total-gaussian",
        "independent-basic",
        "offline-basic",
        "static-query-heavy-basic",
        "smooth-query-heavy-basic",
        "static-matrix-heavy-basic",
        "smooth-matrix-heavy-basic",
        "cachedp-basic",
    ),
    panels=("dataset", "S"),
)
