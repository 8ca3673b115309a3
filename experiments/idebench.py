"""IDEBench's workflows as streams of counting queries on the states of origin, filters and order kept."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from experiments.data import Data
from experiments.trial import Ints, Trial
from experiments.workload import BUDGET, ranges
from laprasdp.datasets import path

STATE = "ORIGIN_STATE_ABR"
RANGE = re.compile(r"(\w+) >= ([-\d.]+) and \1 < ([-\d.]+)")
VALUE = re.compile(r"(\w+) = '([^']*)'")

Filter = tuple[frozenset[str], ...]
"""A conjunction of disjunctions of terms, each disjunction over one attribute."""


@dataclass(frozen=True)
class Request:
    """
    A visualisation that is computed.

    Attributes
    ----------
    binned : bool
        Whether its bins are the states.
    parts : frozenset of frozenset of str
        What its rows have to pass, all of them: the parts of its own filter, and of the filters and
        selections of all that it is linked to.
    """

    binned: bool
    parts: frozenset[frozenset[str]]


@dataclass
class _Viz:
    binned: bool = False
    own: Filter = ()
    selection: Filter = ()
    sources: list[str] = field(default_factory=list)


def requests(interactions: list[dict[str, Any]]) -> list[Request]:
    """
    The visualisations that a workflow computes and that bin or filter by state, in order.

    Parameters
    ----------
    interactions : list of dict
        As IDEBench writes them: a new visualisation, a filter, a selection, or a link to sources.

    Notes
    -----
    A new visualisation, a filter and a link compute the visualisation itself; all of them and a selection
    also compute what is linked to it, directly or not, as in IDEBench's graph.
    """
    graph: dict[str, _Viz] = {}
    found = []
    for step in interactions:
        name = step["name"]
        viz = graph.setdefault(name, _Viz())
        if "binning" in step:
            viz.binned = any(bins["dimension"] == STATE for bins in step["binning"])
        if "filter" in step:
            viz.own = read_filter(step["filter"])
        if "selection" in step:
            viz.selection = read_filter(step["selection"])
        if "source" in step:
            viz.sources = step["source"].split(" and ")
        asked = [] if "selection" in step else [name]
        asked += [other for other in graph if other != name and name in _above(graph, other)]
        for other in asked:
            parts = frozenset(part for one in _passed(graph, other) for part in one)
            if graph[other].binned or any(attribute(part) == STATE for part in parts):
                found.append(Request(graph[other].binned, parts))
    return found


def _above(graph: dict[str, _Viz], name: str) -> set[str]:
    """All that `name` is linked to, directly or not."""
    found: set[str] = set()
    left = [name]
    while left:
        fresh = {source for source in graph[left.pop()].sources if source in graph} - found
        found |= fresh
        left += fresh
    return found


def _passed(graph: dict[str, _Viz], name: str) -> Iterator[Filter]:
    yield graph[name].own
    for source in _above(graph, name) - {name}:
        yield from (graph[source].own, graph[source].selection)


def attribute(part: frozenset[str]) -> str:
    return next(iter(part)).split(" ", 1)[0]


def read_filter(text: str) -> Filter:
    """
    A filter as IDEBench writes it.

    Examples
    --------
    >>> text = "((DEST = 'MIA') or (DEST = 'LAX')) and ((TAXI_IN >= 14.0 and TAXI_IN < 21.0))"
    >>> [sorted(part) for part in read_filter(text)]
    [["DEST = 'LAX'", "DEST = 'MIA'"], ['TAXI_IN >= 14.0 and TAXI_IN < 21.0']]
    """
    parts: dict[str, set[str]] = {}
    for term in itertools.chain(RANGE.finditer(text), VALUE.finditer(text)):
        parts.setdefault(term[1], set()).add(term[0])
    return tuple(frozenset(parts[name]) for name in sorted(parts))


@dataclass(frozen=True)
class Workflow:
    """
    A kind of stream, as `workload.Scenario`: run r is the r-th workflow that is long enough, in turn.

    Attributes
    ----------
    overlap : float
        Share of the stream whose queries were predicted, at least.
    horizon : int
        S; the first S counting queries of a workflow are its stream.
    predicted : int
        |P|.

    Notes
    -----
    A visualisation binned by state asks one count for each state that its filter admits, in alphabetical
    order; another one that filters by state asks one count.  Repeated queries stay.  A cell is a state and
    what tells the rows of the stream's filters apart; cells that no query tells apart are one.  P holds
    distinct queries of the stream, at random, until they make up the overlap, and is filled up with ranges of
    states.
    """

    overlap: float
    horizon: int = 100
    predicted: int = 100
    dataset: str = "idebench"
    order: str = "as logged"
    family: str = "workflow"

    @property
    def length(self) -> int:
        return self.horizon

    @property
    def hits(self) -> int:
        return int(self.overlap * self.horizon + 1e-9)

    @property
    def key(self) -> str:
        return f"{self.dataset}-S{self.horizon}-P{self.predicted}-{self.overlap:g}"

    def trial(self, data: Data, seed: int, run: int) -> Trial:
        """One workflow; raises `Skipped` where the workflows are missing."""
        known = workflows(data.file("idebench/default_workflows"), self.horizon)
        counts, stream, states = known[run % len(known)]
        rng = np.random.default_rng([seed, run, 5])
        texts = [row.tobytes() for row in stream]
        chosen: dict[bytes, Ints] = {}
        for place in rng.permutation(len(stream)):
            if sum(text in chosen for text in texts) >= self.hits:
                break
            chosen[texts[place]] = stream[place]
        universe = ranges(int(states.max()) + 1)[:, states]
        for row in rng.permutation(universe):
            if len(chosen) >= self.predicted:
                break
            if row.tobytes() not in texts:
                chosen[row.tobytes()] = row
        return Trial(counts, np.array(list(chosen.values())), stream, BUDGET, None, self.horizon)


@lru_cache(maxsize=2)
def workflows(folder: Path, horizon: int) -> list[tuple[Ints, Ints, Ints]]:
    """(counts, stream, state of each cell) of every workflow with `horizon` counting queries or more."""
    found = []
    for file in sorted(folder.glob("*.json")):
        asked = requests(json.loads(file.read_text(encoding="utf-8"))["interactions"])
        read = counting(asked, horizon)
        if read is not None:
            found.append(read)
    return found


def counting(asked: list[Request], horizon: int) -> tuple[Ints, Ints, Ints] | None:
    """
    The first counting queries of some requests over their cells.

    Parameters
    ----------
    asked : list of Request
    horizon : int

    Returns
    -------
    (n,) counts, (horizon, n) stream, (n,) state of each cell; or None where there are fewer queries
    """
    table = _flights()
    names = np.unique(table[STATE])
    codes = np.searchsorted(names, table[STATE])
    plan: list[tuple[Request, int | None]] = []  # one state, or all that are admitted together
    for request in asked:
        admitted = np.flatnonzero(_admits(request, STATE, names))
        plan += [(request, int(state)) for state in admitted] if request.binned else [(request, None)]
    plan = plan[:horizon]
    if len(plan) < horizon:
        return None
    used = list(dict.fromkeys(request for request, _ in plan))
    kinds = sorted({attribute(part) for request in used for part in request.parts} - {STATE})
    held = np.ones((len(used), 1), dtype=bool)  # of each request, on every combination of what it tells apart
    rows = np.ones((len(used), len(codes)), dtype=bool)
    for kind in kinds:
        values = _representatives(kind, used)
        classes = np.unique([_admits(request, kind, values) for request in used], axis=1)
        held = (held[:, :, None] & classes[:, None, :]).reshape(len(used), -1)
        held = np.unique(held, axis=1)
        rows &= np.array([_admits(request, kind, table[kind]) for request in used])
    signature = {column.tobytes(): place for place, column in enumerate(held.T)}
    place = np.array([signature[column.tobytes()] for column in rows.T])
    counts = np.bincount(codes * len(signature) + place, minlength=len(names) * len(signature))
    state = np.repeat(np.arange(len(names)), len(signature))
    passes = np.tile(held, len(names))
    stream = np.array(
        [
            passes[used.index(request)]
            & (_admits(request, STATE, names)[state] if one is None else state == one)
            for request, one in plan
        ],
        dtype=np.int64,
    )
    _, first, cell = np.unique(np.vstack([state, stream]), axis=1, return_index=True, return_inverse=True)
    merged = np.bincount(cell.ravel(), weights=counts).astype(np.int64)
    return merged, np.ascontiguousarray(stream[:, first]), state[first]


def _admits(request: Request, kind: str, values: Any) -> Any:
    """Which values of one attribute pass the request's parts on it."""
    passes = np.ones(len(values), dtype=bool)
    for part in request.parts:
        if attribute(part) == kind:
            passes &= np.any([_term(term, values) for term in part], axis=0)
    return passes


def _term(term: str, values: Any) -> Any:
    if found := RANGE.fullmatch(term):
        return (values >= float(found[2])) & (values < float(found[3]))  # NULL is nan, and passes nothing
    found = VALUE.fullmatch(term)
    assert found
    return values == (float(found[2]) if values.dtype.kind == "f" else found[2])


def _representatives(kind: str, used: list[Request]) -> Any:
    """A value of every class that the terms on one attribute tell apart, NULL and any other included."""
    terms = {term for request in used for part in request.parts if attribute(part) == kind for term in part}
    numbers = [float(end) for term in terms for found in RANGE.finditer(term) for end in found.groups()[1:]]
    texts = [found[2] for term in terms for found in VALUE.finditer(term)]
    if numbers or kind == "YEAR_DATE":
        return np.array([-np.inf, np.nan, *numbers, *map(float, texts)])
    return np.array([*texts, "\0"], dtype=object)


@lru_cache(maxsize=1)
def _flights() -> dict[str, Any]:
    table = pq.read_table(path("flights")).to_pandas()
    return {
        name: table[name].to_numpy(dtype=float, na_value=np.nan)
        if table[name].dtype.kind in "iuf"
        else table[name].to_numpy(dtype=object)
        for name in table
    }
