r"""The best strategy for many queries over a domain too large to list, by columns that a search finds.

With :math:`G=E^\top E` the strategy's rows are :math:`E` times the queries, a cell of pattern p contributes
:math:`\|Ep\|^2=p^\top Gp`, and query j has variance :math:`(G^{-1})_{jj}`.  The cells that matter are found
by climbing :math:`p^\top Gp`; nothing proves that none was missed, so what is released is clipped
(`laprasdp.strategy.clipped`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.patterns import Patterns
from laprasdp.strategy.threads import blas_threads

_RIDGE = 1e-2  # of a single query's own column, so that nearly dependent queries do not blow G up
_MARGIN = 0.98  # squared norm that the found columns may reach: one part in fifty for those that were missed
_STARTS = 192  # cells to climb from in a round, at most
_STEPS = 60  # in all, with a round of search after every second
_WIDE, _FEW = 600, 14  # queries from which on climbs are half as many, and steps so many, each with a search
_SWEEPS = 2  # of a climb in a round; the next goes on from where it came, and the last climb goes to its end
_GAP = 5e-3
_SPEED = 3  # power of the squared norm by which a multiplier moves in a step
_FLOOR = 16.0  # logarithm by which a multiplier may be below the largest


@dataclass(frozen=True)
class Searched:
    """
    A strategy over queries.

    Attributes
    ----------
    encode : (m, m) array
        E, invertible; no column that was found has a squared norm above 0.98.
    variances : (m,) array
        Of each query where the clip is at squared norm one and noise is of unit variance.
    columns : int
        Distinct patterns that were found.
    """

    encode: Floats
    variances: Floats
    columns: int


def search_strategy(queries: Sequence[Query], weights: Floats | None = None, *, seed: int = 0) -> Searched:
    r"""
    The strategy of least weighted mean deviation, as far as the search sees.

    Parameters
    ----------
    queries : sequence of m Query
        Distinct, none of them zero.
    weights : (m,) array, optional
        Not negative; a query of weight 0 counts as one of a thousandth of the mean.
    seed : int
        Where climbs start.

    Notes
    -----
    For multipliers λ of the columns, :math:`X=\sum\lambda pp^\top+\rho I` and weights :math:`D^2`,
    :math:`G=D(DXD)^{-1/2}D` is optimal for :math:`\mathrm{tr}(D^2G^{-1})`; then
    :math:`\lambda\leftarrow\lambda\,(p^\top Gp)^3` in logarithms, with momentum, and
    :math:`D_j^2=w_j/\sqrt{(G^{-1})_{jj}}` for absolute errors.  Every column above the mean over multipliers,
    which is where all are at the optimum, is worth adding.  Time :math:`O(m^3+m^2p)` a step.

    References
    ----------
    As for `laprasdp.strategy.optimize`.
    """
    m, rng = len(queries), np.random.default_rng(seed)
    given = np.ones(m) if weights is None else np.asarray(weights, dtype=float)
    given = np.maximum(given / given.mean(), 1e-3)
    patterns = Patterns(queries)
    starts = _STARTS if m < _WIDE else _STARTS // 2
    with blas_threads(1):
        own = np.eye(m)
        own /= np.array([max(1, query.sensitivity) for query in queries])
        cells, _ = patterns.climb(patterns.random(starts, rng), own, sweeps=3)
        found = _Columns(patterns)
        found.add(patterns.random(4 * m, rng))
        found.add(cells)
        state = _Ascent(found, given)
        best: tuple[float, Floats, Floats] | None = None
        for step in range(_STEPS if m < _WIDE else _FEW):
            encode, squares = state.step()
            if m < _WIDE and step % 2 == 0:
                continue
            top = found.cells[np.argsort(-squares)[: starts // 2]]
            begun = np.concatenate([top, patterns.random(starts // 2, rng)])
            cells, norms = patterns.climb(begun, encode, _SWEEPS)
            largest = max(float(squares.max()), float(norms.max()))
            fresh = found.add(cells[norms > state.mean])
            variances = state.variances * largest
            value = float(given @ np.sqrt(variances))
            if best is None or value < best[0]:
                best = value, encode / np.sqrt(largest), variances
            if not fresh and state.gap(largest) < _GAP:
                break
        assert best is not None
        _, norms = patterns.climb(np.concatenate([cells, patterns.random(starts, rng)]), best[1])
        scale = _MARGIN / max(1.0, float(norms.max()))
    return Searched(best[1] * np.sqrt(scale), best[2] / scale, len(found.cells))


class _Columns:
    """
    Distinct patterns that were found, with a cell for each.

    Kept in single precision, which is twice as fast: a part in a million is far below the margin.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._patterns, self._keys = patterns, set[bytes]()
        self.cells = np.zeros((0, len(patterns.axes)), dtype=np.intp)
        self.values = np.zeros((0, patterns.count), dtype=np.float32)

    def add(self, cells: np.ndarray) -> int:
        """Add those whose patterns are new and not zero; how many."""
        values = self._patterns.values(cells)
        kept = []
        for place, value in enumerate(values):
            key = value.tobytes()
            if key not in self._keys and value.any():
                self._keys.add(key)
                kept.append(place)
        self.cells = np.concatenate([self.cells, cells[kept]])
        self.values = np.concatenate([self.values, values[kept].astype(np.float32)])
        return len(kept)


class _Ascent:
    """The multiplicative ascent, while columns are added."""

    def __init__(self, found: _Columns, given: Floats) -> None:
        self._found, self._given = found, given
        self._log: Floats = np.zeros(0)
        self._last: Floats = np.zeros(0)
        self._lam: Floats = np.zeros(0)
        self._age = 0
        self.variances: Floats = np.ones(len(given))
        self._squares: Floats = np.zeros(0)

    def step(self) -> tuple[Floats, Floats]:
        """Encode at the present multipliers, and the squared norms of all columns; then move them."""
        values = self._found.values
        missing = len(values) - len(self._log)
        if missing:
            top = float(self._log.max(initial=0.0))
            usual = top + math.log(float(np.exp(self._log - top).mean())) if len(self._log) else 0.0
            self._log, self._last = (np.append(one, [usual] * missing) for one in (self._log, self._last))
        lam = np.exp(self._log - self._log.max())
        self._lam = lam / lam.sum()
        deviation = np.sqrt(self._given / np.sqrt(self.variances))  # D
        moment = ((values.T * self._lam.astype(np.float32)) @ values).astype(float)
        moment[np.diag_indices_from(moment)] += _RIDGE * float(moment.diagonal().mean())
        power, turn = np.linalg.eigh(deviation[:, np.newaxis] * moment * deviation)
        power = np.maximum(power, 1e-12 * power[-1])
        side = turn / deviation[:, np.newaxis]
        self.variances = (side**2) @ np.sqrt(power)
        encode = power[:, np.newaxis] ** -0.25 * (turn.T * deviation)
        images = values @ encode.T.astype(np.float32)
        self._squares = np.einsum("cr,cr->c", images, images).astype(float)
        target = self._log + _SPEED * np.log(np.maximum(self._squares / self.mean, 1e-30))
        target = np.maximum(target, target.max() - _FLOOR)
        self._age += 1
        self._log, self._last = target + self._age / (self._age + 3) * (target - self._last), target
        return encode, self._squares

    @property
    def mean(self) -> float:
        """Mean of the squared norms over the multipliers of the last step."""
        return float(self._lam @ self._squares)

    def gap(self, largest: float) -> float:
        """How far the largest squared norm is above the mean over multipliers, which is optimal if 0."""
        return largest / self.mean - 1
