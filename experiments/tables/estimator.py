"""The estimate of how many queries are unpredicted: its mean and variance, exactly and by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from experiments import picture
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from laprasdp.pacing.arrivals import estimate_unpredicted, variance_bound, warm_up_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STREAMS = {"smallest": 2_000, "quick": 10_000, "standard": 50_000, "full": 500_000}


def exact(horizon: int, warm_up: int, unpredicted: int) -> tuple[Fraction, Fraction, Fraction]:
    """
    Mean and variance of B̂ at b = T in random order, and the probability that it is below B.

    Parameters
    ----------
    horizon, warm_up, unpredicted : int
        S, T and B, with 2 ≤ T ≤ B ≤ S.

    Notes
    -----
    The T-th unpredicted query is at position L with probability C(L−1, T−1)·C(S−L, B−T) / C(S, B); all sums
    are in fractions.
    """
    first = second = below = Fraction(0)
    for position in range(warm_up, horizon - unpredicted + warm_up + 1):
        ways = math.comb(position - 1, warm_up - 1) * math.comb(horizon - position, unpredicted - warm_up)
        share = Fraction(ways, math.comb(horizon, unpredicted))
        estimate = estimate_unpredicted(horizon, warm_up, position)
        first, second = first + share * estimate, second + share * estimate**2
        below += share * (estimate < unpredicted)
    return first, second - first**2, below


def measure(horizon: int, unpredicted: int, streams: int, seed: int) -> list[Row]:
    """One row: B̂ at the T of the natural logarithm, from all positions and from shuffled streams."""
    warm_up = warm_up_length(horizon)
    mean, variance, below = exact(horizon, warm_up, unpredicted)
    rng = np.random.default_rng([seed, horizon, unpredicted])
    places = np.sort(rng.permuted(np.tile(np.arange(1, horizon + 1), (streams, 1)), axis=1)[:, :unpredicted])
    estimates = horizon * (warm_up - 1) / (places[:, warm_up - 1] - 1)
    bound = variance_bound(horizon, warm_up, unpredicted)
    return [
        {
            "S": horizon,
            "T": warm_up,
            "B": unpredicted,
            "mean": float(mean),
            "unbiased": mean == unpredicted,
            "mean_simulated": round(float(estimates.mean()), 4),
            "standard_error": round(float(estimates.std(ddof=1)) / math.sqrt(streams), 4),
            "variance": round(float(variance), 4),
            "variance_simulated": round(float(estimates.var(ddof=1)), 4),
            "bound": round(bound, 4),
            "below": round(float(below), 4),
            "bad_first": round(float(estimate_unpredicted(horizon, warm_up, warm_up)), 4),
            "streams": streams,
        }
    ]


@dataclass(frozen=True)
class Estimator:
    """The experiment."""

    name: str = "estimator"
    title: str = "The estimator of the unpredicted queries"
    question: str = "x"
    claim: str = "x"
    columns: Sequence[str] = (
        *("S", "T", "B", "mean", "unbiased", "mean_simulated", "standard_error"),
        *("variance", "variance_simulated", "bound", "below", "bad_first"),
    )

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One number of unpredicted queries each."""
        horizons = {"smallest": (20,), "quick": (50, 100)}.get(size, (50, 100, 200))
        return [
            Cell(f"S{horizon}-B{count}", partial(measure, horizon, count, STREAMS[size], seed))
            for horizon in horizons
            for count in sorted({warm_up_length(horizon), *range(horizon // 2, horizon + 1, horizon // 10)})
            if count >= warm_up_length(horizon)
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows as they are."""
        return list(rows)

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Exact variance and its bound against B."""
        horizons = sorted({row["S"] for row in rows})
        for horizon, axes in zip(horizons, picture.panels(figure, 1, len(horizons)), strict=True):
            part = [row for row in rows if row["S"] == horizon]
            places = [row["B"] for row in part]
            series = [
                picture.Series("bound", places, [row["bound"] for row in part], method="printed"),
                picture.Series("exact", places, [row["variance"] for row in part], method="primm"),
            ]
            title = f"Variance of the estimate, S = {horizon}, T = {part[0]['T']}"
            picture.lines(
                axes, series, title=title, x="B, unpredicted queries", y="squared queries", log=False
            )

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """The theorems' mean and bound beside the exact ones."""
        found = []
        for row in rows:
            what = f"S = {row['S']}, T = {row['T']}, B = {row['B']}"
            ratio = round(row["mean"] / row["B"], 6)
            found.append(Comparison("Theorem", f"mean of the estimate, {what}", row["B"], row["mean"], ratio))
            if row["bound"] > 0:
                reason = "An upper bound." if row["variance"] <= row["bound"] else None
                ratio = round(row["variance"] / row["bound"], 4)
                found.append(
                    Comparison(
                        "Theorem",
                        f"variance of the estimate, {what}",
                        row["bound"],
                        row["variance"],
                        ratio,
                        reason,
                    )
                )
        return found


EXPERIMENT = Estimator(
    question=(
        "Is the estimate B̂ = S(T−1)/(L−1) unbiased in random order, and is its variance below the "
        "paper's bound? Exact sums over every position L of the T-th unpredicted query, beside "
        "shuffled streams. `below` is the probability that B̂ < B, so that queries overflow into "
        "the reserve; `bad_first` the estimate when all unpredicted queries come first."
    ),
    claim=(
        "Unbiased exactly, and the bound holds for T ≥ 3. But in about half of all streams B̂ is "
        "below B, and what comes after is answered from a reserve that halves each time."
    ),
)
