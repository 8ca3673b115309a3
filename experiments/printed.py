"""Every number that the paper prints in its tables, and those that only its text gives, with their settings.

``printed.csv`` is the transcription, one number a row.  Table numbers count the paper's tables in order: 1
splits, 2 overlap, 3 size of the prediction set, 4 runtime, 5 bad-first order, 6 normalized errors, 7 CacheDP,
8 static against smooth, 9 cache.  An empty setting is one that the paper does not state.  Tables 8 and 9 name
no data set; their numbers at |P| = 50 and 100 are those of Table 3, which is on Adult with S = 100.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PATH = Path(__file__).with_name("printed.csv")


@dataclass(frozen=True)
class Number:
    """
    One printed number; None or an empty string is a setting that the paper does not state.

    Attributes
    ----------
    table : str
        "1" to "9", or "text".
    label : str
        Of the table in the paper's source, or the heading of the paragraph.
    dataset : str
        "adult", "gowalla" or "idebench".
    S, Q, P : int or None
        Statements that the budget is paced for, statements of the stream, size of the prediction set.
    overlap : float or None
        Share of the stream that was predicted.
    order : str
        "random" or "bad-first".
    method : str
        "static", "smooth", "smooth-cache", "lapras-mm" (its release for the predictions), "lapras" (its
        budget), "offline", "independent" or "cachedp".
    split : str
    metric : str
        "mae" in records; "nmae" and "nrmse" as ratios; names that end in "_percent" as printed, times 100.
    printed : float
    """

    table: str
    label: str
    dataset: str
    S: int | None
    Q: int | None
    P: int | None
    overlap: float | None
    order: str
    method: str
    split: str
    metric: str
    printed: float


def rows(table: str | int | None = None) -> tuple[Number, ...]:
    """
    The numbers of one table, row by row from left to right.

    Parameters
    ----------
    table : str or int, optional
        All of them where it is not given.

    Raises
    ------
    LookupError
        The paper has no such table.
    """
    found = tuple(number for number in _numbers() if table is None or number.table == str(table))
    if not found:
        raise LookupError(f"the paper has no table {table}")
    return found


def lookup(
    *,
    metric: str = "mae",
    table: str | int | None = None,
    dataset: str | None = None,
    S: int | None = None,
    Q: int | None = None,
    P: int | None = None,
    overlap: float | None = None,
    order: str | None = None,
    method: str | None = None,
    split: str | None = None,
) -> float | None:
    """
    The number that the paper prints for these settings; None where it prints none.

    Parameters
    ----------
    metric : str
    table, dataset, S, Q, P, overlap, order, method, split : optional
        As in `Number`; what is not given may be anything.  "adult-age" finds "adult", and what the paper does
        not state fits every value.

    Raises
    ------
    LookupError
        Several numbers that differ fit: more has to be given.

    Examples
    --------
    >>> lookup(table=2, dataset="adult-age", overlap=1.0, method="static", split="matrix-heavy")
    14.334
    >>> lookup(dataset="adult", overlap=0.25, method="static") is None
    True
    """
    wanted = {
        "table": None if table is None else str(table),
        "dataset": dataset and dataset.partition("-")[0],
        "S": S,
        "Q": Q,
        "P": P,
        "overlap": overlap,
        "order": order,
        "method": method,
        "split": split,
    }
    values = {
        number.printed
        for number in _numbers()
        if number.metric == metric
        and all(_fits(getattr(number, name), value) for name, value in wanted.items())
    }
    if len(values) > 1:
        given = {name: value for name, value in wanted.items() if value is not None}
        raise LookupError(f"{given} fits the printed numbers {sorted(values)}")
    return values.pop() if values else None


def _fits(stated: str | float | None, wanted: str | float | None) -> bool:
    if wanted is None or stated is None or stated == "":
        return True
    if isinstance(stated, float) and isinstance(wanted, int | float):
        return abs(stated - wanted) < 1e-9
    return stated == wanted


@lru_cache(maxsize=1)
def _numbers() -> tuple[Number, ...]:
    """All rows of the file."""
    kinds: dict[str, Callable[[str], str | float | None]] = {
        **dict.fromkeys(("S", "Q", "P"), lambda text: int(text) if text else None),
        "overlap": lambda text: float(text) if text else None,
        "printed": float,
    }
    with PATH.open(newline="", encoding="utf-8") as lines:
        return tuple(
            Number(**{name: kinds.get(name, str)(text) for name, text in line.items()})  # type: ignore[arg-type]
            for line in csv.DictReader(lines)
        )
