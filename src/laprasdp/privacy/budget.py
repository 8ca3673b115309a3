"""A privacy budget (ε, δ), and the exact integers in which it is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from laprasdp.errors import BudgetError
from laprasdp.limits import MU_SQUARED_LIMIT
from laprasdp.privacy.gaussian import mu_of
from laprasdp.privacy.noise import TV_BOUND

EPSILON_BITS = 40
MU_BITS = 40
DELTA_BITS = 100
"""Units of the ledger: 2⁻⁴⁰ of ε and of μ², 2⁻¹⁰⁰ of δ."""

NOISE_SHARE = 1e-12
"""The part of δ that is kept for the difference between lattice noise and Gaussian noise."""


def to_units(value: float | Fraction, bits: int, *, up: bool) -> int:
    """
    A number as an integer of units 2^-bits, exactly rounded.

    Parameters
    ----------
    value : float or Fraction
        A finite number.
    bits : int
        The unit is 2^-bits.
    up : bool
        Round up, as for a charge; else down, as for a grant.

    Returns
    -------
    int
        The nearest integer of units on that side.

    Raises
    ------
    BudgetError
        `value` is not finite.

    Examples
    --------
    >>> to_units(0.5, 40, up=False) == 2**39
    True
    >>> to_units(Fraction(1, 3), 2, up=False), to_units(Fraction(1, 3), 2, up=True)
    (1, 2)
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise BudgetError(f"a number of units must be finite, got {value!r}")
    scaled = Fraction(value) * (1 << bits)
    return math.ceil(scaled) if up else math.floor(scaled)


@dataclass(frozen=True)
class Budget:
    r"""
    The guarantee (ε, δ) that everything released about one table keeps.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ strictly between 0 and 1.

    Raises
    ------
    BudgetError
        A number lies outside its domain; or ε is below one unit, μ² below one unit or above 2²⁰; or the
        reserved part of δ does not allow a single noise value.

    Notes
    -----
    The fraction `NOISE_SHARE` of δ is reserved, and μ is what the rest allows.  N lattice noise values are
    within total variation N·τ of the rounded Gaussian, τ = `TV_BOUND`, so that the whole transcript is
    (ε, δ(1−share) + (1+e^ε)·N·τ)-DP (docs/proofs/noise.md, theorem 3); `coordinates` is the largest N with
    a total of at most δ.

    **Privacy.**  Assumes that a release draws no more than `coordinates` noise values over the life of the
    budget, and that the filter refuses a charge that would pass `mu_squared_units`.  Guarantees (ε, δ)-DP.

    Examples
    --------
    >>> print(Budget(1, 1e-3))
    ε = 1, δ = 0.001 (μ = 0.388401)
    >>> Budget(epsilon=1, delta=1e-6).mu < Budget(epsilon=1, delta=1e-3).mu
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checked_number("ε", self.epsilon))
        object.__setattr__(self, "delta", _checked_number("δ", self.delta))
        if not self.epsilon > 0:
            raise BudgetError(f"ε must be positive, got {self.epsilon!r}")
        if not 0 < self.delta < 1:
            raise BudgetError(f"δ must lie strictly between 0 and 1, got {self.delta!r}")
        if self.epsilon_units < 1:
            raise BudgetError(
                f"ε must be at least 2^-{EPSILON_BITS}, one unit of the ledger, got {self.epsilon!r}"
            )
        if Fraction(self.mu) ** 2 > MU_SQUARED_LIMIT:
            raise BudgetError(
                f"ε is too large: its μ² must not pass 2^20, got ε = {self.epsilon!r}, μ = {self.mu:.6g}"
            )
        if self.mu_squared_units < 1:
            raise BudgetError(
                f"the budget is too small: its μ² must be at least 2^-{MU_BITS}, one unit of the ledger, "
                f"got ε = {self.epsilon!r}, δ = {self.delta!r}"
            )
        if self.coordinates < 1:
            raise BudgetError(
                f"the part of δ kept for lattice noise, {NOISE_SHARE:g}·δ, allows no noise value: "
                f"{_nearest_allowed(self.delta)}, got ε = {self.epsilon!r}, δ = {self.delta!r}"
            )

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g} (μ = {self.mu:.6g})"

    @cached_property
    def mu(self) -> float:
        """Gaussian-DP parameter of what may be spent: that of (ε, δ(1−`NOISE_SHARE`)), rounded down."""
        spendable = self.delta * (1 - NOISE_SHARE)
        while Fraction(spendable) > self._spendable_delta:
            spendable = math.nextafter(spendable, 0.0)
        return mu_of(self.epsilon, spendable)

    @cached_property
    def epsilon_units(self) -> int:
        """ε in units of 2⁻⁴⁰, rounded down."""
        return to_units(self.epsilon, EPSILON_BITS, up=False)

    @cached_property
    def delta_units(self) -> int:
        """The spendable part δ(1−`NOISE_SHARE`) in units of 2⁻¹⁰⁰, rounded down."""
        return to_units(self._spendable_delta, DELTA_BITS, up=False)

    @cached_property
    def mu_squared_units(self) -> int:
        """μ² in units of 2⁻⁴⁰, rounded down."""
        return to_units(Fraction(self.mu) ** 2, MU_BITS, up=False)

    @cached_property
    def coordinates(self) -> int:
        """How many lattice noise values may be released: reserved δ / ((1+e^ε)·`TV_BOUND`), rounded down."""
        if self.epsilon > 700:
            return 0
        exponential = Fraction(math.exp(self.epsilon)) * (1 + Fraction(1, 2**50))  # not below e^ε
        reserved = Fraction(self.delta) * Fraction(NOISE_SHARE)
        return math.floor(reserved / ((1 + exponential) * TV_BOUND))

    def allows(self, values: int) -> bool:
        """Whether so many noise values may be drawn in all; filters, raises and plans ask here."""
        return values <= self.coordinates

    def allowing(self, values: int) -> list[Budget]:
        """
        The nearest budgets that allow so many noise values.

        Parameters
        ----------
        values : int

        Returns
        -------
        list of Budget
            One of the same δ, of three digits of ε, and one of the same ε, of two digits of δ; each where
            there is one.

        Examples
        --------
        >>> [str(budget) for budget in Budget(30, 1e-6).allowing(1_000)]
        ['ε = 26.7, δ = 1e-06 (μ = 4.03933)', 'ε = 30, δ = 2.7e-05 (μ = 4.77981)']
        """
        room = Fraction(self.delta) * Fraction(NOISE_SHARE) / (values * TV_BOUND)  # must reach 1 + e^ε
        found = []
        if room > 2:
            found.append((_digits(math.log(room - 1), 3, up=False), self.delta))
        if self.epsilon < 700:
            least = values * (1 + math.exp(self.epsilon)) * float(TV_BOUND) / NOISE_SHARE
            found.append((self.epsilon, _digits(least, 2, up=True)))
        return [fitting for pair in found for fitting in _if_valid(*pair) if fitting.allows(values)]

    @property
    def _spendable_delta(self) -> Fraction:
        return Fraction(self.delta) * (1 - Fraction(NOISE_SHARE))


def _nearest_allowed(delta: float) -> str:
    """What to change when the reserved δ allows no noise value."""
    values = float(Fraction(delta) * Fraction(NOISE_SHARE) / TV_BOUND)  # must reach 1 + e^ε
    if values > 2.01:
        return f"at this δ, ε may be at most about {math.log(values - 1):.3g}"
    return f"δ must be at least about {float(2 * TV_BOUND / Fraction(NOISE_SHARE)):.2g} at any ε"


def _digits(value: float, digits: int, *, up: bool) -> float:
    """`value` to so many digits, a little more or less than it."""
    value *= 1 + 1e-9 if up else 1 - 1e-9
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    steps = Fraction(value) / unit
    return float((math.ceil(steps) if up else math.floor(steps)) * unit)


def _if_valid(epsilon: float, delta: float) -> list[Budget]:
    try:
        return [Budget(epsilon, delta)]
    except BudgetError:
        return []


def _checked_number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BudgetError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise BudgetError(f"{name} is too large for double precision") from None
    if not math.isfinite(number):
        raise BudgetError(f"{name} must be a finite number, got {value!r}")
    return number
