"""An engine reads private rows where they are: all it does is to run a scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from laprasdp.data.column import Column
from laprasdp.data.scan import Scan

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class Engine(Protocol):
    """
    An open table of some engine.

    Privacy
    -------
    Assumed of every implementation:

    - one snapshot: all counts of a run are of the same rows, and nothing is read after it;
    - each record is read by itself: its levels follow from its own values, the scan and the schema, and no
      record makes a run fail (none of `laprasdp.data.words` does);
    - a row counts if all its levels are in the domain and, with a person, that is not NULL; of a person the
      rows that `laprasdp.data.persons.first_rows` names count, so which ones follows from that person's rows
      and the key alone;
    - nothing is written to the table or beside it;
    - errors are of the table as a whole (schema, connection, memory, a damaged file) and never repeat a value
      or what the engine says.

    `run` gives exact private counts; everything else follows from the schema.
    """

    @property
    def place(self) -> tuple[str, str]:
        """The kind of the source and its name there: see `laprasdp.record.origin.Origin`."""

    def columns(self, names: Sequence[str], person: str | None) -> tuple[tuple[Column, ...], Column | None]:
        """
        The columns of these names, and the one that names a person.

        Raises
        ------
        DataError
            One is missing, or could be several.
        """

    def types(self, scan: Scan) -> Mapping[str, str]:
        """From each attribute to the DuckDB type of its column in comparisons: see `Table.types`."""

    def run(self, scan: Scan) -> Iterator[RecordBatch]:
        """
        The combinations that occur, and how many rows there are of each; once for an engine.

        Yields
        ------
        pyarrow.RecordBatch
            Whole numbers of each of `scan.counted` (``who`` of 64 bits, the same for all rows of a person),
            and ``rows``, in any order; ``rows`` is left out of all where, with ``who``, each counts one.
            Counts of one combination add up.

        Raises
        ------
        DataError
            The table cannot be read to its end.
        """

    def close(self) -> None:
        """Leave the table; closing twice does nothing."""
