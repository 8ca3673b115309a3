"""SQLite's write-ahead log: whether finished writes in it are lost, which only shows before SQLite opens it.

A log is a header and frames: a page each, with a checksum that goes on from the frame before.  SQLite reads
up to the first frame that does not fit and drops the rest without a word; who writes next writes over it.
The form is that of https://sqlite.org/fileformat2.html#the_write_ahead_log, and of
https://sqlite.org/walformat.html#the_wal_index_file_format for the index.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

_HEADER, _FRAME, _INDEX = 32, 24, 48  # bytes
_ORDERS = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # of words in checksums, by the log's first word
_SIZES = [2**power for power in range(9, 17)]
_TRIES, _PAUSE = 20, 0.01

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Break:
    """
    Where a log breaks off.

    Attributes
    ----------
    what : str
    lost : bool
        Finished writes are lost; else it was a write that was not finished, as far as one can see.
    """

    what: str
    lost: bool


def broken(file: Path) -> Break | None:
    """
    Where the log beside a SQLite file breaks off; None where it is whole, or not there.

    Parameters
    ----------
    file : Path
        That nobody has opened since the damage was done, and that this process does not hold open: it would
        lose its locks on the index.

    Notes
    -----
    Where the index of the log is there, it says how many frames are finished: a break before that is a loss,
    and one behind it is none.  Where it is not, a write whose last frame is there was finished, and SQLite
    begins the next one when it is on the disk.  So last frames behind one that does not fit show a loss, of
    the log's last write at least.  What a crash leaves shows none: frames without a last one, a part of a
    frame, frames of an older log.  Then a log that was cut short looks like a crash.  The other way round, a
    power failure, or two kills and a lost index, may leave what looks like a loss of the last write, whose
    answer nobody was shown.
    """
    path, before = Path(f"{file}-wal"), None
    for _ in range(_TRIES):
        index = _start(Path(f"{file}-shm"))  # before the log, which is written first
        try:
            log = path.read_bytes()
        except OSError:
            return None  # what else is wrong with it SQLite says
        found = _look(log, index)
        if found is None or log == before:
            break
        before = log  # somebody may be writing it
        time.sleep(_PAUSE)
    return found and replace(found, what=f"its log of writes, {path.name}, {found.what}")


def _start(index: Path) -> bytes:
    """The two copies of the header of a log's index; shorter where it cannot be read."""
    try:
        with index.open("rb") as file:
            return file.read(2 * _INDEX)
    except OSError:
        return b""


def _finished(index: bytes, salts: bytes) -> int | None:
    """How many frames are finished, by an index of the log with these salts."""
    one, two = index[:_INDEX], index[_INDEX:]
    if len(two) < _INDEX or one != two or not one[12] or one[32:40] != salts:
        return None
    return int.from_bytes(one[16:20], sys.byteorder)


def _look(log: bytes, index: bytes) -> Break | None:
    if len(log) <= _HEADER:
        return None
    magic, _, size, _, *salts, first, second = struct.unpack(">8I", log[:_HEADER])
    order = _ORDERS.get(magic)
    if order is None or size not in _SIZES:
        return Break("has a damaged header", True)
    state = next(sums((0, 0), np.frombuffer(log, order, 6)[None]))
    if state != (first, second):
        return Break("has a damaged header", True)
    count = (len(log) - _HEADER) // (_FRAME + size)
    frames = np.frombuffer(log, np.uint8, count * (_FRAME + size), _HEADER).reshape(count, _FRAME + size)
    heads = np.ascontiguousarray(frames[:, :_FRAME]).view(">u4")  # page, last frame, 2 salts, 2 sums
    summed = np.ascontiguousarray(np.delete(frames, np.s_[8:_FRAME], axis=1)).view(order)
    own = (heads[:, 2:4] == salts).all(axis=1)
    fits = own.copy()
    for place, after in enumerate(sums(state, summed)):
        if after != tuple(heads[place, 4:]):
            fits[place:] = False
            break
        own[place] = True  # salts are not summed: they alone are damaged
    end = count if fits.all() else int(fits.argmin())
    known = _finished(index, log[16:24])
    lasts = int((own[end:] & (heads[end:, 1] != 0)).sum())
    if known is None and lasts:
        what = f"breaks off at frame {end + 1} of {count}, before the end of {lasts} finished writes"
        return Break(what, True)
    if known is not None and known > end:
        return Break(f"breaks off at frame {end + 1}, where {known} are finished", True)
    if lasts or _HEADER + count * (_FRAME + size) < len(log):
        return Break("ends in a write that was not finished", False)
    return None


def sums(state: tuple[int, int], words: Words) -> Iterator[tuple[int, int]]:
    """
    The checksum after each row, from `state` on.

    Two words (a, b) take (s, t) to (s + t + a, s + 2t + a + b), modulo 2³²; the powers of that matrix are
    Fibonacci numbers, so the words of a row are summed at once.
    """
    pairs = words.shape[1] // 2
    numbers = [1, 0]  # f(-1), f(0), …
    while len(numbers) < 2 * pairs + 3:
        numbers.append((numbers[-2] + numbers[-1]) % 2**32)
    a = words[:, ::2].astype(np.uint32)
    both = a + words[:, 1::2].astype(np.uint32)
    falling = np.array(numbers[: 2 * pairs + 1], np.uint32)[::-1]
    low, middle, high = falling[2::2], falling[1::2], falling[:-1:2]
    added = np.stack([a @ low + both @ middle, a @ middle + both @ high], axis=1)
    f, g, h = numbers[2 * pairs : 2 * pairs + 3]
    for one, two in added.tolist():
        s, t = state
        state = (f * s + g * t + one) % 2**32, (g * s + h * t + two) % 2**32
        yield state
