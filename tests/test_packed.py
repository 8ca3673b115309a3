"""Small numbers in few columns come back as they were."""

from __future__ import annotations

import duckdb
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from laprasdp.data.packed import Packed

ROWS = st.lists(st.integers(1, 2**20) | st.integers(1, 2**64 - 1), min_size=1, max_size=12).flatmap(
    lambda sizes: st.tuples(
        st.just(sizes),
        st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=4),
    )
)


@given(ROWS)
@example(([256, 2**32, 2**24 - 1], [(255, 2**32 - 1, 2**24 - 2), (0, 0, 0)]))  # nearly all 64 bits
@example(([256, 2**32, 2**24], [(255, 2**32 - 1, 2**24 - 1)]))  # one more
@example(([2**64 - 1, 2], [(2**64 - 2, 1)]))
@example(([2**32], [(2**32 - 1,)]))
@example(([2**32, 2], [(2**32 - 1, 1)]))
def test_numbers_come_back(drawn: tuple[list[int], list[tuple[int, ...]]]) -> None:
    sizes, rows = drawn
    names = [f"a{i}" for i in range(len(sizes))]
    packed = Packed(dict(zip(names, sizes, strict=True)))
    values = ", ".join("(" + ", ".join(f"{value}::UBIGINT" for value in row) + ")" for row in rows)
    put = exp.select(*packed.packed()).from_("given").sql("duckdb")
    got = exp.select(*(packed.number(name) for name in names)).from_("kept").sql("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE kept ({', '.join(packed.columns)})")
        connection.execute(f"INSERT INTO kept WITH given({', '.join(names)}) AS (VALUES {values}) {put}")
        assert sorted(connection.execute(got).fetchall()) == sorted(rows)


def test_as_many_in_a_column_as_it_holds() -> None:
    assert Packed({"a": 256, "b": 2**24}).columns == ["p0 UINTEGER"]
    assert Packed({"a": 256, "b": 2**24 + 1}).columns == ["p0 UBIGINT"]
    assert Packed(dict.fromkeys("abcdefghij", 10_000)).columns == ["p0 UBIGINT", "p1 UBIGINT", "p2 UINTEGER"]
