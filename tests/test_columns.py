"""Distinct columns: too many are refused before they are made."""

from __future__ import annotations

import tracemalloc

import pytest

import laprasdp as lp
from laprasdp.limits import MAX_COLUMNS


def prefixes(levels: int, names: str) -> list[lp.Query]:
    """All prefixes of each attribute by itself."""
    domain = lp.Domain({name: lp.Integers(0, levels - 1) for name in names})
    return [lp.Query.count(domain, **{name: range(end)}) for name in names for end in range(1, levels)]


def test_queries_over_one_attribute_multiply() -> None:
    assert lp.Workload(prefixes(6, "abc")).columns.values.shape == (15, 6**3)


def test_too_many_columns_are_refused_before_they_fill_memory() -> None:
    queries = prefixes(30, "abcdef")
    tracemalloc.start()
    try:
        with pytest.raises(lp.UnsupportedQuery, match=f"at least {30**6:,} columns apart"):
            _ = lp.Workload(queries).columns
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_many_queries_may_tell_fewer_columns_apart() -> None:
    queries = prefixes(90, "abc")
    limit = 2**26 // len(queries)
    assert limit < MAX_COLUMNS
    with pytest.raises(lp.UnsupportedQuery, match=f"the limit is {limit:,}"):
        _ = lp.Workload(queries).columns
