"""Table 4: seconds, and the general semidefinite solver on the same instances."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.solver import general
from experiments import picture
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from experiments.method import Counts, queries
from experiments.printed import lookup
from experiments.trial import Floats
from experiments.workload import BUDGET, Scenario
from laprasdp import BudgetExhausted, SeededNoise, open_session
from laprasdp.strategy.optimize import optimize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 120.0
"""Seconds after which the semidefinite solver is stopped."""

SIZES = ((50, 50), (100, 50), (200, 500), (500, 500))
"""|P| and Q, as printed."""

POLICIES = {"lapras-mm": "static", "smooth": "smooth", "offline": "offline", "primm": "primm"}


def ours(scenario: Scenario, data: Data, seed: int, runs: int) -> list[Row]:
    """
    Seconds of each policy before the stream and for it, medians over runs.

    Notes
    -----
    Before the stream: from opening the session to the first answer of a predicted query, so that design and
    release are in it.  `lapras-mm` is LAPRAS's release for its predictions, `offline` that for the stream.
    """
    found = []
    for method, policy in POLICIES.items():
        times = []
        for run in range(runs):
            trial = scenario.trial(data, seed, run)
            table = Counts(trial.counts)
            predicted = queries(table.domain, trial.stream if method == "offline" else trial.predictions)
            asked = queries(table.domain, trial.stream)
            start = time.perf_counter()
            session = open_session(
                table,
                table.domain,
                budget=BUDGET,
                horizon=trial.horizon,
                predictions=predicted,
                policy=policy,
                accounting="gaussian" if policy == "primm" else "basic",
                split="query-heavy",
                release="gaussian",
                public=True,
                noise=SeededNoise(run),
            )
            session.ask(predicted[0])
            opened = time.perf_counter()
            for query in asked:
                try:
                    session.ask(query)
                except BudgetExhausted:
                    continue
            times.append((opened - start, time.perf_counter() - opened))
        setup, stream = np.median(times, axis=0)
        seconds = stream if method == "smooth" else setup
        found.append(_row(scenario, method, float(seconds), setup=float(setup), stream=float(stream)))
    return found


def solver(scenario: Scenario, data: Data, seed: int) -> list[Row]:
    """The optimum for the predictions by ours, and by cvxpy with SDPA where it finishes within `LIMIT`."""
    workload = scenario.trial(data, seed, 0).predictions.astype(np.float64)
    start = time.perf_counter()
    found = optimize(workload, gap=1e-4)
    row = _row(scenario, "our solver", time.perf_counter() - start)
    rows = [row | {"error": 1 + found.gap}]
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_general, args=(workload, send))
    process.start()
    send.close()  # so that a solver that dies ends the wait
    try:
        value, seconds = receive.recv() if receive.poll(LIMIT) else (None, None)
        note = "" if seconds is not None else f"stopped after {LIMIT:g} s"
    except EOFError:
        value, seconds, note = None, None, "the solver failed"
    process.kill()
    process.join()
    rows.append(_row(scenario, "cvxpy-sdpa", seconds) | {"note": note})
    if value is not None:
        rows[-1]["error"] = round(value / found.lower_bound, 6)
    return rows


def _general(workload: Floats, send: Connection) -> None:
    send.send(general(workload, "SDPA"))


def _row(scenario: Scenario, method: str, seconds: float | None, **more: float) -> Row:
    known = method in ("lapras-mm", "smooth", "offline")
    return {
        "n": 74 if scenario.dataset == "adult-age" else 42,
        "P": scenario.predicted,
        "Q": scenario.length,
        "method": method,
        "seconds": None if seconds is None else round(seconds, 4),
        **{name: round(value, 4) for name, value in more.items()},
        "printed": lookup(table=4, metric="seconds", P=scenario.predicted, Q=scenario.length, method=method)
        if known
        else None,
    }


@dataclass(frozen=True)
class Runtime:
    """The experiment."""

    name: str = "runtime"
    title: str = "Table 4: seconds"
    question: str = (
        "How long do the release for the predictions and the answers of a stream take? Adult's "
        "ages, query-heavy, overlap 0.5, on the cores named in the manifest while other cells run; "
        "beside the paper's seconds, and beside its solver, cvxpy with SDPA, on the same "
        "predictions, stopped after two minutes. `error` is the total squared error over the "
        "certified lower bound."
    )
    claim: str = (
        "The optimum takes a fraction of a second, with a certificate: thousands of times less than "
        "printed, and hundreds of times less than the semidefinite program on the same machine."
    )
    columns: Sequence[str] = (
        "n",
        "P",
        "Q",
        "method",
        "seconds",
        "setup",
        "stream",
        "error",
        "printed",
        "note",
    )

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One size of the prediction set each, and the solvers on the small ones."""
        sizes = {"smallest": ((10, 10),), "quick": SIZES[:3]}.get(size, SIZES)
        dataset = "adult-country" if size == "smallest" else "adult-age"
        timed = [Scenario(dataset, 0.5, max(100, q), q, m) for m, q in sizes]
        solved = [Scenario("adult-country", 0.5, 20, 20, 8 if size == "smallest" else 30)]
        solved += (
            []
            if size in ("smallest", "quick")
            else [Scenario("adult-age", 0.5, 100, 50, m) for m in (50, 100)]
        )
        runs = {"smallest": 1, "quick": 1, "standard": 3}.get(size, 5)
        return [
            *(Cell(f"ours-{one.key}", partial(ours, one, data, seed, runs)) for one in timed),
            *(Cell(f"solver-{one.key}", partial(solver, one, data, seed)) for one in solved),
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows as they are."""
        return list(rows)

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Seconds, ours and printed."""
        bars = [
            picture.Bar(
                f"{row['method']}, |P| = {row['P']}",
                row["seconds"],
                printed=row["printed"],
                method=row["method"],
            )
            for row in rows
        ]
        (axes,) = picture.panels(figure, height=1.5 + 0.3 * len(bars))
        picture.bars(axes, bars, title="Seconds; a stroke is the paper's number", x="seconds", log=True)

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Ours beside the printed seconds."""
        return [
            Comparison(
                "Table 4",
                f"{row['method']}, |P| = {row['P']}, Q = {row['Q']}, seconds",
                row["printed"],
                row["seconds"],
                round(row["seconds"] / row["printed"], 6),
            )
            for row in rows
            if row["printed"]
        ]


EXPERIMENT = Runtime()
