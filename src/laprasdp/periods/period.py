"""Periods: consecutive stretches of a date attribute, and what queries over all of them mean in one."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from laprasdp.errors import DomainError, LedgerError
from laprasdp.privacy.budget import Budget
from laprasdp.queries.attribute import Dates
from laprasdp.queries.distinct import Persons
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.prediction import Prediction
from laprasdp.queries.query import Query
from laprasdp.record.settings import Settings, domain_of

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Period:
    """
    Consecutive dates whose rows share one budget, and what is declared for them alone.

    Parameters
    ----------
    first, last : datetime.date or ISO text
        Both included.  All rows of these dates must be there when the period is declared, and not change.
    budget : Budget, optional
    predictions : sequence of str or Query, optional
        Over the whole domain; what they ask of the period is predicted.
    policy : str, optional

    Raises
    ------
    DomainError
        These are no dates in order.
    """

    first: dt.date
    last: dt.date
    budget: Budget | None = None
    predictions: Sequence[str | Query] | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        dates = Dates(self.first, self.last)
        object.__setattr__(self, "first", dates.first)
        object.__setattr__(self, "last", dates.last)

    @property
    def name(self) -> str:
        """Its first date: periods never overlap."""
        return self.first.isoformat()

    def overlaps(self, other: Period) -> bool:
        """Whether a date lies in both."""
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Part:
    """
    A period as a part of the whole domain.

    Attributes
    ----------
    period : Period
    axis : int
        Of the date attribute.
    start, stop : int
        The period's levels in the whole domain, `stop` excluded.
    domain : Domain
        The whole one with the date attribute cut to the period.
    """

    period: Period
    axis: int
    start: int
    stop: int
    domain: Domain

    @classmethod
    def of(cls, domain: Domain, attribute: str, period: Period) -> Part:
        """
        The part of `domain` that a period is.

        Raises
        ------
        DomainError
            The period does not begin and end with levels of the attribute.
        """
        dates = dates_of(domain, attribute)
        own = Dates(period.first, period.last, dates.step)
        start = int(np.searchsorted(np.array(dates.edges, dtype="datetime64[D]"), np.datetime64(own.first)))
        if dates.edges[start : start + len(own.edges)] != own.edges:
            raise DomainError(
                f"the period {period} of {attribute} cuts a step of {dates.step!r} from {dates.first}: "
                "declare smaller steps, or other periods"
            )
        cut = Domain((name, own if name == attribute else domain[name]) for name in domain)
        return cls(period, domain.axis(attribute), start, start + own.values, cut)

    def restrict(self, query: Query) -> Query:
        """What a query over the whole domain counts of the period, over the period's own domain."""
        labels = {
            name: column[self.start : self.stop] if axis == self.axis else column
            for name, axis, column in zip(query.names, query.axes, query.labels, strict=True)
        }
        found = Query(self.domain, labels, query.weights)
        return Persons.of(found) if isinstance(query, Persons) else found

    def restrict_groups(self, groups: Groups) -> tuple[Groups | None, list[int]]:
        """The groups in the period, over its own domain, and their places among all; None where none is."""
        whole, levels = self.restrict(groups.whole), list(groups.levels)
        inside = np.ones(len(groups), dtype=bool)
        if self.axis in groups.by:
            place = groups.by.index(self.axis)
            inside = (levels[place] >= self.start) & (levels[place] < self.stop)
            levels[place] = levels[place] - self.start
        if not inside.any():
            return None, []
        shape = tuple(self.domain.shape[axis] for axis in groups.by)
        mine = Groups(whole, groups.by, np.ravel_multi_index(tuple(each[inside] for each in levels), shape))
        return mine, np.flatnonzero(inside).tolist()

    def predicted(self, predictions: Iterable[Prediction]) -> tuple[Prediction, ...]:
        """What predictions of one query each predict of the period, without what counts nothing there."""
        found: dict[Query, Prediction] = {}
        for one in predictions:
            mine = self.restrict(one.queries[0])
            if not mine.is_zero:
                part = replace(one, queries=(mine,))
                found[mine] = found[mine].together(part) if mine in found else part
        return tuple(found.values())

    def marginal(self, whole: Marginal, axes: tuple[int, ...]) -> Marginal:
        """
        The period's counts over some attributes.

        Parameters
        ----------
        whole : Marginal
            Counts of the whole table over at least `axes` and the date attribute.
        axes : tuple of int
            Ascending.
        """
        dates = whole.levels[self.axis]
        inside = (dates >= self.start) & (dates < self.stop)
        levels = {axis: whole.levels[axis][inside].astype(np.int64) for axis in axes}
        counts = whole.counts[inside]
        if self.axis in levels:
            levels[self.axis] -= self.start
        elif not axes:
            counts = counts.sum(keepdims=True)
        else:
            levels, counts = _gathered(levels, counts)
        for array in (counts, *levels.values()):
            array.setflags(write=False)
        return Marginal(levels, counts)


def dates_of(domain: Domain, attribute: str) -> Dates:
    """
    The date attribute that periods are made of.

    Raises
    ------
    DomainError
        It is not there, holds no dates, or may be NULL.
    """
    dates = domain[attribute]
    if not isinstance(dates, Dates):
        raise DomainError(f"periods are made of dates, but {attribute} is declared as {dates.kind}")
    if dates.nullable:
        raise DomainError(f"a row without {attribute} would lie in no period: declare it without nullable")
    return dates


def periods_of(dates: Dates, attribute: str, declared: int | str | Iterable[Period]) -> list[Period]:
    """
    The periods of a date attribute.

    Parameters
    ----------
    dates : Dates
    attribute : str
        Its name, for messages.
    declared : int, str or iterable of Period
        A step as `Dates` takes, counted from the attribute's first date; or the periods, in order.

    Raises
    ------
    DomainError
        They do not cover the attribute's dates, each date once; or its last date lies inside a step.
    """
    if isinstance(declared, int | str):
        edges = Dates(dates.first, dates.last, declared).edges
        if Dates(dates.first, dates.last + DAY, declared).values == len(edges) - 1:
            ends = f", such as {edges[-2] - DAY}" if len(edges) > 2 else ""
            raise DomainError(
                f"{attribute} ends on {dates.last}, inside the period that begins on {edges[-2]}: "
                f"let it end with a period{ends}"
            )
        return [Period(first, after - DAY) for first, after in itertools.pairwise(edges)]
    periods = list(declared)
    expected = dates.first
    for place, period in enumerate(periods, start=1):
        if not isinstance(period, Period):
            raise DomainError(f"periods: the {place}. is no Period, but {period!r}")
        if period.first != expected:
            raise DomainError(f"a period of {attribute} must begin on {expected}, not on {period.first}")
        expected = period.last + DAY
    if expected != dates.last + DAY:
        raise DomainError(
            f"the periods of {attribute} end before {expected}, but its last date is {dates.last}"
        )
    return periods


def next_period(dates: Dates, step: int | str) -> Period:
    """The step of this length that follows the attribute's last date."""
    days = step if isinstance(step, int) else 400
    edges = Dates(dates.first, dates.last + days * DAY, step).edges
    place = edges.index(dates.last + DAY)
    return Period(edges[place], edges[place + 1] - DAY)


def check_kept(parts: Iterable[Part], table: str, attribute: str, begun: Mapping[str, Settings]) -> None:
    """
    Whether periods fit those that ledgers were begun for: rows of a period never get another budget.

    Raises
    ------
    LedgerError
        One overlaps a period of the same table, or a ledger is of no period of `attribute`.
    """
    for name, settings in begun.items():
        if not name.startswith(f"{table}@"):
            continue
        domain = domain_of(settings)
        if attribute not in domain.names:
            raise LedgerError(f"the ledger has {name}, which is no period of {attribute}")
        dates = dates_of(domain, attribute)
        other = Period(dates.first, dates.last)
        for period in (part.period for part in parts):
            same = (period.first, period.last) == (other.first, other.last)
            if other.overlaps(period) and not same:
                raise LedgerError(f"the period {period} overlaps {other}, which the ledger has")


def _gathered(
    levels: Mapping[int, npt.NDArray[np.int64]], counts: npt.NDArray[np.int64]
) -> tuple[dict[int, npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """Equal combinations added up, in ascending order."""
    rows, where = np.unique(np.stack(list(levels.values()), axis=1), axis=0, return_inverse=True)
    sums = np.zeros(len(rows), dtype=np.int64)
    np.add.at(sums, where.reshape(-1), counts)
    return {axis: np.ascontiguousarray(rows[:, place]) for place, axis in enumerate(levels)}, sums
