"""Time and certified gap of the strategy solver, beside two general semidefinite solvers."""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import PREDICTED, conjunctions, distinct, flights
from laprasdp.queries.workload import Workload
from laprasdp.strategy.optimize import Optimum, optimize

Floats = npt.NDArray[np.float64]
SEED = 20240101


def ranges(n: int, m: int, seed: int = SEED) -> Floats:
    """
    Draw ranges with both ends uniform on a line.

    Parameters
    ----------
    n, m : int
        Cells and queries.
    seed : int
        Of the generator; public.

    Returns
    -------
    (m, n) array
        One 0/1 query a row.
    """
    ends = np.sort(np.random.default_rng(seed).integers(0, n, size=(m, 2)), axis=1)
    cells = np.arange(n)
    return ((ends[:, :1] <= cells) & (cells <= ends[:, 1:])).astype(np.float64)


def general(workload: Floats, solver: str) -> tuple[float, float]:
    """
    Solve the semidefinite program of the matrix mechanism with a general solver.

    Parameters
    ----------
    workload : (m, n) array
        One query a row.
    solver : {"SCS", "SDPA", "CLARABEL"}
        Name that cvxpy knows.

    Returns
    -------
    tuple of float
        Total variance at unit noise of the solver's strategy, scaled to unit sensitivity, and seconds.
        Equal and empty columns are merged first, as in ours.

    Notes
    -----
    Minimise :math:`\\mathrm{tr}\\,T` with the block matrix of :math:`T`, :math:`W` and :math:`K` positive
    semidefinite and :math:`K_{ii}\\le 1` (Li et al., VLDB J. 2015).
    """
    import cvxpy as cp

    distinct = np.unique(workload[:, workload.any(axis=0)], axis=1)
    m, p = distinct.shape
    start = time.perf_counter()
    block = cp.Variable((m + p, m + p), symmetric=True)
    limits = [block >> 0, block[:m, m:] == distinct, cp.diag(block)[m:] <= 1]
    program = cp.Problem(cp.Minimize(cp.trace(block[:m, :m])), limits)
    settings: dict[str, Any] = {"SCS": {"eps": 1e-6, "max_iters": 20000}}.get(solver, {})
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):  # rows alone go to stdout
        warnings.simplefilter("ignore")  # "solution may be inaccurate": accuracy is what is measured here
        program.solve(solver=solver, **settings)
    seconds = time.perf_counter() - start
    precision = np.asarray(block.value)[m:, m:]
    power, vectors = np.linalg.eigh((precision + precision.T) / 2)
    power = np.maximum(power, 1e-9 * power[-1])  # to a positive definite matrix, then to unit diagonal
    largest = float(((vectors**2) @ power).max())
    return float(((distinct @ vectors) ** 2 / power).sum()) * largest, seconds


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    Measure each solver on m = n random ranges, objective the total squared error; then ours, in a process of
    its own, on 100 conjunctions of flight attributes, objective the absolute error, to a gap of 1%.

    Parameters
    ----------
    full : bool
        Also SDPA at n = 64.
    quick : bool
        Only n = 32, and ours alone at n = 256 and on flights.

    Yields
    ------
    dict
        n (distinct columns), m, solver, seconds, objective (at unit noise and sensitivity), gap relative to
        our certified lower bound; on flights also peak_mib, the most memory that the process has held.
    """
    optimize(ranges(8, 8))  # the first call loads the linear algebra library
    for n in (32,) if quick else (32, 64, 100):
        workload = ranges(n, n)
        found, row = _ours(n, workload)
        yield row
        for solver in ("SCS", "SDPA"):
            if solver == "SDPA" and (n == 100 or (n == 64 and not full)):
                continue
            value, seconds = general(workload, solver)
            yield _row(n, f"cvxpy-{solver.lower()}", seconds, value, value / found.lower_bound - 1)
    for n in (256,) if quick else (256, 512, 1024):
        yield _ours(n, ranges(n, n))[1]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool.apply(_flights)


def _flights() -> dict[str, Any]:
    """The prediction release of 100 conjunctions."""
    domain = flights()
    predicted = distinct(conjunctions(domain, np.random.default_rng(SEED)), PREDICTED)
    start = time.perf_counter()
    columns = Workload(predicted).columns.values.astype(np.float64)
    found = optimize(columns, objective="absolute", gap=1e-2)
    seconds = time.perf_counter() - start
    row = _row(columns.shape[1], "ours", seconds, found.value, found.gap)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return {**row, "m": len(columns), "peak_mib": round(peak)}


def _ours(n: int, workload: Floats) -> tuple[Optimum, dict[str, Any]]:
    start = time.perf_counter()
    found = optimize(workload)
    seconds = time.perf_counter() - start
    return found, _row(n, "ours", seconds, found.value, found.gap)


def _row(n: int, solver: str, seconds: float, value: float, gap: float) -> dict[str, Any]:
    return {"n": n, "m": n, "solver": solver, "seconds": seconds, "objective": value, "gap": gap}
