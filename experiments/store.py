"""What an experiment leaves behind: finished cells as they come, at the end a table and a manifest."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import experiments
import laprasdp
from experiments.experiment import Row

PACKAGES = ("numpy", "scipy", "matplotlib", "duckdb", "opendp", "cvxpy", "sdpa-python")


class Store:
    """
    The finished cells of one experiment, one line each in ``rows.jsonl``.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    settings : mapping
        Plain data; a store of other settings, or of other source text, is begun anew.

    Notes
    -----
    A line is written in one piece and synchronised; a last line that a killed run left incomplete is dropped.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder, self._path = folder, folder / "rows.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        told = json.dumps({**settings, "source": source_digest()}, sort_keys=True)
        head = json.dumps({"settings": hashlib.sha256(told.encode()).hexdigest()}) + "\n"
        lines = self._path.read_text(encoding="utf-8").splitlines(True) if self._path.exists() else []
        kept = [line for line in lines if line.endswith("\n")]
        if kept[:1] != [head]:
            kept = [head]
        if kept != lines:
            self._path.write_text("".join(kept), encoding="utf-8")
        self.finished: dict[str, dict[str, Any]] = {}
        for line in kept[1:]:
            cell = json.loads(line)
            self.finished[cell["key"]] = cell

    def add(self, key: str, seconds: float, rows: Sequence[Row]) -> None:
        """Keep one finished cell."""
        cell = {"key": key, "seconds": round(seconds, 3), "rows": list(rows)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.finished[key] = cell

    def table(self, name: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """Write `rows` as ``NAME.csv``, the named columns first."""
        headers = list(dict.fromkeys([*columns, *(column for row in rows for column in row)]))
        with (self.folder.parent / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, headers)
            writer.writeheader()
            writer.writerows(rows)

    def manifest(self, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write ``NAME.json``: `facts`, and what they were found with."""
        told = {
            "experiment": name,
            **facts,
            "cell_seconds": round(sum(cell["seconds"] for cell in self.finished.values()), 1),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": source_digest(),
            "versions": versions(),
            "machine": {
                "cores": os.cpu_count(),
                "system": platform.system(),
                "processor": platform.machine(),
                "memory_gib": _memory(),
            },
        }
        path = self.folder.parent / f"{name}.json"
        path.write_text(json.dumps(told, indent=2, default=str) + "\n", encoding="utf-8")
        return told


def finished(folder: Path) -> list[dict[str, Any]]:
    """The cells of a store in the order in which they finished, whatever its settings."""
    path = folder / "rows.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(True) if path.exists() else []
    return [json.loads(line) for line in lines[1:] if line.endswith("\n")]


def manifest(out: Path, name: str) -> dict[str, Any]:
    """``NAME.json`` of an earlier run; empty while that run goes on."""
    path = out / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}  # type: ignore[no-any-return]


def whole(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One manifest for all experiments of a run: the last one, with the seconds of all cells."""
    seconds = sum(one.get("cell_seconds", 0.0) for one in manifests)
    return {**manifests[-1], "cell_seconds": round(seconds)} if manifests else {}


def facts(manifest: Mapping[str, Any]) -> str:
    """A manifest in one line."""
    settings, machine = manifest.get("settings", {}), manifest.get("machine", {})
    said = {
        "date": manifest.get("date"),
        "size": settings.get("size"),
        "seed": settings.get("seed"),
        "cores": machine.get("cores"),
        "memory in GiB": machine.get("memory_gib"),
        "seconds since the last start": manifest.get("seconds"),
        "seconds in cells": manifest.get("cell_seconds"),
        **manifest.get("versions", {}),
    }
    return "; ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in said.items()
        if value is not None
    )


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 of the source text of the product and of the experiments."""
    digest = hashlib.sha256()
    for package in (laprasdp, experiments):
        root = Path(str(package.__file__)).parent
        for file in sorted([*root.rglob("*.py"), *root.rglob("*.csv")]):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python, the product and what the numbers depend on."""
    found = {"python": platform.python_version(), "laprasdp": laprasdp.__version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def _memory() -> int | None:
    """Of the machine, in GiB; None where the system does not tell."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):
        return None
