"""One BLAS thread around small matrices, where more only cost time.

Every door behind which linear algebra is done holds `one_thread`; only what works on large matrices asks for
more, by `blas_threads`.  The limit is the process's, so one holder owns it and the others add nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, which has to be loaded by now
from threadpoolctl import ThreadpoolController

FEW = 512
"""Below this many rows or columns one thread is as fast as several, and far faster on a busy machine."""

_lock = threading.Lock()
_before: list[int] = []  # threads before the limit, while somebody holds it


@contextmanager
def one_thread() -> Iterator[None]:
    """
    Limit BLAS to one thread, until who began it leaves.

    Also a decorator: ``@one_thread()``.  Entering takes some ten microseconds, two where it is held already.

    Notes
    -----
    Of several threads the first to enter owns the limit; if it leaves before the others, they go on without.
    """
    with ExitStack() as stack:
        with _lock:
            if not _before:
                stack.callback(_before.clear)
                libraries = _controller().lib_controllers
                many = max((library.get_num_threads() for library in libraries), default=1)
                _before.append(many)
                if many > 1:
                    stack.enter_context(_controller().limit(limits=1))
        yield


def blas_threads(size: int) -> AbstractContextManager[Any]:
    """
    One thread while matrices have fewer than `FEW` rows or columns; else as many as before any limit.

    Parameters
    ----------
    size : int
        The smaller side of the matrices at work.
    """
    return one_thread() if size < FEW else _all_threads()


@contextmanager
def _all_threads() -> Iterator[None]:
    with ExitStack() as stack:
        many = max(_before, default=1)
        if many > 1:
            stack.enter_context(_controller().limit(limits=many))
        yield


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")  # finding them takes about a millisecond
