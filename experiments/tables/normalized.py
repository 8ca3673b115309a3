"""Table 6: errors relative to the size of the answers."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contender import BESIDE, Contender, lapras
from experiments.data import Data
from experiments.experiment import Size
from experiments.sweep import Sweep
from experiments.workload import Scenario

METRICS = ("nmae", "nrmse", "mape", "smape")


def scenarios(size: Size, data: Data) -> Sequence[Scenario]:
    """As in Table 3, on a large table and on a small one."""
    if size == "smallest":
        return [Scenario("adult-country", 0.5, 20, 10, predicted=20)]
    return [
        Scenario(dataset, overlap, length=50, predicted=predicted)
        for dataset in ("adult-age", "gowalla-visitors")
        for predicted in (50, 100)
        for overlap in (0.0, 0.5, 1.0)
    ]


def contenders(size: Size) -> Sequence[Contender]:
    """The paper's at query-heavy, as in its table."""
    return [*BESIDE, *lapras(splits=("query-heavy",))]


EXPERIMENT = Sweep(
    name="normalized",
    title="Table 6: normalized errors",
    question=(
        "Errors over the size of the answers: NMAE = MAE / mean true answer, NRMSE = RMSE / range "
        "of the true answers, MAPE with a divisor of at least 1, SMAPE = mean of 2|a−t| / "
        "(|a|+|t|). The paper defines none of them and does not name the table."
    ),
    claim=(
        "The same absolute errors are 1% of an answer on Adult (48,842 rows) and a fifth of one on "
        "100 locations of Gowalla: normalized errors tell the size of the table."
    ),
    scenarios=scenarios,
    contenders=contenders,
    table="6",
    metrics=METRICS,
    drawn=(
        "primm-gaussian",
        "histogram-total-gaussian",
        "independent-basic",
        "offline-basic",
        "smooth-query-heavy-basic",
    ),
    panels=("dataset", "P"),
    columns=(
        "dataset",
        "S",
        "Q",
        "P",
        "overlap",
        "method",
        "split",
        "accounting",
        "mae",
        *METRICS,
        "answered",
        "printed",
        *(f"printed_{metric}" for metric in METRICS[1:]),
    ),
)
