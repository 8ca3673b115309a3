"""Whether an entry can be true: its numbers are possible, and its charge is what its noise costs."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np

from laprasdp.errors import BudgetError, LedgerError
from laprasdp.limits import MAX_WEIGHT
from laprasdp.privacy.accounting import Accounting, GaussianAccounting
from laprasdp.privacy.budget import EPSILON_BITS, Budget
from laprasdp.privacy.filter import BasicCharge, CellCharge, Charge
from laprasdp.privacy.law import Law
from laprasdp.privacy.noise import LAPLACE_LEAST, LAPLACE_LIMIT, LATTICE_BITS
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Release, Reply
from laprasdp.record.estimate import Estimate, Source
from laprasdp.record.format import units_of
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.product_rows import ProductRows

_LAWS, _SOURCES = get_args(Law), get_args(Source)
_NOISY = 2**160  # no table of less than 2⁶³ rows gives as much, in any steps
_VALUE, _VARIANCE = 2.0**128, 2.0**256
_PARTS = 2**20


def check_claim(entry: Entry, accounting: Accounting, max_rows: int, taken: Budget | None = None) -> None:
    """
    Whether an entry can be, by itself; of the entries before it, the accounting alone is needed.

    Parameters
    ----------
    entry : Entry
    accounting : Accounting
        For the budget of its time.
    max_rows : int
        Rows that one privacy unit may have.
    taken : Budget, optional
        What pure releases have taken whole.

    Raises
    ------
    LedgerError
        It cannot; the message says why.

    Notes
    -----
    **Privacy.**  Guarantees that the charge of a release is exactly what its measurement and noise cost,
    worked out from the integers that the ledger holds: a filter that adds up charges adds up noise.
    """
    if isinstance(entry, Release):
        _check_measurement(entry.measurement)
        _check_noisy(entry)
        due = _due(entry, accounting, max_rows, taken)
        if not _same(due, entry.charge):
            said, costs = units_of(entry.charge), units_of(due)
            raise LedgerError(f"its charge is {said} units, but its measurement costs {costs}")
    elif isinstance(entry, Reply):
        if len(entry.answers) != len(entry.queries):
            raise LedgerError(f"it has {len(entry.answers)} answers to {len(entry.queries)} queries")
        if entry.again and not entry.measured:
            raise LedgerError("it says that it was measured again, but no release was made for it")
        for estimate in entry.answers:
            if estimate is not None:
                _check_estimate(estimate)


def _check_measurement(measurement: Measurement) -> None:
    laplace = measurement.law == "laplace"
    if measurement.law not in _LAWS:
        raise LedgerError(f"{measurement.law!r} is no law of noise; there are {', '.join(_LAWS)}")
    if not 0 <= measurement.bits <= LATTICE_BITS:
        raise LedgerError(f"a grid of 2^-{measurement.bits} is finer or coarser than any")
    scale, bits = measurement.scale, measurement.scale_bits
    known = 1 <= scale <= LAPLACE_LIMIT and 0 <= bits <= LATTICE_BITS and (scale % 2 == 1 or not bits)
    if not (known and measurement.steps >= LAPLACE_LEAST if laplace else scale == bits == 0):
        raise LedgerError(f"its {measurement.law} noise has the scale {scale}/2^{bits}")
    if isinstance(measurement, ProductRows):
        if not laplace:
            raise LedgerError("a product of strategies is measured with Laplace noise")
        return
    if not isinstance(measurement, Rows):
        if laplace:
            raise LedgerError("Laplace noise is for queries one by one")
        return
    if not measurement.queries:
        raise LedgerError("it measures no query")
    queries = measurement.queries
    weights = [queries.whole] if isinstance(queries, Groups) else queries
    if any(query.sensitivity > 4 * MAX_WEIGHT for query in weights):
        raise LedgerError("it measures a weight that no query has")
    if isinstance(measurement.matrix, int):
        if measurement.matrix < 1:
            raise LedgerError(f"it measures {measurement.matrix} times its queries")
        if measurement.times:
            _check_times(measurement)
    elif laplace:
        raise LedgerError("Laplace noise is for queries one by one")
    elif measurement.matrix.ndim != 2 or measurement.matrix.shape[1] != len(measurement.queries):
        raise LedgerError("its matrix has not a column for each query")


def _check_times(measurement: Rows) -> None:
    times = measurement.times
    if isinstance(measurement.queries, Groups) or len(times) != len(measurement.queries):
        raise LedgerError("it measures something else several times than each of its queries")
    if min(times) != 1 or not 1 < max(times) <= 4 * MAX_WEIGHT:
        raise LedgerError("how many times it measures its queries has another spelling, or is too large")


def _check_noisy(release: Release) -> None:
    if len(release.noisy) != release.measurement.draws:
        raise LedgerError(f"it has {len(release.noisy)} noisy values for {release.measurement.draws} rows")
    if any(abs(value) >= _NOISY for value in release.noisy):
        raise LedgerError("it has a noisy value that no table gives")


def _due(release: Release, accounting: Accounting, max_rows: int, taken: Budget | None) -> Charge:
    """The charge of a release, worked out again from its measurement in exact integers."""
    measurement = release.measurement
    if not 0 <= release.allowance <= accounting.total:
        raise LedgerError(f"its allowance of {release.allowance} units is not in the budget")
    try:
        if measurement.law == "gaussian":
            amounts = measurement.amounts(max_rows)
            paced = isinstance(accounting, GaussianAccounting) and release.allowance
            if paced and int(amounts.weights.max()) > paced:
                raise BudgetError("it costs more than its allowance")
            return accounting.charge(release.allowance, amounts, measurement.draws)
        assert isinstance(measurement, Rows | ProductRows)
        epsilon = measurement.laplace_epsilon(max_rows)
        if isinstance(accounting, GaussianAccounting):
            return accounting.pure_charge(epsilon, measurement.draws, taken)
    except OverflowError:
        raise BudgetError("its noise is too small for any budget") from None
    if epsilon * 2**EPSILON_BITS > release.allowance:
        raise BudgetError("its noise is too small for its charge")
    return BasicCharge(release.allowance, 0, measurement.draws)


def _check_estimate(estimate: Estimate) -> None:
    if estimate.source not in _SOURCES:
        raise LedgerError(f"{estimate.source!r} is no source of an answer")
    if estimate.law not in _LAWS:
        raise LedgerError(f"{estimate.law!r} is no law of an error; there are {', '.join(_LAWS)}")
    if not 0 < estimate.variance < _VARIANCE:
        raise LedgerError(f"no answer has the variance {estimate.variance}")
    if not abs(estimate.value) < _VALUE:
        raise LedgerError(f"no table gives the answer {estimate.value}")
    if estimate.fitted is not None and not _near(estimate.fitted, estimate):
        raise LedgerError(f"{estimate.fitted} is no value fitted to {estimate.value}")
    if not 0.999 < estimate.parts < _PARTS or (estimate.law == "gaussian" and estimate.parts != 1):
        raise LedgerError(f"no {estimate.law} error is the sum of {estimate.parts} parts")


def _near(fitted: float, estimate: Estimate) -> bool:
    """Whether a fitted value is within one standard deviation, but for rounding; or 0 instead of less."""
    most = math.sqrt(estimate.variance) + 1e-9 * (1 + abs(estimate.value))
    return (fitted == 0 and estimate.value < 0) or abs(fitted - estimate.value) <= most


def _same(due: Charge, charge: Charge) -> bool:
    if not isinstance(due, CellCharge) or not isinstance(charge, CellCharge):
        return due == charge
    return (due.draws, due.pure) == (charge.draws, charge.pure) and _equal(due.amounts, charge.amounts)


def _equal(one: Query, other: Query) -> bool:
    """Whether two functions of the cells are one, written alike or not."""
    alike = one.axes == other.axes and np.array_equal(one.weights, other.weights)
    if alike and all(a is b or np.array_equal(a, b) for a, b in zip(one.labels, other.labels, strict=True)):
        return True
    return one.canonical() == other.canonical()
