"""Remembers what was read last: the same text is parsed once, and so are texts of the same shape."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from laprasdp.queries.domain import Domain
from laprasdp.sql.parse import Statement, parse
from laprasdp.sql.shapes import Shapes

ROOM = 2**25
"""Bytes that remembered statements may take, all together."""
_OBJECTS = 2**10  # bytes of a query beside its arrays, and of a statement beside its queries


class Reader:
    """
    Reads statements over one table, and remembers those that were read last.

    Parameters
    ----------
    domain : Domain
    table : str
        The declared name of the table.
    types : mapping of attribute to DuckDB type, optional
        Of the table's columns, as `Table.types`; without, each attribute has its natural type.
    room : int
        Bytes for what is remembered; a statement that takes more than an eighth of them is not.

    Attributes
    ----------
    domain : Domain
    taken : int
        Bytes that are taken now.

    Notes
    -----
    A statement is a function of its text, the domain, the table's name and types, and never changes; so to
    remember it changes no meaning.  A text that cannot be asked is read again each time.
    """

    def __init__(
        self, domain: Domain, table: str, types: Mapping[str, str] | None = None, *, room: int = ROOM
    ) -> None:
        self.domain, self._table, self._types, self._room = domain, table, types, room
        self._known: OrderedDict[str, tuple[Statement, int]] = OrderedDict()
        self.taken = 0
        self._shapes = Shapes()
        self._lock = threading.Lock()

    def parse(self, text: str) -> Statement:
        """As `laprasdp.sql.parse.parse`."""
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text][0]
        statement = parse(text, self.domain, self._table, self._shapes, self._types)
        size = _size(text, statement)
        if size <= self._room // 8:
            with self._lock:
                self.taken += size - self._known.pop(text, (statement, 0))[1]
                self._known[text] = statement, size
                while self.taken > self._room:
                    self.taken -= self._known.popitem(last=False)[1][1]
        return statement


def _size(text: str, statement: Statement) -> int:
    """Bytes that a statement and its text take, generously."""
    arrays = (array.nbytes for query in statement.queries for array in (*query.labels, query.weights))
    return 8 * len(text) + _OBJECTS * (1 + len(statement.queries)) + sum(arrays)
