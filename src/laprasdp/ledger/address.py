"""The address of a ledger, and how it is shown: only the parts that are known to be no secret."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from laprasdp.errors import LedgerError

_FORM = "write postgresql://user@host:port/name"
_NUL = "the ledger's name has a NUL in it: name a file, or a PostgreSQL address"
_USER, _HOST, _NAME = re.compile(r"[\w.@+-]+"), re.compile(r"[\w.:-]+"), re.compile(r"[\w.+ -]+")
_SOCKET = re.compile(r"[\w./:,@-]+")
_PAIRS = re.compile(r"[a-z_]+ *= *\S")  # as libpq spells an address without a scheme


@dataclass(frozen=True)
class Address:
    """
    Where a ledger is kept.

    Attributes
    ----------
    url : URL
        With all its secrets: for the driver alone.
    name : str
        For everybody: the path of a file; or scheme, user, host, port and database of a server.
    """

    url: URL = field(repr=False)
    name: str

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.drivername.startswith("sqlite")

    @property
    def options(self) -> tuple[str, ...]:
        """What the server is told at the start of a session."""
        return _values(self.url, "options")

    @property
    def hidden(self) -> set[str]:
        """What stands in the address and is not shown."""
        values = {self.url.password, *(value for key in self.url.query for value in _values(self.url, key))}
        return {value for value in map(str, filter(None, values)) if value not in self.name}


def read_address(where: str | os.PathLike[str]) -> Address:
    """
    Read what a user gave for a ledger.

    Parameters
    ----------
    where : str or path
        A file for SQLite; or a URL, ``sqlite:///…`` or ``postgresql://user:password@host/name``.

    Raises
    ------
    LedgerError
        It is no address of a known kind.  Nothing behind the scheme is quoted.
    """
    text = os.fspath(where)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise LedgerError("the ledger's name has half of a surrogate pair, which is no character") from None
    if "\0" in text:
        raise LedgerError(_NUL)
    if not isinstance(where, str) or "://" not in text:
        if isinstance(where, str) and (text.startswith(("postgres:", "postgresql:")) or _PAIRS.match(text)):
            raise LedgerError(f"the ledger's address cannot be read: {_FORM}")
        path = str(Path(text).absolute())
        return Address(URL.create("sqlite", database=path), path)
    scheme, _, rest = text.partition("://")
    kind = scheme.partition("+")[0]
    if not re.fullmatch("[a-z0-9]+", kind):
        raise LedgerError(f"the ledger's address cannot be read: {_FORM}")
    if kind not in ("sqlite", "postgresql", "postgres"):
        raise LedgerError(f"a ledger is a SQLite file or a PostgreSQL address, not {kind}")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the ledger's address {kind}://… cannot be read: {_FORM}") from None
    if kind == "sqlite":
        if "\0" in str(url.database):
            raise LedgerError(_NUL)
        if url.database in (None, "", ":memory:"):
            raise LedgerError("a ledger in SQLite is a file: name it, or give none to keep it in memory")
        return Address(url, str(url.database))
    _check_server(url, rest)
    return Address(url.set(drivername="postgresql+psycopg"), _shown(url))


def _check_server(url: URL, rest: str) -> None:
    """Refuse what the parts of an address were not meant to be, such as the end of a password as a host."""
    start, _, query = rest.partition("?")
    if start.count("@") > 1 or "@" in query or any("=" not in pair for pair in query.split("&") if pair):
        raise LedgerError(
            f"the ledger's address {_scheme(url)}://… cannot be read: write @ in a password as %40, / as %2F "
            "and ? as %3F"
        )
    if not rest.isprintable() or (url.host and not _HOST.fullmatch(url.host)):
        raise LedgerError(f"the ledger's address {_scheme(url)}://… cannot be read: {_FORM}")
    if url.port is not None and not 0 < url.port < 2**16:
        raise LedgerError(f"the ledger's address {_scheme(url)}://… has a port that is none: {_FORM}")


def _scheme(url: URL) -> str:
    return url.drivername.partition("+")[0]


def _shown(url: URL) -> str:
    """The parts of a server's address that are no secret, as far as they look like what they are."""
    user = f"{url.username}@" if url.username and _USER.fullmatch(url.username) else ""
    host = url.host or ""
    if ":" in host:
        host = f"[{host}]"
    port = "" if url.port is None else f":{url.port}"
    name = url.database if url.database and _NAME.fullmatch(url.database) else ""
    sockets = [value for value in _values(url, "host") if _SOCKET.fullmatch(value)]
    return f"postgresql://{user}{host}{port}/{name}" + "".join(f"?host={value}" for value in sockets[:1])


def _values(url: URL, key: str) -> tuple[str, ...]:
    found = url.query.get(key, ())
    return (found,) if isinstance(found, str) else tuple(found)
