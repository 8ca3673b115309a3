"""A private table: all it is ever asked for is exact counts of combinations of levels."""

from __future__ import annotations

from collections.abc import Mapping
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
    def types(self) -> Mapping[str, str]:
        """
        The DuckDB type of each attribute's column, which says how DuckDB compares it with constants.

        From the schema alone, hence public.  An attribute that is not in it has the type natural to it;
        a column of texts that has a collation ends in ``COLLATE``.
        """

    @property
    def unit(self) -> PrivacyUnit: ...

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """
        Exact counts over some attributes.

        Parameters
        ----------
        axes : tuple of int
            Positions of attributes, ascending; empty for all rows together (one count, 0 for no rows).
            Where `unit.max_rows` is above 1, the number of attributes stands for persons, who have a level
            each, and are counted once for each combination of the others.

        Returns
        -------
        Marginal
            Combinations that occur, in ascending order of levels; arrays are read-only and shared.

        Raises
        ------
        DomainError
            `axes` are not ascending positions of the domain.
        DataError
            The table is closed.

        Notes
        -----
        **Privacy.**  The counts are exact and private.  Safe to call from several threads.
        """
