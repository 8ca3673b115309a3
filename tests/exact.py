"""Statements on exact counts beside DuckDB: a table, its levels, and what both say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from laprasdp.derive.estimates import JointEstimate
from laprasdp.queries.marginal import Marginal
from laprasdp.record.estimate import Estimate
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.worked import rows_of


@dataclass(frozen=True)
class Beside:
    """Rows in DuckDB, the level of each in every attribute, and what reads statements over them."""

    database: duckdb.DuckDBPyConnection
    levels: Mapping[str, npt.NDArray[np.int64]]
    reader: Reader

    def exact(self, statement: Statement) -> JointEstimate:
        """What a statement asks for, without noise."""
        names = self.reader.domain.names
        ones = np.ones(len(next(iter(self.levels.values()))), dtype=np.int64)
        estimates = []
        for query in statement.queries:
            marginal = Marginal({axis: self.levels[names[axis]] for axis in query.axes}, ones)
            estimates.append(Estimate(float(query.answer(marginal)), 1e-12, "measured"))
        return JointEstimate(tuple(estimates), None, np.eye(len(estimates)) * 1e-12)

    def ours(self, text: str) -> list[tuple[Any, ...]]:
        """Our rows."""
        statement = self.reader.parse(text)
        joint = self.exact(statement)
        if statement.result is None:
            values = [one.value for one in joint.estimates if one]
            groups = statement.groups or ((),) * len(values)
            return [(*map(plain, group), value) for group, value in zip(groups, values, strict=True)]
        names, rows, _ = rows_of(statement.result, joint)
        return [
            tuple(plain(row.group[name] if name in row.group else row.columns[name].value) for name in names)
            for row in rows
        ]

    def theirs(self, text: str) -> list[tuple[Any, ...]]:
        """DuckDB's."""
        return [tuple(map(plain, row)) for row in self.database.execute(text).fetchall()]

    def check(self, text: str, *, ordered: bool) -> None:
        """Both are the same, in the same order where there is one."""
        ours, theirs = self.ours(text), self.theirs(text)
        if not ordered:
            ours, theirs = sorted(ours, key=_spelled), sorted(theirs, key=_spelled)
        assert len(ours) == len(theirs), (text, ours[:5], theirs[:5])
        for mine, other in zip(ours, theirs, strict=True):
            assert len(mine) == len(other), (text, mine, other)
            assert all(map(same, mine, other)), (text, mine, other)


def plain(value: Any) -> Any:
    """A value of DuckDB or of ours, so that both compare."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return float(value) if isinstance(value, int | float | Decimal) else str(value)


def same(ours: Any, theirs: Any) -> bool:
    """Equal, or as near as sums of floats are."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-5)
    return bool(ours == theirs)


def _spelled(row: tuple[Any, ...]) -> list[str]:
    return [f"{one:.3f}" if isinstance(one, float) else repr(one) for one in row]
