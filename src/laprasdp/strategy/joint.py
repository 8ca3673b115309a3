"""The best strategy for a set of queries together, whatever the size of the domain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_SEARCHED
from laprasdp.queries.columns import distinct_columns
from laprasdp.queries.query import Query
from laprasdp.queries.runs import Runs, runs_of
from laprasdp.strategy.background import range_moment
from laprasdp.strategy.clipped import quantize_clipped
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.optimize import optimize, optimize_gram
from laprasdp.strategy.search import search_strategy
from laprasdp.strategy.strength import quantize
from laprasdp.strategy.threads import blas_threads
from laprasdp.strategy.tree import SHORT

FEW_COLUMNS = 2_500
"""Distinct columns up to which the optimum over all of them is certified."""


FEW_PIECES = 256
"""Pieces between the bounds of queries on one line, up to which all ranges between them are designed for."""


@dataclass(frozen=True, eq=False)
class Joint:
    """
    A strategy for some queries together.

    Attributes
    ----------
    queries : tuple of m Query
        What is measured: those that the strategy is for, or what they are sums of.
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


def design_line(
    queries: Sequence[Query], weights: Floats, others: float, *, gap: float = 1e-2
) -> Joint | None:
    """
    The best strategy for queries on one long attribute and for all ranges between their bounds.

    Parameters
    ----------
    queries : sequence of m distinct Query
        None of them zero.
    weights : (m,) array
        What each weighs.
    others : float
        What all those ranges weigh together, against the queries together.
    gap : float

    Returns
    -------
    Joint or None
        Over the pieces between neighbouring bounds; None for queries that are not all of one long attribute,
        or that have more than `FEW_PIECES`.

    Notes
    -----
    Weights are of absolute errors, by reweighting with 1/deviation.  What the queries alone need tells next
    to nothing of a single bound; with a quarter for the ranges they lose 5% (docs/primm.md).
    """
    axes = {query.axes for query in queries}
    axis = min(axes)[0] if len(min(axes)) == 1 else -1
    if len(axes) > 1 or axis < 0 or queries[0].domain.shape[axis] <= SHORT:
        return None
    starts = np.unique(np.concatenate([runs_of(query.steps[0]).starts for query in queries]))
    k = len(starts)
    if k > FEW_PIECES:
        return None
    vectors = np.array([query.weights[runs_of(query.steps[0]).at(starts)] for query in queries], dtype=float)
    ranges = range_moment(k)
    mine, theirs = np.ones(len(queries)), 1.0
    for _ in range(2):
        gram = (vectors.T * (weights * mine)) @ vectors + ranges * (others * theirs)
        found = optimize_gram(gram, gap=gap)
        with blas_threads(k):
            inverse = np.linalg.inv(found.precision)
        mine = 1 / np.sqrt(np.einsum("ij,jk,ik->i", vectors, inverse, vectors))
        theirs = 1 / math.sqrt(float(np.sum(ranges * inverse)))
    domain, size = queries[0].domain, queries[0].domain.shape[axis]
    ends, pieces = np.append(starts, size), []
    for low, high in itertools.pairwise(ends.tolist()):
        bounds = [0, *{low, high} - {0, size}]
        runs = Runs(size, np.array(sorted(bounds)), np.arange(len(bounds)))
        inside = (runs.starts >= low) & (runs.starts < high)
        pieces.append(Query.over(domain, (axis,), [runs], inside.astype(np.int64)).canonical())
    return Joint(tuple(pieces), found.strategy, False, found.gap)


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

    Raises
    ------
    UnsupportedQuery
        They tell many columns apart, and are more than `limits.MAX_SEARCHED`.
    """
    try:
        columns = distinct_columns(queries, FEW_COLUMNS).values.astype(float)
    except UnsupportedQuery as many:
        if len(queries) > MAX_SEARCHED:
            raise UnsupportedQuery(
                f"{len(queries):,} predicted queries that tell more than {FEW_COLUMNS:,} columns apart; the "
                f"limit is {MAX_SEARCHED:,}: predict fewer, or use the policy primm"
            ) from many
        return Joint(tuple(queries), search_strategy(queries, weights).encode, True, None)
    found = optimize(columns, weights=weights, gap=gap)
    return Joint(tuple(queries), found.encode, False, found.gap)
