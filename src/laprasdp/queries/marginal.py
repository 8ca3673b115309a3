"""Exact counts over some attributes: the one thing that is ever read from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Marginal:
    """
    Exact counts over some attributes: each combination that occurs once, in ascending order of levels.

    Attributes
    ----------
    levels : mapping of axis to (r,) int array
        Level of each attribute in each combination.
    counts : (r,) int64 array
        Rows that have this combination.  Private.
    """

    levels: Mapping[int, npt.NDArray[Any]]
    counts: npt.NDArray[np.int64]


Read = Callable[[tuple[int, ...]], Marginal]
"""Axes to the exact marginal over them; what a table hands to a measurement."""
