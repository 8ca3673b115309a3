"""How the budget is shared between the prediction set, the unpredicted queries and the reserve."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from laprasdp.errors import ConfigError

SPLITS = {
    "equal": (Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)),
    "matrix-heavy": (Fraction(1, 2), Fraction(1, 6), Fraction(1, 6), Fraction(1, 6)),
    "query-heavy": (Fraction(1, 6), Fraction(1, 3), Fraction(1, 3), Fraction(1, 6)),
    "reserve-heavy": (Fraction(1, 6), Fraction(1, 6), Fraction(1, 6), Fraction(1, 2)),
}
"""Shares of matrix, warm-up, rest and reserve: the paper's table of budget splits."""


@dataclass(frozen=True)
class Pools:
    """
    The budget's parts, in integer units of the accounting.

    Attributes
    ----------
    matrix : int
        For the release over the prediction set.
    warm_up : int
        For the first T unpredicted queries (``ε_badInit``).
    rest : int
        For the unpredicted queries after them (``ε_remBad``).
    reserve : int
        For unpredicted queries beyond the estimate.
    """

    matrix: int
    warm_up: int
    rest: int
    reserve: int


def shares_of(split: str) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """
    The shares of a split.

    Raises
    ------
    ConfigError
        No split of this name.
    """
    shares = SPLITS.get(split.replace("_", "-"))
    if shares is None:
        raise ConfigError(f"no split {split!r}; there are {', '.join(SPLITS)}")
    return shares


def split_budget(total: int, split: str, *, predicted: bool = True) -> Pools:
    """
    Share out `total` units, every one of them.

    Parameters
    ----------
    total : int
        Units of ε or of μ².
    split : {"equal", "matrix-heavy", "query-heavy", "reserve-heavy"}
    predicted : bool
        Whether there is a prediction set; without one its share goes to the unpredicted queries.

    Raises
    ------
    ConfigError
        No split of this name.

    Examples
    --------
    >>> split_budget(600, "query-heavy")
    Pools(matrix=100, warm_up=200, rest=200, reserve=100)
    """
    matrix, warm_up, rest, _ = (int(total * share) for share in shares_of(split))
    reserve = total - matrix - warm_up - rest
    if predicted:
        return Pools(matrix, warm_up, rest, reserve)
    return Pools(0, warm_up + matrix // 2, rest + matrix - matrix // 2, reserve)
