"""Growth with the processes on one SQLite ledger: how many asks a second all of them are answered."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ledger import run_on

COUNTS = (1, 2, 4, 8)


def rows(counts: Sequence[int], asks: int) -> Iterator[dict[str, Any]]:
    """
    Rows {axis, value, kind, asks_per_second, ratio_to_one, p50_ms, p99_ms} of statements that are measured.

    `asks` are shared out among the processes; see `benchmarks.ledger` for what each of them does.
    """
    alone = None
    with tempfile.TemporaryDirectory(prefix="lapras-") as name:
        for count in counts:
            (release, _) = run_on("sqlite", str(Path(name) / f"{count}.db"), count, asks, Path(name))
            alone = alone or release["asks_per_second"]
            assert isinstance(alone, float)
            yield {
                "axis": "processes",
                "value": count,
                "asks_per_second": release["asks_per_second"],
                "ratio_to_one": round(float(str(release["asks_per_second"])) / alone, 2),
                "p50_ms": release["p50_ms"],
                "p99_ms": release["p99_ms"],
            }
