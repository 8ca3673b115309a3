"""Ledgers in memory: they end with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from laprasdp.ledger.ledger import Transaction
from laprasdp.record.entries import Entry, Kept, Stamp
from laprasdp.record.settings import Settings, check_settings


class MemoryLedger:
    """
    Keeps entries in a list.

    Parameters
    ----------
    lock : lock, optional
        That its reads and transactions hold; ledgers that share one have one transaction at a time together.
    """

    def __init__(self, lock: threading.RLock | None = None) -> None:
        self._kept: list[Kept] = []
        self._settings: Settings | None = None
        self._lock = lock or threading.RLock()

    def begun(self) -> Settings | None:
        with self._lock:
            return self._settings

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
        with self._lock:
            return self._kept[position:]

    def close(self) -> None:
        """Nothing is open; what is kept stays."""


class MemoryShelf:
    """Keeps ledgers in memory, each under a name."""

    def __init__(self) -> None:
        self._ledgers: dict[str, MemoryLedger] = {}
        self._lock = threading.RLock()

    def ledger(self, name: str) -> MemoryLedger:
        with self._lock:
            return self._ledgers.setdefault(name, MemoryLedger(self._lock))

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._lock:
            before = {name: (len(ledger._kept), ledger._settings) for name, ledger in self._ledgers.items()}
            try:
                yield
            except BaseException:
                for name, ledger in self._ledgers.items():
                    length, ledger._settings = before.get(name, (0, None))
                    del ledger._kept[length:]
                raise

    def settings(self) -> dict[str, Settings]:
        with self._lock:
            begun = {name: ledger._settings for name, ledger in self._ledgers.items()}
            return {name: settings for name, settings in begun.items() if settings is not None}

    def close(self) -> None:
        """Nothing is open; what is kept stays."""


class _Staged:
    """What one transaction has appended so far."""

    def __init__(self, kept: list[Kept], stamp: Stamp) -> None:
        self._kept, self._stamp = kept, stamp
        self.entries: list[Kept] = []

    def since(self, position: int) -> Sequence[Kept]:
        return self._kept[position:]

    def append(self, entry: Entry) -> None:
        self.entries.append(Kept(len(self._kept) + len(self.entries), self._stamp, entry))
