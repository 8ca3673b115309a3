"""What a method is given and what it hands back: one stream over one table, and the answers to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from laprasdp import Budget
from laprasdp.stream.answer import expected_error

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Law = Literal["gaussian", "laplace", "geometric"]


@dataclass(frozen=True)
class Trial:
    """
    One stream over one table; the arrays are read-only.

    Attributes
    ----------
    counts : (n,) array of int
        The table: rows in each cell.
    predictions : (m, n) array of 0 and 1
        P, one query a row.
    stream : (S, n) array of 0 and 1
        In order of arrival.
    budget : Budget
    expected_overlap : float, optional
        Share of the stream that is expected to be predicted, for methods that use it.
    horizon : int
        Statements that the budget is paced for, at least S; S where none is given.
    """

    counts: Ints
    predictions: Ints
    stream: Ints
    budget: Budget
    expected_overlap: float | None = None
    horizon: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", self.horizon or len(self.stream))
        for name in ("counts", "predictions", "stream"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def truth(self) -> Floats:
        """(S,) exact answers."""
        return (self.stream @ self.counts).astype(np.float64)


@dataclass(frozen=True)
class Outcome:
    """
    What a method did with a trial.

    Attributes
    ----------
    answers : (S,) array
        nan where refused.
    stds : (S,) array
        Exact standard deviation of each answer's error, in records, where it is known; nan otherwise.
    epsilon_true : float
        The ε that the run is guaranteed, or really spends, at the budget's δ.
    seconds : float
        To answer the stream.
    seconds_setup : float
        Before the stream.
    law : {"gaussian", "laplace", "geometric"}
        Of the errors.
    parts : (S,) array, optional
        Of how many Laplace variables each error is the sum, where that is the law; 1 where it is not given.
    """

    answers: Floats
    stds: Floats
    epsilon_true: float
    seconds: float
    seconds_setup: float
    law: Law = "gaussian"
    parts: Floats | None = None

    @property
    def expected_errors(self) -> Floats:
        """(S,) expected absolute error of each answer, in records; nan where it is not known."""
        parts = np.ones(len(self.stds)) if self.parts is None else self.parts
        return np.array(
            [expected_error(std, self.law, part) for std, part in zip(self.stds.tolist(), parts, strict=True)]
        )


Method = Callable[[Trial, int], Outcome]
"""Answers a trial; the integer seeds its noise."""
