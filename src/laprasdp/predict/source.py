"""Lines of a query log in any file that DuckDB reads, or in a table of a DuckDB database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from laprasdp.errors import ConfigError

NAMES: dict[str, tuple[str, ...]] = {
    "query": ("sql", "query", "statement", "query_text", "text"),
    "time": ("timestamp", "time", "at", "ts", "start_time", "created_at"),
    "user": ("user", "user_id", "username", "user_name"),
    "session": ("session", "session_id"),
}
"""What a column of a log may be called when it is not named; case does not count."""

BATCH = 100_000
_CSV = "read_csv(?, header = true, all_varchar = true, store_rejects = true)"
_READERS = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": "read_parquet(?)",
    ".json": "read_json_auto(?)",
    ".jsonl": "read_json_auto(?)",
    ".ndjson": "read_json_auto(?)",
}
_DATABASES = (".duckdb", ".db", ".ddb")


class LogSource:
    """
    An opened log.

    Parameters
    ----------
    path : path
        A CSV, JSON (lines), Parquet or DuckDB file; text files may be compressed with gzip.
    table : str, optional
        The table inside a DuckDB database; it may be left out where there is only one.
    columns : mapping
        From a key of `NAMES` to the column that holds it.

    Raises
    ------
    ConfigError
        The file is not there or cannot be read, or has no column with statements.
    """

    def __init__(
        self, path: str | os.PathLike[str], table: str | None = None, columns: Mapping[str, str] | None = None
    ) -> None:
        import duckdb

        self._path = Path(path)
        self._relation, self._values = "", list[str]()
        if not self._path.is_file():
            raise ConfigError(f"{self._path}: there is no such log")
        if not self._path.stat().st_size:
            raise ConfigError(f"{self._path}: it is empty; a log holds at least one statement")
        self._connection = duckdb.connect()
        self._connection.execute("SET enable_progress_bar = false")
        try:
            found = self._open(table)
        except duckdb.Error as error:
            raise ConfigError(f"{self._path} cannot be read as a log: {_first_line(error)}") from None
        headless = self._relation == _CSV and _starts(found)
        if headless:
            self._relation = _CSV.replace("true", "false", 1)
            columns = {**headless, **(columns or {})}
            found = dict.fromkeys(columns.values(), "VARCHAR")
        self.columns = _match(self._path, found, columns or {})
        self._types = found

    def batches(self) -> Iterator[Any]:
        """
        The lines in the order of the file.

        Yields
        ------
        pyarrow.RecordBatch
            Columns query (text), time (seconds since 1970, double), user and session (text); NULL where the
            log has none.
        """
        import duckdb

        from laprasdp.data.patience import awaited

        parts = []
        for name in NAMES:
            column = self.columns.get(name)
            quoted = None if column is None else '"' + column.replace('"', '""') + '"'
            if quoted is None or column is None:
                parts.append(f"NULL::{'DOUBLE' if name == 'time' else 'VARCHAR'} AS {name}")
            elif name == "time":
                parts.append(f"{_seconds(quoted, self._types[column])} AS time")
            else:
                parts.append(f"{quoted}::VARCHAR AS {name}")
        try:
            read = f"SELECT {', '.join(parts)} FROM {self._relation}"
            found = awaited(self._connection, lambda: self._connection.execute(read, self._values))
            # duckdb 1.5 renamed it
            reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
            batches = reader(BATCH)
            yield from iter(lambda: awaited(self._connection, lambda: next(batches, None)), None)
        except duckdb.Error as error:
            raise ConfigError(f"{self._path} cannot be read to its end: {_first_line(error)}") from None

    def rejected(self) -> int:
        """How many lines of a CSV file were no rows, after `batches`."""
        if not self._relation.startswith("read_csv"):
            return 0
        row = self._connection.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchone()
        return int(row[0]) if row else 0

    def _open(self, table: str | None) -> dict[str, str]:
        """Column names to types; sets what is read."""
        suffix = next((s for s in reversed(self._path.suffixes) if s != ".gz"), "").lower()
        if table is not None or suffix in _DATABASES:
            where = str(self._path).replace("'", "''")
            self._connection.execute(f"ATTACH '{where}' AS log (READ_ONLY)")
            names = [
                name
                for (name,) in self._connection.execute(
                    "SELECT table_name FROM duckdb_tables() WHERE database_name = 'log' ORDER BY 1"
                ).fetchall()
            ]
            table = names[0] if table is None and len(names) == 1 else table
            if table is None or table not in names:
                raise ConfigError(f"{self._path}: name the table with the log; there are {', '.join(names)}")
            quoted = table.replace('"', '""')
            self._relation = f'log."{quoted}"'
        elif suffix in _READERS:
            self._relation, self._values = _READERS[suffix], [str(self._path)]
        else:
            raise ConfigError(f"{self._path}: a log is a file {', '.join([*_READERS, *_DATABASES])}")
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {self._relation}", self._values)
        return {name: kind for name, kind, *_ in described.fetchall()}


def _match(path: Path, found: dict[str, str], named: Mapping[str, str]) -> dict[str, str]:
    folded = {name.casefold(): name for name in reversed(found)}
    matched = {}
    for what, usual in NAMES.items():
        wanted = (named[what],) if what in named else usual
        column = next((folded[name.casefold()] for name in wanted if name.casefold() in folded), None)
        if column is None and what in named:
            raise ConfigError(f"{path} has no column {named[what]}; it has {', '.join(found)}")
        if column is not None:
            matched[what] = column
    if "query" not in matched:
        raise ConfigError(
            f"{path}: no column is called {', '.join(NAMES['query'])}; it has {', '.join(found)}: "
            "name the one with the statements"
        )
    return matched


def _starts(found: Mapping[str, str]) -> dict[str, str]:
    """The columns of a CSV file whose first line is a line of the log and no header; else nothing."""
    names = {}
    for place, name in enumerate(found):
        column = f"column{place:0{len(str(len(found) - 1))}}"
        if re.match(r"\s*(SELECT|WITH)\b", name, re.IGNORECASE):
            names["query"] = column
        elif re.match(r"\d{4}-\d{2}-\d{2}|\d{9,}", name):
            names.setdefault("time", column)
    return names if "query" in names else {}


def _seconds(column: str, kind: str) -> str:
    """SQL for seconds since 1970: of a time, of text that spells one, or of a number of s, ms, µs or ns."""
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"epoch({column}::TIMESTAMP)"
    number = f"TRY_CAST({column} AS DOUBLE)"
    scaled = (
        f"CASE WHEN abs({number}) < 1e11 THEN {number} WHEN abs({number}) < 1e14 THEN {number} / 1e3 "
        f"WHEN abs({number}) < 1e17 THEN {number} / 1e6 ELSE {number} / 1e9 END"
    )
    if kind != "VARCHAR":
        return scaled
    return f"coalesce(epoch(TRY_CAST({column} AS TIMESTAMP)), {scaled})"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
