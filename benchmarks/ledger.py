"""What it costs to keep an answer: asks on durable ledgers, from several processes, beside an fsync."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from tests.postgres import Server

PAGE = b"\0" * 4096
HORIZON = 100_000
SIZE = 1_000  # levels of the only attribute
KINDS = ("release", "replay")
Times = dict[str, tuple[list[float], list[float]]]


@dataclass(frozen=True)
class Part:
    """One process's part of a run: its place among `processes`, and its number of asks of each kind."""

    where: str | None
    dataset: str
    place: int
    processes: int
    asks: int
    folder: Path


def rows(full: bool, quick: bool) -> Iterator[dict[str, object]]:
    """
    Rows {backend, processes, kind, asks_per_second, p50_ms, p99_ms, fsync_p50_ms, ratio_to_fsync}.

    A release is a new statement of the policy `independent`, parsed, measured and kept; a replay is an old
    one.  Before every ask, its process appends 4 KiB to a file of its own beside the ledger and calls fsync;
    this does not count in asks a second.  Memory keeps nothing: what it takes is not the ledger's.
    """
    counts, asks = ((1, 2), 120) if quick else ((1, 2, 4, 8), 8_000 if full else 800)
    with tempfile.TemporaryDirectory(prefix="lapras-") as name:
        folder = Path(name)
        yield from run_on("memory", None, 1, asks, folder)
        for count in counts:
            yield from run_on("sqlite", str(folder / f"{count}.db"), count, asks, folder)
        try:
            server = Server()
        except (ImportError, OSError, subprocess.SubprocessError) as error:
            print(f"no PostgreSQL can be started here: {error}", file=sys.stderr)
            return
        try:
            for count in counts:
                yield from run_on("postgresql", server.url, count, asks, folder)
        finally:
            server.remove()


def run_on(
    backend: str, where: str | None, processes: int, asks: int, folder: Path
) -> Iterator[dict[str, object]]:
    """A row of `rows` for each kind, of so many processes on one ledger."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(processes) as pool:
        gate = manager.Barrier(processes, timeout=60)
        given = [
            (Part(where, f"of {processes}", place, processes, asks // processes, folder), gate)
            for place in range(processes)
        ]
        parts: list[Times] = pool.starmap(_part, given, chunksize=1)
    for kind in KINDS:
        taken = np.array([part[kind][0] for part in parts])
        fsync = float(np.median([part[kind][1] for part in parts])) * 1e3
        p50, p99 = np.quantile(taken, [0.5, 0.99]) * 1e3
        yield {
            "backend": backend,
            "processes": processes,
            "kind": kind,
            "asks_per_second": round(float((taken.shape[1] / taken.sum(axis=1)).sum()), 1),
            "p50_ms": round(float(p50), 3),
            "p99_ms": round(float(p99), 3),
            "fsync_p50_ms": round(fsync, 3),
            "ratio_to_fsync": round(float(p50) / fsync, 2),
        }


def _part(part: Part, gate: Barrier) -> Times:
    """Seconds of each ask and of the fsync before it, for each kind."""
    domain = lp.Domain(age=lp.Integers(0, SIZE - 1))
    session = lp.open_session(
        pa.table({"age": np.arange(10 * SIZE) % SIZE}),
        domain,
        budget=lp.Budget(1, 1e-6),
        horizon=HORIZON + part.processes,  # so that no two datasets of a server are alike
        policy="independent",
        name="t",
        ledger=None if part.where is None else SQLLedger(part.where, dataset=part.dataset),
    )
    session.ask(_statement(part.place))  # loads what measures
    first = part.processes + part.place * part.asks
    found: Times = {}
    probe = os.open(part.folder / f"probe {part.place}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for kind in KINDS:
        gate.wait()
        found[kind] = ([], [])
        for number in range(first, first + part.asks):
            start = time.perf_counter()
            os.write(probe, PAGE)
            os.fsync(probe)
            between = time.perf_counter()
            session.ask(_statement(number))
            end = time.perf_counter()
            found[kind][0].append(end - between)
            found[kind][1].append(between - start)
    os.close(probe)
    return found


def _statement(number: int) -> str:
    """A range of its own for each number."""
    width, low = divmod(number, SIZE // 2)
    return f"SELECT COUNT(*) FROM t WHERE age >= {low} AND age <= {low + width}"
