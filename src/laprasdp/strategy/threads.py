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
_before: list[int | None] = []  # threads before the limit, while somebody holds it


@contextmanager
def one_thread() -> Iterator[None]:
    """
    Limit BLAS to one thread, until who began it leaves.

    Also a decorator: ``@one_thread()``.  Entering takes ten microseconds, one where it is held already.

    Notes
    -----
    Of several threads the first to enter owns the limit; if it leaves before the others, they go on without.
    """
    with ExitStack() as stack:
        with _lock:
            if not _before:
                stack.callback(_before.clear)
                limits = stack.enter_context(_controller().limit(limits=1, user_api="blas"))
                _before.append(limits.get_original_num_threads()["blas"])
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
        many = _before[0] if _before else None
        if many is not None and many > 1:
            stack.enter_context(_controller().limit(limits=many, user_api="blas"))
        yield


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes about a millisecond
