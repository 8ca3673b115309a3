"""IDEBench: the queries of simulated analysts, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, KNOWN, SYSTEMS, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.idebench import Workflow
from experiments.sweep import COLUMNS, Sweep


def scenarios(size: Size, data: Data) -> Sequence[Workflow]:
    """The first 100 counting queries of each workflow."""
    overlaps = {"smallest": (0.5,), "quick": (0.0, 0.5, 1.0)}.get(size, [step / 10 for step in range(11)])
    horizon = 20 if size == "smallest" else 100
    return [Workflow(overlap, horizon, horizon) for overlap in overlaps]


def contenders(size: Size) -> Sequence[Contender]:
    """All of them."""
    return [*BESIDE, KNOWN, *SYSTEMS, *lapras()]


EXPERIMENT = Sweep(
    name="idebench",
    title="IDEBench on flights by state of origin",
    question=(
        "The visualisations of IDEBench's flights workflows that bin or filter by ORIGIN_STATE_ABR, "
        "as counting queries on the flights of the first days of 2015, filters and order kept. S = "
        "|P| = 100, ranges of states in place of what was not predicted. The paper does not say "
        "which workflows it takes, nor S and |P|."
    ),
    claim=(
        "Here noise on each cell is best, and PRIMM is not: a query counts one or two cells, hardly "
        "a cell is in two queries. Laplace counts have an error of 1.1 records, a noisy histogram "
        "2.2, CacheDP 1.9 to 2.2, PRIMM 2.5 to 2.8, since it keeps budget for queries of other "
        "kinds, which do not come. Told that all of the stream is predicted (primm-known, overlap "
        "1) it takes the Laplace counts itself. Static has the printed error at overlap 0.5; Smooth "
        "has not, and does not differ much from Static."
    ),
    scenarios=scenarios,
    contenders=contenders,
    table="text",
    drawn=(
        "primm-gaussian",
        "histogram-gaussian",
        "laplace-counts-gaussian",
        "cachedp-basic",
        "independent-basic",
        "independent-gaussian",
        "offline-basic",
        "static-matrix-heavy-basic",
        "smooth-matrix-heavy-basic",
        "smooth-matrix-heavy-gaussian",
    ),
    columns=COLUMNS,
)
