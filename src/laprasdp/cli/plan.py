"""`lapras plan`: the price list, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.text import Text

from laprasdp.cli.show import console, progress, records, say, table
from laprasdp.config import Config, read_config
from laprasdp.errors import BudgetError, ConfigError
from laprasdp.pacing.competitive import TYPICAL
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.stream.plan import Plan, PlannedQuery


def plan(path: Path, target_std: float | None, *, as_json: bool) -> int:
    """Print what a budget buys, with the prediction set and without: the declared one, or the one wanted."""
    config = read_config(path).read()
    aim: dict[str, Any] = {}
    with progress("planning"):
        if target_std is not None:
            epsilon = config.smallest_epsilon(target_std)
            aim = {"target_std": target_std, "without_predictions_epsilon": _alone(config, target_std)}
            config = config.with_budget(Budget(epsilon, config.budget.delta))
        planned = config.plan()
        alone = config.plan(predictions=False, kinds=planned.played)
        worth = _worth(config, planned, alone)
        shapeless = _shapeless(config, planned)
    if as_json:
        row = {"table": config.name, "cells": config.planned.size, **aim, **planned.row()}
        row |= {"without_predictions": alone.row(), "predictions_worth": worth}
        if shapeless is not None:
            row |= {"without_shapes": shapeless.row()}
        print(json.dumps(row | {"warnings": list(planned.losses(alone))}))
    else:
        if target_std is not None:
            _print_aim(planned, target_std, aim["without_predictions_epsilon"])
        _print(config, planned, alone)
        _print_kinds(planned, alone, shapeless)
        _print_worth(config, planned, worth)
        for loss in planned.losses(alone):
            say(f"lapras: warning: these predictions lose to none: {loss}")
    return 0


def _statements(horizon: int | None) -> str:
    return (
        f"a stream of unknown length, planned for {TYPICAL}" if horizon is None else f"{horizon} statements"
    )


def _alone(config: Config, target_std: float) -> float | None:
    """ε that would be needed without the prediction set; None where no budget is enough."""
    try:
        return config.smallest_epsilon(target_std, predictions=False)
    except (BudgetError, ConfigError):
        return None


def _print_aim(planned: Plan, target_std: float, alone: float | None) -> None:
    screen, worst, std = console(), planned.worst, planned.typical_std
    what, about = ("predicted queries", "") if worst else ("typical unpredicted queries", _about(planned))
    screen.print(
        f"ε = {planned.epsilon:g} at δ = {planned.delta:g} is the smallest, to 1%, "
        f"for a standard deviation of {target_std:g}:\n{what} have {about}{records(std)} on average"
        + (f"; the worst has {records(worst.std)}: {worst.query}" if worst else "")
        + ".",
        markup=False,
    )
    if worst:
        needed = "no ε that is allowed would do" if alone is None else f"ε = {alone:g} would be needed"
        screen.print(f"Without predictions {needed}, for typical queries.")
    screen.print("This is the plan at that ε; the configuration is as it was.\n")


def _print(config: Config, planned: Plan, alone: Plan) -> None:
    screen, about = console(), _about(planned)
    screen.print(
        f"{config.name}: {config.planned.size:,} cells; {planned.policy}, {planned.accounting} accounting, "
        f"ε = {planned.epsilon:g}, δ = {planned.delta:g}, for {_statements(planned.horizon)}.",
        markup=False,
    )
    if config.windows is not None:
        period = config.windows.last(config.domain).period
        screen.print(f"Each period has a budget of its own; this is the plan of {period}.", markup=False)
    screen.print("Errors are in records and follow from public settings: the table was not opened.\n")
    if planned.predicted:
        listed = table(">mean error", ">std", "predicted query (source: predicted, free)")
        for text, std in _gathered(planned.predicted):
            error = None if std is None else mean_absolute(std)
            listed.add_row(records(error), records(std), text)
        screen.print(listed, markup=False)
        screen.print()
    streams = table(">predicted", ">answered", ">unpredicted query", ">all queries")
    for stream in planned.streams:
        streams.add_row(
            f"{stream.overlap:.0%}",
            f"{stream.answered:.0%}",
            "" if stream.overlap == 1 else about + records(stream.unpredicted_mae),
            ("" if stream.overlap == 1 else about) + records(stream.mae),
        )
    if planned.predicted:
        screen.print("Mean error of a stream by the share of it that was predicted")
        screen.print(streams)
        screen.print()
    lines = table(">mean error", ">answered", "for comparison, every 0/1 query")
    whole = alone.streams[0]
    lines.add_row(about + records(whole.mae), f"{whole.answered:.0%}", f"{alone.policy} without predictions")
    lines.add_row(records(planned.independent_gaussian_mae), "100%", "independent noise, Gaussian accounting")
    lines.add_row(records(planned.independent_basic_mae), "100%", "independent noise, basic accounting")
    screen.print(lines)


def _shapeless(config: Config, planned: Plan) -> Plan | None:
    """The plan of the same stream if no shapes were declared; None where none are."""
    if not config.stream.families:
        return None
    return replace(config, stream=replace(config.stream, shapes=())).plan(kinds=planned.played)


def _print_kinds(planned: Plan, alone: Plan, shapeless: Plan | None) -> None:
    """What unpredicted queries would see, by their kind; which are declared, and what that changes."""
    if planned.range_mae is None:
        return
    least, most = planned.range_mae
    others = {"without predictions": alone} if planned.predicted else {}
    others |= {} if shapeless is None else {"without shapes": shapeless}
    declared = [] if shapeless is None else [">declared"]
    kinds = table(">mean error", *(f">{name}" for name in others), *declared, "unpredicted queries")
    before = [{kind.kind: kind.mae for kind in other.kinds} for other in others.values()]
    for kind in planned.kinds:
        shares = [f"{planned.shapes[kind.kind]:.0%}" if kind.kind in planned.shapes else ""]
        cells = [records(errors.get(kind.kind)) for errors in before]
        kinds.add_row(records(kind.mae), *cells, *(shares if declared else []), kind.kind)
    screen = console()
    screen.print(f"\nUnpredicted queries by kind: {records(least)} to {records(most)}")
    screen.print(kinds)
    if shapeless is not None:
        about, worth = _about(planned), planned.streams[0].unpredicted_mae
        screen.print(
            f"Unpredicted queries of the declared shapes: {about}{records(worth)}. Others are answered too; "
            "what they lose stands above."
        )


def _worth(config: Config, planned: Plan, alone: Plan) -> dict[str, float | None] | None:
    """Mean error of a stream with the predictions, without, and if they came true to the last statement."""
    if not planned.predicted:
        return None
    known = None if config.stream.overlap is None else planned.mae_at(config.stream.overlap)
    sure = replace(config, stream=replace(config.stream, overlap=1.0))
    perfect = sure.plan(kinds=False).mae_at(1.0)
    return {"with": known, "without": alone.streams[0].mae, "oracle": perfect}


def _print_worth(config: Config, planned: Plan, worth: dict[str, float | None] | None) -> None:
    if worth is None:
        return
    about = _about(planned)
    hoped = (
        "depends on the share of the stream that they are"
        if config.stream.overlap is None
        else f"{about}{records(worth['with'])} if {config.stream.overlap:.0%} of the stream is, as expected"
    )
    console().print(
        f"\nWhat the predictions are worth, mean error: {hoped}; {about}{records(worth['without'])} without "
        f"them, for 0/1 queries; {about}{records(worth['oracle'])} with a perfect oracle.",
        markup=False,
    )


def _about(planned: Plan) -> str:
    return "about " if planned.approximate else ""


def _gathered(predicted: Iterable[PlannedQuery]) -> Iterator[tuple[Text, float | None]]:
    """Groups of one statement that have the same error, on one line."""
    for (text, _), alike in groupby(predicted, key=_statement_and_error):
        members = list(alike)
        label = members[0].query if len(members) == 1 else f"{text} [{len(members)} groups]"
        yield Text(label), members[0].std


def _statement_and_error(query: PlannedQuery) -> tuple[str, str]:
    return query.query.rpartition(" [")[0] or query.query, records(query.std)
