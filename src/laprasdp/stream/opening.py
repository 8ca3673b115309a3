"""Opening a session: settings and predictions are checked, the table is found, nothing is released yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any

from laprasdp.arguments import checked
from laprasdp.data.dialect import Dialect
from laprasdp.data.open import open_table
from laprasdp.data.table import Table
from laprasdp.ledger.ledger import Ledger
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.stream import Stream
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.record.settings import as_begun
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader
from laprasdp.stream.predictions import read_predictions
from laprasdp.stream.session import Session, now

KEY = "rows of persons"
"""Orders the rows of a person who has too many: the same at every opening, so that charges add up."""


@checked()
def open_session(
    source: str | os.PathLike[str] | Any,
    domain: Domain,
    *,
    budget: Budget,
    stream: Stream | None = None,
    unit: PrivacyUnit | None = None,
    table: str | None = None,
    name: str | None = None,
    dialect: Dialect | None = None,
    public: bool = False,
    noise: NoiseSource | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    caps: Mapping[str, float] | None = None,
    clock: Callable[[], datetime] = now,
    lookups: Mapping[str, Lookup] | None = None,
    derived: Mapping[str, str] | None = None,
    moved_from: str | None = None,
    **options: Any,
) -> Session:
    """
    Open a table for private questions; ``with`` closes the session at the end of a block.

    Parameters
    ----------
    source : path, URL, Arrow table, pandas or Polars data frame, or Table
        A Parquet, CSV or JSON file, a table in memory, or with `table` a DuckDB database,
        ``postgresql://user@host/name``, ``spark://host:port``, ``sc://host:port`` or a `SparkSession`; or,
        experimental, a connection or table of Ibis, ``bigquery://``, ``clickhouse://``, ``snowflake://`` or
        ``trino://``.
    domain : Domain
    budget : Budget
        (ε, δ) for everything that the session will ever release.
    stream : Stream, optional
        How long the stream is, what is expected of it and how it is answered.
    unit : PrivacyUnit, optional
        One row, unless a column names persons.
    table : str, optional
        The table inside a database, as ``table`` or ``schema.table``.
    name : str, optional
        How statements call the table; the table's or the file's name otherwise.
    dialect : Dialect, optional
        How a text file is written; nothing of it is guessed.
    public : bool
        The table is public; only then may `noise` be seeded.
    noise : NoiseSource, optional
        OpenDP's exact samples otherwise.
    ledger : Ledger, path or URL, optional
        Where everything that is released is kept: a SQLite file, ``postgresql://…``, or a ledger; in memory
        otherwise.
    caps : mapping of analyst to float, optional
        The ε, at the budget's δ, of what may be measured for each analyst; only they may ask then.
    clock : callable
        The time for the ledger's stamps, in UTC; nothing is decided by it.
    lookups : mapping of name to Lookup, optional
        Public tables that statements may join.
    derived : mapping of name to str, optional
        Further columns that statements may name, as SQL of the attributes: ``{"month": "month(day)"}``.
    moved_from : str, optional
        The name under which the ledger may know the table, which stands elsewhere now.
    **options
        Fields of `stream` given one by one: ``horizon=200`` for ``stream=Stream(horizon=200)``; and
        ``expected``, how often each of ``predictions`` is expected.

    Raises
    ------
    LaprasError
        Something is declared wrongly or cannot be read; the message says what.
    """
    unit = unit or PrivacyUnit()
    stream = Stream.of(stream, options)
    kept = _ledger(ledger)
    with ExitStack() as failing:
        owned = failing.enter_context(ExitStack())
        if kept is not ledger:
            failing.callback(kept.close)
        begun, origin = kept.begun(), None
        unit = as_begun(unit, [] if begun is None else [begun])
        if isinstance(source, Table):
            opened = source
        else:
            rows = open_table(source, domain, table=table, name=name, unit=unit, key=KEY, dialect=dialect)
            opened, origin = owned.enter_context(rows), replace(rows.origin, moved_from=moved_from)
        reader = Reader(domain, opened.name, opened.types, lookups=lookups, derived=derived, unit=unit)
        predicted = read_predictions(stream.declared, reader)
        session = Session(
            opened,
            policy_named(stream.policy, stream.setting(domain, budget, unit, predicted)),
            noise=noise or ExactNoise(),
            ledger=kept,
            public=public,
            predicted=[one.text for one in predicted],
            caps=caps,
            clock=clock,
            owned=owned,
            reader=reader,
            origin=origin,
            post=stream.post,
        )
        failing.pop_all()
    return session


def _ledger(given: Ledger | str | os.PathLike[str] | None) -> Ledger:
    if given is None:
        return MemoryLedger()
    if not isinstance(given, str | os.PathLike):
        return given
    from laprasdp.ledger.sql import SQLLedger

    return SQLLedger(given)
