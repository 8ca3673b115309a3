"""The four budget splits, and which is best at which overlap."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, SPLITS, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import COLUMNS, Sweep
from experiments.workload import Scenario


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """Adult's ages, S = |P| = 100."""
    if size == "smallest":
        return [Scenario("adult-country", 0.5, 20, predicted=20)]
    steps = (0, 3, 5, 8, 10) if size == "quick" else range(11)
    return [Scenario("adult-age", step / 10) for step in steps]


def contenders(size: Size) -> Sequence[Contender]:
    """All policies of the paper with all splits."""
    if size == "quick":
        return [*BESIDE, *lapras(splits=SPLITS), *lapras(("smooth-cache",), SPLITS, ("basic",))]
    return [*BESIDE, *lapras(("static", "smooth", "smooth-cache"), SPLITS)]


EXPERIMENT = Sweep(
    name="splits",
    title="The four splits",
    question=(
        "How much of the budget should go to the predictions, the first unpredicted queries, the "
        "others and the reserve? The paper advises query-heavy up to overlap 0.5 and matrix-heavy "
        "from 0.8 on."
    ),
    claim=(
        "In the median query-heavy is best at low overlap and matrix-heavy at high, as the paper "
        "says, with equal shares close in between. Where many queries pass the estimate the "
        "reserve decides, and the expectation is far above the median. No split comes near PRIMM."
    ),
    scenarios=scenarios,
    contenders=contenders,
    drawn=tuple(
        f"{policy}-{split}-basic" for policy in ("static", "smooth", "smooth-cache") for split in SPLITS
    ),
    panels=("method",),
    columns=(*COLUMNS, "best"),
    ranked=("dataset", "overlap", "method", "accounting"),
)
