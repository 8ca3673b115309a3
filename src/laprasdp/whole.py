"""Files that are written whole or not at all, whatever interrupts the writing."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | os.PathLike[str], text: str, *, new: bool = False) -> None:
    """
    Write a text file under its name only when all of it is on the disk.

    Parameters
    ----------
    path : path
        Links are followed.  What is no regular file, such as a pipe, is written to as it is.
    text : str
        Kept as UTF-8.
    new : bool
        Refuse a file that is there.

    Raises
    ------
    FileExistsError
        With `new`, the file is there; it stays as it is.
    OSError
        It cannot be written; a file that was there stays as it is.

    Notes
    -----
    A process that is killed may leave a hidden file beside it, ``.NAME.…``, that nobody reads.
    """
    target = Path(os.path.realpath(path))
    if new and os.path.lexists(path):
        raise FileExistsError(str(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}")
    try:
        with open(part, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            part.chmod(target.stat().st_mode & 0o777)
        if new:
            _link(part, target)
        else:
            os.replace(part, target)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            part.unlink()


def _link(part: Path, target: Path) -> None:
    """Give a file its name; unlike a rename, never over another file."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # no links on this file system
        os.replace(part, target)
