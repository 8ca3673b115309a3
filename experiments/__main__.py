"""Run one of the paper's experiments by name, or all: rows, pictures and one page to look at."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.data import find
from experiments.experiment import Experiment, Size
from experiments.run import Result, report, run

NAMES = (
    "figures",
    "overlap",
    "prediction-size",
    "runtime",
    "order",
    "normalized",
    "cachedp",
    "static-vs-smooth",
    "cache",
    "idebench",
    "estimator",
    "splits",
    "robustness",
    "flights",
    "primm",
    "predictor",
)


def named(name: str) -> Experiment:
    """The experiment called `name`."""
    module = importlib.import_module(f"experiments.tables.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found


def main(arguments: list[str] | None = None) -> int:
    """
    Run what the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        Command line without the program's name; that of the process when absent.

    Returns
    -------
    int
        Exit status: 1 where nothing could be run.
    """
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "name", choices=(*NAMES, "all", "report"), help="`report` only writes anew what `--out` has"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="few runs and settings; all in ten minutes")
    sizes.add_argument("--full", action="store_true", help="many runs, every setting; hours")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the report; out")
    parser.add_argument("--data", type=Path, help="directory of the data sets; found by itself otherwise")
    parser.add_argument("--checkins", type=Path, help="SNAP's loc-gowalla_totalCheckins.txt.gz")
    parser.add_argument("--seed", type=int, default=0, help="of every generator; 0")
    parser.add_argument("--workers", type=int, help="processes; one a core")
    chosen = parser.parse_args(arguments)
    size: Size = "quick" if chosen.quick else "full" if chosen.full else "standard"
    if chosen.name == "report":
        return 0 if report([named(name) for name in NAMES], chosen.out) else 1
    names = NAMES if chosen.name == "all" else (chosen.name,)
    data = find(chosen.data, chosen.checkins)
    console = Console(stderr=True)
    if data.root is None:
        console.print(f"no data directory; looked in {', '.join(map(str, data.looked))}", highlight=False)
    try:
        results = run(
            [named(name) for name in names],
            size=size,
            data=data,
            seed=chosen.seed,
            out=chosen.out,
            workers=chosen.workers,
            console=console,
        )
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here")
        return 130
    for result in results:
        if chosen.json:
            for row in result.rows:
                print(json.dumps(row), flush=True)
        else:
            Console().print(_table(result))
    console.print(f"written to {chosen.out / 'index.html'}", highlight=False)
    return 0 if all(result.rows and not result.failed for result in results) else 1


def _table(result: Result) -> Table:
    table = Table(title=result.experiment.title)
    for column in result.experiment.columns:
        numeric = all(not isinstance(row.get(column), str) for row in result.rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in result.rows:
        table.add_row(*(_text(row.get(column)) for column in result.experiment.columns))
    return table


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
