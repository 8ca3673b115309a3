"""Every text up to the stated limits is read in bounded work; a longer one is refused before it is parsed."""

from __future__ import annotations

import numpy as np
import pytest

from laprasdp.errors import LaprasError, UnsupportedQuery
from laprasdp.limits import MAX_DERIVED_TOKENS, MAX_POINTS, MAX_TABLES, MAX_TOKENS
from laprasdp.queries.attribute import Categories, Integers
from laprasdp.queries.domain import Domain
from laprasdp.scratch import Scratch
from laprasdp.sql import parse, syntax, truth
from laprasdp.sql.reader import Reader

DOMAIN = Domain(c0=Integers(0, 9), c=Categories(["a", "b"]), b=Integers(0, 99_999))
START = "SELECT COUNT(*) FROM t WHERE "
LONG = {
    "IN": START + "c0 IN (" + ",".join(["1"] * 45_000) + ")",
    "IN of texts": START + "c IN (" + ",".join(["'a'"] * 20_000) + ")",
    "OR": START + " OR ".join(["c0 = 1"] * 3_000),
    "BETWEEN": START + " AND ".join(["c0 BETWEEN 1 AND 2"] * 4_000),
    "FROM": "SELECT COUNT(*) FROM " + ",".join(["t"] * 45_000),
    "sum": START + "+".join(["c0"] * 30_000) + " > 1",
    "quotient": START + "c0 = 1" + "/1" * 40_000,
    "minus": START + "c0 = " + "- " * 40_000 + "1",
    "NOT": START + "NOT " * 20_000 + "c0 = 1",
    "dots": START + "c0" + ".a" * 40_000 + " = 1",
    "texts": START + "c = " + "'' " * 30_000,
    "CASE": "SELECT SUM(CASE " + "WHEN c0=1 THEN 1 " * 5_000 + "END) FROM t",
    "GROUP BY": "SELECT COUNT(*) FROM t GROUP BY " + ",".join(["c0"] * 30_000),
    "SELECT": "SELECT " + ",".join(["COUNT(*)"] * 9_000) + " FROM t",
    "UNION": " UNION ".join(["SELECT COUNT(*) FROM t"] * 3_500),
    "semicolons": "SELECT COUNT(*) FROM t" + ";" * 90_000,
    "words": "SELECT COUNT(*) FROM t " + "a " * 45_000,
    "casts": START + "c0" + "::INT" * 15_000 + " = 1",
    "comparisons": START + "c0" + " = 1" * 20_000,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in LONG.items()])
def test_a_long_text_is_refused_before_it_is_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "parse", None)
    with pytest.raises(UnsupportedQuery, match=r"words and signs; the limit is 10,000: ask in parts"):
        parse(text[: syntax.MAX_LENGTH], DOMAIN, "t")


def test_a_statement_as_long_as_the_limit_is_answered() -> None:
    items = (MAX_TOKENS - 12) // 2
    statement = parse(START + "c0 IN (" + ",".join(["1"] * items) + ")", DOMAIN, "t")
    assert statement.queries == parse(START + "c0 = 1", DOMAIN, "t").queries
    with pytest.raises(UnsupportedQuery, match="the limit is 10,000"):
        parse(START + "c0 IN (" + ",".join(["1"] * (items + 3)) + ")", DOMAIN, "t")


def test_a_long_literal_or_comment_is_one_word() -> None:
    assert parse(START + "c0 = 1 " + "/**/" * 20_000, DOMAIN, "t").queries
    assert parse(START + "c LIKE '" + "%" * 90_000 + "'", DOMAIN, "t").queries
    assert parse(START + "c0 < " + "9" * 300, DOMAIN, "t").queries
    for condition in ("c = '" + "x" * 90_000 + "'", "c0 = " + "9" * 90_000):
        with pytest.raises(LaprasError):
            parse(START + condition, DOMAIN, "t")


def test_a_pattern_longer_than_every_text_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laprasdp.queries.attribute.categories.re.compile", None)
    (query,) = parse(START + "c LIKE '" + "%a_" * 30_000 + "'", DOMAIN, "t").queries
    assert query.is_zero


def test_an_in_list_of_many_visits_the_levels_once() -> None:
    wide = Domain(b=Integers(0, 999_999))
    (query,) = parse(START + "b IN (" + ",".join(map(str, range(0, 2_000, 2))) + ")", wide, "t").queries
    assert len(set(query.labels[0][:2_000:2])) == len(set(query.labels[0][2_000:])) == 1
    with pytest.raises(UnsupportedQuery, match="too many conditions on the many levels of b"):
        parse(START + " OR ".join(f"b = {n}" for n in range(400)), wide, "t")


def test_conditions_on_one_attribute_are_sorted_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty conditions on many levels need three sortings of the levels at most, not sixty."""
    sorted_out: list[int] = []
    seen = truth.first_seen
    monkeypatch.setattr(truth, "first_seen", lambda array: sorted_out.append(len(array)) or seen(array))
    text = START + " OR ".join(f"(b < {n * 9 + 9} AND c0 = {n % 10})" for n in range(60))
    (query,) = parse(text, DOMAIN, "t").queries
    large = [size for size in sorted_out if size == 100_000]
    assert len(large) <= 3
    alone = [parse(START + f"b < {n * 9 + 9} AND c0 = {n % 10}", DOMAIN, "t").queries[0] for n in range(60)]
    rng = np.random.default_rng(0)
    rows = {0: rng.integers(0, 10, 500), 2: rng.integers(0, 600, 500)}
    assert answer(query, rows) == np.logical_or.reduce([hits(one, rows) for one in alone]).sum()


def hits(query, rows):
    places = tuple(labels[rows[axis]] for axis, labels in zip(query.axes, query.labels, strict=True))
    return query.weights[places] > 0


def answer(query, rows):
    return hits(query, rows).sum()


def test_the_nearest_of_very_many_names_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laprasdp.queries.attribute.categories.difflib", None)
    many = Domain(c=Categories([f"x{n}" for n in range(5_000)]))
    with pytest.raises(UnsupportedQuery, match=r"'x9999' is not a declared value$"):
        parse(START + "c = 'x9999'", many, "t")


def doubled(times: int) -> str:
    """A table of released counts beside itself, that beside itself, and so on."""
    tables = ["a0 AS (SELECT c0, COUNT(*) AS n FROM t GROUP BY c0)"]
    tables += [f"a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(times)]
    return f"WITH {', '.join(tables)} SELECT SUM(n) FROM a{times}"


DERIVED = {
    "OR": (LONG["OR"], f"the limit is {MAX_TOKENS:,}"),
    "sums": (
        START + " OR ".join(f"c0 + 1 = {i}" for i in range(200)),
        f"the limit is {MAX_DERIVED_TOKENS:,}",
    ),
    "aggregates": (f"SELECT {', '.join(f'SUM(c0 + {i})' for i in range(200))} FROM t", "words and signs"),
    "tables": (doubled(20), f"the limit is {MAX_TABLES:,}"),
    "levels": (START + " OR ".join(f"b + 1 = {i}" for i in range(6)), f"the limit is {MAX_POINTS:,}"),
    "sums of levels": (f"SELECT {', '.join(f'SUM(b + {i})' for i in range(6))} FROM t", f"{MAX_POINTS:,}"),
    "groups of levels": ("SELECT b // 10 AS g, COUNT(*) FROM t GROUP BY g", "too much work"),
}


@pytest.mark.parametrize(("text", "said"), DERIVED.values(), ids=DERIVED)
def test_what_would_take_long_to_derive_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnsupportedQuery, match=said):
        Reader(DOMAIN, "t").parse(text)


def test_each_statement_has_the_whole_limit_of_levels() -> None:
    reader = Reader(DOMAIN, "t")
    for n in range(8):
        assert reader.parse(START + f"b + {n} = 7").queries


def test_tables_up_to_the_limit_are_read() -> None:
    assert Reader(DOMAIN, "t").parse(doubled(6)).queries
    with pytest.raises(UnsupportedQuery, match="reads 128 tables"):
        Reader(DOMAIN, "t").parse(doubled(7))


def grown(times: int, each: int, text: str = "c") -> str:
    """An expression whose text is so many times longer at each step."""
    for _ in range(times):
        text = f"replace({text}, 'a', '{'a' * each}')"
    return f"length({text}) > 3"


DOUBLED = " ".join(f"FROM (SELECT c || c AS c, n {'' if i else 'FROM g'}" for i in reversed(range(12)))
LONGER = {
    "levels": START + grown(3, 1_000),
    "many": START + grown(20, 100),
    "constants": START + grown(4, 300, "'a'"),
    "keys": f"SELECT {grown(4, 300)}, n FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c) q",
    "kept groups": f"SELECT c, COUNT(*) FROM t GROUP BY c HAVING {grown(4, 300)}",
    "patterns": START
    + "regexp_replace(regexp_replace(c, '', '"
    + "a" * 99
    + "'), '', '"
    + "b" * 99
    + "') = 'a'",
    "columns": START + "replace(c, 'a', c) = 'a'",
    "doubled": "WITH g AS (SELECT c, COUNT(*) AS n FROM t GROUP BY c) SELECT c, n " + DOUBLED + ")" * 12,
}


@pytest.mark.parametrize("text", LONGER.values(), ids=LONGER)
def test_texts_that_grow_without_end_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is planned: DuckDB works out what is constant when it plans."""
    monkeypatch.setattr(Scratch, "describe", None)
    with pytest.raises(UnsupportedQuery, match="too long texts"):
        Reader(DOMAIN, "t").parse(text)


def test_texts_that_grow_a_little_are_worked_out() -> None:
    assert Reader(DOMAIN, "t").parse(START + grown(1, 20)).queries
    assert Reader(DOMAIN, "t").parse(START + "replace(replace(c, 'ab', 'b'), 'a', '') = 'b'").queries
    assert Reader(DOMAIN, "t").parse(START + "concat(c, '-', upper(c), c0) || '!' = 'a-A3!'").queries


def test_an_expression_has_a_limit_of_characters_on_all_levels() -> None:
    with pytest.raises(UnsupportedQuery, match="too long texts"):
        Reader(DOMAIN, "t").parse(START + "concat(" + ", ".join(["b"] * 60) + ") = '1'")


def test_what_is_refused_does_not_hang_on_what_was_asked_before() -> None:
    reader, text = Reader(DOMAIN, "t"), START + "b % 2 = 0 OR b % 3 = 0"
    reader.parse(START + "b % 2 = 0")
    reader.parse(START + "b % 3 = 0")
    with pytest.raises(UnsupportedQuery, match=f"{MAX_POINTS:,}"):
        reader.parse(text)
