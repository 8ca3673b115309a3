"""`lapras plan`: the price list, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from rich.text import Text

from laprasdp.cli.show import console, records, table
from laprasdp.config import Config, read_config
from laprasdp.plan import Plan, PlannedQuery
from laprasdp.privacy.gaussian import mean_absolute


def plan(path: Path, *, as_json: bool) -> int:
    """Print what the declared budget buys, with the prediction set and without it."""
    config = read_config(path)
    planned, alone = config.plan(), config.plan(predictions=False)
    if as_json:
        row = {"table": config.name, "cells": config.domain.size, **planned.row()}
        print(json.dumps(row | {"without_predictions": alone.row()}))
    else:
        _print(config, planned, alone)
    return 0


def _print(config: Config, planned: Plan, alone: Plan) -> None:
    screen = console()
    screen.print(
        f"{config.name}: {config.domain.size:,} cells; {planned.policy}, {planned.accounting} accounting, "
        f"ε = {planned.epsilon:g}, δ = {planned.delta:g}, for {planned.horizon} statements.",
        markup=False,
    )
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
            "" if stream.overlap == 1 else records(stream.unpredicted_mae),
            records(stream.mae),
        )
    if planned.predicted:
        screen.print("Mean error of a stream by the share of it that was predicted (source: measured)")
        screen.print(streams)
        screen.print()
    lines = table(">mean error", ">answered", "for comparison, every 0/1 query")
    whole = alone.streams[0]
    lines.add_row(records(whole.mae), f"{whole.answered:.0%}", f"{alone.policy} without predictions")
    lines.add_row(records(planned.independent_gaussian_mae), "100%", "independent noise, Gaussian accounting")
    lines.add_row(records(planned.independent_basic_mae), "100%", "independent noise, basic accounting")
    screen.print(lines)


def _gathered(predicted: Iterable[PlannedQuery]) -> Iterator[tuple[Text, float | None]]:
    """Groups of one statement that have the same error, on one line."""
    for (text, _), alike in groupby(predicted, key=_statement_and_error):
        members = list(alike)
        label = members[0].query if len(members) == 1 else f"{text} [{len(members)} groups]"
        yield Text(label), members[0].std


def _statement_and_error(query: PlannedQuery) -> tuple[str, str]:
    return query.query.rpartition(" [")[0] or query.query, records(query.std)
