"""Opening a session: settings and predictions are checked, the table is found, nothing is released yet."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from laprasdp.data.dialect import Dialect
from laprasdp.data.table import Table
from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.ledger.ledger import Ledger
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.pacing.pacing import Reading
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.setting import Setting
from laprasdp.policy.stream import DEFAULT_POLICY
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import describe
from laprasdp.queries.query import Query
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.session import Session, now

KEY = "rows of persons"
"""Orders the rows of a person who has too many: the same at every opening, so that charges add up."""


def open_session(
    source: str | os.PathLike[str] | Any,
    domain: Domain,
    *,
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
    dialect: Dialect | None = None,
    public: bool = False,
    noise: NoiseSource | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    caps: Mapping[str, float] | None = None,
    clock: Callable[[], datetime] = now,
) -> Session:
    """
    Open a table for private questions.

    Parameters
    ----------
    source : path, Arrow table, pandas or Polars data frame, or Table
        A Parquet, CSV or JSON file, a DuckDB database with `table`, or a table in memory.
    domain : Domain
    budget : Budget
        (ε, δ) for everything that the session will ever release.
    horizon : int or None
        Statements that the budget is paced for; None where nobody knows, which primm allows.
    predictions : iterable of str or Query
        The queries that are expected; a GROUP BY predicts each of its groups.  They must not come from
        somebody who has seen the table.
    policy : str
        A name of `laprasdp.policy.catalog.POLICIES`.
    accounting : {"gaussian", "basic"}
        Gaussian DP on cells, or basic composition as in the paper.
    split : {"matrix-heavy", "query-heavy", "reserve-heavy", "equal"}
    overlap : float, optional
        Share of the stream that is expected to be predicted, where logs tell it; primm uses it.
    expected : sequence of float
        How often each of `predictions` is expected, where logs tell it; primm uses it.
    reading : Reading, optional
        How the paper is read where it is silent.
    unit : PrivacyUnit, optional
        One row, unless a column names persons.
    table : str, optional
        The table inside a DuckDB database.
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

    Raises
    ------
    LaprasError
        Something is declared wrongly or cannot be read; the message says what.
    """
    unit = unit or PrivacyUnit()
    if not isinstance(budget, Budget):
        raise ConfigError(f"budget must be a Budget, not {budget!r}")
    opened = source if isinstance(source, Table) else _opened(source, domain, table, name, unit, dialect)
    predicted = read_predictions(predictions, domain, opened.name, expected)
    setting = Setting(
        domain,
        budget,
        horizon,
        tuple(predicted),
        accounting=accounting,
        split=split,
        overlap=overlap,
        expected=tuple(one.count for one in predicted.values()) if expected else (),
        unit=unit,
        reading=reading or Reading(),
    )
    return Session(
        opened,
        policy_named(policy, setting),
        noise=noise or ExactNoise(),
        ledger=_ledger(ledger),
        public=public,
        predicted=[one.name for one in predicted.values()],
        caps=caps,
        clock=clock,
    )


@dataclass(frozen=True)
class Predicted:
    """How a predicted query is called, and how often it is expected."""

    name: str
    count: float


def read_predictions(
    predictions: Iterable[str | Query], domain: Domain, table: str, expected: Sequence[float] = ()
) -> dict[Query, Predicted]:
    """
    Predicted statements as distinct queries; what is predicted twice is expected as often as both together.

    Parameters
    ----------
    predictions : iterable of str or Query
    domain : Domain
    table : str
        How statements call the table.
    expected : sequence of float, optional
        How often each statement is expected; 1 where absent.

    Raises
    ------
    ConfigError
        There are not as many counts as predictions, or one is not positive.
    UnsupportedQuery
        A prediction cannot be asked, or no cell of the domain can match it; the message says which.
    """
    if isinstance(predictions, str):
        raise ConfigError("predictions are a list of statements, not one text")
    predictions = list(predictions)
    if expected and len(expected) != len(predictions):
        raise ConfigError(f"{len(predictions)} predictions, but {len(expected)} expected counts")
    counts = expected or [1.0] * len(predictions)
    found: dict[Query, Predicted] = {}
    reader = Reader(domain, table)
    for place, (prediction, count) in enumerate(zip(predictions, counts, strict=True), start=1):
        if not 0 < count < math.inf:
            raise ConfigError(f"prediction {place}: an expected count is a positive number, not {count!r}")
        try:
            if isinstance(prediction, Query):
                if prediction.domain != domain:
                    raise UnsupportedQuery("the query is over another domain")
                parsed = Statement(text=describe(prediction), queries=(prediction.canonical(),))
            else:
                parsed = reader.parse(prediction)
            if all(query.is_zero for query in parsed.queries):
                raise UnsupportedQuery("no cell of the declared domain can match it")
        except UnsupportedQuery as error:
            raise type(error)(f"prediction {place}: {error}") from None
        for index, query in enumerate(parsed.queries):
            if not query.is_zero:
                label = f" [{', '.join(map(str, parsed.groups[index]))}]" if parsed.by else ""
                known = found.get(query, Predicted(parsed.text + label, 0.0))
                found[query] = Predicted(known.name, known.count + count)
    return found


def _opened(
    source: Any,
    domain: Domain,
    table: str | None,
    name: str | None,
    unit: PrivacyUnit,
    dialect: Dialect | None,
) -> Table:
    from laprasdp.data.duckdb import DuckDBTable

    where = Path(source) if isinstance(source, os.PathLike) else source
    return DuckDBTable(where, domain, table=table, name=name, unit=unit, key=KEY, dialect=dialect)


def _ledger(given: Ledger | str | os.PathLike[str] | None) -> Ledger:
    if given is None:
        return MemoryLedger()
    if not isinstance(given, str | os.PathLike):
        return given
    from laprasdp.ledger.sql import SQLLedger

    return SQLLedger(given)
