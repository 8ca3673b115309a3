"""Which table a ledger is of, as far as that is public: where it stands, and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laprasdp.errors import LedgerError
from laprasdp.record.settings import Settings


@dataclass(frozen=True)
class Origin:
    """
    The public fingerprint of a source.

    Attributes
    ----------
    engine : str
        What kind of place it is, such as "parquet" or "postgresql".
    table : str
        Its name there: a file's without its folder, which may be moved; or a table's with its schema.
    columns : tuple of (name, type)
        Of the declared ones, where the source itself has a schema.
    moved_from : str, optional
        The name under which its ledger may know it.

    Notes
    -----
    **Privacy.**  From the declaration and the schema alone.  Two tables may have one fingerprint: it finds
    mistakes, not deceit.
    """

    engine: str
    table: str
    columns: tuple[tuple[str, str], ...] = ()
    moved_from: str | None = None

    def settings(self) -> dict[str, Any]:
        """As plain data, for a ledger."""
        return {"engine": self.engine, "table": self.table, "columns": [list(one) for one in self.columns]}

    def settle(self, given: Settings, begun: Settings | None) -> Settings:
        """
        The settings of a session of this source, with what its ledger knows of the source.

        Parameters
        ----------
        given : mapping
            Of the session.
        begun : mapping, optional
            That the ledger was begun with, if it was.

        Raises
        ------
        LedgerError
            The ledger is of another table.
        """
        if begun is None:
            return {**given, "source": self.settings()}
        if "source" not in begun:  # of the first ledgers none knows its table
            return given
        kept, own = begun["source"], self.settings()
        if kept == own:
            return {**given, "source": kept}
        if not isinstance(kept, Mapping) or any(type(kept.get(key)) is not type(own[key]) for key in own):
            raise LedgerError("what the ledger says of its table cannot be read: verify it")
        if self.moved_from != kept["table"]:
            raise LedgerError(
                f"the ledger is of {_shown(kept)}, not of {_shown(own, kept)}: if it is the same "
                f'table, write moved_from = "{kept["table"]}" under [source]'
            )
        return {**given, "source": kept}


def _shown(source: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> str:
    """A source in words; one of the same place by the first column that differs from `kept`."""
    place = f"{source['table']} ({source['engine']})"
    if kept is None or (kept["engine"], kept["table"]) != (source["engine"], source["table"]):
        return place
    changed = [" ".join(column) for column in source["columns"] if column not in kept["columns"]]
    return f"{place} with {changed[0] if changed else 'other columns'}"
