"""Predictions that a curator has set in the service: they can be changed until the ledger is begun."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from laprasdp.queries.prediction import Prediction
from laprasdp.service.accounts import Accounts
from laprasdp.service.accounts_tables import DRAFTED
from laprasdp.service.problem import Declined

_SETTLED = "a curator has pressed Begin: the predictions stay as long as the ledger's budget"


class Drafted:
    """
    The predictions of one table, in the service's accounts: several processes see the same.

    Parameters
    ----------
    accounts : Accounts
    name : str
        Of the table.

    Notes
    -----
    **Privacy.**  Nothing of a table: statements that people wrote before anybody read it.
    """

    def __init__(self, accounts: Accounts, name: str) -> None:
        self._database, self._name = accounts.database, name

    def predictions(self) -> tuple[Prediction, ...] | None:
        """What was set; None where those of `lapras.toml` hold."""
        with self._database.transaction(write=False) as connection:
            text = connection.execute(
                select(DRAFTED.c.predictions).where(DRAFTED.c.name == self._name)
            ).scalar()
        return None if text is None else written(json.loads(text))

    def set(self, predictions: Sequence[Prediction]) -> None:
        """
        Set all of them anew.

        Raises
        ------
        Declined
            They are settled.
        """
        text = json.dumps([[one.text, one.expected] for one in predictions])
        with self._database.transaction(write=True) as connection:
            if self._row(connection).settled:
                raise Declined("begun", _SETTLED)
            connection.execute(update(DRAFTED).where(DRAFTED.c.name == self._name).values(predictions=text))

    def settle(self) -> None:
        """Let nobody change them any more."""
        self._settle(True)

    def release(self) -> None:
        """Let them be changed again, since the ledger could not be begun."""
        self._settle(False)

    def _settle(self, settled: bool) -> None:
        with self._database.transaction(write=True) as connection:
            self._row(connection)
            connection.execute(update(DRAFTED).where(DRAFTED.c.name == self._name).values(settled=settled))

    def _row(self, connection: Connection) -> Any:
        """The row of the table, made where there is none; nobody else changes it in this transaction."""
        self._database.lock_schema(connection)
        asked = select(DRAFTED).where(DRAFTED.c.name == self._name)
        row = connection.execute(asked).one_or_none()
        if row is None:
            connection.execute(insert(DRAFTED).values(name=self._name, settled=False))
            row = connection.execute(asked).one()
        return row


def written(rows: Sequence[tuple[str, float | None]]) -> tuple[Prediction, ...]:
    """Predictions from statements and how often each is expected."""
    return tuple(
        Prediction(text, expected=expected, place=f"prediction {n}")
        for n, (text, expected) in enumerate(rows, start=1)
    )
