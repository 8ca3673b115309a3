"""A column of a source: its name and type as DuckDB spells types, whatever engine reads it."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from laprasdp.errors import DataError

INTEGERS = {
    **{name: (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for name, b in
       {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}.items()},
    **{name: (0, 2**b - 1) for name, b in
       {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "UHUGEINT": 128}.items()},
}  # fmt: skip
FLOATS = ("FLOAT", "DOUBLE")
TEXTS = ("VARCHAR", "ENUM", "UUID")
DAYS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


@dataclass(frozen=True)
class Column:
    """
    A column as the source spells it.

    Attributes
    ----------
    name : str
    type : str
        DuckDB's; '' where nothing is known of it.
    place : int
        Where it stands among the columns.
    is_text : bool
        Its values are texts, to be read as its attribute says.
    """

    name: str
    type: str
    place: int
    is_text: bool = False

    @property
    def base(self) -> str:
        """The type without its arguments: ``DECIMAL`` of ``DECIMAL(9,2)``; '' where the type is not known."""
        if self.type.endswith("]"):
            return self.type
        return self.type.split("(")[0].replace('"NULL"', "")


def found_column(label: str, columns: Sequence[Column], wanted: str, what: str = "column") -> Column:
    """
    The column of this name; case counts only where it must tell columns apart.

    Parameters
    ----------
    label, what : str
        How messages call the source, and what is looked for.

    Raises
    ------
    DataError
        No such column, or several.
    """
    exact = [column for column in columns if column.name == wanted]
    found = exact or [column for column in columns if column.name.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if len(exact) > 1:
        raise DataError(f"{label} has {len(exact)} columns called {wanted}: give each its own name")
    if found:
        names = ", ".join(column.name for column in found)
        raise DataError(f"{what} {wanted} could be several columns of {label}: {names}")
    for column in columns:
        if unicodedata.normalize("NFC", column.name) == unicodedata.normalize("NFC", wanted):
            raise DataError(f"{label} spells {what} {wanted} in another Unicode form: copy it from there")
    folded = {column.name.casefold(): column.name for column in columns if len(column.name) > 2}
    near = []
    if len(wanted) > 2:  # of shorter names none is near
        near = difflib.get_close_matches(wanted.casefold(), folded, n=1, cutoff=0.5)
    known = [column.name for column in columns]
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    hint = f"the nearest is {folded[near[0]]}" if near else f"it has {shown}"
    raise DataError(f"{label} has no {what} {wanted}; {hint}")
