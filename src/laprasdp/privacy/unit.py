"""The privacy unit: what one neighbour may add or remove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laprasdp.errors import ConfigError

FIRST_ORDER = "md5"
ORDERS = ("md5-hex", FIRST_ORDER)
"""The orders that rows of a person were ever put in; ``md5`` is of the first ledgers, and of DuckDB alone."""


@dataclass(frozen=True)
class PrivacyUnit:
    """
    One row, or all rows of one person with a declared maximum.

    Parameters
    ----------
    column : str, optional
        The column that names the person; without it every row is a unit of its own.
    max_rows : int
        Rows of one person that count; the others are dropped before anything is asked.
    order : str
        One of `ORDERS`, which says which rows those are.  A ledger keeps the order that it was begun with.

    Notes
    -----
    **Privacy.**  Neighbours are two tables of which one has all rows of one unit more, and the other none
    of them (docs/notation.md): a unit is added or removed, never changed.  At most `max_rows` rows that
    count come or go, so a release whose largest column L2 norm is `c` is `max_rows`·`c`-GDP for the unit.
    Tables in which a unit has other rows are two steps apart: 2·`max_rows`·`c`-GDP.
    """

    column: str | None = None
    max_rows: int = 1
    order: str = ORDERS[0]

    def __post_init__(self) -> None:
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise ConfigError(f"the privacy unit's column must be a name, not {self.column!r}")
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or self.max_rows < 1:
            raise ConfigError(f"max_rows must be a whole number of at least 1, not {self.max_rows!r}")
        if self.column is None and self.max_rows != 1:
            raise ConfigError("max_rows needs the column that names the person")
        if self.order not in ORDERS:
            raise ConfigError(f"order must be one of {', '.join(ORDERS)}, not {self.order!r}")

    def settings(self) -> dict[str, Any]:
        """As plain data, for a ledger; of single rows all count, in whatever order."""
        kept = {"column": self.column, "max_rows": self.max_rows}
        return kept if self.column is None else {**kept, "order": self.order}
