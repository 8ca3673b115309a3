"""A PostgreSQL server: its address as a user writes it, how it is shown, and why it lets nobody in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from laprasdp.errors import LaprasError

if TYPE_CHECKING:
    from sqlalchemy import URL

SCHEMES = ("postgresql", "postgres")
FORM = "write postgresql://user@host:port/name"
LOST = "the connection was lost: ask again"
UNREACHED = "it cannot be connected to: check the address, and that the server is there"
OPTION = "an option in its address is not known, or has no such value: check it"
_FULL = "it has no connection left: close others, or raise the server's max_connections"
_NO_DATABASE = "there is no such database: create it first"
_STARTING = "the server is starting or stopping: try again later"
STATES = {
    "28P01": "user or password is wrong",
    "28000": "this user may not connect",
    "3D000": _NO_DATABASE,
    "25P03": "the server ended a transaction that took its time: raise idle_in_transaction_session_timeout",
    "25P04": "the server ended a transaction that took its time: raise transaction_timeout",
    "57014": "the server ended a statement that took its time: raise statement_timeout",
    "53100": "the disk is full: make room",
    "53200": "the server has no memory left: try again later",
    "53300": _FULL,
    "57P01": LOST,
    "57P02": LOST,
    "57P03": _STARTING,
    "57P05": LOST,
}
"""What an SQLSTATE means to whoever uses the server."""
TEXTS = {
    "pg_hba.conf": "the server lets nobody in this way: try sslmode=require, or change its pg_hba.conf",
    "SSL was required": "the server has no SSL: switch it on, or leave sslmode=require out",
    "certificate": "the server's certificate is not trusted: check sslrootcert and sslmode",
    "password": "user or password is wrong",
    'FATAL:  database "': _NO_DATABASE,
    'FATAL:  role "': "there is no such user, or it may not log in: create it first",
    "permission denied for database": "this user may not connect: grant it the right to",
    "too many": _FULL,
    "connection slots": _FULL,
    "starting up": _STARTING,
    "shutting down": _STARTING,
    "closed the connection": LOST,
    "connection is lost": LOST,
    "connection is closed": LOST,
    "terminating connection": LOST,
    "No such file": "nobody answers there: start the server or check the address",
    "refused": "nobody answers there: start the server or check host and port",
    "timeout expired": "nobody answers there: check host and port, and what stands between",
    "resolve host": "the host is unknown: check the address",
}
"""The same for what libpq says where there is no SQLSTATE, by a part of it."""
_USER, _HOST, _NAME = re.compile(r"[\w.@+-]+"), re.compile(r"[\w.:-]+"), re.compile(r"[\w.+ -]+")
_SOCKET = re.compile(r"[\w./:,@-]+")


def read_server(text: str, what: str, error: type[LaprasError]) -> URL:
    """
    The parts of ``postgresql://user:password@host:port/name``.

    Parameters
    ----------
    text : str
    what : str
        What it is the address of, for messages.
    error : type
        Raised where it cannot be read, or a part of it was not meant to be one, such as the end of a
        password as a host.  Nothing behind the scheme is quoted.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, _, rest = text.partition("://")
    kind = scheme.partition("+")[0]
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise error(f"{what} {kind}://… cannot be read: {FORM}") from None
    start, _, query = rest.partition("?")
    if start.count("@") > 1 or "@" in query or any("=" not in pair for pair in query.split("&") if pair):
        raise error(f"{what} {kind}://… cannot be read: write @ in a password as %40, / as %2F and ? as %3F")
    if not rest.isprintable() or (url.host and not _HOST.fullmatch(url.host)):
        raise error(f"{what} {kind}://… cannot be read: {FORM}")
    if url.port is not None and not 0 < url.port < 2**16:
        raise error(f"{what} {kind}://… has a port that is none: {FORM}")
    return url


def shown(url: URL) -> str:
    """The parts of a server's address that are no secret, as far as they look like what they are."""
    user = f"{url.username}@" if url.username and _USER.fullmatch(url.username) else ""
    host = url.host or ""
    if ":" in host:
        host = f"[{host}]"
    port = "" if url.port is None else f":{url.port}"
    name = url.database if url.database and _NAME.fullmatch(url.database) else ""
    sockets = [value for value in values(url, "host") if _SOCKET.fullmatch(value)]
    return f"postgresql://{user}{host}{port}/{name}" + "".join(f"?host={value}" for value in sockets[:1])


def without_password(text: str) -> str:
    """An address as it may be written to a file."""
    from sqlalchemy import URL, make_url

    url = make_url(text)
    parts = (url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    return URL.create(*parts).render_as_string(hide_password=False)


def values(url: URL, key: str) -> tuple[str, ...]:
    """What the address gives for an option, as often as it is there."""
    found = url.query.get(key, ())
    return (found,) if isinstance(found, str) else tuple(found)


def reason(error: Exception) -> str | None:
    """What an error of the driver means, if it is known: nothing of what the server says is repeated."""
    known = STATES.get(getattr(error, "sqlstate", None) or "")
    return known or next((says for part, says in TEXTS.items() if part in str(error)), None)
