"""The price of a statement that several periods answer: the sum of what each would charge, or one refusal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from laprasdp.derive.estimates import sum_of_joints
from laprasdp.periods.route import Places
from laprasdp.periods.settled import Refused, settled
from laprasdp.record.entries import Reply
from laprasdp.sql.parse import Statement
from laprasdp.stream.price import Price
from laprasdp.stream.shown import joint_of
from laprasdp.stream.turn import Turn
from laprasdp.stream.wish import stds_shown


def priced(
    parsed: Statement, places: Places, asked: Mapping[str, Statement], turns: Mapping[str, Turn]
) -> Price:
    """
    What comes of a statement in turns that are kept nowhere.

    Parameters
    ----------
    parsed : Statement
        Over the whole domain.
    places : dict of period to list of int
        Which of its queries each period is asked for.
    asked : mapping of period to Statement
        Those queries over the period's own domain.
    turns : mapping of period to Turn
        From `Session.rehearsal`.
    """
    try:
        found = settled(asked, turns)
    except Refused as stop:  # then nothing is released in any
        return Price.refused(parsed.queries, stop.reason)
    charges: list[list[float]] = [[] for _ in parsed.queries]
    variances: list[list[float]] = [[] for _ in parsed.queries]
    for period, one in found.items():
        assert isinstance(one.outcome, Reply)
        for place, query, shown in zip(places[period], one.outcome.queries, one.outcome.answers, strict=True):
            charges[place].append(one.prices.get(query, 0.0))
            variances[place].append(0.0 if shown is None else shown.variance)
    joints = {
        period: joint_of(turns[period].policy, asked[period], one.outcome.answers)
        for period, one in found.items()
        if isinstance(one.outcome, Reply)
    }
    joint = sum_of_joints(len(parsed.queries), joints, places)
    return Price(
        math.fsum(map(math.fsum, charges)),
        tuple(math.sqrt(math.fsum(each)) for each in variances),
        tuple(replace(each, period=period) for period, one in found.items() for each in one.released),
        columns=stds_shown(parsed, joint) if parsed.result else {},
    )
