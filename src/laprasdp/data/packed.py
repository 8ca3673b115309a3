"""Small numbers in few columns: in memory a column takes two bytes a row beside what it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlglot import exp


class Packed:
    """
    Numbers of one row in mixed radix: as many in a column as 64 bits hold.

    Parameters
    ----------
    sizes : mapping of name to int
        Each number is at least zero and below its size, which is below 2⁶⁴.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._groups: list[list[str]] = [[]]
        for name in sizes:
            if self._size([*self._groups[-1], name]) >= 2**64:
                self._groups.append([])
            self._groups[-1].append(name)

    @property
    def columns(self) -> list[str]:
        """Names and types of the columns ``p0``, ``p1``, …"""
        sizes = (self._size(group) for group in self._groups)
        return [f"p{i} {'UINTEGER' if size <= 2**32 else 'UBIGINT'}" for i, size in enumerate(sizes)]

    def packed(self) -> list[exp.Expr]:
        """These columns, from the numbers by their names."""
        return [
            sum(
                (self._whole(exp.column(name)) * self._literal(self._below(name)) for name in group),
                start=self._literal(0),
            ).as_(f"p{i}")
            for i, group in enumerate(self._groups)
        ]

    def number(self, name: str) -> exp.Expr:
        """One of the numbers, from these columns."""
        place = next(i for i, group in enumerate(self._groups) if name in group)
        above = exp.IntDiv(this=exp.column(f"p{place}"), expression=self._literal(self._below(name)))
        return exp.Mod(this=above, expression=self._literal(self._sizes[name]))

    def _below(self, name: str) -> int:
        """What one of a number counts in its column."""
        group = next(group for group in self._groups if name in group)
        return self._size(group[group.index(name) + 1 :])

    def _size(self, names: list[str]) -> int:
        return math.prod(self._sizes[name] for name in names)

    @staticmethod
    def _whole(value: exp.Expr) -> exp.Expr:
        return exp.cast(value, "UBIGINT", dialect="duckdb")

    @classmethod
    def _literal(cls, value: int) -> exp.Expr:
        return cls._whole(exp.Literal.number(value))
