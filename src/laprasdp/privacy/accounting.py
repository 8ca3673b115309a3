"""The two ways to account for a budget: basic composition as in the paper, or Gaussian differential privacy.

Pacing shares out integers: units of ε under basic accounting, of μ² under Gaussian.  An accounting says how
strong a release one such allowance buys, and what it is then charged.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol

from laprasdp.errors import BudgetError
from laprasdp.privacy.budget import DELTA_BITS, EPSILON_BITS, MU_BITS, Budget
from laprasdp.privacy.filter import BasicCharge, BasicFilter, CellCharge, Charge, Filter, GaussianFilter
from laprasdp.privacy.gaussian import epsilon_of, mu_of
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query

AccountingName = Literal["basic", "gaussian"]


class Accounting(Protocol):
    """What an allowance buys and costs."""

    @property
    def name(self) -> AccountingName: ...

    @property
    def unit(self) -> str:
        """What charges are measured in, for tables: ε or μ²."""

    @property
    def total(self) -> int:
        """The whole budget in the units that pacing shares out."""

    def mu_squared(self, allowance: int) -> Fraction:
        """μ² that a release of this allowance may have; never more than is sound."""

    def charge(self, allowance: int, amounts: Query, draws: int) -> Charge:
        """What the ledger records for a release with this diagonal, made under this allowance."""

    def filter(self) -> Filter:
        """A fresh filter for the budget."""

    def epsilon_of(self, spent: float) -> float:
        """ε at the budget's δ for what is spent, in the filter's unit."""


class BasicAccounting:
    """
    Basic composition: ε is shared out, and each of at most `horizon` + 1 releases gets an equal δ.

    Notes
    -----
    **Privacy.**  An allowance of ε_i buys a Gaussian release with μ(ε_i, δ/(S+1)), which is
    (ε_i, δ/(S+1))-DP (docs/proofs/gaussian.md).
    """

    name: AccountingName = "basic"
    unit = "ε"

    def __init__(self, budget: Budget, domain: Domain, horizon: int) -> None:
        self.budget, self.domain = budget, domain
        self.total = budget.epsilon_units
        self.delta_units = budget.delta_units // (horizon + 1)
        if self.delta_units < 1:
            raise BudgetError(f"δ = {budget.delta:g} shared over {horizon + 1} releases is below 2^-100")
        self._mu = lru_cache(maxsize=None)(mu_of)

    def mu_squared(self, allowance: int) -> Fraction:
        return Fraction(self._mu(allowance / 2**EPSILON_BITS, self.delta)) ** 2

    @property
    def delta(self) -> float:
        """δ of one release, a float not above its integer units."""
        exact = Fraction(self.delta_units, 2**DELTA_BITS)
        return float(exact) if Fraction(float(exact)) <= exact else math.nextafter(float(exact), 0.0)

    def charge(self, allowance: int, amounts: Query, draws: int) -> BasicCharge:
        if int(amounts.weights.max()) > math.ceil(self.mu_squared(allowance) * 2**MU_BITS):
            raise BudgetError("a release is stronger than its allowance")
        return BasicCharge(allowance, self.delta_units, draws)

    def filter(self) -> BasicFilter:
        return BasicFilter(self.budget)

    def epsilon_of(self, spent: float) -> float:
        return spent


class GaussianAccounting:
    """
    Gaussian differential privacy on cells: μ² is shared out, no δ is split.

    Notes
    -----
    **Privacy.**  An allowance of μ_i² buys a release with largest column norm μ_i; the filter adds the
    diagonals of all releases (docs/proofs/filter.md).
    """

    name: AccountingName = "gaussian"
    unit = "μ²"

    def __init__(self, budget: Budget, domain: Domain) -> None:
        self.budget, self.domain = budget, domain
        self.total = budget.mu_squared_units

    def mu_squared(self, allowance: int) -> Fraction:
        return Fraction(allowance, 2**MU_BITS)

    def charge(self, allowance: int, amounts: Query, draws: int) -> CellCharge:
        return CellCharge(amounts, draws)

    def pure_charge(self, epsilon: Fraction, draws: int, taken: Budget | None = None) -> CellCharge:
        """
        The charge of a release that is ε-DP by itself: everything that is left, on every cell.

        Parameters
        ----------
        epsilon : Fraction
            Of the release.
        draws : int
            Noise values that it draws.
        taken : Budget, optional
            All of which pure releases took before the budget was raised to this one.

        Raises
        ------
        BudgetError
            `epsilon` is above what is left of the budget's.

        Notes
        -----
        **Privacy.**  Assumes that the release is `epsilon`-DP.  Guarantees a charge that a filter admits only
        where nothing but pure releases was charged, and beside which it admits nothing but those
        (docs/proofs/filter.md).
        """
        before = (taken.epsilon_units, taken.mu_squared_units) if taken else (0, 0)
        if epsilon > Fraction(self.budget.epsilon_units - before[0], 2**EPSILON_BITS):
            raise BudgetError("a pure release is stronger than the budget's ε")
        return CellCharge(Query.everywhere(self.domain, self.total - before[1]), draws, pure=True)

    def filter(self) -> GaussianFilter:
        return GaussianFilter(self.budget, self.domain)

    def epsilon_of(self, spent: float) -> float:
        return min(epsilon_of(spent**0.5, self.budget.delta), self.budget.epsilon) if spent > 0 else 0.0


def accounting_named(name: str, budget: Budget, domain: Domain, horizon: int) -> Accounting:
    """The accounting called `name`: "basic" or "gaussian"."""
    if name == "basic":
        return BasicAccounting(budget, domain, horizon)
    if name == "gaussian":
        return GaussianAccounting(budget, domain)
    raise BudgetError(f'accounting is "basic" or "gaussian", not {name!r}')
