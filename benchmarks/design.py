"""What choosing PRIMM's first release by formulas loses against choosing it by runs of the real policy."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.accuracy import PROCESSES, answer_errors, one_thread
from benchmarks.workloads import Scenario, predictions, stream
from laprasdp.policy.design import Design, optimal
from laprasdp.policy.families import MIXTURE
from laprasdp.policy.primm_dense import PrimmDense
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import Budget

TRUSTS, SHARES = (0.05, 0.4, 0.7, 0.95), (0.4, 0.6, 0.75, 0.9)
Choice = tuple[float, float]  # trust in the predictions, share of the budget


class Chosen(PrimmDense):
    """PRIMM with a first release of this trust and share instead of the one that it designs."""

    def __init__(self, setting: Setting, choice: Choice) -> None:
        self._choice = choice
        super().__init__(setting)

    def _designed(self) -> Design:
        trust, first = self._choice
        strategy = optimal(self.setting.domain, self._predicted, trust)
        return replace(super()._designed(), strategy=strategy, first=first, pure=False)


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    Compare at S = |P| = 100, ε = 1, δ = 1e-3.

    Parameters
    ----------
    full : bool
        Also n = 100, and eight workloads for two.
    quick : bool
        Overlap 0.5 only.

    Yields
    ------
    dict
        n, known (the policy is told the overlap), overlap, designed_mae, best_mae, ratio, trust and share of
        the best.  Errors are the mean over workloads and over streams whose other queries are arbitrary
        sets, points, prefixes or ranges; the best choice is the one of least error *on these streams*.
    """
    context = multiprocessing.get_context("spawn")
    grid = list(itertools.product(TRUSTS, SHARES))
    choices: list[Choice | None] = [None, *grid]
    seeds = range(8 if full else 2)
    with ProcessPoolExecutor(PROCESSES, context, initializer=one_thread) as pool:
        for cells, known in itertools.product((74, 100) if full else (74,), (False, True)):
            for overlap in (
                (0.5,) if quick else (0.3, 0.5, 0.7, 0.9) if known else (0.0, 0.3, 0.5, 0.7, 0.9, 1.0)
            ):
                measure = partial(_error, cells, overlap, known)
                tasks = list(itertools.product(choices, seeds))
                errors = list(pool.map(measure, *zip(*tasks, strict=True)))
                designed, *others = np.reshape(errors, (len(choices), -1)).mean(axis=1).tolist()
                best = int(np.argmin(others))
                trust, share = grid[best]
                yield {
                    "n": cells,
                    "known": known,
                    "overlap": overlap,
                    "designed_mae": round(designed, 4),
                    "best_mae": round(others[best], 4),
                    "ratio": round(designed / others[best], 4),
                    "trust": trust,
                    "share": share,
                }


def _error(cells: int, overlap: float, known: bool, choice: Choice | None, seed: int) -> float:
    """Expected mean absolute error over one stream of each family."""
    streams = [Scenario(cells, family=family, overlap=overlap) for family in MIXTURE]
    given = predictions(streams[0], seed)
    told = overlap if known else None
    setting = Setting(streams[0].domain, Budget(1.0, 1e-3), streams[0].horizon, given, overlap=told)
    policy = PrimmDense(setting) if choice is None else Chosen(setting, choice)
    means = []
    for scenario in streams:
        fresh = copy.deepcopy(policy, {id(setting): setting})
        means.append(
            float(np.mean([e for e in answer_errors(fresh, stream(scenario, seed)) if e is not None]))
        )
    return math.fsum(means) / len(means)
