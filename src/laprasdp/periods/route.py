"""Routing: which periods a statement touches, and what it asks of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from laprasdp.periods.period import Part
from laprasdp.sql.parse import Statement

Places = dict[str, list[int]]


def route(parsed: Statement, parts: Mapping[str, Part]) -> tuple[Places, dict[str, Statement]]:
    """
    The share of a statement that each period is asked for.

    Parameters
    ----------
    parsed : Statement
        Over the whole domain.
    parts : mapping of period to Part
        In order.

    Returns
    -------
    places : dict of period to list of int
        Which queries of the statement count something in the period.  A period without any is left out;
        where no period has one, the last is asked for all of them.
    asked : dict of period to Statement
        Those queries over the period's own domain.
    """
    last = list(parts)[-1]
    places: Places = {}
    asked: dict[str, Statement] = {}
    for name, part in parts.items():
        mine = [part.restrict(query) for query in parsed.queries]
        counted = [place for place, query in enumerate(mine) if not query.is_zero]
        if not (counted or places) and name == last:
            counted = list(range(len(mine)))
        if counted:
            places[name] = counted
            groups = tuple(parsed.groups[place] for place in counted) if parsed.by else ()
            queries = tuple(mine[place] for place in counted)
            asked[name] = replace(parsed, queries=queries, groups=groups, result=parsed.result)
    return places, asked
