"""A statement that is filled into the shape of another means what sqlglot would have read."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_grammar import AGGREGATE, DOMAIN, nested

from laprasdp import Domain, Integers
from laprasdp.errors import LaprasError, UnsupportedQuery
from laprasdp.sql import parse, shapes
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.sql.shapes import SHORT, Shapes, take_apart
from laprasdp.sql.syntax import read

AGES = Domain(age=Integers(0, 999))
NUMBERS = ["0", "1", "007", "2.5", "0.10", "99999999999999999999999999999999999999999", "1000000000000"]
TEXTS = [
    *("''", "'it''s'", "''''''", "'new\r\nline'", "'back\\slash'", "'--'", "'/* '", "'\"'", "';'", "' '"),
    *("'ž😀e\u0301'", "'lapras 0'", "'NULL'", "'1 day'", "'2024-01-31'", "'\t\x07\ufeff'", "'a\u0085b'"),
]


def put_back(pattern: str, constants: list[str]) -> str:
    remaining = iter(constants)
    return "".join(next(remaining) if char in "\0\1" else char for char in pattern)


def outcome(reading: Callable[[str], object], text: str) -> object:
    """What is made of a text, or the words of the refusal."""
    try:
        return reading(text)
    except LaprasError as error:
        return repr(error)


def filled(known: Shapes, text: str) -> str:
    with known.read(text) as tree:
        return repr(tree)


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(shapes, "read", lambda text: texts.append(text) or read(text))
    return texts


@given(seed=st.integers(0, 10**9))
@settings(max_examples=150, deadline=None)
def test_what_is_filled_in_is_what_would_be_read(seed: int) -> None:
    rng = random.Random(seed)
    text = f"SELECT {AGGREGATE(rng)} FROM people WHERE {nested(rng, 2)} GROUP BY 1 ORDER BY 1"
    taken = take_apart(text)
    assert taken is not None, "the grammar has no comments"
    pattern, constants = taken
    assert put_back(pattern, constants) == text
    known = Shapes()
    for _ in range(2):
        assert filled(known, text) == repr(read(text))
    for _ in range(3):
        other = put_back(pattern, [rng.choice(TEXTS if one[0] == "'" else NUMBERS) for one in constants])
        assert outcome(partial(filled, known), other) == outcome(lambda one: repr(read(one)), other)


@given(seed=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_statements_of_one_shape_mean_what_each_means_alone(seed: int) -> None:
    rng = random.Random(seed)
    reader, text = Reader(DOMAIN, "people"), f"SELECT {AGGREGATE(rng)} FROM people WHERE {nested(rng, 1)}"
    pattern, constants = take_apart(text) or ("", [])
    reader.parse(text + " ")
    reader.parse(text)
    for _ in range(4):
        numbers = [one for one in constants if one[0] != "'"] + NUMBERS
        words = [one for one in constants if one[0] == "'"] + TEXTS
        other = put_back(pattern, [rng.choice(words if one[0] == "'" else numbers) for one in constants])
        found = outcome(reader.parse, other)
        alone = outcome(lambda text: parse(text, DOMAIN, "people"), other)
        if isinstance(found, Statement) and found.result is None:
            found = replace(found, column="count_star()")
        if not isinstance(alone, str):  # what is refused here may be answered as DuckDB reads it
            assert found == alone


def test_sqlglot_reads_a_shape_three_times(texts_read: list[str]) -> None:
    reader = Reader(AGES, "t")
    for low in range(100):
        assert reader.parse(f"SELECT COUNT(*) FROM t WHERE age >= {low}").queries[0].answer
    assert len(texts_read) == 3  # the first, the second, and the shape itself
    assert texts_read[2] == "SELECT COUNT(*) FROM t WHERE age >= 1000000000000"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE age > 1 -- {}",
        "SELECT COUNT(*) FROM t WHERE age > /* {} */ 1",
        "SELECT COUNT(*) FROM t WHERE age > {}e0",
        "SELECT COUNT(*) FROM t WHERE age > 1 OR " + " OR ".join(["age = {}"] * (SHORT // 8)),
    ],
)
def test_where_it_is_not_sure_every_text_is_read(text: str, texts_read: list[str]) -> None:
    reader = Reader(AGES, "t")
    for number in range(5):
        reader.parse(text.replace("{}", str(number)))
    assert len(texts_read) >= 5


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE age > INTERVAL '{} day'",
        "SELECT COUNT(*) FROM t WHERE age > TIMESTAMP '2024-01-0{} 00:00'",
        "SELECT COUNT(*) FROM t WHERE age > CAST({} AS DECIMAL(3, 2))",
        "SELECT COUNT(*) FROM t WHERE age = '{}' 'more'",
        "SELECT COUNT(*) FROM t LIMIT {}",
    ],
)
def test_a_tree_that_may_hang_on_its_constants_has_no_shape(text: str) -> None:
    pattern, constants = take_apart(text.replace("{}", "3")) or ("", [])
    assert constants
    assert shapes.shape_of(pattern, constants, read(text.replace("{}", "3"))) is None


@pytest.mark.parametrize(
    "odd", ["٣", "1²", "1_0", "0x1", "1.", ".5", "7'x'", "77'x'", "'x'7", '7"x"', "1e1", "$1"]
)
def test_what_only_looks_like_a_constant_is_read_as_ever(odd: str) -> None:
    reader, text = Reader(AGES, "t"), "SELECT COUNT(*) FROM t WHERE age >= {} OR age <> {}"
    for constant in ("1", "22", "333", "4.5"):
        reader.parse(text.format(constant, constant))
    for asked in (text.format(odd, 5), text.format(5, odd)):
        assert outcome(reader.parse, asked) == outcome(lambda one: parse(one, AGES, "t"), asked)


def test_shapes_that_came_long_ago_are_forgotten(texts_read: list[str]) -> None:
    known = Shapes(room=2)
    for name in "aabbccaa":
        with known.read(f"SELECT COUNT(*) FROM t WHERE {name} > 1"):
            pass
    assert len([text for text in texts_read if "a >" in text]) == 6


def test_a_constant_that_cannot_be_asked_is_refused_in_the_same_words(texts_read: list[str]) -> None:
    reader = Reader(AGES, "t")
    asked = "SELECT SUM(CASE WHEN age = 1 THEN {} ELSE 0 END) FROM t"
    for weight in (2, 3, 4):
        reader.parse(asked.format(weight))
    assert asked.format(4) not in texts_read  # its shape is known
    for _ in range(2):
        with pytest.raises(UnsupportedQuery, match=r"larger than 1,099,511,627,776 steps"):
            reader.parse(asked.format(2**40 + 1))
    assert reader.parse(asked.format(4)).queries == parse(asked.format(4), AGES, "t").queries


def test_threads_do_not_read_each_others_constants() -> None:
    reader = Reader(AGES, "t", room=0)

    def right(low: int) -> bool:
        text = f"SELECT COUNT(*) FROM t WHERE age >= {low}"
        return int((reader.parse(text).queries[0].labels[0] == 0).sum()) == low

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(1, 900)))
