"""Spelling: numbers, times and answers as the pages show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from laprasdp.privacy.law import half_width
from laprasdp.service.journal import PastStatement
from laprasdp.service.marks import interval
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.asking import Told
from laprasdp.stream.resultset import Figure, ResultSet

SHOWN = 500
"""Rows that a page shows; a file has all."""
REASONS = {
    "opening": "the first release, for all that is expected",
    "batch": "more for the predicted statements still to come",
    "raise": "what the raised budget has room for",
}
SOURCES = {
    "predicted": "predicted: measured before the stream",
    "measured": "measured now",
    "cache": "worked out from earlier answers",
    "replay": "asked before: the same answer",
    "histogram": "the noisy histogram",
    "background": "worked out from all that was released",
    "constant": "the same on every table",
    "mixed": "several",
}


@dataclass(frozen=True)
class Spelled:
    """
    One value as it is shown.

    Attributes
    ----------
    value, half : str
        The value, and half of its 95% interval where that is symmetric; else empty.
    note : str
        The interval in words otherwise.
    low, at, high : float or None
        For a mark.
    """

    value: str
    half: str = ""
    note: str = ""
    low: float | None = None
    at: float | None = None
    high: float | None = None


def count(value: float, std: float | None) -> str:
    """A value, to a digit beyond its error."""
    if not std or not math.isfinite(std):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    digits = min(max(1 - math.floor(math.log10(std)), 0), 6)
    text = f"{value:,.{digits}f}"
    return text[1:] if text.strip("-0.,") == "" and text.startswith("-") else text


def half(std: float) -> str:
    """Half of a 95% interval."""
    return count(std, std)


def three(value: float | None) -> str:
    """Three digits."""
    return "" if value is None else f"{value:.3g}"


def percent(share: float) -> str:
    """A share of a whole."""
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.2g} %"


def record(value: float | None) -> str:
    """A number of records."""
    return "refused" if value is None else f"{value:,.1f}"


def when(at: datetime | float) -> str:
    """A time, to the minute."""
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, float) else at.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M}"


def of_answer(answer: Answer) -> Spelled:
    """The value of an answer."""
    low, high = answer.interval()
    return Spelled(count(answer.value, answer.std), half(high - answer.value), "", low, answer.value, high)


def of_figure(figure: Figure) -> Spelled:
    """The value of a result."""
    value = figure.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Spelled("NULL" if value is None else str(value))
    low, high = figure.interval()
    if math.isinf(low) or math.isinf(high):
        return Spelled(count(value, figure.std), "", "not bounded")
    if math.isclose(value - low, high - value, rel_tol=1e-6, abs_tol=1e-12):
        return Spelled(count(value, figure.std), half(high - value), "", low, value, high)
    std = (high - low) / 4 or None
    return Spelled(count(value, std), "", f"{count(low, std)} to {count(high, std)}", low, value, high)


@dataclass(frozen=True)
class SpelledRow:
    """A row of an answer as it is shown."""

    keys: list[str]
    values: list[Spelled]
    mark: Markup


def of_told(told: Told) -> dict[str, Any]:
    """What a page needs to show an answer: one value, or its rows."""
    if isinstance(told, Answer):
        single: dict[str, Any] | None = _single(of_answer(told))
        return {"single": single, "rows": [], "source": told.source, "simulated": told.simulated}
    rows: list[tuple[list[str], list[Spelled]]]
    if isinstance(told, GroupedAnswer):
        keys, names = list(told[0].group or {}), [told[0].column]
        rows = [([_key(key) for key in (one.group or {}).values()], [of_answer(one)]) for one in told]
        found = {one.source for one in told}
        source, simulated = found.pop() if len(found) == 1 else "mixed", told[0].simulated
    else:
        assert isinstance(told, ResultSet)
        first = told.rows[0] if told.rows else None
        keys = [name for name in told.names if first is not None and name in first.group]
        names = [name for name in told.names if name not in keys]
        rows = [
            ([_key(row.group[name]) for name in keys], [of_figure(row.columns[name]) for name in names])
            for row in told
        ]
        source, simulated = told.source, told.simulated
    spelled = _marked(rows[:SHOWN])
    single = _single(rows[0][1][0]) if len(rows) == 1 and len(names) == 1 and not keys else None
    return {
        "single": single, "rows": [] if single else spelled, "keys": keys, "values": names,
        "marked": len(names) == 1, "more": len(rows) - len(spelled), "source": source, "simulated": simulated,
    }  # fmt: skip


def of_past(one: PastStatement) -> dict[str, Any]:
    """A statement of the ledger as a row."""
    value = width = ""
    if len(one.answers) == 1:
        estimate = one.answers[0]
        std = 0.0 if estimate is None else math.sqrt(estimate.variance)
        value = count(0.0 if estimate is None else estimate.value, std)
        width = half(_half(one)[0])
    elif one.answers:
        value = f"{len(one.answers)} values"
    return {
        "position": one.position, "at": when(one.at), "analyst": one.analyst,
        "statement": one.statement or "",
        "value": "refused" if one.refusal else value, "half": width, "refusal": one.refusal,
        "cost": three(one.charge) if one.charge else "free", "source": one.source,
    }  # fmt: skip


def measured(one: PastStatement) -> list[Spelled]:
    """What was measured for a statement of the ledger."""
    widths = _half(one)
    return [
        Spelled(count(0.0 if found is None else found.value, width or None), half(width))
        for found, width in zip(one.answers[:SHOWN], widths, strict=False)
    ]


def _half(one: PastStatement) -> list[float]:
    return [
        0.0 if found is None else half_width(0.95, math.sqrt(found.variance), found.law, found.parts)
        for found in one.answers[:SHOWN]
    ]


def _single(one: Spelled) -> dict[str, Any]:
    """A value that stands alone, with its mark and the ends of its interval."""
    if one.low is None or one.at is None or one.high is None or one.low == one.high:
        return {**vars(one), "mark": None, "ends": ("", "")}
    std = (one.high - one.low) / 4
    ends = (count(one.low, std), count(one.high, std))
    return {**vars(one), "mark": interval(one.at, one.low, one.high, (one.low, one.high)), "ends": ends}


def _key(value: object) -> str:
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _marked(rows: Sequence[tuple[list[str], list[Spelled]]]) -> list[SpelledRow]:
    """The rows with a mark each, on one axis that holds 0."""
    lows = [one.low for _, values in rows for one in values[:1] if one.low is not None]
    highs = [one.high for _, values in rows for one in values[:1] if one.high is not None]
    ends = (min([0.0, *lows]), max([0.0, *highs]))
    found = []
    for keys, values in rows:
        one, mark = values[0] if values else Spelled(""), Markup("")
        if one.low is not None and one.at is not None and one.high is not None:
            mark = interval(one.at, one.low, one.high, ends)
        found.append(SpelledRow(keys, values, mark))
    return found
