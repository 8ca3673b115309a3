"""Operations that engines spell differently: a plan names them by words, and each engine spells the words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

Spelling = Mapping[str, Callable[..., exp.Expr]]
"""From each of `WORDS` to what an engine makes of its arguments."""
WORDS = (
    "read",
    "text",
    "bytes",
    "finite",
    "whole",
    "quotient",
    "matches",
    "moment",
    "digest",
    "hash",
    "number",
)
"""
All words of a plan.  None of them fails, whatever the value: what cannot be said is NULL.

=========================  =================================================================================
read(value, type)          the value as another type
text(value)                how the engine writes the value, to be compared by its bytes in UTF-8
bytes(text)                its bytes in UTF-8, which compare whatever the collation
finite(value)              whether a number is neither NaN nor infinite, or a date or moment is one
whole(number)              a whole number, which is the number itself if it has no fraction
quotient(number, by)       of whole numbers, none below 0, how often the second goes into the first
matches(text, pattern)     whether a pattern of literals, classes, groups, counts and choices fits all of it
moment(text, format)       the moment that a text spells in the format, as `Dialect.date_format` says
digest(part, part, …)      md5 of the parts with ``|`` between, in 32 small hexadecimal digits, in byte order
hash(part, part, …)        md5 of the parts with ``|`` between, as a number whose lowest byte is the first
number(text)               a whole number of 63 bits or more that follows from the text, by some hash
=========================  =================================================================================
"""


def word(name: str, *arguments: exp.Expr) -> exp.Expr:
    """One of `WORDS`, said of copies of the arguments."""
    assert name in WORDS
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def spelled(said: exp.Expr, words: Spelling, names: Mapping[str, exp.Expr] | None = None) -> exp.Expr:
    """
    A copy of an expression for one engine.

    Parameters
    ----------
    said : expression
        Over words and neutral names.
    words : mapping
        From each of `WORDS` to what the engine makes of its arguments.
    names : mapping, optional
        What stands for each neutral name.

    Examples
    --------
    >>> doubled = {"whole": lambda number: exp.Floor(this=number)}
    >>> spelled(word("whole", exp.column("value")), doubled, {"value": exp.column("x")}).sql()
    'FLOOR(x)'
    """
    put = names or {}

    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous):
            return words[node.name](*(spelled(argument, words, put) for argument in node.expressions))
        if isinstance(node, exp.Column) and node.name in put:
            return put[node.name].copy()
        return node

    return said.transform(one)
