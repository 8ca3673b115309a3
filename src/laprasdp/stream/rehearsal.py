"""A rehearsal of what is left: how many more typical queries a budget answers, and how well.

The future is rehearsed: a session over an empty table, with noise of zero, learns the same entries and is
asked typical queries until it refuses.  What it decides depends on public entries alone, so no data is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from laprasdp.errors import BudgetExhausted
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.limits import REHEARSED
from laprasdp.policy.kinds import kinds_of_query
from laprasdp.policy.policy import Policy
from laprasdp.policy.setting import Setting
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Reply
from laprasdp.record.settings import Settings
from laprasdp.stream.answer import Answer
from laprasdp.stream.session import Session


@dataclass(frozen=True)
class Rehearsal:
    """
    What typical queries would get from now on, one after another.

    They are of every kind in turn (`laprasdp.policy.kinds`), but none that was predicted or asked.  Which
    ones come, and in what order, changes the figures.

    Attributes
    ----------
    stds : tuple of float
        Standard deviation of each query that would be answered, in records.
    free : int
        How many of them would be answered from what is known by then, and charged nothing.
    more : bool
        It was not rehearsed until something was refused, so more may fit.
    kinds : mapping of str to float
        Mean standard deviation of each kind that would be answered.
    """

    stds: tuple[float, ...]
    free: int
    more: bool
    kinds: Mapping[str, float]

    @property
    def queries(self) -> int:
        """How many fit."""
        return len(self.stds)

    @property
    def first(self) -> float | None:
        """Mean standard deviation of the first tenth."""
        return _mean(self.stds[: math.ceil(len(self.stds) / 10)])

    @property
    def last(self) -> float | None:
        """Mean standard deviation of the last tenth."""
        return _mean(self.stds[-math.ceil(len(self.stds) / 10) :])

    @property
    def mean(self) -> float | None:
        """Mean standard deviation of all."""
        return _mean(self.stds)

    def row(self) -> dict[str, Any]:
        """The forecast as plain data, as ``--json`` prints it."""
        return {
            "queries": self.queries,
            "free": self.free,
            "more": self.more,
            "mean_std": self.mean,
            "first_std": self.first,
            "last_std": self.last,
            "kinds": dict(self.kinds),
        }


def rehearse(policy: Policy, settings: Settings, entries: Sequence[Kept], *, seed: int = 0) -> Rehearsal:
    """
    Rehearse typical queries after what a ledger holds.

    Parameters
    ----------
    policy : Policy
        In its state before the stream, with the ledger's present budget.
    settings : mapping
        That the ledger was begun with.
    entries : sequence of Kept
        From the first on.
    seed : int
        Which queries are drawn.

    Raises
    ------
    LedgerError
        The policy has other settings than the ledger.

    Notes
    -----
    **Privacy.**  A function of settings and ledger entries: it costs nothing, and changes nothing.
    """
    setting, ledger = policy.setting, MemoryLedger()
    ledger.open(settings)
    for kept in entries:
        with ledger.transaction(kept.stamp) as transaction:
            transaction.append(kept.entry)
    table = Empty(setting.domain, setting.unit)
    session = Session(table, policy, noise=_Silence(), ledger=ledger, public=True)
    answers, more, kinds = list[Answer](), True, dict[str, list[float]]()
    for kind, query in _new_queries(setting, entries, np.random.default_rng(seed)):
        try:
            answer = session.ask(query)
        except BudgetExhausted:
            more = False
            break
        assert isinstance(answer, Answer)
        answers.append(answer)
        kinds.setdefault(kind, []).append(answer.std)
    free = sum(answer.charge == 0 for answer in answers)
    means = {kind: math.fsum(stds) / len(stds) for kind, stds in kinds.items()}
    return Rehearsal(tuple(answer.std for answer in answers), free, more, means)


def _new_queries(
    setting: Setting, entries: Sequence[Kept], rng: np.random.Generator
) -> list[tuple[str, Query]]:
    """
    Distinct queries of every kind in turn, with their kind, that were neither predicted nor answered.

    Where shapes are declared, of those.
    """
    known = {query.key for query in setting.predictions}
    replies = [kept.entry for kept in entries if isinstance(kept.entry, Reply)]
    known.update(query.key for reply in replies for query in reply.queries)
    importance = setting.importance if setting.predictions else None
    shapes = setting.families
    drawn = kinds_of_query(
        setting.domain, setting.predictions, REHEARSED, rng, importance, shapes, others=not shapes
    )
    found: dict[str, tuple[str, Query]] = {}
    for place in range(max(map(len, drawn.values()))):
        for kind, queries in drawn.items():
            if place < len(queries) and queries[place].key not in known:
                found.setdefault(queries[place].key, (kind, queries[place]))
    return list(found.values())[:REHEARSED]


@dataclass(frozen=True)
class Empty:
    """A table without rows, for what reads none; implements `laprasdp.data.table.Table`."""

    domain: Domain
    unit: PrivacyUnit
    name: str = "nothing"
    types: Mapping[str, str] = field(default_factory=dict)

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        none = np.zeros(0, dtype=np.int64)
        return Marginal(dict.fromkeys(axes, none), none)


class _Silence:
    """Noise that is always zero; for an empty table only."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [0] * count

    def laplace(self, count: int, scale: int | Fraction) -> list[int]:
        return [0] * count


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
