"""A text that was read before means what it meant: remembering is bounded and changes nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_grammar import AGGREGATE, DOMAIN, nested

from laprasdp import Domain, Integers
from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.runs import first_seen
from laprasdp.sql import parse, reader
from laprasdp.sql.reader import Reader

AGES = Domain(age=Integers(0, 999))


def counted(low: int) -> str:
    return f"SELECT COUNT(*) FROM t WHERE age >= {low}"


@given(seed=st.integers(0, 10**9), asked=st.lists(st.integers(0, 7), max_size=25))
@settings(max_examples=25, deadline=None)
def test_a_remembered_statement_is_the_one_that_is_read(seed: int, asked: list[int]) -> None:
    rng = random.Random(seed)
    texts = [f"SELECT {AGGREGATE(rng)} FROM people WHERE {nested(rng, 1)}" for _ in range(4)]
    texts += [f"SELECT flag, COUNT(*) FROM people WHERE {nested(rng, 1)} GROUP BY flag" for _ in range(4)]
    small = Reader(DOMAIN, "people", room=2**15)  # so that some are forgotten in between
    for number in asked:
        found = replace(small.parse(texts[number]), column="count_star()")
        assert found == parse(texts[number], DOMAIN, "people")


def test_what_was_read_last_is_not_read_again_and_the_rest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    monkeypatch.setattr(reader, "parse", lambda text, *rest: read.append(text) or parse(text, *rest))
    room = 60_000
    session = Reader(AGES, "t", room=room)
    for low in range(100):
        session.parse(counted(0 if low % 2 else low))
    assert read.count(counted(0)) == 1
    assert read.count(counted(2)) == 1
    session.parse(counted(2))
    assert read.count(counted(2)) == 2
    taken = session.taken
    assert 10 * 2_000 < taken <= room
    session.parse(counted(98))
    assert (read.count(counted(98)), session.taken) == (1, taken)


def test_a_statement_that_takes_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(reader, "parse", lambda text, *rest: read.append(text) or parse(text, *rest))
    session = Reader(AGES, "t", room=2**22)
    grouped = "SELECT age, COUNT(*) FROM t GROUP BY age"
    session.parse(counted(1))
    assert len(session.parse(grouped).queries) == 1000
    for text in (grouped, counted(1)):
        session.parse(text)
    assert read == [counted(1), grouped, grouped]


def test_what_cannot_be_asked_is_refused_each_time() -> None:
    session = Reader(AGES, "t")
    for _ in range(2):
        with pytest.raises(UnsupportedQuery, match="no attribute height"):
            session.parse("SELECT COUNT(*) FROM t WHERE height > 1")
    assert session.taken == 0


@given(st.lists(st.integers(-3, 3) | st.integers(0, 10**12), min_size=1, max_size=30))
def test_labels_are_numbered_in_the_order_in_which_they_are_first_seen(labels: list[int]) -> None:
    values, places, numbers = first_seen(np.array(labels))
    distinct = list(dict.fromkeys(labels))
    assert values.tolist() == distinct
    assert places.tolist() == [labels.index(value) for value in distinct]
    assert numbers.tolist() == [distinct.index(label) for label in labels]
