"""An estimate: the value that a statement was given, and the exact law of its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["predicted", "measured", "cache", "replay", "histogram", "background"]
Law = Literal["gaussian", "laplace"]


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
        Where the answer comes from.
    law : {"gaussian", "laplace"}
    """

    value: float
    variance: float
    source: Source
    law: Law = "gaussian"
