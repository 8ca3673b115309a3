"""Positions that astronomers asked of SkyServer, as windows of two degrees on a grid of one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.data import Data
from experiments.study import TABLE, Episode, Study, log_of
from laprasdp import Bins, Domain
from laprasdp.predict.template import Key, Splitter

FILE = "workloads/skyserver_ra_queries.parquet"
CIRCLE = 360.0
GRID = 1.0  # degrees
WINDOW = 2.0  # degrees; the log holds where a range began, not where it ended
OBJECTS = 100  # in each bin: the table is made up, and expected errors do not hang on it
SPREAD = 8  # part of the training lines between one stream held out and the next


def positions(file: Path) -> tuple[Domain, tuple[Key, ...]]:
    """The right ascensions as bins of one degree, and the window of each position of the log, in order."""
    domain = Domain(ra=Bins([step * GRID for step in range(int(CIRCLE / GRID) + 1)]))
    starts = pd.read_parquet(file, columns=["ra_start"]).ra_start.to_numpy()
    lows = np.clip(np.floor(starts / GRID) * GRID, 0, CIRCLE - WINDOW)
    splitter = Splitter()
    windows = {
        low: splitter.split(f"SELECT COUNT(*) FROM {TABLE} WHERE ra >= {low} AND ra < {low + WINDOW}")
        for low in np.unique(lows).tolist()
    }
    return domain, tuple(windows[low] for low in lows.tolist())


def study(data: Data, place: int, horizon: int) -> Study:
    """
    The `place`-th stream of `horizon` positions of the second half, learned from the first half.

    Two streams are held out of the first half, each foretold from all lines before it: its end, and one
    that begins an eighth of it earlier.
    """
    domain, keys = _positions(data.file(FILE))
    half = len(keys) // 2
    begin = half + place * horizon

    def episode(known: int, start: int) -> Episode:
        return Episode(log_of(domain, {"all": keys[:known]}), keys[start : start + horizon])

    last = half - horizon
    places = (last - half // SPREAD, last)
    bins = np.arange(domain.size) * GRID + GRID / 2
    table = pd.DataFrame({"ra": np.repeat(bins, OBJECTS)})
    return Study(f"stream {place}", table, episode(half, begin), tuple(episode(n, n) for n in places))


_positions = lru_cache(maxsize=1)(positions)
