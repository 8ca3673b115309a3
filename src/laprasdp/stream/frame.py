"""Answers as tables of other libraries, and as HTML: what is shown, with its uncertainty beside it."""

from __future__ import annotations

import html
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_BAR = 120  # pixels of the longest bar


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
        return self.to_arrow(level).to_pandas()

    def to_polars(self, level: float = 0.95) -> Any:
        """The rows as a Polars data frame; Polars has to be installed."""
        import polars

        return polars.from_arrow(self.to_arrow(level))

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


def _cell(columns: dict[str, list[Any]], name: str, row: int) -> str:
    value = columns[name][row]
    if f"{name} low" not in columns or not isinstance(value, int | float):
        return f"<td>{'NULL' if value is None else html.escape(str(value))}</td>"
    low, high = (columns[f"{name} {end}"][row] for end in ("low", "high"))
    most = max((abs(one) for one in columns[name] if isinstance(one, int | float)), default=0.0)
    width = round(_BAR * abs(value) / most) if most else 0
    ends = f" ± {(high - low) / 2:,.4g}" if math.isfinite(high - low) else " (unbounded)"
    bar = f'<div style="background:#7aa6c2;height:4px;width:{width}px"></div>'
    return f"<td>{value:,.6g}{ends}{bar}</td>"
