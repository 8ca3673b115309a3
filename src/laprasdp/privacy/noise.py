r"""Noise on an integer lattice: exact samples for private data, seeded ones for simulations.

A release adds unit Gaussian noise on the lattice of multiples of 2⁻⁵², or discrete Laplace noise on the
integers.  A sample is handed out as an integer number of steps, to be added to an integer in Python: no
rounding, no overflow.  This is the only file that touches OpenDP.  docs/proofs/noise.md says what the
difference to a Gaussian costs, and that Laplace noise has none.
"""

from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from laprasdp.errors import BudgetError

LATTICE_BITS = 52
"""The noise lattice is the multiples of 2⁻⁵²; unit standard deviation is 2⁵² steps."""

TV_BOUND = Fraction(1, 20 * 2 ** (2 * LATTICE_BITS))
"""Total variation, for one coordinate, between lattice noise and the rounded Gaussian: at most 1/(20 s²)."""

LAPLACE_LIMIT = 2**LATTICE_BITS
"""Largest scale of Laplace noise, in steps; a sample leaves int64 with probability below e^(-2047)."""

LAPLACE_LEAST = Fraction(1, 2**12)
"""Smallest scale of Laplace noise: that of a release of e^4096, which no budget allows."""


class NoiseSource(Protocol):
    """Where the noise of a release comes from."""

    @property
    def simulation(self) -> bool:
        """Whether the source is seeded; such a source never meets private data."""
        ...

    def gaussian(self, count: int) -> list[int]:
        """
        `count` independent unit Gaussians on the lattice, in steps of 2⁻⁵²; their deviation is 2⁵².

        Asked for none, a source makes ready whatever it needs, so that nobody waits for that later.
        """
        ...

    def laplace(self, count: int, scale: int | Fraction) -> list[int]:
        r"""`count` independent discrete Laplace integers, :math:`P(z)\propto e^{-|z|/scale}`."""
        ...


def load(noise: NoiseSource) -> None:
    """Load what draws samples, which takes a moment the first time; nothing is drawn."""
    noise.gaussian(0)


class ExactNoise:
    r"""
    Exact samples from OpenDP, seeded by the operating system; the source for private data.

    Notes
    -----
    OpenDP samples the discrete Gaussian and the discrete Laplace on the integers in exact rational
    arithmetic, by rejection (Canonne, Kamath, Steinke).  It is given a zero vector, so that its int64 holds
    noise and never data.

    **Privacy.**  Assumes OpenDP's samplers and the operating system's randomness.  Guarantees independent
    samples of the stated discrete distribution, except that a sample beyond int64 is clamped to its end:
    a Gaussian one must pass 2048 standard deviations (probability below e^(-2²⁰)), a Laplace one at least
    2047 scales.  The time that a sample takes is random and is not hidden.

    References
    ----------
    Canonne, Kamath, Steinke.  The discrete Gaussian for differential privacy.  arXiv 2004.00010.
    """

    simulation = False

    def __init__(self) -> None:
        self._measurements: dict[float, Any] = {}  # OpenDP measurements by Laplace scale; 0 is the Gaussian

    def gaussian(self, count: int) -> list[int]:
        """
        Unit Gaussians on the lattice.

        Parameters
        ----------
        count : int
            How many; zero only loads OpenDP.

        Returns
        -------
        list of int
            Steps of 2⁻⁵², standard deviation 2⁵².

        Raises
        ------
        BudgetError
            `count` is not an integer, or negative.
        """
        _checked_count(count)
        if 0 not in self._measurements:
            self._measurements[0] = _opendp_measurement("gaussian", 2**LATTICE_BITS)
        if count == 0:
            return []
        return [int(value) for value in self._measurements[0]([0] * count)]

    def laplace(self, count: int, scale: int | Fraction) -> list[int]:
        r"""
        Discrete Laplace noise, :math:`P(z)=\tanh(1/2s)\,e^{-|z|/s}` for scale s.

        Parameters
        ----------
        count : int
            How many; zero gives an empty list.
        scale : int or Fraction
            Scale s in steps, from 2⁻¹² to 2⁵²; a rational number that a double holds, so that OpenDP is given
            it as it is.  An integer answer that one record, added or removed, changes by at most Δ steps (a
            vector: in L1 norm) is (Δ/s)-DP, up to the clamp.

        Returns
        -------
        list of int
            Steps.

        Raises
        ------
        BudgetError
            `count` or `scale` is not such a number.
        """
        exact = _checked_scale(scale)
        if _checked_count(count) == 0:
            return []
        if exact not in self._measurements:
            self._measurements = {key: kept for key, kept in self._measurements.items() if key == 0}
            self._measurements[exact] = _opendp_measurement("laplace", exact)
        return [int(value) for value in self._measurements[exact]([0] * count)]


class SeededNoise:
    """
    Repeatable noise for simulations and tests: never for private data.

    Parameters
    ----------
    seed : int
        Seed of a NumPy generator.

    Notes
    -----
    **Privacy.**  None.  Whoever knows or guesses the seed subtracts the noise, and the low-order bits are
    those of a rounded double.
    """

    simulation = True

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(self, count: int) -> list[int]:
        """`count` unit normals rounded to the lattice, in steps of 2⁻⁵²."""
        normals = self._rng.standard_normal(_checked_count(count))
        return [round(float(value) * 2**LATTICE_BITS) for value in normals]

    def laplace(self, count: int, scale: int | Fraction) -> list[int]:
        """`count` discrete Laplace integers: the difference of two geometric ones."""
        first, second = self._rng.standard_exponential((2, _checked_count(count))) * _checked_scale(scale)
        return [int(a) - int(b) for a, b in zip(np.floor(first), np.floor(second), strict=True)]


def _opendp_measurement(kind: str, scale: float) -> Any:
    """OpenDP's measurement that adds discrete noise of `scale` to a vector of int64, of any length."""
    from opendp.domains import atom_domain, vector_domain  # not the prelude, which loads Polars, too
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if kind == "gaussian":
        return make_gaussian(domain, l2_distance(T="i64"), scale=float(scale))
    return make_laplace(domain, l1_distance(T="i64"), scale=float(scale))


def _checked_count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise BudgetError(f"the number of noise values must be an integer and not negative, got {count!r}")
    return count


def _checked_scale(scale: int | Fraction) -> float:
    """The double that is exactly `scale`."""
    if (
        isinstance(scale, bool)
        or not isinstance(scale, int | Fraction)
        or not LAPLACE_LEAST <= scale <= LAPLACE_LIMIT
        or Fraction(float(scale)) != scale
    ):
        raise BudgetError(
            "the scale of Laplace noise must be an integer or a Fraction that a double holds, from 2^-12 to "
            f"2^52 steps, got {scale!r}"
        )
    return float(scale)
