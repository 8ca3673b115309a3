"""How good a predictor is: fitted on the past, and scored on the lines that came after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import ConfigError
from laprasdp.predict.log import Log
from laprasdp.predict.logged_shapes import covered, logged_shapes
from laprasdp.predict.model import Context, Predictor, Spread
from laprasdp.predict.template import Key

SIZES = (50, 100, 200, 500)
HELD_OUT = 0.25
BINS = 10


@dataclass(frozen=True)
class SizeScore:
    """
    Means over the windows, for a prediction set of one size.

    Attributes
    ----------
    size : int
        |P|.
    precision : float
        Share of P that was asked at all.
    recall : float
        Share of the different statements of a window that were in P.
    expected_overlap, overlap : float
        Share of the lines that were to be in P, and that were.
    """

    size: int
    precision: float
    recall: float
    expected_overlap: float
    overlap: float


@dataclass(frozen=True)
class Score:
    """
    Attributes
    ----------
    windows, horizon : int
        Each window is the next `horizon` lines after what the predictor was fitted on.
    log_loss : float
        Mean −ln of the share that was given to the statement that came, in nats; what was not predicted at
        all shares B₀/S evenly with as many statements as the log holds.
    expected_missing, missing : float
        Share of the lines whose statement the log did not hold: foretold, and found.
    calibration_error : float
        Mean |foretold − found| over the bins of `reliability`, weighted by their sizes.
    reliability : tuple of (float, float, int)
        For statements by their probability to be asked at all: mean probability, share asked, how many.
    sizes : tuple of SizeScore
    shapes : float
        Share of the lines that are of a shape that was learned, 0 where none were.
    """

    windows: int
    horizon: int
    log_loss: float
    expected_missing: float
    missing: float
    calibration_error: float
    reliability: tuple[tuple[float, float, int], ...]
    sizes: tuple[SizeScore, ...]
    shapes: float

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "sizes": [vars(size) for size in self.sizes]}


def score(
    make: Callable[[], Predictor],
    log: Log,
    horizon: int,
    *,
    windows: int = 5,
    step: Callable[[], None] = lambda: None,
) -> Score:
    """
    Score a predictor on the last quarter of a log.

    Parameters
    ----------
    make : callable
        A new predictor; one is fitted for each window, on all lines before it.
    log : Log
    horizon : int
        Lines in a window; fewer if the last quarter is shorter.
    windows : int
        At most; they are spread evenly over the last quarter and do not overlap.
    step : callable, optional
        Called after each window.

    Raises
    ------
    ConfigError
        The log has fewer than four lines.
    """
    if len(log) < 4:
        raise ConfigError(f"a log of {len(log)} lines is too short to score; at least 4 are needed")
    held = max(int(HELD_OUT * len(log)), 1)
    horizon = min(horizon, held)
    count = min(windows, held // horizon)
    origins = np.linspace(len(log) - held, len(log) - horizon, count).astype(int).tolist()
    losses, foretold, found, marks, rows, shaped = [], [], [], [], [], []
    for origin in origins:
        before, after = log.lines(0, origin), log.lines(origin, origin + horizon)
        predictor = make()
        predictor.fit(before)
        at = None if after.times is None else float(after.times[0])
        spread = predictor.expected_counts(horizon, Context(at=at))
        losses.append(log_loss(spread, before, after))
        shapes = logged_shapes(before, horizon)
        shaped.append(covered(shapes, after) if shapes else 0.0)
        foretold.append(predictor.missing_mass)
        asked_before = np.bincount(before.ids, minlength=len(log.statements)) > 0
        found.append(float(np.mean(~asked_before[after.ids])))
        ranked = list(spread.ranked(log, SIZES[-1]))
        lines = {log.statements[n]: k for n, k in enumerate(np.bincount(after.ids).tolist()) if k}
        chances = predictor.chances(np.array([value for _, value in ranked]))
        marks += [(chance, key in lines) for (key, _), chance in zip(ranked, chances.tolist(), strict=True)]
        rows.append([_overlap(ranked[:size], lines) for size in SIZES])
        step()
    reliability = _reliability(np.array(marks, dtype=float).reshape(-1, 2))
    number = max(sum(n for *_, n in reliability), 1)
    return Score(
        count,
        horizon,
        float(np.mean(losses)),
        float(np.mean(foretold)),
        float(np.mean(found)),
        sum(abs(a - b) * n for a, b, n in reliability) / number,
        reliability,
        tuple(map(SizeScore, SIZES, *np.mean(rows, axis=0).T.tolist())),
        float(np.mean(shaped)),
    )


def _overlap(chosen: Sequence[tuple[Key, float]], lines: Mapping[Key, int]) -> tuple[float, ...]:
    """What `SizeScore` says of one prediction set: expected counts, beside the lines that came."""
    horizon, hits = sum(lines.values()), sum(key in lines for key, _ in chosen)
    return (
        hits / max(len(chosen), 1),
        hits / len(lines),
        sum(value for _, value in chosen) / horizon,
        sum(lines.get(key, 0) for key, _ in chosen) / horizon,
    )


def log_loss(spread: Spread, before: Log, after: Log) -> float:
    """Mean −ln share of each line that came, given expected counts of as many lines."""
    horizon = len(after)
    rest = max(horizon - spread.total, 0.0) + 1e-9 * horizon
    distinct = max(len(np.unique(before.ids)), 1)
    values = spread.known[after.ids]
    if spread.new:
        more = [spread.new.get(after.statements[n], 0.0) for n in after.ids.tolist()]
        values = values + np.array(more)
    return float(-np.log(np.where(values > 0, values, rest / distinct) / horizon).mean())


def _reliability(marks: Floats) -> tuple[tuple[float, float, int], ...]:
    place = np.minimum((marks[:, 0] * BINS).astype(int), BINS - 1)
    return tuple(
        (float(marks[place == b, 0].mean()), float(marks[place == b, 1].mean()), int((place == b).sum()))
        for b in np.unique(place).tolist()
    )
