"""Unordered attributes: categories and truth values."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Flags
from laprasdp.errors import DomainError, UnsupportedQuery
from laprasdp.queries.attribute.base import COMPARE, Attribute, Constant, Op, check_size, spell

_COMPARED = 1_000  # names, and characters of a text, up to which the nearest name is looked for


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
            equal = np.zeros(self.values, dtype=np.bool_)
            equal[self.level(constant)] = True
            return equal if op == "=" else ~equal
        self._refuse_other(op)
        texts, rank = self._sorted
        below = (bisect_right if op in ("<=", ">") else bisect_left)(texts, constant)
        flags: Flags = rank < below if op in ("<", "<=") else rank >= below
        return flags

    def level(self, text: Constant) -> int:
        """
        The level of a declared text.

        Raises
        ------
        UnsupportedQuery
            It is not declared; the message names the nearest that is, unless there are very many.
        """
        if not isinstance(text, str):
            raise self._wrong_type(text)
        found = self._levels.get(text)
        if found is None:
            near = []
            if len(self.names) <= _COMPARED and len(text) <= _COMPARED:
                near = difflib.get_close_matches(text, self.names, n=1, cutoff=0.5)
            hint = f"; did you mean {spell(near[0])}?" if near else ""
            raise UnsupportedQuery(f"{spell(text)} is not a declared value{hint}")
        return found

    @cached_property
    def _levels(self) -> dict[str, int]:
        return {name: level for level, name in enumerate(self.names)}

    @cached_property
    def _sorted(self) -> tuple[list[str], npt.NDArray[np.intp]]:
        """The texts in order, and the place of each level among them."""
        levels = sorted(range(len(self.names)), key=self.names.__getitem__)
        rank = np.empty(len(levels), dtype=np.intp)
        rank[levels] = np.arange(len(levels))
        return [self.names[level] for level in levels], rank

    def like(self, pattern: str, escape: str | None = None) -> Flags:
        """
        Whether ``value LIKE pattern`` is true, for each value.  Case counts, as in SQL.

        Returns
        -------
        (values,) array of bool
        """
        self._refuse_other("LIKE")
        parts = _like_to_parts(pattern, escape)
        if sum(map(len, parts)) > max(map(len, self.names)):
            return np.zeros(self.values, dtype=np.bool_)
        wanted = re.compile(_parts_to_regex(parts), re.DOTALL)
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
        outcome: Flags = COMPARE[op](np.array([0, 1]), self.level(constant))
        return outcome

    def level(self, value: Constant) -> int:
        """The level of a truth value; refuses any other constant."""
        if not isinstance(value, bool):
            raise self._wrong_type(value)
        return int(value)


def _like_to_parts(pattern: str, escape: str | None) -> list[list[str]]:
    """What stands between the % of a pattern: characters as regular expressions, a dot for _."""
    if escape is not None and len(escape) != 1:
        raise UnsupportedQuery("ESCAPE takes one character")
    parts: list[list[str]] = [[]]
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            following = next(chars, None)
            if following is None:
                raise UnsupportedQuery("LIKE pattern ends in its escape character")
            parts[-1].append(re.escape(following))
        elif char == "%":
            parts.append([])
        else:
            parts[-1].append("." if char == "_" else re.escape(char))
    return parts


def _parts_to_regex(parts: Sequence[Sequence[str]]) -> str:
    if len(parts) == 1:
        return "".join(parts[0])
    # Between two % the first place that fits is as good as any: atomic groups, so no pattern is slow.
    first, *middle, last = ("".join(part) for part in parts)
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + ".*" + last
