"""JSON records, a line or an array's element each: every one is read by itself into the texts of its keys."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from laprasdp.data.records import LIMIT, RecordBlock, chunks, whole
from laprasdp.errors import DataError

_ODD = b"\xff"
"""Stands for a value that is no text, number or truth value; it is not UTF-8, so nothing equals it."""

_BATCH = 50_000
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)


class JSON:
    """
    A file of JSON objects.

    Parameters
    ----------
    path : Path
        Compressed where its name ends in ``.gz``.  A ``.json`` file is one array, and each of its elements a
        record; in every other file each line is one.

    Notes
    -----
    **Privacy.**  Assumes of an array that the quotes and brackets of each element are closed.  Guarantees
    that what becomes of a record depends on its own bytes alone; which keys there are is never looked up.
    A record has a key once: exactly as it was declared, or else but for case.  A number is the text that
    stands there; an object, an array or NaN is a value outside every domain; a key that is missing is NULL.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_array = ".json" in [suffix.lower() for suffix in path.suffixes[-2:]]

    def blocks(self, wanted: Sequence[str]) -> Iterator[RecordBlock]:
        """
        The values under some keys of every record, in the order of the file.

        Raises
        ------
        DataError
            The file cannot be read to its end, or a ``.json`` file is no array.
        """
        places = functools.lru_cache(1024)(functools.partial(_places, tuple(wanted)))
        rows: list[list[Any]] = []
        faults: list[tuple[int, str]] = []

        def block() -> RecordBlock:
            columns = zip(*rows, strict=True) if rows else [()] * len(wanted)
            return RecordBlock([_array(column) for column in columns], faults)

        for line, text in self._elements() if self._is_array else self._lines():
            row = _row(text, places)
            if isinstance(row, str):
                faults.append((line, row))
            else:
                rows.append(row)
            if len(rows) + len(faults) == _BATCH:
                yield block()
                rows, faults = [], []
        yield block()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        line = 0
        for chunk in chunks(self._path):
            for place, text in enumerate(chunk.data.split(b"\n")[:-1]):
                line += 1
                if place == 0 and chunk.is_cut:
                    yield line, b" " * (LIMIT + 1)
                elif text and not text.isspace():
                    yield line, text

    def _elements(self) -> Iterator[tuple[int, bytes]]:
        array = whole(self._path).strip()
        if not array.startswith(b"[") or not array.endswith(b"]") or len(array) < 2:
            raise DataError(
                f"{self._path.name} is not a JSON array of records; one with a record a line is named .jsonl"
            )
        depth, start, number = 0, 1, 1
        for token in _TOKEN.finditer(array, 1, len(array) - 1):
            match array[token.start()]:
                case 0x5B | 0x7B:
                    depth += 1
                case 0x5D | 0x7D:
                    depth -= 1
                case 0x2C if depth == 0:
                    yield number, array[start : token.start()]
                    start, number = token.end(), number + 1
        if not array[start:-1].isspace() and len(array) > start + 1:
            yield number, array[start:-1]


def _places(wanted: tuple[str, ...], keys: tuple[str, ...]) -> tuple[int | None, ...] | None:
    """Where the wanted keys stand among the keys of a record; None if one of them is there twice."""
    folded = [key.casefold() for key in keys]
    found: list[int | None] = []
    for name in wanted:
        same = [i for i, key in enumerate(keys) if key == name] or [
            i for i, key in enumerate(folded) if key == name.casefold()
        ]
        if len(same) > 1:
            return None
        found.append(same[0] if same else None)
    return tuple(found)


def _row(text: bytes, places: Callable[[tuple[str, ...]], tuple[int | None, ...] | None]) -> list[Any] | str:
    """The wanted values of a record, or why it is none."""
    if len(text) > LIMIT:
        return f"it is longer than {LIMIT // 2**20} MB"
    try:
        whole = text.decode("utf-8", "surrogateescape").strip(" \t\r\n")
        pairs, stop = _DECODER.raw_decode(whole)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if stop != len(whole):
        return "it is not JSON"
    if not isinstance(pairs, tuple):
        return "it is not a JSON object"
    keys, values = zip(*pairs, strict=True) if pairs else ((), ())
    where = places(keys)
    if where is None:
        return "it has a key twice"
    return [None if place is None else values[place] for place in where]


def _array(values: Sequence[Any]) -> Any:
    """The values under a key, as bytes."""
    import pyarrow

    try:
        return pyarrow.array(values, pyarrow.string())
    except (TypeError, ValueError):  # some are no texts
        return pyarrow.array([_bytes(value) for value in values], pyarrow.binary())


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            return _ODD
    if value is None:
        return None
    return (b"true" if value else b"false") if isinstance(value, bool) else _ODD


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=lambda name: [name]
)
