"""Prediction sets and streams as the paper's appendix describes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.data import Data
from experiments.trial import Ints, Trial
from laprasdp import Budget

BUDGET = Budget(1.0, 1e-3)
"""The paper's, in every experiment."""

UNIVERSE = 1_000
"""Random binary queries in U_rand; the paper says "a fixed-size collection" and not how many."""


@dataclass(frozen=True)
class Scenario:
    """
    What kind of stream.

    Attributes
    ----------
    dataset : str
    overlap : float
        ρ, the share of the stream that was predicted.
    horizon : int
        S, that budgets are paced for.
    length : int
        Q, statements in the stream; S where it is 0.
    predicted : int
        |P|.
    order : {"random", "bad-first", "good-first"}
        Bad: not predicted.
    family : {"random", "range", "prefix", "point"}
        Of the queries that were not predicted.
    """

    dataset: str = "adult-age"
    overlap: float = 0.5
    horizon: int = 100
    length: int = 0
    predicted: int = 100
    order: str = "random"
    family: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", self.length or self.horizon)

    @property
    def hits(self) -> int:
        """Queries of the stream that were predicted: ⌊ρQ⌋."""
        return int(self.overlap * self.length + 1e-9)

    @property
    def key(self) -> str:
        """Short and unique."""
        parts = (self.dataset, f"S{self.horizon}", f"Q{self.length}", f"P{self.predicted}")
        return "-".join((*parts, self.order, self.family, f"{self.overlap:g}"))

    def trial(self, data: Data, seed: int, run: int) -> Trial:
        """
        Draw one run.

        Parameters
        ----------
        data : Data
        seed : int
            Of the experiment; it draws the table.
        run : int
            Draws predictions and stream; all overlaps of a run have the same predictions.

        Notes
        -----
        P is drawn from all ranges uniformly without replacement.  The stream is ⌊ρQ⌋ queries from P and the
        others from a universe, each without replacement, in random order; queries of the universe that are
        also in P are left out.  Where a universe has too few, its queries come round again.

        Raises
        ------
        Skipped
            The table is missing.
        """
        counts = data.counts(self.dataset, seed)
        n = len(counts)
        first, second, third, fourth = (np.random.default_rng([seed, run, part]) for part in range(4))
        universe = ranges(n)
        predictions = universe[first.permutation(len(universe))[: self.predicted]]
        good = predictions[_places(len(predictions), self.hits, second)]
        others = _family(self.family, n, third)
        known = {row.tobytes() for row in predictions}
        others = others[[row.tobytes() not in known for row in others]]
        bad = others[_places(len(others), self.length - self.hits, third)]
        if self.order == "random":
            stream = np.concatenate([good, bad])[fourth.permutation(self.length)]
        else:
            stream = np.concatenate([bad, good] if self.order == "bad-first" else [good, bad])
        return Trial(counts, predictions, stream, BUDGET, None, self.horizon)


def ranges(n: int) -> Ints:
    """
    U_rng: all contiguous half-open intervals [i, j), one 0/1 row each.

    Returns
    -------
    (n(n+1)/2, n) array
    """
    starts, ends = np.triu_indices(n)
    cells = np.arange(n)
    return ((starts[:, None] <= cells) & (cells <= ends[:, None])).astype(np.int64)


def random_binary(n: int, size: int, rng: np.random.Generator) -> Ints:
    """U_rand: `size` rows of independent fair bits, none of them all zero."""
    rows = rng.integers(0, 2, (size, n))
    while (empty := ~rows.any(axis=1)).any():
        rows[empty] = rng.integers(0, 2, (int(empty.sum()), n))
    return rows


def _places(size: int, count: int, rng: np.random.Generator) -> Ints:
    """`count` of `size` places without replacement, round after round where they are too few."""
    rounds = [rng.permutation(size) for _ in range(-(-count // size))] if count else []
    return np.concatenate([np.empty(0, dtype=np.int64), *rounds])[:count]


def _family(family: str, n: int, rng: np.random.Generator) -> Ints:
    if family == "random":
        return random_binary(n, UNIVERSE, rng)
    if family == "range":
        return ranges(n)
    cells = np.arange(n)
    return ((cells <= cells[:, None]) if family == "prefix" else np.eye(n)).astype(np.int64)
