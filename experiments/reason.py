"""Why our numbers differ from the printed ones, where they do; ``reasons.toml`` is the list, in order."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.experiment import Comparison

PATH = Path(__file__).with_name("reasons.toml")
LIMIT = 0.15
"""Differences up to this share need no reason."""


@dataclass(frozen=True)
class Pattern:
    """
    Which comparisons are meant; what is empty may be anything.

    Attributes
    ----------
    tables : tuple of str
        Of the paper, by number.
    words, without : tuple of str
        Words that the comparison's `what` has, all of them, and words that it does not have.
    overlap : (float, float)
        Bounds of the overlap that `what` names, inclusive.
    ratio : (float, float)
        Bounds of ours over printed, inclusive.
    """

    tables: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    overlap: tuple[float, float] | None = None
    ratio: tuple[float, float] = (0.0, math.inf)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Pattern:
        """From a table of the list, which may hold more than the pattern."""
        lists = {name: tuple(given.get(name, ())) for name in ("tables", "words", "without")}
        bounds = {name: (given[name][0], given[name][1]) for name in ("overlap", "ratio") if name in given}
        return cls(**lists, **bounds)

    def fits(self, comparison: Comparison) -> bool:
        """Whether this comparison is meant."""
        said = set(re.findall(r"[a-z][a-z0-9_-]*", comparison.what.lower()))
        number = re.search(r"overlap (\d+(?:\.\d+)?)", comparison.what)
        return (
            (not self.tables or comparison.table.removeprefix("Table ") in self.tables)
            and said.issuperset(self.words)
            and said.isdisjoint(self.without)
            and (not self.overlap or bool(number and self.overlap[0] <= float(number[1]) <= self.overlap[1]))
            and self.ratio[0] <= comparison.ratio <= self.ratio[1]
        )


def differs(comparison: Comparison) -> bool:
    """Whether ours is off by more than `LIMIT` of the printed number, so that it needs a reason."""
    return not abs(comparison.ratio - 1) <= LIMIT


def explain(comparison: Comparison) -> str | None:
    """
    Why ours differs: the comparison's own reason, or the first of the list that fits; None where none does.

    Parameters
    ----------
    comparison : Comparison
    """
    return comparison.reason or next((why for pattern, why in _reasons() if pattern.fits(comparison)), None)


def unexplained(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Comparisons that differ by more than `LIMIT` and have no reason."""
    return [one for one in comparisons if differs(one) and explain(one) is None]


@lru_cache(maxsize=1)
def _reasons() -> tuple[tuple[Pattern, str], ...]:
    listed = tomllib.loads(PATH.read_text(encoding="utf-8"))["reason"]
    return tuple((Pattern.read(one), " ".join(one["why"].split())) for one in listed)
