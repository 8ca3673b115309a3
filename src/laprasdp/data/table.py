"""A private table seen through its one verb: the exact count of every occurring combination of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from laprasdp.domain import Domain
from laprasdp.privacy.unit import PrivacyUnit


@dataclass(frozen=True)
class Marginal:
    """
    Exact counts over some attributes; combinations that do not occur are left out.

    Attributes
    ----------
    levels : mapping of axis to (r,) int array
        Level of each attribute in each combination.
    counts : (r,) int64 array
        Rows that have this combination.  Private.
    """

    levels: Mapping[int, npt.NDArray[Any]]
    counts: npt.NDArray[np.int64]


@runtime_checkable
class Table(Protocol):
    """
    Where the private rows are.

    Privacy
    -------
    Assumed of every implementation: rows outside the domain are not counted; with a privacy unit of a
    column, at most `unit.max_rows` rows of one person are, and which ones depends on that person's rows
    alone; a row without a person is not counted; all marginals come from the same rows.  Nothing is
    written to the source.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def name(self) -> str:
        """The name by which statements call the table."""

    @property
    def unit(self) -> PrivacyUnit: ...

    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over the attributes at `axes` (ascending; empty for all rows together)."""
