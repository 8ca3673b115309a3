"""Table 7: beside CacheDP and other systems that keep what they have released."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, KNOWN, SYSTEMS, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import COLUMNS, Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """Adult's ages, S = |P| = 100."""
    if size == "smallest":
        return [Scenario("adult-country", 0.5, 20, predicted=20)]
    overlaps = (0.0, 0.5, 1.0) if size == "quick" else [step / 10 for step in range(11)]
    return [Scenario("adult-age", overlap) for overlap in overlaps]


def contenders(size: Size) -> Sequence[Contender]:
    """All systems."""
    return [*BESIDE, KNOWN, *SYSTEMS, *lapras()]


EXPERIMENT = Sweep(
    name="cachedp",
    title="Table 7: CacheDP, PMW and PrivateSQL",
    question=(
        "Other systems under the same fixed (ε, δ), each warmed with the prediction set: CacheDP's "
        "cache of tree counts, private multiplicative weights, one synopsis in the manner of "
        "PrivateSQL. Adult's ages, S = |P| = 100; NMAE = MAE / mean true answer, NRMSE = RMSE / "
        "range of the true answers."
    ),
    claim=(
        "Under a fixed budget CacheDP, written from its paper, is more than a hundred times better "
        "than printed and below LAPRAS at every overlap: on 74 cells a few Laplace counts, bought "
        "once, answer everything. PRIMM passes it only near overlap 1."
    ),
    scenarios=scenarios,
    contenders=contenders,
    table="7",
    metrics=("nmae", "nrmse"),
    drawn=(
        "primm-gaussian",
        "histogram-total-gaussian",
        "laplace-counts-gaussian",
        "independent-basic",
        "offline-basic",
        "cachedp-basic",
        "pmw-gaussian",
        "privatesql-gaussian",
        "static-query-heavy-basic",
        "static-matrix-heavy-basic",
        "smooth-matrix-heavy-basic",
        "smooth-matrix-heavy-gaussian",
    ),
    columns=(*COLUMNS, "nmae", "nrmse", "printed_nrmse"),
)
