"""Learned predictions on real brushes: a user is left out, and asks the flights of 2015."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from experiments import picture
from experiments.brush import TABLE, brushes, log_of
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from laprasdp import Answer, Budget, BudgetExhausted, Domain, Query, SeededNoise, open_session
from laprasdp.answer import expected_error
from laprasdp.datasets import path
from laprasdp.errors import LaprasError
from laprasdp.predict.forecast import make_forecast
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.log import Log
from laprasdp.predict.mixture import Mixture
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.score import log_loss
from laprasdp.predict.template import Key
from laprasdp.sql.parse import parse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = Budget(1.0, 1e-6)
USERS, HORIZONS, SIZE = 11, (100, 500), 500
COLUMNS = 20_000
METHODS = ("primm", "static", "smooth")
PREDICTORS = ("none", "frequency", "learned", "oracle")


class Told(NamedTuple):
    """What a predictor says: λ of each query of P, the share of the stream in P, and its log-loss in nats."""

    counts: dict[Query, float]
    overlap: float | None = None
    log_loss: float | None = None


def measure(data: Data, user: int, horizon: int, methods: Sequence[str], seed: int) -> list[Row]:
    """All methods and predictors on the first `horizon` brushes of one user."""
    data.file("workloads/crossfilter_traces.parquet")
    domain, users = brushes(data.file("workloads"), "flights")
    name = list(users)[user]
    keys = [key for _, key in users[name]][:horizon]
    log = log_of(domain, {other: own for other, own in users.items() if other != name})
    stream = [parse(key.text, domain, TABLE).queries[0] for key in keys]
    rows, told, table = list[Row](), dict(_told(log, keys, stream, horizon)), flights()
    for method in methods:
        for predictor in PREDICTORS:
            said = told[predictor]
            kept = said.counts if method == "primm" else designable(said.counts)
            found = answer(table, domain, stream, kept, said.overlap, method, horizon, seed)
            rows.append(_row(name, horizon, method, predictor, said.log_loss, stream, kept) | found)
    found = answer(table, domain, stream, {}, None, "histogram-total", horizon, seed)
    return [*rows, _row(name, horizon, "histogram-total", "none", None, stream, {}) | found]


def flights() -> pd.DataFrame:
    """The real table, times of day as hours, as the views of the study showed them."""
    table = pd.read_parquet(path("flights"))
    for column in ("ARR_TIME", "DEP_TIME"):
        table[column] = table[column] // 100 % 24
    return table


def designable(counts: dict[Query, float]) -> dict[Query, float]:
    """
    The most expected queries, as many as a matrix release is designed for in seconds.

    Brushes name one attribute each, so the distinct columns are all combinations of the attributes' classes.
    """
    kept, classes = dict[Query, float](), dict[int, Any]()
    for query, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        more = {
            axis: np.unique(
                np.column_stack([classes.get(axis, np.zeros(len(labels))), labels]),
                axis=0,
                return_inverse=True,
            )[1].reshape(-1)
            for axis, labels in zip(query.axes, query.labels, strict=True)
        }
        if math.prod(int(found.max()) + 1 for found in (classes | more).values()) <= COLUMNS:
            classes |= more
            kept[query] = count
    return kept


def answer(
    table: pd.DataFrame,
    domain: Domain,
    stream: Sequence[Query],
    counts: dict[Query, float],
    overlap: float | None,
    method: str,
    horizon: int,
    seed: int,
) -> Row:
    """Mean expected error from exact deviations, and the error that was seen with seeded noise."""
    exact = dict[Query, int]()
    try:
        session = open_session(
            table,
            domain,
            budget=BUDGET,
            horizon=horizon,
            predictions=list(counts),
            expected=list(counts.values()),
            overlap=overlap,
            policy=method,
            name=TABLE,
            public=True,
            noise=SeededNoise(seed),
        )
    except LaprasError as refusal:
        return {"mae": None, "observed_mae": None, "answered": 0.0, "note": str(refusal)}
    expected, seen = list[float](), list[float]()
    for query in stream:
        try:
            shown = session.ask(query)
        except BudgetExhausted:
            continue
        assert isinstance(shown, Answer)
        if query not in exact:
            exact[query] = query.answer(session.table.marginal(query.axes))
        expected.append(expected_error(shown.std, shown.law))
        seen.append(abs(shown.value - exact[query]))
    return {
        "mae": round(float(np.mean(expected)), 4),
        "observed_mae": round(float(np.mean(seen)), 4),
        "answered": round(len(seen) / len(stream), 4),
        "note": None,
    }


def _told(log: Log, keys: Sequence[Key], stream: Sequence[Query], horizon: int) -> Iterator[tuple[str, Told]]:
    yield "none", Told({})
    after = _after(log, keys)
    for name, predictor in (("frequency", Frequency()), ("learned", Mixture(horizon))):
        predictor.fit(log)
        forecast = make_forecast(predictor, log, horizon, SIZE)
        spread = predictor.expected_counts(len(keys), Context())
        padded = np.pad(spread.known, (0, len(after.statements) - len(spread.known)))
        loss = log_loss(Spread(padded, spread.new), log, after)
        yield name, Told(forecast.counts, forecast.overlap, loss)
    times = Counter(stream)
    loss = -sum(count * math.log(count / len(stream)) for count in times.values()) / len(stream)
    yield "oracle", Told({query: float(count) for query, count in times.items()}, 1.0, loss)


def _after(log: Log, keys: Sequence[Key]) -> Log:
    """The lines of the user, with the statements of `log` first."""
    places = {key: place for place, key in enumerate(log.statements)}
    ids = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int32)
    return Log(log.domain, log.table, tuple(places), ids, None, np.zeros_like(ids))


def _row(
    user: str,
    horizon: int,
    method: str,
    predictor: str,
    loss: float | None,
    stream: Sequence[Query],
    kept: dict[Query, float],
) -> Row:
    return {
        "user": user[:8],
        "S": horizon,
        "statements": len(stream),
        "method": method,
        "predictor": predictor,
        "predictions": len(kept),
        "overlap": round(sum(query in kept for query in stream) / len(stream), 4),
        "log_loss": None if loss is None else round(loss, 4),
    }


@dataclass(frozen=True)
class Predictor:
    """The experiment."""

    name: str = "predictor"
    title: str = "Predictions learned from real brushes"
    question: str = (
        "Eleven people brushed six views of flights (Battle et al. 2020). Each brush is a count of a range "
        "of whole bins; the domain is the product of the six views, 102,000,000 cells. P is learned from ten "
        "people, the 500 statements most expected, and the eleventh asks the real table, at (1, 1e-6). "
        "Static and smooth take the most expected queries that tell 20,000 columns apart at most. Errors are "
        "expectations from exact deviations; `observed_mae` has seeded noise."
    )
    claim: str = (
        "With PRIMM the learned predictions close more than half of the gap between none and a perfect "
        "oracle, though they are made before the stream; plain frequencies do nearly the same. Static and "
        "Smooth gain little or nothing, since they can design for few of the predictions."
    )
    columns: Sequence[str] = (
        *("user", "S", "method", "predictor", "predictions", "overlap", "mae", "observed_mae"),
        *("answered", "log_loss", "note"),
    )

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One user at one horizon each."""
        users = {"smallest": 1, "quick": 3}.get(size, USERS)
        horizons = {"smallest": (10,), "quick": HORIZONS[:1]}.get(size, HORIZONS)
        methods = METHODS[:1] if size == "smallest" else METHODS
        return [
            Cell(f"S{horizon}/{user}", partial(measure, data, user, horizon, methods, seed))
            for horizon in horizons
            for user in range(users)
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows as they are."""
        return list(rows)

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Median error over the users for each predictor, with the least and the largest."""
        horizons = sorted({row["S"] for row in rows})
        for horizon, axes in zip(horizons, picture.panels(figure, 1, len(horizons)), strict=True):
            bars = []
            for method in METHODS:
                for predictor in PREDICTORS:
                    errors = [
                        row["mae"]
                        for row in rows
                        if (row["S"], row["method"], row["predictor"]) == (horizon, method, predictor)
                        and row["mae"] is not None
                    ]
                    if errors:
                        low, high = min(errors), max(errors)
                        label = f"{method}, {predictor}"
                        bars.append(picture.Bar(label, median(errors), low, high, method=method))
            picture.bars(axes, bars, title=f"Brushes, S = {horizon}", x="median error over users, records")

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Nothing is printed for it."""
        return []


EXPERIMENT = Predictor()
