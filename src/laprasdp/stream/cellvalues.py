"""DuckDB's values and names as a result shows them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any


def number_of(value: Any) -> float:
    """A number; NaN for anything else."""
    return float(value) if isinstance(value, int | float | Decimal) else math.nan


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return printed(value)


def printed(value: Any) -> Any:
    """A key as DuckDB prints it; numbers, truth values and NULL as JSON has them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dt.datetime | dt.date | Decimal):
        return str(value)
    return str(value)


def different(names: Sequence[str]) -> tuple[str, ...]:
    """Names, each once: of two of a kind the second is called name_1, as DuckDB does."""
    found: list[str] = []
    for name in names:
        number, called = 0, name
        while called in found:
            number += 1
            called = f"{name}_{number}"
        found.append(called)
    return tuple(found)
