"""The answer of a statement that several periods answered: sums of values and of variances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.limits import MANY
from laprasdp.periods.route import Places
from laprasdp.sql.parse import Statement
from laprasdp.stream.answer import Answer, GroupedAnswer


@dataclass(frozen=True)
class WindowedAnswer(Answer):
    """
    The sum of what the periods answered; their noise is independent.

    Attributes
    ----------
    source : str
        That of all parts, or "mixed".
    charge : float
        What the periods were charged together.  No row pays more than its own period's part.
    remaining : float
        What was left after it in the period that has the least.
    periods : mapping of period to Answer
        Of the periods that it touches, in order.
    """

    periods: Mapping[str, Answer] = field(default_factory=dict)

    def row(self, level: float = 0.95) -> dict[str, Any]:
        """The answer as plain data, as ``--json`` prints it, with what each period answered."""
        keys = ("value", "std", "source", "charge", "remaining")
        return super().row(level) | {
            "periods": {
                period: {key: getattr(part, key) for key in keys} for period, part in self.periods.items()
            }
        }


def added(
    parsed: Statement,
    places: Places,
    shown: Mapping[str, Answer | GroupedAnswer],
) -> Answer | GroupedAnswer:
    """
    The answer to a statement from those of its periods.

    Parameters
    ----------
    parsed : Statement
        Over the whole domain.
    places : dict of period to list of int
        Which of its queries each period was asked for.
    shown : mapping of period to Answer or GroupedAnswer
        What each answered, aligned with `places`.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """
    remaining = min(part.remaining for answer in shown.values() for part in _each(answer))
    parts: list[dict[str, Answer]] = [{} for _ in parsed.queries]
    for period, answer in shown.items():
        for place, part in zip(places[period], _each(answer), strict=True):
            parts[place][period] = part
    groups = [dict(zip(parsed.by, labels, strict=True)) for labels in parsed.groups] if parsed.by else [None]
    answers = tuple(
        _sum(parsed.text, found, group, remaining) for found, group in zip(parts, groups, strict=True)
    )
    if not parsed.by:
        return answers[0]
    return GroupedAnswer(
        parsed.text, answers, _total(parsed, shown, remaining), _covariance(len(answers), places, shown)
    )


def _each(answer: Answer | GroupedAnswer) -> Iterable[Answer]:
    return answer if isinstance(answer, GroupedAnswer) else (answer,)


def _sum(text: str, parts: Mapping[str, Answer], group: dict[str, Any] | None, remaining: float) -> Answer:
    found = list(parts.values())
    sources = {part.source for part in found} or {"constant"}
    variance = math.fsum(part.std**2 for part in found)
    # Laplace errors, of a pure release, are added to Laplace variables of the same variance and kurtosis
    excess = math.fsum(part.std**4 / part.parts for part in found if part.law == "laplace")
    return WindowedAnswer(
        text,
        math.fsum(part.value for part in found),
        math.sqrt(variance),
        sources.pop() if len(sources) == 1 else "mixed",
        math.fsum(part.charge for part in found),
        min((part.remaining for part in found), default=remaining),
        group,
        "laplace" if excess else "gaussian",
        variance**2 / excess if excess else 1.0,
        simulated=any(part.simulated for part in found),
        released=tuple(
            replace(one, period=period) for period, part in parts.items() for one in part.released
        ),
        periods=dict(parts),
    )


def _total(parsed: Statement, shown: Mapping[str, Answer | GroupedAnswer], remaining: float) -> Answer | None:
    """The statement without its GROUP BY, where every period knows its part."""
    parts = {}
    for period, answer in shown.items():
        assert isinstance(answer, GroupedAnswer)
        if answer.total is None:
            return None
        parts[period] = answer.total
    return _sum(f"the total of {parsed.text}", parts, None, remaining)


def _covariance(
    groups: int, places: Places, shown: Mapping[str, Answer | GroupedAnswer]
) -> npt.NDArray[np.float64] | None:
    """Joint covariance of the groups, where every period knows its part of it."""
    if groups > MANY:
        return None
    joint = np.zeros((groups, groups))
    for period, answer in shown.items():
        assert isinstance(answer, GroupedAnswer)
        if answer.covariance is None:
            return None
        joint[np.ix_(places[period], places[period])] += answer.covariance
    return joint
