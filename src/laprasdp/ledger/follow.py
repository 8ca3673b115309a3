"""Whether replies follow from the releases before them: each shown value and its error, worked out again.

What a policy decides (what to measure, when, and how well) is not looked at.  What is said of a query once
something is measured is one formula for each kind of policy, and stands here without the policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol

import numpy as np

from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.factored import FactoredBelief
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.errors import LedgerError
from laprasdp.limits import DENSE_CELLS, MAX_CELLS
from laprasdp.queries.distinct import Persons, parted
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups, chosen
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release, Reply
from laprasdp.record.estimate import Estimate, Source, joined, one_by_one
from laprasdp.record.settings import Settings
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.person_rows import PersonRows, of_rows
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.span import Span

TOLERANCE = 1e-6
"""Of a standard deviation, and of a variance: another machine may add up in another order."""


class Replies:
    """
    What every reply should show, from entry to entry.

    Parameters
    ----------
    settings : mapping
    domain : Domain

    Raises
    ------
    LedgerError
        The policy of the settings is none that is known.
    """

    def __init__(self, settings: Settings, domain: Domain) -> None:
        self._pays = settings["reading"]["repeats"] == "pay"
        self._known = _Persons(_known_by(settings["policy"], domain, settings["predictions"]))
        self._shown: dict[str, tuple[int, Estimate]] = {}
        self._held: Release | None = None  # made for a statement: what was known before, is shown as it was

    def release(self, release: Release) -> None:
        """
        Go past a release.

        Raises
        ------
        LedgerError
            It is none that the policy makes.
        """
        if (release.allowance == 0) != isinstance(self._known.rows, _Belief):
            raise LedgerError("its allowance is none that this policy gives")
        if release.opening:
            self._known.learn(release)
        else:
            self._held = release

    def reply(self, position: int, reply: Reply) -> Iterator[str]:
        """Go past a reply; gives what of it does not follow from the entries before."""
        shown = dict(zip(reply.queries, reply.answers, strict=False))
        places = [place for place, query in enumerate(reply.queries) if not query.is_zero]
        asked = chosen(reply.queries, places)
        recalled = self._known.answers(asked)
        before = {
            query: self._recalled(query, recalled(query, one.source))
            for query, one in shown.items()
            if one is not None
        }
        held, self._held = self._held, None
        if held is not None:
            self._known.learn(held)
        measured = self._known.answers(asked, fresh=True) if held is not None else None
        renewed = self._known.renewed(asked) if reply.again else None
        grouped = isinstance(reply.queries, Groups)  # whose queries are made, not read
        for query, one in shown.items():
            if not grouped and query.canonical().key != query.key:
                yield f"{query!r} is not written as the only query of its meaning"
            if (one is None) != query.is_zero:
                yield f"it has no answer to {query!r}" if one is None else f"{query!r} is 0 on every table"
            if one is None:
                continue
            due = before[query] or (measured(query, one.source) if measured else None)
            earlier, past = self._shown.get(query.key, (None, None))
            if renewed is not None:
                due, past = renewed(query, past), None
            if past is not None and not self._pays and not _kept(past, one):
                yield f"it shows another answer to {query!r} than entry {earlier}"
            elif due is None:
                yield f"its answer to {query!r} is {one.source!r}, but nothing before it gives one"
            elif not _agree(due, one):
                yield f"its answer to {query!r} is not what the releases before it give"
        if held is not None and not reply.again and all(before.values()):
            yield "a release was made for it, but everything was known"
        self._shown |= {query.key: (position, one) for query, one in shown.items() if one is not None}

    def _recalled(self, query: Query, found: Estimate | None) -> Estimate | None:
        """What is known of a query before anything is measured for it, where so much follows anew."""
        lasting = self._known.lasts(query)
        if query.key in self._shown and (lasting or not self._pays):
            past = self._shown[query.key][1]
            own = lasting and past.source in ("predicted", "histogram")
            return past if own else replace(past, source="replay")
        return found


Said = Callable[[Query, Source], Estimate | None]
Renewed = Callable[[Query, Estimate | None], Estimate | None]


class _Known(Protocol):
    """What the releases so far say; one class for each kind of policy."""

    def learn(self, release: Release) -> None:
        """Go past one release."""

    def lasts(self, query: Query) -> bool:
        """Whether an answer that was given is given again under its own source, not as a replay."""

    def answers(self, queries: Sequence[Query], *, fresh: bool = False) -> Said:
        """What is said of the queries of a statement, `fresh` if a release was just made for it."""

    def renewed(self, queries: Sequence[Query]) -> Renewed:
        """What is said of queries that were just measured again, by what was shown of each before."""


class _Direct:
    """Queries are measured one by one; before the stream, the predicted ones together."""

    def __init__(self, predictions: list[str], *, opens: bool, asks: bool, caches: bool = False) -> None:
        self._predictions, self._opens, self._asks = predictions, opens, asks
        self._span = Span() if caches else None
        self._fresh: dict[str, Estimate] = {}
        self._predicted: dict[str, Estimate] = {}

    def learn(self, release: Release) -> None:
        measurement = release.measurement
        if not isinstance(measurement, Rows) or isinstance(measurement.matrix, int) == release.opening:
            raise LedgerError("it measures what this policy does not")
        values = measurement.values(release.noisy)
        if release.opening:
            keys = [query.key for query in measurement.queries]
            if not self._opens or self._predicted or keys != self._predictions:
                raise LedgerError("it is no release for the predicted queries")
            decode = measurement.decoding
            found = zip(decode @ values, np.einsum("ij,ij->i", decode, decode), strict=True)
            estimates = [Estimate(float(value), float(variance), "predicted") for value, variance in found]
            self._predicted = dict(zip(keys, estimates, strict=True))
        else:
            if not self._asks:
                raise LedgerError("this policy measures nothing for a statement")
            self._fresh = _each(measurement, release)
        if self._span is not None:
            self._span.learn(measurement, values)

    def lasts(self, query: Query) -> bool:
        return query.key in self._predicted

    def answers(self, queries: Sequence[Query], *, fresh: bool = False) -> Said:
        found = cache(lambda: self._span.find_each(queries) if self._span is not None else {})

        def said(query: Query, source: Source) -> Estimate | None:
            if query.key in self._predicted:
                return self._predicted[query.key]
            if fresh:
                return self._fresh.get(query.key)
            one = found().get(query) if source == "cache" else None
            return None if one is None else Estimate(one.value, one.variance, "cache")

        return said

    def renewed(self, queries: Sequence[Query]) -> Renewed:
        def said(query: Query, past: Estimate | None) -> Estimate | None:
            fresh = self._fresh.get(query.key)
            return fresh and joined(past or self._predicted.get(query.key), fresh)

        return said


def _each(measurement: Rows, release: Release) -> dict[str, Estimate]:
    """What a release says of each query that it measured one by one, by key."""
    keys = (query.key for query in measurement.queries)
    return dict(zip(keys, one_by_one(measurement, release.noisy), strict=True))


class _Cells:
    """One noisy count a cell, and perhaps their total, before the stream."""

    def __init__(self, domain: Domain) -> None:
        self._domain, self._cells = domain, np.zeros(0)
        self._square = self._total = 0.0  # c² and d² of the strategy cI with one row d1

    def learn(self, release: Release) -> None:
        measurement, n = release.measurement, self._domain.size
        counts = isinstance(measurement, Rows) and len(measurement.queries) == n
        if not counts or not release.opening or len(self._cells):
            raise LedgerError("it is no release of a count for each cell")
        assert isinstance(measurement, Rows)
        for place, query in enumerate(measurement.queries):
            vector = query.vector()
            if vector[place] != 1 or np.count_nonzero(vector) != 1:
                raise LedgerError(f"its query {place} counts another cell")
        values, total = measurement.values(release.noisy), 0.0
        if isinstance(measurement.matrix, int):
            point = measurement.matrix / 2.0**measurement.bits
        else:
            point, total = (int(end) / 2.0**measurement.bits for end in measurement.matrix[[0, -1], 0])
        self._square, self._total = point**2, total**2
        pulled = point * values[:n] + (total * values[n] if total else 0.0)
        self._cells = (pulled - self._shared * pulled.sum()) / self._square

    @property
    def _shared(self) -> float:
        return self._total / (self._square + self._domain.size * self._total)

    def lasts(self, query: Query) -> bool:
        return True

    def answers(self, queries: Sequence[Query], *, fresh: bool = False) -> Said:
        return self._answer

    def renewed(self, queries: Sequence[Query]) -> Renewed:
        return lambda query, past: None

    def _answer(self, query: Query, source: Source) -> Estimate | None:
        if not len(self._cells):
            return None
        vector = query.vector().astype(float)
        variance = (float(vector @ vector) - self._shared * float(vector.sum()) ** 2) / self._square
        return Estimate(float(vector @ self._cells), variance, "histogram")


class _Belief:
    """A belief that learns from every release: over the cells of a small table, else over queries."""

    def __init__(self, domain: Domain, predictions: list[str]) -> None:
        self._predictions = frozenset(predictions)
        self._cells = domain.size
        self._domain = domain
        self._belief: DenseBelief | FactoredBelief | GroupedBelief | None = None
        self._opened = False

    def learn(self, release: Release) -> None:
        measurement = release.measurement
        if not (self._opened or release.opening):
            raise LedgerError("it is no release that primm makes")
        values = measurement.values(release.noisy)
        if self._belief is None and self._cells > DENSE_CELLS and isinstance(measurement, Marginals):
            self._belief = GroupedBelief(measurement)
        elif self._belief is None and self._cells <= MAX_CELLS and isinstance(measurement, Rows):
            self._belief = DenseBelief(self._cells)
        elif self._belief is None and isinstance(measurement, ProductRows):
            self._belief = FactoredBelief(self._domain)
        match self._belief, measurement:
            case DenseBelief() as belief, Rows():
                belief.learn(measurement, values)
            case FactoredBelief() as belief, ProductRows():
                belief.learn(measurement, values)
            case GroupedBelief() as belief, _:
                belief.learn(measurement, values)
            case _:
                raise LedgerError("it is no release that primm makes on such a table")
        self._opened = True

    def lasts(self, query: Query) -> bool:
        return False

    def answers(self, queries: Sequence[Query], *, fresh: bool = False) -> Said:
        known = self._belief is not None and self._opened and len(queries) > 0
        each = self._belief.estimates(queries) if self._belief is not None and known else []
        found = dict(zip(queries, each, strict=False))

        def said(query: Query, source: Source) -> Estimate | None:
            predicted, one = query.key in self._predictions, found.get(query)
            if one is None or not (predicted or fresh or source == "background"):
                return None
            name: Source = "predicted" if predicted else "measured" if fresh else "background"
            belief = self._belief
            law = belief.law(query) if isinstance(belief, DenseBelief | FactoredBelief) else ()
            return Estimate(*one, name, *law)

        return said

    def renewed(self, queries: Sequence[Query]) -> Renewed:
        said = self.answers(queries, fresh=True)
        return lambda query, past: said(query, "measured")


class _Persons:
    """Counts of persons are what was measured of them; of rows, `rows` knows."""

    def __init__(self, rows: _Known) -> None:
        self.rows = rows
        self._fresh: dict[str, Estimate] = {}

    def learn(self, release: Release) -> None:
        measurement = release.measurement
        if not isinstance(measurement, PersonRows):
            self.rows.learn(release)
            return
        if release.opening or isinstance(self.rows, _Cells):
            raise LedgerError("it measures what this policy does not")
        self._fresh = _each(measurement, release)
        found = of_rows(measurement, measurement.values(release.noisy))
        if found is not None:
            noisy = tuple(release.noisy[place] for place in measurement.places)
            self.rows.learn(replace(release, measurement=found[0], noisy=noisy))

    def lasts(self, query: Query) -> bool:
        return not isinstance(query, Persons) and self.rows.lasts(query)

    def answers(self, queries: Sequence[Query], *, fresh: bool = False) -> Said:
        said = self.rows.answers(parted(queries)[1], fresh=fresh)

        def each(query: Query, source: Source) -> Estimate | None:
            if isinstance(query, Persons):
                return self._fresh.get(query.key) if fresh else None
            return said(query, source)

        return each

    def renewed(self, queries: Sequence[Query]) -> Renewed:
        said = self.rows.renewed(parted(queries)[1])

        def each(query: Query, past: Estimate | None) -> Estimate | None:
            if not isinstance(query, Persons):
                return said(query, past)
            fresh = self._fresh.get(query.key)
            return fresh and joined(past, fresh)

        return each


def _known_by(policy: str, domain: Domain, predictions: list[str]) -> _Known:
    if policy in ("primm", "laplace-counts"):
        return _Belief(domain, predictions)
    if policy in ("histogram", "histogram-total"):
        return _Cells(domain)
    if policy in ("independent", "laplace"):
        return _Direct([], opens=False, asks=True)
    if policy in ("static", "smooth", "smooth-cache"):
        return _Direct(predictions, opens=True, asks=True, caches=policy == "smooth-cache")
    if policy == "offline":
        return _Direct(predictions, opens=True, asks=False)
    raise LedgerError(f"this version knows no policy {policy}")


def _kept(past: Estimate, one: Estimate) -> bool:
    """Whether an answer is what was shown before, or that with a fitted value where it had none."""
    fitted = one.fitted if past.fitted is None else past.fitted
    return replace(past, source=one.source, fitted=fitted) == one


def _agree(due: Estimate, shown: Estimate) -> bool:
    near = TOLERANCE * math.sqrt(due.variance) + 1e-9 * abs(due.value)
    return (
        (due.source, due.law) == (shown.source, shown.law)
        and abs(due.value - shown.value) <= near
        and math.isclose(due.variance, shown.variance, rel_tol=TOLERANCE)
        and math.isclose(due.parts, shown.parts, rel_tol=TOLERANCE)
    )
