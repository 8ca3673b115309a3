"""A snapshot: what the first entries of a ledger add up to, kept beside them so that opening it is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Snapshot:
    """
    A state after the first entries of a ledger.

    Attributes
    ----------
    entries : int
        How many.
    key : str
        What else the state hangs on: settings, caps, and the source of this package.
    sums : str
        Budget and what is spent of it by then, as canonical JSON; `lapras ledger verify` compares them.
    state : bytes
        As `laprasdp.stream.resume` writes it.
    """

    entries: int
    key: str
    sums: str
    state: bytes


@runtime_checkable
class Snapshots(Protocol):
    """
    A ledger that keeps snapshots, too.

    Privacy
    -------
    Assumed of every implementation: what `snapshot` gives was kept by `keep` for exactly the entries that
    the ledger has now, as far as the chain of digests tells; anything else is dropped.
    """

    def snapshot(self, key: str, after: int, before: int) -> Snapshot | None:
        """
        The kept snapshot of this key.

        Parameters
        ----------
        key : str
        after, before : int
            It has more entries than the one and no more than the other, whose chain was checked.

        Returns
        -------
        Snapshot or None
            None where there is none, or one of other entries.
        """

    def keep(self, snapshot: Snapshot) -> None:
        """
        Keep a snapshot in place of the one before.

        Raises
        ------
        LedgerError
            It cannot be written; the entries are not touched.
        """
