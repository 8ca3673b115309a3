r"""Measurement of a product domain of any size, one orthogonal subspace for each set of attributes.

The functions of the cells split into orthogonal subspaces, one for each set s of axes: centred inside s,
constant outside.  For each attribute :math:`A_i` is an optimal strategy of its centred functions; for each
chosen set the release measures :math:`\sqrt{m_s}\,\bigotimes_{i\in s}A_i\,\bigotimes_{i\notin s}1^\top`.
Nothing is ever as large as the domain: only the marginals over the chosen sets are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
from laprasdp.strategy.factor import Factor, Moment, rounded, square_of, strategy_of
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.subspaces import Axes
from laprasdp.strategy.tree import StrategyTree

Nodes = tuple[int, ...]
"""One node for each long attribute of a set, ascending."""

_FLOOR = 1e-4  # least share of a chosen set: all can be answered
_FINEST, _COARSEST = 20, 6  # bits of a factor's grid
_LEAST = 2**8  # least multiplier of a set: rounding it costs at most 0.8% of its m_s


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
    factors : mapping of axis to (rows, levels) int64 array or StrategyTree
        :math:`\tilde A_i`; every row sums to zero.

    Notes
    -----
    A set with a long attribute is charged whole, but its noise is drawn later, node by node, as answers
    need it (`Drawn`): docs/proofs/lines.md.

    Raises
    ------
    DomainError
        A set is given twice or not ascending, a multiplier is not positive, or a factor does not fit.
    UnsupportedQuery
        The marginal over a set without a long attribute has more than ``MAX_CLASSES`` cells.

    References
    ----------
    Xiao, He, Zhang, Kifer.  An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions (ResidualPlanner).  arXiv:2305.08175 (2023).
    """

    domain: Domain
    sets: tuple[Axes, ...]
    multipliers: tuple[int, ...]
    factors: Mapping[int, Factor]

    def __post_init__(self) -> None:
        if len(set(self.sets)) != len(self.multipliers) or min(self.multipliers, default=0) < 1:
            raise DomainError("each set of attributes is given once, with a positive multiplier")
        for axes in self.sets:
            if list(axes) != sorted(set(axes)):
                raise DomainError(f"{axes} is no ascending tuple of axes")
            short = [self.domain.shape[axis] for axis in axes if axis not in self.long]
            if math.prod(short) > MAX_CLASSES:
                names = ", ".join(self.domain.names[axis] for axis in axes)
                raise UnsupportedQuery(f"the marginal over {names} has more than {MAX_CLASSES:,} cells")
            for axis in axes:
                if not _fits(self.factors[axis], self.domain.shape[axis]):
                    raise DomainError(f"the factor of {self.domain.names[axis]} is no centred integer matrix")

    @cached_property
    def long(self) -> dict[int, StrategyTree]:
        """The attributes whose factor is a tree."""
        return {axis: factor for axis, factor in self.factors.items() if isinstance(factor, StrategyTree)}

    def later(self, axes: Axes) -> bool:
        """Whether the noise of a set is drawn node by node."""
        return any(axis in self.long for axis in axes)

    @property
    def at_once(self) -> tuple[Axes, ...]:
        """The sets whose noise is drawn with the release."""
        return tuple(axes for axes in self.sets if not self.later(axes))

    @property
    def draws(self) -> int:
        return sum(math.prod(self.shape(axes)) for axes in self.at_once)

    def shape(self, axes: Axes, nodes: Nodes = ()) -> tuple[int, ...]:
        """Rows of each factor of a set, of one node where it is long: the shape of what is measured."""
        return tuple(map(len, self.matrices(axes, nodes)))

    def matrices(self, axes: Axes, nodes: Nodes = ()) -> list[Ints]:
        """
        Each factor of a set, that of one node where it is long.

        Raises
        ------
        DomainError
            There is no such node.
        """
        given, found = iter(nodes), list[Ints]()
        for axis in axes:
            factor = self.factors[axis]
            if isinstance(factor, StrategyTree):
                node = next(given, -1)
                if not 0 <= node < factor.shape.firsts[-1]:
                    raise DomainError(f"{self.domain.names[axis]} has no node {node}")
                factor = factor.matrices[factor.shape.depth(node)]
            found.append(factor)
        return found

    @cached_property
    def precisions(self) -> dict[Axes, float]:
        """:math:`m_s` for the integer factors: ``c_s² / 4^bits``."""
        return {s: c * c / 4.0**self.bits for s, c in zip(self.sets, self.multipliers, strict=True)}

    def exact(self, read: Read) -> list[int]:
        """
        The exact strategy answers, set after set, in steps of the grid.  Private.

        Notes
        -----
        **Privacy.**  Assumes that `read` gives exact counts, ascending by levels.  Guarantees the exact
        integers for every table: counts are cut into limbs so short that no sum of products leaves int64, by
        a bound on the factors alone; nothing depends on a private number but the values.
        """
        return [value for axes in self.at_once for value in self.answers(axes, (), read(axes))]

    def answers(self, axes: Axes, nodes: Nodes, marginal: Marginal) -> list[int]:
        """The exact answers of one set, or of its nodes, from its exact marginal.  Private."""
        multiplier = self.multipliers[self.sets.index(axes)]
        chosen, levels = marginal.counts, dict(marginal.levels)
        for axis, node in zip((axis for axis in axes if axis in self.long), nodes, strict=True):
            shape = self.long[axis].shape
            low, size, b = shape.block(node)
            inside = _within(levels[axis], low, low + size * b, ascending=axis == axes[0])
            levels = {other: column[inside] for other, column in levels.items()}
            chosen, levels[axis] = chosen[inside], (levels[axis] - low) // size
        matrices = self.matrices(axes, nodes)
        sizes = tuple(matrix.shape[1] for matrix in matrices)
        counts = dense_counts(Marginal(levels, chosen), axes, sizes)
        return [multiplier * value for value in contract(counts, matrices)]

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
        ends = np.cumsum([math.prod(self.shape(axes)) for axes in self.at_once], dtype=int)
        blocks = np.split(values, ends[:-1])
        return {s: block.reshape(self.shape(s)) for s, block in zip(self.at_once, blocks, strict=False)}

    @cached_property
    def _square(self) -> int:
        """The bound on every squared column norm, before the grid is divided out."""
        squares = {axis: square_of(factor) for axis, factor in self.factors.items()}
        each = [math.prod(squares[axis] for axis in axes) for axes in self.sets]
        return sum(c * c * square for c, square in zip(self.multipliers, each, strict=True))


def design_marginals(
    domain: Domain,
    sets: Mapping[Axes, float],
    moments: Mapping[int, Moment],
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
    moments : mapping of axis to Moment
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
        factors = {axis: rounded(domain.shape[axis], strategy, bits) for axis, strategy in strategies.items()}
        target = math.sqrt(mu_squared) / max_rows * 2.0**LATTICE_BITS
        norms = {axis: math.sqrt(square_of(factor)) for axis, factor in factors.items()}
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


def _fits(factor: Factor, levels: int) -> bool:
    """Whether a factor is one of an attribute of so many levels."""
    matrices = factor.matrices if isinstance(factor, StrategyTree) else (factor,)
    whole = factor.shape.padded if isinstance(factor, StrategyTree) else factor.shape[-1]
    right = (
        whole >= levels and factor.levels == levels if isinstance(factor, StrategyTree) else whole == levels
    )
    return right and all(
        m.dtype == np.int64 and m.ndim == 2 and np.abs(m).max(initial=0) < 2**31 and not m.sum(axis=1).any()
        for m in matrices
    )


def _within(
    levels: npt.NDArray[np.integer], low: int, high: int, *, ascending: bool
) -> slice | npt.NDArray[np.bool_]:
    """Where levels are from `low` up to `high`."""
    if ascending:
        return slice(*np.searchsorted(levels, [low, high]).tolist())
    return (levels >= low) & (levels < high)


def dense_counts(marginal: Marginal, axes: Axes, sizes: tuple[int, ...]) -> Ints:
    """Counts as a tensor over so many levels of each of `axes`."""
    tensor = np.zeros(sizes, dtype=np.int64)
    if not axes:
        return np.asarray(marginal.counts.sum(dtype=np.int64))
    np.add.at(tensor, tuple(marginal.levels[axis] for axis in axes), marginal.counts)
    return tensor


def contract(counts: Ints, factors: Sequence[Ints]) -> list[int]:
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
