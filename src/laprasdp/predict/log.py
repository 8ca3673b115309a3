"""A log of past statements, as arrays: what was asked, when, and in which session."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.errors import ConfigError, interruptible
from laprasdp.limits import MAX_PARSES
from laprasdp.predict.askable import OTHER_TABLE, Askable
from laprasdp.predict.source import LogSource
from laprasdp.predict.template import Key, Splitter
from laprasdp.queries.domain import Domain

Provenance = Literal["public", "private-answers"]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tally:
    """
    What became of the lines of a log.

    Attributes
    ----------
    lines, kept : int
        In the file; and those that can be asked.
    other_table : int
        Lines about another table.
    refused : tuple of (str, int)
        Reasons and numbers of lines, the most frequent first; other tables and empty lines are among them.
    distinct, parsed : int
        Different statements that can be asked; different ones that the parser read.
    notes : tuple of str
        What else was odd, a sentence each.
    """

    lines: int
    kept: int
    other_table: int = 0
    refused: tuple[tuple[str, int], ...] = ()
    distinct: int = 0
    parsed: int = 0
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "refused": dict(self.refused), "notes": list(self.notes)}


@dataclass(frozen=True, eq=False)
class Log:
    """
    Statements of the past that can be asked, in order of time.

    Attributes
    ----------
    domain : Domain
    table : str
    statements : tuple of Key
        Distinct ones; two that the parser has read never mean the same.
    ids : (N,) int32 array
        The statement of each line.
    times : (N,) array or None
        Seconds since 1970; None where the log has no times.
    sessions : (N,) int32 array
        A number for each pair of user and session; all 0 where the log has neither.
    provenance : {"public", "private-answers"}
    tally : Tally
    """

    domain: Domain
    table: str
    statements: tuple[Key, ...]
    ids: Codes
    times: Floats | None
    sessions: Codes
    provenance: Provenance = "public"
    tally: Tally = field(default=Tally(0, 0))

    def __len__(self) -> int:
        return len(self.ids)

    def lines(self, start: int, stop: int | None) -> Log:
        """The lines from `start` up to `stop`; statements keep their numbers."""
        return self.chosen(slice(start, stop))

    def chosen(self, part: slice | npt.NDArray[np.int64]) -> Log:
        """Some of the lines; statements keep their numbers."""
        times = None if self.times is None else self.times[part]
        return replace(self, ids=self.ids[part], times=times, sessions=self.sessions[part])


@interruptible()
def read_log(
    path: str | os.PathLike[str],
    domain: Domain,
    table: str,
    *,
    provenance: str | None,
    database_table: str | None = None,
    columns: Mapping[str, str] | None = None,
    multiline: bool = False,
    step: Callable[[], None] = lambda: None,
) -> Log:
    """
    Read a log of statements about one table.

    Parameters
    ----------
    path : path
        CSV, JSON lines, Parquet, or a DuckDB database with `database_table`.
    domain : Domain
    table : str
        How the statements call the table.
    provenance : {"public", "private-answers"}
        Where the log comes from; required.
    columns : mapping, optional
        From "query", "time", "user" or "session" to the name of a column; see `source.NAMES`.
    multiline : bool
        Statements in a CSV file may hold line breaks; then a quote that is not closed takes lines with it.
    step : callable, optional
        Called after each part of the file, and after each 10,000 different statements that were judged.

    Returns
    -------
    Log
        Lines without a time take that of the line before; if none has a time, the order is the file's.

    Raises
    ------
    ConfigError
        `provenance` is missing; the log cannot be read, is empty, or holds nothing that can be asked.

    Notes
    -----
    **Privacy.**  Predictions are public settings, so the log must be public already, or hold only statements
    of people who saw private answers and nothing else: whoever has seen the raw rows asks about what is in
    them, and a log of such questions tells it.  Nothing here can check that; it is asked for by name.
    """
    known = provenance_named(provenance)
    source = LogSource(path, database_table, columns, multiline=multiline)
    keys, whole, times, sessions = _lines_of(source, step)
    rejected = len(source.faults)
    if not len(whole):
        what = f"none of its {rejected:,} lines can be read" if rejected else "it is empty"
        raise ConfigError(f"{path}: {what}; a log holds at least one statement")
    askable = Askable(domain, table)
    target, refused = _judged(keys, np.bincount(whole, minlength=len(keys)), askable, step)
    if rejected:
        refused["the line of the file cannot be read"] += rejected
    final = target[whole]
    keep = final >= 0
    lines = len(whole) + rejected
    counts = tuple(refused.most_common())
    if not keep.any():
        raise ConfigError(
            f"{path}: none of {lines:,} lines can be asked about {table}; {counts[0][1]:,}: {counts[0][0]}"
        )
    notes = _unread(source.faults)
    when = _filled(times, notes)
    order = _in_time(np.flatnonzero(keep), when, notes)
    used, renumbered = np.unique(final[order], return_inverse=True)
    tally = Tally(lines, len(order), refused[OTHER_TABLE], counts, len(used), askable.parsed, tuple(notes))
    return Log(
        domain,
        table,
        tuple(key for n in used.tolist() if (key := keys[n]) is not None),
        renumbered.astype(np.int32),
        None if when is None else when[order],
        sessions[order],
        known,
        tally,
    )


def provenance_named(given: str | None) -> Provenance:
    """The provenance of this name, or a refusal that says why one has to be given."""
    for known in get_args(Provenance):
        if given == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(
        ("" if given is None else f"no provenance {given!r}; ")
        + "say where the log comes from: `public`, or `private-answers` if its authors saw nothing but "
        "private answers. Predictions are public, and a log written by people who saw the raw table tells "
        "what is in it"
    )


def _numbered(
    texts: Any, raw: dict[str | None, int], numbers: dict[Key | None, int], splitter: Splitter
) -> Codes:
    """The number of each line's statement; each distinct text of a batch is split once."""
    coded = texts.dictionary_encode()
    found = []
    for text in coded.dictionary.to_pylist():
        number = raw.get(text)
        if number is None:
            number = numbers.setdefault(splitter.split(text) if text.strip() else None, len(numbers))
            if len(raw) < 100_000:
                raw[text] = number
        found.append(number)
    empty = numbers.setdefault(None, len(numbers)) if coded.null_count else -1
    table = np.array([*found, empty], dtype=np.int32)
    numbered: Codes = table[coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)]
    return numbered


def _sessions(users: Any, sessions: Any, people: dict[tuple[Any, Any], int]) -> Codes:
    first, second = users.dictionary_encode(), sessions.dictionary_encode()
    width = len(second.dictionary) + 1
    pairs = first.indices.fill_null(len(first.dictionary)).to_numpy(zero_copy_only=False).astype(
        np.int64
    ) * width + second.indices.fill_null(width - 1).to_numpy(zero_copy_only=False)
    distinct, inverse = np.unique(pairs, return_inverse=True)
    names = [*first.dictionary.to_pylist(), None], [*second.dictionary.to_pylist(), None]
    table = [
        people.setdefault((names[0][pair // width], names[1][pair % width]), len(people))
        for pair in distinct.tolist()
    ]
    return np.array(table, dtype=np.int32)[inverse]


def _judged(
    keys: list[Key | None], counts: npt.NDArray[np.int64], askable: Askable, step: Callable[[], None]
) -> tuple[Codes, Counter[str]]:
    """The number that each statement goes by, -1 if it is refused; and the refused lines by reason."""
    target = np.full(len(keys), -1, dtype=np.int32)
    refused: Counter[str] = Counter()
    accepted: dict[Key, int] = {}
    order = np.argsort(-counts, kind="stable").tolist()
    if len(order) > MAX_PARSES:  # then those first that the parser will not refuse for their literals
        order.sort(key=lambda number: (key := keys[number]) is None or not askable.fits(key))
    for done, number in enumerate(order, start=1):
        key = keys[number]
        reason = "the statement is empty" if key is None else askable.refusal(key)
        if key is None or reason is not None:
            refused[reason or ""] += int(counts[number])
        else:
            target[number] = accepted.setdefault(askable.same(key), number)
        if not done % 10_000:
            step()
    return target, refused


def _lines_of(source: LogSource, step: Callable[[], None]) -> tuple[list[Key | None], Codes, Floats, Codes]:
    """Distinct statements of a source; and the statement, time and session of each of its lines."""
    splitter = Splitter()
    numbers: dict[Key | None, int] = {}
    raw: dict[str | None, int] = {}
    people: dict[tuple[Any, Any], int] = {}
    ids, times, sessions = [np.zeros(0, np.int32)], [np.zeros(0)], [np.zeros(0, np.int32)]
    for batch in source.batches():
        ids.append(_numbered(batch.column(0), raw, numbers, splitter))
        times.append(batch.column(1).to_numpy(zero_copy_only=False).astype(np.float64))
        sessions.append(_sessions(batch.column(2), batch.column(3), people))
        step()
    source.close()
    return list(numbers), np.concatenate(ids), np.concatenate(times), np.concatenate(sessions)


def _unread(faults: Sequence[tuple[int, str]]) -> list[str]:
    """What is said of lines that cannot be read: of the first few, and how many more there are."""
    notes = [f"line {line:,} of the file cannot be read: {reason}" for line, reason in faults[:5]]
    if len(faults) > len(notes):
        notes.append(f"{len(faults) - len(notes):,} more lines of the file cannot be read")
    return notes


def _in_time(kept: npt.NDArray[np.intp], when: Floats | None, notes: list[str]) -> npt.NDArray[np.intp]:
    """The lines that are kept in order of time, as far as that is known."""
    if when is None:
        return kept
    back = int(np.count_nonzero(np.diff(when) < 0))
    if back:
        notes.append(f"{back:,} lines are earlier than the line before; the log was sorted by time")
    return kept[np.argsort(when[kept], kind="stable")]


def _filled(times: Floats, notes: list[str]) -> Floats | None:
    """Times without gaps; None if there are none at all."""
    missing = ~np.isfinite(times)
    if missing.all():
        notes.append("no line has a time; the order is the file's, and hours and days are not learned")
        return None
    if missing.any():
        notes.append(f"{int(missing.sum()):,} lines have no time; each takes that of the line before it")
        place = np.where(missing, -1, np.arange(len(times)))
        place = np.maximum.accumulate(place)
        place[place < 0] = np.flatnonzero(~missing)[0]
        times = times[place]
    return times
