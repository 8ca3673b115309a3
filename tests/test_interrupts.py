"""Ctrl-C at any moment: exit code 130 and one line, a sound ledger, and KeyboardInterrupt in Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command import SMALL, invoke, write_small
from postgres import Server

import laprasdp as lp
from laprasdp.errors import interruptible
from laprasdp.ledger.sql import SQLLedger
from laprasdp.record.entries import Stamp
from laprasdp.stream.session import now

ASKED = "SELECT COUNT(*) FROM t WHERE n > 3"
ENDLESS = "FROM range(1000000000000) AS r(i) WHERE hash(i) % 7 < 6"
LONG = 30.0
REACHED = """
import sys, pathlib, {module} as module
from laprasdp.cli import main
true, reached = {place}, pathlib.Path("reached")
def marked(*arguments, **more):
    reached.touch()
    {then}
    return true(*arguments, **more)
{place} = marked
sys.argv = ["lapras", *sys.argv[1:]]
main()
"""
"""The command, with a file that appears when it has come to some place."""


@contextmanager
def command(where: Path, module: str, place: str, *arguments: str, then: str = "") -> Iterator[Any]:
    """The command in a process of its own, when it has come to a place."""
    reached = where / "reached"
    reached.unlink(missing_ok=True)
    code = REACHED.format(module=module, place=f"module.{place}", then=then)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + LONG
        while not reached.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupt(process: Any, *, later: float = 0.3) -> tuple[str, str]:
    """What it says when it is interrupted; that is one line, and the code is 130."""
    time.sleep(later)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    told = {"code": "interrupted", "message": "interrupted"}
    assert last == "lapras: interrupted" or json.loads(last) == told
    return out, err


def sound(where: Path) -> None:
    """The ledger answers and verifies."""
    with chdir(where):
        invoke("ask", ASKED, "--json")
        assert json.loads(invoke("ledger", "verify", "--json").stdout)["sound"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small table and its lapras.toml, with a ledger in a file or on a server."""
    write_small(tmp_path)
    ledger = 'file = "t.ledger"'
    if request.param == "postgres":
        dataset = "x" + tmp_path.name.replace("-", "_")
        ledger = f'url = "{request.getfixturevalue("postgres").url}"\ndataset = "{dataset}"'
    settings = SMALL.replace("horizon = 10", 'horizon = 10\npolicy = "smooth"')
    (tmp_path / "lapras.toml").write_text(f"{settings}[ledger]\n{ledger}\n")
    return tmp_path


def kept(where: Path) -> SQLLedger:
    text = (where / "lapras.toml").read_text()
    if "url" not in text:
        return SQLLedger(where / "t.ledger")
    url, dataset = (text.split(f'{key} = "')[1].split('"')[0] for key in ("url", "dataset"))
    return SQLLedger(url, dataset=dataset)


def endless(where: Path) -> None:
    """A table whose rows never end."""
    with duckdb.connect(where / "endless.duckdb") as connection:
        connection.execute(f"CREATE VIEW t AS SELECT i % 10 AS n, 'SELECT ' AS query {ENDLESS}")


@pytest.mark.parametrize("arguments", [("ask", ASKED), ("run", "-")])
def test_while_a_table_opens(place: Path, arguments: tuple[str, ...]) -> None:
    endless(place)
    whole = (place / "lapras.toml").read_text()
    (place / "lapras.toml").write_text(
        whole.replace('file = "t.csv"', 'database = "endless.duckdb"\ntable = "t"')
    )
    with command(place, "laprasdp.data.duckdb_engine", "DuckDBEngine.run", *arguments) as process:
        assert interrupt(process)[0] == ""
    (place / "lapras.toml").write_text(whole)
    sound(place)


def test_while_a_log_is_read(tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / "log.csv").write_text("query\nSELECT COUNT(*) FROM t\n")
    slow = (
        "import duckdb; from laprasdp.data.patience import awaited; c = duckdb.connect(); "
        f"awaited(lambda: c.execute('SELECT COUNT(*) {ENDLESS}'), c.interrupt)"
    )
    arguments = ("predict", "fit", "log.csv", "--log-is", "public")
    with command(tmp_path, "laprasdp.predict.source", "LogSource.batches", *arguments, then=slow) as process:
        assert interrupt(process, later=1) == ("", "lapras: interrupted\n")
    assert not (tmp_path / "predictions.json").exists()


def test_while_the_strategy_is_designed(place: Path) -> None:
    slow = "import time; time.sleep(30)"
    with command(place, "laprasdp.policy.lapras", "design_joint", "ask", ASKED, then=slow) as process:
        assert interrupt(process)[0] == ""
    assert kept(place).head.entries == 0
    sound(place)


def test_while_another_process_writes(place: Path) -> None:
    sound(place)
    ledger = kept(place)
    before = ledger.head
    statement = "SELECT COUNT(*) FROM t WHERE n > 4"
    with (
        ledger.transaction(Stamp(now())),
        command(place, "laprasdp.stream.following", "Following.transaction", "ask", statement) as process,
    ):
        assert interrupt(process, later=1)[0] == ""
    assert ledger.head == before
    sound(place)


def test_a_stream_from_a_pipe(place: Path) -> None:
    with command(place, "laprasdp.cli.run", "_Stream.answer", "run", "-", "--json") as process:
        process.stdin.write(f"{ASKED};\nSELECT COUNT(*) FROM t WHERE n > 5;\n")
        process.stdin.flush()
        answers = [process.stdout.readline()]
        out, _ = interrupt(process)
        answers += out.splitlines()
    known = {row["query"]: row["value"] for row in map(json.loads, answers)}
    with chdir(place):
        again = json.loads(invoke("ask", ASKED, "--json").stdout)
    assert (again["source"], again["value"]) == ("replay", known[ASKED])
    sound(place)


def test_before_anything_is_imported() -> None:
    code = "import sys\nclass Stop:\n def find_spec(self, name, *rest):\n"
    code += "  if name == 'typer': raise KeyboardInterrupt\n"
    code += "sys.meta_path.insert(0, Stop())\nfrom laprasdp.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "lapras: interrupted\n")


def test_in_python_it_is_an_interrupt(tmp_path: Path) -> None:
    endless(tmp_path)
    after = f"import os, time, signal; time.sleep(1); os.kill({os.getpid()}, signal.SIGINT)"
    other = subprocess.Popen([sys.executable, "-c", after])
    with pytest.raises(KeyboardInterrupt):
        lp.open_session(
            tmp_path / "endless.duckdb",
            lp.Domain(n=lp.Integers(0, 9)),
            budget=lp.Budget(1, 1e-6),
            table="t",
        )
    other.wait(LONG)


def test_what_was_an_interrupt_before_stays_what_it_is_now() -> None:
    def fails() -> None:
        raise lp.LedgerError("of its own")

    def turns() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise lp.LedgerError("out of an interrupt") from None

    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(lp.LedgerError), interruptible():
            fails()
    with pytest.raises(KeyboardInterrupt), interruptible():
        turns()


def test_while_a_statement_of_the_server_runs(postgres: Server) -> None:
    session_code = (
        "import sys, laprasdp as lp\n"
        "from laprasdp.ledger.sql import SQLLedger\n"
        "ledger = SQLLedger(sys.argv[1])\n"
        "with ledger.database.transaction(write=True) as connection:\n"
        "    print('ready', flush=True)\n"
        "    connection.exec_driver_sql('SELECT pg_sleep(30)')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", session_code, postgres.url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=LONG)[1]
    assert err.splitlines()[-1] == "KeyboardInterrupt"
