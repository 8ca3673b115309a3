"""The shapes of a log's statements, and what they say of the next stream: `shapes` of its declaration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.policy.query_shapes import QueryShape, is_ordered
from laprasdp.predict.log import Log
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader

_READ = 2_000  # different statements that are looked at, the most frequent of a stream's lines
_UNKNOWN = 0.25  # share of lines without a shape, from which on nothing is learned
_LEAST, _MOST = 0.02, 12  # share of a shape that is named, and how many are
_PRIOR = 2.0  # streams that the shapes of any attributes are worth


def logged_shapes(log: Log, horizon: int) -> dict[str, float]:
    """
    The shapes that a stream of `horizon` statements is expected to hold, each with its share.

    Parameters
    ----------
    log : Log
        Where it has sessions, a stream is taken to begin one: of each its first `horizon` lines count.
    horizon : int

    Returns
    -------
    mapping of str to float
        Frequent shapes by the names of their attributes, and for the rest those of any attributes, whose
        share falls as the log has more streams.  Empty where more than a quarter of the lines have none.

    Notes
    -----
    Public as the log is.  A single value counts as a range, or as a conjunction, where the same attributes
    are mostly asked for those.
    """
    ids = log.ids[_places(log) < horizon]
    counts = np.bincount(ids, minlength=len(log.statements))
    top = np.argsort(-counts, kind="stable")[:_READ]
    reader, found = Reader(log.domain, log.table), Counter[str]()
    whole = 0
    for number in top[counts[top] > 0].tolist():
        try:
            shape = shape_of(reader.parse(log.statements[number].text), log.domain)
        except UnsupportedQuery:
            shape = None
        if shape == "":
            continue  # the number of rows is known of every table
        whole += int(counts[number])
        if shape is not None:
            found[shape] += int(counts[number])
    known = sum(found.values())
    if whole == 0 or known < (1 - _UNKNOWN) * whole:
        return {}
    streams = max(len(np.unique(log.sessions)), len(ids) / horizon)
    return _smoothed(_merged(found), log.domain, _PRIOR / (_PRIOR + streams))


def covered(shapes: Mapping[str, float], log: Log) -> float:
    """The share of the lines of a log that are of some shapes."""
    reader, held = Reader(log.domain, log.table), 0
    counts = np.bincount(log.ids, minlength=len(log.statements))
    for number in np.flatnonzero(counts).tolist():
        try:
            shape = shape_of(reader.parse(log.statements[number].text), log.domain)
        except UnsupportedQuery:
            continue
        held += int(counts[number]) * (shape is not None and (not shape or _is_of(shape, shapes, log.domain)))
    return held / max(len(log), 1)


def shape_of(statement: Statement, domain: Domain) -> str | None:
    """
    The shape of a statement, by the names of its attributes.

    Returns
    -------
    str or None
        Empty for the number of all rows; None for what is of no shape.
    """
    asked = [query for query in statement.queries if not query.is_zero]
    if not asked or not all(isinstance(query, Query) for query in asked[:1]):
        return None
    query = asked[0]
    if statement.by:
        axes = {domain.names.index(name) for name in statement.by} | set(query.axes)
        return _text("group-by", sorted(axes), domain)
    if not query.axes:
        return ""
    levels = _levels(query)
    if levels is None:
        return None
    whats = {_what(chosen, axis, domain) for chosen, axis in zip(levels, query.axes, strict=True)}
    return _text(whats.pop() if len(whats) == 1 else "conjunctions", query.axes, domain)


def _levels(query: Query) -> list[np.ndarray] | None:
    """The levels of each attribute that a conjunction takes; None if the query is none."""
    weights = query.weights.reshape(query.weights.shape[: len(query.axes)])
    every = range(weights.ndim)
    sides = [np.flatnonzero((weights != 0).any(axis=tuple({*every} - {axis}))) for axis in every]
    block = weights[np.ix_(*sides)]
    if block.size == 0 or (block != 1).any():
        return None
    return [np.isin(labels, side) for labels, side in zip(query.labels, sides, strict=True)]


def _what(chosen: np.ndarray, axis: int, domain: Domain) -> str:
    if chosen.sum() == 1:
        return "values"
    runs = int(np.count_nonzero(np.diff(chosen.astype(int), prepend=0) == 1))
    return "ranges" if runs == 1 and is_ordered(domain, axis) else "sets"


def _text(what: str, axes: tuple[int, ...] | list[int], domain: Domain) -> str | None:
    """A shape of these attributes as text, if it can be written."""
    shape = QueryShape(what, named=" and ".join(domain.names[axis] for axis in axes))
    try:
        sets = QueryShape.read(str(shape)).sets(domain)
    except ConfigError:
        return None
    return str(shape) if sets == {len(axes): [tuple(axes)]} else None


def _merged(found: Counter[str]) -> dict[str, int]:
    """Single values as ranges or conjunctions where the same attributes are asked for those as often."""
    merged = dict(found)
    for text, count in found.items():
        what, _, names = text.partition(" of ")
        wider = max((f"ranges of {names}", f"conjunctions of {names}"), key=lambda one: found.get(one, 0))
        if what == "values" and found.get(wider, 0) >= count:
            merged[wider] += merged.pop(text)
    return merged


def _smoothed(found: Mapping[str, int], domain: Domain, prior: float) -> dict[str, float]:
    """Shares of named shapes, less what the shapes of any attributes have."""
    whole, shares = sum(found.values()), dict[str, float]()
    named = sorted(found, key=lambda text: -found[text])[:_MOST]
    for text, count in found.items():
        shape, share = QueryShape.read(text), count / whole
        ((wide, sets),) = shape.sets(domain).items()
        general = QueryShape(shape.what, (wide,))
        own = share * (1 - prior) if text in named and share >= _LEAST else 0.0
        if general.sets(domain)[wide] == sets:
            own = 0.0  # there are no others
        for name, part in ((text, own), (str(general), share - own)):
            if part > 0:
                shares[name] = shares.get(name, 0.0) + part
    return {name: round(share, 4) for name, share in sorted(shares.items()) if round(share, 4)}


def _is_of(text: str, shapes: Mapping[str, float], domain: Domain) -> bool:
    """Whether a named shape is one of some."""
    shape = QueryShape.read(text)
    ((_, (axes,)),) = shape.sets(domain).items()
    for other in map(QueryShape.read, shapes):
        alike = shape.what == other.what or (shape.what == "values" and other.what in ("ranges", "sets"))
        if (alike or other.what == "conjunctions") and axes in other.sets(domain).get(len(axes), ()):
            return True
    return False


def _places(log: Log) -> np.ndarray:
    """The place of each line in its session; 0 for all where there are no sessions."""
    if log.sessions.size == 0 or log.sessions.min() == log.sessions.max():
        return np.zeros(len(log), dtype=int)
    order = np.argsort(log.sessions, kind="stable")
    ordered = log.sessions[order]
    begins = np.r_[0, np.flatnonzero(np.diff(ordered)) + 1]
    places = np.empty(len(log), dtype=int)
    places[order] = np.arange(len(log)) - np.repeat(begins, np.diff(np.r_[begins, len(log)]))
    return places
