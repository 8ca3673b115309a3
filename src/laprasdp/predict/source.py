"""Lines of a query log, in any file that a table can be in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from laprasdp.data.column import Column
from laprasdp.data.dialect import Dialect
from laprasdp.data.schema import Relation, open_source
from laprasdp.errors import ConfigError, DataError

NAMES: dict[str, tuple[str, ...]] = {
    "query": ("sql", "query", "statement", "query_text", "text"),
    "time": ("timestamp", "time", "at", "ts", "start_time", "created_at"),
    "user": ("user", "user_id", "username", "user_name"),
    "session": ("session", "session_id"),
}
"""What a column of a log may be called when it is not named; case does not count."""

BATCH = 100_000
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of the years 1 to 9999; what lies outside is no time."""


class LogSource:
    """
    An opened log.

    Parameters
    ----------
    path : path
        A CSV, JSON, Parquet or DuckDB file; text files may be compressed with gzip.
    table : str, optional
        The table inside a DuckDB database; it may be left out where there is only one.
    columns : mapping
        From a key of `NAMES` to the column that holds it.
    multiline : bool
        Quoted fields of a CSV file may hold line breaks; see `Dialect`.

    Raises
    ------
    ConfigError
        The file is not there or cannot be read, or has no column with statements.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        table: str | None = None,
        columns: Mapping[str, str] | None = None,
        *,
        multiline: bool = False,
    ) -> None:
        self._path = Path(path)
        self.faults: list[tuple[int, str]] = []
        if not self._path.is_file():
            raise ConfigError(f"{self._path}: there is no such log")
        if not self._path.stat().st_size:
            raise ConfigError(f"{self._path}: it is empty; a log holds at least one statement")
        self._opened = self._open(table, Dialect(multiline=multiline) if multiline else None)
        headless = _starts(self._opened) if self._opened.is_headed else {}
        if headless:
            names = [headless.get(place, f"column {place}") for place in range(len(self._opened.columns))]
            self._opened.close()
            self._opened = self._open(table, Dialect(columns=names, multiline=multiline))
        self._opened.note = self.faults.extend
        self._columns = self._match(columns or {})

    def batches(self) -> Iterator[Any]:
        """
        The lines in the order of the file; `faults` then holds line and reason of those that are none.

        Yields
        ------
        pyarrow.RecordBatch
            Columns query (text), time (seconds since 1970, double), user and session (text); NULL where the
            log has none.
        """
        import duckdb

        from laprasdp.data.patience import awaited

        used = [column for found in self._columns.values() for column in found]
        parts, place = [], 0
        for what, columns in self._columns.items():
            values = [f"v{place + i}" for i in range(len(columns))]
            place += len(columns)
            read = [
                _seconds(value, column.type or "VARCHAR")
                if what == "time"
                else f"TRY_CAST({value} AS VARCHAR)"
                for value, column in zip(values, columns, strict=True)
            ]
            kind = "DOUBLE" if what == "time" else "VARCHAR"
            parts.append(f"CAST(coalesce({', '.join([*read, 'NULL'])}) AS {kind}) AS {what}")
        try:
            connection = self._opened.connection
            for scan in self._opened.scans(used):
                query = f"SELECT {', '.join(parts)} FROM {scan.sql('duckdb')}"
                found = awaited(partial(connection.execute, query), connection.interrupt)
                # duckdb 1.5 renamed it
                reader = (getattr(found, "to_arrow_reader", None) or found.fetch_record_batch)(BATCH)
                while (batch := awaited(partial(next, reader, None), connection.interrupt)) is not None:
                    yield batch
        except (duckdb.Error, DataError):
            raise ConfigError(f"{self._path} cannot be read to its end: is it damaged?") from None

    def close(self) -> None:
        """Leave the file."""
        self._opened.close()

    def _open(self, table: str | None, dialect: Dialect | None) -> Relation:
        try:
            return open_source(self._path, table, dialect)
        except DataError as error:
            raise ConfigError(f"{self._path} cannot be read as a log: {error}") from None

    def _match(self, named: Mapping[str, str]) -> dict[str, list[Column]]:
        """The columns for each of `NAMES`: at most one, but in JSON every key that it may have."""
        matched: dict[str, list[Column]] = {}
        known = ", ".join(column.name for column in self._opened.columns)
        folded = {column.name.casefold(): column for column in reversed(self._opened.columns)}
        for what, usual in NAMES.items():
            wanted = (named[what],) if what in named else usual
            if self._opened.has_any_key:
                matched[what] = [self._opened.find(name) for name in wanted]
                continue
            matched[what] = [folded[name.casefold()] for name in wanted if name.casefold() in folded][:1]
            if not matched[what] and what in named:
                raise ConfigError(f"{self._path} has no column {named[what]}; it has {known}")
        if not matched["query"]:
            raise ConfigError(
                f"{self._path}: no column is called {', '.join(NAMES['query'])}; it has {known}: "
                "name the one with the statements"
            )
        return matched


def _starts(opened: Relation) -> dict[int, str]:
    """What the places of a file are whose first line is a line of the log and no header; else nothing."""
    names: dict[int, str] = {}
    for place, column in enumerate(opened.columns):
        if re.match(r"\s*(SELECT|WITH)\b", column.name, re.IGNORECASE):
            names[place] = "query"
        elif re.match(r"\d{4}-\d{2}-\d{2}|\d{9,}", column.name) and "time" not in names.values():
            names[place] = "time"
    return names if "query" in names.values() else {}


def _seconds(column: str, kind: str) -> str:
    """SQL for seconds since 1970: of a time, of text that spells one, or of a number of s, ms, µs or ns."""
    number = f"TRY_CAST({column} AS DOUBLE)"
    seconds = (
        f"CASE WHEN abs({number}) < 1e11 THEN {number} WHEN abs({number}) < 1e14 THEN {number} / 1e3 "
        f"WHEN abs({number}) < 1e17 THEN {number} / 1e6 ELSE {number} / 1e9 END"
    )
    if kind.startswith(("TIMESTAMP", "DATE")):
        moment = f"TRY_CAST({column} AS TIMESTAMP)"
        seconds = f"CASE WHEN isfinite({moment}) THEN epoch({moment}) END"
    elif kind == "VARCHAR":
        moment = f"TRY_CAST({column} AS TIMESTAMP)"
        seconds = f"coalesce(CASE WHEN isfinite({moment}) THEN epoch({moment}) END, {seconds})"
    return f"CASE WHEN {seconds} BETWEEN {_FIRST} AND {_LAST} THEN {seconds} END"
