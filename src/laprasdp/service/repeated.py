"""Requests with an idempotency key: one that is sent again is answered as at first, and measured once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from laprasdp.service.accounts import Accounts
from laprasdp.service.accounts_tables import REPEATED
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined

_KEPT = 86400.0  # seconds that an answer is kept for its key


@dataclass(frozen=True)
class Repetition:
    """
    A request with a key.

    Attributes
    ----------
    known : bool
        It was sent before.
    entries : int
        Of the ledger before it was first asked.
    answer : str or None
        As it was sent; None where it was cut off, or is new.
    """

    known: bool
    entries: int
    answer: str | None


class Repeated:
    """The keys of one service's accounts; each is its principal's own."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._database = accounts, accounts.database

    def begin(self, who: Principal, key: str, request: str, entries: Callable[[], int]) -> Repetition:
        """
        Keep that a request begins, or find that it was sent before.

        Raises
        ------
        Declined
            The key is too long, or was used for another request.
        """
        if len(key) > 300 or not key.isprintable():
            raise Declined("invalid", "an idempotency key can be printed and has at most 200 characters")
        own = (REPEATED.c.principal == who.number, REPEATED.c.key == key)
        now, start = self._accounts.clock(), entries()
        with self._database.transaction(write=True) as connection:
            self._database.lock_schema(connection)
            connection.execute(delete(REPEATED).where(REPEATED.c.made < now - _KEPT))
            row = connection.execute(select(REPEATED).where(*own)).one_or_none()
            if row is not None:
                if row.request != request:
                    raise Declined(
                        "mismatch", "this idempotency key belongs to another request: take a new one"
                    )
                return Repetition(True, row.entries, row.answer)
            values = {"principal": who.number, "key": key, "request": request, "entries": start, "made": now}
            connection.execute(insert(REPEATED).values(values))
        return Repetition(False, start, None)

    def end(self, who: Principal, key: str, answer: str) -> None:
        """Keep the answer."""
        own = (REPEATED.c.principal == who.number, REPEATED.c.key == key)
        with self._database.transaction(write=True) as connection:
            connection.execute(update(REPEATED).where(*own).values(answer=answer))
