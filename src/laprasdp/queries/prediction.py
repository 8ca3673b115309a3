"""A prediction: a statement that is expected, how often, and where it was declared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from laprasdp.errors import ConfigError
from laprasdp.queries.query import Query


@dataclass(frozen=True)
class Prediction:
    """
    A statement that is expected.

    Attributes
    ----------
    text : str
        SQL; or what a query made in Python is called.
    queries : tuple of Query
        What it asks, one query for each group of a GROUP BY; empty until it has been read.
    labels : tuple of str
        Which group each of `queries` is, where there are groups.
    expected : float, optional
        λ, how often it is expected among S statements, where something tells it.
    place : str
        Where it was declared, for messages.

    Raises
    ------
    ConfigError
        `expected` is no positive number.
    """

    text: str
    queries: tuple[Query, ...] = ()
    labels: tuple[str, ...] = ()
    expected: float | None = None
    place: str = field(default="prediction", compare=False)

    def __post_init__(self) -> None:
        count = self.expected
        if count is None:
            return
        if isinstance(count, bool) or not isinstance(count, int | float) or not 0 < count < math.inf:
            raise ConfigError(f"{self.place}: an expected count is a positive number, not {count!r}")

    @property
    def parts(self) -> tuple[Prediction, ...]:
        """Each query as a prediction of its own, named by its group."""
        named = [f"{self.text} [{label}]" for label in self.labels] or [self.text]
        return tuple(
            Prediction(text, (query,), (), self.expected, self.place)
            for text, query in zip(named, self.queries, strict=True)
        )

    def together(self, other: Prediction) -> Prediction:
        """This prediction with the counts of both added."""
        if self.expected is None and other.expected is None:
            return self
        counts = (1.0 if one.expected is None else one.expected for one in (self, other))
        return replace(self, expected=sum(counts))


def describe(query: Query) -> str:
    """What a query without a statement is called."""
    return f"query over {', '.join(query.names) or 'all rows'} [{query.key[:8]}]"
