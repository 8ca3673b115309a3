"""Run one benchmark by name: a table for people, one JSON object a line with ``--json``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

NAMES = {
    "accuracy": "benchmarks.accuracy",
    "coverage": "benchmarks.coverage",
    "dashboard": "benchmarks.dashboard",
    "design": "benchmarks.design",
    "engines": "benchmarks.engines",
    "ledger": "benchmarks.ledger",
    "scale": "benchmarks.scale",
    "service": "benchmarks.service",
    "solver": "benchmarks.solver",
    "stream": "benchmarks.stream",
    "streams": "benchmarks.streams",
    "takeover": "benchmarks.takeover",
}


def main(arguments: list[str] | None = None) -> int:
    """
    Run the benchmark that the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        Command line without the program's name; that of the process when absent.

    Returns
    -------
    int
        Exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(NAMES))
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="also run what takes minutes")
    size.add_argument("--quick", action="store_true", help="run the smallest sizes only")
    parser.add_argument("--domain", choices=("line", "flights"), help="table of `accuracy`; line by default")
    parser.add_argument("--real", action="store_const", const=True, help="`accuracy` over real tables")
    parser.add_argument("--axis", help="axis of `scale`: this one alone")
    parser.add_argument("--data", help="folder of `dashboard`; the packaged flights without")
    chosen = parser.parse_args(arguments)
    rows_of = importlib.import_module(NAMES[chosen.name]).rows
    more = {
        key: value
        for key in ("domain", "data", "axis", "real")
        if (value := getattr(chosen, key)) is not None
    }
    takes = inspect.signature(rows_of).parameters
    for key in more.keys() - takes.keys():
        parser.error(f"{chosen.name} takes no --{key}")
    found: Iterator[dict[str, Any]] = rows_of(full=chosen.full, quick=chosen.quick, **more)
    if chosen.json:
        for row in found:
            print(json.dumps(row), flush=True)
        return 0
    rows = []
    progress = Console(stderr=True)
    with progress.status(f"{chosen.name}: first row"):
        for row in found:
            rows.append(row)
            progress.print("  ".join(f"{key}={_text(value)}" for key, value in row.items()), highlight=False)
    headers = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=chosen.name)
    for header in headers:
        numeric = all(not isinstance(row.get(header), str) for row in rows)
        table.add_column(header, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_text(row.get(header)) for header in headers))
    Console().print(table)
    return 0


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
