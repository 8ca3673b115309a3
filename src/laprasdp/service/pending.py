"""Pending: browsers that were sent to the identity provider, each until it comes back, once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from laprasdp.service.accounts import Accounts, digest_of
from laprasdp.service.accounts_tables import PENDING

SECONDS = 600.0
"""How long somebody may take to sign in at the provider."""


@dataclass(frozen=True)
class Errand:
    """
    What a browser was sent with.

    Attributes
    ----------
    state : str
        Comes back with it; of this and of the cookie, the digest is kept.
    cookie : str
        Of the browser, so that no other can bring back its state.
    nonce : str
        Has to stand in what the provider signs.
    verifier : str
        Shows the provider that whoever fetches the answer has sent the browser (PKCE).
    """

    state: str
    cookie: str
    nonce: str
    verifier: str


class Pending:
    """The browsers that are away; several processes share them."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._database = accounts, accounts.database

    def send(self, errand: Errand) -> None:
        """Keep what a browser is sent with."""
        now = self._accounts.clock()
        row = {
            "state": digest_of(errand.state), "cookie": digest_of(errand.cookie), "nonce": errand.nonce,
            "verifier": errand.verifier, "expires": now + SECONDS,
        }  # fmt: skip
        with self._database.transaction(write=True) as connection:
            connection.execute(delete(PENDING).where(PENDING.c.expires <= now))
            connection.execute(insert(PENDING).values(row))

    def back(self, state: str, cookie: str) -> Errand | None:
        """What a browser was sent with that comes back; None where it was not, or is back already."""
        own = (PENDING.c.state == digest_of(state), PENDING.c.cookie == digest_of(cookie))
        with self._database.transaction(write=True) as connection:
            self._database.lock_schema(connection)
            row = connection.execute(select(PENDING).where(*own)).one_or_none()
            connection.execute(delete(PENDING).where(PENDING.c.state == digest_of(state)))
        if row is None or row.expires <= self._accounts.clock():
            return None
        return Errand(state, cookie, row.nonce, row.verifier)
