"""Accounts for every word and sign of a statement: sqlglot drops some in silence, and DuckDB does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from sqlglot import exp

# All words that a statement may have beside its names.
_WORDS = frozenset(
    (
        *("SELECT", "ALL", "COUNT", "SUM", "DISTINCT", "FILTER", "CASE", "WHEN", "THEN", "ELSE", "END", "IF"),
        *("FROM", "AS", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "ISNULL"),
        *(
            "NOTNULL",
            "NULL",
            "TRUE",
            "FALSE",
            "CAST",
            "DATE",
            "DOUBLE",
            "TIMESTAMP",
            "GROUP",
            "ORDER",
            "BY",
            "ASC",
        ),
        *("DESC", "NULLS", "FIRST", "LAST"),
    )
)
_TOKEN = re.compile(r"''|\"\"|\w+|[^\w\s]")
_POINT = re.compile(r"\.\s+\d|(?<![\w.])[\d_]+\s+\.")
_PLUS = re.compile(r"\+(?!\s*\.?\d)")


def tokens(plain: str) -> list[str]:
    """The words, constants and signs of a text whose quotes are emptied."""
    return _TOKEN.findall(plain)


def unaccounted(tree: exp.Select, words: Sequence[str], plain: str, quoted: set[str]) -> str | None:
    """
    What DuckDB would read otherwise than the tree that sqlglot made of a statement, if anything.

    Parameters
    ----------
    tree : exp.Select
    words : sequence of str
        All `tokens` of the text.
    plain : str
        The text without comments, its quotes emptied.
    quoted : set of str
        The names in double quotes.

    Returns
    -------
    str or None
        A refusal.  It holds for statements that can be asked otherwise: of others, more can be said.
    """
    names: dict[str, exp.Identifier] = {}
    for identifier in tree.find_all(exp.Identifier):
        if not identifier.quoted:
            names[identifier.name] = identifier
        elif identifier.name not in quoted:
            return "a text as alias is not supported; names take double quotes"
    for place, word in enumerate(words):
        if not (word[0].isalpha() or word[0] == "_"):
            continue
        before = words[place - 1].upper() if place else ""
        if word in names:
            kind = _keywords().get(word.lower(), "")
            table = isinstance(names[word].parent, exp.TableAlias)
            if (before != "AS" or table) and (before == ")" if kind == "unreserved" else kind):
                return f"{word} is a word of SQL; as a name, write it in double quotes"
        elif word.upper() not in _WORDS or (before, word.upper()) == ("SELECT", "AS"):
            return f"{word} is not supported here; leave it out"
    if _PLUS.search(plain):
        return "a plus sign before anything but a number is not supported; leave it out"
    if _POINT.search(plain):
        return "a space beside the point of a number is not supported; leave it out"
    nodes = list(tree.walk())
    if words.count(",") != sum(map(_commas, nodes)):
        return "a comma is too many"
    casts = sum(word.upper() == "CAST" for word in words)
    if words.count("(") != casts + sum(map(_opens, nodes)):
        return "an empty pair of parentheses is not supported; leave it out"
    return None


def _opens(node: exp.Expr) -> bool:
    """Whether a node begins with a parenthesis of its own."""
    if isinstance(node, exp.If):
        return not isinstance(node.parent, exp.Case)
    return isinstance(node, exp.Paren | exp.In | exp.Count | exp.Sum | exp.Filter)


def _commas(node: exp.Expr) -> int:
    if isinstance(node, exp.If):
        return 0 if isinstance(node.parent, exp.Case) else 2
    if isinstance(node, exp.Select | exp.In | exp.Group | exp.Order):
        return max(len(node.expressions) - 1, 0)
    return 0


@cache
def _keywords() -> dict[str, str]:
    """DuckDB's words, and whether they can be names as they are."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        return dict(
            connection.execute("SELECT keyword_name, keyword_category FROM duckdb_keywords()").fetchall()
        )
