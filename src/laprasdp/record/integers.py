"""Whole numbers in JSON: written out while they are few, packed where they are many.

A number of 2⁵³ or more in size is decimal text, so that no reader rounds it.  A long list whose numbers fit
64 bits is ``{"zlib": text}``: base64 of zlib of the numbers as signed little-endian 64-bit words.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_FEW = 32
_SAFE = 2**53


def write_integer(value: int) -> int | str:
    """One number for JSON."""
    return int(value) if -_SAFE < value < _SAFE else str(int(value))


def write_integers(values: Sequence[int] | npt.NDArray[Any]) -> list[int | str] | dict[str, str]:
    """
    A flat list of whole numbers for JSON.

    Examples
    --------
    >>> write_integers([1, 2**60])
    [1, '1152921504606846976']
    >>> read_integers(write_integers(range(1000))) == list(range(1000))
    True
    """
    if len(values) > _FEW:
        try:
            words = np.asarray(values, dtype="<i8").tobytes()
        except OverflowError:
            pass
        else:
            return {"zlib": _packed(words)}
    return [write_integer(int(value)) for value in values]


def read_integers(form: Any) -> list[int]:
    """
    The numbers of `write_integers`.

    Raises
    ------
    ValueError
        The packed text is damaged.
    """
    if isinstance(form, dict):
        numbers: list[int] = read_array(form).tolist()
        return numbers
    return [int(value) for value in form]


def read_array(form: Any) -> npt.NDArray[np.int64]:
    """
    The numbers of `write_integers`, all of which fit 64 bits, as an array that may be read-only.

    Raises
    ------
    ValueError
        The packed text is damaged, or a number is too large.
    """
    try:
        if isinstance(form, dict):
            return np.frombuffer(_unpacked(form["zlib"]), dtype="<i8")
        return np.array([int(value) for value in form], dtype=np.int64)
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=16)  # a statement's query stands in its measurement, its charge and its reply
def _packed(words: bytes) -> str:
    return base64.b64encode(zlib.compress(words)).decode("ascii")


@lru_cache(maxsize=16)
def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True))
