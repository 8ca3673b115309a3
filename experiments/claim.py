"""What the paper claims, and what becomes of it; ``claims.toml`` is the list."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from experiments.experiment import Comparison
from experiments.reason import Pattern

PATH = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True)
class Claim:
    """
    One claim.

    Attributes
    ----------
    where : str
        In the paper.
    says : str
        What it claims, in our words.
    why : str
        Why it holds or cannot.
    stands : {"holds", "cannot hold", "not shown", ""}
        What follows by argument, whatever a run gives; empty where a run decides.
    pattern : Pattern
        The comparisons that a run has for it.
    at_least, at_most : float
        Bounds of ours over printed within which it holds.
    """

    where: str
    says: str
    why: str
    stands: str
    pattern: Pattern
    at_least: float
    at_most: float

    def judge(self, comparisons: Iterable[Comparison]) -> tuple[str, str]:
        """
        What becomes of the claim.

        Parameters
        ----------
        comparisons : iterable of Comparison
            Of all experiments.

        Returns
        -------
        (str, str)
            What stands, or "holds", "holds in part", "fails" or "not run"; and what was measured, empty for
            a claim that needs no run.
        """
        if self.stands:
            return self.stands, ""
        ratios = [one.ratio for one in comparisons if self.pattern.fits(one)]
        if not ratios:
            return "not run", "no comparison of this run is about it"
        good = sum(self.at_least <= ratio <= self.at_most for ratio in ratios)
        word = "holds" if good == len(ratios) else "holds in part" if good else "fails"
        spread = f"{min(ratios):.3g} to {max(ratios):.3g}" if len(ratios) > 1 else f"{ratios[0]:.3g}"
        return word, f"{good} of {len(ratios)} numbers; ours over printed {spread}"


@lru_cache(maxsize=1)
def claims() -> tuple[Claim, ...]:
    """All of them, in the order of the list."""
    return tuple(
        Claim(
            where=one["where"],
            says=" ".join(one["says"].split()),
            why=" ".join(one["why"].split()),
            stands=one.get("stands", ""),
            pattern=Pattern.read(one),
            at_least=one.get("at_least", 0.0),
            at_most=one.get("at_most", float("inf")),
        )
        for one in tomllib.loads(PATH.read_text(encoding="utf-8"))["claim"]
    )
