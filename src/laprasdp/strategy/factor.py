r"""The strategy of one attribute's centred functions: written out if it is short, a tree if it is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.errors import DomainError
from laprasdp.queries.runs import Labels, class_sizes, unpacked
from laprasdp.strategy.optimize import optimize_gram
from laprasdp.strategy.threads import blas_threads
from laprasdp.strategy.tree import (
    SHORT,
    StrategyTree,
    TreeRoot,
    TreeShape,
    branches_of,
    largest_square,
    point_moments,
)

Moment = Floats | Sequence[Floats]
"""Second moment of an attribute's functions, (levels, levels); of a long one, those of each depth."""

Strategy = Floats | tuple[Floats, ...]
"""A, (levels - 1, levels); of a long attribute, what a node of each depth measures."""

Factor = Ints | StrategyTree
"""A strategy in steps of a grid."""

_FLOOR = 1e-4  # least share of single levels in a second moment: all can be answered
_LEAST = 0.02  # least weight of a depth, against the largest


class Root(Protocol):
    r"""H of one attribute, with :math:`H^\top H=(A^\top A)^+`."""

    def project(self, labels: Labels, values: Floats) -> tuple[npt.NDArray[np.int64] | None, Floats]:
        """
        Functions that agree on the levels of a class, (t, classes), seen by the rows of H.

        Returns
        -------
        ids : (k,) int64 array or None
            The rows; None for all.  The functions are 0 on all others.
        (t, k) array
        """
        ...

    def sizes(self, labels: Labels, classes: int) -> Ints:
        """(classes,) levels of each class, by which a function's mean is taken."""
        ...


@dataclass(frozen=True, eq=False)
class Dense:
    """H written out, (rows, levels)."""

    matrix: Floats

    def project(self, labels: Labels, values: Floats) -> tuple[None, Floats]:
        return None, values[:, unpacked(labels)] @ self.matrix.T

    def sizes(self, labels: Labels, classes: int) -> Ints:
        return class_sizes(labels, classes)


def shape_of(levels: int) -> TreeShape:
    """The tree of a long attribute."""
    branches = branches_of(levels)
    return TreeShape(levels, branches, tuple(b - 1 for b in branches))


def strategy_of(levels: int, moment: Moment | None) -> Strategy:
    """
    The strategy A of one attribute's centred functions, largest column norm one.

    `moment` is the second moment of the functions that queries are made of; single levels if None.

    Notes
    -----
    In a tree depth j adds :math:`a_j/w_j` to the variance where its matrix is optimal and has the share
    :math:`w_j` of the squared norm; :math:`w_j\\propto\\sqrt{a_j}` is best.
    """
    if levels > SHORT:
        return _tree(shape_of(levels), moment)
    if moment is None:
        moment = np.eye(levels)
    if (
        not isinstance(moment, np.ndarray)
        or moment.shape != (levels, levels)
        or not np.isfinite(moment).all()
    ):
        raise DomainError(f"a second moment of {levels} levels is a finite ({levels}, {levels}) matrix")
    return _strategy(np.ascontiguousarray(moment, dtype=float).tobytes(), levels)


def root_of(levels: int, strategy: Strategy | Factor) -> Root:
    r"""H with :math:`H^\top H=(A^\top A)^+`."""
    matrices = strategy.matrices if isinstance(strategy, StrategyTree) else strategy
    if isinstance(matrices, tuple):
        return TreeRoot.of(levels, matrices)
    with blas_threads(len(matrices)):
        return Dense(np.asarray(np.linalg.pinv(matrices.astype(float)).T))


def rounded(levels: int, strategy: Strategy, bits: int) -> Factor:
    """The strategy in steps of 2^-bits; each row still sums to zero, by moving its worst roundings."""
    if isinstance(strategy, tuple):
        return StrategyTree(levels, tuple(_rounded(matrix, bits) for matrix in strategy))
    return _rounded(strategy, bits)


def square_of(factor: Factor) -> int:
    """Largest squared column norm, or a bound on it; exact."""
    return factor.largest_square if isinstance(factor, StrategyTree) else largest_square(factor)


def _tree(shape: TreeShape, moments: Moment | None) -> tuple[Floats, ...]:
    """What a node of each depth measures, weighted by depth."""
    if moments is None:
        moments = point_moments(shape)
    if len(moments) != len(shape.branches) or any(
        moment.shape != (b, b) or not np.isfinite(moment).all()
        for moment, b in zip(moments, shape.branches, strict=True)
    ):
        raise DomainError(
            f"a long attribute has a finite second moment for each of its depths, {shape.branches}"
        )
    found, needs = [], []
    for moment, b in zip(moments, shape.branches, strict=True):
        strategy = _strategy(np.ascontiguousarray(moment, dtype=float).tobytes(), b)
        root = np.linalg.pinv(strategy).T
        found.append(strategy)
        needs.append(float(np.sum((root @ moment) * root)))
    weights = np.sqrt(np.maximum(needs, 0))
    weights = np.maximum(weights, _LEAST * weights.max())
    return tuple(m * w for m, w in zip(found, np.sqrt(weights / weights.sum()).tolist(), strict=True))


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


def _rounded(strategy: Floats, bits: int) -> Ints:
    scaled = strategy * 2.0**bits
    found = np.rint(scaled).astype(np.int64)
    for row, ideal in zip(found, scaled, strict=True):
        excess = int(row.sum())
        worst = np.argsort((ideal - row) * np.sign(excess))[: abs(excess)]
        row[worst] -= int(np.sign(excess))
    return found
