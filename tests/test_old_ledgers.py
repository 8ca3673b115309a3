"""What earlier versions wrote opens, verifies, replays and goes on: the ledgers of tests/ledgers."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import invoke
from postgres import SECRET, Server
from sqlalchemy import create_engine
from typer.testing import CliRunner

from laprasdp.cli.app import app
from laprasdp.policy.catalog import POLICIES

FOLDER = Path(__file__).parent / "ledgers"
SCRIPT = Path(__file__).parent.parent / "examples" / "replay_ledger"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/lapras.toml"))
KINDS = ("sqlite", "postgresql")
NUMBERS = 1e-3  # how far a standard deviation or a charge may differ by arithmetic alone
pytestmark = pytest.mark.filterwarnings("ignore:beside this ledger:UserWarning")


def lines(case: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / case / name).read_text().splitlines()]


def settings(case: str) -> list[dict[str, Any]]:
    found = [line for line in lines(case, "sqlite.jsonl") if "settings" in line]
    return [json.loads(line["settings"]) | {"format": line["format"]} for line in found]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the ledgers, in a folder of its own that the test works in."""
    name: str = request.param
    shutil.copytree(FOLDER / name, tmp_path / name)
    shutil.copy(FOLDER / "people.csv", tmp_path)
    monkeypatch.chdir(tmp_path / name)
    Path("lapras.ledger").write_bytes(gzip.decompress(Path("lapras.ledger.gz").read_bytes()))
    return name


@pytest.fixture(scope="module")
def restored(postgres: Server) -> str:
    """The ledgers in PostgreSQL, as they were dumped; their address without its password."""
    dump = gzip.decompress((FOLDER / "postgresql.sql.gz").read_bytes()).decode()
    text = "".join(line for line in dump.splitlines(keepends=True) if not line.startswith("\\"))
    engine = create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE written_before")
    engine.dispose()
    url = postgres.url.replace("/postgres?", "/written_before?")
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(text)
    engine.dispose()
    return url.replace(f":{SECRET}", "")


def test_there_is_one_for_every_policy_and_accounting() -> None:
    each = [one for case in CASES for one in settings(case)]
    assert {one["policy"] for one in each} == set(POLICIES)
    for policy in POLICIES:
        wanted = {"basic"} if policy == "laplace" else {"gaussian", "basic"}
        if policy in ("primm", "laplace-counts"):
            wanted = {"gaussian"}
        assert {one["accounting"] for one in each if one["policy"] == policy} == wanted
    assert {one["horizon"] is None for one in each} == {True, False}
    assert {one["unit"]["max_rows"] for one in each} == {1, 2}
    assert any(one["expected"] for one in each)
    entries = [
        json.loads(line["entry"]) for case in CASES for line in lines(case, "sqlite.jsonl") if "entry" in line
    ]
    assert {entry["kind"] for entry in entries} == {"release", "reply", "refusal", "raise"}


def test_the_exports_are_sound_by_the_page_alone(tmp_path: Path) -> None:
    exports = [FOLDER / case / f"{kind}.jsonl" for case in CASES for kind in KINDS]
    (tmp_path / "all.jsonl").write_text("".join(path.read_text() for path in exports))
    command = [sys.executable, "-I", "-S", SCRIPT, tmp_path / "all.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("all sound") >= len(exports)


def test_a_file_of_sqlite(case: str) -> None:
    check(case, "sqlite")


def test_a_database_of_postgresql(case: str, restored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    dataset = "" if len(settings(case)) > 1 else f'dataset = "{case}"\n'
    text = Path("lapras.toml").read_text()
    assert text.count('file = "lapras.ledger"\n') == 1
    Path("lapras.toml").write_text(text.replace('file = "lapras.ledger"\n', f'url = "{restored}"\n{dataset}'))
    check(case, "postgresql")


def check(case: str, kind: str) -> None:
    """What holds of the ledger that the present folder declares."""
    verified = json.loads(invoke("ledger", "verify", "--json").stdout)
    assert verified["sound"], verified
    assert invoke("ledger", "export").stdout == (FOLDER / case / f"{kind}.jsonl").read_text()
    shown = [row for row in lines(case, f"{kind}.shown.jsonl") if "value" in row and "next" not in row]
    (after,) = [row for row in lines(case, "sqlite.shown.jsonl") if "next" in row]
    if 'repeats = "pay"' in Path("lapras.toml").read_text():
        again, _ = run(shown[:1], after["analyst"])
        assert all(row["charge"] > 0 for row in again.values())
        return
    again, told = run([after, *shown], after["analyst"])
    for row in shown:
        now = again[answer_of(row)]
        assert (now["value"], now["charge"]) == (row["value"], 0)
        assert now["std"] == pytest.approx(row["std"], rel=1e-14)  # of periods it is a sum, made anew
    if "refused" in after:
        assert after["refused"].removeprefix("lapras: ") in told
        assert again[answer_of(shown[-1])]["remaining"] == shown[-1]["remaining"]
        return
    now = again[answer_of(after)]  # it is answered and charged as it was when the stream had just ended
    assert now["source"] == after["source"]
    for key in ("charge", "remaining"):
        assert now[key] == pytest.approx(after[key], rel=NUMBERS)
    less = 1 / 6 if case == "laplace-basic" else 0.0  # than 2/ε² on a fine grid: noise on the whole numbers
    assert now["std"] ** 2 == pytest.approx(after["std"] ** 2 - less, rel=NUMBERS)


def run(shown: list[dict[str, Any]], analyst: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Ask the statements again, in one stream; what each is answered now, and what is said on stderr."""
    Path("again.sql").write_text(";\n".join(dict.fromkeys(row["query"] for row in shown)))
    done = CliRunner().invoke(app, ["run", "again.sql", "--json", "--analyst", analyst])
    assert done.exit_code == any("refused" in row for row in shown), done.output
    return {answer_of(row): row for row in map(json.loads, done.stdout.splitlines())}, done.stderr


def answer_of(row: dict[str, Any]) -> str:
    """The statement, and its group."""
    return json.dumps([row["query"], row.get("group")])
