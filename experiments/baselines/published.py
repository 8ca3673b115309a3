"""The arithmetic behind the paper's printed numbers, which is not private, and the ε it really spends."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from experiments.baselines.synopsis import released
from experiments.trial import Method, Outcome, Trial
from laprasdp.pacing.arrivals import estimate_unpredicted, warm_up_length
from laprasdp.pacing.pacing import RESERVE_FLOOR
from laprasdp.pacing.split import SPLITS
from laprasdp.privacy.gaussian import mu_of

Allocation = Literal["static", "smooth"]


def published_unsound(allocation: Allocation = "static", split: str = "query-heavy") -> Method:
    """
    LAPRAS with the budget arithmetic that explains the paper's tables.

    Parameters
    ----------
    allocation : {"static", "smooth"}
    split : {"equal", "matrix-heavy", "query-heavy", "reserve-heavy"}

    Returns
    -------
    Method
        `epsilon_true` is the ε of basic composition over what the run released, at least the promised one.

    Notes
    -----
    Mechanism: LAPRAS, Algorithm 1, with T = ⌈ln² S⌉, one matrix mechanism release, analytic Gaussian noise at
    δ/(S+1) each, a reserve that is halved at each query beyond the estimate, ε_min = ε/1000, and nothing
    replayed.  Where the reserve runs out, queries that were not predicted are refused.

    Accounting: each release's ε is added up, as the paper's proof does.  The line "add any left over budget"
    of Static adds the whole of ε_badInit to ε_remBad at b = T, although the first T queries have used it.
    With query-heavy at overlap 0 the run spends 7/6·ε, the reserve untouched; in general up to
    ε + ε_badInit.  Smooth has no such line.

    **Privacy.**  Static does not keep the budget: for public tables only.

    References
    ----------
    LAPRAS, Algorithm 1, the table of budget splits and the proof of privacy;
    docs/decisions/reading-of-the-paper.md.
    """
    return Published(allocation, split)


@dataclass(frozen=True)
class Published:
    """What `published_unsound` returns; a class so that worker processes can be handed one."""

    allocation: Allocation
    split: str

    def __call__(self, trial: Trial, seed: int) -> Outcome:
        rng, start = np.random.default_rng(seed), time.perf_counter()
        shares = [float(share) * trial.budget.epsilon for share in SPLITS[self.split]]
        delta = trial.budget.delta / (trial.horizon + 1)
        predicted: dict[bytes, tuple[float, float]] = {}
        spent = 0.0
        if len(trial.predictions):
            spent += shares[0]
            released_answers = released(trial.predictions, trial.counts, _mu(shares[0], delta), rng)
            predicted = {
                row.tobytes(): (float(answer), float(std))
                for row, answer, std in zip(trial.predictions, *released_answers, strict=True)
            }
        opened = time.perf_counter()
        truth = trial.truth
        answers, stds = np.full(len(truth), math.nan), np.full(len(truth), math.nan)
        pace = _Pace(self.allocation, trial.horizon, shares, trial.budget.epsilon * float(RESERVE_FLOOR))
        for place, row in enumerate(trial.stream):
            known = predicted.get(row.tobytes())
            if known is not None:
                answers[place], stds[place] = known
                continue
            epsilon = pace.spend(place + 1)
            if epsilon > 0:
                spent += epsilon
                stds[place] = 1 / _mu(epsilon, delta)
                answers[place] = rng.normal(truth[place], stds[place])
        done = time.perf_counter()
        return Outcome(answers, stds, max(spent, trial.budget.epsilon), done - opened, opened - start)


class _Pace:
    """The budget variables of Algorithm 1, with the double counting."""

    def __init__(self, allocation: Allocation, horizon: int, shares: list[float], floor: float) -> None:
        _, self._warm_up, self._rest, self._reserve = shares
        self._smooth, self._horizon, self._floor = allocation == "smooth", horizon, floor
        self._pool, self._length = self._warm_up + self._rest, warm_up_length(horizon)
        self._count, self._estimate, self._remaining = 0, 0.0, 1.0

    def spend(self, position: int) -> float:
        """ε for an unpredicted query at `position`, counted from 1; 0 where it is refused."""
        self._count += 1
        warming = self._count <= self._length
        if warming:
            self._estimate = float(estimate_unpredicted(self._horizon, self._count, position))
        if self._count == self._length:
            self._remaining = max(self._estimate - self._length, 1.0)
        if not warming and self._count > self._estimate:
            if self._reserve < self._floor:
                return 0.0
            self._reserve /= 2
            return self._reserve
        if self._smooth:
            epsilon = self._pool / (max(1.0, self._estimate - self._count) + 1)
            self._pool -= epsilon
            return epsilon
        if warming:
            return self._warm_up / self._length
        return (self._rest + self._warm_up) / self._remaining  # the warm-up share a second time


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    return mu_of(epsilon, delta)
