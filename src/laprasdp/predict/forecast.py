"""A forecast: the statements that are expected, how often, and what is expected beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.policy.query_shapes import are_shapes, kept_shapes, shapes_of
from laprasdp.predict.askable import meaning
from laprasdp.predict.log import Log, Provenance, provenance_named
from laprasdp.predict.model import Context, Predictor
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import Prediction
from laprasdp.queries.query import Query
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.predictions import predicted
from laprasdp.whole import write_whole

FORMAT, VERSION = "laprasdp predictions", 1


@dataclass(frozen=True)
class Forecast:
    """
    What the next S statements will be.

    Attributes
    ----------
    predictions : tuple of Prediction
        The prediction set P, read and counted, the most expected statement first; no two mean the same.
    unpredicted : float
        B₀, how many of the S statements are expected to be none of them.
    horizon : int
        S.
    table : str
    domain : Domain
    provenance : {"public", "private-answers"}
        Where the log came from.
    shapes : mapping of str to float
        The shapes that are expected, with their shares; none where none were learned.
    """

    predictions: tuple[Prediction, ...]
    unpredicted: float
    horizon: int
    table: str
    domain: Domain
    provenance: Provenance
    shapes: Mapping[str, float] = field(default_factory=dict)

    @property
    def overlap(self) -> float:
        """Expected share of the stream that is predicted, 1 − B₀/S."""
        return min(max(1 - self.unpredicted / self.horizon, 0.0), 1.0)

    @property
    def counts(self) -> dict[Query, float]:
        """
        How often each query of the prediction set is expected, in the order of `read_predictions`.

        A group of a GROUP BY is asked whenever its statement is; queries that no cell can match are left out.
        """
        counts: dict[Query, float] = {}
        for one in self.predictions:
            for query in one.queries:
                if not query.is_zero:
                    counts[query] = counts.get(query, 0.0) + _count(one)
        return counts

    def stretched(self, horizon: int) -> Forecast:
        """The same shares of a stream of another length."""
        factor = horizon / self.horizon
        return replace(
            self,
            predictions=tuple(replace(one, expected=_count(one) * factor) for one in self.predictions),
            unpredicted=self.unpredicted * factor,
            horizon=horizon,
        )

    def top(self, count: int) -> Forecast:
        """The forecast with the `count` most expected statements only."""
        kept, left = self.predictions[:count], self.predictions[count:]
        return replace(self, predictions=kept, unpredicted=self.unpredicted + sum(map(_count, left)))


def make_forecast(
    predictor: Predictor, log: Log, horizon: int, count: int, context: Context | None = None
) -> Forecast:
    """
    The prediction set of `count` statements that is expected to hold the most of the stream.

    Every statement in it has been read by the parser; those that mean the same are one, with the sum of
    their expected counts.
    """
    if horizon < 1 or count < 1:
        raise ConfigError(
            f"the horizon and the number of predictions are at least 1, not {horizon} and {count}"
        )
    found: dict[bytes, tuple[Statement, float]] = {}
    spread = predictor.expected_counts(horizon, context or Context())
    reader = Reader(log.domain, log.table)
    for key, expected in spread.ranked(log, 2 * count + 50):
        try:
            statement = reader.parse(key.text)
        except UnsupportedQuery:
            continue
        if expected <= 0 or all(query.is_zero for query in statement.queries):
            continue
        mark = meaning(statement)
        first, sofar = found.get(mark, (statement, 0.0))
        found[mark] = first, sofar + expected
    best = sorted(found.values(), key=lambda pair: -pair[1])[:count]
    listed = tuple(predicted(statement, expected, statement.text) for statement, expected in best)
    rest = max(horizon - sum(map(_count, listed)), 0.0)
    return Forecast(listed, rest, horizon, log.table, log.domain, log.provenance)


def write_forecast(
    forecast: Forecast, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None
) -> None:
    """Write a forecast as JSON, whole or not at all; `about` is kept under "about" for people to read."""
    row = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": forecast.provenance,
        "table": forecast.table,
        "domain": forecast.domain.fingerprint,
        "horizon": forecast.horizon,
        "unpredicted": forecast.unpredicted,
        "shapes": dict(forecast.shapes),
        "about": dict(about or {}),
        "predictions": [{"query": one.text, "expected": one.expected} for one in forecast.predictions],
    }
    text = json.dumps(row, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(path, text + "\n")


def read_forecast(path: str | os.PathLike[str], domain: Domain, table: str) -> Forecast:
    """
    Read a forecast that `write_forecast` wrote.

    Raises
    ------
    ConfigError
        There is no such file, it is no forecast, it is one of another version, or it was made for another
        domain or table: its statements might not be askable any more, or mean something else.
    """
    try:
        row = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except ValueError:
        raise ConfigError(f"{path} is not JSON") from None
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise ConfigError(f"{path} holds no predictions; `lapras predict fit LOG -o {path}` writes some")
    if row.get("version") != VERSION:
        raise ConfigError(f"{path} has version {row.get('version')}; this is for version {VERSION}")
    again = "run `lapras predict fit` again"
    if row.get("domain") != domain.fingerprint:
        raise ConfigError(f"{path} was made for another domain than the declared one; {again}")
    if not isinstance(row.get("table"), str) or row["table"].casefold() != table.casefold():
        raise ConfigError(f"{path} was made for the table {row.get('table')}, not {table}; {again}")
    try:
        horizon, rest = row["horizon"], float(row["unpredicted"])
        given = [(one["query"], float(one["expected"])) for one in row["predictions"]]
        shapes = row.get("shapes", {})
        sound = isinstance(horizon, int) and horizon >= 1 and 0 <= rest <= horizon * (1 + 1e-9)
        sound &= isinstance(shapes, dict) and are_shapes(shapes)
        shapes = kept_shapes(shapes_of(shapes)) if sound else {}
        if not sound or not all(isinstance(text, str) and 0 <= count < 1e12 for text, count in given):
            raise ValueError
    except (ConfigError, KeyError, TypeError, ValueError):
        raise ConfigError(f"{path} has been changed by hand and is not sound; {again}") from None
    listed, reader = [], Reader(domain, table)
    for place, (text, count) in enumerate(given, start=1):
        try:
            listed.append(predicted(reader.parse(text), count, f"{path}: {text}"))
        except UnsupportedQuery as error:
            raise ConfigError(f"{path}: prediction {place}: {error}") from None
    provenance = provenance_named(row.get("provenance"))
    return Forecast(tuple(listed), rest, horizon, table, domain, provenance, shapes)


def _count(one: Prediction) -> float:
    return one.expected or 0.0
