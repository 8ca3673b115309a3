"""The product's own policies as methods: each answers a trial through a session on a public table."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from experiments.trial import Ints, Law, Outcome, Trial
from laprasdp import (
    Answer,
    BudgetExhausted,
    Domain,
    Integers,
    PrivacyUnit,
    Query,
    Reading,
    SeededNoise,
    open_session,
)
from laprasdp.queries.marginal import Marginal


class Counts:
    """
    A public histogram as a table of one attribute, ``cell``.

    Parameters
    ----------
    counts : (n,) array
    """

    name = "cells"
    unit = PrivacyUnit()
    types: Mapping[str, str] = MappingProxyType({})  # the natural ones

    def __init__(self, counts: Ints) -> None:
        self.domain = _line(len(counts))
        self._counts = counts

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over the cells, or of all rows."""
        if not axes:
            return Marginal({}, self._counts.sum(keepdims=True))
        return Marginal({0: np.arange(len(self._counts))}, self._counts)


@dataclass(frozen=True)
class Own:
    """
    A policy of the product.

    Attributes
    ----------
    policy : str
    accounting : {"basic", "gaussian"}
    split : str
    reading : Reading
    release : {"gaussian", "either", "pure"}
        What PRIMM may release.
    """

    policy: str
    accounting: str = "gaussian"
    split: str = "matrix-heavy"
    reading: Reading = field(default_factory=Reading)
    release: str = "gaussian"

    def __call__(self, trial: Trial, seed: int) -> Outcome:
        """Ask the whole stream; what is refused has no answer."""
        table = Counts(trial.counts)
        start = time.perf_counter()
        session = open_session(
            table,
            table.domain,
            budget=trial.budget,
            horizon=trial.horizon,
            predictions=queries(table.domain, trial.predictions),
            policy=self.policy,
            accounting=self.accounting,
            split=self.split,
            overlap=trial.expected_overlap,
            reading=self.reading,
            release=self.release,
            public=True,
            noise=SeededNoise(seed),
        )
        asked = queries(table.domain, trial.stream)
        opened = time.perf_counter()
        answers, stds, parts = (
            np.full(len(asked), math.nan),
            np.full(len(asked), math.nan),
            np.ones(len(asked)),
        )
        law: Law = "gaussian"
        for place, query in enumerate(asked):
            try:
                answer = session.ask(query)
            except BudgetExhausted:
                continue
            assert isinstance(answer, Answer)
            answers[place], stds[place] = answer.value, answer.std
            law, parts[place] = answer.law, answer.parts
        done = time.perf_counter()
        return Outcome(answers, stds, trial.budget.epsilon, done - opened, opened - start, law, parts)


def queries(domain: Domain, rows: Ints) -> list[Query]:
    """One query a row of weights on the cells; a row that comes again, under any method, is read once."""
    return [_query(domain, row.tobytes()) for row in rows]


@lru_cache(maxsize=64)
def _line(cells: int) -> Domain:
    return Domain(cell=Integers(0, cells - 1))


@lru_cache(maxsize=4096)
def _query(domain: Domain, row: bytes) -> Query:
    return Query(domain, {"cell": np.arange(domain.size)}, np.frombuffer(row, dtype=np.int64))
