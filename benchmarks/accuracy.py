"""Expected error of each method on streams of the paper's kind, from exact variances; no noise is drawn."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import fitted
from benchmarks.workloads import Scenario, predictions, stream
from laprasdp.errors import BudgetExhausted
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Grant, Policy
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import Filter
from laprasdp.queries.groups import chosen, gathered
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload
from laprasdp.record.entries import Refusal, Release, Reply
from laprasdp.strategy.optimize import optimize

PROCESSES = 2
SEEDS = {74: 8, 100: 8, 500: 4, None: 2}
LARGE = (0.0, 0.5, 0.9, 1.0)  # overlaps where one run takes long
LAPRAS = ("static-gaussian-matrix-heavy", "static-gaussian-query-heavy")
LAPRAS += ("smooth-gaussian-matrix-heavy", "smooth-gaussian-query-heavy")
BASELINES = (
    "independent-basic",
    "independent-gaussian",
    "histogram",
    "histogram-total",
    "laplace-counts",
    *LAPRAS,
)
KINDS = {"primm-gaussian": "gaussian", "primm-pure": "pure"}
"""The candidates between which primm chooses."""
METHODS = ("primm", "primm-known", *KINDS, *BASELINES, "clairvoyant")
DELTAS = (1e-3, 1e-6)
FEW = ("primm", "primm-known", "independent-gaussian")
KNOWN, ENDLESS = "primm-known", "primm-endless"

Outcome = tuple[float | None, float]  # expected MAE of what was answered, share that was


@dataclass(frozen=True)
class Plan:
    """One method on several streams that differ in the overlap, the order or the family only."""

    method: str
    scenarios: tuple[Scenario, ...]
    seeds: int
    delta: float = DELTAS[0]


def rows(full: bool, quick: bool, domain: str = "line", real: bool = False) -> Iterator[dict[str, Any]]:
    """
    Expected mean absolute error at ε = 1; δ = 1e-3 on a line, and 1e-6 for some of it; 1e-6 on flights.

    Parameters
    ----------
    full : bool
        More: n = 500 at every overlap; on flights, S = 1,000 and 10,000.
    quick : bool
        n = 74 at overlap 0, 0.5 and 1 only; on flights, one seed and no clairvoyant.
    domain : {"line", "flights"}
    real : bool
        On flights: what answers over real tables are off by instead; see `benchmarks.fitted.rows`.

    Yields
    ------
    dict
        n, S, delta, order, family, overlap, method, expected_mae (mean over seeds, each a workload; over the
        answered statements, in records), standard_error (over seeds), answered (share of statements).

    Notes
    -----
    A policy is driven as a session drives it, with zeros for the noisy values; the error of an answer is
    then known from its exact variance.  The clairvoyant optimum is the best single release for the whole
    stream, where repeated queries weigh more.
    """
    if real:
        if domain != "flights":
            raise ValueError("real tables are those of --domain flights")
        yield from fitted.rows(full, quick)
        return
    plans = (_flights if domain == "flights" else _line)(full, quick)
    context = multiprocessing.get_context("spawn")
    workers = min(PROCESSES, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, context, initializer=one_thread) as pool:
        running = [[pool.submit(_outcomes, plan, seed) for seed in range(plan.seeds)] for plan in plans]
        try:
            for plan, futures in zip(plans, running, strict=True):
                yield from _table(plan, futures)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def one_thread() -> None:
    """Run linear algebra on one thread in this process, which has loaded it with this module."""
    threadpool_limits(1)


def answer_errors(policy: Policy, asked: Sequence[Query]) -> list[float | None]:
    """
    Expected absolute error of each answer of a stream, in records; None where it is refused.

    Parameters
    ----------
    policy : Policy
        In its state before the stream, or after a first release; it is changed.
    asked : sequence of Query
    """
    return [error for (error,) in statement_errors(policy, [(query,) for query in asked])]


def statement_errors(policy: Policy, asked: Sequence[Sequence[Query]]) -> list[list[float | None]]:
    """
    Expected absolute error of each answer of a stream of statements of one or several queries.

    Parameters
    ----------
    policy : Policy
        In its state before the stream, or after a first release; it is changed.
    asked : sequence of sequences of Query
    """
    spent = _open(policy, policy.accounting.filter())
    errors: list[list[float | None]] = []
    for queries in asked:
        _open(policy, spent)
        known = policy.recall_of(queries)
        missing = chosen(queries, [place for place, query in enumerate(queries) if known[query] is None])
        if missing:
            try:
                grant = policy.grant(missing)
                spent.spend(grant.charge)
            except BudgetExhausted as refusal:
                policy.learn(Refusal(gathered(queries), str(refusal)))
                errors.append([None] * len(queries))
                continue
            policy.learn(_silent(grant, opening=False))
            known |= policy.latest_of(missing)
        policy.learn(Reply(gathered(queries), tuple(known[query] for query in queries), bool(missing)))
        found = [known[query] for query in queries]
        errors.append([None if estimate is None else estimate.expected_error for estimate in found])
    return errors


def clairvoyant(asked: Sequence[Query], budget: Budget) -> float:
    """Expected MAE of the best release for exactly this stream; repeated queries weigh more."""
    times = Counter(asked)
    distinct, counts = list(times), np.array(list(times.values()), dtype=float)
    columns = Workload(distinct).columns.values.astype(float)
    gap = 1e-3 if columns.shape[1] <= 2_500 else 1e-2
    found = optimize(columns, weights=counts, objective="absolute", gap=gap)
    return found.value / len(asked) / budget.mu


def _open(policy: Policy, spent: Filter) -> Filter:
    """Make the releases that are due before the next statement."""
    while (grant := policy.due()) is not None:
        spent.spend(grant.charge)
        policy.learn(_silent(grant, opening=True))
    return spent


def _silent(grant: Grant, *, opening: bool) -> Release:
    measurement = grant.measurement
    noisy = (0,) * measurement.draws
    return Release(measurement, noisy, grant.charge, grant.allowance, opening)


def _outcomes(plan: Plan, seed: int) -> list[Outcome]:
    """One seed of a plan, in a worker."""
    budget = Budget(1.0, plan.delta)

    @lru_cache(maxsize=1)  # one policy for all streams that look the same before they begin
    def before(overlap: float | None) -> Policy:
        first = plan.scenarios[0]
        predicted = predictions(first, seed)
        return _policy(plan.method, Setting(first.domain, budget, first.horizon, predicted, overlap=overlap))

    found: list[Outcome] = []
    for scenario in plan.scenarios:
        asked = stream(scenario, seed)
        if plan.method == "clairvoyant":
            found.append((clairvoyant(asked, budget), 1.0))
            continue
        policy = before(scenario.overlap if plan.method == KNOWN else None)
        policy.due()  # designs what is designed once
        fresh = copy.deepcopy(policy, {id(policy.setting): policy.setting})
        errors = [error for error in answer_errors(fresh, asked) if error is not None]
        found.append((math.fsum(errors) / len(errors) if errors else None, len(errors) / len(asked)))
    return found


def _policy(method: str, setting: Setting) -> Policy:
    if method in KINDS:
        return policy_named("primm", replace(setting, release=KINDS[method]))
    if method in (KNOWN, ENDLESS):
        return policy_named("primm", replace(setting, horizon=None) if method == ENDLESS else setting)
    if method.startswith("independent-"):
        return policy_named("independent", replace(setting, accounting=method.removeprefix("independent-")))
    name, gaussian, split = method.partition("-gaussian-")
    return policy_named(name, replace(setting, split=split) if gaussian else setting)


def _table(plan: Plan, futures: Sequence[Future[list[Outcome]]]) -> Iterator[dict[str, Any]]:
    outcomes = [future.result() for future in futures]
    for scenario, by_seed in zip(plan.scenarios, zip(*outcomes, strict=True), strict=True):
        errors = [error for error, _ in by_seed if error is not None]
        spread = float(np.std(errors, ddof=1)) / len(errors) ** 0.5 if len(errors) > 1 else None
        yield {
            "n": scenario.domain.size,
            "S": scenario.horizon,
            "delta": plan.delta,
            "order": scenario.order,
            "family": scenario.family,
            "overlap": scenario.overlap,
            "method": plan.method,
            "expected_mae": round(float(np.mean(errors)), 4) if errors else None,
            "standard_error": None if spread is None else round(spread, 4),
            "answered": round(float(np.mean([share for _, share in by_seed])), 4),
        }


def _line(full: bool, quick: bool) -> list[Plan]:
    def plans(
        base: Scenario, overlaps: Sequence[float], methods: Sequence[str], delta: float = DELTAS[0]
    ) -> list[Plan]:
        scenarios = tuple(replace(base, overlap=overlap) for overlap in overlaps)
        return [Plan(method, scenarios, SEEDS[base.cells], delta) for method in methods]

    small = ("primm", *KINDS, "laplace-counts", "clairvoyant")
    if quick:
        found = plans(Scenario(74), (0.0, 0.5, 1.0), METHODS)
        return found + plans(Scenario(74), (0.0, 0.5, 1.0), small, DELTAS[1])
    every = [step / 10 for step in range(11)]
    found = [plan for cells in (74, 100) for plan in plans(Scenario(cells), every, METHODS)]
    found += plans(Scenario(74), LARGE, small, DELTAS[1])
    found += plans(Scenario(74), LARGE, (ENDLESS,))
    for order in ("bad-first", "good-first"):
        found += plans(Scenario(74, order=order), (0.3, 0.5, 0.7), ("primm",))
    for family in ("random", "point", "prefix", "range"):
        if family != "random":  # random is in the first table
            for delta in DELTAS:
                found += plans(Scenario(74, family=family), LARGE, small, delta)
    found += plans(Scenario(74, horizon=1_000), (0.5,), (*FEW, "histogram", "histogram-total", "clairvoyant"))
    methods = (*FEW, "histogram", "smooth-gaussian-matrix-heavy", "clairvoyant")
    return found + plans(Scenario(500), every if full else LARGE, methods)


def _flights(full: bool, quick: bool) -> list[Plan]:
    def plan(method: str, horizon: int, overlaps: Sequence[float], seeds: int) -> Plan:
        base = Scenario(None, horizon=horizon, family="conjunction")
        scenarios = tuple(replace(base, overlap=overlap) for overlap in overlaps)
        return Plan(method, scenarios, seeds, DELTAS[1])

    methods = (*FEW, "static-gaussian-matrix-heavy", "smooth-gaussian-matrix-heavy")
    found = [plan(method, 100, LARGE, 1 if quick else SEEDS[None]) for method in methods]
    if not quick:
        found.append(plan("clairvoyant", 100, LARGE, SEEDS[None]))
    if full:
        for horizon in (1_000, 10_000):
            found += [plan(method, horizon, (0.5,), 1) for method in ("primm", "independent-gaussian")]
    return found
