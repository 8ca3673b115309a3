"""Long work of DuckDB that Ctrl-C ends: DuckDB itself does not look for signals while its threads work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import duckdb

T = TypeVar("T")


def awaited(connection: duckdb.DuckDBPyConnection, act: Callable[[], T]) -> T:
    """
    What `act` gives, which works on `connection` alone; it is ended by an interrupt.

    Raises
    ------
    KeyboardInterrupt
        The work has ended then.
    """
    if threading.current_thread() is not threading.main_thread():  # which gets no signals
        return act()
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(act)
        try:
            return work.result()
        except KeyboardInterrupt:
            while not work.done():  # it may not have begun
                connection.interrupt()
                threading.Event().wait(0.01)
            raise
