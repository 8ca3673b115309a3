"""`lapras predict`: learn from a log what the next stream will ask, and see how well that works."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laprasdp.cli.show import console, progress, shorten, table
from laprasdp.config import read_config

if TYPE_CHECKING:
    from laprasdp.predict.log import Log
    from laprasdp.predict.model import Predictor
    from laprasdp.predict.score import Score


@dataclass(frozen=True)
class Wanted:
    """What `fit` and `score` are asked for; None is what lapras.toml says."""

    log: Path
    config: Path
    log_is: str | None
    horizon: int | None
    model: str
    database_table: str | None
    columns: Mapping[str, str]
    multiline: bool


def fit(wanted: Wanted, count: int | None, out: Path, *, as_json: bool) -> int:
    """Write the predictions that a log supports."""
    from laprasdp.predict.forecast import make_forecast, write_forecast
    from laprasdp.predict.logged_shapes import logged_shapes

    settings = read_config(wanted.config, predictions=False)
    horizon, count = wanted.horizon or settings.stream.horizon or 100, count or settings.prediction_count
    log = _read(wanted, settings.domain, settings.name)
    with progress("learning") as step:
        predictor = _maker(wanted.model, horizon, step)()
        predictor.fit(log)
    shapes = logged_shapes(log, horizon)
    forecast = replace(make_forecast(predictor, log, horizon, count), shapes=shapes)
    row = {
        "log": str(wanted.log),
        "model": wanted.model,
        "missing_mass": predictor.missing_mass,
        **log.tally.row(),
    }
    write_forecast(forecast, out, row)
    summary = {
        "horizon": horizon,
        "predictions": len(forecast.predictions),
        "overlap": forecast.overlap,
        "shapes": shapes,
    }
    if as_json:
        print(
            json.dumps(
                {"file": str(out), **summary, "unpredicted": forecast.unpredicted, "shapes": shapes, **row}
            )
        )
        return 0
    screen = console()
    _print_tally(log)
    screen.print(
        f"{len(forecast.predictions):,} statements are expected to be {forecast.overlap:.1%} of the next "
        f"{horizon:,}; what the log does not hold, {predictor.missing_mass:.1%}.\n"
    )
    listed = table(">expected", "statement")
    for one in forecast.predictions[:10]:
        listed.add_row(f"{one.expected:.2f}", shorten(one.text, 110))
    screen.print(listed, markup=False)
    _print_shapes(shapes)
    screen.print(f"\n{out}: put predictions = {json.dumps(str(out))} under [stream].", markup=False)
    return 0


def score(wanted: Wanted, windows: int, picture: Path, *, as_json: bool) -> int:
    """Fit on the past, hold against what came after; draw the reliability curve."""
    from laprasdp.cli.reliability import draw
    from laprasdp.predict.score import score

    settings = read_config(wanted.config, predictions=False)
    horizon = wanted.horizon or settings.stream.horizon or 100
    log = _read(wanted, settings.domain, settings.name)
    models = [wanted.model] if wanted.model == "frequency" else [wanted.model, "frequency"]
    scores = {}
    with progress("scoring") as step:
        for model in models:
            maker = _maker(model, horizon, step)
            scores[model] = score(maker, log, horizon, windows=windows, step=step)
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(scores, picture)
    if as_json:
        rows = {model: each.row() for model, each in scores.items()}
        print(json.dumps({"scores": rows, **log.tally.row(), "picture": str(picture)}))
        return 0
    _print_tally(log)
    for model, each in scores.items():
        _print_score(model, each)
    console().print(f"picture: {picture}", markup=False)
    return 0


def _maker(model: str, horizon: int, step: Callable[[], None]) -> Callable[[], Predictor]:
    from laprasdp.predict.frequency import Frequency
    from laprasdp.predict.mixture import Mixture

    makers: dict[str, Callable[[], Predictor]] = {
        "mixture": lambda: Mixture(horizon, step),
        "frequency": Frequency,
    }
    return makers[model]


def _read(wanted: Wanted, domain: Any, name: str) -> Log:
    from laprasdp.predict.log import provenance_named, read_log

    provenance = provenance_named(wanted.log_is)
    with progress(f"reading {wanted.log}") as step:
        return read_log(
            wanted.log,
            domain,
            name,
            provenance=provenance,
            database_table=wanted.database_table,
            columns=wanted.columns,
            multiline=wanted.multiline,
            step=step,
        )


def _print_tally(log: Log) -> None:
    screen, tally = console(), log.tally
    screen.print(
        f"{tally.lines:,} lines, {tally.kept:,} of them can be asked: {tally.distinct:,} different "
        f"statements, of which the parser read {tally.parsed:,}."
    )
    for note in tally.notes:
        screen.print(f"Note: {note}.", markup=False)
    if tally.refused:
        refused = table(">lines", "cannot be asked because")
        for reason, lines in tally.refused[:10]:
            refused.add_row(f"{lines:,}", shorten(reason, 110))
        more = tally.refused[10:]
        if more:
            refused.add_row(f"{sum(lines for _, lines in more):,}", f"{len(more)} other reasons")
        screen.print(refused, markup=False)
    screen.print()


def _print_shapes(shapes: Mapping[str, float]) -> None:
    screen = console()
    if not shapes:
        screen.print("\nNo shapes: more than a quarter of the lines are of none that can be declared.")
        return
    listed = table(">share", "shape of what is not predicted")
    for shape, share in sorted(shapes.items(), key=lambda pair: -pair[1]):
        listed.add_row(f"{share:.1%}", shape)
    screen.print()
    screen.print(listed, markup=False)


def _print_score(model: str, found: Score) -> None:
    screen = console()
    screen.print(
        f"{model}: {found.windows} windows of {found.horizon:,} lines after what was learned; log-loss "
        f"{found.log_loss:.3f} nats a line; calibration error {found.calibration_error:.1%}; "
        f"not in the log {found.missing:.1%}, foretold {found.expected_missing:.1%}; of the learned shapes "
        f"{found.shapes:.1%}."
    )
    sizes = table(">|P|", ">overlap", ">foretold", ">precision", ">recall")
    for one in found.sizes:
        shares = (one.overlap, one.expected_overlap, one.precision, one.recall)
        sizes.add_row(str(one.size), *(f"{share:.1%}" for share in shares))
    screen.print(sizes)
    screen.print()
