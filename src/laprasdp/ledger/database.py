"""Connections to a ledger's database: its address, its locks, and its errors as one line each."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, cast

from sqlalchemy import ClauseElement, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from laprasdp.errors import LedgerError, interruptible
from laprasdp.ledger.address import read_address
from laprasdp.ledger.file import Driver, LedgerFile
from laprasdp.ledger.waiting import begin_writing
from laprasdp.server import LOST, OPTION, UNREACHED, reason

_LOCK = 0x1A9BA5  # of PostgreSQL's advisory locks, the one for making tables and datasets
_LOG = "PRAGMA journal_mode=WAL"
_WRITES = "lapras_writes"
_DAMAGED = "it is damaged: verify it and restore a backup"
_FOREIGN = "its tables are missing or are not a ledger's: use a schema of its own, or restore a backup"
_RIGHTS = "this user may not write there: grant it the right to"
_READ_ONLY = "the database is read-only: use one that can be written"
_STATES = {  # what is a ledger's own among them
    "3F000": "its schema is not there: create it, or check the search_path",
    "42501": _RIGHTS,
    "25006": _READ_ONLY,
    "42P01": _FOREIGN,
    "42703": _FOREIGN,
    "42P07": "it has other tables of a ledger's names: use a schema or a database of its own",
}
_TEXTS = {
    "readonly": "there is no permission to write it",
    "read-only": "there is no permission to write it",
    "unable to open": "it cannot be opened: check that the folder is there and may be written",
    "not a database": "it is no SQLite database, or is damaged: restore a backup or name another file",
    "malformed": _DAMAGED,
    "no such column": _DAMAGED,
    "is full": "the disk is full: make room",
    "disk I/O": "the disk refuses to read or write: check it, and the room on it",
    "session is read-only": _READ_ONLY,
}
for _name in ("sqlalchemy", "psycopg"):  # what they log of a lost connection is for whoever wants it
    logging.getLogger(_name).addHandler(logging.NullHandler())


Values = dict[str, Any] | list[dict[str, Any]]


class Database:
    """
    One database and its transactions.

    Parameters
    ----------
    where : str or path
        A file for SQLite; or a URL, ``sqlite:///…`` or ``postgresql://user:password@host/name``.
    wait : float
        Seconds to wait for others that are writing.
    what : str
        What is kept there, for messages.

    Raises
    ------
    LedgerError
        It is no address of a known kind.
    """

    def __init__(self, where: str | os.PathLike[str], wait: float, *, what: str = "the ledger") -> None:
        self._what, self._address, self._wait = what, read_address(where), wait
        self.name = self._address.name  # the only way it is shown
        self.file = LedgerFile(self.name) if self._address.is_sqlite else None
        self._renew()
        self._inherited: list[Engine] = []  # a child must not close what its parent uses
        self._joint = threading.local()
        self._texts: dict[ClauseElement, str] = {}
        self._once_kept: dict[Connection, list[Callable[[], None]]] = {}

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.engine.dialect.name == "sqlite"

    @property
    def conflict(self) -> type[Exception]:
        """What the driver raises where a row is there already."""
        found: type[Exception] = self.engine.dialect.loaded_dbapi.IntegrityError
        return found

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """
        All of the block or nothing; with `write`, one at a time on a SQLite file; without, one snapshot.

        Raises
        ------
        LedgerError
            The database refuses something; the message says what to do.
        """
        joint = getattr(self._joint, "connection", None)
        if joint is not None:
            yield joint
            return
        self._check_process()
        with self.told(), self.engine.connect() as connection:
            connection.execution_options(**{_WRITES: write})
            if not write and not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            kept = self._once_kept[connection] = []
            try:
                with connection.begin():
                    self._check(connection)
                    yield connection
            finally:
                del self._once_kept[connection]
            if self.file is not None:  # nothing was shown yet
                self.file.check(written=write)
            for act in kept:
                act()

    def run(self, connection: Connection, statement: ClauseElement, values: Values) -> list[Any]:
        """
        The rows of a statement that is used again and again; of a list of values, it is run for each.

        Its text is made once, and the driver is told directly: what SQLAlchemy does around a statement takes
        longer than the statement.
        """
        dialect = self.engine.dialect
        if statement not in self._texts:
            self._texts[statement] = str(statement.compile(dialect=dialect))
        with closing(connection.connection.cursor()) as cursor:
            if isinstance(values, list):
                dialect.do_executemany(cursor, self._texts[statement], values)
            else:
                dialect.do_execute(cursor, self._texts[statement], values)
            return list(cursor.fetchall()) if cursor.description else []

    def look(self, statement: ClauseElement, values: Values) -> list[Any]:
        """
        The rows of one statement that reads what is kept now, without the cost of a transaction.

        Raises
        ------
        LedgerError
            As from `transaction`.
        """
        self._check_process()
        with self.told(), self.engine.connect() as connection:
            if self.file is not None:
                self._check(connection)
            else:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            return self.run(connection, statement, values)

    def once_kept(self, connection: Connection, act: Callable[[], None]) -> None:
        """Do something when the transaction has ended and what it wrote is kept."""
        self._once_kept[connection].append(act)

    @property
    def changes(self) -> int:
        """How often somebody else was seen to have written to the file."""
        return 0 if self.file is None else self.file.changes

    @contextmanager
    def together(self) -> Iterator[None]:
        """All transactions that this thread begins inside the block are one, which may write."""
        with self.transaction(write=True) as connection:
            before, self._joint.connection = getattr(self._joint, "connection", None), connection
            try:
                yield
            finally:
                self._joint.connection = before

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors of the database as one line, without its secrets; an interrupt stays one."""
        try:
            with interruptible():
                yield
        except LedgerError as error:
            told = f"{self._what} {self.name}: "
            raise LedgerError(told + str(error).removeprefix(told)) from None
        except (SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error) as error:
            raise LedgerError(f"{self._what} {self.name}: {self._reason(error)}") from None
        except UnicodeDecodeError:  # SQLite's own message quotes what is damaged
            raise LedgerError(f"{self._what} {self.name}: {_DAMAGED}") from None

    def lock_schema(self, connection: Connection) -> None:
        """Let nobody else make tables or datasets until the transaction ends."""
        if not self.is_sqlite:  # where BEGIN IMMEDIATE has done it
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def keep_log(self) -> None:
        """SQLite's write-ahead log, so that readers and the writer do not wait for each other."""
        end = time.monotonic() + self._wait
        with self.told():
            while self.is_sqlite:
                try:
                    with self.engine.connect() as connection:
                        cast("sqlite3.Connection", connection.connection.driver_connection).execute(_LOG)
                    break
                except sqlite3.OperationalError as error:  # for this, SQLite does not wait by itself
                    if "locked" not in str(error) or time.monotonic() > end:
                        raise LedgerError(str(error)) from None
                    time.sleep(0.01)
        if self.file is not None:
            self.file.logged()

    def damage(self) -> list[str]:
        """What SQLite's own check finds wrong in the file."""
        if not self.is_sqlite:
            return []
        try:
            with self.transaction(write=False) as connection:
                found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        except LedgerError as error:
            return [str(error)]
        lines = [line for text in found for line in str(text).splitlines()]
        return [line for line in lines if line != "ok" and not line.startswith("***")]

    def close(self) -> None:
        """Let go of all connections; whoever uses it again opens it again."""
        self.engine.dispose()
        if self.file is not None:
            self.file.forget()

    def _check(self, connection: Connection) -> None:
        """Whether the file is still there; where others wrote to it, SQLite reads it and not its memory."""
        if self.file is not None:
            self.file.check()
            if connection.info.setdefault("changes", 0) != self.file.changes:
                connection.exec_driver_sql("PRAGMA shrink_memory")
                connection.info["changes"] = self.file.changes

    def _check_process(self) -> None:
        """After a fork, the child has connections of its own."""
        if os.getpid() != self._process:
            self._inherited.append(self.engine)
            self._renew()

    def _renew(self) -> None:
        self.engine, self._process = self._connect(), os.getpid()
        weakref.finalize(self, _let_go, self.engine, self._process)

    def _connect(self) -> Engine:
        to_driver = {"timeout": self._wait, "factory": Driver}
        options: dict[str, Any] = {"connect_args": to_driver, "paramstyle": "named"}
        if not self._address.is_sqlite:
            own = " ".join(self._address.options)
            waits = f"-c lock_timeout={int(self._wait * 1000)} -c synchronous_commit=on"
            options = {
                "connect_args": {"options": f"{own} {waits}".strip(), "connect_timeout": 10},
                "isolation_level": "READ COMMITTED",  # what is read after the lock is everything
            }
        try:
            engine = create_engine(self._address.url, hide_parameters=True, max_overflow=-1, **options)
        except ModuleNotFoundError as error:
            raise LedgerError(
                f"{self._what} {self.name}: install {error.name}, as pip install 'lapras-dp[postgres]' does"
            ) from None
        except (ArgumentError, ValueError):  # which quote what they were given
            raise LedgerError(f"{self._what} {self.name}: {OPTION}") from None
        if self.file is not None:
            file, wait = self.file, self._wait  # a listener that held this object would never let go of it
            event.listen(engine, "do_connect", lambda *_: file.connecting())
            event.listen(engine, "connect", lambda driver, _: _prepare(driver, file))
            event.listen(engine, "close", lambda driver, _: file.disconnected(driver))
            event.listen(engine, "begin", lambda connection: _begin(connection, wait))
            event.listen(engine, "invalidate", _roll_back)
        return engine

    def _reason(self, error: Exception) -> str:
        cause = error.orig if isinstance(error, DBAPIError) else error
        words = (str(cause) or type(cause).__name__).splitlines()[0]
        state = getattr(cause, "sqlstate", None)
        if "locked" in words or state == "55P03":
            return f"another process has been writing for more than {self._wait:g} s: try again later"
        known = _STATES.get(state or "") or next(
            (says for part, says in _TEXTS.items() if part in str(cause)), reason(cause or error)
        )
        if known is not None:
            return known
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return LOST
        if not self._address.is_sqlite and state is None:  # libpq quotes what it was given
            return OPTION if "invalid" in words else UNREACHED
        return "the database refuses it" if any(one in words for one in self._address.hidden) else words


def _let_go(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()


def _prepare(connection: Driver, file: LedgerFile) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says
    connection.text_factory = lambda text: text.decode(errors="replace")  # damage is for the digests to find
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA journal_size_limit=-1")  # a log that is shorter than before was cut
        file.connected(connection)
    except BaseException:
        connection.close()
        raise


def _roll_back(connection: Any, *_: Any) -> None:
    """End what an interrupt has cut off: a closed connection keeps its lock while a cursor of it is alive."""
    with suppress(sqlite3.Error):
        connection.rollback()


def _begin(connection: Connection, wait: float) -> None:
    """Begin; to write, wait for whoever writes."""
    driver = cast("sqlite3.Connection", connection.connection.driver_connection)
    if connection.get_execution_options().get(_WRITES, False):
        begin_writing(driver, wait)
    else:
        driver.execute("BEGIN")
        driver.execute("SELECT 1 FROM sqlite_master").close()  # SQLite opens the log when something is read
