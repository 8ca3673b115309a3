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
from laprasdp.queries.runs import LONG, Labels, levels_of, runs_of, unpacked

_FEW = 32
_SAFE = 2**53
_DECIMAL = re.compile(r"-?[1-9][0-9]{15,}")
_FEWER = 4  # times fewer runs than labels, from which on runs are written


class FormText:
    """A form of JSON, the same as another one of its text: what was read of it can be kept."""

    __slots__ = ("_text", "form")

    def __init__(self, form: Any) -> None:
        self.form, self._text = form, repr(form)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormText) and self._text == other._text


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
    >>> write_labels(np.repeat([3, 5], [8_999, 1]))
    {'runs': [3, 8999, 5, 1]}
    """
    if (levels := levels_of(labels)) > _FEW:
        runs = runs_of(labels)
        if _FEWER * len(runs.starts) <= levels:
            return {"runs": write_integers(np.stack([runs.values, runs.lengths], axis=1).reshape(-1))}
    return write_integers(unpacked(labels))


def read_labels(form: Any, name: str, levels: int) -> npt.NDArray[Any]:
    """
    The labels of `write_labels`, one for each of the levels of an attribute; not negative, read-only.

    Raises
    ------
    ValueError
        They are damaged, or are those of an attribute of other levels.
    """
    return _read_labels(form, name, levels) if levels > LONG else _read_once(FormText(form), name, levels)


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
            numbers = read_integers(form["runs"])
            lengths = numbers[1::2]
            if len(numbers) % 2 or min(lengths) < 1 or sum(lengths) > MAX_LEVELS:
                raise ValueError("these are no runs of labels")
            return np.repeat(np.array(numbers[::2], dtype=np.int64), lengths)
        if isinstance(form, dict):
            return np.frombuffer(_unpacked(form["zlib"]), dtype="<i8")
        return np.array(read_integers(form), dtype=np.int64)
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from None


def _read_labels(form: Any, name: str, levels: int) -> npt.NDArray[Any]:
    labels = read_array(form)
    if labels.shape != (levels,) or labels.min() < 0:
        raise ValueError(f"{name} has {levels} levels")
    narrow = labels.astype(np.uint8 if labels.max() < 256 else np.uint32)
    narrow.setflags(write=False)
    return narrow


@lru_cache(maxsize=64)  # a statement's labels stand in its query and in its charge
def _read_once(text: FormText, name: str, levels: int) -> npt.NDArray[Any]:
    return _read_labels(text.form, name, levels)


@lru_cache(maxsize=16)  # a statement's query stands in its measurement, its charge and its reply
def _packed(words: bytes) -> str:
    return base64.b64encode(zlib.compress(words)).decode("ascii")


@lru_cache(maxsize=16)
def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True))
