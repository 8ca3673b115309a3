"""The ledgers that a configuration names: one, or with windows one a period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from laprasdp.config.config import Config
from laprasdp.errors import ConfigError, LedgerError
from laprasdp.ledger.sql import SQLLedger
from laprasdp.periods.period import Part
from laprasdp.record.entries import Kept
from laprasdp.record.settings import Settings

PeriodName = str | None
"""The first date of a period; None where the table has none."""
Begun = tuple[Settings, Sequence[Kept]]
"""What a ledger was begun with, and its entries."""


def existing(config: Config, period: str | None) -> dict[PeriodName, SQLLedger]:
    """
    The ledgers that were begun, in the order of dates.

    Parameters
    ----------
    config : Config
    period : str, optional
        The one that is wanted; else all.

    Raises
    ------
    ConfigError
        There are no windows, or no ledger is declared.
    LedgerError
        Nothing was begun; the message says what is there.
    """
    place = config.kept()
    if config.windows is None:
        _check_windows(config, period)
        return {None: place.existing()}
    shelf, start = place.existing_shelf(), f"{config.name}@"
    there: dict[PeriodName, SQLLedger] = {
        name.removeprefix(start): shelf.ledger(name) for name in shelf.names() if name.startswith(start)
    }
    if period is None and there:
        return there
    if period not in there:
        what = f"period that begins on {period}" if period else "period"
        names = f"; there are {', '.join(map(str, there))}" if there else ""
        raise LedgerError(f"the ledger {shelf.database.name} has no {what} of {config.name}{names}")
    return {period: there[period]}


def has_begun(config: Config) -> bool:
    """Whether there is a ledger, or one of a period, that was begun with settings."""
    place = config.kept()
    if not place.begun:
        return False
    if config.windows is None:
        with closing(place.existing()) as ledger:
            return ledger.begun() is not None
    with closing(place.existing_shelf()) as shelf:
        return any(name.startswith(f"{config.name}@") for name in shelf.names())


def declared(config: Config, period: str) -> Part:
    """
    The period of this first date, as the configuration declares it.

    Raises
    ------
    ConfigError
        There is none.
    """
    _check_windows(config, period)
    assert config.windows is not None
    parts = config.windows.parts(config.domain)
    if period not in parts:
        raise ConfigError(
            f"{config.path} declares no period that begins on {period}; there are {', '.join(parts)}"
        )
    return parts[period]


def read(config: Config, parts: Iterable[Part | None]) -> tuple[str, dict[PeriodName, Begun]]:
    """
    What is kept, for reading only.

    Parameters
    ----------
    config : Config
    parts : iterable of Part
        Which periods; one None for a table that has none.

    Returns
    -------
    name : str
        Of the ledger.
    kept : dict of period to (settings, entries)
        Those it would begin with and no entries, where nothing was begun.
    """
    place = config.kept()
    shelf = place.existing_shelf() if place.begun else None
    names = [] if shelf is None else shelf.names()
    found: dict[PeriodName, Begun] = {}
    for part in parts:
        period = None if part is None else part.period.name
        dataset = place.dataset if part is None else f"{config.name}@{period}"
        if shelf is not None and (part is None or dataset in names):
            ledger = shelf.ledger(dataset)
            found[period] = ledger.dataset.settings, ledger.since(0)
        else:
            found[period] = config.policy_before(part)[0].settings(), []
    return str(place.where) if shelf is None else shelf.database.name, found


def _check_windows(config: Config, period: str | None) -> None:
    if config.windows is None and period is not None:
        raise ConfigError(f"{config.path} declares no [windows], so there is no period {period}")
