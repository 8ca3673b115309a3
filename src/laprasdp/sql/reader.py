"""Remembers what was read last: the same text is parsed once, and so are texts of the same shape."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from laprasdp.errors import OtherTable, UnsupportedQuery
from laprasdp.limits import MAX_DERIVED_TOKENS
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.sql.lookup import Lookup, lookups_of
from laprasdp.sql.parse import Statement, parse
from laprasdp.sql.select import Selects
from laprasdp.sql.shapes import Shapes
from laprasdp.sql.syntax import check_size

_COUNT = re.compile(r"\s*SELECT\s+COUNT\(\*\)\s+FROM\b", re.IGNORECASE)
"""Of these the column is called count_star(), as most statements have it; of others DuckDB is asked."""
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
    lookups : mapping of name to Lookup, optional
        Public tables that statements may join.
    derived : mapping of name to str, optional
        What else statements may name: SQL of the attributes.
    unit : PrivacyUnit, optional
        Its column may stand in COUNT(DISTINCT …).
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
        self,
        domain: Domain,
        table: str,
        types: Mapping[str, str] | None = None,
        *,
        lookups: Mapping[str, Lookup] | None = None,
        derived: Mapping[str, str] | None = None,
        unit: PrivacyUnit | None = None,
        room: int = ROOM,
    ) -> None:
        self.domain, self._table, self._types, self._room = domain, table, types, room
        self._known: OrderedDict[str, tuple[Statement, int]] = OrderedDict()
        self.taken = 0
        self._shapes = Shapes()
        self._selects = Selects(
            domain, table, types or {}, lookups_of(lookups), derived or {}, unit or PrivacyUnit()
        )
        self._lock = threading.Lock()

    def parse(self, text: str) -> Statement:
        """
        What a statement asks: one count or sum of each group, or what follows from several.

        Raises
        ------
        QuerySyntaxError, UnsupportedQuery
            As from `laprasdp.sql.parse.parse`; a statement that it refuses is read as `Selects` does.
        """
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text][0]
        statement = self._read(text)
        size = _size(text, statement)
        if size <= self._room // 8:
            with self._lock:
                self.taken += size - self._known.pop(text, (statement, 0))[1]
                self._known[text] = statement, size
                while self.taken > self._room:
                    self.taken -= self._known.popitem(last=False)[1][1]
        return statement

    def _read(self, text: str) -> Statement:
        try:
            plain = parse(text, self.domain, self._table, self._shapes, self._types)
        except UnsupportedQuery as refusal:
            try:
                check_size(text, MAX_DERIVED_TOKENS)
                queries, result = self._selects.read(text.strip())
            except (UnsupportedQuery, RecursionError) as other:
                raise _plainer(refusal, other) from None
            return Statement(text.strip(), queries, result=result)
        return plain if _COUNT.match(text) else replace(plain, column=self._selects.named(text, plain.column))


def _plainer(first: UnsupportedQuery, second: UnsupportedQuery | RecursionError) -> UnsupportedQuery:
    """Of two refusals the one that says more: that of a construct only says that it is another door's."""
    if isinstance(second, RecursionError) or "DuckDB refuses it" in str(second):
        return first
    return second if isinstance(first, OtherTable) or "not supported" in str(first) else first


def _size(text: str, statement: Statement) -> int:
    """Bytes that a statement and its text take, generously."""
    arrays = (array.nbytes for query in statement.queries for array in (*query.labels, query.weights))
    keys = sum(block.keys.nbytes for block in statement.result.blocks) if statement.result else 0
    return 64 * len(text) + _OBJECTS * (1 + len(statement.queries)) + sum(arrays) + 4 * keys
