"""A ledger in memory: it ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from laprasdp.ledger.ledger import Entry, Kept, Stamp, Transaction
from laprasdp.ledger.settings import Settings, check_settings


class MemoryLedger:
    """Keeps entries in a list."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._settings: Settings | None = None
        self._lock = threading.Lock()

    def open(self, settings: Settings) -> Settings:
        with self._lock:
            if self._settings is None:
                self._settings = settings
            check_settings(self._settings, settings)
            return self._settings

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
        with self._lock:
            staged = _Staged(self._kept, stamp)
            yield staged
            self._kept.extend(staged.entries)

    def since(self, position: int) -> Sequence[Kept]:
        return self._kept[position:]


class _Staged:
    """What one transaction has appended so far."""

    def __init__(self, kept: list[Kept], stamp: Stamp) -> None:
        self._kept, self._stamp = kept, stamp
        self.entries: list[Kept] = []

    def since(self, position: int) -> Sequence[Kept]:
        return self._kept[position:]

    def append(self, entry: Entry) -> None:
        self.entries.append(Kept(len(self._kept) + len(self.entries), self._stamp, entry))
