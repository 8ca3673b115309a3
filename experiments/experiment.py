"""What an experiment is: cells that can be run apart, what they show, and what the paper printed for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from experiments.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Size = Literal["smallest", "quick", "standard", "full"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """
    A part of an experiment that is run in one piece, in a worker process.

    Attributes
    ----------
    key : str
        Unique within the experiment and stable: a resumed run knows finished cells by it.
    run : callable
        Picklable; gives flat rows of plain data.  Raises `Skipped` where it cannot be run here.
    """

    key: str
    run: Callable[[], list[Row]]


@dataclass(frozen=True)
class Comparison:
    """
    A number that the paper prints, and ours.

    Attributes
    ----------
    table : str
        Of the paper.
    what : str
        Which cell of it.
    printed, ours : float
    ratio : float
        Ours over printed.
    reason : str or None
        Why they differ, where they do by more than 15%.
    expected : float or None
        Ours without the scatter of the noise: the exact expectation over the noise of each run, median over
        runs.  None where it is not known.
    epsilon : float or None
        What ours really spends, the most over the runs.
    """

    table: str
    what: str
    printed: float
    ours: float
    ratio: float
    reason: str | None = None
    expected: float | None = None
    epsilon: float | None = None


class Experiment(Protocol):
    """
    One table or figure.

    Attributes
    ----------
    name : str
        The subcommand.
    title : str
    question : str
        One paragraph: what is asked, and how it is set up.
    claim : str
        What the rows show.
    columns : sequence of str
        The columns of the rows that a person reads, in order.
    """

    name: str
    title: str
    question: str
    claim: str
    columns: Sequence[str]

    def cells(self, size: Size, data: Data, seed: int) -> list[Cell]:
        """
        What to run.

        Parameters
        ----------
        size : {"smallest", "quick", "standard", "full"}
        data : Data
        seed : int
            Every generator of the experiment starts from it.
        """

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of all finished cells, with what only all of them together tell."""

    def draw(self, rows: Sequence[Row], figure: Figure) -> None:
        """Draw the rows of finished cells into an empty figure."""

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """Each number that the paper prints for this table, beside ours."""


class Finished(Protocol):
    """An experiment after its run, as `run.Result`."""

    @property
    def experiment(self) -> Experiment: ...
    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def comparisons(self) -> Sequence[Comparison]: ...
    @property
    def skipped(self) -> Mapping[str, str]: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...
