"""DB-API 2.0 (PEP 249) over any session: what reads from databases reads private answers unchanged."""

from __future__ import annotations

from pathlib import Path

from laprasdp import client
from laprasdp.config import read_config
from laprasdp.dbapi.connection import Connection, Cursor
from laprasdp.dbapi.faults import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    told,
)
from laprasdp.dbapi.literals import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from laprasdp.stream.asking import Asking

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "DataError",
    "DatabaseError", "Date", "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError",
    "NotSupportedError", "OperationalError", "ProgrammingError", "Time", "TimeFromTicks", "Timestamp",
    "TimestampFromTicks", "Warning", "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"


def connect(
    source: Asking | str | Path = "lapras.toml",
    token: str | None = None,
    *,
    analyst: str | None = None,
    uncertainty: bool = False,
) -> Connection:
    """
    Open a connection.

    Parameters
    ----------
    source : session, path of a `lapras.toml`, or address of a service
        A session that was given stays open when the connection is closed.
    token : str, optional
        With the address of a service, ``https://…``, one that its curator made.
    analyst : str, optional
        Who asks.
    uncertainty : bool
        After each value also its std and the ends of its 95% interval, as columns ``n std``, ``n low``,
        ``n high``.

    Raises
    ------
    Error
        The file or what it declares cannot be opened.

    Examples
    --------
    >>> import laprasdp as lp
    >>> from laprasdp import datasets
    >>> domain = lp.Domain(sex=lp.Categories(["Female", "Male"]))
    >>> session = lp.open_session(datasets.path("adult"), domain, budget=lp.Budget(1, 1e-6), name="adult")
    >>> with connect(session) as connection:
    ...     rows = connection.execute("SELECT sex, COUNT(*) FROM adult GROUP BY sex").fetchall()
    >>> [key for key, count in rows]
    ['Female', 'Male']
    """
    if isinstance(source, str | Path):
        with told():
            if token is not None:
                return Connection(client.connect(str(source), token), analyst, uncertainty, owned=True)
            return Connection(read_config(Path(source)).open(), analyst, uncertainty, owned=True)
    return Connection(source, analyst, uncertainty, owned=False)
