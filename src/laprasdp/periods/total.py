"""The answer of a statement that several periods answered: sums of values and of variances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from laprasdp.derive.estimates import JointEstimate, sum_of_joints
from laprasdp.periods.route import Places
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.sql.result import Result
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.fitted import within
from laprasdp.stream.resultset import ResultSet
from laprasdp.stream.shown import Shown, groups_of
from laprasdp.stream.worked import rows_of

Shared = Answer | GroupedAnswer | ResultSet


@dataclass(frozen=True, repr=False)
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


def added(parsed: Statement, places: Places, shown: Mapping[str, Shown]) -> Shared:
    """
    The answer to a statement from those of its periods.

    Parameters
    ----------
    parsed : Statement
        Over the whole domain.
    places : dict of period to list of int
        Which of its queries each period was asked for.
    shown : mapping of period to Shown
        What each answered, aligned with `places`.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """
    remaining = min(one.remaining for one in shown.values())
    parts: list[dict[str, Answer]] = [{} for _ in parsed.queries]
    for period, one in shown.items():
        for place, part in zip(places[period], one.answers, strict=True):
            parts[place][period] = part
    joints = {period: one.joint for period, one in shown.items()}
    joint = sum_of_joints(len(parsed.queries), joints, places)
    if parsed.result is not None:
        return _result(parsed, joint, parsed.result, parts, remaining)
    answers = tuple(
        _answer(parsed.text, estimate, found, remaining, group)
        for estimate, found, group in zip(joint.estimates, parts, groups_of(parsed), strict=True)
    )
    if not parsed.by:
        return answers[0]
    totals = {period: one.total for period, one in shown.items() if one.total is not None}
    whole = f"the total of {parsed.text}"
    total = None if joint.total is None else _answer(whole, joint.total, totals, remaining)
    return GroupedAnswer(parsed.text, answers, total, joint.errors)


def _result(
    parsed: Statement,
    joint: JointEstimate,
    result: Result,
    parts: Sequence[Mapping[str, Answer]],
    remaining: float,
) -> ResultSet:
    """The rows of a statement whose answers are not those of its queries."""
    names, rows, left_out = rows_of(result, joint)
    sources = {"constant" if one is None else one.source for one in joint.estimates}
    each = [(period, part) for found in parts for period, part in found.items()]
    return ResultSet(
        parsed.text,
        names,
        rows,
        sources.pop() if len(sources) == 1 else "mixed" if sources else "constant",
        math.fsum(part.charge for _, part in each),
        remaining,
        tuple(replace(one, period=period) for period, part in each for one in part.released),
        any(part.simulated for _, part in each),
        left_out,
    )


def _answer(
    text: str,
    estimate: Estimate | None,
    parts: Mapping[str, Answer],
    remaining: float,
    group: dict[str, Any] | None = None,
) -> WindowedAnswer:
    return WindowedAnswer.of(
        text,
        _fitted(estimate, parts.values()),
        math.fsum(part.charge for part in parts.values()),
        min((part.remaining for part in parts.values()), default=remaining),
        group=group,
        simulated=any(part.simulated for part in parts.values()),
        released=tuple(
            replace(one, period=period) for period, part in parts.items() for one in part.released
        ),
        periods=dict(parts),
    )


def _fitted(estimate: Estimate | None, parts: Iterable[Answer]) -> Estimate | None:
    """The sum with that of the fitted values of its parts, where all have one, kept within its own bounds."""
    fitted = [0.0 if part.source == "constant" else part.fitted for part in parts]
    if estimate is None or None in fitted:
        return estimate
    total = math.fsum(one for one in fitted if one is not None)
    return replace(estimate, fitted=within(estimate, total, signed=True))
