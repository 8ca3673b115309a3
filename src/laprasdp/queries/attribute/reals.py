"""Real numbers on a grid: each value is brought between two ends and then to the nearest step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from laprasdp.errors import DomainError
from laprasdp.queries.attribute.base import Constant, check_size
from laprasdp.queries.attribute.ordered import Ordered

_DIGITS = 18  # of a DECIMAL that DuckDB holds in 64 bits


@dataclass(frozen=True)
class Reals(Ordered):
    """
    Numbers of a column of reals, as multiples of a step from `lower` to `upper`; one level each.

    A value below `lower` counts as `lower` and one above `upper` as `upper`; every other one as the nearest
    multiple of the step.  NaN and the infinities lie outside.  Statements see a DECIMAL column.

    Attributes
    ----------
    lower, upper : float
        Both are multiples of the step.
    step : float

    Notes
    -----
    A sum's noise grows with the larger end, and is the same for every step.  What rounding adds to the sum of
    n values is about √n·step/√12: a thousandth of the larger end is fine enough for millions of rows.

    Examples
    --------
    >>> fare = Reals(0, 120, 0.25)
    >>> fare.values, fare.label(3), fare.type
    (481, '0.75', 'DECIMAL(5,2)')
    """

    kind = "reals"
    lower: float
    upper: float
    step: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper", "step"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                raise DomainError(f"{name} must be a finite number, not {value!r}")
            object.__setattr__(self, name, float(value))
        if not self.step > 0:
            raise DomainError(f"the step must be above 0, not {self.step!r}")
        if self.lower > self.upper:
            raise DomainError(f"lower {self.lower!r} is above upper {self.upper!r}")
        for name in ("lower", "upper"):
            if (exact(getattr(self, name)) / self.unit).denominator != 1:
                raise DomainError(f"{name} {getattr(self, name)!r} is no multiple of the step {self.step!r}")
        check_size(self.values, "declare a larger step")
        if self._width > _DIGITS:
            raise DomainError(
                f"values of {self._width} digits are too long for a grid; the limit is {_DIGITS}: "
                "declare a larger step, or ends that are nearer to 0"
            )

    @cached_property
    def unit(self) -> Fraction:
        """The step, exactly as it is written."""
        return exact(self.step)

    @cached_property
    def first(self) -> int:
        """How many steps `lower` is."""
        return int(exact(self.lower) / self.unit)

    @property
    def values(self) -> int:
        return int(exact(self.upper) / self.unit) - self.first + 1

    @cached_property
    def scale(self) -> int:
        """Digits after the point."""
        return max(0, -int(Decimal(repr(self.step)).normalize().as_tuple().exponent))

    @property
    def _width(self) -> int:
        whole = int(max(abs(exact(self.lower)), abs(exact(self.upper))))
        return max(len(str(whole)) + self.scale, 1)

    @property
    def type(self) -> str:
        """The DuckDB type that holds the steps."""
        return f"DECIMAL({self._width},{self.scale})"

    def value(self, level: int) -> Decimal:
        """The number that a level stands for."""
        number = (self.first + level) * self.unit
        return Decimal(int(number * 10**self.scale)).scaleb(-self.scale)

    def label(self, level: int) -> str | None:
        return f"{self.value(level):f}" if level < self.values else None

    def settings(self) -> dict[str, Any]:
        ends = {"lower": self.lower, "upper": self.upper, "step": self.step}
        return {"type": self.kind, **ends, "nullable": self.nullable}

    def _below(self, constant: Constant, inclusive: bool) -> int:
        if not isinstance(constant, Fraction):
            raise self._wrong_type(constant)
        steps = constant / self.unit
        bound = math.floor(steps) + 1 if inclusive else math.ceil(steps)
        return min(max(bound - self.first, 0), self.values)


def exact(number: float) -> Fraction:
    """A number as it is written in decimal digits."""
    return Fraction(repr(float(number)))
