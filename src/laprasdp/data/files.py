"""Files of the local disk: whether a path names one that can be read, and of which kind it is."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from laprasdp.errors import DataError

READS = "Parquet (.parquet), CSV (.csv, .tsv, .txt), JSON (.json, .ndjson, .jsonl) and DuckDB databases"
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_KINDS |= {".json": "json", ".ndjson": "json", ".jsonl": "json"}
_KINDS |= {".duckdb": "database", ".ddb": "database", ".db": "database"}
SPOKEN = {"parquet": "Parquet file", "csv": "CSV file", "json": "JSON file", "database": "DuckDB database"}


def local_file(source: str | os.PathLike[str]) -> Path:
    """The absolute path of a readable file, or the reason why there is none."""
    path = Path(source)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(source)):
        raise DataError("a remote address cannot be opened: fetch the file first and name its path")
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied") from None
    except (OSError, ValueError):
        raise DataError(f"{path} cannot be opened") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; name one file")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is not a regular file")
    return path.absolute()


def kind_of_file(path: Path) -> str:
    """
    The kind of a file: by its ending where it is text, else by its first bytes.

    Notes
    -----
    **Privacy.**  No byte of a text file is looked at, since it may belong to a row.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = _KINDS.get(
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if kind in ("csv", "json"):
        return kind
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise DataError(f"{path.name} is an empty file, not a table")
    if head[:4] == b"PAR1":
        return "parquet"
    if head[8:12] == b"DUCK":
        return "database"
    if head.startswith(b"SQLite format 3"):
        raise DataError(f"{path.name} is an SQLite database; what is read: {READS}")
    if kind is None:
        raise DataError(f"{path.name} is of no known kind; what is read: {READS}")
    raise DataError(f"{path.name} is not a readable {SPOKEN[kind]}")
