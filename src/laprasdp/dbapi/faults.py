"""The errors that PEP 249 names, and which of them stands for an error of LAPRAS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from laprasdp import errors


class Warning(Exception):
    """Never raised."""


class Error(Exception):
    """Every error of this module; `__cause__` is the one of LAPRAS, with its code."""


class InterfaceError(Error):
    """The module is used wrongly: a closed cursor, a parameter of no SQL type."""


class DatabaseError(Error):
    """LAPRAS refused, or failed."""


class DataError(DatabaseError):
    """The table is not as declared."""


class OperationalError(DatabaseError):
    """Nothing is left of the budget, or the ledger cannot be reached."""


class IntegrityError(DatabaseError):
    """Never raised."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The statement is no SQL, or about another table."""


class NotSupportedError(DatabaseError):
    """The statement cannot be asked; it costs nothing."""


_KINDS: tuple[tuple[type[errors.LaprasError], type[DatabaseError]], ...] = (
    (errors.QuerySyntaxError, ProgrammingError),
    (errors.OtherTable, ProgrammingError),
    (errors.UnsupportedQuery, NotSupportedError),
    (errors.DataError, DataError),
    (errors.DomainError, DataError),
    (errors.LaprasError, OperationalError),
)


@contextmanager
def told() -> Iterator[None]:
    """Errors of LAPRAS inside leave as those of PEP 249, with the same message."""
    try:
        yield
    except errors.LaprasError as error:
        raise next(kind for of, kind in _KINDS if isinstance(error, of))(str(error)) from error
