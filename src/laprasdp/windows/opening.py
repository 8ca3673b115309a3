"""Opening windows: the periods are declared, the table is read once, nothing is released yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from laprasdp.arguments import check_arguments
from laprasdp.data.table import Table
from laprasdp.domain import Domain
from laprasdp.errors import ConfigError
from laprasdp.ledger.ledger import Shelf
from laprasdp.ledger.memory import MemoryShelf
from laprasdp.pacing.pacing import Reading
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.query import Query
from laprasdp.session import DEFAULT_POLICY, now
from laprasdp.windows.period import Part, Period, dates_of, periods_of
from laprasdp.windows.slice import Slice
from laprasdp.windows.terms import Terms
from laprasdp.windows.windowed import WindowedSession

KEY = "periods"
"""Chooses a person's rows; always the same, so that a period has the same rows whenever it is opened."""


def open_windows(
    source: str | os.PathLike[str] | Any,
    domain: Domain,
    *,
    attribute: str,
    periods: int | str | Iterable[Period],
    budget: Budget,
    horizon: int | None = 100,
    predictions: Iterable[str | Query] = (),
    policy: str = DEFAULT_POLICY,
    accounting: str = "gaussian",
    split: str = "matrix-heavy",
    overlap: float | None = None,
    expected: Sequence[float] = (),
    reading: Reading | None = None,
    unit: PrivacyUnit | None = None,
    table: str | None = None,
    name: str | None = None,
    public: bool = False,
    noise: NoiseSource | None = None,
    ledger: Shelf | str | os.PathLike[str] | None = None,
    caps: Mapping[str, float] | None = None,
    clock: Callable[[], datetime] = now,
) -> WindowedSession:
    """
    Open a table that grows, in periods of a date attribute that have a budget each.

    Parameters
    ----------
    source : path, Arrow table, pandas or Polars data frame, or Table
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
    predictions : iterable of str or Query
        Over the whole domain; each period predicts what they ask of it.
    unit : PrivacyUnit, optional
        One row; or what one person has in one period, of which `max_rows` rows count.
    ledger : Shelf, path or URL, optional
        Where everything that is released is kept: a SQLite file, ``postgresql://…``, or a shelf; in memory
        otherwise.  Each period has a dataset there, ``name@first date``.
    caps : mapping of analyst to float, optional
        The ε of what may be measured of each period for each analyst.
    horizon, policy, accounting, split, overlap, expected, reading
        Of each period, as in `open_session`.
    table, name, public, noise, clock
        As in `open_session`.

    Raises
    ------
    LaprasError
        Something is declared wrongly, or otherwise than before, or cannot be read; the message says what.

    Examples
    --------
    >>> import pyarrow, datetime
    >>> from laprasdp.attribute import Dates
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
    given = dict(locals())
    check_arguments(shelf=given.pop("ledger"), **given)
    unit = unit or PrivacyUnit()
    declared = periods_of(dates_of(domain, attribute), attribute, periods)
    parts = [Part.of(domain, attribute, period) for period in declared]
    if isinstance(source, Table):
        if unit != source.unit or unit.column is not None:
            raise ConfigError("a ready table in periods has rows as its unit: give the source of its rows")
        opened = source
    else:
        starts = [part.start for part in parts]
        opened = _read(source, domain, table, name, unit, (attribute, starts))
    called = opened.name

    def read(part: Part, given: Any) -> Table:
        given = source if given is None else given
        if isinstance(given, Table):
            return given
        return _read(given, part.domain, table, called, unit)

    return WindowedSession(
        domain,
        attribute,
        declared,
        [Slice(opened, part) for part in parts],
        name=called,
        terms=Terms(
            budget,
            horizon,
            tuple(predictions) if not isinstance(predictions, str) else predictions,
            policy,
            accounting,
            split,
            overlap,
            expected,
            reading or Reading(),
            unit,
            caps or {},
        ),
        shelf=_shelf(ledger),
        noise=noise or ExactNoise(),
        public=public,
        read=read,
        step=periods if isinstance(periods, int | str) else None,
        clock=clock,
    )


def _read(
    source: Any,
    domain: Domain,
    table: str | None,
    name: str | None,
    unit: PrivacyUnit,
    apart: tuple[str, Sequence[int]] | None = None,
) -> Table:
    from laprasdp.data.duckdb import DuckDBTable

    where = Path(source) if isinstance(source, os.PathLike) else source
    return DuckDBTable(where, domain, table=table, name=name, unit=unit, key=KEY, apart=apart)


def _shelf(given: Shelf | str | os.PathLike[str] | None) -> Shelf:
    if given is None:
        return MemoryShelf()
    if not isinstance(given, str | os.PathLike):
        return given
    from laprasdp.ledger.sql import SQLShelf

    return SQLShelf(given)
