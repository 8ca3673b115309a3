r"""Fitted values: beside each unbiased value, what a table would answer that is near independence.

A value that is shown lies within one standard deviation of the unbiased one, or is 0 where that is negative,
so that its error is never more than that one's and one standard deviation more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from laprasdp.belief.cell_fit import CellFit
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.factored import FactoredBelief
from laprasdp.belief.fit import Fit, fitted_by, fitted_each
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.limits import FITTED_CELLS, MAX_JOINT
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm import Primm
from laprasdp.queries.distinct import is_of_persons
from laprasdp.queries.groups import Groups, chosen
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.strategy.threads import one_thread

Estimates = tuple[Estimate | None, ...]


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
    def fitted(self, policy: Policy, queries: Sequence[Query], estimates: Estimates) -> Estimates:
        """
        Estimates with fitted values; those that have one keep it.

        Parameters
        ----------
        policy : Policy
            That has learned what the estimates rest on.
        queries : sequence of Query, or Groups
        estimates : tuple of Estimate or None
            One each.
        """
        places = [k for k, one in enumerate(estimates) if one is not None and one.fitted is None]
        if not places:
            return estimates
        shown, whole = list(estimates), queries.whole if isinstance(queries, Groups) else None
        known = [one for one in estimates if one is not None and one.fitted is None]
        found: list[float | None] = [None] * len(known)
        rows = [k for k, place in enumerate(places) if not is_of_persons(queries, place)]
        try:
            asked, pairs = chosen(queries, [places[k] for k in rows]), [known[k] for k in rows]
            each = self._found(policy, asked, pairs) if rows else None
            for k, fit in zip(rows, each or (), strict=False):
                found[k] = fit
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            found = [None] * len(known)
        for place, one, value in zip(places, known, found, strict=True):
            signed = int((queries[place] if whole is None else whole).weights.min()) < 0
            shown[place] = replace(one, fitted=within(one, value, signed=signed))
        return tuple(shown)

    def _found(
        self, policy: Policy, queries: Sequence[Query], known: Sequence[Estimate]
    ) -> Sequence[float | None] | None:
        """The value of each query before it is kept within bounds; None where nothing can be fitted."""
        belief = policy.belief if isinstance(policy, Primm) else None
        if isinstance(belief, DenseBelief | FactoredBelief):
            if policy.setting.domain.size > FITTED_CELLS:
                return None
            if self._cells is None or not self._cells.follows(belief):
                self._cells = CellFit(belief, policy.setting.domain)
            return [self._cells.estimate(query) for query in queries]
        if not isinstance(belief, GroupedBelief) or not belief.released:
            return None
        if self._fit is None or not self._fit.follow(belief):
            self._fit = Fit(belief)
            self._fit.follow(belief)
        fit, pairs = self._fit, [(one.value, one.variance) for one in known]
        if isinstance(queries, Groups) and len(queries) > MAX_JOINT:
            values, variances = np.array(pairs).T
            each = fitted_each(fit, belief, queries, values, variances)
            return None if each is None else each.tolist()
        return [fitted_by(fit, belief, query, *pair) for query, pair in zip(queries, pairs, strict=True)]


def within(one: Estimate, found: float | None, *, signed: bool = False) -> float:
    """
    A fitted value within one standard deviation of the unbiased one, and 0 in the place of a negative count.

    Parameters
    ----------
    found : float or None
        Before that; None, or what is no number, for the unbiased value.
    signed : bool
        The answer may be negative: some cell has a negative weight.

    Notes
    -----
    Where all within one standard deviation of a count's value is negative it is 0, which is nearer to every
    count: the error is never more than that of the value and one standard deviation more.

    Examples
    --------
    >>> within(Estimate(-3.0, 25.0, "measured"), -1.0), within(Estimate(-9.0, 25.0, "measured"), 2.0)
    (0.0, 0.0)
    """
    std = math.sqrt(one.variance)
    value = one.value if found is None or not math.isfinite(found) else found
    least = -math.inf if signed else 0.0
    return max(min(max(value, one.value - std), one.value + std), least)
