"""The best strategy for a set of queries together, whatever the size of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from laprasdp.arrays import Floats
from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.columns import distinct_columns
from laprasdp.queries.query import Query
from laprasdp.strategy.clipped import quantize_clipped
from laprasdp.strategy.measurement import Rows, quantize
from laprasdp.strategy.optimize import optimize
from laprasdp.strategy.search import search_strategy

FEW_COLUMNS = 2_500
"""Distinct columns up to which the optimum over all of them is certified."""


@dataclass(frozen=True, eq=False)
class Joint:
    """
    A strategy for some queries together.

    Attributes
    ----------
    queries : tuple of m Query
    encode : (r, m) array
        Y; its rows times the queries are measured, with a largest column norm of one.
    clipped : bool
        The columns were searched, not listed: each record is clipped to the norm.
    gap : float or None
        Relative distance from the optimum, where that is certified.
    """

    queries: tuple[Query, ...]
    encode: Floats
    clipped: bool
    gap: float | None

    def at(self, mu_squared: Fraction, max_rows: int = 1) -> Rows:
        """
        The release on the grid, as strong as `mu_squared` allows.

        Raises
        ------
        BudgetExhausted
            The allowance is too small for the lattice.
        """
        return (quantize_clipped if self.clipped else quantize)(
            self.queries, self.encode, mu_squared, max_rows
        )


def design_joint(queries: Sequence[Query], weights: Floats | None = None, *, gap: float = 1e-2) -> Joint:
    """
    The best strategy for queries that are measured together.

    Parameters
    ----------
    queries : sequence of m distinct Query
        None of them zero.
    weights : (m,) array, optional
        What each weighs; not negative.
    gap : float
        Relative distance from the certified optimum at which a design over few columns stops.
    """
    try:
        columns = distinct_columns(queries, FEW_COLUMNS).values.astype(float)
    except UnsupportedQuery:
        return Joint(tuple(queries), search_strategy(queries, weights).encode, True, None)
    found = optimize(columns, weights=weights, gap=gap)
    return Joint(tuple(queries), found.encode, False, found.gap)
