"""A result worked out: DuckDB runs it on what was released, and each value gets its law."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Floats
from laprasdp.derive.draws import drawn
from laprasdp.derive.estimates import JointEstimate
from laprasdp.derive.laws import (
    DrawnLaw,
    LinearLaw,
    NoLaw,
    QuantileLaw,
    RatioLaw,
    RoundedLaw,
    Tail,
    ValueLaw,
)
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MANY
from laprasdp.scratch import ScratchError, Tree
from laprasdp.sql.result import Block, ColumnForm, Formula, Linear, Quantile, Result, Sum
from laprasdp.sql.syntax import clip
from laprasdp.stream.cellvalues import different, number_of, plain, printed
from laprasdp.stream.released import ReleasedTables
from laprasdp.stream.resultset import Figure, LeftOut, ResultRow

DRAWS = 400
"""Draws of the joint law for a value without a law in closed form."""
DRAWN_ROWS = 400_000
"""Rows of all draws together: of many groups there are fewer draws."""
LEAST_CHANCE, MOST_LEFT_OUT = 0.01, 20
"""Groups that are left out are told of where they belong to the rows with this probability; and how many."""
LEAST_DRAWS = 40
"""Fewer draws tell no probability."""
STEPS = 200
"""Answers that are moved one by one for such a value where their joint law is not known."""


def rows_of(
    result: Result, joint: JointEstimate
) -> tuple[tuple[str, ...], tuple[ResultRow, ...], tuple[LeftOut, ...]]:
    """
    The names of a result's columns, its rows, and the groups that may be rows too.

    Parameters
    ----------
    result : Result
    joint : JointEstimate
        What is known of the queries of its statement.

    Raises
    ------
    UnsupportedQuery
        DuckDB fails on what was released, as on a cast of a number that is too large.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """
    try:
        return _Worked(result, joint).rows()
    except (ScratchError, OverflowError) as error:  # Python knows fewer dates than DuckDB
        raise UnsupportedQuery(
            f"what was released does not give a result: {clip(str(error), 200)}; it is kept, so another "
            "statement over the same counts is free: ask for them, or write CASE, NULLIF or TRY_CAST"
        ) from None


def stds_of(result: Result, joint: JointEstimate) -> dict[str, tuple[float | None, ...]]:
    """
    The standard deviations of a result's values before its rows are known, group after group, by column.

    Parameters
    ----------
    result : Result
    joint : JointEstimate
        Of which only the laws are looked at.

    Returns
    -------
    dict of name to tuple of float or None
        None where it hangs on values: it is that of no linear combination.
    """
    worked, found = _Worked(result, joint), dict[str, tuple[float | None, ...]]()
    names = different([one.name for one in result.outputs])
    for column, (name, output) in enumerate(zip(names, result.outputs, strict=True)):
        if not output.key:
            found[name] = tuple(
                worked.linear_std(column, block, group)
                for block in result.blocks
                for group in range(len(block.keys))
            )
    return found


class _Worked:
    def __init__(self, result: Result, joint: JointEstimate) -> None:
        self.result, self.joint = result, joint
        self.values = np.array([0.0 if one is None else one.value for one in joint.estimates])
        self.stds = np.array([0.0 if one is None else math.sqrt(one.variance) for one in joint.estimates])
        self.law = Tail.of(joint.estimates)
        self.firsts = np.cumsum([0, *(len(block.keys) for block in result.blocks)])
        self.tables = ReleasedTables(result, self.stds)
        self._partitions: dict[tuple[int, tuple[int, ...]], dict[tuple[Any, ...], list[int]]] = {}
        self._draws: tuple[int, dict[tuple[Any, ...], list[list[float]]]] | None = None
        self._slopes: list[dict[tuple[Any, ...], list[float]]] | None = None

    def rows(self) -> tuple[tuple[str, ...], tuple[ResultRow, ...], tuple[LeftOut, ...]]:
        found = self._run(self.result.select, self.values)
        names = different([one.name for one in self.result.outputs])
        grouped = self.result.unfiltered is not None
        belongs = self._memberships()
        rows, places = [], set[int]()
        for cells in zip(*(column.to_pylist() for column in found.columns), strict=True):
            figures: dict[str, Figure] = {}
            place = cells[-1] if grouped else None
            key = (place,) if grouped else self._key(cells)
            for number, (name, output) in enumerate(zip(names, self.result.outputs, strict=True)):
                if not output.key:
                    figures[name] = self._figure(number, place, key, cells[number])
            chance = None if belongs is None or place is None else belongs.get(place, 0.0)
            rows.append(ResultRow(self._keys(names, cells), figures, chance))
            places.add(place if place is not None else -1)
        return names, tuple(rows), self._left_out(names, belongs or {}, places)

    def _keys(self, names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
        return {
            name: printed(cell)
            for name, output, cell in zip(names, self.result.outputs, cells, strict=False)
            if output.key
        }

    def _left_out(
        self, names: Sequence[str], belongs: Mapping[int, float], shown: set[int]
    ) -> tuple[LeftOut, ...]:
        """The groups that are no rows and may well belong to them, the likeliest first."""
        others = {place: one for place, one in belongs.items() if place not in shown and one >= LEAST_CHANCE}
        if not others or self.result.unfiltered is None:
            return ()
        table = self._run(self.result.unfiltered, self.values)
        every = zip(*(column.to_pylist() for column in table.columns), strict=True)
        found = [
            LeftOut(self._keys(names, cells), others[cells[-1]]) for cells in every if cells[-1] in others
        ]
        return tuple(sorted(found, key=lambda one: -one.belongs)[:MOST_LEFT_OUT])

    def _key(self, cells: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(cell for cell, output in zip(cells, self.result.outputs, strict=False) if output.key)

    def _run(self, select: Tree, values: Floats) -> pa.Table:
        return self.tables.run(select, values[None, :])

    def _figure(self, column: int, place: int | None, key: tuple[Any, ...], value: Any) -> Figure:
        if not isinstance(value, list):
            return Figure(plain(value), self._law(column, place, key, value))
        forms: ColumnForm = None
        if place is not None:
            block, group = self._group(place)
            forms = block.forms[column]
        if not isinstance(forms, tuple) or self.result.narrowed:
            return Figure([plain(one) for one in value], NoLaw())
        parts = tuple(
            Figure(
                plain(one), NoLaw() if form is None or one is None else self._formed(form, block, group, one)
            )
            for form, one in zip(forms, value, strict=True)
        )
        return Figure([one.value for one in parts], NoLaw(), parts)

    def _group(self, place: int) -> tuple[Block, int]:
        """The block of a group, and its place there."""
        number = int(np.searchsorted(self.firsts, place, side="right")) - 1
        return self.result.blocks[number], place - int(self.firsts[number])

    def _law(self, column: int, place: int | None, key: tuple[Any, ...], value: Any) -> ValueLaw:
        if value is None:
            return NoLaw()
        if place is not None:
            block, group = self._group(place)
            form = block.forms[column]
            if self.result.windowed and len(block.keys) > MANY:
                return NoLaw()  # a sum over all groups for each of them
            if isinstance(form, int | Formula) and not self.result.narrowed:
                return self._formed(form, block, group, value)
        if self.joint.covariance is None:
            return self._bounded(key, column, value)
        return DrawnLaw(self._drawn(key, column))

    def _formed(self, form: Formula | int, block: Block, group: int, value: Any) -> ValueLaw:
        if isinstance(form, Formula):
            return self._closed(form, block, group, value)
        slot = block.slots[form]
        assert isinstance(slot, Quantile)
        return self._quantile_law(slot, group)

    def _bounded(self, key: tuple[Any, ...], column: int, value: Any) -> ValueLaw:
        """To first order the largest error that there may be, where the joint law is not known."""
        moved = [place for place, std in enumerate(self.stds) if std > 0]
        if len(moved) > STEPS or not isinstance(value, int | float):
            return NoLaw()
        if self._slopes is None:
            self._slopes = []
            for place in moved:
                values = self.values.copy()
                values[place] += self.stds[place]
                self._slopes.append(self._by_key(values))
        steps = [found[key][column] - float(value) if key in found else math.nan for found in self._slopes]
        std = math.fsum(map(abs, steps))
        return LinearLaw(float(value), std, self.law, "consistent") if math.isfinite(std) else NoLaw()

    def _by_key(self, values: Floats) -> dict[tuple[Any, ...], list[float]]:
        """The numbers of each row of the statement with all its groups, by its key; none where it fails."""
        grouped = self.result.unfiltered is not None
        try:
            table = self._run(self.result.unfiltered or self.result.select, values)
            found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        except (ScratchError, OverflowError):
            return {}
        keys = [(cells[-1],) if grouped else self._key(cells) for cells in found]
        often = Counter(keys)
        return {
            key: list(map(number_of, cells))
            for key, cells in zip(keys, found, strict=True)
            if often[key] == 1  # of several rows of one key nothing tells which is which
        }

    def linear_std(self, column: int, block: Block, group: int) -> float | None:
        """The standard deviation of a value that is a linear combination; None of any other."""
        form = block.forms[column] if self.result.unfiltered is not None else None
        many = self.result.narrowed or (self.result.windowed and len(block.keys) > MANY)
        if many or not isinstance(form, Formula) or not form.bottom.fixed:
            return None
        return math.sqrt(self._variance(self._terms(form.top, block, group))) / abs(
            float(form.bottom.constant)
        )

    def _closed(self, form: Formula, block: Block, group: int, value: Any) -> ValueLaw:
        top = self._terms(form.top, block, group)
        law: LinearLaw | RatioLaw
        exact = self.joint.covariance is not None
        if form.bottom.fixed:
            scale = float(form.bottom.constant)
            std = math.sqrt(self._variance(top)) / abs(scale)
            middle = (float(form.top.constant) + self._value(top)) / scale
            law = LinearLaw(middle, std, self.law)
        else:
            bottom = self._terms(form.bottom, block, group)
            covariance = self._covariance(top, bottom) if exact else None
            law = RatioLaw(
                float(form.top.constant) + self._value(top),
                float(form.bottom.constant) + self._value(bottom),
                self._variance(top), self._variance(bottom), covariance, self.law,
            )  # fmt: skip
        return law if form.digits is None else RoundedLaw(law, form.digits)

    def _terms(self, linear: Linear, block: Block, group: int) -> dict[int, float]:
        terms: dict[int, float] = {}

        def add(part: Linear, at: int, by: Fraction) -> None:
            for slot, coefficient in part.own.items():
                one = block.slots[slot]
                assert isinstance(one, Sum)
                query = one.queries[at]
                terms[query] = terms.get(query, 0.0) + float(coefficient * by * one.factor)

        add(linear, group, Fraction(1))
        for by, part, keys in linear.over:
            for other in self._partition(block, group, keys):
                add(part, other, by)
        return terms

    def _partition(self, block: Block, group: int, keys: tuple[int, ...]) -> list[int]:
        """The groups that have the same values of these keys."""
        known = self._partitions.setdefault((id(block), keys), {})
        if not known:
            columns = [block.keys.column(f"o{key}").to_pylist() for key in keys]
            for other in range(len(block.keys)):
                known.setdefault(tuple(column[other] for column in columns), []).append(other)
        return known[tuple(block.keys.column(f"o{key}")[group].as_py() for key in keys)]

    def _value(self, terms: Mapping[int, float]) -> float:
        return math.fsum(self.values[place] * by for place, by in terms.items())

    def _variance(self, terms: Mapping[int, float]) -> float:
        if self.joint.covariance is None:
            return math.fsum(abs(by) * self.stds[place] for place, by in terms.items()) ** 2
        return max(self._covariance(terms, terms), 0.0)

    def _covariance(self, one: Mapping[int, float], other: Mapping[int, float]) -> float:
        assert self.joint.covariance is not None
        part = self.joint.covariance[np.ix_(list(one), list(other))]
        return (
            float(np.array(list(one.values())) @ part @ np.array(list(other.values()))) if part.size else 0.0
        )

    def _quantile_law(self, slot: Quantile, group: int) -> ValueLaw:
        places = list(slot.queries[group])
        above = self.values[places] - slot.share * self.values[places[-1]]
        stds = []
        for place in places:
            terms = {place: 1.0}
            terms[places[-1]] = terms.get(places[-1], 0.0) - slot.share
            stds.append(math.sqrt(self._variance(terms)))
        points, lows = ([float(one) for one in ends] for ends in (slot.points, slot.lows))
        return QuantileLaw(points, lows, above, np.array(stds), self.law)

    def _drawn(self, key: tuple[Any, ...], column: int) -> Floats:
        """Draws of a value; none where it has none for some draw."""
        if self._draws is None:
            self._draws = self._draw()
        count, rows = self._draws
        found = rows.get(key)
        if found is None or len(found) < count:
            return np.zeros(0)
        values = np.array([row[column] for row in found], dtype=float)
        return values if np.isfinite(values).all() else np.zeros(0)

    def _draw(self) -> tuple[int, dict[tuple[Any, ...], list[list[float]]]]:
        """How many draws, and the rows of the statement for draws around what was released, by their keys."""
        found: dict[tuple[Any, ...], list[list[float]]] = {}
        if self.result.drawn is not None and (draws := self._around()) is not None:
            try:
                table = self.tables.run(self.result.drawn, draws, repeated=True)
                for cells in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    found.setdefault((cells[-2],), []).append(list(map(number_of, cells[:-2])))
            except (ScratchError, OverflowError):  # it fails for some draw, and maybe for some rows only
                pass
            else:
                return len(draws), found
        assert self.joint.covariance is not None
        found = {}
        for values in drawn(self.values, self.joint.covariance, DRAWS):
            for key, row in self._by_key(values).items():
                found.setdefault(key, []).append(row)
        return DRAWS, found

    def _around(self) -> Floats | None:
        """(d, m) draws around what was released; None where the joint law is not known."""
        if self.joint.covariance is None:
            return None
        quantiles = any(isinstance(slot, Quantile) for block in self.result.blocks for slot in block.slots)
        groups = max(int(self.firsts[-1]), 1)
        count = max(min(DRAWS // (4 if quantiles else 1), DRAWN_ROWS // groups) // 2 * 2, 2)
        return np.array(list(drawn(self.values, self.joint.covariance, count)))

    def _memberships(self) -> dict[int, float] | None:
        """
        The probability that each group is a row, by its place; None where none is left out by its values.

        Notes
        -----
        The share of draws around what was released for which DuckDB shows the group.
        """
        if self.result.chosen is None or (draws := self._around()) is None or len(draws) < LEAST_DRAWS:
            return None
        try:
            places = self.tables.run(self.result.chosen, draws, repeated=True).columns[-2].to_pylist()
        except (ScratchError, OverflowError):
            return None
        return {place: count / len(draws) for place, count in Counter(places).items()}
