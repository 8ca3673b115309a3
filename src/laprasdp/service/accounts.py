"""Accounts: principals, their tokens and browsers, in tables of their own; of a secret the digest is kept.

A token and a cookie are 256 random bits, so a plain SHA-256 of them cannot be guessed back.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Float, Select, Text, bindparam, delete, insert, select, update

from laprasdp.errors import DomainError
from laprasdp.ledger.database import Database
from laprasdp.ledger.tables import migration
from laprasdp.service import accounts_tables
from laprasdp.service.accounts_tables import BROWSER, PRINCIPAL, TOKEN, is_current
from laprasdp.service.principal import ROLES, Principal, Token

PREFIX = "lapras_"
"""What a token begins with, so that one in a wrong place is noticed."""
BY_IDENTITY = "signed in by the identity provider"
"""The name of the token of which browsers are that an identity provider has let in."""
_SEEN = 60.0  # seconds: how exactly it is kept when somebody came last
_DIGEST, _NOW = bindparam("of_digest", type_=Text), bindparam("at_now", type_=Float)
_ALIVE = (
    TOKEN.c.revoked.is_(None),
    TOKEN.c.expires.is_(None) | (TOKEN.c.expires > _NOW),
    PRINCIPAL.c.active,
)
_ENTERED = select(PRINCIPAL).join(TOKEN, TOKEN.c.principal == PRINCIPAL.c.id).where(*_ALIVE)
_BY_TOKEN = _ENTERED.where(TOKEN.c.digest == _DIGEST)
_BY_BROWSER = _ENTERED.join(BROWSER, BROWSER.c.token == TOKEN.c.id).where(
    BROWSER.c.digest == _DIGEST, BROWSER.c.expires > _NOW
)


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Accounts:
    """
    Who may do what.

    Parameters
    ----------
    where : str or path
        A SQLite file of its own, or a PostgreSQL database, which may be that of a ledger.
    clock : callable
        Seconds since 1970.
    """

    def __init__(self, where: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self.database, self.clock = Database(where, 10.0, what="the accounts"), clock
        with self.database.transaction(write=False) as connection:
            current = is_current(connection)
        if not current:
            upgrade = migration(accounts_tables.__file__)
            with self.database.transaction(write=True) as connection:
                self.database.lock_schema(connection)
                if not is_current(connection):
                    upgrade(connection)
        self.database.keep_log()

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def principals(self) -> list[Principal]:
        """Everybody, by name."""
        with self.database.transaction(write=False) as connection:
            return [
                _principal(row) for row in connection.execute(select(PRINCIPAL).order_by(PRINCIPAL.c.name))
            ]

    def named(self, name: str) -> Principal | None:
        """The principal of this name."""
        with self.database.transaction(write=False) as connection:
            return _found(connection, name)

    def add(self, name: str, role: str, cap: float | None = None) -> Principal:
        """
        A new principal, who has no token yet.

        Raises
        ------
        DomainError
            The name is taken or none, there is no such role, or the cap is no ε or is missing.
        """
        _check(name, role, cap)
        with self.database.transaction(write=True) as connection:
            self.database.lock_schema(connection)
            if _found(connection, name) is not None:
                raise DomainError(f"there is somebody of the name {name!r}: names are never given twice")
            row = {"name": name, "role": role, "cap": cap, "active": True, "made": self.clock()}
            connection.execute(insert(PRINCIPAL).values(row))
            made = _found(connection, name)
        assert made is not None
        return made

    def change(self, name: str, *, cap: float | None = None, active: bool | None = None) -> Principal:
        """
        Another cap, or nobody to be let in; a role never changes, since it says what the ledger's name did.

        Raises
        ------
        DomainError
            There is nobody of this name, or the cap makes no sense.
        """
        with self.database.transaction(write=True) as connection:
            before = _wanted(connection, name)
            _check(name, before.role, before.cap if cap is None else cap)
            values: dict[str, Any] = {} if cap is None else {"cap": cap}
            values |= {} if active is None else {"active": active}
            if values:
                connection.execute(update(PRINCIPAL).where(PRINCIPAL.c.id == before.number).values(values))
            return _wanted(connection, name)

    def issue(self, name: str, label: str, *, days: float | None = 90.0) -> str:
        """
        A new token of a principal: the only time that it is shown.

        Raises
        ------
        DomainError
            There is nobody of this name; the label is none; or it would expire at once.
        """
        if not (label.strip() and label.isprintable() and len(label) <= 100) or label == BY_IDENTITY:
            raise DomainError("a token has a name that can be printed, of at most 100 characters")
        if days is not None and not 0 < days <= 3660:
            raise DomainError("a token expires after up to 3660 days")
        secret, now = PREFIX + secrets.token_urlsafe(32), self.clock()
        with self.database.transaction(write=True) as connection:
            of = _wanted(connection, name)
            expires = None if days is None else now + days * 86400
            row = {"principal": of.number, "name": label, "digest": digest_of(secret), "made": now}
            connection.execute(insert(TOKEN).values({**row, "expires": expires}))
        return secret

    def tokens(self, name: str) -> list[Token]:
        """The tokens of a principal, the newest first."""
        with self.database.transaction(write=False) as connection:
            of = _wanted(connection, name)
            rows = connection.execute(
                select(TOKEN).where(TOKEN.c.principal == of.number).order_by(TOKEN.c.id.desc())
            )
            return [Token(row.id, row.name, row.made, row.expires, row.revoked) for row in rows]

    def revoke(self, name: str, number: int) -> None:
        """
        Let nobody in by this token, nor by a browser that was signed in with it, from now on.

        Raises
        ------
        DomainError
            The principal has no such token.
        """
        with self.database.transaction(write=True) as connection:
            own = (TOKEN.c.id == number, TOKEN.c.principal == _wanted(connection, name).number)
            if connection.execute(select(TOKEN.c.id).where(*own)).scalar() is None:
                raise DomainError(f"{name} has no token {number}")
            connection.execute(
                update(TOKEN).where(*own, TOKEN.c.revoked.is_(None)).values(revoked=self.clock())
            )
            connection.execute(delete(BROWSER).where(BROWSER.c.token == number))

    def by_token(self, secret: str) -> Principal | None:
        """Whom a token lets in now."""
        return self._entered(_BY_TOKEN, secret)

    def by_browser(self, cookie: str) -> Principal | None:
        """Whom a browser's cookie lets in now."""
        return self._entered(_BY_BROWSER, cookie)

    def sign_in(self, secret: str, *, hours: float) -> str | None:
        """The cookie of a browser that shows a token; None where that lets nobody in."""
        if self.by_token(secret) is None:
            return None
        with self.database.transaction(write=True) as connection:
            token = connection.execute(select(TOKEN.c.id).where(TOKEN.c.digest == digest_of(secret)))
            return self._browser(connection, token.scalar_one(), hours)

    def sign_in_as(self, name: str, *, hours: float) -> str:
        """
        The cookie of a browser of whom an identity provider has named.

        Its token is one of the principal's, of which nobody has the secret: revoked, it ends all of them.

        Raises
        ------
        DomainError
            There is nobody of this name.
        """
        now = self.clock()
        with self.database.transaction(write=True) as connection:
            of = _wanted(connection, name)
            own = (TOKEN.c.principal == of.number, TOKEN.c.name == BY_IDENTITY, TOKEN.c.revoked.is_(None))
            token = connection.execute(select(TOKEN.c.id).where(*own)).scalars().first()
            until = {"expires": now + hours * 3600}
            if token is None:
                digest = digest_of(secrets.token_urlsafe(32))
                row = {"principal": of.number, "name": BY_IDENTITY, "digest": digest, "made": now, **until}
                token = connection.execute(insert(TOKEN).values(row).returning(TOKEN.c.id)).scalar_one()
            else:
                connection.execute(update(TOKEN).where(TOKEN.c.id == token).values(until))
            return self._browser(connection, token, hours)

    def _browser(self, connection: Connection, token: int, hours: float) -> str:
        cookie, now = secrets.token_urlsafe(32), self.clock()
        connection.execute(delete(BROWSER).where(BROWSER.c.expires <= now))
        row = {"digest": digest_of(cookie), "token": token, "expires": now + hours * 3600}
        connection.execute(insert(BROWSER).values(row))
        return cookie

    def sign_out(self, cookie: str) -> None:
        """Forget a browser."""
        with self.database.transaction(write=True) as connection:
            connection.execute(delete(BROWSER).where(BROWSER.c.digest == digest_of(cookie)))

    def _entered(self, how: Select[Any], secret: str) -> Principal | None:
        now = self.clock()
        rows = self.database.look(how, {"of_digest": digest_of(secret), "at_now": now})
        if not rows:
            return None
        number, name, role, cap, active, made, seen = rows[0]
        found = Principal(number, name, role, cap, bool(active), made, seen)
        if found.seen is None or now - found.seen > _SEEN:
            with self.database.transaction(write=True) as connection:
                connection.execute(update(PRINCIPAL).where(PRINCIPAL.c.id == found.number).values(seen=now))
        return found


def _principal(row: Any) -> Principal:
    return Principal(row.id, row.name, row.role, row.cap, bool(row.active), row.made, row.seen)


def _found(connection: Connection, name: str) -> Principal | None:
    row = connection.execute(select(PRINCIPAL).where(PRINCIPAL.c.name == name)).one_or_none()
    return None if row is None else _principal(row)


def _wanted(connection: Connection, name: str) -> Principal:
    found = _found(connection, name)
    if found is None:
        raise DomainError(f"there is nobody of the name {name!r}")
    return found


def _check(name: str, role: str, cap: float | None) -> None:
    if not (name.strip() and name.isprintable() and len(name) <= 100 and "/" not in name):
        raise DomainError("a name can be printed, has no slash and at most 100 characters")
    if role not in ROLES:
        raise DomainError(f"there is no role {role!r}; there are {', '.join(ROLES)}")
    if cap is not None and not (math.isfinite(cap) and 0 < cap <= 1e6):
        raise DomainError("a cap is an ε above 0")
    if role == "service" and cap is None:
        raise DomainError("a program that asks needs a cap")
