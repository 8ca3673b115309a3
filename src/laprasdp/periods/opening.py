"""Opening windows: the periods are declared, the table is read once, nothing is released yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any

from laprasdp.arguments import checked
from laprasdp.data.dialect import Dialect
from laprasdp.data.open import open_table
from laprasdp.data.table import Table
from laprasdp.errors import ConfigError
from laprasdp.ledger.ledger import Shelf
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.periods.declaration import Declaration
from laprasdp.periods.period import Part, Period, dates_of, periods_of
from laprasdp.periods.slice import Slice
from laprasdp.periods.windowed import WindowedSession
from laprasdp.policy.stream import Stream
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.record.settings import as_begun
from laprasdp.sql.lookup import Lookup
from laprasdp.stream.session import now

KEY = "periods"
"""Chooses a person's rows; always the same, so that a period has the same rows whenever it is opened."""


@checked(ledger="shelf")
def open_windows(
    source: str | os.PathLike[str] | Any,
    domain: Domain,
    *,
    attribute: str,
    periods: int | str | Iterable[Period],
    budget: Budget,
    stream: Stream | None = None,
    unit: PrivacyUnit | None = None,
    table: str | None = None,
    name: str | None = None,
    dialect: Dialect | None = None,
    public: bool = False,
    noise: NoiseSource | None = None,
    ledger: Shelf | str | os.PathLike[str] | None = None,
    caps: Mapping[str, float] | None = None,
    clock: Callable[[], datetime] = now,
    lookups: Mapping[str, Lookup] | None = None,
    derived: Mapping[str, str] | None = None,
    **options: Any,
) -> WindowedSession:
    """
    Open a table that grows, in periods of a date attribute that have a budget each.

    Parameters
    ----------
    source : path, URL, Arrow table, pandas or Polars data frame, or Table
        As in `open_session`.  A `Table` has rows as its unit.
    domain : Domain
        Its dates of `attribute` are those whose rows are all there: declare a later last date, and new
        periods begin with a budget of their own.
    attribute : str
        A date attribute without NULL.
    periods : int, str or iterable of Period
        A step, in days or "week", "month", "quarter", "year", from the attribute's first date to its last; or
        the periods, one after another.
    budget : Budget
        (ε, δ) for everything that will ever be released of one period.
    stream : Stream, optional
        Of each period, as in `open_session`.  Its predictions are over the whole domain; each period predicts
        what they ask of it.
    unit : PrivacyUnit, optional
        One row; or what one person has in one period, of which `max_rows` rows count.
    ledger : Shelf, path or URL, optional
        Where everything that is released is kept: a SQLite file, ``postgresql://…``, or a shelf; in memory
        otherwise.  Each period has a dataset there, ``name@first date``.
    caps : mapping of analyst to float, optional
        The ε of what may be measured of each period for each analyst.
    table, name, dialect, public, noise, clock, lookups, derived, **options
        As in `open_session`.

    Raises
    ------
    LaprasError
        Something is declared wrongly, or otherwise than before, or cannot be read; the message says what.

    Examples
    --------
    >>> import pyarrow, datetime
    >>> from laprasdp.queries.attribute import Dates
    >>> days = [datetime.date(2024, month, 1) for month in (1, 1, 2)]
    >>> visits = pyarrow.table({"day": days})
    >>> session = open_windows(
    ...     visits,
    ...     Domain(day=Dates("2024-01-01", "2024-02-29")),
    ...     attribute="day",
    ...     periods="month",
    ...     budget=Budget(1, 1e-6),
    ...     name="visits",
    ... )
    >>> answer = session.ask("SELECT COUNT(*) FROM visits WHERE day < '2024-01-15'")
    >>> [spent > 0 for spent in session.spent.values()]
    [True, False]
    """
    unit = unit or PrivacyUnit()
    declared = Stream.of(stream, options)
    owned, shelf = ExitStack(), _shelf(ledger)
    begun = shelf.settings().items()
    unit = as_begun(unit, [kept for at, kept in begun if name is None or at.startswith(f"{name}@")])
    rows = partial(open_table, table=table, unit=unit, key=KEY, dialect=dialect)
    found = periods_of(dates_of(domain, attribute), attribute, periods)
    parts = [Part.of(domain, attribute, period) for period in found]
    if isinstance(source, Table):
        if unit != source.unit or unit.column is not None:
            raise ConfigError("a ready table in periods has rows as its unit: give the source of its rows")
        opened = source
    else:
        starts = [part.start for part in parts]
        opened = owned.enter_context(rows(source, domain, name=name, apart=(attribute, starts)))

    def read(part: Part, given: Any) -> Table:
        given = source if given is None else given
        if isinstance(given, Table):
            return given
        return owned.enter_context(rows(given, part.domain, name=opened.name))

    return WindowedSession(
        domain,
        attribute,
        found,
        [Slice(opened, part) for part in parts],
        name=opened.name,
        declaration=Declaration(budget, declared, unit, caps or {}, lookups or {}, derived or {}),
        shelf=shelf,
        noise=noise or ExactNoise(),
        public=public,
        read=read,
        step=periods if isinstance(periods, int | str) else None,
        clock=clock,
        owned=owned,
    )


def _shelf(given: Shelf | str | os.PathLike[str] | None) -> Shelf:
    if given is None:
        return MemoryShelf()
    if not isinstance(given, str | os.PathLike):
        return given
    from laprasdp.ledger.sql import SQLShelf

    return SQLShelf(given)
