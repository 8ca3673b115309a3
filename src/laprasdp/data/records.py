"""A text file into records: bytes up to a line feed, in pieces that fit into memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from laprasdp.arrays import Ints
from laprasdp.errors import DataError

LIMIT = 2**24
"""Bytes of the longest record that is read."""

_PIECE = 2**24
_LF = ord("\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Chunk:
    """
    Whole records, one after another.

    Attributes
    ----------
    data : bytes
        The last record ends with a line feed too.
    breaks, ends : int arrays
        Where line feeds are; and those of them that end a record.
    is_cut : bool
        The first record is the end of one that was too long, and is none.
    """

    data: bytes
    breaks: Ints
    ends: Ints
    is_cut: bool


@dataclass(frozen=True, eq=False)
class RecordBlock:
    """
    What was read of some records.

    Attributes
    ----------
    fields : list of pyarrow binary arrays
        The wanted fields of the records that can be read; NULL where the field is.
    faults : list of (line, reason)
        The other records.
    """

    fields: list[Any]
    faults: list[tuple[int, str]]


def chunks(path: Path, quote: int | None = None, encoding: str = "utf-8") -> Iterator[Chunk]:
    """
    The records of a file.

    Parameters
    ----------
    path : Path
        Compressed where its name ends in ``.gz``; a byte order mark at its start is left out.
    quote : int, optional
        The byte between two of which a line feed does not end a record.
    encoding : str
        What is not UTF-8 becomes it.

    Raises
    ------
    DataError
        The file cannot be read to its end.

    Notes
    -----
    **Privacy.**  Without `quote` a record ends at its line feed, so where it ends depends on its own bytes
    alone; with `quote` too, if every record has an even number of quotes.  A record above `LIMIT` bytes is
    none, and nothing of it is kept.
    """
    with _opened(path) as file:
        yield from _chunks(file, quote, encoding)


def whole(path: Path) -> bytes:
    """All bytes of a file; see `chunks`."""
    with _opened(path) as file:
        return file.read().removeprefix(_BOM)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    try:
        with path.open("rb") as file:
            yield gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be read to its end: is it damaged, or being written?") from None


def _chunks(file: BinaryIO | gzip.GzipFile, quote: int | None, encoding: str) -> Iterator[Chunk]:
    rest, is_cut, is_last = file.read(len(_BOM)).removeprefix(_BOM), False, False
    while not is_last:
        piece = file.read(_PIECE)
        is_last = not piece
        if encoding != "utf-8":
            piece = piece.decode(encoding).encode()
        data = rest + piece
        if is_last and data and not data.endswith(b"\n"):
            data += b"\n"
        breaks, ends = _ends(data, quote)
        if is_last and data and not (len(ends) and ends[-1] == len(data) - 1):
            ends = np.append(ends, len(data) - 1)  # a quote is open to the end of the file
        stop = int(ends[-1]) + 1 if len(ends) else 0
        if stop:
            yield Chunk(data[:stop], breaks[: np.searchsorted(breaks, stop)], ends, is_cut)
            is_cut = False
        rest = data[stop:]
        if len(rest) > LIMIT:
            is_open = quote is not None and rest.count(quote) % 2
            rest, is_cut = bytes([quote]) if is_open and quote is not None else b"", True


def _ends(data: bytes, quote: int | None) -> tuple[Ints, Ints]:
    """All line feeds, and those that end a record."""
    array = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(array == _LF)
    if quote is None:
        return breaks, breaks
    quotes = np.flatnonzero(array == quote)
    return breaks, breaks[np.searchsorted(quotes, breaks) % 2 == 0]
