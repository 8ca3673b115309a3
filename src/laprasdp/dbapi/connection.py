"""Connections and cursors as PEP 249 has them, over a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from laprasdp.dbapi import faults
from laprasdp.dbapi.faults import InterfaceError, NotSupportedError, told
from laprasdp.dbapi.literals import bound, type_of
from laprasdp.stream.asking import Asking, Told

_ENDS = ("std", "low", "high")


class Connection:
    """
    A connection to one table; every statement is charged when it is asked, and nothing is taken back.

    Notes
    -----
    **Privacy.**  Whoever holds one sees what the session shows: answers, refusals and charges.
    """

    Warning, Error, InterfaceError = faults.Warning, faults.Error, faults.InterfaceError
    DatabaseError, DataError, OperationalError = (
        faults.DatabaseError,
        faults.DataError,
        faults.OperationalError,
    )
    IntegrityError, InternalError = faults.IntegrityError, faults.InternalError
    ProgrammingError, NotSupportedError = faults.ProgrammingError, faults.NotSupportedError

    def __init__(self, session: Asking, analyst: str | None, uncertainty: bool, *, owned: bool) -> None:
        self.session, self.analyst, self.uncertainty = session, analyst, uncertainty
        self._owned, self.closed = owned, False

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Cursor:
        """A new cursor, with the answer of a statement."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Nothing to do: what was answered is kept already."""
        self.check_open()

    def rollback(self) -> None:
        """Nothing to do: a charge is never taken back."""
        self.check_open()

    def close(self) -> None:
        """Close the connection, and the session where `connect` opened it."""
        if self._owned and not self.closed:
            self.session.close()
        self.closed = True

    def check_open(self) -> None:
        """Raises `InterfaceError` if the connection was closed."""
        if self.closed:
            raise InterfaceError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """
    The rows of one statement.

    Attributes
    ----------
    description : list of tuple or None
        Name and type of each column, and five times None.
    rowcount : int
        Rows of the answer; -1 before the first.
    answer : Answer, GroupedAnswer, ResultSet or None
        The whole answer, with its standard deviations and its charge.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection, self.arraysize = connection, 1
        self.description: list[tuple[Any, ...]] | None = None
        self.answer: Told | None = None
        self.rowcount, self._closed = -1, False
        self._rows: Iterator[tuple[Any, ...]] = iter([])

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """
        Ask a statement; `parameters` stand for its question marks, as literals.

        Raises
        ------
        Error
            It was refused, or failed; see the classes.
        """
        self._check_open()
        session, analyst = self.connection.session, self.connection.analyst
        statement = bound(operation, parameters) if parameters else operation
        with told():
            self.answer = session.ask(statement, analyst=analyst)
        columns = self.answer.columns()
        shown = [
            name for name in columns
            if self.connection.uncertainty or not _is_end(name, columns)
        ]  # fmt: skip
        self.description = [(name, type_of(columns[name]), *[None] * 5) for name in shown]
        rows = list(zip(*(columns[name] for name in shown), strict=True))
        self.rowcount, self._rows = len(rows), iter(rows)
        return self

    def executemany(self, operation: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Not for statements that return rows."""
        raise NotSupportedError("every statement returns rows: call execute for each")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        self._check_asked()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` of them if no number is given."""
        self._check_asked()
        wanted = range(self.arraysize if size is None else size)
        return [row for _, row in zip(wanted, self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        self._check_asked()
        return list(self._rows)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing to do."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Forget the rows."""
        self._closed = True

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._check_asked()
        return self._rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        self.connection.check_open()
        if self._closed:
            raise InterfaceError("the cursor is closed")

    def _check_asked(self) -> None:
        self._check_open()
        if self.description is None:
            raise InterfaceError("nothing was asked yet: call execute first")


def _is_end(name: str, columns: dict[str, list[Any]]) -> bool:
    of, _, end = name.rpartition(" ")
    return end in _ENDS and of in columns
