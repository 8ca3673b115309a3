"""Attributes without a line: categories and truth values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laprasdp.attribute.base import COMPARE, Attribute, Constant, Flags, Op, check_size, spell
from laprasdp.errors import DomainError, UnsupportedQuery


@dataclass(frozen=True)
class Categories(Attribute):
    """
    Text values, in the order given.

    Parameters
    ----------
    names : sequence of str
        Distinct; the empty string is a value like any other.
    other : bool
        One more level for every other text; otherwise such rows lie outside the domain.
    """

    kind = "categories"
    names: Sequence[str]
    other: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.names, str) or not isinstance(self.names, Iterable):
            raise DomainError(f"categories must be a list of texts, not {self.names!r}")
        if not isinstance(self.other, bool):
            raise DomainError(f"other must be true or false, not {self.other!r}")
        names = tuple(self.names)
        if not names:
            raise DomainError("categories need at least one value")
        seen: set[str] = set()
        for name in names:
            if not isinstance(name, str):
                raise DomainError(f"category {name!r} is not text (whole numbers are declared as integers)")
            if name in seen:
                raise DomainError(f"category {name!r} is declared twice")
            seen.add(name)
        object.__setattr__(self, "names", names)
        check_size(self.values, 'gather rare values under "other"')

    @property
    def values(self) -> int:
        return len(self.names) + self.other

    def label(self, level: int) -> str | None:
        if level < len(self.names):
            return self.names[level]
        return "(other)" if level < self.values else None

    def settings(self) -> dict[str, Any]:
        return {"type": self.kind, "values": list(self.names), "other": self.other, "nullable": self.nullable}

    def holds(self, op: Op, constant: Constant) -> Flags:
        if not isinstance(constant, str):
            raise self._wrong_type(constant)
        if op in ("=", "<>"):
            if constant not in self.names:
                near = difflib.get_close_matches(constant, self.names, n=1, cutoff=0.5)
                hint = f"; did you mean {spell(near[0])}?" if near else ""
                raise UnsupportedQuery(f"{spell(constant)} is not a declared value{hint}")
            equal: Flags = np.arange(self.values) == self.names.index(constant)
            return equal if op == "=" else ~equal
        self._refuse_other(op)
        return np.array([COMPARE[op](name, constant) for name in self.names], dtype=bool)

    def like(self, pattern: str, escape: str | None = None) -> Flags:
        """
        On which values is ``value LIKE pattern`` true?  Case counts, as in SQL.

        Returns
        -------
        (values,) array of bool
        """
        self._refuse_other("LIKE")
        wanted = re.compile(_like_to_regex(pattern, escape), re.DOTALL)
        return np.array([wanted.fullmatch(name) is not None for name in self.names], dtype=bool)

    def _refuse_other(self, op: str) -> None:
        if self.other:
            raise UnsupportedQuery(f'{op} would cut through the values gathered under "other"; use = or IN')


@dataclass(frozen=True)
class Booleans(Attribute):
    """False and true, in this order."""

    kind = "booleans"

    @property
    def values(self) -> int:
        return 2

    def label(self, level: int) -> bool | None:
        return bool(level) if level < 2 else None

    def settings(self) -> dict[str, Any]:
        return {"type": self.kind, "nullable": self.nullable}

    def holds(self, op: Op, constant: Constant) -> Flags:
        if not isinstance(constant, bool):
            raise self._wrong_type(constant)
        value, given = np.array([0, 1]), int(constant)
        outcome: Flags = COMPARE[op](value, given)
        return outcome


def _like_to_regex(pattern: str, escape: str | None) -> str:
    if escape is not None and len(escape) != 1:
        raise UnsupportedQuery("ESCAPE takes one character")
    parts, chars = [""], iter(pattern)
    for char in chars:
        if char == escape:
            following = next(chars, None)
            if following is None:
                raise UnsupportedQuery("LIKE pattern ends in its escape character")
            parts[-1] += re.escape(following)
        elif char == "%":
            parts.append("")
        else:
            parts[-1] += "." if char == "_" else re.escape(char)
    if len(parts) == 1:
        return parts[0]
    # Between two % the first place that fits is as good as any: atomic groups, so no pattern is slow.
    first, *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + ".*" + last
