"""Runs experiments: their cells in worker processes, what is finished kept at once, the report at the end."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments import picture
from experiments.data import Data, Skipped
from experiments.experiment import Cell, Comparison, Experiment, Row, Size
from experiments.page import page
from experiments.sheet import sheet
from experiments.store import Store, finished, manifest

FAILED = "failed: "
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """
    A finished experiment.

    Attributes
    ----------
    experiment : Experiment
    rows : tuple of dict
        In the order of the cells.
    comparisons : tuple of Comparison
    skipped : dict
        Key of each cell that could not be run here, or that failed, and why.
    manifest : dict
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    skipped: dict[str, str]
    manifest: dict[str, Any]

    @property
    def failed(self) -> bool:
        """Whether a cell ended in an error."""
        return any(why.startswith(FAILED) for why in self.skipped.values())


def run(
    chosen: Sequence[Experiment],
    *,
    size: Size,
    data: Data,
    seed: int,
    out: Path,
    workers: int | None = None,
    console: Console | None = None,
) -> list[Result]:
    """
    Run experiments and write their report.

    Parameters
    ----------
    chosen : sequence of Experiment
    size : {"smallest", "quick", "standard", "full"}
    data : Data
    seed : int
    out : Path
        Finished cells in ``NAME/rows.jsonl``; a run that was killed goes on from there.  At the end
        ``NAME.csv``, ``.json``, ``.png``, ``.svg``, ``index.html`` and ``tables.md``.
    workers : int, optional
        Processes, each with one thread; as many as there are cores otherwise.  0 runs in this process.
    console : Console, optional
        For progress; standard error otherwise.

    Returns
    -------
    list of Result
    """
    console = console or Console(stderr=True)
    settings = {"size": size, "seed": seed, "data": data.fingerprint()}
    stores = {e.name: Store(out / e.name, {"name": e.name, **settings}) for e in chosen}
    cells = {e.name: e.cells(size, data, seed) for e in chosen}
    began = time.perf_counter()
    skipped = _finish(chosen, cells, stores, os.cpu_count() or 1 if workers is None else workers, console)
    seconds = time.perf_counter() - began
    results = []
    for experiment in chosen:
        name, store = experiment.name, stores[experiment.name]
        kept = [store.finished[cell.key] for cell in cells[name] if cell.key in store.finished]
        rows = tuple(experiment.finish([row for cell in kept for row in cell["rows"]]))
        store.table(name, rows, experiment.columns)
        facts = {"settings": settings, "seconds": round(seconds, 1), "skipped": skipped[name]}
        told = store.manifest(name, facts)
        results.append(Result(experiment, rows, tuple(experiment.compare(rows)), skipped[name], told))
    _write(results, out)
    return results


def report(chosen: Sequence[Experiment], out: Path) -> list[Result]:
    """
    Write the report of an earlier run anew from its finished cells; nothing is run.

    Parameters
    ----------
    chosen : sequence of Experiment
        Those of which `out` has no cells are left out.
    out : Path
        Of the earlier run, which may have been of other source text and may still go on; its rows and
        manifests are read, and pictures, ``index.html`` and ``tables.md`` are written.

    Returns
    -------
    list of Result
    """
    results = []
    for experiment in chosen:
        rows = tuple(
            experiment.finish([row for cell in finished(out / experiment.name) for row in cell["rows"]])
        )
        if rows:
            told = manifest(out, experiment.name)
            skipped = told.get("skipped", {})
            results.append(Result(experiment, rows, tuple(experiment.compare(rows)), skipped, told))
    _write(results, out)
    return results


def _write(results: Sequence[Result], out: Path) -> None:
    """Pictures, page and tables."""
    for result in results:
        if result.rows:
            figure = picture.figure()
            result.experiment.draw(result.rows, figure)
            picture.save(figure, out / result.experiment.name)
    page(results, out)
    sheet(results, out)


def _finish(
    chosen: Sequence[Experiment],
    cells: dict[str, list[Cell]],
    stores: dict[str, Store],
    workers: int,
    console: Console,
) -> dict[str, dict[str, str]]:
    """Run every cell that is not in its store; what was skipped, and why, by experiment."""
    skipped: dict[str, dict[str, str]] = {experiment.name: {} for experiment in chosen}
    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        tasks, waiting = {}, []
        for experiment in chosen:
            name = experiment.name
            left = [cell for cell in cells[name] if cell.key not in stores[name].finished]
            done = len(cells[name]) - len(left)
            tasks[name] = progress.add_task(name, total=len(cells[name]), completed=done)
            waiting += [(name, cell) for cell in left]

        def keep(name: str, key: str, outcome: tuple[float, list[Row], str | None]) -> None:
            seconds, rows, missing = outcome
            if missing is None:
                stores[name].add(key, seconds, rows)
            else:
                if missing not in skipped[name].values():
                    told = f"/{key}: {missing}" if missing.startswith(FAILED) else f": skipped: {missing}"
                    progress.console.print(f"{name}{told}", highlight=False, markup=False)
                skipped[name][key] = missing
            progress.advance(tasks[name])

        if workers < 1:
            for name, cell in waiting:
                keep(name, cell.key, run_cell(cell))
            return skipped
        context = multiprocessing.get_context("spawn")
        with _single_threaded(), ProcessPoolExecutor(workers, context, initializer=end_together) as pool:
            running: dict[Future[Any], tuple[str, str]] = {
                pool.submit(run_cell, cell): (name, cell.key) for name, cell in waiting
            }
            try:
                for future in as_completed(running):
                    keep(*running[future], future.result())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    return skipped


def end_together() -> None:
    """Let this worker end when the run is killed, which cannot tell it."""
    run = multiprocessing.parent_process()
    assert run is not None
    sentinel = run.sentinel

    def wait() -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes that are started now have one thread each, in whatever linear algebra library they load."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_cell(cell: Cell) -> tuple[float, list[Row], str | None]:
    start = time.perf_counter()
    try:
        rows, missing = cell.run(), None
    except Skipped as skip:
        rows, missing = [], str(skip)
    except Exception as error:  # the hours of the other cells are not lost with it
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}"
        rows, missing = [], f"{FAILED}{what} ({Path(where.filename).name}, line {where.lineno})"
    return time.perf_counter() - start, rows, missing
