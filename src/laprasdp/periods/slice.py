"""A slice: one period's rows of a table, as a table of its own."""

from __future__ import annotations

from laprasdp.data.table import Table
from laprasdp.periods.period import Part
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal


class Slice:
    """
    Counts of one period from a table of all; implements `laprasdp.data.table.Table`.

    Parameters
    ----------
    whole : Table
        Where the unit is a person, at most `max_rows` rows of a person count in each period, chosen by that
        person's rows of the period alone.
    part : Part

    Notes
    -----
    **Privacy.**  Assumes the above of `whole`.  Guarantees what `Table` asks, with a person's rows of other
    periods as if they were not there.
    """

    def __init__(self, whole: Table, part: Part) -> None:
        self._whole, self._part = whole, part

    @property
    def domain(self) -> Domain:
        """The period's domain."""
        return self._part.domain

    @property
    def name(self) -> str:
        """The name by which statements call the table."""
        return self._whole.name

    @property
    def unit(self) -> PrivacyUnit:
        """What a neighbour may add or remove, within the period."""
        return self._whole.unit

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over the attributes at `axes` (ascending; empty for all rows together).  Private."""
        return self._part.marginal(self._whole.marginal(tuple(sorted({*axes, self._part.axis}))), axes)
