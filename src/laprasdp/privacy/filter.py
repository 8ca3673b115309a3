"""Filters: what has been spent, in exact integers, and the refusal of what would pass the budget.

A filter never sees data.  A charge is checked whole before anything is changed; the sum that a filter
holds is what the ledger's entries add up to, in any order.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from laprasdp.errors import BudgetError, BudgetExhausted, UnsupportedQuery
from laprasdp.limits import MU_SQUARED_LIMIT
from laprasdp.privacy.budget import DELTA_BITS, EPSILON_BITS, MU_BITS, Budget
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.queries.runs import every_level

_FEW_CELLS, _FEW_ATTRIBUTES = 4_096, 8
_MOST = MU_SQUARED_LIMIT * 2**MU_BITS  # no budget is larger, and two such sums fit 64 bits


@dataclass(frozen=True)
class BasicCharge:
    """
    A release that is (ε, δ)-DP on its own.

    Attributes
    ----------
    epsilon : int
        Units of 2⁻⁴⁰.
    delta : int
        Units of 2⁻¹⁰⁰.
    draws : int
        Noise values that the release draws.
    """

    epsilon: int
    delta: int
    draws: int

    @property
    def price(self) -> float:
        """ε of the release."""
        return self.epsilon / 2.0**EPSILON_BITS

    @property
    def units(self) -> int:
        """The same in units of 2⁻⁴⁰."""
        return self.epsilon


@dataclass(frozen=True)
class CellCharge:
    """
    A Gaussian release, charged cell by cell.

    Attributes
    ----------
    amounts : Query
        What each cell is charged: the diagonal of ``AᵀA`` in units of 2⁻⁴⁰, rounded up.
    draws : int
        Noise values that the release draws.
    pure : bool
        The release is no Gaussian one: it is ε-DP by itself, for all of the budget's ε that no pure release
        before a raise has taken, and so charges every cell all that is left.
    """

    amounts: Query
    draws: int
    pure: bool = False

    @property
    def price(self) -> float:
        """μ² of the release: the largest charge of a cell."""
        return self.units / 2.0**MU_BITS

    @property
    def units(self) -> int:
        """The same in units of 2⁻⁴⁰."""
        return self.amounts.largest


Charge = BasicCharge | CellCharge


class Filter(Protocol):
    """
    Refuses a charge that would pass the budget.

    Privacy
    -------
    Assumes that every release is spent here before it leaves, and that its charge bounds what it reveals.
    Guarantees that the sum of everything spent is within the budget, however charges were chosen.
    """

    def check(self, charge: Charge) -> None:
        """Raise BudgetExhausted, and change nothing, where `charge` does not fit."""

    def spend(self, charge: Charge) -> None:
        """Add `charge`, or raise BudgetExhausted and change nothing."""

    def record(self, charge: Charge) -> None:
        """Add `charge`, whether it fits or not: it was admitted under another limit."""

    def check_widen(self, budget: Budget) -> None:
        """
        Whether the budget may be raised to another.

        Raises
        ------
        BudgetError
            Some limit would be lower, or below what is spent; or nothing may be added to what was spent.
        """

    def widen(self, budget: Budget) -> None:
        """Go on with a larger budget, or raise BudgetError and change nothing."""

    def under(self, budget: Budget) -> Filter:
        """Another filter with the same sums under any budget: for caps, which bound nothing by themselves."""

    @property
    def spent(self) -> float:
        """What is spent: ε under basic accounting, μ² under Gaussian."""

    @property
    def remaining(self) -> float:
        """What is left, in the same unit."""

    def room(self, charge: Charge) -> int:
        """What is left in units of 2⁻⁴⁰ where `charge` would be added, or a little less."""

    @property
    def draws(self) -> int:
        """Noise values that were drawn."""

    @property
    def taken(self) -> Budget | None:
        """The budget whose whole ε pure releases have taken; None where none was made."""

    @property
    def sums(self) -> dict[str, Any]:
        """The budget and everything that was added up, as plain data: all that a filter is."""


class BasicFilter:
    """
    Adaptive sums of ε and δ.

    Notes
    -----
    **Privacy.**  Assumes each charge (ε_i, δ_i) is a release that is (ε_i, δ_i)-DP given all before it.
    Guarantees (ε, δ)-DP of the whole, for adaptively chosen charges (docs/proofs/gaussian.md; Rogers,
    Roth, Ullman, Vadhan 2016).
    """

    taken = None

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._sums = (0, 0, 0)

    def check(self, charge: Charge) -> None:
        self._fits(self._after(charge))

    def spend(self, charge: Charge) -> None:
        sums = self._after(charge)
        self._fits(sums)
        self._sums = sums

    def record(self, charge: Charge) -> None:
        self._sums = self._after(charge)

    def check_widen(self, budget: Budget) -> None:
        check_raise(self._budget, budget, draws=self._sums[2])

    def widen(self, budget: Budget) -> None:
        self.check_widen(budget)
        self._budget = budget

    def under(self, budget: Budget) -> Self:
        found = copy.copy(self)
        found._budget = budget
        return found

    @property
    def spent(self) -> float:
        return self._sums[0] / 2.0**EPSILON_BITS

    @property
    def draws(self) -> int:
        return self._sums[2]

    @property
    def sums(self) -> dict[str, Any]:
        epsilon, delta, draws = self._sums
        return {"budget": asdict(self._budget), "epsilon": epsilon, "delta": delta, "draws": draws}

    @property
    def spent_delta(self) -> float:
        """Sum of δ spent."""
        return float(Fraction(self._sums[1], 2**DELTA_BITS))

    @property
    def remaining(self) -> float:
        return (self._budget.epsilon_units - self._sums[0]) / 2.0**EPSILON_BITS

    def room(self, charge: Charge) -> int:
        return self._budget.epsilon_units - self._sums[0]

    def _after(self, charge: Charge) -> tuple[int, int, int]:
        if not isinstance(charge, BasicCharge):
            raise TypeError("a basic filter takes (ε, δ) charges")
        if min(charge.epsilon, charge.delta, charge.draws) < 0:
            raise ValueError("a charge is never negative")
        epsilon, delta, draws = self._sums
        return epsilon + charge.epsilon, delta + charge.delta, draws + charge.draws

    def _fits(self, sums: tuple[int, int, int]) -> None:
        budget, (epsilon, delta, draws) = self._budget, sums
        within = {
            "ε": epsilon <= budget.epsilon_units,
            "δ": delta <= budget.delta_units,
            "noise values": budget.allows(draws),
        }
        for name, fits in within.items():
            if not fits:
                raise BudgetExhausted(f"the budget has no room for this: {name} would be passed")


class GaussianFilter:
    """
    Sum of ``K = Σ AᵀA`` on the diagonal, cell by cell; refuses where ``max_i K_ii`` would pass μ².

    Parameters
    ----------
    budget : Budget
    domain : Domain

    Notes
    -----
    Charges are added up by `charged`.  Disjoint queries therefore compose in parallel.

    **Privacy.**  Assumes each release is ``A x + N(0, I)`` with amounts that are at least the diagonal of
    ``AᵀA`` (times the squared number of rows a unit may have), or is pure, for the ε that a raise has added
    to that of `taken`, and charges all that is left to every cell.  Guarantees μ-GDP of the whole, for
    adaptively chosen releases, or ε-DP: beside pure releases nothing Gaussian fits, not even after a raise
    (docs/proofs/filter.md).
    """

    def __init__(self, budget: Budget, domain: Domain) -> None:
        self._budget = budget
        self._cells, self._draws = _uncharged(domain), 0
        self._taken: Budget | None = None
        self._looked: tuple[Charge, tuple[Query, int]] | None = None  # the last charge added up, and the sum

    def check(self, charge: Charge) -> None:
        self._admits(charge)
        self._fits(*self._after(charge))

    def spend(self, charge: Charge) -> None:
        self._admits(charge)
        self._fits(*self._after(charge))
        self.record(charge)

    def record(self, charge: Charge) -> None:
        after, self._looked = self._after(charge), None
        self._cells, self._draws = after
        if isinstance(charge, CellCharge) and charge.pure:
            self._taken = self._budget

    def check_widen(self, budget: Budget) -> None:
        check_raise(self._budget, budget, draws=self._draws)

    def widen(self, budget: Budget) -> None:
        self.check_widen(budget)
        self._budget = budget

    def under(self, budget: Budget) -> Self:
        found = copy.copy(self)
        found._budget = budget
        return found

    @property
    def spent(self) -> float:
        return self.spent_units / 2.0**MU_BITS

    @property
    def remaining(self) -> float:
        return (self._budget.mu_squared_units - self.spent_units) / 2.0**MU_BITS

    def room(self, charge: Charge) -> int:
        assert isinstance(charge, CellCharge)
        return self._budget.mu_squared_units - heaviest(self._cells, charge.amounts)

    @property
    def draws(self) -> int:
        return self._draws

    @property
    def sums(self) -> dict[str, Any]:
        cells = {"cells": self._cells.canonical().key, "units": self.spent_units}
        taken = None if self._taken is None else asdict(self._taken)
        return {"budget": asdict(self._budget), **cells, "draws": self._draws, "taken": taken}

    @property
    def spent_units(self) -> int:
        """Largest charge of a cell so far, in units of 2⁻⁴⁰."""
        return self._cells.largest

    @property
    def taken(self) -> Budget | None:
        return self._taken

    def _admits(self, charge: Charge) -> None:
        """Refuse to mix the two kinds, and a pure release for which no raise has left any ε."""
        if not isinstance(charge, CellCharge):
            raise TypeError("a Gaussian filter takes charges on cells")
        if not charge.pure and self._taken is not None:
            raise BudgetExhausted("what is left beside a pure release is for another pure one")
        if charge.pure and self._taken is None and self.spent_units:
            raise BudgetExhausted("a pure release has no place beside Gaussian ones")
        if charge.pure and self._taken and self._taken.epsilon_units == self._budget.epsilon_units:
            raise BudgetExhausted("the budget has no room for this: ε would be passed")

    def _after(self, charge: Charge) -> tuple[Query, int]:
        if self._looked is None or self._looked[0] is not charge:
            self._looked = charge, self._sum(charge)
        return self._looked[1]

    def _sum(self, charge: Charge) -> tuple[Query, int]:
        assert isinstance(charge, CellCharge)
        if int(charge.amounts.weights.min()) < 0 or charge.draws < 0:
            raise ValueError("a charge is never negative")
        if charge.units > _MOST:
            raise BudgetExhausted("the budget has no room for this: μ² would be passed")
        return charged(self._cells, charge.amounts), self._draws + charge.draws

    def _fits(self, cells: Query, draws: int) -> None:
        if int(cells.weights.max()) > self._budget.mu_squared_units:
            raise BudgetExhausted("the budget has no room for this: μ² would be passed")
        if not self._budget.allows(draws):
            raise BudgetExhausted("the budget has no room for this: noise values would be passed")


def _uncharged(domain: Domain) -> Query:
    """Nothing charged yet: cell by cell where these are few, so that no sum has to find classes."""
    if domain.size > _FEW_CELLS or len(domain) > _FEW_ATTRIBUTES:
        return Query.constant(domain, 0)
    every = tuple(map(every_level, domain.shape))
    return Query.over(domain, tuple(range(len(every))), every, np.zeros(domain.shape, dtype=np.int64))


def charged(cells: Query, amounts: Query) -> Query:
    """
    What each cell is charged once `amounts` are added to `cells`, or a bound that is never less.

    Notes
    -----
    The exact sum is kept over the joint classes of both while those are few enough (``limits.MAX_CLASSES``);
    beyond, `cells` is replaced by its maximum on every cell.
    """
    try:
        return cells.combine(amounts, np.add)
    except UnsupportedQuery:
        bound = Query.everywhere(cells.domain, int(cells.weights.max()))
        return bound.combine(amounts, np.add)


def heaviest(cells: Query, query: Query) -> int:
    """Largest charge of a cell that `query` touches, or that of any cell where classes are too many."""
    try:
        return cells.largest_on(query)
    except UnsupportedQuery:
        return int(cells.weights.max())


def check_raise(old: Budget, new: Budget, *, draws: int = 0) -> None:
    """
    Whether a budget may be raised to another after so many noise values.

    Raises
    ------
    BudgetError
        Some part is lower than before; or the part of δ that is kept for lattice noise, which shrinks as
        e^ε grows, no longer allows the values that were drawn.
    """
    more = (
        new.epsilon_units - old.epsilon_units,
        new.delta_units - old.delta_units,
        new.mu_squared_units - old.mu_squared_units,
    )
    if min(more) < 0 or not any(more):
        raise BudgetError(f"a budget is only ever raised: {new} is not above {old}")
    if not new.allows(draws):
        raise BudgetError(f"{draws:,} noise values were drawn; {new} allows {new.coordinates:,}")
