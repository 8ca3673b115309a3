"""IDEBench's workflows as SQL: one count a bin of what they compute of states, over one domain for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pandas as pd

from experiments.data import Data
from experiments.idebench import RANGE, STATE, VALUE, Request, attribute, requests
from experiments.study import TABLE, Study, leave_out
from laprasdp import Attribute, Bins, Categories, Domain, Integers
from laprasdp.datasets import path
from laprasdp.predict.template import Key, Splitter
from laprasdp.sql.parse import parse

FOLDER = "idebench/default_workflows"
TESTED = 10
YEAR = "YEAR_DATE"
OUTER = 10_000.0  # minutes or miles: no value of the table lies beyond


def workflows(folder: Path) -> tuple[Domain, dict[str, tuple[Key, ...]]]:
    """
    The domain of what the workflows compute of states, and the statements of each, in order.

    A visualisation binned by state is one count for each state that its filter admits, in alphabetical
    order; another one that filters by state is one count.  Levels are the values and the edges that any of
    the workflows names.  Counts that nothing can match are left out.
    """
    asked = {
        file.stem: requests(json.loads(file.read_text(encoding="utf-8"))["interactions"])
        for file in sorted(folder.glob("*.json"))
    }
    domain = _domain([request for own in asked.values() for request in own])
    splitter = Splitter()
    found = {}
    for name, own in asked.items():
        texts = [text for request in own for text in statements(request, domain)]
        zero = {text: parse(text, domain, TABLE).queries[0].is_zero for text in dict.fromkeys(texts)}
        found[name] = tuple(splitter.split(text) for text in texts if not zero[text])
    return domain, found


def statements(request: Request, domain: Domain) -> Iterator[str]:
    """The counts of one visualisation, as SQL."""
    parts = sorted(" OR ".join(sorted(map(_term, part))) for part in request.parts)
    filters = [f"({part})" for part in parts]
    if not request.binned:
        yield _count(filters)
        return
    admitted = [part for part in request.parts if attribute(part) == STATE]
    others = [f"({part})" for part in parts if not part.startswith(STATE)]
    for state in domain[STATE].settings()["values"]:
        if all(f"{STATE} = '{state}'" in part for part in admitted):
            yield _count([f"{STATE} = '{state}'", *others])


def study(data: Data, place: int, horizon: int) -> Study:
    """The `place`-th of ten workflows, learned from the twenty that are not tested."""
    domain, streams = _workflows(data.file(FOLDER))
    asking = [name for name, own in streams.items() if own]
    tested = [asking[n * len(asking) // TESTED] for n in range(TESTED)]
    trained = [name for name in streams if name not in tested]
    return leave_out(tested[place], flights(), domain, streams, horizon, trained)


def flights() -> pd.DataFrame:
    """The real table, as `workflows` names its columns."""
    return pd.read_parquet(path("flights"))


def _count(filters: list[str]) -> str:
    return f"SELECT COUNT(*) FROM {TABLE}" + (f" WHERE {' AND '.join(filters)}" if filters else "")


def _term(term: str) -> str:
    """A term of IDEBench as SQL: years are whole numbers there, and written as text."""
    if found := RANGE.fullmatch(term):
        return f"({found[1]} >= {float(found[2]):g} AND {found[1]} < {float(found[3]):g})"
    return term.replace("'", "") if term.startswith(YEAR) else term


def _domain(asked: list[Request]) -> Domain:
    """The states, and every other attribute that a filter names."""
    terms = {term for request in asked for part in request.parts for term in part}
    edges: dict[str, set[float]] = {}
    values: dict[str, set[str]] = {STATE: set(flights()[STATE])}
    for term in terms:
        if found := RANGE.fullmatch(term):
            edges.setdefault(found[1], {-OUTER, OUTER}).update((float(found[2]), float(found[3])))
        elif found := VALUE.fullmatch(term):
            values.setdefault(found[1], set()).add(found[2])
    attributes: dict[str, Attribute] = {
        name: Integers(min(map(int, named)), max(2015, *map(int, named)))
        if name == YEAR
        else Categories(sorted(named), other=name != STATE)
        for name, named in sorted(values.items())
    }
    attributes |= {name: Bins(sorted(own), nullable=True) for name, own in sorted(edges.items())}
    return Domain(attributes)


_workflows = lru_cache(maxsize=1)(workflows)
