"""What follows from the answers of a statement's queries: its result, as a pure function of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa

from laprasdp.scratch import Tree

RELEASED = "lapras released "
GROUP = "lapras group"
DRAW = "lapras draw"
Multiples = Mapping[int, Fraction]
"""What each query of a statement is multiplied by, by its place."""


@dataclass(frozen=True)
class Sum:
    """
    An aggregate that is a multiple of one query.

    Attributes
    ----------
    queries : tuple of int
        The place of the query of each group.
    factor : Fraction
    """

    queries: tuple[int, ...]
    factor: Fraction = Fraction(1)


@dataclass(frozen=True)
class Quantile:
    """
    An aggregate that is read off cumulative counts.

    Attributes
    ----------
    queries : tuple of tuples of int
        For each group the places of the queries that count the values up to each of `points`.
    points : tuple of numbers
        Ascending.
    share : float
        Between 0 and 1.
    continuous : bool
        Between two values it is interpolated, as QUANTILE_CONT does.
    lows : tuple of numbers
        The least value that each step counts: its point, unless several values are counted together.
    """

    queries: tuple[tuple[int, ...], ...]
    points: tuple[Fraction, ...]
    share: float
    continuous: bool
    lows: tuple[Fraction, ...]


@dataclass(frozen=True)
class Linear:
    """A linear combination of aggregates of the same group, and of sums of such over groups."""

    own: Mapping[int, Fraction] = field(default_factory=dict)
    over: tuple[tuple[Fraction, Linear, tuple[int, ...]], ...] = ()
    constant: Fraction = Fraction(0)

    def scaled(self, by: Fraction) -> Linear:
        """A multiple of it."""
        return Linear(
            {slot: one * by for slot, one in self.own.items()},
            tuple((one * by, what, keys) for one, what, keys in self.over),
            self.constant * by,
        )

    def plus(self, other: Linear) -> Linear:
        """The sum of both."""
        own = {slot: self.own.get(slot, 0) + other.own.get(slot, 0) for slot in {*self.own, *other.own}}
        return Linear(
            {slot: Fraction(one) for slot, one in own.items()},
            self.over + other.over,
            self.constant + other.constant,
        )

    @property
    def fixed(self) -> bool:
        """It is a constant."""
        return not self.own and not self.over


@dataclass(frozen=True)
class Formula:
    """
    How a value follows from the aggregates, as far as its law is known in closed form.

    Attributes
    ----------
    top : Linear
    bottom : Linear
        A constant 1 where it is no ratio.
    digits : int or None
        ROUND to this many digits is applied at the end.
    """

    top: Linear
    bottom: Linear = Linear(constant=Fraction(1))
    digits: int | None = None


ColumnForm = Formula | int | None | tuple[Formula | int | None, ...]
"""Of a value: in closed form, or the slot of a quantile that is shown as it is; a list has several."""


@dataclass(frozen=True)
class Block:
    """
    One SELECT whose aggregates are measured.

    Attributes
    ----------
    keys : pa.Table
        One row a group: its keys, "k0", "k1", …
    slots : tuple of Sum or Quantile
        The aggregates, "m0", "m1", …
    forms : tuple of ColumnForm
        Of each column.
    """

    keys: pa.Table
    slots: tuple[Sum | Quantile, ...]
    forms: tuple[ColumnForm, ...] = ()


@dataclass(frozen=True)
class Output:
    """
    A column of the result.

    Attributes
    ----------
    name, type : str
        As DuckDB has them.
    key : bool
        Its values are public: keys and what follows from them.
    """

    name: str
    type: str
    key: bool


@dataclass(frozen=True, eq=False)
class Result:
    """
    The rows that a statement shows, worked out from what was released and from nothing else.

    Attributes
    ----------
    select : Tree
        Over the tables "lapras released 0", …, one a block.  Where each row is one group it ends in a column
        that holds its place among the groups of all blocks.
    blocks : tuple of Block
    outputs : tuple of Output
    unfiltered : Tree or None
        The same without HAVING, ORDER BY and LIMIT; None where rows are not groups.
    windowed : bool
        A value looks at other groups than its own.
    narrowed : bool
        It looks at those alone that HAVING or WHERE left.
    drawn : Tree, optional
        `unfiltered` over tables of many draws; its rows end in their group and the number of the draw.
    chosen : Tree, optional
        The same of `select`, where HAVING, QUALIFY, WHERE or LIMIT leave groups out by their values.
    tables : mapping of name to pa.Table
        Lookups that what was released is joined with.
    """

    select: Tree
    blocks: tuple[Block, ...]
    outputs: tuple[Output, ...]
    unfiltered: Tree | None
    windowed: bool
    narrowed: bool = False
    drawn: Tree | None = None
    chosen: Tree | None = None
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
