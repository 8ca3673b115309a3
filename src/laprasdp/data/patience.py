"""Long work of an engine that Ctrl-C ends, and that is told of while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

watcher: ContextVar[Callable[[float | None], None] | None] = ContextVar("watcher", default=None)
"""Is told, several times a second, which share of the reading of a table is done; None where nobody knows."""
_PAUSE = 0.25


def awaited(
    act: Callable[[], T],
    stop: Callable[[], object],
    *,
    share: Callable[[], float | None] | None = None,
    pause: float = _PAUSE,
) -> T:
    """
    What `act` gives, which works in a thread of its own; it is ended by an interrupt.

    Parameters
    ----------
    act : callable
    stop : callable
        Makes `act` end; called until it has.
    share : callable, optional
        Which share of the work is done, in [0, 1]; what it raises ends the work.

    Raises
    ------
    KeyboardInterrupt
        The work has ended then.
    """
    if threading.current_thread() is not threading.main_thread():  # which gets no signals
        return act()
    told = watcher.get()
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(act)
        try:
            while share is not None or told is not None:
                try:
                    return work.result(pause)
                except Unfinished:
                    if work.done():
                        raise
                done = None if share is None else share()
                if told is not None:
                    told(done)
            return work.result()
        except BaseException:
            while not work.done():  # it may not have begun
                stop()
                threading.Event().wait(0.01)
            raise
