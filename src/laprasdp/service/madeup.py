"""The statistical audit on made-up tables: of what this version does, with no private row in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.stream.audit import Audit, audit
from laprasdp.stream.opening import open_session
from laprasdp.stream.session import Session

RUNS = 400
"""Sessions on each of the two tables."""


class MadeUp:
    """A table of four cells whose counts are written here; implements `laprasdp.data.table.Table`."""

    name = "made_up"
    types: Mapping[str, str] = {}

    def __init__(self, *counts: int) -> None:
        self.domain, self.unit = Domain(n=Integers(0, len(counts) - 1)), PrivacyUnit()
        self._counts = np.array(counts, dtype=np.int64)

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Its counts."""
        levels = np.arange(len(self._counts))
        return Marginal(dict.fromkeys(axes, levels), self._counts)


@cache
def audited() -> Audit:
    """The audit of fresh sessions on two made-up tables that differ in one row; run once."""
    table, neighbour = MadeUp(20, 30, 10, 40), MadeUp(20, 31, 10, 40)
    labels = np.arange(4)
    asked = [Query(table.domain, {"n": labels}, (labels == place) * 1) for place in (1, 2)]

    def opened(of: object) -> Session:
        return open_session(of, table.domain, budget=Budget(1.0, 1e-6), horizon=2, policy="independent")

    return audit(opened, table, neighbour, asked, runs=RUNS)
