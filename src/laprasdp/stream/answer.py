"""Answers: an unbiased value with its exact error, where it came from and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.derive.consistent import agree, project, round_to
from laprasdp.derive.estimates import Errors, worked_out
from laprasdp.errors import ConfigError
from laprasdp.privacy.law import Law, expected_error, half_width
from laprasdp.record.estimate import Estimate
from laprasdp.stream.frame import Framed, Numeric

Reason = Literal["opening", "batch", "raise"]


@dataclass(frozen=True)
class Released:
    """
    A release that was made before a statement, and that no statement asked for.

    Attributes
    ----------
    reason : {"opening", "batch", "raise"}
        It was the first, before the stream; or a further one for the predicted queries still to come; or one
        that a raise of the budget made room for.
    charge : float
        ε under basic accounting, μ² under Gaussian.
    period : str, optional
        The period whose budget it is charged to, where there are several.
    """

    reason: Reason
    charge: float
    period: str | None = None

    def row(self) -> dict[str, Any]:
        """The release as plain data, as ``--json`` prints it."""
        period = {} if self.period is None else {"period": self.period}
        return {"reason": self.reason, "charge": self.charge} | period


@dataclass(frozen=True, repr=False)
class Answer(Framed, Numeric):
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
    source : {"predicted", "measured", "cache", "replay", "histogram", "background", "constant"}
        The release before the stream; fresh noise; a combination of earlier answers; an earlier answer of
        the same query; the noisy histogram; all that was released so far; or a count that no table of this
        domain can change.
    charge : float
        ε under basic accounting, μ² under Gaussian; 0 for all but "measured".
    remaining : float
        What was left after it, in the same unit.
    group : dict
        Attribute to value, for a group of a GROUP BY.
    law : {"gaussian", "laplace", "geometric"}
        The law of the error.
    parts : float
        Of how many Laplace variables it is the sum; geometric ones are whole numbers.
    simulated : bool
        The noise was seeded, so nothing is protected.
    released : tuple of Released
        Releases made before this answer that no statement asked for; `charge` leaves them out.
    column : str
        Name of the column that it stands in: the alias, or DuckDB's own.
    fitted : float, optional
        Beside the value, where it was asked for: what a table near independence would answer.  Within one
        `std` of the value, and 0 where a count would be negative.  Closer on average over many real tables,
        but biased: answers that are zero drift up.  No interval is around it.
    """

    query: str
    value: float
    std: float
    source: str
    charge: float
    remaining: float
    group: dict[str, Any] | None = None
    law: Law = "gaussian"
    parts: float = 1.0
    simulated: bool = False
    released: tuple[Released, ...] = ()
    column: str = "count_star()"
    fitted: float | None = None

    @classmethod
    def of(cls, query: str, estimate: Estimate | None, charge: float, remaining: float, **more: Any) -> Self:
        """The answer that shows an estimate; with None, of a count that is 0 on every table of the domain."""
        if estimate is None:
            return cls(query, 0.0, 0.0, "constant", charge, remaining, **more)
        return cls(
            query,
            estimate.value,
            math.sqrt(estimate.variance),
            estimate.source,
            charge,
            remaining,
            law=estimate.law,
            parts=estimate.parts,
            fitted=estimate.fitted,
            **more,
        )

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        half = self.interval()[1] - self.value
        where = "" if self.group is None else f" of {', '.join(map(str, self.group.values()))}"
        fitted = "" if self.fitted is None else f", fitted {self.fitted:,.6g}"
        return f"<{self.value:,.6g} ± {half:,.4g}{fitted}{where}, {self.source}: {self.query}>"

    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Its group, and its value with its std and the ends of its interval."""
        return columns_of((self,), level)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """
        The symmetric interval that covers the true answer with probability `level`, exactly.

        Where errors are whole numbers it is the shortest one with `level` or more.

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
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise ConfigError(f"a level lies strictly between 0 and 1, not {level!r}")
        half = half_width(level, self.std, self.law, self.parts)
        return self.value - half, self.value + half

    @property
    def nonnegative(self) -> float:
        """The value, or 0 where noise made it negative: closer to a true count, but no longer unbiased."""
        return max(self.value, 0.0)

    @property
    def rounded(self) -> int:
        """`nonnegative` as a whole number: what a count looks like.  The interval stays that of the value."""
        return round(self.nonnegative)

    @property
    def expected_error(self) -> float:
        """Expected absolute error, in records."""
        return expected_error(self.std, self.law, self.parts)

    def row(self, level: float = 0.95) -> dict[str, Any]:
        """The answer as plain data, as ``--json`` prints it."""
        low, high = self.interval(level)
        row: dict[str, Any] = {"query": self.query}
        if self.group is not None:
            row["group"] = self.group
        figure = {"value": self.value, "std": self.std, "low": low, "high": high, "kind": "unbiased"}
        row |= {
            "columns": {self.column: figure},
            "value": self.value,
            "nonnegative": self.nonnegative,
            **({} if self.fitted is None else {"fitted": self.fitted}),
            "std": self.std,
            "low": low,
            "high": high,
            "source": self.source,
            "charge": self.charge,
            "remaining": self.remaining,
            "released": [released.row() for released in self.released],
        }
        return row | ({"simulated": True} if self.simulated else {})


@dataclass(frozen=True, repr=False)
class GroupedAnswer(Framed, Sequence[Answer]):
    """
    The answers of a GROUP BY: every declared group, empty ones included.

    Attributes
    ----------
    query : str
        The statement.
    answers : tuple of Answer
        One a group.  Groups measured together share their release's charge equally.
    total : Answer, optional
        The same statement without its GROUP BY, where that is known without measuring anything.
    errors : (m, m) array or callable, optional
        What gives `covariance`, where it is known.
    """

    query: str
    answers: tuple[Answer, ...]
    total: Answer | None = None
    errors: Errors = field(default=None, compare=False, repr=False)

    @cached_property
    def covariance(self) -> Floats | None:
        """
        (m, m) joint covariance of the errors of all groups; None where it is not known.

        Known of up to ``MANY`` groups; worked out when first asked for.
        """
        return worked_out(self.errors)

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, place: Any) -> Any:
        return self.answers[place] if isinstance(place, int | slice) else group_named(self.answers, place)

    def __repr__(self) -> str:
        return f"<{len(self)} groups: {self.query}>"

    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """The keys of the groups, and the value of each with its std and the ends of its interval."""
        return columns_of(self.answers, level)

    @property
    def charge(self) -> float:
        """What the whole statement cost."""
        return math.fsum(answer.charge for answer in self.answers)

    @property
    def remaining(self) -> float:
        """What was left after it."""
        return self.answers[-1].remaining

    @property
    def released(self) -> tuple[Released, ...]:
        """The releases made before it that it did not ask for."""
        return tuple(released for answer in self.answers for released in answer.released)

    def consistent(
        self, total: Answer | None = None, *, nonnegative: bool = True, rounded: bool = False
    ) -> tuple[float, ...]:
        """
        The groups' counts, adjusted to add up to their total; to stand beside the unbiased values.

        Parameters
        ----------
        total : Answer, optional
            The answer of the statement without GROUP BY; `self.total` otherwise.  Where there is neither,
            groups of known joint covariance keep their own sum, and others need not keep it.
        nonnegative : bool
            Also let none be negative.  The sum is then `total.nonnegative`.
        rounded : bool
            Also make all whole numbers.  The sum is then `total.value` to the nearest whole number, not
            below 0 if `nonnegative`.

        Returns
        -------
        tuple of float
            One a group, aligned with `answers`.

        Raises
        ------
        ConfigError
            The groups are known exactly and do not add up to `total`.

        Notes
        -----
        `agree` by the joint covariance, or the variances where it is not known; then `project`; then
        `round_to`.  No answer is changed.  The result agrees with the total as it was published, so a total
        that is less precise than the sum of the groups makes them less precise too; any other makes none
        less precise before signs are looked at.  What is not negative or whole is no longer unbiased.

        **Privacy.**  A function of released numbers and public settings: it costs nothing.

        Examples
        --------
        >>> groups = [Answer("q", value, 2.0, "measured", 0.1, 0.9) for value in (7.0, 3.2, -1.2)]
        >>> total = Answer("q", 12.0, 1.0, "measured", 0.1, 0.8)
        >>> [round(value, 1) for value in GroupedAnswer("q", tuple(groups)).consistent(total)]
        [7.9, 4.1, 0.0]
        >>> GroupedAnswer("q", tuple(groups)).consistent(total, rounded=True)
        (8.0, 4.0, 0.0)
        """
        values = np.array([answer.value for answer in self.answers])
        variances = np.array([answer.std**2 for answer in self.answers])
        known = total or self.total
        goal = None if known is None else known.value
        if goal is not None:
            values = agree(values, np.diag(variances) if self.covariance is None else self.covariance, goal)
        elif self.covariance is not None:
            goal = math.fsum(values)
        if nonnegative:
            goal = None if goal is None else max(goal, 0.0)
            values = project(values, variances, goal)
        if rounded:
            values = round_to(values, math.fsum(values) if goal is None else goal)
        return tuple(map(float, values))


def group_named(answers: Sequence[Answer], name: object) -> Answer:
    """The answer of the group whose key, or keys as a tuple, are these."""
    wanted = name if isinstance(name, tuple) else (name,)
    for answer in answers:
        if tuple((answer.group or {}).values()) == wanted:
            return answer
    raise KeyError(name)


def columns_of(answers: Sequence[Answer], level: float) -> dict[str, list[Any]]:
    """The groups of answers, and their values with std and ends of their intervals, as columns."""
    found: dict[str, list[Any]] = {
        name: [(one.group or {})[name] for one in answers] for name in (answers[0].group or {})
    }
    name, ends = answers[0].column, [one.interval(level) for one in answers]
    if any(one.fitted is not None for one in answers):
        found[f"{name} fitted"] = [one.value if one.fitted is None else one.fitted for one in answers]
    return found | {
        name: [one.value for one in answers],
        f"{name} std": [one.std for one in answers],
        f"{name} low": [low for low, _ in ends],
        f"{name} high": [high for _, high in ends],
    }
