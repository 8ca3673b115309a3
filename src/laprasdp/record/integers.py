"""Whole numbers in JSON: written out while they are few, packed where they are many.

A number of 2⁵³ or more in size is decimal text, so that no reader rounds it.  A long list whose numbers fit
64 bits is ``{"zlib": text}``: base64 of zlib of the numbers as signed little-endian 64-bit words.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.limits import MAX_LEVELS
from laprasdp.queries.runs import Labels, Runs

_FEW = 32
_SAFE = 2**53
_DECIMAL = re.compile(r"-?[1-9][0-9]{15,}")


def write_integer(value: int) -> int | str:
    """One number for JSON."""
    return int(value) if -_SAFE < value < _SAFE else str(int(value))


def read_integer(form: Any) -> int:
    """
    The number of `write_integer`.

    Raises
    ------
    ValueError
        It is no whole number, or is spelled otherwise than `write_integer` does.
    """
    if type(form) is int and -_SAFE < form < _SAFE:
        return form
    if type(form) is str and _DECIMAL.fullmatch(form) and not -_SAFE < int(form) < _SAFE:
        return int(form)
    raise ValueError(f"{form!r} is no whole number")


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


def write_labels(labels: Labels) -> list[int | str] | dict[str, Any]:
    """
    Labels for JSON.

    Examples
    --------
    >>> write_labels(Runs(9_000, np.array([0, 8_999]), np.array([3, 5])))
    {'runs': [3, 8999, 5, 1]}
    """
    if isinstance(labels, Runs):
        return {"runs": write_integers(np.stack([labels.values, labels.lengths], axis=1).reshape(-1))}
    return write_integers(labels)


def read_labels(form: Any, name: str, levels: int) -> npt.NDArray[Any]:
    """
    The labels of `write_labels`, one for each of the levels of an attribute; not negative, read-only.

    Raises
    ------
    ValueError
        They are damaged, or are those of an attribute of other levels.
    """
    if isinstance(form, dict) and "runs" not in form:
        return _read_packed(form["zlib"], name, levels)
    return _narrowed(read_array(form), name, levels)


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
    if not isinstance(form, list):
        raise ValueError(f"{form!r} is no list of whole numbers")
    return [read_integer(value) for value in form]


def read_array(form: Any) -> npt.NDArray[np.int64]:
    """
    The numbers of `write_integers`, all of which fit 64 bits, as an array that may be read-only.

    Raises
    ------
    ValueError
        The packed text is damaged, or a number is too large.
    """
    try:
        if isinstance(form, dict) and "runs" in form:
            values, lengths = read_array(form["runs"]).reshape(-1, 2).T
            if lengths.min() < 1 or int(lengths.sum(dtype=object)) > MAX_LEVELS:
                raise ValueError("these are no runs of labels")
            return np.repeat(values, lengths)
        if isinstance(form, dict):
            return np.frombuffer(_unpacked(form["zlib"]), dtype="<i8")
        return np.array(read_integers(form), dtype=np.int64)
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=64)
def _read_packed(text: str, name: str, levels: int) -> npt.NDArray[Any]:
    return _narrowed(read_array({"zlib": text}), name, levels)


def _narrowed(labels: npt.NDArray[np.int64], name: str, levels: int) -> npt.NDArray[Any]:
    if labels.shape != (levels,) or labels.min() < 0:
        raise ValueError(f"{name} has {levels} levels")
    narrow = labels.astype(np.uint8 if labels.max() < 256 else np.uint32)
    narrow.setflags(write=False)
    return narrow


@lru_cache(maxsize=16)  # a statement's query stands in its measurement, its charge and its reply
def _packed(words: bytes) -> str:
    return base64.b64encode(zlib.compress(words)).decode("ascii")


@lru_cache(maxsize=16)
def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True))
