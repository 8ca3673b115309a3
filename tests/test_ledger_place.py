"""Where a SQLite ledger may be: under one name, beside its own log, on a disk of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from witness import STATEMENTS, opened

import laprasdp as lp
from laprasdp.ledger import file as ledger_file
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify


def beside(path: Path, end: str) -> Path:
    return Path(f"{path}{end}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "ledger.db"


def test_a_second_name_is_refused_at_opening(path: Path) -> None:
    opened(path).ask(STATEMENTS[0])
    os.link(path, path.with_name("second.db"))
    for name in (path, path.with_name("second.db")):
        with pytest.raises(lp.LedgerError, match=r"2 names \(hard links\).*: keep one name"):
            SQLLedger(name)
    path.unlink()
    assert verify(SQLLedger(path.with_name("second.db"))) == []


@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_log_without_its_file_is_refused_and_stays(path: Path, form: str, empty: bool) -> None:
    session = opened(path)
    session.ask(STATEMENTS[0])
    log = beside(path, "-wal").read_bytes()
    session.close()
    path.unlink()
    beside(path, "-wal").write_bytes(log)
    if empty:
        path.touch()
    for _ in range(2):
        with pytest.raises(lp.LedgerError, match=r"ledger\.db-wal, is there, but ledger\.db is missing or"):
            opened(form.format(path))
        assert beside(path, "-wal").read_bytes() == log
        assert path.exists() == empty


TABLE = """\
22 1 259:1 / / rw,relatime - ext4 /dev/root rw
30 22 0:40 / {at} rw - {kind} host:/share rw
31 22 0:41 / {at}/folder/deeper rw - ext4 /dev/sdb rw
torn
"""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    at = str(tmp_path).replace(" ", r"\040")
    (tmp_path / "mounts").write_text(TABLE.format(at=at, kind=kind))
    monkeypatch.setattr(ledger_file, "MOUNTS", tmp_path / "mounts")
    with pytest.raises(lp.LedgerError, match=rf"on a network file system \({kind}\).*PostgreSQL"):
        opened(path)
    assert list(path.parent.iterdir()) == []
    link = tmp_path / "folder" / "link.db"
    link.symlink_to(path)
    with pytest.raises(lp.LedgerError, match="on a network"):
        opened(link)
    (path.parent / "deeper").mkdir()
    assert opened(path.parent / "deeper" / "ledger.db").ask(STATEMENTS[0]).source == "measured"


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/srv/a b/x.db", "nfs4"),
        ("/srv/a bc/x.db", "ext4"),
        ("/srv/a b", "nfs4"),
        ("/home/x.db", "xfs"),  # mounted last
        ("/x.db", "ext4"),
    ],
)
def test_the_longest_mount_counts_and_of_equal_ones_the_last(file: str, kind: str) -> None:
    mounts = (
        "1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"
        "2 1 0:5 / /srv/a\\040b rw master:1 propagate_from:2 - nfs4 host:/x rw\n"
        "3 1 0:6 / /home rw - nfs host:/home rw\n"
        "4 1 8:2 / /home rw - xfs /dev/sdb rw\n"
    )
    assert ledger_file.mounted(file, mounts) == kind
