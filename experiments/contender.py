"""Every method by name: the product's policies in both accountings, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from experiments.baselines.cachedp import CacheDP
from experiments.baselines.pmw import PMW
from experiments.baselines.privatesql import PrivateSQL
from experiments.baselines.published import Allocation, published_unsound
from experiments.method import Own
from experiments.trial import Method, Trial
from laprasdp import Reading

HEAVY = ("query-heavy", "matrix-heavy")
SPLITS = (*HEAVY, "equal", "reserve-heavy")


@dataclass(frozen=True)
class Contender:
    """
    A method as it stands in a table.

    Attributes
    ----------
    method : str
    split : str or None
        How it shares out the budget, where it does.
    accounting : str
        "basic" composition, "gaussian" DP, or "unsound", the paper's own arithmetic.
    answer : Method
    told : {"predictions", "stream", "overlap"}
        What it knows before the stream: the prediction set; the stream itself in its place; or also the
        share that was predicted.
    """

    method: str
    split: str | None
    accounting: str
    answer: Method
    told: Literal["predictions", "stream", "overlap"] = "predictions"

    @property
    def key(self) -> str:
        """Short and unique."""
        return "-".join(filter(None, (self.method, self.split, self.accounting)))

    def trial(self, trial: Trial, overlap: float) -> Trial:
        """The trial as this method is told of it."""
        if self.told == "stream":
            return replace(trial, predictions=trial.stream)
        return replace(trial, expected_overlap=overlap) if self.told == "overlap" else trial


def own(
    policy: str,
    accounting: str = "gaussian",
    split: str | None = None,
    told: Literal["predictions", "stream", "overlap"] = "predictions",
    name: str = "",
    reading: Reading | None = None,
    release: str = "gaussian",
) -> Contender:
    """A policy of the product, under its own name where no other is given."""
    answer = Own(policy, accounting, split or "matrix-heavy", reading or Reading(), release)
    return Contender(name or policy, split, accounting, answer, told)


def lapras(
    policies: Sequence[str] = ("static", "smooth"),
    splits: Sequence[str] = HEAVY,
    accountings: Sequence[str] = ("basic", "gaussian"),
) -> tuple[Contender, ...]:
    """The paper's policies: every combination."""
    return tuple(own(p, a, s) for a in accountings for p in policies for s in splits)


def published(
    allocations: Sequence[Allocation] = ("static",), splits: Sequence[str] = HEAVY
) -> tuple[Contender, ...]:
    """The arithmetic behind the paper's printed numbers, at the ε that it really spends."""
    return tuple(
        Contender(f"published_unsound-{a}" if a != "static" else "published_unsound", s, "unsound", answer)
        for a in allocations
        for s in splits
        for answer in (published_unsound(a, s),)
    )


PRIMM = own("primm")
DEFAULT = own("primm", name="primm-default", release="either")
KNOWN = own("primm", told="overlap", name="primm-known")
INDEPENDENT = (own("independent", "basic"), own("independent"))
OFFLINE = (own("offline", "basic", told="stream"), own("offline", told="stream"))
HISTOGRAMS = (own("histogram"), own("histogram-total"), own("laplace-counts"))
SYSTEMS = (
    Contender("cachedp", None, "basic", CacheDP()),
    Contender("pmw", None, "gaussian", PMW()),
    Contender("privatesql", None, "gaussian", PrivateSQL()),
)
"""Other systems, written from their papers."""

BESIDE = (PRIMM, *HISTOGRAMS, *INDEPENDENT, *OFFLINE)
"""What stands beside the paper's methods in every table."""
