"""Where one statement of a run file ends and the next begins, and which characters are code at all.

A statement ends at a semicolon, at a blank line, at a line that begins with SELECT, or with the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["code", "quote", "comment", "open quote", "open comment"]


class Piece(NamedTuple):
    """A run of characters of one kind, and how many block comments are open after it."""

    kind: Kind
    text: str
    depth: int = 0


@dataclass(frozen=True)
class Fragment:
    """
    One statement of a file, not yet parsed.

    Attributes
    ----------
    line : int
        Where its first word stands, from 1; for a comment that is not closed, where that begins.
    text : str
        Without the semicolon.
    error : str or None
        Why it cannot be a statement, in one line.
    """

    line: int
    text: str
    error: str | None = None


_PIECE = re.compile(
    r"""(?P<line>--[^\n\r]*)|(?P<block>/\*)|(?P<quote>'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+")"""
    r"""|(?P<open>['"])|[^'"/-]++|.""",
    re.DOTALL,
)
_FENCE = re.compile(r"/\*|\*/")
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
# Statements that go on with a SELECT on a line of its own.
_GOES_ON = re.compile(
    r"\s*(?:WITH|INSERT|REPLACE|MERGE|CREATE|COPY|EXPLAIN|DESCRIBE|SUMMARIZE|PREPARE|FROM)\b"
    r"|.*\b(?:UNION|INTERSECT|EXCEPT|ALL|NAME|DISTINCT)\s*$",
    re.IGNORECASE | re.DOTALL,
)


def lex(text: str, depth: int = 0) -> Iterator[Piece]:
    """
    Tell code from quotes and comments, as SQL does: doubled quotes, nested block comments.

    Parameters
    ----------
    text : str
    depth : int
        Block comments that are open at its start.

    Yields
    ------
    Piece
        Together they are `text`.  A quote that never ends is an "open quote" up to the end of `text`.
    """
    place = 0
    while place < len(text):
        if depth:
            start = place
            while depth and (fence := _FENCE.search(text, place)):
                depth += 1 if fence.group() == "/*" else -1
                place = fence.end()
            if depth:
                yield Piece("open comment", text[start:], depth)
                return
            yield Piece("comment", text[start:place])
            continue
        match = _PIECE.match(text, place)
        assert match is not None
        if match["block"]:
            end = _end_of_block(text, match.end())
            if end is None:
                yield Piece("open comment", text[place:], 1 + _balance(text[match.end() :]))
                return
            yield Piece("comment", text[place:end])
            place = end
            continue
        if match["open"]:
            yield Piece("open quote", text[place:])
            return
        yield Piece("comment" if match["line"] else "quote" if match["quote"] else "code", match.group())
        place = match.end()


def split(lines: Iterable[str]) -> Iterator[Fragment]:
    """
    The statements of a file or a pipe, each as soon as it is complete.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends.

    Yields
    ------
    Fragment
        Comments outside statements are dropped.  A quote that runs over the end of its line spoils the
        statement up to there, and only that.

    Examples
    --------
    >>> [(f.line, f.text) for f in split(["SELECT 1", "-- two", "SELECT 2; SELECT", "3"])]
    [(1, 'SELECT 1'), (3, 'SELECT 2'), (3, 'SELECT\\n3')]
    """
    statement = _Statement()
    depth, opened, number = 0, 0, 0
    for chunk in lines:
        for line in chunk.removesuffix("\n").split("\n"):
            number += 1
            line = line.removesuffix("\r")
            if number == 1:
                line = line.removeprefix("\ufeff")
            if not depth and (not line.strip() or statement.ends_before(line)):
                yield from statement.close()
            for piece in lex(line, depth):
                goes_on = depth > 0
                if piece.kind == "open comment" and not goes_on:
                    opened = number
                depth = piece.depth
                if piece.kind == "open quote":
                    statement.add(piece.text, number)
                    yield from statement.close("a quote is not closed on its line")
                elif piece.kind == "code":
                    *whole, rest = piece.text.split(";")
                    for part in whole:
                        statement.add(part, number)
                        yield from statement.close()
                    statement.add(rest, number)
                elif piece.kind == "quote":
                    statement.add(piece.text, number)
                else:
                    statement.comment(piece.text, goes_on=goes_on)
            statement.end_line()
    if depth:
        text = statement.text()
        yield Fragment(opened, text, f"the comment that begins on line {opened} is not closed")
    else:
        yield from statement.close()


class _Statement:
    """The statement that is being read; comments after its last word wait until another word follows."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.line = 0
        self.parts: list[str] = []
        self.code: list[str] = []
        self.waiting: list[str] = []
        self.spoken = False  # whether this line has said anything but comments
        self.kept = False  # whether the comment that is open belongs to what was said
        self.parentheses = 0

    def comment(self, text: str, *, goes_on: bool = False) -> None:
        """A comment, or a further line of one; what began beside a word of the statement stays with it."""
        if not self.line:
            return
        if not goes_on:
            self.kept = self.spoken
        if self.kept:
            self.parts += [*self.waiting, text]
            self.waiting = []
        else:
            self.waiting.append(text)

    def add(self, text: str, number: int) -> None:
        if not text.strip():
            if self.line:
                (self.parts if self.spoken else self.waiting).append(text)
            return
        self.line = self.line or number
        self.parts += [*self.waiting, text]
        self.waiting = []
        self.spoken = True
        if text[0] in "'\"":
            self.code.append("''")
        else:
            self.code.append(text)
            self.parentheses = max(0, self.parentheses + text.count("(") - text.count(")"))

    def end_line(self) -> None:
        if self.line:
            self.waiting.append("\n")
            self.code.append("\n")
        self.spoken = False

    def ends_before(self, line: str) -> bool:
        if not self.line or self.parentheses or not _SELECT.match(line):
            return False
        return not _GOES_ON.match("".join(self.code))

    def text(self) -> str:
        return "".join(self.parts).strip()

    def close(self, error: str | None = None) -> Iterator[Fragment]:
        if self.line:
            yield Fragment(self.line, self.text(), error)
        self.clear()


def _end_of_block(text: str, place: int) -> int | None:
    depth = 1
    for fence in _FENCE.finditer(text, place):
        depth += 1 if fence.group() == "/*" else -1
        if not depth:
            return fence.end()
    return None


def _balance(text: str) -> int:
    return sum(1 if fence == "/*" else -1 for fence in _FENCE.findall(text))
