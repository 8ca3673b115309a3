"""Text with delimiters: a file into records and a record into fields, each record by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laprasdp.arrays import Flags, Ints
from laprasdp.data.dialect import Dialect
from laprasdp.data.records import LIMIT, Chunk, RecordBlock, chunks
from laprasdp.errors import DataError

_CR = ord("\r")


class Delimited:
    """
    A file of records with delimiters.

    Parameters
    ----------
    path : Path
        Compressed where its name ends in ``.gz``.
    dialect : Dialect

    Attributes
    ----------
    names : tuple of str
        The columns: those of the dialect, or else the fields of the first line.

    Raises
    ------
    DataError
        The first line cannot be a header.  The message does not show it.

    Notes
    -----
    **Privacy.**  Assumes that the first line is a header unless the dialect names columns, and with
    `multiline` that every record has an even number of quotes.  Guarantees that what becomes of a record
    depends on its own bytes alone: see docs/proofs/table.md.
    """

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self._path, self._dialect = path, dialect
        is_tsv = ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]]
        self._delimiter = ord(dialect.delimiter or ("\t" if is_tsv else ","))
        self._quote = ord(dialect.quote) if dialect.quote else None
        self.names: tuple[str, ...] = tuple(self._header() if dialect.columns is None else dialect.columns)

    def blocks(self, wanted: Sequence[int]) -> Iterator[RecordBlock]:
        """
        The fields at some places of every record, in the order of the file.

        Raises
        ------
        DataError
            The file cannot be read to its end, such as a gzip file that was cut short.
        """
        line, is_header = 1, self._dialect.columns is None
        for chunk in self._chunks():
            split = _Split(chunk, self._delimiter, self._quote)
            reasons = split.reasons(len(self.names))
            kept = reasons == _FINE
            kept[0] &= not is_header
            fields = [self._field(split, kept, place) for place in wanted]
            lost = np.flatnonzero(reasons < _FINE)
            lines = line + np.searchsorted(chunk.breaks, split.starts[lost])
            faults = [
                (at, _REASONS[reason])
                for at, reason in zip(lines.tolist(), reasons[lost].tolist(), strict=True)
            ]
            yield RecordBlock(fields, faults)
            line, is_header = line + len(chunk.breaks), False

    def _chunks(self) -> Iterator[Chunk]:
        quote = self._quote if self._dialect.multiline else None
        return chunks(self._path, quote, self._dialect.encoding)

    def _header(self) -> list[str]:
        if not self._path.stat().st_size:
            raise DataError(f"{self._path.name} is an empty file, not a table")
        for chunk in self._chunks():
            first = Chunk(chunk.data[: chunk.ends[0] + 1], chunk.ends[:1], chunk.ends[:1], chunk.is_cut)
            split = _Split(first, self._delimiter, self._quote)
            width = len(split.separators) + 1
            if split.reasons(width)[0] == _FINE:
                names = [self._field(split, np.ones(1, bool), i)[0].as_py() or b"" for i in range(width)]
                if not any(byte in b"\r\n\0" for name in names for byte in name):
                    try:
                        return [name.decode() for name in names]
                    except UnicodeDecodeError:
                        pass
            break
        raise DataError(
            f"{self._path.name}: the first line cannot be a header; declare delimiter, quote and encoding as "
            "they are, and columns where there is none. Lines end with LF or CRLF"
        )

    def _field(self, split: _Split, kept: Flags, place: int) -> Any:
        """One field of the kept records, without quotes; NULL where it says so."""
        import pyarrow
        import pyarrow.compute as compute

        left, right = split.bounds(kept, place)
        if not len(left):
            return pyarrow.array([], pyarrow.binary())
        twice = np.zeros(len(left), bool)
        if len(split.quotes):
            is_quoted = (right > left) & (split.array[left] == self._quote)
            left, right = left + is_quoted, right - is_quoted
            inside = np.searchsorted(split.quotes, right) > np.searchsorted(split.quotes, left)
            twice = is_quoted & inside
        offsets = np.stack([left, right], axis=1).astype(np.int32).ravel()
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(split.data)]
        gaps_between = pyarrow.Array.from_buffers(pyarrow.binary(), len(offsets) - 1, buffers)
        values = gaps_between.take(pyarrow.array(np.arange(0, len(offsets), 2)))
        if twice.any():
            quote = self._dialect.quote.encode()
            plain = [value.replace(quote * 2, quote) for value in values.filter(twice).to_pylist()]
            values = compute.replace_with_mask(values, twice, pyarrow.array(plain, pyarrow.binary()))
        is_null = compute.equal(values, self._dialect.null.encode())
        return compute.if_else(is_null, pyarrow.scalar(None, pyarrow.binary()), values)


_LONG, _QUOTE, _FEW, _MANY, _FINE, _BLANK = range(6)
_REASONS = {
    _LONG: f"it is longer than {LIMIT // 2**20} MB",
    _QUOTE: "a quote is open, or stands inside a field",
    _FEW: "it has too few fields",
    _MANY: "it has too many fields",
}


class _Split:
    """
    Where the fields of each record begin and end.

    Every array below is a function of each record alone: places are looked up within the record, and quotes
    are counted from its first byte on.
    """

    def __init__(self, chunk: Chunk, delimiter: int, quote: int | None) -> None:
        self.data, self._is_cut = chunk.data, chunk.is_cut
        self.array = array = np.frombuffer(chunk.data, np.uint8)
        self._ends = ends = chunk.ends
        self.starts = starts = np.concatenate([[0], ends[:-1] + 1])
        self._stops = stops = ends - ((ends > starts) & (array[ends - 1] == _CR))
        self.separators = np.flatnonzero(array == delimiter)
        self.quotes = np.flatnonzero(array == quote) if quote is not None else np.zeros(0, np.int64)
        self._is_broken = np.zeros(len(starts), bool)
        if len(self.quotes):
            first = np.searchsorted(self.quotes, starts)
            count = np.searchsorted(self.quotes, ends) - first
            record = np.repeat(np.arange(len(starts)), count)
            opens = (np.arange(len(self.quotes)) - first[record]) % 2 == 0
            before, after = array[self.quotes - 1], array[self.quotes + 1]
            at_start, at_stop = self.quotes == starts[record], self.quotes + 1 == stops[record]
            is_fine = np.where(
                opens,
                at_start | (before == delimiter) | (before == quote),
                at_stop | (after == delimiter) | (after == quote),
            )
            self._is_broken = count % 2 == 1
            self._is_broken[record[~is_fine]] = True
            own = first[np.searchsorted(ends, self.separators)]
            is_outside = (np.searchsorted(self.quotes, self.separators) - own) % 2 == 0
            self.separators = self.separators[is_outside]
        self._first = np.searchsorted(self.separators, starts)
        self._fields = np.searchsorted(self.separators, ends) - self._first + 1

    def reasons(self, width: int) -> Ints:
        """Why each record is none of `width` fields, or `_FINE`, or `_BLANK`."""
        is_long = self._ends - self.starts > LIMIT
        is_long[0] |= self._is_cut
        conditions = [
            is_long,
            (self._stops == self.starts) & (width > 1),
            self._is_broken,
            self._fields < width,
            self._fields > width,
        ]
        return np.select(conditions, [_LONG, _BLANK, _QUOTE, _FEW, _MANY], _FINE)

    def bounds(self, kept: Flags, place: int) -> tuple[Ints, Ints]:
        """Where a field of some records, which all have one more than `place`, begins and ends."""
        first = self._first[kept] + place
        left = self.starts[kept] if place == 0 else self.separators[first - 1] + 1
        is_last = self._fields[kept] == place + 1
        right = self._stops[kept]
        right[~is_last] = self.separators[first[~is_last]]
        return left, right
