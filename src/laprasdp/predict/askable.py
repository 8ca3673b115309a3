"""Which statements of a log can be asked, told with few calls of the parser."""

from __future__ import annotations

import hashlib
import re

from laprasdp.errors import OtherTable, UnsupportedQuery
from laprasdp.limits import MAX_PARSES
from laprasdp.predict.ladder import Rungs, ladders, moved_by
from laprasdp.predict.template import Key
from laprasdp.queries.domain import Domain
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader

PATIENCE = 100
OTHER_TABLE = "about another table"
TOO_MANY = f"not read: more than {MAX_PARSES:,} different statements need the parser"
NOTHING = "no cell of the declared domain can match it"
_DETAIL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


class Askable:
    """
    Reads each distinct statement of a log with the parser, or sees that it need not.

    Parameters
    ----------
    domain : Domain
    table : str
        The declared name of the table.

    Attributes
    ----------
    parsed : int
        Statements that the parser has read.

    Notes
    -----
    The parser judges the literals of a template one by one: each is compared with one column.  So once it has
    accepted a statement of a template, others of it are accepted unread if all their literals are edges of
    the levels that they are compared with, or all stood in the same holes of accepted statements.

    A template of which the first `PATIENCE` statements were refused, all for the same reason, is refused, but
    for statements whose literals are all such edges.  What is predicted in the end has always been read by
    the parser.
    """

    def __init__(self, domain: Domain, table: str) -> None:
        self._domain, self._reader = domain, Reader(domain, table)
        self._seen: dict[str, list[set[str]]] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        self._ladders: dict[str, Rungs] = {}
        self._meanings: dict[bytes, Key] = {}
        self._same: dict[Key, Key] = {}
        self.parsed = 0

    def refusal(self, key: Key) -> str | None:
        """Why the statement cannot be asked, without its details; None if it can."""
        seen = self._seen.get(key.shape)
        if seen is not None and (all(map(set.__contains__, seen, key.literals)) or self.fits(key)):
            return None
        reason, times = self._refused.get(key.shape, ("", 0))
        if seen is None and times >= PATIENCE and not self.fits(key):
            return reason
        if self.parsed >= MAX_PARSES:
            return TOO_MANY
        found, one_by_one = self._read(key)
        if found is None:
            if not one_by_one:
                return None
            if seen is None:
                seen = self._seen[key.shape] = [set() for _ in key.literals]
            for literals, literal in zip(seen, key.literals, strict=True):
                literals.add(literal)
        else:
            self._refused[key.shape] = (found, times + 1 if found == reason else 1)
        return found

    def fits(self, key: Key) -> bool:
        """Whether every literal is a value on its ladder, and no range is empty."""
        if key.shape not in self._ladders:
            self._ladders[key.shape] = ladders(key, self._domain)
        rungs = self._ladders[key.shape]
        for ladder, literal in zip(rungs, key.literals, strict=True):
            if ladder is None or ladder.place(literal) is None:
                return False
        return moved_by(key, rungs, {}) is not None

    def same(self, key: Key) -> Key:
        """The first statement that was read and means the same; itself if it was accepted unread."""
        return self._same.get(key, key)

    def _read(self, key: Key) -> tuple[str | None, bool]:
        """Why it cannot be asked, and whether its literals were judged one by one."""
        self.parsed += 1
        try:
            statement = self._reader.parse(key.text)
        except OtherTable:
            return OTHER_TABLE, True
        except UnsupportedQuery as error:
            return _DETAIL.sub("…", str(error)), True
        if all(query.is_zero for query in statement.queries):
            return NOTHING, True
        self._same[key] = self._meanings.setdefault(meaning(statement), key)
        return None, statement.result is None


def meaning(statement: Statement) -> bytes:
    """The same for two statements that ask for the same queries, in any order."""
    digest = hashlib.sha256()
    for key in sorted(query.key for query in statement.queries):
        digest.update(key.encode())
    return digest.digest()
