"""The command on a ledger in PostgreSQL: all that it does on a file, and no secret in what it prints."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import SMALL, invoke, lapras, write_small
from postgres import SECRET, Server
from sqlalchemy import create_engine, text

ASKED = [f"SELECT COUNT(*) FROM t WHERE n > {low}" for low in range(5)]
SCRIPT = Path(__file__).parent.parent / "examples" / "replay_ledger"
WINDOWS = """
[source]
file = "days.csv"
[privacy]
epsilon = 1
delta = 1e-6
[stream]
policy = "independent"
horizon = 10
[windows]
attribute = "day"
step = "month"
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-02-29
"""
numbers = itertools.count()


@pytest.fixture
def url(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of its own, and a lapras.toml that names it without its password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    name = f"cli{next(numbers)}"
    engine = create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    open_url = postgres.url.replace(f":{SECRET}", "").replace("/postgres?", f"/{name}?")
    write_small(tmp_path)
    declare(SMALL.replace("horizon = 10", 'horizon = 10\npolicy = "independent"'), open_url)
    (tmp_path / "q.sql").write_text(";\n".join(ASKED))
    return open_url


def declare(settings: str, url: str) -> None:
    Path("lapras.toml").write_text(f'{settings}[ledger]\nurl = "{url}"\n')


def test_everything_that_a_curator_does(url: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(";\n".join(ASKED[:2]) + ";\n")
        process.stdin.flush()
        before = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGKILL)
    done = invoke("run", "q.sql", "--json")
    again = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["value"] for row in again[:2]] == [row["value"] for row in before]
    assert [row["source"] for row in again] == ["replay"] * 2 + ["measured"] * 3
    assert "(2 answered before, for free)" in done.stderr
    asked = json.loads(invoke("ask", ASKED[4], "--json").stdout)
    assert (asked["source"], asked["value"]) == ("replay", again[4]["value"])
    found = json.loads(invoke("budget", "--json").stdout)
    assert (found["statements"], len(found["queries"])) == (8, 5)
    assert found["remaining"] == pytest.approx(again[4]["remaining"])
    invoke("budget", "raise", "--epsilon", "2", "--yes")
    sound = json.loads(invoke("ledger", "verify", "--json").stdout)
    assert (sound["sound"], sound["entries"]) == (True, 14)
    export = invoke("ledger", "export").stdout
    Path("export.jsonl").write_text(export)
    replay = subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT, "export.jsonl"], capture_output=True, text=True
    )
    assert replay.stdout.split()[-1] == sound["head"]
    assert SECRET not in export + done.stderr + sound["ledger"]


def test_periods(url: str) -> None:
    Path("days.csv").write_text("day\n" + "2024-01-05\n" * 40 + "2024-02-07\n" * 20)
    declare(WINDOWS, url)
    first = json.loads(invoke("ask", "SELECT COUNT(*) FROM days", "--json").stdout)
    again = json.loads(invoke("ask", "SELECT COUNT(*) FROM days", "--json").stdout)
    assert (again["value"], again["charge"]) == (first["value"], 0)
    found = json.loads(invoke("budget", "--json").stdout)
    assert [one["statements"] for one in found["periods"]] == [2, 2]
    sound = json.loads(invoke("ledger", "verify", "--json").stdout)
    assert [(one["dataset"], one["sound"]) for one in sound["periods"]] == [
        ("days@2024-01-01", True),
        ("days@2024-02-01", True),
    ]


@pytest.mark.parametrize("place", ["PGPASSWORD", "url"])
def test_a_wrong_password_is_told_and_not_shown(url: str, place: str) -> None:
    wrong = "guessed-wrong"
    declare(SMALL, url if place == "PGPASSWORD" else url.replace("postgres@", f"postgres:{wrong}@"))
    environment = os.environ | ({"PGPASSWORD": wrong} if place == "PGPASSWORD" else {})
    for command in (["ask", ASKED[0]], ["ledger", "verify", "--json"]):
        done = lapras(*command, code=1, env=environment)
        (line,) = done.stderr.splitlines()
        told = json.loads(line)["message"] if "--json" in command else line
        assert told.endswith(": user or password is wrong")
        assert wrong not in done.stdout + done.stderr
