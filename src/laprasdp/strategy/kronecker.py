r"""Measurement of a product domain of any size, one orthogonal subspace for each set of attributes.

The functions of the cells split into orthogonal subspaces, one for each set s of axes: centred inside s,
constant outside.  For each attribute :math:`A_i` is an optimal strategy of its centred functions; for each
chosen set the release measures :math:`\sqrt{m_s}\,\bigotimes_{i\in s}A_i\,\bigotimes_{i\notin s}1^\top`.
Nothing is ever as large as the domain: only the marginals over the chosen sets are read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import BudgetExhausted, DomainError, UnsupportedQuery
from laprasdp.limits import MAX_CLASSES
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.noise import LATTICE_BITS
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal, Read
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.optimize import optimize_gram
from laprasdp.strategy.threads import blas_threads

Axes = tuple[int, ...]

_FLOOR = 1e-4  # least share of single levels in a second moment, and of a chosen set: all can be answered
_FINEST, _COARSEST = 20, 6  # bits of a factor's grid
_LEAST = 2**8  # least multiplier of a set: rounding it costs at most 0.8% of its m_s
_ROUNDS = 60  # reweightings for the absolute error


@dataclass(frozen=True, eq=False)
class Marginals(Measurement):
    r"""
    Rows :math:`c_s\bigotimes_{i\in s}\tilde A_i\bigotimes_{i\notin s}1^\top/2^{bits}` for each chosen set s.

    Attributes
    ----------
    domain : Domain
    sets : tuple of tuple of int
        The chosen sets of axes, each ascending; the empty one is the total count.
    multipliers : tuple of int
        :math:`c_s`, positive, one a set.
    factors : mapping of axis to (rows, levels) int64 array
        :math:`\tilde A_i`; every row sums to zero.

    Raises
    ------
    DomainError
        A set is given twice or not ascending, a multiplier is not positive, or a factor does not fit.
    UnsupportedQuery
        The marginal over a set has more than ``MAX_CLASSES`` cells.

    References
    ----------
    Xiao, He, Zhang, Kifer.  An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions (ResidualPlanner).  arXiv:2305.08175 (2023).
    """

    domain: Domain
    sets: tuple[Axes, ...]
    multipliers: tuple[int, ...]
    factors: Mapping[int, Ints]

    def __post_init__(self) -> None:
        if len(set(self.sets)) != len(self.multipliers) or min(self.multipliers, default=0) < 1:
            raise DomainError("each set of attributes is given once, with a positive multiplier")
        for axes in self.sets:
            if list(axes) != sorted(set(axes)):
                raise DomainError(f"{axes} is no ascending tuple of axes")
            if math.prod(self.domain.shape[axis] for axis in axes) > MAX_CLASSES:
                names = ", ".join(self.domain.names[axis] for axis in axes)
                raise UnsupportedQuery(f"the marginal over {names} has more than {MAX_CLASSES:,} cells")
            for axis in axes:
                factor, levels = self.factors[axis], self.domain.shape[axis]
                fits = factor.dtype == np.int64 and factor.shape[1:] == (levels,)
                if not fits or np.abs(factor).max(initial=0) >= 2**31 or factor.sum(axis=1).any():
                    raise DomainError(f"the factor of {self.domain.names[axis]} is no centred integer matrix")

    @property
    def draws(self) -> int:
        return sum(math.prod(self.shape(axes)) for axes in self.sets)

    def shape(self, axes: Axes) -> tuple[int, ...]:
        """Rows of each factor of a set: the shape of what is measured for it."""
        return tuple(len(self.factors[axis]) for axis in axes)

    @cached_property
    def precisions(self) -> dict[Axes, float]:
        """:math:`m_s` for the integer factors: ``c_s² / 4^bits``."""
        return {s: c * c / 4.0**self.bits for s, c in zip(self.sets, self.multipliers, strict=True)}

    def exact(self, read: Read) -> list[int]:
        """
        The exact strategy answers, set after set, in steps of the grid.  Private.

        Notes
        -----
        **Privacy.**  Assumes that `read` gives exact counts.  Guarantees the exact integers for every
        table: counts are cut into limbs so short that no sum of products leaves int64, by a bound on the
        factors alone; nothing depends on a private number but the values.
        """
        answers: list[int] = []
        for axes, multiplier in zip(self.sets, self.multipliers, strict=True):
            counts = _dense(read(axes), axes, self.domain)
            contracted = _contract(counts, [self.factors[axis] for axis in axes])
            answers.extend([multiplier * value for value in contracted])
        return answers

    def amounts(self, max_rows: int = 1) -> Query:
        """
        A constant charge: the sum over sets of products of the factors' largest squared column norms.

        Notes
        -----
        **Privacy.**  Guarantees at least ``max_rows²`` times the diagonal of ``ÃᵀÃ`` on every cell: a
        column of a product has the product of the norms, in exact integers, and each is at most its
        factor's largest.
        """
        charge = math.ceil(Fraction(max_rows**2 * 2**MU_BITS * self._square, 4**self.bits))
        return Query.everywhere(self.domain, charge)

    def split(self, values: Floats) -> dict[Axes, Floats]:
        """Values of the release, (draws,), by set: one tensor of shape ``self.shape(set)`` each."""
        if len(values) != self.draws:
            raise ValueError(f"the release has {self.draws} values, not {len(values)}")
        ends = np.cumsum([math.prod(self.shape(axes)) for axes in self.sets])
        blocks = np.split(values, ends[:-1])
        return {s: block.reshape(self.shape(s)) for s, block in zip(self.sets, blocks, strict=True)}

    @cached_property
    def _square(self) -> int:
        """The bound on every squared column norm, before the grid is divided out."""
        squares = {axis: _largest_square(factor) for axis, factor in self.factors.items()}
        each = [math.prod(squares[axis] for axis in axes) for axes in self.sets]
        return sum(c * c * square for c, square in zip(self.multipliers, each, strict=True))


def design_marginals(
    domain: Domain,
    sets: Mapping[Axes, float],
    moments: Mapping[int, Floats],
    mu_squared: Fraction,
    max_rows: int = 1,
) -> Marginals:
    r"""
    The release of least expected variance over chosen subspaces, on the grid, never above `mu_squared`.

    Parameters
    ----------
    domain : Domain
    sets : mapping of set of axes to float
        Expected weight :math:`a_s` of each subspace (`subspace_weights`); sets of weight 0, and sets with
        an attribute of one level, are left out.
    moments : mapping of axis to (levels, levels) array
        Second moment of the functions of each attribute that queries are made of; single levels if absent.
    mu_squared : Fraction
        Largest squared column norm that the release may have, all rows of a unit together.
    max_rows : int
        Rows that one privacy unit may have.

    Returns
    -------
    Marginals
        With :math:`m_s\propto\sqrt{a_s}`, which is least for :math:`\sum_sa_s/m_s` at the same sum.

    Raises
    ------
    BudgetExhausted
        `mu_squared` is too small for these sets on the lattice.
    DomainError
        No set of positive weight, or a moment that is none.

    Notes
    -----
    The precision :math:`K_0=\sum_sm_s\bigotimes_{i\in s}C_i\bigotimes_{i\notin s}11^\top` has diagonal
    :math:`\sum_sm_s` where each :math:`C_i=A_i^\top A_i` has unit diagonal.  Factors are rounded to the
    finest common grid that leaves every :math:`c_s\approx\sqrt{m_s}` at least eight bits on the noise
    lattice; whatever the rounding does to optimality, charge and variances are those of the integers.

    References
    ----------
    ResidualPlanner, arXiv:2305.08175, for marginals; :math:`C_i` optimal for any second moment here.
    """
    if not all(0 <= weight < math.inf for weight in sets.values()):
        raise DomainError("the weight of a set is a finite number, not negative")
    useful = [axes for axes in sets if sets[axes] > 0 and all(domain.shape[axis] > 1 for axis in axes)]
    if not useful:
        raise DomainError("no set of attributes has a positive weight")
    order = tuple(sorted(useful, key=lambda axes: (len(axes), axes)))
    shares = np.sqrt([sets[axes] for axes in order])
    shares = np.maximum(shares, _FLOOR * shares.max())
    roots = np.sqrt(shares / shares.sum()).tolist()
    limit = math.floor(mu_squared * 2**MU_BITS)
    named = {axis for axes in order for axis in axes}
    strategies = {axis: strategy_of(domain.shape[axis], moments.get(axis)) for axis in named}
    for bits in range(_FINEST, _COARSEST - 1, -1):
        factors = {axis: _rounded(strategy, bits) for axis, strategy in strategies.items()}
        target = math.sqrt(mu_squared) / max_rows * 2.0**LATTICE_BITS
        norms = {axis: math.sqrt(_largest_square(factor)) for axis, factor in factors.items()}
        lengths = [math.prod(norms[axis] for axis in axes) for axes in order]
        for _ in range(8):
            ideal = [target * root / length for root, length in zip(roots, lengths, strict=True)]
            if min(ideal) < _LEAST:
                break
            found = Marginals(domain, order, tuple(map(int, ideal)), factors, bits=LATTICE_BITS)
            charge = int(found.amounts(max_rows).weights)
            if charge <= limit:
                return found
            target *= math.sqrt(limit / charge) * (1 - 2.0**-40)
    raise BudgetExhausted("the allowance left is too small to measure these marginals")


def subspace_variances(
    queries: Sequence[Query], moments: Mapping[int, Floats]
) -> tuple[tuple[Axes, ...], Floats]:
    """
    Variance of each query's part in each subspace, where that subspace is measured with m = 1.

    Returns
    -------
    sets : tuple of s sets of axes
        All subsets of the axes of any query.
    variances : (m, s) array
        The variance of a query is ``variances @ (1 / m_s)``.
    """
    shape = queries[0].domain.shape
    named = {axis for query in queries for axis in query.axes}
    roots = {axis: root_of(strategy_of(shape[axis], moments.get(axis))) for axis in named}
    found = [{axes: float(np.sum(part**2)) for axes, part in parts(q, roots).items()} for q in queries]
    sets = tuple(sorted({axes for each in found for axes in each}, key=lambda axes: (len(axes), axes)))
    return sets, np.array([[each.get(axes, 0.0) for axes in sets] for each in found])


def subspace_weights(
    queries: Sequence[Query],
    moments: Mapping[int, Floats],
    weights: Floats | None = None,
    *,
    absolute: bool = True,
) -> dict[Axes, float]:
    r"""
    Expected weight of each subspace, for `design_marginals`.

    Parameters
    ----------
    queries : sequence of m Query
        Typical queries: predicted ones, or a sample.
    weights : (m,) array, optional
        :math:`\lambda_q`, expected count of each query; one each if absent.
    absolute : bool
        For the least mean absolute error, by reweighting with 1/deviation; else the least mean variance.

    Returns
    -------
    mapping of set of axes to float
        :math:`a_s=\sum_q\lambda_qv_s(q)`; subspaces in which no query has a part are left out.
    """
    sets, variances = subspace_variances(queries, moments)
    given = np.ones(len(queries)) if weights is None else np.asarray(weights, dtype=float)
    variances[variances < 1e-24 * variances.max(axis=1, keepdims=True)] = 0.0
    weigh = given
    for _ in range(_ROUNDS if absolute else 1):
        total = weigh @ variances
        root = np.sqrt(total)
        inverse = np.divide(root.sum(), root, out=np.zeros_like(root), where=root > 0)
        deviation = np.sqrt(variances @ inverse)
        weigh = np.divide(given, deviation, out=np.zeros_like(given), where=deviation > 0)
    return {axes: float(a) for axes, a in zip(sets, total, strict=True) if a > 0}


def parts(
    query: Query, roots: Mapping[int, Floats], sets: Sequence[Axes] | None = None
) -> dict[Axes, Floats]:
    r"""
    The query seen by each subspace: :math:`\bigotimes_{i\in s}H_iq\bigotimes_{i\notin s}` mean.

    Parameters
    ----------
    roots : mapping of axis to (rows, levels) array
        :math:`H_i` with :math:`H_i^\top H_i=C_i^+`; one for each axis of a wanted set.
    sets : sequence of sets of axes, optional
        The wanted subsets of the query's axes; all of them if absent.  A part's variance is its squared
        norm over :math:`m_s`.
    """
    axes = query.axes
    sets = subsets(axes) if sets is None else sets
    inside, outside = {}, {}
    weights = tensor_of(query).astype(float)
    for axis, labels, classes in zip(axes, query.labels, weights.shape, strict=True):
        sizes = np.bincount(labels, minlength=classes)
        outside[axis] = (sizes / len(labels))[np.newaxis]
        if axis in roots:
            grouped = np.zeros((classes, len(labels)))
            grouped[labels, np.arange(len(labels))] = 1
            inside[axis] = roots[axis] @ grouped.T
    found: dict[Axes, Floats] = {}
    for wanted in sets:
        tensor = weights
        for axis in axes:  # contracting the first axis puts its result last
            tensor = np.tensordot(tensor, inside[axis] if axis in wanted else outside[axis], axes=(0, 1))
        found[wanted] = tensor
    return found


def subsets(axes: Axes) -> list[Axes]:
    """All subsets of some axes, small ones first."""
    return [s for size in range(len(axes) + 1) for s in itertools.combinations(axes, size)]


def tensor_of(query: Query) -> Ints:
    """The weights of a query with exactly one axis for each attribute that it names."""
    return query.weights.reshape(query.weights.shape[: len(query.axes)])


def strategy_of(levels: int, moment: Floats | None) -> Floats:
    """
    The strategy A of one attribute's centred functions, (levels - 1, levels), largest column norm one.

    `moment` is the second moment of the functions that queries are made of; single levels if None.
    """
    if moment is None:
        moment = np.eye(levels)
    if moment.shape != (levels, levels) or not np.isfinite(moment).all():
        raise DomainError(f"a second moment of {levels} levels is a finite ({levels}, {levels}) matrix")
    return _strategy(np.ascontiguousarray(moment, dtype=float).tobytes(), levels)


@lru_cache(maxsize=256)
def _strategy(moment: bytes, levels: int) -> Floats:
    gram = np.frombuffer(moment).reshape(levels, levels)
    centre = np.eye(levels) - 1 / levels
    centred = centre @ gram @ centre
    spread = np.trace(centred) / (levels - 1)
    mixed = centred / spread + _FLOOR * centre if spread > 1e-12 * np.trace(gram) else centre
    strategy = optimize_gram((mixed + mixed.T) / 2, gap=1e-4).strategy
    strategy.setflags(write=False)
    return strategy


def root_of(factor: npt.NDArray[np.generic]) -> Floats:
    r"""H with :math:`H^\top H=(A^\top A)^+`, (rows, levels)."""
    with blas_threads(len(factor)):
        return np.asarray(np.linalg.pinv(factor.astype(float)).T)


def _rounded(strategy: Floats, bits: int) -> Ints:
    """The strategy in steps of 2^-bits; each row still sums to zero, by moving its worst roundings."""
    scaled = strategy * 2.0**bits
    rounded = np.rint(scaled).astype(np.int64)
    for row, ideal in zip(rounded, scaled, strict=True):
        excess = int(row.sum())
        worst = np.argsort((ideal - row) * np.sign(excess))[: abs(excess)]
        row[worst] -= int(np.sign(excess))
    return rounded


def _largest_square(factor: Ints) -> int:
    """Largest squared column norm, exact."""
    top = int(np.abs(factor).max())
    exact = factor.astype(object) if top * top * len(factor) >= 2**62 else factor
    return int((exact * exact).sum(axis=0).max())


def _dense(marginal: Marginal, axes: Axes, domain: Domain) -> Ints:
    """Counts as a tensor over the levels of `axes`."""
    tensor = np.zeros(tuple(domain.shape[axis] for axis in axes), dtype=np.int64)
    if not axes:
        return np.asarray(marginal.counts.sum(dtype=np.int64))
    np.add.at(tensor, tuple(marginal.levels[axis] for axis in axes), marginal.counts)
    return tensor


def _contract(counts: Ints, factors: Sequence[Ints]) -> list[int]:
    """Exact ``⊗ factors`` times counts, flat: in limbs that cannot overflow, or on Python integers."""
    reach = math.prod(max(1, int(np.abs(factor).sum(axis=1).max())) for factor in factors)
    limb = 62 - reach.bit_length()
    if limb < 6:
        tensor = counts.astype(object)
        for factor in factors:
            tensor = np.tensordot(tensor, factor.astype(object), axes=(0, 1))
        return [int(value) for value in tensor.reshape(-1)]
    total: npt.NDArray[np.object_] = np.zeros(math.prod(map(len, factors)), dtype=object)
    for shift in range(0, 64, limb):
        tensor = counts >> shift  # the last limb keeps the sign
        if shift + limb < 64:
            tensor = tensor & (2**limb - 1)
        for factor in factors:
            tensor = np.tensordot(tensor, factor, axes=(0, 1))
        total += tensor.reshape(-1).astype(object) << shift
    return [int(value) for value in total]
