"""Other ledgers beside one, over the same attributes: two ledgers for one table are two budgets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from laprasdp.queries.domain import Domain

_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file


def beside(file: Path, own: Callable[[str], bool], domain: Domain) -> list[str]:
    """
    Ledgers in the folder of `file`, itself included, whose datasets have the attributes of `domain`.

    Parameters
    ----------
    file : Path
        A ledger in SQLite.
    own : callable
        Whether a dataset of this name in `file` is one that is not looked for.
    domain : Domain

    Returns
    -------
    list of str
        "FILE has dataset NAME", or several names, for each file.  A ledger does not say which table it is of,
        so a table of the same attributes is found too.

    Notes
    -----
    Files are opened read-only; what is no ledger, or cannot be read, is passed over.
    """
    found = []
    for path in sorted(file.parent.iterdir()):
        with suppress(OSError, sqlite3.Error, ValueError, KeyError, TypeError):
            mine = path.samefile(file)
            names = sorted(
                name
                for name, attributes in _datasets(path)
                if set(attributes) == set(domain) and not (mine and own(name))
            )
            if names:
                more = f" and {len(names) - 1} more" if names[1:] else ""
                found.append(f"{path.name} has dataset {names[0]}{more}")
    return found


def _datasets(path: Path) -> Iterator[tuple[str, list[str]]]:
    """
    Name and attributes of each dataset that a file keeps.

    SQLite alone may open what it uses: POSIX drops the locks that a process has on a file when it closes
    any descriptor of it, and then another process takes the log of writes away from under this one.
    """
    if path.name.endswith(_BESIDE) or not path.is_file() or not path.stat().st_size:
        return  # beside an empty file SQLite would delete a log of writes
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
        for name, settings in connection.execute("SELECT name, settings FROM lapras_dataset"):
            yield name, [attribute for attribute, _ in json.loads(settings)["domain"]]
