"""How strongly rows are measured: as much as an allowance buys, and never more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, TypedDict

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetExhausted
from laprasdp.privacy.budget import EPSILON_BITS, MU_BITS
from laprasdp.privacy.noise import LAPLACE_LIMIT, LATTICE_BITS
from laprasdp.queries.distinct import Persons, counts_persons
from laprasdp.queries.groups import Groups, gathered
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import GRID_BITS, Rows
from laprasdp.strategy.person_rows import PersonRows

_SUMS = 2
"""Times what is charged for counts, that is charged for each class of sums beside them."""


class Noise(TypedDict):
    """Law and scale of the noise of a measurement, as `Measurement` has them."""

    law: Literal["gaussian", "laplace"]
    scale: int
    scale_bits: int


def measure(queries: Sequence[Query], mu_squared: Fraction, max_rows: int = 1) -> Rows:
    """
    Each query measured by itself, as strongly as `mu_squared` allows; each class of them with one scale.

    Parameters
    ----------
    queries : sequence of Query
        Disjoint queries (the groups of a GROUP BY) share the allowance at no loss.
    mu_squared : Fraction
        Largest squared column norm that the release may have, all rows of a unit together.
    max_rows : int
        Rows that one privacy unit may have.

    Raises
    ------
    BudgetExhausted
        The allowance is too small to measure anything on the lattice.

    Notes
    -----
    With scale c on the grid 2⁻⁵² the estimate noisy/c is unbiased, of variance 1/c².
    """
    unit = one_by_one(queries, LATTICE_BITS, times=times_of(queries, max_rows))
    return replace(unit, matrix=lattice_scale(mu_squared, unit.largest(max_rows)))


def one_by_one(queries: Sequence[Query], bits: int, **noise: Any) -> Rows:
    """Once each query, of rows or of persons."""
    kind = PersonRows if counts_persons(queries) else Rows
    return kind(gathered(queries), 1, bits=bits, **noise)


def times_of(queries: Sequence[Query], max_rows: int, *, absolute: bool = False) -> tuple[int, ...]:
    """
    How many times each query of a measurement is measured, so that no class has the noise of another.

    Parameters
    ----------
    queries : sequence of Query
    max_rows : int
        Rows that one privacy unit may have.
    absolute : bool
        By L1 norms, as for Laplace noise; else by L2 norms.

    Returns
    -------
    tuple of int
        Empty where it is once each.

    Notes
    -----
    A class is the counts of persons, or the queries of rows whose largest weight has so many binary places:
    the counts, the sums of each width.  A class that one unit changes by at most s, in norm, is measured
    about S/s times, S being the largest of these, so that a cell where classes meet is charged alike for
    each; for sums twice what it is for counts, which gives an average of half the width its least variance.
    Where all shares of K classes are alike each has K times the variance that it has alone, the least sum of
    these ratios (Cauchy's inequality).  Sums that do not meet cost one another nothing.

    **Privacy.**  A function of the queries and public settings.
    """
    if isinstance(queries, Groups):
        return ()
    classes = [-1 if isinstance(one, Persons) else (one.sensitivity | 1).bit_length() for one in queries]
    if len(set(classes)) < 2:
        return ()
    wanted = dict[int, float]()
    for kind in set(classes):
        unit = one_by_one([one for one, its in zip(queries, classes, strict=True) if its == kind], 0)
        power = _SUMS if kind > 1 else 1
        norms = unit.largest_change(max_rows), math.sqrt(unit.largest(max_rows))
        wanted[kind] = power / max(norms[0], 1) if absolute else math.sqrt(power) / max(norms[1], 1)
    least = min(wanted.values())
    times = tuple(math.floor(wanted[kind] / least + 0.5) for kind in classes)
    return times if max(times) > 1 else ()


def lattice_scale(mu_squared: Fraction, largest: int) -> int:
    """
    The largest scale in steps of the lattice whose release is within `mu_squared`.

    Parameters
    ----------
    mu_squared : Fraction
    largest : int
        Largest squared column norm of what is scaled.

    Raises
    ------
    BudgetExhausted
        It is too small to measure anything on the lattice.
    """
    scale = math.isqrt((mu_squared.numerator << 2 * LATTICE_BITS) // (mu_squared.denominator * largest))
    if scale < 2**8:
        raise BudgetExhausted("the allowance left for this query is too small to measure it")
    return scale


def measure_laplace(queries: Sequence[Query], epsilon_units: int, max_rows: int = 1) -> Rows:
    """
    Each query measured by itself with discrete Laplace noise, as strongly as ε allows.

    Each class of them has a scale, as in `measure`.

    Parameters
    ----------
    queries : sequence of Query
    epsilon_units : int
        ε of the whole release, in units of 2⁻⁴⁰.
    max_rows : int
        Rows that one privacy unit may have.

    Raises
    ------
    BudgetExhausted
        ε is too small for the lattice.

    Notes
    -----
    **Privacy.**  Answers whose L1 sensitivity is Δ, with noise of scale Δ/ε, are ε-DP.
    """
    times = times_of(queries, max_rows, absolute=True)
    return with_laplace(one_by_one(queries, 0, times=times), epsilon_units, max_rows)


def with_laplace(rows: Rows, epsilon_units: int, max_rows: int) -> Rows:
    """The same rows with discrete Laplace noise of one scale, as little as ε allows."""
    return replace(rows, **laplace_noise(rows.largest_change(max_rows), epsilon_units))


def laplace_noise(sensitivity: int, epsilon_units: int) -> Noise:
    """
    Law and scale of Laplace noise, as little as ε allows.

    Parameters
    ----------
    sensitivity : int
        Largest L1 norm of what one unit adds, in steps of the grid.
    epsilon_units : int
        In units of 2⁻⁴⁰.

    Raises
    ------
    BudgetExhausted
        ε is too small.

    Notes
    -----
    The scale is Δ/ε rounded up to 24 binary places, and exactly what the sampler is given.
    """
    if epsilon_units <= 0:
        raise BudgetExhausted("the allowance left for this query is too small to measure it")
    exact = sensitivity << EPSILON_BITS
    bits = max(0, GRID_BITS - (exact // epsilon_units).bit_length())
    scale = -((-exact << bits) // epsilon_units)
    even = min((scale & -scale).bit_length() - 1, bits)
    scale, bits = scale >> even, bits - even
    if scale > LAPLACE_LIMIT:
        raise BudgetExhausted("the allowance left for this query is too small to measure it")
    return Noise(law="laplace", scale=scale, scale_bits=bits)


def quantize(queries: Sequence[Query], encode: Floats, mu_squared: Fraction, max_rows: int = 1) -> Rows:
    """
    An optimised strategy on the grid, scaled to `mu_squared` and never above it.

    Parameters
    ----------
    queries : sequence of m Query
        The workload W.
    encode : (r, m) float array
        Y; the strategy is ``A = Y W``, with largest column norm 1.
    mu_squared : Fraction
        Largest squared column norm that the release may have, all rows of a unit together.
    max_rows : int
        Rows that one privacy unit may have.
    """
    limit = math.floor(mu_squared * 2**MU_BITS)
    target = math.sqrt(mu_squared) / max_rows
    largest_weight = max(query.sensitivity for query in queries)
    finer = max(0, math.frexp(largest_weight / max(target, 2.0**-LATTICE_BITS))[1] - 1)
    bits = min(GRID_BITS + finer, LATTICE_BITS)
    target *= 2.0**bits
    for _ in range(8 if target / largest_weight >= 2**10 else 0):
        scaled = np.rint(encode * target)
        matrix = np.array([[int(entry) for entry in row] for row in scaled.tolist()], dtype=object)
        measurement = Rows(tuple(queries), matrix, bits=bits)
        largest = int(measurement.amounts(max_rows).weights.max())
        if largest <= limit:
            return measurement
        target *= math.sqrt(limit / largest) * (1 - 2.0**-22)
    raise BudgetExhausted("the allowance left for the predicted queries is too small to measure them")
