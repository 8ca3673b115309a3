"""The address of a ledger, and how it is shown: only the parts that are known to be no secret."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from laprasdp.errors import LedgerError
from laprasdp.server import FORM, SCHEMES, read_server, shown, values

_NUL = "the ledger's name has a NUL in it: name a file, or a PostgreSQL address"
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
        return values(self.url, "options")

    @property
    def hidden(self) -> set[str]:
        """What stands in the address and is not shown."""
        found = {self.url.password, *(value for key in self.url.query for value in values(self.url, key))}
        return {value for value in map(str, filter(None, found)) if value not in self.name}


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
            raise LedgerError(f"the ledger's address cannot be read: {FORM}")
        path = str(Path(text).absolute())
        return Address(URL.create("sqlite", database=path), path)
    scheme = text.partition("://")[0]
    kind = scheme.partition("+")[0]
    if not re.fullmatch("[a-z0-9]+", kind):
        raise LedgerError(f"the ledger's address cannot be read: {FORM}")
    if kind not in ("sqlite", *SCHEMES):
        raise LedgerError(f"a ledger is a SQLite file or a PostgreSQL address, not {kind}")
    if kind != "sqlite":
        url = read_server(text, "the ledger's address", LedgerError)
        return Address(url.set(drivername="postgresql+psycopg"), shown(url))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the ledger's address {kind}://… cannot be read: {FORM}") from None
    if "\0" in str(url.database):
        raise LedgerError(_NUL)
    if url.database in (None, "", ":memory:"):
        raise LedgerError("a ledger in SQLite is a file: name it, or give none to keep it in memory")
    return Address(url, str(url.database))
