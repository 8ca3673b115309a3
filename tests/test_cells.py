"""Cells, whatever engine they are from: counts add up over batches, and marginals over what was read."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sources import as_dict

from laprasdp.data.cells import CellTable
from laprasdp.errors import DataError
from laprasdp.queries.attribute import Booleans, Integers
from laprasdp.queries.domain import Domain

Row = tuple[int, ...]


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.lists(st.lists(st.tuples(st.integers(0, 299), st.integers(0, 1), st.integers(1, 2**40)))))
def test_counts_of_a_cell_add_up_over_batches(parts: list[list[tuple[int, int, int]]]) -> None:
    domain = Domain(n=Integers(0, 299), ok=Booleans())
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "rows": pa.array([n for _, _, n in part], pa.int64()),
                "a1": pa.array([b for _, b, _ in part], pa.int16()),
                "a0": pa.array([a for a, _, _ in part], pa.int32()),
            }
        )
        for part in parts
    ]
    wanted: Counter[Row] = Counter()
    for a, b, n in (line for part in parts for line in part):
        wanted[a, b] += n
    cells = CellTable("t", domain, iter(batches))
    assert as_dict(cells.marginal((0, 1)), (0, 1)) == dict(wanted)
    assert cells.marginal(()).counts.tolist() == [wanted.total()]
    cells.close()
    with pytest.raises(DataError, match="table t is closed"):
        cells.marginal(())


@pytest.mark.parametrize("told", [True, False])
def test_rows_of_persons_are_told_or_each_counts_one(told: bool) -> None:
    levels = [3, 0, 3, 3, 2, 0]
    batches = [
        pa.RecordBatch.from_pydict(
            {"a0": levels[start : start + 3], "who": [7, 7, 7]} | ({"rows": [1, 1, 1]} if told else {})
        )
        for start in (0, 3)
    ]
    cells = CellTable("t", Domain(n=Integers(0, 3)), iter(batches), persons=True)
    assert as_dict(cells.marginal((0,)), (0,)) == {(0,): 2, (2,): 1, (3,): 3}
    assert cells.marginal((0, 1)).counts.tolist() == [1, 1, 1]  # the person once at each level


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.permutations([(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]), st.integers(0, 40))
def test_a_marginal_is_the_same_whichever_were_read_before(order: list[Row], size: int) -> None:
    """It comes from the smallest of them that has its attributes, with the same values and types."""
    rng = random.Random(size)
    domain = Domain(n=Integers(0, 299), ok=Booleans(), m=Integers(0, 2))
    rows = [(rng.randrange(300), rng.randrange(2), rng.randrange(3)) for _ in range(size)]
    batch = pa.RecordBatch.from_pydict(
        {f"a{i}": [row[i] for row in rows] for i in range(3)} | {"rows": pa.array([1] * size, pa.int64())},
        pa.schema([(f"a{i}", pa.int32()) for i in range(3)] + [("rows", pa.int64())]),
    )
    cells = CellTable("t", domain, [batch])
    for axes in order:
        own, fresh = cells.marginal(axes), CellTable("t", domain, [batch])
        wanted = fresh.marginal(axes)
        assert as_dict(own, axes) == as_dict(wanted, axes)
        assert {a: v.dtype for a, v in own.levels.items()} == {a: v.dtype for a, v in wanted.levels.items()}
        assert sum(as_dict(own, axes).values()) == size
        fresh.close()
    cells.close()
