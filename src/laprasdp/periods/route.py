"""Routing: which periods a statement touches, and what it asks of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from laprasdp.errors import UnsupportedQuery
from laprasdp.periods.period import Part
from laprasdp.queries.distinct import Persons, counts_persons
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

    Raises
    ------
    UnsupportedQuery
        Persons of several periods are to be counted as one number.
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
    _check_persons(parsed.queries, places)
    return places, asked


def _check_persons(queries: Sequence[Query], places: Places) -> None:
    """Persons of several periods cannot be told apart: no sum of the periods' counts is theirs."""
    asked = [place for found in places.values() for place in found]
    if counts_persons(queries) and any(
        isinstance(query, Persons) and asked.count(place) > 1 for place, query in enumerate(queries)
    ):
        raise UnsupportedQuery(
            "persons are counted within a period, and who is in two of them counts in both: ask for each "
            "period by itself, by a condition on its dates, or GROUP BY dates that lie in one period each"
        )


def _share(queries: Sequence[Query], part: Part) -> tuple[Sequence[Query], list[int]]:
    """What some queries count of a period, and which of them that is; of groups those that lie in it."""
    if not isinstance(queries, Groups):
        return [part.restrict(query) for query in queries], list(range(len(queries)))
    mine, places = part.restrict_groups(queries)
    return mine or (), places
