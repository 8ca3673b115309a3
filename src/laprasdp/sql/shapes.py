"""Statements that differ in their constants alone: sqlglot reads one of them, the others are filled in."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import exp

from laprasdp.errors import LaprasError
from laprasdp.sql.syntax import Node, read

ROOM = 64
"""Shapes that are remembered."""
SHORT = 1_000
"""Characters of a statement whose shape is remembered; its tree takes up to 500 times as many bytes."""

_NUMBER, _TEXT = "\0", "\1"
_CONSTANT = re.compile(
    r"""'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+"|(?<![\w.])[0-9]++(?:\.[0-9]++)?(?![\w.'"])"""
)
_OPEN = re.compile(r"'|--|/\*")
_PLAIN = frozenset(
    (
        *(exp.Select, exp.From, exp.Table, exp.Where, exp.Group, exp.Order, exp.Ordered, exp.Filter),
        *(exp.Count, exp.Sum, exp.Star, exp.Case, exp.If, exp.Alias, exp.TableAlias, exp.Column),
        *(exp.Identifier, exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT),
        *(exp.GTE, exp.Between, exp.In, exp.Is, exp.Like, exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast),
    )
)
"""What sqlglot reads in the same way whatever the constants in it are."""


class Shape:
    """
    The tree of all statements that differ from one in their constants alone.

    Parameters
    ----------
    tree : exp.Select
    holes : sequence of exp.Literal
        The constants in the tree, in the order of the text.
    """

    def __init__(self, tree: exp.Select, holes: Sequence[exp.Literal]) -> None:
        self._tree, self._holes, self._lock = tree, holes, threading.Lock()

    @contextmanager
    def filled(self, constants: Sequence[str]) -> Iterator[exp.Select]:
        """The tree with these constants, as SQL spells them; it is nobody else's inside the block."""
        with self._lock:
            for hole, constant in zip(self._holes, constants, strict=True):
                hole.set("this", _meant(constant))
            yield self._tree


class Shapes:
    """
    Reads statements, and remembers the shapes of those that were read last.

    Parameters
    ----------
    room : int
        How many shapes.

    Notes
    -----
    A shape is remembered when it comes for the second time, and only if it has nothing but nodes that do not
    hang on the values of constants, each constant of the text is one node, and filling in the statement's
    own constants gives its own tree.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room, self._lock = room, threading.Lock()
        self._known: OrderedDict[str, Shape | bool] = OrderedDict()  # False: it came once; True: it has none

    @contextmanager
    def read(self, text: str) -> Iterator[exp.Select]:
        """As `laprasdp.sql.syntax.read`; the tree is not used after the block."""
        taken = take_apart(text)
        if taken is None:
            yield read(text)
            return
        pattern, constants = taken
        with self._lock:
            again = pattern in self._known
            shape = self._known.pop(pattern, False)
            self._known[pattern] = shape
            if len(self._known) > self._room:
                self._known.popitem(last=False)
        if isinstance(shape, Shape):
            with shape.filled(constants) as tree:
                yield tree
            return
        tree = read(text)
        yield tree
        if again and not shape:
            found = shape_of(pattern, constants, tree) or True
            with self._lock:
                self._known[pattern] = found


def take_apart(text: str) -> tuple[str, list[str]] | None:
    """The text with holes for its constants, and the constants; None where that is not sure."""
    if len(text) > SHORT or _NUMBER in text or _TEXT in text:
        return None
    constants: list[str] = []

    def hole(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] == '"':
            return found
        constants.append(found)
        return _TEXT if found[0] == "'" else _NUMBER

    pattern = _CONSTANT.sub(hole, text)
    return None if _OPEN.search(pattern) else (pattern, constants)


def shape_of(pattern: str, constants: Sequence[str], tree: exp.Select) -> Shape | None:
    """The shape of a pattern if it has one; `tree` is that of the pattern with `constants`."""
    stand_ins = [
        f"'lapras {place}'" if one[0] == "'" else f"{10**12 + place}" for place, one in enumerate(constants)
    ]
    pieces = re.split(f"[{_NUMBER}{_TEXT}]", pattern)
    try:
        general = read("".join(x for pair in zip(pieces, [*stand_ins, ""], strict=True) for x in pair))
    except LaprasError:
        return None
    if not all(map(_is_plain, general.walk())):
        return None
    found: dict[str, list[exp.Literal]] = {}
    for node in general.find_all(exp.Literal):
        found.setdefault(str(node.this), []).append(node)
    holes = [found.get(_meant(one), []) for one in stand_ins]
    if any(len(nodes) != 1 for nodes in holes):
        return None
    shape = Shape(general, [node for (node,) in holes])
    with shape.filled(constants) as filled:
        return shape if filled == tree else None


def _is_plain(node: Node) -> bool:
    if type(node) is exp.DataType:
        return bool(node.this is exp.DType.DATE)
    return type(node) in _PLAIN


def _meant(constant: str) -> str:
    """What sqlglot makes of a constant."""
    return constant[1:-1].replace("''", "'") if constant[0] == "'" else constant
