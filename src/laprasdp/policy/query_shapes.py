"""Shapes of queries: what a declaration may say of a stream whose statements nobody knows.

A shape is a prediction, never a promise: a query of another shape is answered too, less well.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from laprasdp.arguments import is_number, is_text
from laprasdp.errors import ConfigError
from laprasdp.queries.attribute import Booleans, Categories
from laprasdp.queries.domain import Domain
from laprasdp.strategy.subspaces import Axes

NUMBERS = {1: "one", 2: "two", 3: "three"}
"""How many attributes a query of a shape may name, in words."""

_ONE = 1e-9
_LEVELS = {"ranges": 3, "values": 2, "sets": 4, "conjunctions": 2, "group-by": 2}
"""What a shape may be of, and the levels that an attribute needs for it."""

_WORDS = {word: number for number, name in NUMBERS.items() for word in (name, str(number))}
_NUMBER = "|".join(_WORDS)
_SHAPE = re.compile(rf"\s*({'|'.join(_LEVELS)})\s+of\s+(\S.*?)\s*", re.IGNORECASE)
_COUNT = re.compile(
    rf"(?:(up\s+to)\s+)?({_NUMBER})(?:\s+or\s+({_NUMBER}))?(?:\s+attributes?)?", re.IGNORECASE
)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True)
class QueryShape:
    """
    A family of queries.

    Attributes
    ----------
    what : {"ranges", "values", "sets", "conjunctions", "group-by"}
    widths : tuple of int
        How many attributes a query names: each of these as likely; empty where `named` says which.
    named : str
        Names of attributes with "and" between them, all of which a query names; empty for any.
    share : float
        Share of the stream that is expected to be of it.
    """

    what: str
    widths: tuple[int, ...] = ()
    named: str = ""
    share: float = 1.0

    def __str__(self) -> str:
        return f"{self.what} of {self.named or counted(self.widths)}"

    @classmethod
    def read(cls, text: str) -> QueryShape:
        """
        The shape that a text names.

        Raises
        ------
        ConfigError
            It names none; the message says what may be written.
        """
        found = _SHAPE.fullmatch(text)
        if found is None:
            raise ConfigError(
                f'no shape {text!r}: write "ranges of", "values of", "sets of", "conjunctions of" or '
                '"group-by of", and then "one attribute", "two attributes", "up to three attributes", '
                '"one or two attributes", or names of attributes, as in "ranges of DISTANCE" or '
                '"values of DAY and HOUR"'
            )
        what, rest = found[1].lower(), found[2]
        count = _COUNT.fullmatch(rest)
        if count is None:
            return cls(what, named=rest)
        first = _WORDS[count[2].lower()]
        last = _WORDS[(count[3] or count[2]).lower()]
        return cls(what, tuple(range(1, last + 1)) if count[1] else tuple(sorted({first, last})))

    def sets(self, domain: Domain) -> dict[int, list[Axes]]:
        """
        The sets of attributes that a query may name, by how many they are.

        Raises
        ------
        ConfigError
            An attribute is not there, or cannot be asked for so, or there are none.
        """
        fitting = [axis for axis in range(len(domain)) if self._fits(domain, axis)]
        if self.named:
            axes = self._axes(domain)
            for axis in axes:
                if axis not in fitting:
                    raise ConfigError(f"shape {self}: {domain.names[axis]} {self._lacks(domain, axis)}")
            return {len(axes): [axes]}
        found = {wide: list(itertools.combinations(fitting, wide)) for wide in self.widths}
        found = {wide: sets for wide, sets in found.items() if sets}
        if not found:
            names = ", ".join(domain.names[axis] for axis in fitting) or "no attribute"
            raise ConfigError(f"shape {self}: of this table, {names} can be asked for so, which is too few")
        return found

    def _fits(self, domain: Domain, axis: int) -> bool:
        return domain.shape[axis] >= _LEVELS[self.what] and (
            self.what != "ranges" or is_ordered(domain, axis)
        )

    def _lacks(self, domain: Domain, axis: int) -> str:
        """Why an attribute does not fit."""
        if self.what == "ranges" and not is_ordered(domain, axis):
            return "has no order; its values or sets of them can be declared"
        return f"has fewer than {_LEVELS[self.what]} levels"

    def _axes(self, domain: Domain) -> Axes:
        places = {name.casefold(): axis for axis, name in enumerate(domain.names)}
        whole = self.named.casefold()
        names = [self.named] if whole in places else _AND.split(self.named)
        for name in names:
            if name.casefold() not in places:
                raise ConfigError(
                    f"shape {self}: no attribute {name}; there are {', '.join(domain.names)}, or write "
                    '"one attribute", "two attributes" or "up to three attributes"'
                )
        axes = tuple(sorted({places[name.casefold()] for name in names}))
        if len(axes) < len(names) or len(axes) > max(NUMBERS):
            raise ConfigError(f"shape {self}: up to {NUMBERS[max(NUMBERS)]} attributes, each named once")
        return axes


def counted(widths: Sequence[int]) -> str:
    """How many attributes, in words."""
    last = f"{NUMBERS[widths[-1]]} attribute{'s' if widths[-1] > 1 else ''}"
    if len(widths) == 1:
        return last
    if tuple(widths) == tuple(range(1, widths[-1] + 1)) and len(widths) > 1:
        return f"up to {last}"
    return f"{' or '.join(NUMBERS[wide] for wide in widths[:-1])} or {last}"


def are_shapes(given: Any) -> bool:
    """Whether it is a list of texts and shapes, or a mapping of texts to shares."""
    if isinstance(given, Mapping):
        return all(is_text(text) and is_number(share) and share > 0 for text, share in given.items())
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        return False
    return all(is_text(one) or isinstance(one, QueryShape) for one in given)


ARE_SHAPES = "a list of shapes, or a mapping of shapes to positive shares"


def shapes_of(given: Iterable[str | QueryShape] | Mapping[str, float]) -> tuple[QueryShape, ...]:
    """
    Shapes as they are kept: each once, by name, shares adding up to one.

    Raises
    ------
    ConfigError
        A text names no shape.
    """
    found: dict[str, QueryShape] = {}
    shares = given.items() if isinstance(given, Mapping) else ((one, None) for one in given)
    for one, share in shares:
        shape = one if isinstance(one, QueryShape) else QueryShape.read(one)
        if share is not None:
            shape = replace(shape, share=float(share))
        known = found.get(str(shape))
        found[str(shape)] = shape if known is None else replace(shape, share=known.share + shape.share)
    whole = math.fsum(shape.share for shape in found.values())
    if abs(whole - 1) < _ONE:  # read again, shares stay as they are to the last bit
        return tuple(found[text] for text in sorted(found))
    return tuple(replace(found[text], share=round(found[text].share / whole, 12)) for text in sorted(found))


def kept_shapes(shapes: Iterable[QueryShape]) -> dict[str, float]:
    """Shapes as plain data."""
    return {str(shape): shape.share for shape in shapes}


def is_ordered(domain: Domain, axis: int) -> bool:
    """Whether ranges of the attribute make sense."""
    return not isinstance(domain[domain.names[axis]], (Booleans, Categories))
