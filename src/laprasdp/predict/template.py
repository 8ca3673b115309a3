"""A statement as a template with its literals taken out: cheap to find, exact to put back."""

from __future__ import annotations

import re
from typing import NamedTuple

HOLE = "\0"
_LITERAL = re.compile(
    r"""('[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+"|(?<![\w.\-])-?\d{1,15}(?:\.\d{1,12})?(?![\w.]))"""
)
_SPACE = re.compile(r"\s+")


class Key(NamedTuple):
    """
    A statement: a template, and what stands in its holes.

    Attributes
    ----------
    shape : str
        The text with one `HOLE` for each literal; white space is single, no semicolon ends it.
    literals : tuple of str
        As SQL spells them, signs and quotes included.
    """

    shape: str
    literals: tuple[str, ...]

    @property
    def text(self) -> str:
        """The statement."""
        parts = self.shape.split(HOLE)
        return "".join(x for pair in zip(parts, (*self.literals, ""), strict=True) for x in pair)


class Splitter:
    """
    Splits statements, and remembers the shapes: a log has many statements and few templates.

    Examples
    --------
    >>> key = Splitter().split("SELECT COUNT(*) FROM t WHERE a >= -3  AND b = 'x';")
    >>> key.literals, key.text
    (('-3', "'x'"), "SELECT COUNT(*) FROM t WHERE a >= -3 AND b = 'x'")
    """

    def __init__(self) -> None:
        self._shapes: dict[str, str | None] = {}
        self._literals: dict[str, str] = {}

    def split(self, text: str) -> Key:
        """
        The template and literals of a statement.

        Names in double quotes, numbers with an exponent and numbers inside names stay in the template.  A
        text with a comment is a template of its own, for only the parser knows where a comment ends.
        """
        parts = _LITERAL.split(text)
        if '"' in text:
            parts = _without_names(parts)
        raw = HOLE.join(parts[::2])
        if raw not in self._shapes:
            self._shapes[raw] = None if _odd(text, raw) else _SPACE.sub(" ", raw).strip(" ;")
        shape = self._shapes[raw]
        if shape is None or HOLE in text:
            return Key(text.replace(HOLE, "\ufffd"), ())
        keep = self._literals.setdefault
        return Key(shape, tuple([keep(part, part) for part in parts[1::2]]))


def _odd(text: str, raw: str) -> bool:
    return HOLE in text or "--" in raw or "/*" in raw


def _without_names(parts: list[str]) -> list[str]:
    """Names in double quotes become code again."""
    kept = [parts[0]]
    for literal, code in zip(parts[1::2], parts[2::2], strict=True):
        if literal.startswith('"'):
            kept[-1] += literal + code
        else:
            kept += [literal, code]
    return kept
