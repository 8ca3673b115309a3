"""An estimate: the value that a statement was given, and the exact law of its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from laprasdp.privacy.law import Law, expected_error
from laprasdp.strategy.measurement import Rows

Source = Literal["predicted", "measured", "cache", "replay", "histogram", "background", "mixed"]


@dataclass(frozen=True)
class Estimate:
    """
    An unbiased answer and the exact law of its error.

    Attributes
    ----------
    value : float
    variance : float
        In squared records.
    source : str
        Where the answer comes from; "mixed" for a sum over several of these.
    law : {"gaussian", "laplace", "geometric"}
    parts : float
        Of how many Laplace variables the error is the sum.
    fitted : float or None
        What was shown beside the value, within one standard deviation of it; None where nothing was.
    """

    value: float
    variance: float
    source: Source
    law: Law = "gaussian"
    parts: float = 1.0
    fitted: float | None = None

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing changes it

    @property
    def expected_error(self) -> float:
        """Expected absolute error, in records."""
        return expected_error(math.sqrt(self.variance), self.law, self.parts)


def one_by_one(measurement: Rows, noisy: Sequence[int]) -> list[Estimate]:
    """
    What a release says of each of the queries that it measured one by one.

    Parameters
    ----------
    measurement : Rows
    noisy : sequence of int
    """
    noise, values = measurement.noise_variance, measurement.values(noisy).tolist()
    each = zip(values, measurement.scales.tolist(), measurement.laws, strict=True)
    return [Estimate(value / scale, noise / (scale * scale), "measured", law) for value, scale, law in each]


def joined(old: Estimate | None, new: Estimate) -> Estimate:
    """
    What an earlier answer and a new one of the same query, with independent errors, say together.

    Parameters
    ----------
    old : Estimate or None
        None says nothing.
    new : Estimate
        Whose source is kept.

    Returns
    -------
    Estimate
        Their mean by inverse variances, unbiased and of least variance.  Laplace errors, on the integers or
        not, are taken for Laplace variables of the same variance and kurtosis.

    Examples
    --------
    >>> both = joined(Estimate(10.0, 4.0, "predicted"), Estimate(20.0, 4.0, "measured"))
    >>> both.value, both.variance, both.source
    (15.0, 2.0, 'measured')
    """
    if old is None:
        return new
    share = old.variance / (old.variance + new.variance)  # of the new one
    variance = share * new.variance
    pairs = ((one, part) for one, part in ((old, 1 - share), (new, share)) if one.law != "gaussian")
    excess = math.fsum((part**2 * one.variance) ** 2 / one.parts for one, part in pairs)
    law: Law = "laplace" if excess else "gaussian"
    value = (1 - share) * old.value + share * new.value
    return Estimate(value, variance, new.source, law, variance**2 / excess if excess else 1.0)
