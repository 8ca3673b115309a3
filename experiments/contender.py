"""Every method by name: the product's policies in both accountings, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from experiments.baselines.published import published_unsound
from experiments.method import Own
from experiments.trial import Method, Trial

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
    **more: Any,
) -> Contender:
    """A policy of the product; `more` goes to `Own`."""
    name = f"{policy}-known" if told == "overlap" else policy
    answer = Own(policy, accounting, split or "matrix-heavy", **more)
    return Contender(name, split, accounting, answer, told)


def lapras(
    policies: Sequence[str] = ("static", "smooth"),
    splits: Sequence[str] = HEAVY,
    accountings: Sequence[str] = ("basic", "gaussian"),
) -> tuple[Contender, ...]:
    """The paper's policies: every combination."""
    return tuple(own(p, a, s) for a in accountings for p in policies for s in splits)


def published(
    allocations: Sequence[Any] = ("static",), splits: Sequence[str] = HEAVY
) -> tuple[Contender, ...]:
    """The arithmetic behind the paper's printed numbers, at the ε that it really spends."""
    return tuple(
        Contender(f"published_unsound-{a}" if a != "static" else "published_unsound", s, "unsound", answer)
        for a in allocations
        for s in splits
        for answer in (published_unsound(a, s),)
    )


PRIMM = own("primm")
KNOWN = own("primm", told="overlap")
INDEPENDENT = (own("independent", "basic"), own("independent"))
OFFLINE = (own("offline", "basic", told="stream"), own("offline", told="stream"))
HISTOGRAMS = (own("histogram"), own("histogram-total"))
BESIDE = (PRIMM, *HISTOGRAMS, *INDEPENDENT, *OFFLINE)
"""What stands beside the paper's methods in every table."""
