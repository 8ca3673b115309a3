"""Drawn statements of what analysts write: DuckDB's result on exact counts, or a refusal."""

from __future__ import annotations

import os
from collections.abc import Iterator

import duckdb
import pytest
from exact import Beside, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_table import small_table
from sqlglot import exp, parse_one

from laprasdp.errors import LaprasError

EXAMPLES = int(os.environ.get("LAPRAS_DRAWN", "150"))
ASKED = {"answered": 0, "refused": 0}


@pytest.fixture(scope="module")
def table() -> Beside:
    return small_table()


def joined(*parts: st.SearchStrategy[str], form: str) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: form.format(*found))


COLUMN = st.sampled_from(["a", "n", "w // 10", "day(d)"])
CONSTANT = st.sampled_from(["0", "1", "2", "-1", "3", "NULL", "1.5", "10"])
NUMBER = st.recursive(
    COLUMN | CONSTANT,
    lambda inner: st.one_of(
        joined(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, form="({} {} {})"),
        joined(st.sampled_from(["abs", "floor", "sign", "-", "round"]), inner, form="{}({})"),
        joined(st.sampled_from(["coalesce", "greatest", "least", "nullif"]), inner, inner, form="{}({}, {})"),
        joined(inner, st.sampled_from(["SMALLINT", "DOUBLE", "DECIMAL(9,2)"]), form="CAST({} AS {})"),
        joined(st.sampled_from(["f", "s = 'x'", "n IS NULL", "a > n"]), inner, inner,
               form="CASE WHEN {} THEN {} ELSE {} END"),
    ),
    max_leaves=3,
)  # fmt: skip
TEXT = st.sampled_from(["s", "upper(s)", "substr(s, 1, 1)", "s || 'a'", "coalesce(nullif(s, 'x'), 'none')"])
ATOM = st.one_of(
    joined(NUMBER, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBER, form="{} {} {}"),
    joined(NUMBER, NUMBER, NUMBER, form="{} BETWEEN {} AND {}"),
    joined(NUMBER, CONSTANT, CONSTANT, form="{} IN ({}, {})"),
    joined(NUMBER, st.sampled_from(["IS NULL", "IS NOT NULL", "IS DISTINCT FROM a"]), form="({}) {}"),
    joined(TEXT, st.sampled_from(["LIKE '%e%'", "ILIKE 'Y%'", "= 'x'", "IN ('X')", "> 'Z'"]), form="{} {}"),
    joined(st.sampled_from(["d", "d + INTERVAL 1 DAY", "date_trunc('month', d)"]),
           st.sampled_from(["<", ">=", "="]),
           st.sampled_from(["DATE '2024-02-01'", "'2024-02-10'", "DATE '2024-02-01' + INTERVAL 1 WEEK"]),
           form="{} {} {}"),
    st.sampled_from(["f", "NOT f", "f = (a > 2)", "f IS TRUE"]),
)  # fmt: skip
CONDITION = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        joined(inner, st.sampled_from(["AND", "OR"]), inner, form="({} {} {})"),
        joined(inner, form="NOT ({})"),
    ),
    max_leaves=3,
)
KEY = st.one_of(
    st.sampled_from(["s", "f", "n", "a % 3", "date_trunc('month', d)", "dayname(d)", "a > n"]),
    joined(NUMBER, form="({}) > 1"),
    joined(CONDITION, form="CASE WHEN {} THEN 'yes' ELSE 'no' END"),
    TEXT,
)
AGGREGATE = st.one_of(
    joined(st.sampled_from(["COUNT", "SUM", "AVG", "SUM", "VAR_POP"]), NUMBER, form="{}({})"),
    joined(CONDITION, form="COUNT_IF({})"),
    joined(CONDITION, form="COUNT(*) FILTER (WHERE {})"),
    joined(CONDITION, form="SUM(CASE WHEN {} THEN 1 ELSE 0 END)"),
    joined(st.sampled_from(["0.5", "0.1", "0.9"]), form="QUANTILE_DISC(a, {})"),
)
VALUE = st.one_of(
    AGGREGATE,
    joined(AGGREGATE, form="100.0 * {} / COUNT(*)"),
    joined(AGGREGATE, AGGREGATE, form="{} - {}"),
    joined(AGGREGATE, form="ROUND({}, 2)"),
    joined(AGGREGATE, form="coalesce({}, 0) * 2"),
)


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, bool]:
    """A statement, and whether its order is the whole order of its rows."""
    keys = draw(st.lists(KEY, max_size=2, unique=True))
    values = draw(st.lists(VALUE, min_size=1, max_size=2))
    items = [f"{key} AS k{place}" for place, key in enumerate(keys)]
    items += ["COUNT(*) AS c", *(f"{value} AS v{place}" for place, value in enumerate(values))]
    source = draw(
        st.sampled_from(["t", "t", "(SELECT * FROM t WHERE f OR a > 0) t", "t JOIN look ON s = code"])
    )
    text = f"SELECT {', '.join(items)} FROM {source}"
    if draw(st.booleans()):
        text += f" WHERE {draw(CONDITION)}"
    if keys:
        text += " GROUP BY " + ", ".join(f"k{place}" for place in range(len(keys)))
    text += " HAVING COUNT(*) > 0"
    ordered = bool(keys) and draw(st.booleans())
    if ordered:
        text += " ORDER BY " + ", ".join(
            f"{place + 1} {draw(st.sampled_from(['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']))}"
            for place in range(len(keys))
        )
        text += draw(st.sampled_from(["", " LIMIT 2", " LIMIT 3 OFFSET 1"]))
    return text, ordered


def with_zeros(text: str) -> str:
    """The same statement with 0 for a sum or COUNT_IF over no value, as it is here; DuckDB says NULL."""

    def zero(node: exp.Expr) -> exp.Expr:
        zeros = [exp.Literal.number(0)]
        added = isinstance(node, exp.Sum | exp.CountIf)
        return exp.Coalesce(this=node.copy(), expressions=zeros) if added else node

    return parse_one(text, dialect="duckdb").transform(zero).sql("duckdb")


@pytest.fixture(scope="module", autouse=True)
def most_are_answered() -> Iterator[None]:
    """Whatever was drawn here: most of it is answered."""
    yield
    assert ASKED["answered"] >= ASKED["refused"], ASKED


@given(drawn=statements())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_drawn_statement_is_duckdbs_or_refused(drawn: tuple[str, bool], table: Beside) -> None:
    text, ordered = drawn
    try:
        ours = table.ours(text)
    except LaprasError:
        ASKED["refused"] += 1
        return
    ASKED["answered"] += 1
    try:
        theirs = table.theirs(with_zeros(text))
    except duckdb.Error as error:
        raise AssertionError(f"DuckDB fails, and we answer: {text}: {error}") from None
    if not ordered:
        ours, theirs = (sorted(rows, key=lambda row: [repr(one) for one in row]) for rows in (ours, theirs))
    assert len(ours) == len(theirs), (text, ours, theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert all(map(same, mine, other)), (text, mine, other)
