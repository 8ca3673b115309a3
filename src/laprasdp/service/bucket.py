"""Token buckets: how many requests a principal may make, in each process by itself."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Buckets:
    """
    A bucket for each key, full at first.

    Parameters
    ----------
    rate : float
        What flows in, a second.
    size : int
        What a bucket holds.
    clock : callable
        Seconds.

    Examples
    --------
    >>> times = iter([0.0, 0.0, 0.0, 1.0])
    >>> buckets = Buckets(1.0, 2, clock=lambda: next(times))
    >>> [buckets.wait("ada") for _ in range(4)]
    [0, 0, 1, 0]
    """

    def __init__(self, rate: float, size: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._size, self._clock = rate, size, clock
        self._levels: dict[object, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, key: object) -> int:
        """Take one out, and 0; or the seconds, rounded up, until there is one again."""
        now = self._clock()
        with self._lock:
            level, since = self._levels.get(key, (float(self._size), now))
            level = min(self._size, level + (now - since) * self._rate)
            taken = level >= 1
            self._levels[key] = (level - taken, now)
        return 0 if taken else math.ceil((1 - level) / self._rate)
