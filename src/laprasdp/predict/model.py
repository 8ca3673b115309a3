"""What a predictor is: fitted to a log, it says how often each statement is expected."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.predict.log import Log
from laprasdp.predict.template import Key

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Context:
    """
    Where the stream to be predicted begins.

    Attributes
    ----------
    at : float, optional
        Its first moment, in seconds since 1970; the end of the log otherwise.
    session : tuple of Key
        What its session has asked so far, the oldest first; empty before it has begun.
    """

    at: float | None = None
    session: tuple[Key, ...] = ()


@dataclass(frozen=True, eq=False)
class Spread:
    """
    A number for each statement: a share of the stream, or an expected count.

    Attributes
    ----------
    known : (n,) array
        One for each statement of the log.
    new : mapping
        Statements that the log does not hold.
    """

    known: Floats
    new: Mapping[Key, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Their sum."""
        return float(self.known.sum()) + sum(self.new.values())

    def times(self, factor: float) -> Spread:
        """Every number multiplied."""
        return Spread(self.known * factor, {key: factor * value for key, value in self.new.items()})

    def plus(self, other: Spread) -> Spread:
        """Both added up."""
        new = dict(self.new)
        for key, value in other.new.items():
            new[key] = new.get(key, 0.0) + value
        return Spread(self.known + other.known, new)

    def ranked(self, log: Log, count: int) -> Iterator[tuple[Key, float]]:
        """The `count` statements with the largest numbers, largest first; the earlier of equals first."""
        top = np.argsort(-self.known, kind="stable")[:count]
        found = [(log.statements[n], float(self.known[n])) for n in top.tolist()]
        found += sorted(self.new.items(), key=lambda item: -item[1])[:count]
        yield from (pair for pair in sorted(found, key=lambda item: -item[1])[:count] if pair[1] > 0)


class Predictor(Protocol):
    """
    Predicts a stream from a log.

    Attributes
    ----------
    missing_mass : float
        Share of the next statements that no statement of the log is equal to.
    """

    @property
    @abstractmethod
    def missing_mass(self) -> float: ...

    @abstractmethod
    def fit(self, log: Log) -> None:
        """Learn from a log; earlier logs are forgotten."""

    @abstractmethod
    def expected_counts(self, horizon: int, context: Context) -> Spread:
        """
        How often each statement is expected among the next `horizon`.

        Returns
        -------
        Spread
            Sums to `horizon` less B₀, the expected number of statements that are not in it.
        """

    @abstractmethod
    def chances(self, counts: Floats) -> Floats:
        """Probability that a statement of each expected count is asked at least once."""
