"""The printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.experiment import Comparison, Row
from experiments.printed import lookup

_SETTINGS = ("dataset", "S", "Q", "P", "overlap", "order")


def printed(row: Row, table: str | None, metric: str = "mae") -> float | None:
    """
    What the paper prints for a row of ours, whatever its accounting; None where it prints nothing.

    Parameters
    ----------
    row : dict
        With dataset, S, Q, P, overlap, order, method and split.
    table : str or None
        By number; the offline optimum of Table 2 stands in the text.
    metric : str
    """
    if table is None:
        return None
    method = paper_method(row["method"])
    where = "text" if (table, method) == ("2", "offline") else table
    suffix = "" if table != "6" else "_percent"
    given: dict[str, Any] = {name: row[name] for name in _SETTINGS}
    found = lookup(metric=metric + suffix, table=where, method=method, split=row["split"], **given)
    return found / 100 if found is not None and suffix else found


def paper_method(method: str) -> str:
    """The paper's name of one of our methods: its arithmetic as printed and other readings are its own."""
    if method == "published_unsound":
        return "static"
    return method.removeprefix("published_unsound-").removesuffix("-T32")


def compare(rows: Sequence[Row], table: str, metrics: Sequence[str] = ("mae",)) -> list[Comparison]:
    """
    Each printed number beside ours, and beside primm on the same streams where it is one of LAPRAS's.

    Parameters
    ----------
    rows : sequence of dict
        As `sweep.measure` makes them, with the printed numbers.
    table : str
    metrics : sequence of str
    """
    found = []
    best = {_stream(row): row for row in rows if row["method"] == "primm"}
    for row in rows:
        for place, metric in enumerate(metrics):
            number = row.get("printed" if place == 0 else f"printed_{metric}")
            if not number or row["accounting"] == "gaussian":
                continue
            what = ", ".join(
                [row["dataset"], f"overlap {row['overlap']:g}", f"|P| = {row['P']}", row["order"], _name(row)]
            )
            found.append(_compared(table, f"{what}, {metric.upper()}", number, row, metric))
            primm = best.get(_stream(row))
            if metric == "mae" and primm and row["accounting"] == "basic" and row["split"]:
                found.append(_compared(table, f"{what}: primm in its place", number, primm, metric))
    return found


def _compared(table: str, what: str, number: float, row: Row, metric: str) -> Comparison:
    where = table if table == "text" else f"Table {table}"
    return Comparison(where, what, number, row[metric], round(row[metric] / number, 4))


def _name(row: Row) -> str:
    return " ".join(filter(None, (row["method"], row["split"], f"({row['accounting']})")))


def _stream(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*_SETTINGS, "family"))
