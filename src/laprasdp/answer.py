"""Answers: an unbiased value with its exact error, where it came from and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

from laprasdp.errors import ConfigError


@dataclass(frozen=True)
class Answer:
    """
    The answer of one query.

    Attributes
    ----------
    query : str
        The statement, or a description where it was asked without one.
    value : float
        Unbiased; it may be negative where the true count is near zero.
    std : float
        Exact standard deviation of the error, in records.
    source : {"predicted", "measured", "cache", "replay", "histogram", "constant"}
        The release before the stream; fresh noise; a combination of earlier answers; an earlier answer of
        the same query; the noisy histogram; or a count that no table of this domain can change.
    charge : float
        ε under basic accounting, μ² under Gaussian; 0 for all but "measured".
    remaining : float
        What was left after it, in the same unit.
    group : dict
        Attribute to value, for a group of a GROUP BY.
    law : {"gaussian", "laplace"}
        The law of the error.
    simulated : bool
        The noise was seeded, so nothing is protected.
    """

    query: str
    value: float
    std: float
    source: str
    charge: float
    remaining: float
    group: dict[str, Any] | None = None
    law: Literal["gaussian", "laplace"] = "gaussian"
    simulated: bool = False

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """
        The symmetric interval that covers the true answer with probability `level`, exactly.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Examples
        --------
        >>> low, high = Answer("q", 100.0, 10.0, "measured", 0.1, 0.9).interval(0.95)
        >>> round(low, 2), round(high, 2)
        (80.4, 119.6)
        """
        if not 0 < level < 1:
            raise ConfigError(f"a level lies strictly between 0 and 1, not {level!r}")
        if self.law == "gaussian":
            half = NormalDist().inv_cdf((1 + level) / 2) * self.std
        else:
            half = -math.log1p(-level) * self.std / math.sqrt(2)
        return self.value - half, self.value + half

    @property
    def nonnegative(self) -> float:
        """The value, or 0 where noise made it negative: closer to a true count, but no longer unbiased."""
        return max(self.value, 0.0)

    @property
    def expected_error(self) -> float:
        """Expected absolute error, in records."""
        return expected_error(self.std, self.law)

    def row(self, level: float = 0.95) -> dict[str, Any]:
        """The answer as plain data, as ``--json`` prints it."""
        low, high = self.interval(level)
        row: dict[str, Any] = {"query": self.query}
        if self.group is not None:
            row["group"] = self.group
        row |= {
            "value": self.value,
            "nonnegative": self.nonnegative,
            "std": self.std,
            "low": low,
            "high": high,
            "source": self.source,
            "charge": self.charge,
            "remaining": self.remaining,
        }
        return row | ({"simulated": True} if self.simulated else {})


def expected_error(std: float, law: Literal["gaussian", "laplace"] = "gaussian") -> float:
    """Expected absolute value of an error with this standard deviation and law, in records."""
    return std * (math.sqrt(2 / math.pi) if law == "gaussian" else 1 / math.sqrt(2))


@dataclass(frozen=True)
class GroupedAnswer(Sequence[Answer]):
    """
    The answers of a GROUP BY: every declared group, empty ones included.

    Attributes
    ----------
    query : str
        The statement.
    answers : tuple of Answer
        One a group.  Groups measured together share their release's charge equally.
    """

    query: str
    answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, place: Any) -> Any:
        return self.answers[place]

    @property
    def charge(self) -> float:
        """What the whole statement cost."""
        return math.fsum(answer.charge for answer in self.answers)

    @property
    def remaining(self) -> float:
        """What was left after it."""
        return self.answers[-1].remaining
