"""Small numbers in few columns: to sort or to group by one number takes less than by several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from laprasdp.data.words import word

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class Packed:
    """
    Numbers of one row in mixed radix: as many in a column as 63 bits hold.

    Parameters
    ----------
    sizes : mapping of name to int
        Each number is at least zero and below its size, which is below 2⁶³.

    Notes
    -----
    The columns have the order of the numbers: the first counts most.  Each is NULL if one of its numbers is.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._groups: list[list[str]] = [[]]
        for name in sizes:
            if self._size([*self._groups[-1], name]) >= 2**63:
                self._groups.append([])
            self._groups[-1].append(name)

    @property
    def columns(self) -> list[str]:
        """The columns: ``p0``, ``p1``, …"""
        return [f"p{i}" for i in range(len(self._groups))]

    @property
    def typed(self) -> list[str]:
        """Each with the least type of DuckDB that holds it."""
        sizes = zip(self.columns, map(self._size, self._groups), strict=True)
        return [f"{name} {'UINTEGER' if size <= 2**32 else 'BIGINT'}" for name, size in sizes]

    def packed(self) -> list[exp.Expr]:
        """These columns, from the numbers by their names."""
        return [
            sum(
                (self._whole(exp.column(name)) * self._literal(self._below(name)) for name in group),
                start=self._literal(0),
            ).as_(f"p{i}")
            for i, group in enumerate(self._groups)
        ]

    def unpacked(self, batch: RecordBatch) -> RecordBatch:
        """The numbers in the place of these columns."""
        import pyarrow

        found = {}
        for group, column in zip(self._groups, self.columns, strict=True):
            left = batch.column(column).to_numpy()
            for name in reversed(group):
                left, found[name] = np.divmod(left, self._sizes[name])
        others = {name: batch.column(name) for name in batch.schema.names if name not in self.columns}
        return pyarrow.RecordBatch.from_pydict(found | others)

    def number(self, name: str) -> exp.Expr:
        """One of the numbers, from these columns, in the words of `laprasdp.data.words`."""
        place = next(i for i, group in enumerate(self._groups) if name in group)
        above = word("quotient", exp.column(f"p{place}"), self._literal(self._below(name)))
        return exp.Mod(this=above, expression=self._literal(self._sizes[name]))

    def _below(self, name: str) -> int:
        """What one of a number counts in its column."""
        group = next(group for group in self._groups if name in group)
        return self._size(group[group.index(name) + 1 :])

    def _size(self, names: list[str]) -> int:
        return math.prod(self._sizes[name] for name in names)

    @staticmethod
    def _whole(value: exp.Expr) -> exp.Expr:
        return exp.cast(value, "BIGINT", dialect="duckdb")

    @classmethod
    def _literal(cls, value: int) -> exp.Expr:
        return cls._whole(exp.Literal.number(value))
