"""What a query's own measurements say of it, where the prior says nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.queries.query import Query
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.threads import blas_threads


@dataclass(frozen=True)
class Direct:
    """
    An estimate that rests on the query's own measurements: ``q = value + total · N + Σ noise_t · z_t``.

    N is the number of rows, of which the prior knows.
    """

    value: float
    total: float
    noise: dict[int, Floats]  # release to (r,) weights on its noise
    mixed: bool  # the release's rows also say something about queries that have a prior

    def covariance(self, other: Direct) -> float:
        """Of the noise alone."""
        return sum(float(self.noise[t] @ other.noise[t]) for t in self.noise.keys() & other.noise.keys())

    def scaled(self, factor: float, shift: float = 0.0) -> Direct:
        """That of ``factor · q + shift · N``."""
        noise = {t: part * factor for t, part in self.noise.items()}
        return Direct(self.value * factor, self.total * factor + shift, noise, self.mixed)

    def joined(self, other: Direct, rows: float) -> Direct:
        """Both, weighted by inverse variance, where N has variance `rows`; their noises are independent."""
        mine, theirs = (each.covariance(each) + each.total**2 * rows for each in (self, other))
        share = theirs / (mine + theirs)
        one, two = self.scaled(share), other.scaled(1 - share)
        noise = one.noise | two.noise
        return Direct(one.value + two.value, one.total + two.total, noise, self.mixed or other.mixed)


def joint_of(estimates: Sequence[Direct], rows: Floats | float) -> Floats:
    """(k, k) covariance of several estimates, where what each takes for N has covariance `rows`."""
    totals = np.array([each.total for each in estimates])
    joint = np.outer(totals, totals) * rows
    for release in {t for each in estimates for t in each.noise}:
        told = [place for place, each in enumerate(estimates) if release in each.noise]
        weights = np.stack([estimates[place].noise[release] for place in told])
        with blas_threads(len(told)):
            joint[np.ix_(told, told)] += weights @ weights.T
    return joint


def centred(query: Query) -> tuple[Query, int, int]:
    """A query of least weight 0 and its scale and shift: ``query = scale · centred + shift · N``."""
    low = int(query.weights.min())
    shifted = query.weights - low
    scale = max(math.gcd(*np.unique(shifted).tolist()), 1)
    if (low, scale) == (0, 1):
        return query, 1, 0
    return query.spread(shifted // scale).canonical(), scale, low


def decoded(measurement: Rows, rows: Floats, places: npt.NDArray[np.intp]) -> list[Floats]:
    """For some queries of a release, the weights on its values that give them; none where there are none."""
    if isinstance(measurement.matrix, int):
        return [np.eye(len(rows))[place] / rows[place, place] for place in places]
    try:
        return list(measurement.decoding[places] * np.sqrt(measurement.noise_variance))
    except (ArithmeticError, np.linalg.LinAlgError):
        return []
