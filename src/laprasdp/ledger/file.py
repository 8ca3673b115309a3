"""A SQLite ledger's file: whether it may be opened, and whether its path still names what was opened.

SQLite goes on writing to the file that it has opened, whatever becomes of its name: nobody would find what
was kept there.  Files are only looked at here and never opened: POSIX drops the locks that a process has on
a file when it closes any descriptor of it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
import warnings
import weakref
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laprasdp.errors import LedgerError
from laprasdp.ledger.wal import broken

MOUNTS = Path("/proc/self/mountinfo")
"""Where Linux says what is mounted; what other systems mount is not known."""

_NETWORK = re.compile(
    "9p|afs|beegfs|ceph|cifs|coda|davfs|glusterfs|gpfs|lustre|ncpfs|nfs4?|orangefs|pvfs2|smb(fs|2|3)?|fuse[.]"
    "(ceph.*|.*davfs|gcsfuse|glusterfs|goofys|juicefs|mount.*|.*nfs.*|rclone|s3fs|smb.*|sshfs)"
)
_LOG, _INDEX = "-wal", "-shm"
_WORDS = {_LOG: "its log of writes", _INDEX: "the index of its log"}
_AGAIN = "end every session on it, verify it, then open it anew"

Identity = tuple[int, int]
"""Device and inode."""


class Driver(sqlite3.Connection):
    """SQLite's connection, which can be referred to weakly."""


class _Held:
    """What this process has open of one file; SQLite shares it among all connections."""

    def __init__(self, process: int) -> None:
        self.process, self.connections = process, weakref.WeakSet[Driver]()
        self.beside: dict[str, Identity] = {}
        self.sizes: dict[str, int] = {}
        self.written = 0  # when the file was last written to, as far as it is known by whom


_HELD: weakref.WeakValueDictionary[Identity, _Held] = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


class LedgerFile:
    """
    The file that a database address names, from its first connection to its last.

    Parameters
    ----------
    database : str
        A path, or a ``file:`` address, as SQLite takes it.

    Notes
    -----
    **Privacy.**  An answer may be shown if whoever opens the ledger next finds it.  Guarantees that of what
    was committed between two calls of `check` that found nothing, if nobody meddles with the file and its
    log in the very moment between or writes other bytes into the log.
    """

    def __init__(self, database: str) -> None:
        path = urlsplit(database).path if database.startswith("file:") else database
        self._named = os.path.abspath(unquote(path) if database.startswith("file:") else path)
        self._real = os.path.realpath(self._named)  # SQLite names what it keeps beside it by this
        self._is: Identity | None = None
        self._held: _Held | None = None
        self._logged = False
        self.changes = 0
        """How often somebody else has written to the file since it was looked at."""

    def connecting(self) -> None:
        """
        Before SQLite opens the file: refuse what it would lose, or what is not safe there.

        Raises
        ------
        LedgerError
            Its log of writes is there without it, or is damaged; it has several names, or is on a network.
        """
        if self._held is None or not self._held.connections:
            self._real = os.path.realpath(self._named)
        try:
            found: os.stat_result | None = os.stat(self._real)
        except OSError:
            found = None  # SQLite makes it, or says what is wrong
        held = None if found is None else _HELD.get(_identity(found))
        if held is not None and held.process == os.getpid() and held.connections:
            return
        check_alone(self._real)
        check_local(self._real)
        if found is not None:
            _check_links(found)
            self._is = self._is or _identity(found)
        _check_log(self._real)

    def connected(self, driver: Driver) -> None:
        """
        After SQLite has opened the file in a connection.

        Raises
        ------
        LedgerError
            It is another file than before.
        """
        found = self._look()
        identity = _identity(found)
        with _LOCK:
            held = _HELD.get(identity)
            if held is None or held.process != os.getpid():
                held = _HELD[identity] = _Held(os.getpid())
            if not held.connections:
                held.beside, held.sizes, held.written = {}, {}, found.st_mtime_ns
            held.connections.add(driver)
            self._is, self._held = identity, held

    def disconnected(self, driver: Driver) -> None:
        """A connection is closed; without a lock, for garbage may be collected anywhere."""
        if self._held is not None:
            self._held.connections.discard(driver)

    def logged(self) -> None:
        """From now on its log of writes has to be there."""
        self._logged = True

    def forget(self) -> None:
        """Where no connection is left, the next may be to another file of this name."""
        if self._held is not None and not self._held.connections:
            self._is, self._held = None, None

    def check(self, *, written: bool = False) -> None:
        """
        Whether somebody who opens the path now finds what this process has open.

        Parameters
        ----------
        written : bool
            This process has just written; else a change of the file is counted as that of another one.

        Raises
        ------
        LedgerError
            The file, its log or the log's index was moved, removed, replaced or cut short.
        """
        held = self._held
        sizes = {} if held is None else dict(held.sizes)  # other threads may see more, but later
        found = self._look()
        if held is None or held.process != os.getpid():
            return
        self._check_size("", found, sizes)
        for suffix in (_LOG, _INDEX):
            try:
                beside = os.lstat(self._real + suffix)
            except OSError:
                if self._logged or suffix in held.beside:
                    self._lost(suffix, "was moved or removed")
            else:
                if held.beside.setdefault(suffix, _identity(beside)) != _identity(beside):
                    self._lost(suffix, "was replaced")
                self._check_size(suffix, beside, sizes)
        held.sizes = sizes
        if found.st_mtime_ns != held.written:
            held.written = found.st_mtime_ns
            self.changes += not written

    def _look(self) -> os.stat_result:
        """The file that the path names now, if it is the one that was opened."""
        try:
            found = os.lstat(self._real)
            named = found if self._named == self._real else os.stat(self._named)
        except OSError:
            raise LedgerError(
                "the file was moved or removed under this session; nothing is shown: put it back, or "
                + _AGAIN
            ) from None
        if self._is not in (None, _identity(found)) or _identity(named) != _identity(found):
            raise LedgerError(f"the file was replaced under this session; nothing is shown: {_AGAIN}")
        _check_links(found)
        return found

    def _check_size(self, suffix: str, found: os.stat_result, sizes: dict[str, int]) -> None:
        if found.st_size < sizes.get(suffix, 0):
            self._lost(suffix, "was cut short")
        sizes[suffix] = found.st_size

    def _lost(self, suffix: str, what: str) -> None:
        name = f"{_WORDS[suffix]}, {Path(self._real).name}{suffix}," if suffix else "the file"
        raise LedgerError(f"{name} {what} under this session; nothing is shown: {_AGAIN}")


def check_alone(file: str | os.PathLike[str]) -> None:
    """
    Refuse a log of writes whose ledger is missing or empty: SQLite would delete it and begin a new budget.

    Raises
    ------
    LedgerError
    """
    file = os.path.realpath(file)
    if _size(file) == 0 and _size(file + _LOG) > 0:
        name = Path(file).name
        raise LedgerError(
            f"its log of writes, {name}{_LOG}, is there, but {name} is missing or empty: answers that were "
            "shown are in the log; put the file back or restore a backup; to give them up, move the log away"
        )


def check_local(file: str | os.PathLike[str]) -> None:
    """
    Refuse a network file system, on which SQLite's log loses what two machines write.

    Raises
    ------
    LedgerError
    """
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = mounted(os.path.realpath(file), mounts)
    if kind is not None and _NETWORK.fullmatch(kind):
        raise LedgerError(
            f"it is on a network file system ({kind}), where SQLite loses writes: name a file on a disk of "
            "this machine, or give a PostgreSQL address as url"
        )


def mounted(file: str, mounts: str) -> str | None:
    """
    The kind of file system that a path without links is on.

    Parameters
    ----------
    file : str
    mounts : str
        Lines as in Linux' ``/proc/self/mountinfo``.

    Examples
    --------
    >>> mounted("/srv/x/a.db", "21 1 0:1 / / rw - ext4 sda rw\\n22 21 0:2 / /srv/x rw - nfs4 host:/ rw")
    'nfs4'
    """
    longest, kind = -1, None
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not source:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]).rstrip("/")
        if len(point) >= longest and (file == point or file.startswith(point + "/")):
            longest, kind = len(point), source.split()[0]  # what was mounted last hides what was there
    return kind


def _size(file: str) -> int:
    """Bytes of a file; 0 where it is not there."""
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _check_links(found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        raise LedgerError(
            f"the file has {found.st_nlink} names (hard links), each with a log of its own, and they would "
            "lose each other's answers: keep one name, or use symbolic links"
        )


def _check_log(file: str) -> None:
    """Whether writes are lost that SQLite would drop in silence when it opens the file."""
    found = broken(Path(file))
    if found is None:
        return
    if found.lost:
        raise LedgerError(
            f"{found.what}: answers that were shown may be lost; it stays closed, restore a backup"
        )
    warnings.warn(
        f"the ledger {file}: {found.what}: a crash leaves that, and nothing was shown; but if the "
        "file was cut short, answers are lost: verify it with a head that was noted",
        stacklevel=2,
    )
