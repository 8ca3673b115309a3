"""Small numbers in few columns come back as they were."""

from __future__ import annotations

import duckdb
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from laprasdp.data.duckdb_words import DUCKDB
from laprasdp.data.packed import Packed
from laprasdp.data.words import spelled

ROWS = st.lists(st.integers(1, 2**20) | st.integers(1, 2**63 - 1), min_size=1, max_size=12).flatmap(
    lambda sizes: st.tuples(
        st.just(sizes),
        st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=4),
    )
)


@given(ROWS)
@example(([256, 2**32, 2**23 - 1], [(255, 2**32 - 1, 2**23 - 2), (0, 0, 0)]))  # nearly all 63 bits
@example(([256, 2**32, 2**23], [(255, 2**32 - 1, 2**23 - 1)]))  # all but one
@example(([256, 2**32, 2**23 + 1], [(255, 2**32 - 1, 2**23)]))  # one more
@example(([2**63 - 1, 2], [(2**63 - 2, 1)]))
@example(([2**32], [(2**32 - 1,)]))
@example(([2**32, 2], [(2**32 - 1, 1)]))
def test_numbers_come_back(drawn: tuple[list[int], list[tuple[int, ...]]]) -> None:
    sizes, rows = drawn
    names = [f"a{i}" for i in range(len(sizes))]
    packed = Packed(dict(zip(names, sizes, strict=True)))
    values = ", ".join("(" + ", ".join(f"{value}::BIGINT" for value in row) + ")" for row in rows)
    put = exp.select(*packed.packed()).from_("given").sql("duckdb")
    got = spelled(exp.select(*(packed.number(name) for name in names)).from_("kept"), DUCKDB).sql("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE kept ({', '.join(packed.typed)})")
        connection.execute(f"INSERT INTO kept WITH given({', '.join(names)}) AS (VALUES {values}) {put}")
        assert sorted(connection.execute(got).fetchall()) == sorted(rows)


def test_as_many_in_a_column_as_it_holds() -> None:
    assert Packed({"a": 256, "b": 2**24}).typed == ["p0 UINTEGER"]
    assert Packed({"a": 256, "b": 2**24 + 1}).typed == ["p0 BIGINT"]
    assert Packed(dict.fromkeys("abcdefghij", 10_000)).typed == ["p0 BIGINT", "p1 BIGINT", "p2 UINTEGER"]
