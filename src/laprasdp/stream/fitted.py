r"""Fitted values: beside each unbiased value, what a table would answer that is near independence.

Every value that can be shown lies within one standard deviation of the unbiased one, so that its error is
never more than that one's and one standard deviation more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from laprasdp.belief.cell_fit import CellFit
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.fit import Fit, fitted_by
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm import Primm
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.strategy.threads import one_thread

POST = ("fitted",)
"""What may be shown beside an unbiased value."""

Estimates = Sequence[Estimate | None]
_Found = Callable[[Query, Estimate], float | None]


class Fits:
    """
    The fit to what a policy has learned, kept from one statement to the next and learned on.

    Notes
    -----
    A function of the policy's state: where that was taken back, or read again, it is worked out anew.  It is
    no part of a state: a copy begins without.

    **Privacy.**  A function of released numbers and public settings: it costs nothing
    (docs/proofs/session.md).
    """

    def __init__(self) -> None:
        self._fit: Fit | None = None
        self._cells: CellFit | None = None

    def __deepcopy__(self, memo: object) -> Self:
        return type(self)()

    @one_thread()
    def fitted(self, policy: Policy, queries: Sequence[Query], estimates: Estimates) -> tuple[Estimate | None, ...]:
        """
        Estimates with fitted values; those that have one keep it.

        Parameters
        ----------
        policy : Policy
            That has learned what the estimates rest on.
        queries : sequence of Query
        estimates : sequence of Estimate or None
            One each.
        """
        found: _Found | None = None
        shown = list[Estimate | None]()
        for query, one in zip(queries, estimates, strict=True):
            if one is not None and one.fitted is None:
                found = found or self._found(policy)
                one = replace(one, fitted=within(one, _tried(found, query, one)))
            shown.append(one)
        return tuple(shown)

    def _found(self, policy: Policy) -> _Found:
        """What works out the value of a query, before it is kept within bounds; None where nothing can."""
        belief = policy.belief if isinstance(policy, Primm) else None
        try:
            if isinstance(belief, DenseBelief):
                cells = self._over_cells(belief, policy)
                return lambda query, one: cells.estimate(query)
            if isinstance(belief, GroupedBelief) and belief.released:
                fit = self._followed(belief)
                return lambda query, one: fitted_by(fit, belief, query, one.value, one.variance)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            pass
        return lambda query, one: None

    def _over_cells(self, belief: DenseBelief, policy: Policy) -> CellFit:
        if self._cells is None or not self._cells.follows(belief):
            self._cells = CellFit(belief, policy.setting.domain)
        return self._cells

    def _followed(self, belief: GroupedBelief) -> Fit:
        if self._fit is None or not self._fit.follow(belief):
            self._fit = Fit(belief)
            self._fit.follow(belief)
        return self._fit


def within(one: Estimate, found: float | None) -> float:
    """
    A fitted value that is not negative and within one standard deviation of the unbiased one.

    Parameters
    ----------
    found : float or None
        Before that; None, or what is no number, for the unbiased value.

    Notes
    -----
    Where all within one standard deviation is negative, its upper end: the bound on the error comes first.

    Examples
    --------
    >>> within(Estimate(-3.0, 25.0, "measured"), -1.0), within(Estimate(-9.0, 25.0, "measured"), 2.0)
    (0.0, -4.0)
    """
    std = math.sqrt(one.variance)
    value = one.value if found is None or not math.isfinite(found) else found
    return min(max(value, 0.0, one.value - std), one.value + std)


def _tried(found: _Found, query: Query, one: Estimate) -> float | None:
    try:
        return found(query, one)
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
