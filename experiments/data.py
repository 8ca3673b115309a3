"""The public tables of the experiments, as histograms: where they are found and what is missing."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from experiments.trial import Ints
from laprasdp.datasets import path

VARIABLE = "LAPRAS_DATA"
CHECKINS = "loc-gowalla_totalCheckins.txt.gz"
DATASETS = ("adult-age", "adult-country", "gowalla-grid", "gowalla-visitors")
"""The tables of the paper, as far as they can be had."""

GOWALLA = "gowalla-checkins"
"""The table that the paper used; from SNAP's file, where a user has it."""

LOCATIONS = 100
"""Locations that the paper draws from Gowalla."""


class Skipped(Exception):
    """A cell cannot be run here, for want of data; the message says why."""


@dataclass(frozen=True)
class Data:
    """
    Where the tables are.

    Attributes
    ----------
    root : Path or None
        Directory of the data sets; None where none was found.
    looked : tuple of Path
        Where it was looked for.
    checkins : Path or None
        SNAP's ``loc-gowalla_totalCheckins.txt.gz``.
    """

    root: Path | None = None
    looked: tuple[Path, ...] = field(default=(), compare=False)
    checkins: Path | None = None

    @property
    def datasets(self) -> tuple[str, ...]:
        """The tables to run on: with SNAP's file, the paper's own too."""
        return DATASETS if self.checkins is None else (*DATASETS, GOWALLA)

    def fingerprint(self) -> dict[str, int]:
        """Name and size of every file that may be read."""
        files = [*(self.root.glob("*.parquet") if self.root else ()), *filter(None, [self.checkins])]
        return {file.name: file.stat().st_size for file in sorted(files) if file.exists()}

    def file(self, name: str) -> Path:
        """
        A file of the data directory.

        Raises
        ------
        Skipped
            It is not there.
        """
        if self.root is not None and (self.root / name).exists():
            return self.root / name
        places = (self.root,) if self.root is not None else self.looked
        raise Skipped(f"{name} is missing; looked in {', '.join(map(str, places)) or 'no directory'}")

    def counts(self, dataset: str, seed: int) -> Ints:
        """
        A table as a histogram.

        Parameters
        ----------
        dataset : str
            Adult's age (74 cells, 17 to 90) or country (42, in alphabetical order, the unknown first);
            Gowalla's check-ins in 100 random non-empty cells of a 256 × 256 grid, its visitors at 100 random
            locations, or its check-ins at 100 random locations; flights of the first days of 2015 by state.
        seed : int
            Draws the 100.

        Returns
        -------
        (n,) array of int

        Raises
        ------
        Skipped
            The data set is missing.
        """
        if dataset == "adult-age":
            return np.bincount(_column(path("adult"), "age"), minlength=91)[17:]
        if dataset == "adult-country":
            return np.unique(_column(path("adult"), "native_country"), return_counts=True)[1]
        if dataset == "flights-state":
            return np.unique(_column(path("flights"), "ORIGIN_STATE_ABR"), return_counts=True)[1]
        if dataset == "gowalla-grid":
            found = _column(self.file("gowalla_checkin_grid_256x256.parquet"), "count")
        elif dataset == "gowalla-visitors":
            found = _column(self.file("gowalla_location_visitors.parquet"), "count")
        elif dataset == GOWALLA:
            if self.checkins is None:
                raise Skipped(f"{CHECKINS} is needed; name it with --checkins")
            found = checkins(self.checkins)
        else:
            raise ValueError(f"no data set {dataset!r}")
        places = np.random.default_rng([seed, 4]).choice(len(found), LOCATIONS, replace=False)
        drawn: Ints = found[np.sort(places)].astype(np.int64)
        return drawn


def find(given: Path | None = None, snap: Path | None = None) -> Data:
    """
    Find the data directory: the one that is given, that of the environment, or ``shared/data`` beside a
    directory above this file or the working directory.

    Parameters
    ----------
    given : Path, optional
    snap : Path, optional
        SNAP's check-ins; else looked for in the data directory.
    """
    if given is not None:
        looked = [given]
    elif VARIABLE in os.environ:
        looked = [Path(os.environ[VARIABLE])]
    else:
        starts = (_checkout(Path(__file__).resolve().parent), Path.cwd())
        parents = [parent for start in starts for parent in (start, *start.parents)]
        looked = list(dict.fromkeys(parent / "shared" / "data" for parent in parents))
    root = next((place for place in looked if place.is_dir()), None)
    if snap is None and root is not None and (root / CHECKINS).exists():
        snap = root / CHECKINS
    return Data(root, tuple(looked), snap)


def _checkout(start: Path) -> Path:
    """The main checkout of which `start` may be a linked worktree; `start` itself otherwise."""
    for parent in (start, *start.parents):
        if (parent / ".git").is_file():
            return Path((parent / ".git").read_text().removeprefix("gitdir:").strip())
    return start


@lru_cache(maxsize=1)
def checkins(file: Path) -> Ints:
    """
    Check-ins of each location, from SNAP's file.

    Parameters
    ----------
    file : Path
        Tab-separated lines of user, time, latitude, longitude and location; gzip or plain text.

    Returns
    -------
    (locations,) array of int
        In the order of the locations' numbers.

    Raises
    ------
    Skipped
        There is no such file.
    """
    if not file.exists():
        raise Skipped(f"{file} is missing")
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="ascii") as lines:
        places = np.fromiter((int(line.rsplit("\t", 1)[1]) for line in lines), dtype=np.int64)
    return np.unique(places, return_counts=True)[1]


@lru_cache(maxsize=8)
def _column(file: Path, name: str) -> Any:
    column = pq.read_table(file, columns=[name])[name]
    return column.to_numpy()
