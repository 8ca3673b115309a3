"""Answers as tables of other libraries, and as HTML: what is shown, with its uncertainty beside it."""

from __future__ import annotations

import html
import importlib
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from laprasdp.errors import ConfigError
from laprasdp.style import INK, SOFT

if TYPE_CHECKING:
    import pyarrow as pa

_BAR = 120  # pixels of the longest bar


class Numeric:
    """What stands for one number, and is written in the formats of numbers: ``f"{answer:,.0f}"``."""

    def __float__(self) -> float:
        raise NotImplementedError

    def __format__(self, form: str) -> str:
        return format(float(self), form) if form else str(self)


class Framed:
    """
    What has columns: keys as they are, and each value with its std and the ends of its interval.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """

    @abstractmethod
    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Each column's values; after a value's own its std, and the ends of its interval."""

    def to_arrow(self, level: float = 0.95) -> pa.Table:
        """The rows as an Arrow table."""
        import pyarrow as pa

        return pa.table(self.columns(level))

    def to_pandas(self, level: float = 0.95) -> Any:
        """The rows as a pandas data frame; pandas has to be installed."""
        _library("pandas")
        return self.to_arrow(level).to_pandas()

    def to_polars(self, level: float = 0.95) -> Any:
        """The rows as a Polars data frame; Polars has to be installed."""
        return _library("polars").from_arrow(self.to_arrow(level))

    def plot(self, column: str | None = None, *, level: float = 0.95, axes: Any = None) -> Any:
        """
        A bar for each row, with its interval; matplotlib has to be installed.

        Parameters
        ----------
        column : str, optional
            Whose values; the first that has intervals.
        level : float
            Of the intervals.
        axes : matplotlib Axes, optional
            Where to draw; a new figure otherwise.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ConfigError
            No such column has values with intervals, or matplotlib is not installed.
        """
        columns = self.columns(level)
        shown = [name for name in columns if f"{name} low" in columns]
        column = column or next(iter(shown), None)
        if column not in shown:
            raise ConfigError(f"no column {column!r} has intervals; there are {', '.join(shown) or 'none'}")
        if axes is None:
            axes = _library("matplotlib.pyplot").subplots(layout="constrained")[1]
        keys = [name for name in columns if name not in shown and name.rpartition(" ")[0] not in shown]
        labels = [", ".join(map(str, row)) for row in zip(*map(columns.get, keys), strict=True)] or [column]
        values = [math.nan if one is None else float(one) for one in columns[column]]
        ends = list(zip(columns[f"{column} low"], columns[f"{column} high"], strict=True))
        known = [math.isfinite(high - low) for low, high in ends]
        rows = list(zip(values, ends, known, strict=True))
        below = [max(one - low, 0) if ok else 0 for one, (low, _), ok in rows]
        above = [max(high - one, 0) if ok else 0 for one, (_, high), ok in rows]
        places = range(len(values))
        axes.barh(places, values, xerr=(below, above), color=SOFT, ecolor=INK, capsize=2)
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.set_xlabel(f"{column}, with {level:.0%} intervals")
        return axes

    def _repr_html_(self) -> str:
        """A table for notebooks: each value ± half of its 95% interval, over a bar."""
        columns = self.columns()
        names = [name for name in columns if name.rpartition(" ")[2] not in ("std", "low", "high")]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        count = max(map(len, columns.values()), default=0)
        body = "".join(
            f"<tr>{''.join(_cell(columns, name, row) for name in names)}</tr>" for row in range(count)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _library(name: str) -> Any:
    """A library that does not come with every installation."""
    try:
        return importlib.import_module(name)
    except ImportError:
        whole = name.partition(".")[0]
        raise ConfigError(f"{whole} is not installed: pip install {whole}") from None


def _cell(columns: dict[str, list[Any]], name: str, row: int) -> str:
    value = columns[name][row]
    if name.endswith(" fitted") and isinstance(value, float):
        return f"<td>{value:,.6g}</td>"
    if f"{name} low" not in columns or not isinstance(value, int | float):
        return f"<td>{'NULL' if value is None else html.escape(str(value))}</td>"
    low, high = (columns[f"{name} {end}"][row] for end in ("low", "high"))
    most = max((abs(one) for one in columns[name] if isinstance(one, int | float)), default=0.0)
    width = round(_BAR * abs(value) / most) if most else 0
    ends = f" ± {(high - low) / 2:,.4g}" if math.isfinite(high - low) else " (unbounded)"
    bar = f'<div style="background:{SOFT};height:4px;width:{width}px"></div>'
    return f"<td>{value:,.6g}{ends}{bar}</td>"
