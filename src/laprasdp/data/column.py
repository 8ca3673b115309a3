"""A column of a source: its name and type as DuckDB spells types, whatever engine reads it."""

from __future__ import annotations

from dataclasses import dataclass

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
