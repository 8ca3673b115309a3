"""A k-ary tree of counts over a line of cells, with least squares in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from experiments.trial import Floats


@dataclass(frozen=True)
class Tree:
    r"""
    Levels 0 (the total) to h (the cells), the line filled up with empty cells to k^h.

    Attributes
    ----------
    cells : int
        n.
    fanout : int
        k, at least 2.

    Notes
    -----
    Let :math:`A_l` be the counts of level l, measured with variance :math:`1/w_l` each.  The space of cells
    is the orthogonal sum of :math:`V_j`: constant inside the nodes of level j, with sum zero inside those of
    level j−1.  On :math:`V_j` the precision :math:`\sum_l w_l A_l^\top A_l` is the number
    :math:`\lambda_j=\sum_{l\ge j}w_l k^{h-l}`, so that q has variance
    :math:`\sum_j\|P_jq\|^2/\lambda_j`.

    References
    ----------
    Hay, Rastogi, Miklau, Suciu.  Boosting the accuracy of differentially private histograms through
    consistency.  PVLDB 3 (2010).
    """

    cells: int
    fanout: int

    @cached_property
    def height(self) -> int:
        """h."""
        height = 0
        while self.fanout**height < self.cells:
            height += 1
        return height

    @cached_property
    def sizes(self) -> Floats:
        """(h+1,) cells in a node of each level."""
        sizes: Floats = np.power(float(self.fanout), np.arange(self.height, -1, -1))
        return sizes

    def sums(self, rows: npt.ArrayLike) -> list[Floats]:
        """
        The sums of each row inside the nodes of each level.

        Parameters
        ----------
        rows : (..., n) array

        Returns
        -------
        list of (..., k^l) arrays, for l = 0 … h
        """
        array = np.asarray(rows, dtype=np.float64)
        wide = np.zeros((*array.shape[:-1], self.fanout**self.height))
        wide[..., : self.cells] = array
        levels = [wide]
        while levels[-1].shape[-1] > 1:
            finer = levels[-1]
            nodes = finer.shape[-1] // self.fanout
            levels.append(finer.reshape(*finer.shape[:-1], nodes, self.fanout).sum(axis=-1))
        return levels[::-1]

    def energies(self, rows: npt.ArrayLike) -> Floats:
        """(..., h+1) squared norms of the parts of each row of integers in the spaces V_j."""
        squares = np.stack([(level**2).sum(axis=-1) for level in self.sums(rows)], axis=-1) / self.sizes
        parts: Floats = np.diff(squares, axis=-1, prepend=0.0)
        parts[parts < 1e-9 * squares[..., -1:]] = 0.0
        return parts

    def precisions(self, weights: Floats) -> Floats:
        """(..., h+1) λ_j, for (..., h+1) weights w_l, zero where a level was not measured."""
        scaled = weights * self.sizes
        above: Floats = scaled[..., ::-1].cumsum(axis=-1)[..., ::-1]
        return above

    def variances(self, energies: Floats, weights: Floats) -> Floats:
        """(...) variance of queries of these `energies`; infinite where one is no combination of counts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = energies / self.precisions(weights)
        total: Floats = np.where(energies > 0, terms, 0.0).sum(axis=-1)
        return total

    def estimate(self, counts: Sequence[Floats], weights: Floats) -> Floats:
        """
        The cells by least squares from noisy counts; their part in unmeasured spaces is zero.

        Parameters
        ----------
        counts : sequence of (k^l,) arrays, for l = 0 … h
            Any finite numbers where the weight is zero.
        weights : (h+1,) array

        Returns
        -------
        (n,) array
        """
        pulled = np.zeros(self.fanout**self.height)
        for weight, level, size in zip(weights, counts, self.sizes, strict=True):
            pulled += np.repeat(weight * level, int(size))
        cells, before = np.zeros_like(pulled), np.zeros_like(pulled)
        sums = Tree(len(pulled), self.fanout).sums(pulled)
        for level, size, precision in zip(sums, self.sizes, self.precisions(weights), strict=True):
            mean = np.repeat(level / size, int(size))
            if precision > 0:
                cells += (mean - before) / precision
            before = mean
        return cells[: self.cells]
