"""The rows that a statement shows, worked out by DuckDB from released values alone, each with its law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from laprasdp.derive.laws import (
    ValueKind,
    ValueLaw,
)
from laprasdp.errors import ConfigError
from laprasdp.stream.answer import Released
from laprasdp.stream.frame import Framed, Numeric


@dataclass(frozen=True)
class Figure(Numeric):
    """
    One value of a result.

    Attributes
    ----------
    value : float, str, bool, list or None
        None is NULL.
    law : ValueLaw
    parts : tuple of Figure
        Those of a list, which has no law of its own.
    """

    value: Any
    law: ValueLaw
    parts: tuple[Figure, ...] = ()

    @property
    def std(self) -> float | None:
        """Standard deviation of its error; None where there is none to tell."""
        return self.law.std

    @property
    def kind(self) -> ValueKind:
        """Whether it is unbiased, or consistent: near the truth where the noise is small."""
        return self.law.kind

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that holds the true value with probability `level`; infinite where nothing is known."""
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise ConfigError(f"a level lies strictly between 0 and 1, not {level!r}")
        return self.law.interval(level)

    def __float__(self) -> float:
        return math.nan if self.value is None else float(self.value)

    def row(self, level: float = 0.95) -> dict[str, Any]:
        """The value as plain data; an infinite end is None, and a list has lists."""
        if self.parts:
            rows = [one.row(level) for one in self.parts]
            return {key: [row[key] for row in rows] for key in ("value", "std", "low", "high")} | {
                "kind": self.kind
            }
        ends = [None if math.isinf(end) else end for end in self.interval(level)]
        return {"value": self.value, "std": self.std, "low": ends[0], "high": ends[1], "kind": self.kind}


@dataclass(frozen=True)
class ResultRow:
    """
    One row of a result.

    Attributes
    ----------
    group : dict
        Its keys, by the names of their columns.
    columns : dict
        Its values, by theirs.
    belongs : float, optional
        The probability that it is among the rows of the truth, where HAVING or LIMIT choose them by values.
    """

    group: dict[str, Any]
    columns: dict[str, Figure]
    belongs: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.group[name] if name in self.group else self.columns[name]


@dataclass(frozen=True)
class LeftOut:
    """
    A group that HAVING or LIMIT left out by its values, and that may be among the rows of the truth.

    Attributes
    ----------
    group : dict
    belongs : float
        The probability that it is.
    """

    group: dict[str, Any]
    belongs: float


@dataclass(frozen=True, repr=False)
class ResultSet(Framed, Numeric, Sequence[ResultRow]):
    """
    The answer of a statement that shows more than one count: its rows, in its order.

    Attributes
    ----------
    query : str
        The statement.
    names : tuple of str
        Of all columns, in its order.
    rows : tuple of ResultRow
    source : str
        Where what was measured came from, or "mixed".
    charge, remaining : float
        As of an `Answer`, for the whole statement.
    released : tuple of Released
    simulated : bool
    left_out : tuple of LeftOut
        The groups that may well be rows too.
    """

    query: str
    names: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    source: str
    charge: float
    remaining: float
    released: tuple[Released, ...] = ()
    simulated: bool = False
    left_out: tuple[LeftOut, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self.rows)

    def __getitem__(self, place: Any) -> Any:
        """A row by its place, or by its key, or keys as a tuple."""
        if isinstance(place, int | slice):
            return self.rows[place]
        wanted = place if isinstance(place, tuple) else (place,)
        for row in self.rows:
            if tuple(row.group.values()) == wanted:
                return row
        raise KeyError(place)

    def columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Each column's values; after a value's own its std, and the ends of its interval."""
        found: dict[str, list[Any]] = {}
        for name in self.names:
            cells = [row[name] for row in self.rows]
            figures = bool(cells) and isinstance(cells[0], Figure)
            found[name] = [one.value for one in cells] if figures else cells
            if figures:
                listed = [[[part.std, *part.interval(level)] for part in one.parts] for one in cells]
                own = [[one.std, *one.interval(level)] for one in cells]
                for place, what in enumerate(("std", "low", "high")):
                    found[f"{name} {what}"] = [
                        [part[place] for part in parts] if parts else mine[place]
                        for parts, mine in zip(listed, own, strict=True)
                    ]
        return found

    def __float__(self) -> float:
        if len(self.rows) != 1 or len(self.rows[0].columns) != 1:
            raise ConfigError("a result of several values is no one number; name its row and column")
        return float(next(iter(self.rows[0].columns.values())))

    def json_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The rows as plain data, as ``--json`` prints them; they share the charge equally."""
        rest = {"source": self.source, "charge": self.charge / max(len(self.rows), 1)}
        simulated = {"simulated": True} if self.simulated else {}
        left_out = [{"group": one.group, "belongs": one.belongs} for one in self.left_out]
        return [
            {
                "query": self.query,
                "group": row.group,
                "columns": {name: one.row(level) for name, one in row.columns.items()},
                **({} if row.belongs is None else {"belongs": row.belongs}),
                **({"left_out": left_out} if left_out and not place else {}),
                **rest,
                "remaining": self.remaining,
                "released": [] if place else [one.row() for one in self.released],
                **simulated,
            }
            for place, row in enumerate(self.rows)
        ]

    def __repr__(self) -> str:
        return f"<{len(self.rows)} rows of {', '.join(self.names)}: {self.query}>"
