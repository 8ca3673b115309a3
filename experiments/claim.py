"""What the paper claims and what has to agree with it; ``claims.toml`` and ``checks.toml`` are the lists."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Literal

from experiments.experiment import Comparison
from experiments.reason import Pattern

CLAIMS, CHECKS = (Path(__file__).with_name(f"{name}.toml") for name in ("claims", "checks"))
Basis = Literal["measured", "exact", "mean", "noise"]
MEANS: dict[Basis, str] = {
    "measured": "ours over printed",
    "exact": "our exact value over printed",
    "mean": "our exact value over the mean of the printed ones, by table,",
    "noise": "our median over our exact value",
}


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
        Bounds within which it holds.
    basis : {"measured", "exact", "mean", "noise"}
        What the bounds are for: ours over printed, by the median over runs or by the exact expectation; the
        exact expectation over the mean of all numbers printed in a table; or our median over our expectation.
    """

    where: str
    says: str
    why: str
    stands: str
    pattern: Pattern
    at_least: float
    at_most: float
    basis: Basis = "measured"

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
        meant = [one for one in comparisons if self.pattern.fits(one)]
        ratios = self._ratios(meant)
        if not ratios:
            return "not run", "no comparison of this run is about it"
        off = {what: ratio for what, ratio in ratios.items() if not self.at_least <= ratio <= self.at_most}
        word = "holds" if not off else "holds in part" if len(off) < len(ratios) else "fails"
        low, high = min(ratios.values()), max(ratios.values())
        spread = " to ".join(dict.fromkeys((f"{low:.3g}", f"{high:.3g}")))
        said = f"{len(ratios) - len(off)} of {len(ratios)} numbers; {MEANS[self.basis]} {spread}"
        if off:
            said += f"; furthest off: {max(off, key=lambda what: abs(off[what] - 1))}"
        epsilon = max((one.epsilon or 0.0 for one in meant), default=0.0)
        return word, said + (f"; it spends ε up to {epsilon:.3g}" if epsilon > 1 + 1e-9 else "")

    def _ratios(self, meant: list[Comparison]) -> dict[str, float]:
        """By what they are about."""
        if self.basis == "measured":
            return {f"{one.table}, {one.what}": one.ratio for one in meant}
        known = [(one, one.expected) for one in meant if one.expected]
        if self.basis == "mean":
            return {
                table: fmean(exact for one, exact in known if one.table == table)
                / fmean(one.printed for one, _ in known if one.table == table)
                for table in sorted({one.table for one, _ in known})
            }
        return {
            f"{one.table}, {one.what}": exact / one.printed if self.basis == "exact" else one.ours / exact
            for one, exact in known
        }


@lru_cache(maxsize=1)
def claims() -> tuple[Claim, ...]:
    """What the paper claims, in the order of the list."""
    return _read(CLAIMS, "claim")


@lru_cache(maxsize=1)
def checks() -> tuple[Claim, ...]:
    """Where the paper's arithmetic is sound, what has to agree with it."""
    return _read(CHECKS, "check")


def _read(path: Path, kind: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            where=one["where"],
            says=" ".join(one["says"].split()),
            why=" ".join(one["why"].split()),
            stands=one.get("stands", ""),
            pattern=Pattern.read(one),
            at_least=one.get("at_least", 0.0),
            at_most=one.get("at_most", float("inf")),
            basis=one.get("basis", "measured"),
        )
        for one in tomllib.loads(path.read_text(encoding="utf-8"))[kind]
    )
