"""The printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.experiment import Comparison, Row
from experiments.printed import lookup

IN_ITS_PLACE = ": primm in its place"
"""How `Comparison.what` ends where primm stands beside a number of LAPRAS."""

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
        for metric in metrics:
            one = beside(row, table, metric, metrics)
            if one is None:
                continue
            found.append(one)
            primm = best.get(_stream(row))
            if metric == "mae" and primm and row["accounting"] == "basic" and row["split"]:
                what = one.what.removesuffix(", MAE") + IN_ITS_PLACE
                found.append(_compared(one.table, what, one.printed, primm, metric))
    return found


def beside(row: Row, table: str, metric: str, metrics: Sequence[str] = ("mae",)) -> Comparison | None:
    """
    The number that the paper prints for one row, beside ours.

    Parameters
    ----------
    row : dict
    table : str
    metric : str
        One of `metrics`.
    metrics : sequence of str
        Of the experiment: the printed number of the first is the row's ``printed``.

    Returns
    -------
    Comparison or None
        None where nothing is printed, and for Gaussian accounting, which the paper does not have.
    """
    number = row.get("printed" if metric == metrics[0] else f"printed_{metric}")
    if not number or row["accounting"] == "gaussian":
        return None
    parts = [row["dataset"], f"overlap {row['overlap']:g}", f"|P| = {row['P']}", row["order"], _name(row)]
    where = table if table == "text" else f"Table {table}"
    return _compared(where, f"{', '.join(parts)}, {metric.upper()}", number, row, metric)


def _compared(where: str, what: str, number: float, row: Row, metric: str) -> Comparison:
    expected = row["expected_mae_median"] if metric == "mae" else None
    ratio = round(row[metric] / number, 4)
    return Comparison(where, what, number, row[metric], ratio, expected=expected, epsilon=row["epsilon_true"])


def _name(row: Row) -> str:
    return " ".join(filter(None, (row["method"], row["split"], f"({row['accounting']})")))


def _stream(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*_SETTINGS, "family"))
