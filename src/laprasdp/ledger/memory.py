"""A ledger in memory: it ends with the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from laprasdp.ledger.ledger import Entry, Transaction


class MemoryLedger:
    """Keeps entries in a list."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        staged: list[Entry] = []
        yield staged
        self._entries.extend(staged)

    def since(self, position: int) -> Sequence[Entry]:
        return self._entries[position:]
