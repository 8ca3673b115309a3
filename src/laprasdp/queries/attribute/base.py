"""What every kind of attribute answers."""

from __future__ import annotations

import datetime as dt
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

from laprasdp.arrays import Flags
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.limits import MAX_LEVELS

Constant = Fraction | str | bool | dt.date
Op = Literal["=", "<>", "<", "<=", ">", ">="]


COMPARE: dict[str, Any] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Attribute(ABC):
    """
    What is declared of one column.

    Attributes
    ----------
    nullable : bool
        NULL is a level of its own; otherwise a row with NULL here lies outside the domain.
    """

    kind: ClassVar[str]
    nullable: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.nullable, bool):
            raise DomainError(f"nullable must be true or false, not {self.nullable!r}")

    @property
    @abstractmethod
    def values(self) -> int:
        """Number of levels that are not NULL."""

    @property
    def size(self) -> int:
        """Number of levels, NULL included."""
        return self.values + self.nullable

    @abstractmethod
    def label(self, level: int) -> Any:
        """The value that stands for `level` in a table of answers; None for NULL."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The declaration as plain data, as `lapras.toml` spells it."""

    @abstractmethod
    def holds(self, op: Op, constant: Constant) -> Flags:
        """
        Whether ``value op constant`` is true, for each value.

        Returns
        -------
        (values,) array of bool

        Raises
        ------
        UnsupportedQuery
            The constant has the wrong type, or the predicate would cut through a level.
        """

    def _wrong_type(self, constant: Constant) -> UnsupportedQuery:
        return UnsupportedQuery(f"{spell(constant)} is not comparable with {self.kind}")


def spell(constant: Constant) -> str:
    """A constant as SQL spells it, for messages."""
    if isinstance(constant, bool):
        return "TRUE" if constant else "FALSE"
    if isinstance(constant, Fraction):
        return str(constant.numerator) if constant.denominator == 1 else f"{float(constant)!r}"
    return "'" + str(constant).replace("'", "''") + "'"


def check_size(values: int, mend: str) -> None:
    if values > MAX_LEVELS:
        raise DomainError(f"{values:,} levels; the limit is {MAX_LEVELS:,}: {mend}")
