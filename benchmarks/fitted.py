"""What answers over real tables are off by: unbiased, made non-negative, and fitted."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import laprasdp as lp
from benchmarks import tables
from benchmarks.workloads import Scenario, predictions, stream
from laprasdp import datasets
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.stream.fitted import Fits

BUDGET = lp.Budget(1.0, 1e-6)
OVERLAPS = (0.0, 0.5, 0.9, 1.0)
SMALL = 100  # counts below it are looked at alone
KINDS = ("linear", "clamped", "fitted")


@dataclass(frozen=True)
class Case:
    """Sessions over one table whose streams are of one kind."""

    table: str
    horizon: int
    overlap: float
    seeds: int

    def parts(self, seed: int) -> tuple[Any, lp.Domain, Sequence[Query], Sequence[Query]]:
        """A source, its domain, what is predicted and the stream."""
        if self.table == "flights":
            kind = Scenario(None, self.horizon, family="conjunction", overlap=self.overlap)
            return datasets.path("flights"), kind.domain, predictions(kind, seed), stream(kind, seed)
        path = tables.path_of("adult", None)
        assert path is not None
        domain, rows, _ = tables.coded("adult", path)
        if self.table == "age and sex":
            domain = lp.Domain((name, domain[name]) for name in ("age", "sex"))
        drawn = tables.conjunctions(domain, 2 * self.horizon, np.random.default_rng([seed, 0]))
        hits = int(self.overlap * self.horizon + 1e-9)
        asked = [*drawn[:hits], *drawn[self.horizon : 2 * self.horizon - hits]]
        order = np.random.default_rng([seed, 1]).permutation(self.horizon)
        return rows, domain, drawn[: self.horizon], [asked[place] for place in order]


def cases(full: bool, quick: bool) -> Iterator[Case]:
    """Flights at each overlap and horizon; Adult with ten attributes and with two."""
    for horizon, overlap in itertools.product((100,) if quick else (100, 1_000), OVERLAPS):
        yield Case("flights", horizon, overlap, 2 if quick else 6 if horizon == 100 else 2 + full)
    for table, overlap in itertools.product(("adult", "age and sex"), (0.0, 0.5, 1.0)):
        yield Case(table, 100, overlap, 1 if quick else 3)


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    Mean absolute error over the real table at (1, 1e-6), the overlap known; a workload and a noise a seed.

    Yields
    ------
    dict
        table ("adult" has ten attributes), S, overlap, seeds; `linear`, `clamped` (0 where that is negative)
        and `fitted`; the same of counts below 100 with how many these are, `small`; `gain` and `small_gain`,
        the share of the linear error that the fit takes off; `worst`, the least gain of one seed;
        `setup_seconds` of the fit, and `fit_p50_ms` and `fit_p99_ms` of an answer after that, of the
        processor.
    """
    for case in cases(full, quick):
        told = [_told(case, seed) for seed in range(case.seeds)]
        errors = np.concatenate([errors for errors, _, _ in told])
        small = np.concatenate([exact < SMALL for _, exact, _ in told])
        times = np.concatenate([spent[1:] for _, _, spent in told])
        mean, least = errors.mean(axis=0), errors[small].mean(axis=0) if small.any() else np.full(3, math.nan)
        each = [errors.mean(axis=0) for errors, _, _ in told]
        yield {
            "table": case.table,
            "S": case.horizon,
            "overlap": case.overlap,
            "seeds": case.seeds,
            **{kind: _rounded(value) for kind, value in zip(KINDS, mean, strict=True)},
            "gain": _rounded(1 - mean[2] / mean[0], 3),
            "worst": _rounded(min(1 - one[2] / one[0] for one in each), 3),
            "small": int(small.sum()),
            **{f"small_{kind}": _rounded(value) for kind, value in zip(KINDS, least, strict=True)},
            "small_gain": _rounded(1 - least[2] / least[0], 3) if least[0] else None,
            "setup_seconds": _rounded(max(float(spent[0]) for _, _, spent in told), 3),
            "fit_p50_ms": _rounded(1e3 * float(np.percentile(times, 50))),
            "fit_p99_ms": _rounded(1e3 * float(np.percentile(times, 99))),
        }


def _told(case: Case, seed: int) -> tuple[Any, Any, Any]:
    """(S, 3) errors of a session, (S,) exact counts, and (S,) seconds that each fit took."""
    source, domain, predicted, asked = case.parts(seed)
    with lp.open_session(
        source, domain, budget=BUDGET, horizon=case.horizon, predictions=predicted, overlap=case.overlap,
        name="t", public=True, noise=lp.SeededNoise(1_000 + seed), post="fitted",
    ) as session:  # fmt: skip
        marginals: dict[tuple[int, ...], Marginal] = {}
        errors, exact, spent = [], [], list[float]()
        session.state.fits.fitted = _timed(session.state.fits, spent)  # type: ignore[method-assign]
        for query in asked:
            answer = session.ask(query)
            assert isinstance(answer, lp.Answer)
            assert answer.fitted is not None
            if query.axes not in marginals:
                marginals[query.axes] = session.table.marginal(query.axes)
            exact.append(query.answer(marginals[query.axes]))
            shown = (answer.value, max(answer.value, 0.0), answer.fitted)
            errors.append([abs(one - exact[-1]) for one in shown])
    return np.array(errors), np.array(exact), np.array(spent)


def _timed(fits: Fits, spent: list[float]) -> Callable[..., Any]:
    true = fits.fitted

    def fitted(*given: Any) -> Any:
        start = time.process_time()
        found = true(*given)
        spent.append(time.process_time() - start)
        return found

    return fitted


def _rounded(value: float, digits: int = 2) -> float | None:
    return None if math.isnan(value) else round(float(value), digits)
