"""Routing: which periods a statement touches, and what it asks of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from laprasdp.periods.period import Part
from laprasdp.queries.groups import Groups, chosen, gathered
from laprasdp.queries.query import Query
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
        mine, lying = _share(parsed.queries, part)
        counted = [place for place, query in zip(lying, mine, strict=True) if not query.is_zero]
        if not (counted or places) and name == last:
            mine = [part.restrict(query) for query in parsed.queries]
            counted = lying = list(range(len(mine)))
        if counted:
            places[name] = counted
            groups = tuple(parsed.groups[place] for place in counted) if parsed.by else ()
            own = {place: number for number, place in enumerate(lying)}
            queries = gathered(chosen(mine, [own[place] for place in counted]))
            asked[name] = replace(parsed, queries=queries, groups=groups, result=parsed.result)
    return places, asked


def _share(queries: Sequence[Query], part: Part) -> tuple[Sequence[Query], list[int]]:
    """What some queries count of a period, and which of them that is; of groups those that lie in it."""
    if not isinstance(queries, Groups):
        return [part.restrict(query) for query in queries], list(range(len(queries)))
    mine, places = part.restrict_groups(queries)
    return mine or (), places
