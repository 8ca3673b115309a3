"""What LAPRAS is compared with: independent noise, noisy histograms, an optimum that knows the stream."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.errors import BudgetError, BudgetExhausted, UnsupportedQuery
from laprasdp.limits import MAX_HISTOGRAM
from laprasdp.policy.lapras import MatrixRelease, predicted_by
from laprasdp.policy.policy import Grant, Policy
from laprasdp.policy.setting import Setting
from laprasdp.privacy.filter import BasicCharge
from laprasdp.privacy.noise import LATTICE_BITS
from laprasdp.queries.distinct import Persons
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.record.estimate import Estimate
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.strength import lattice_scale, measure_laplace


class Independent(Policy):
    """
    An equal share of the budget, and fresh noise, for every statement; predictions are ignored.

    Parameters
    ----------
    setting : Setting
    name : str
    """

    def __init__(self, setting: Setting, name: str = "independent") -> None:
        self.name = name
        super().__init__(setting)
        self._share = self.accounting.total // setting.length  # what the last one beyond the horizon gets
        self._measured = self._spent = 0

    def allowance(self, position: int) -> int:
        rest, left = self.accounting.total - self._spent, self.setting.length - self._measured
        if left > 0:
            return rest // left
        return self._share if rest >= 2 * self._share else rest

    def expected_variance(self, query: Query) -> float | None:
        return None

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        return [self._variance_at(self.accounting.total // self.setting.length)] * sum(arrivals)

    def _advance(self, position: int, used: int) -> None:
        self._share = used or self._share
        self._spent += used
        self._measured += 1


class Laplace(Independent):
    """
    Independent discrete Laplace noise: pure ε-DP under basic accounting, no δ is spent.

    Notes
    -----
    **Privacy.**  A statement of L1 sensitivity Δ with noise of scale Δ/ε_i is ε_i-DP.
    """

    law = "geometric"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "laplace")
        if self.accounting.name != "basic":
            raise BudgetError('Laplace noise is accounted for in ε: use accounting "basic"')

    def _variance_at(self, allowance: int) -> float | None:
        try:
            return self._measure([Query.constant(self.setting.domain, 1)], allowance).noise_variance
        except BudgetExhausted:
            return None

    def _measure(self, queries: Sequence[Query], allowance: int) -> Rows:
        return measure_laplace(queries, allowance, self.setting.unit.max_rows)

    def _granted(self, measurement: Measurement, allowance: int) -> Grant:
        return Grant(measurement, BasicCharge(allowance, 0, measurement.draws), allowance)


class Histogram(Policy):
    """
    One noisy count a cell, released before the stream with the whole budget; answers everything.

    Parameters
    ----------
    setting : Setting
    total : bool
        Also measure the total, in the proportion that is optimal for random 0/1 queries: their second
        moment is (I + 11ᵀ)/4, whose optimal strategy is ``c I`` with one row ``d 1``.

    Raises
    ------
    UnsupportedQuery
        The domain has more than ``MAX_HISTOGRAM`` cells.
    """

    paced = measuring = False
    fixed = (*Policy.fixed, "_queries", "_ratio")

    def __init__(self, setting: Setting, *, total: bool = False) -> None:
        self.name = "histogram-total" if total else "histogram"
        super().__init__(setting)
        cells = setting.domain.size
        if cells > MAX_HISTOGRAM:
            raise UnsupportedQuery(
                f"the domain has {cells:,} cells; a noisy histogram is limited to {MAX_HISTOGRAM:,}: "
                "coarsen an attribute or use another policy"
            )
        shape = setting.domain.shape
        self._queries = tuple(
            Query.count(setting.domain, **_labels(setting, levels))
            for levels in itertools.product(*map(range, shape))
        )
        self._ratio = (math.sqrt(cells + 1) - 1) / cells if total else 0.0  # d²/c²
        self._cells: Floats | None = None
        self._scale()

    def _scale(self) -> None:
        mu_squared, cells = self.accounting.mu_squared(self.accounting.total), len(self._queries)
        square = mu_squared / self.setting.unit.max_rows**2
        if not self._ratio:
            self._bits, self._steps = LATTICE_BITS, (lattice_scale(square, 1), 0)
        else:  # as fine as its products are exact in doubles
            self._bits = min(LATTICE_BITS, 51 - (cells * math.ceil(math.sqrt(square))).bit_length())
            whole = math.floor(square * 4**self._bits)
            point = math.isqrt(math.floor(whole / (1 + Fraction(self._ratio))))
            self._steps = point, math.isqrt(whole - point**2)
        self._point, self._sum = (step / 2.0**self._bits for step in self._steps)

    def _grow(self, extra: int) -> None:
        if self._cells is None:
            self._scale()

    def due(self) -> Grant | None:
        if self._cells is not None:
            return None
        allowance = self.accounting.total
        point, whole = self._steps
        if point == 0:
            raise BudgetExhausted("the budget is too small to measure a histogram")
        if not whole:
            scaled = Rows(self._queries, point, bits=self._bits)
        else:
            matrix = np.zeros((len(self._queries) + 1, len(self._queries)), dtype=object)
            np.fill_diagonal(matrix, point)
            matrix[-1] = whole
            scaled = Rows(self._queries, matrix, bits=self._bits)
        return self._granted(scaled, allowance)

    def allowance(self, position: int) -> int:
        return 0

    def recall(self, query: Query) -> Estimate | None:
        if self._cells is None or query.key in self._known or isinstance(query, Persons):
            return self._known.get(query.key)  # of persons the cells tell nothing
        value = float(query.vector() @ self._cells)
        return Estimate(value, self._variance(query), "histogram")

    def expected_variance(self, query: Query) -> float:
        return self._variance(query)

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        """The variance of a query on half of all cells."""
        cells = len(self._queries)
        return [self._half(cells / 2, cells / 2)] * sum(arrivals)

    def _variance(self, query: Query) -> float:
        vector = query.vector().astype(float)
        return self._half(float(vector @ vector), float(vector.sum()))

    def _half(self, squares: float, total: float) -> float:
        """``qᵀ(c² I + d² 11ᵀ)⁻¹q`` from the sum of squared weights and the sum of weights."""
        c, d = float(self._point**2), float(self._sum**2)
        return (squares - d * total**2 / (c + len(self._queries) * d)) / c

    def _open(self, release: Release) -> None:
        values = release.measurement.values(release.noisy)
        cells = len(self._queries)
        if not self._sum:
            self._cells = values / self._point
            return
        pulled = self._point * values[:cells] + self._sum * values[cells]
        c, d = self._point**2, self._sum**2
        self._cells = (pulled - d * pulled.sum() / (c + cells * d)) / c


class Offline(Policy):
    """
    The matrix mechanism with the whole budget on the prediction set: the optimum if that is the stream.

    Parameters
    ----------
    setting : Setting
        With at least one prediction; other queries are refused.
    """

    paced = measuring = False
    again = ("_designed",)

    name = "offline"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if not setting.predictions:
            raise BudgetError("the offline optimum needs the stream as predictions")
        self._answers: dict[str, Estimate] = {}
        self._designed: MatrixRelease | None = None

    @property
    def _matrix(self) -> MatrixRelease:
        if self._designed is None:
            self._designed = MatrixRelease(self.setting, self.accounting.total, gap=1e-6)
        return self._designed

    def due(self) -> Grant | None:
        return None if self._answers else self._matrix.grant()

    def most_openings(self) -> int:
        return 0 if self._answers else len(self.setting.predictions)

    @property
    def designs(self) -> bool:
        return not self._answers and self._designed is None

    def allowance(self, position: int) -> int:
        return 0

    def recall(self, query: Query) -> Estimate | None:
        return self._known.get(query.key) or self._answers.get(query.key)

    def expected_variance(self, query: Query) -> float | None:
        if query not in self.setting.predictions:
            return None
        return float(self._matrix.variances[self.setting.predictions.index(query)])

    def rehearse(self, arrivals: Sequence[bool]) -> list[float | None]:
        return [None] * sum(arrivals)

    def _open(self, release: Release) -> None:
        self._answers = predicted_by(release)

    def _grow(self, extra: int) -> None:
        if not self._answers:
            self._designed = None


def _labels(setting: Setting, levels: Sequence[int]) -> dict[str, object]:
    domain = setting.domain
    return {name: domain[name].label(level) for name, level in zip(domain.names, levels, strict=True)}
