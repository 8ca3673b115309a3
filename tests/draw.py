"""Hypothesis draws of domains, queries and tables, shared by the tests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Attribute, Booleans, Categories, Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query

attributes: st.SearchStrategy[Attribute] = st.one_of(
    st.builds(lambda size, nullable: Integers(1, size, nullable=nullable), st.integers(1, 6), st.booleans()),
    st.builds(lambda nullable: Categories(["x", "y", "z"], nullable=nullable), st.booleans()),
    st.builds(lambda nullable: Booleans(nullable=nullable), st.booleans()),
)
domains = st.lists(attributes, min_size=1, max_size=3).map(
    lambda kinds: Domain((f"a{i}", kind) for i, kind in enumerate(kinds))
)


@st.composite
def queries(draw: st.DrawFn, domain: Domain, least: int = -2, most: int = 3) -> Query:
    """A query over some attributes of `domain`, of few classes and small weights."""
    names = draw(st.lists(st.sampled_from(domain.names), unique=True, max_size=len(domain)))
    labels = {
        n: draw(st.lists(st.integers(0, 2), min_size=domain[n].size, max_size=domain[n].size)) for n in names
    }
    size = 3 ** len(names)
    weights = draw(st.lists(st.integers(least, most), min_size=size, max_size=size))
    return Query(domain, labels, np.array(weights).reshape((3,) * len(names)))


@st.composite
def workloads(draw: st.DrawFn, **limits: int) -> list[Query]:
    """One to four queries over one small domain, none of them zero."""
    domain = draw(domains)
    drawn = st.lists(queries(domain, **limits).filter(lambda q: not q.is_zero), min_size=1, max_size=4)
    return draw(drawn)


def cells(domain: Domain) -> np.ndarray[Any, Any]:
    """(n, attributes) levels of every cell, in C order."""
    return np.array(list(itertools.product(*map(range, domain.shape))))


class MemoryTable:
    """A table given as the number of rows in each cell."""

    name = "t"
    types: Mapping[str, str] = {}  # the natural ones

    def __init__(self, domain: Domain, counts: Sequence[int], unit: PrivacyUnit | None = None) -> None:
        self.domain, self.unit = domain, unit or PrivacyUnit()
        self.counts = np.asarray(counts, dtype=np.int64)

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        others = tuple(axis for axis in range(len(self.domain.shape)) if axis not in axes)
        tensor = self.counts.reshape(self.domain.shape).sum(axis=others)
        if not axes:
            return Marginal({}, tensor.reshape(1))
        there = tensor.nonzero()
        return Marginal(dict(zip(axes, there, strict=True)), tensor[there])
