"""Learned predictions on real brushes: a user is left out, and asks the flights of 2015."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from experiments import brush, picture, points, skyserver, workflow
from experiments.data import Data
from experiments.experiment import Cell, Comparison, Row, Size
from experiments.study import TABLE, Episode, Study
from laprasdp import Answer, Budget, BudgetExhausted, Domain, Query, SeededNoise, open_session
from laprasdp.errors import LaprasError
from laprasdp.predict.forecast import make_forecast
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.log import Log
from laprasdp.predict.logged_shapes import logged_shapes
from laprasdp.predict.mixture import Mixture
from laprasdp.predict.model import Context, Spread
from laprasdp.predict.score import log_loss
from laprasdp.predict.template import Key
from laprasdp.sql.parse import parse
from laprasdp.stream.answer import expected_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = Budget(1.0, 1e-6)
SIZES = {
    "brushes": (0, 50, 100, 200, 500),
    "idebench": (0, 50, 100),  # 500 conjunctions of many attributes take minutes to design for
    "skyserver": (0, 50, 100),  # of 359 windows
}
STUDIES: dict[str, Callable[[Data, int, int], Study]] = {
    "brushes": brush.study,
    "idebench": workflow.study,
    "skyserver": skyserver.study,
}
SHORT = 100  # statements of brushes on which |P| is chosen, however long the stream is
COLUMNS = 20_000
_STUDIED: list[tuple[str, int, Sequence[int]]] = [
    ("brushes", 100, range(11)),
    ("brushes", 500, range(11)),
    ("idebench", 100, range(10)),
]
METHODS = ("primm", "static", "smooth")
PREDICTORS = ("none", "frequency", "learned", "oracle")
SHAPED = ("shape", "shapes", "shapes, learned")
"""Of brushes with primm: what they are is declared; the shapes of the log are; and some statements, too."""

BESIDE = 100  # statements beside learned shapes


Shapes = Sequence[str] | Mapping[str, float]


class Told(NamedTuple):
    """What a predictor says: λ of each query of P, the share of the stream in P, and its log-loss in nats."""

    counts: dict[Query, float]
    overlap: float | None = None
    log_loss: float | None = None

    def top(self, size: int) -> Told:
        """The most expected statements alone."""
        kept = dict(sorted(self.counts.items(), key=lambda pair: -pair[1])[:size])
        if self.overlap is None:
            return Told(kept)
        return Told(kept, self.overlap * sum(kept.values()) / sum(self.counts.values()), self.log_loss)


def measure(
    dataset: str, data: Data, place: int, horizon: int, methods: Sequence[str], seed: int
) -> list[Row]:
    """All methods and predictors on one stream."""
    study = STUDIES[dataset](data, place, horizon)
    brushed = dataset == "brushes"
    size = best_size(dataset, data, place if brushed else 0, min(horizon, SHORT) if brushed else horizon)
    log, stream = study.tested.log, queries(study.tested)
    rows, told = list[Row](), dict(_told(study.tested, horizon, size))

    def row(method: str, predictor: str, said: Told, kept: dict[Query, float], shapes: Shapes = ()) -> Row:
        found = answer(study.table, log.domain, stream, kept, said.overlap, method, horizon, seed, shapes)
        return {
            "dataset": dataset,
            "user": study.user[:8] if dataset == "brushes" else study.user,
            "S": horizon,
            "statements": len(stream),
            "method": method,
            "predictor": predictor,
            "size": size,
            "predictions": len(kept),
            "overlap": round(sum(query in kept for query in stream) / len(stream), 4),
            "log_loss": None if said.log_loss is None else round(said.log_loss, 4),
        } | found

    if brushed and "primm" in methods:
        learned = logged_shapes(log, horizon)
        for predictor, shapes in (("shape", ["ranges of one attribute"]), ("shapes", learned)):
            rows.append(row("primm", predictor, told["none"], {}, shapes))
        few = told["learned"].top(BESIDE)
        rows.append(row("primm", "shapes, learned", few, few.counts, learned))
    for method in methods:
        for predictor in PREDICTORS:
            said = told[predictor]
            kept = said.counts if method == "primm" else designable(said.counts)
            rows.append(row(method, predictor, said, kept))
    return [*rows, row("histogram-total", "none", told["none"], {})]


@lru_cache(maxsize=32)  # all workflows, and all streams of positions, have one training set
def best_size(dataset: str, data: Data, place: int, horizon: int) -> int:
    """
    The |P| of the least expected error of PRIMM, mean over streams that are held out of the log.

    No prediction is one of the sizes.  Expected errors need no data: the table is empty.
    """
    study = STUDIES[dataset](data, place, horizon)
    sizes = SIZES[dataset]
    errors = np.zeros(len(sizes))
    for episode in study.held_out:
        log, stream, predictor = episode.log, queries(episode), Mixture(horizon)
        predictor.fit(log)
        forecast = make_forecast(predictor, log, horizon, sizes[-1])
        for n, size in enumerate(sizes):
            top = forecast.top(size)
            overlap = top.overlap if size else None
            found = answer(study.table.iloc[:0], log.domain, stream, top.counts, overlap, "primm", horizon, 0)
            errors[n] += found["mae"]
    return sizes[int(np.argmin(errors))]


def queries(episode: Episode) -> list[Query]:
    """The stream, read by the parser."""
    read = lru_cache(maxsize=None)(lambda key: parse(key.text, episode.log.domain, TABLE).queries[0])
    return [read(key) for key in episode.stream]


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
    shapes: Shapes = (),
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
            release="gaussian",
            shapes=shapes,
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
        expected.append(expected_error(shown.std, shown.law, shown.parts))
        seen.append(abs(shown.value - exact[query]))
    return {
        "mae": round(float(np.mean(expected)), 4),
        "observed_mae": round(float(np.mean(seen)), 4),
        "answered": round(len(seen) / len(stream), 4),
        "note": None,
    }


def _told(tested: Episode, horizon: int, size: int) -> Iterator[tuple[str, Told]]:
    yield "none", Told({})
    log, stream = tested.log, queries(tested)
    after = _after(log, tested.stream)
    for name, predictor in (("frequency", Frequency()), ("learned", Mixture(horizon))):
        predictor.fit(log)
        forecast = make_forecast(predictor, log, horizon, max(size, 1)).top(size)
        spread = predictor.expected_counts(len(stream), Context())
        padded = np.pad(spread.known, (0, len(after.statements) - len(spread.known)))
        loss = log_loss(Spread(padded, spread.new), log, after)
        yield name, Told(forecast.counts, forecast.overlap if size else None, loss)
    times = Counter(stream)
    loss = -sum(count * math.log(count / len(stream)) for count in times.values()) / len(stream)
    yield "oracle", Told({query: float(count) for query, count in times.items()}, 1.0, loss)


def _after(log: Log, keys: Sequence[Key]) -> Log:
    """The lines of the user, with the statements of `log` first."""
    places = {key: place for place, key in enumerate(log.statements)}
    ids = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int32)
    return Log(log.domain, log.table, tuple(places), ids, None, np.zeros_like(ids))


@dataclass(frozen=True)
class Predictor:
    """The experiment."""

    name: str = "predictor"
    title: str = "Predictions learned from real logs"
    question: str = (
        "Three real logs, at (1, 1e-6). Brushes: eleven people brushed six views of flights (Battle et al. "
        "2020); each brush is a count of a range of whole bins of the product of the views, 102,000,000 "
        "cells; P is learned from ten people, and the eleventh asks. IDEBench: ten of the workflows that ask "
        "about states, learned from the twenty others, a count a state and filter, their first 100 "
        "statements. SkyServer: positions as windows of two degrees on a grid of one, learned from the first "
        "half, streams of 1,000 of the second half, of a made-up table of 360 cells. |P| is that of "
        "the least expected error on streams held out of the training lines. Static and smooth take the "
        "most expected queries that tell 20,000 columns apart at most. Of brushes, `shape` has no statements "
        "but the declaration that they are ranges of one attribute, `shapes` those of the log with their "
        "shares, and `shapes, learned` the 100 most expected statements beside. Errors are expectations from "
        "exact deviations; `observed_mae` has seeded noise."
    )
    claim: str = (
        "With PRIMM learned predictions close more than half of the gap between none and a perfect oracle "
        "where users ask alike, though they are made before the stream; plain frequencies do nearly the "
        "same. A scan of the sky, which never is where the last one was, is not foretold so. Static and "
        "Smooth gain little or nothing, since they can design for few of the predictions."
    )
    columns: Sequence[str] = (
        *("dataset", "user", "S", "method", "predictor", "predictions", "overlap", "mae", "observed_mae"),
        *("answered", "log_loss", "note"),
    )

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """One stream each."""
        plan: list[tuple[str, int, Sequence[int]]] = {
            "smallest": [("brushes", 10, [0])],
            "quick": [("brushes", 100, range(3)), ("idebench", 100, [1]), ("skyserver", 1000, [0])],
            "full": [*_STUDIED, ("skyserver", 1000, range(79))],
        }.get(size, [*_STUDIED, ("skyserver", 1000, range(0, 79, 8))])
        methods = METHODS[:1] if size == "smallest" else METHODS
        return [
            Cell(
                f"{dataset}/S{horizon}/{place}",
                partial(measure, dataset, data, place, horizon, methods, seed),
            )
            for dataset, horizon, places in plan
            for place in places
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows as they are."""
        return list(rows)

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Median error over the streams, a point for each predictor, with the least and the largest."""
        panels = list(dict.fromkeys((row["dataset"], row["S"]) for row in rows))
        grid = (2, 2) if len(panels) == 4 else (1, len(panels))
        for panel, axes in zip(panels, picture.panels(figure, *grid, height=3.4), strict=True):
            found: dict[tuple[str, str], list[float]] = {}
            for row in rows:
                if (row["dataset"], row["S"]) == panel and row["mae"] is not None:
                    found.setdefault((row["method"], row["predictor"]), []).append(row["mae"])
            methods = [one for one in (*METHODS, "histogram-total") if (one, "none") in found]
            chosen = {
                predictor: [found.get((method, predictor), []) for method in methods]
                for predictor in (*PREDICTORS, *SHAPED[:2])
            }
            points.points(
                axes, methods, chosen, title=f"{panel[0]}, S = {panel[1]}", x="median error, records"
            )
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
        )

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Nothing is printed for it."""
        return []


EXPERIMENT = Predictor()
