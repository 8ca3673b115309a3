"""How far PRIMM is below the errors that the paper prints for LAPRAS, table by table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.comparison import IN_ITS_PLACE
from experiments.experiment import Comparison
from experiments.printed import rows

TABLES = ("2", "3", "5", "8", "9")
LAPRAS = ("static", "smooth", "smooth-cache")
FACTOR = 2.5
"""What every printed number has to be above PRIMM's, at least."""


@dataclass(frozen=True)
class Margin:
    """
    PRIMM in the place of LAPRAS in one table.

    Attributes
    ----------
    table : str
        As of `Comparison`.
    printed : int
        Different mean absolute errors that the table prints for LAPRAS.
    compared : int
        How many of them the run has streams for.
    least, where : float, str
        Least printed error over PRIMM's median on the same kind of stream, and for which number.
    least_exact, where_exact : float, str
        The same with PRIMM's exact expectation.
    epsilon : float
        The most that PRIMM spent.
    """

    table: str
    printed: int
    compared: int
    least: float
    where: str
    least_exact: float
    where_exact: str
    epsilon: float

    @property
    def verdict(self) -> str:
        """ "holds", "holds in part" where the run has not all streams, or "fails"."""
        if min(self.least, self.least_exact) < FACTOR or self.epsilon > 1:
            return "fails"
        return "holds" if self.compared == self.printed else "holds in part"


def margins(comparisons: Iterable[Comparison]) -> list[Margin]:
    """
    One for each table of which the run has a stream.

    Parameters
    ----------
    comparisons : iterable of Comparison
        Of all experiments.
    """
    every, found = list(comparisons), []
    for table in TABLES:
        meant = [one for one in every if one.table == f"Table {table}" and one.what.endswith(IN_ITS_PLACE)]
        if not meant:
            continue
        numbers = {row.printed for row in rows(table) if row.method in LAPRAS and row.metric == "mae"}
        measured = {one.what: one.printed / one.ours for one in meant}
        exact = {one.what: one.printed / (one.expected or one.ours) for one in meant}
        where, where_exact = (min(ratios, key=ratios.__getitem__) for ratios in (measured, exact))
        found.append(
            Margin(
                f"Table {table}",
                len(numbers),
                len(numbers & {one.printed for one in meant}),
                measured[where],
                where.removesuffix(IN_ITS_PLACE),
                exact[where_exact],
                where_exact.removesuffix(IN_ITS_PLACE),
                max(one.epsilon or 0.0 for one in meant),
            )
        )
    return found
