"""Four attributes of flights: 334,152 cells, which the paper never tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.accuracy import answer_errors, clairvoyant
from benchmarks.workloads import Scenario, predictions, stream
from experiments import picture
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from laprasdp import Budget
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = Budget(1.0, 1e-6)
METHODS = (
    *(("primm", "gaussian", None), ("primm-known", "gaussian", None), ("clairvoyant", "gaussian", None)),
    *(("independent", accounting, None) for accounting in ("basic", "gaussian")),
    *(
        (policy, accounting, "matrix-heavy")
        for policy in ("static", "smooth")
        for accounting in ("basic", "gaussian")
    ),
)


def measure(
    scenario: Scenario, method: str, accounting: str, split: str | None, runs: int, seed: int
) -> list[Row]:
    """One row: the expected MAE over what was answered, from exact variances; mean over workloads."""
    errors, answered = [], []
    for run in range(seed, seed + runs):
        asked = stream(scenario, run)
        if method == "clairvoyant":
            errors.append(clairvoyant(asked, BUDGET))
            answered.append(1.0)
            continue
        setting = Setting(
            scenario.domain,
            BUDGET,
            scenario.horizon,
            predictions(scenario, run),
            accounting=accounting,
            split=split or "matrix-heavy",
            overlap=scenario.overlap if method == "primm-known" else None,
        )
        found = answer_errors(policy_named(method.removesuffix("-known"), setting), asked)
        kept = [error for error in found if error is not None]
        errors.append(math.fsum(kept) / len(kept))
        answered.append(len(kept) / len(found))
    return [
        {
            "dataset": "flights",
            "S": scenario.horizon,
            "n": scenario.domain.size,
            "overlap": scenario.overlap,
            "method": method,
            "split": split,
            "accounting": accounting,
            "expected_mae": round(float(np.mean(errors)), 4),
            "answered": round(float(np.mean(answered)), 4),
            "epsilon_true": BUDGET.epsilon,
            "runs": runs,
        }
    ]


@dataclass(frozen=True)
class Flights:
    """The experiment."""

    name: str = "flights"
    title: str = "Four attributes: 334,152 cells"
    question: str = (
        "Carrier, state of origin, arrival delay and distance of flights; 100 predicted "
        "conjunctions of one to three attributes and others like them, at (1, 1e-6). Errors are "
        "expectations from exact variances; no table is read. A noisy histogram is refused at this "
        "size, and so are the dense baselines. S = 1,000 beside S = 100 in the larger runs."
    )
    claim: str = (
        "Where a histogram is hopeless, predictions pay: PRIMM is below independent noise at every "
        "overlap. From S = 100 to 1,000 its error grows less than twofold, that of noise by the root of ten."
    )
    columns: Sequence[str] = (
        *("dataset", "S", "n", "overlap", "method", "split", "accounting"),
        *("expected_mae", "answered", "epsilon_true"),
    )

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One method at one overlap each."""
        base = Scenario(None, family="conjunction")
        overlaps = (0.5,) if size == "smallest" else (0.0, 0.5, 0.9, 1.0)
        found = [replace(base, overlap=overlap) for overlap in overlaps]
        methods = METHODS
        if size == "smallest":
            methods = METHODS[3:5]
        elif size == "quick":
            methods = tuple(one for one in METHODS if one[0] not in ("clairvoyant", "primm-known"))
        else:
            found += [replace(base, horizon=1_000, overlap=0.5)]
        runs = 1 if size in ("smallest", "quick") else 2
        return [
            Cell(
                f"S{scenario.horizon}-{scenario.overlap:g}/{'-'.join(filter(None, method))}",
                partial(measure, scenario, method[0], method[1], method[2], runs, seed),
            )
            for scenario in found
            for method in methods
            if method[0] != "clairvoyant" or scenario.horizon == 100  # 1,000 tell too many columns apart
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows as they are."""
        return list(rows)

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Expected errors at S = 100 against overlap."""
        (axes,) = picture.panels(figure)
        series = []
        for method, accounting, split in METHODS:
            line = [
                row
                for row in rows
                if (row["method"], row["accounting"], row["split"]) == (method, accounting, split)
                and row["S"] == 100
            ]
            label = " ".join(filter(None, (method, split, "" if accounting == "basic" else "GDP")))
            places, values = [row["overlap"] for row in line], [row["expected_mae"] for row in line]
            series.append(picture.Series(label, places, values, method=method))
        x, y = "share of the stream that was predicted", "expected absolute error, records"
        picture.lines(axes, series, title="Flights, S = 100, ε = 1, δ = 10⁻⁶", x=x, y=y)

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Nothing is printed for it."""
        return []


EXPERIMENT = Flights()
