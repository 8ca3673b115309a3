"""A file becomes statements: where they begin, where they end, and what one broken line may spoil."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laprasdp.sql import Fragment, split
from laprasdp.sql.statements import lex

CASES = {
    "one a line": ("SELECT 1\nSELECT 2\n", [(1, "SELECT 1"), (2, "SELECT 2")]),
    "semicolons": ("SELECT 1; SELECT 2;;\n;SELECT\n3;", [(1, "SELECT 1"), (1, "SELECT 2"), (2, "SELECT\n3")]),
    "blank line": ("SELECT 1\n \t\nFROM t\n", [(1, "SELECT 1"), (3, "FROM t")]),
    "several lines": ("\n\nSELECT 1\n  FROM t\n", [(3, "SELECT 1\n  FROM t")]),
    "lower case": ("select 1\n  select 2", [(1, "select 1"), (2, "select 2")]),
    "a word that begins so": ("SELECT 1,\nselected\n", [(1, "SELECT 1,\nselected")]),
    "parentheses": ("SELECT (\nSELECT 1)\nSELECT 2", [(1, "SELECT (\nSELECT 1)"), (3, "SELECT 2")]),
    "semicolon in quotes": (
        "SELECT ';', \";\", 'it''s;'; SELECT 2",
        [(1, "SELECT ';', \";\", 'it''s;'"), (1, "SELECT 2")],
    ),
    "comments outside": ("-- one; SELECT 0\n/* two\n;\n*/ SELECT 1 ; -- three\n", [(4, "SELECT 1")]),
    "comments inside": ("SELECT /* ; */ 1 -- it's\n+ 2", [(1, "SELECT /* ; */ 1 -- it's\n+ 2")]),
    "comments that trail": (
        "SELECT 1\n-- about the next; one\n\nSELECT 2",
        [(1, "SELECT 1"), (4, "SELECT 2")],
    ),
    "comment on the last line stays": ("SELECT 1 -- kept\n", [(1, "SELECT 1 -- kept")]),
    "nested comment": ("SELECT 1 /* a /* ; */\n\n ; */ + 1;", [(1, "SELECT 1 /* a /* ; */\n\n ; */ + 1")]),
    "comment over the end": (
        "SELECT 1 /* a\n\n b */ -- c\n-- d\nSELECT 2",
        [(1, "SELECT 1 /* a\n\n b */"), (5, "SELECT 2")],
    ),
    "dashes in a block comment": ("/* -- */ SELECT 1", [(1, "SELECT 1")]),
    "quotes in comments": ("-- don't\nSELECT 1 /* ' */", [(2, "SELECT 1 /* ' */")]),
    "windows": (
        "\ufeffSELECT 1\r\n  FROM t\r\n\r\nSELECT 2\r\n",
        [(1, "SELECT 1\n  FROM t"), (4, "SELECT 2")],
    ),
    "set operation": ("SELECT 1 UNION ALL\nSELECT 2", [(1, "SELECT 1 UNION ALL\nSELECT 2")]),
    "insert": ("INSERT INTO x\nSELECT 1;\nSELECT 2", [(1, "INSERT INTO x\nSELECT 1"), (3, "SELECT 2")]),
    "with": ("WITH x AS (SELECT 1)\nSELECT 2", [(1, "WITH x AS (SELECT 1)\nSELECT 2")]),
    "other words": ("hello\nSELECT 1", [(1, "hello"), (2, "SELECT 1")]),
    "minus and slash": ("SELECT 4 - 1 / 2; SELECT 5", [(1, "SELECT 4 - 1 / 2"), (1, "SELECT 5")]),
    "nothing": ("\n  \n-- only a comment\n;;\n", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_statements_and_lines(text, expected):
    assert [(f.line, f.text, f.error) for f in split(text.splitlines(keepends=True))] == [
        (line, statement, None) for line, statement in expected
    ]
    assert list(split(text.split("\n"))) == list(split([text])) == [Fragment(*pair) for pair in expected]


def test_an_open_quote_spoils_its_line_only():
    lines = ["SELECT 1", "FROM t WHERE a = 'x; SELECT 2", "SELECT 3"]
    first, second = split(lines)
    assert first == Fragment(
        1, "SELECT 1\nFROM t WHERE a = 'x; SELECT 2", "a quote is not closed on its line"
    )
    assert second == Fragment(3, "SELECT 3")
    first, second = split(['SELECT "a', 'SELECT 2"'])
    assert first.error
    assert second.line == 2
    assert second.error


def test_an_open_comment_is_told_with_its_line():
    assert list(split(["SELECT 1;", "SELECT 2", "/* never", "", "SELECT 3"])) == [
        Fragment(1, "SELECT 1"),
        Fragment(3, "SELECT 2", "the comment that begins on line 3 is not closed"),
    ]
    (only,) = split(["  ", "/* never /* */"])
    assert only.line == 2
    assert only.error


def test_statements_come_as_soon_as_they_are_complete():
    read: list[str] = []

    def lines():
        for line in ["SELECT 1;", "SELECT 2", "SELECT 3", "", "SELECT 4"]:
            read.append(line)
            yield line

    fragments = split(lines())
    assert next(fragments).text == "SELECT 1"
    assert len(read) == 1
    assert next(fragments).text == "SELECT 2"
    assert len(read) == 3
    assert next(fragments).text == "SELECT 3"
    assert len(read) == 4


SCRAPS = st.lists(
    st.sampled_from(
        ["SELECT ", "'", '"', "''", ";", "--", "/*", "*/", "\n", " ", "x", "(", ")", "\n\n", "-", "/", "\r"]
    )
).map("".join)


@settings(max_examples=500, deadline=None)
@given(SCRAPS, st.integers(0, 2))
def test_pieces_are_the_text(text, depth):
    assert "".join(piece.text for piece in lex(text, depth)) == text


@settings(max_examples=500, deadline=None)
@given(SCRAPS)
def test_any_text_splits_into_fragments_that_split_no_further(text):
    for fragment in split(text.split("\n")):
        assert fragment.text.strip() == fragment.text
        assert fragment.text or fragment.error
        assert 1 <= fragment.line <= text.count("\n") + 1
        if fragment.error is None and "\n" not in fragment.text:
            assert [(f.text, f.error) for f in split([fragment.text])] == [(fragment.text, None)]
