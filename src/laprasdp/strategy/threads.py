"""One BLAS thread around small matrices, where more only cost time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

FEW = 512
"""Below this many rows or columns one thread is as fast as several, and far faster on a busy machine."""


def blas_threads(size: int) -> AbstractContextManager[Any]:
    """
    Limit BLAS to one thread while matrices have fewer than `FEW` rows or columns.

    Parameters
    ----------
    size : int
        The smaller side of the matrices at work.
    """
    return _controller().limit(limits=1, user_api="blas") if size < FEW else nullcontext()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes about a millisecond
