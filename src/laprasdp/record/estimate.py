"""An estimate: the value that a statement was given, and the exact law of its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

from laprasdp.privacy.law import Law, expected_error

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
    law : {"gaussian", "laplace"}
    parts : float
        Of how many Laplace variables the error is the sum.
    """

    value: float
    variance: float
    source: Source
    law: Law = "gaussian"
    parts: float = 1.0

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing changes it

    @property
    def expected_error(self) -> float:
        """Expected absolute error, in records."""
        return expected_error(math.sqrt(self.variance), self.law, self.parts)
