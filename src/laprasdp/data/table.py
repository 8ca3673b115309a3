"""A private table seen through its one verb: the exact count of every occurring combination of levels."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal


@runtime_checkable
class Table(Protocol):
    """
    Where the private rows are.

    Privacy
    -------
    Assumed of every implementation: rows outside the domain are not counted; with a privacy unit of a
    column, at most `unit.max_rows` rows of one person are, and which ones depends on that person's rows
    alone; a row without a person is not counted; all marginals come from the same rows.  Nothing is
    written to the source.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def name(self) -> str:
        """The name by which statements call the table."""

    @property
    def unit(self) -> PrivacyUnit: ...

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over the attributes at `axes` (ascending; empty for all rows together)."""
