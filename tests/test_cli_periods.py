"""The command on a table in periods: budget, raise, verify and export know every period's ledger."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import invoke

import laprasdp as lp
from laprasdp.config import read_config

SCRIPT = Path(__file__).parent.parent / "examples" / "replay_ledger"
JAN, FEB, MAR = "2024-01-01", "2024-02-01", "2024-03-01"
ALL = "SELECT COUNT(*) FROM t"
OLD = f"{ALL} WHERE day < '2024-01-10'"
DECLARED = """
[source]
file = "t.csv"
[privacy]
epsilon = 1
delta = 1e-6
[stream]
policy = "independent"
horizon = 4
[windows]
attribute = "day"
step = "month"
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-02-29
[ledger]
file = "lapras.ledger"
"""


def declare(text: str) -> None:
    Path("lapras.toml").write_text(text)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    declare(DECLARED)
    Path("t.csv").write_text("day\n" + f"{JAN}\n" * 40 + f"{FEB}\n" * 20 + f"{MAR}\n" * 9)
    return tmp_path


def ask(statement: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke("ask", statement, "--json", *more).stdout)
    return found


def report(*more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke("budget", "--json", *more).stdout)
    return found


def test_the_budget_of_every_period() -> None:
    declare(DECLARED + "[analysts]\nada = 0.9\nbob = 0.9\n")
    assert [one["spent"] for one in report()["periods"]] == [0, 0]
    assert not Path("lapras.ledger").exists()
    both, old = ask(ALL, "--analyst", "ada"), ask(OLD, "--analyst", "bob")
    Path("t.csv").unlink()  # it is not opened
    found = report()
    january, february = found["periods"]
    assert (january["period"], january["last"], february["period"]) == (JAN, "2024-01-31", FEB)
    assert january["spent"] == pytest.approx(both["periods"][JAN]["charge"] + old["charge"])
    assert february["spent"] == pytest.approx(both["periods"][FEB]["charge"])
    assert (january["statements"], february["statements"], found["statements"]) == (2, 1, 2)
    people = {one["name"]: (one["count"], one["spent"]) for one in found["analysts"]}
    most = both["periods"][JAN]["charge"]
    assert people == {"ada": (1, pytest.approx(most)), "bob": (1, pytest.approx(old["charge"]))}
    assert {one["name"]: one["count"] for one in found["sources"]} == {"measured": 3}
    dear = {one["statement"]: one["charges"] for one in found["queries"]}
    assert {text: list(charges) for text, charges in dear.items()} == {ALL: [JAN, FEB], OLD: [JAN]}
    assert found["caps"] == {"ada": 0.9, "bob": 0.9}
    assert found["forecast"]["period"] == JAN
    assert found["forecast"]["queries"] == 2  # of four equal shares
    assert Path(found["picture"]).read_bytes().startswith(b"\x89PNG")
    text = invoke("budget").stdout
    assert re.search(r"^2024-01-01 to 2024-01-31 +2 +0 +2 +0\.\d+ +1 +50%", text, re.MULTILINE)
    assert re.search(r"^2024-02-01 to 2024-02-29 +1 +0 +1 +0\.\d+ +1 +75%", text, re.MULTILINE)
    assert "in the period from 2024-01-01, which has the least left:\nabout 2 further typical" in text


def test_a_refusal_counts_once() -> None:
    for low in range(4):
        ask(f"{ALL} WHERE day > '2024-01-{10 + low}'")
    invoke("ask", OLD, code=1)
    found = report()
    assert (found["statements"], found["refused"]) == (5, 1)
    assert [one["refused"] for one in found["periods"]] == [1, 0]
    assert [one["statements"] for one in found["periods"]] == [5, 4]


def test_the_budget_of_one_period() -> None:
    ask(ALL)
    found = report("--period", FEB)
    assert (found["period"], found["statements"], found["policy"]) == (FEB, 1, "independent")
    assert found["spent"] == report()["periods"][1]["spent"]
    assert found["picture"] == f"out/budget-{FEB}.png"
    assert invoke("budget", "--period", FEB).stdout.startswith("t, ")
    assert f"{FEB} to 2024-02-29: 1 statements" in invoke("budget", "--period", FEB).stdout


def test_a_raise_is_for_one_period() -> None:
    before = ask(ALL)
    raising = ["budget", "raise", "--epsilon", "2", "--yes"]
    assert "name it by --period" in invoke(*raising, code=1).stderr
    Path("t.csv").rename("away.csv")  # it is not opened
    made = invoke(*raising, "--period", JAN, "--analyst", "cur", "--json")
    Path("away.csv").rename("t.csv")
    row = json.loads(made.stdout)
    assert (row["dataset"], row["period"], row["new"]["epsilon"]) == (f"t@{JAN}", JAN, 2)
    assert f"now write epsilon = 2.0 and delta = 1e-06 in [windows.budgets.{JAN}] of" in made.stderr
    assert "2024-01-01 to 2024-01-31: the ledger's budget is ε = 2" in invoke("ask", ALL, code=1).stderr
    shown = invoke("budget")
    assert f"declares ε = 1, δ = 1e-06 (μ = 0.236704) for {JAN} to 2024-01-31" in shown.stderr
    assert re.search(rf"^{JAN} raised \d{{4}}-\d\d-\d\d by cur: from ε = 1", shown.stdout, re.MULTILINE)
    declare(DECLARED + f"[windows.budgets]\n{JAN} = {{ epsilon = 2.0 }}\n")
    assert invoke("budget").stderr == ""
    again = ask(ALL)
    assert (again["value"], again["charge"]) == (before["value"], 0)
    assert [one["epsilon"] for one in report()["periods"]] == [2, 1]
    assert invoke(*raising, "--period", JAN, code=1).stderr.count("is not above") == 1
    declare(DECLARED.replace("02-29", "03-31") + f"[windows.budgets.{JAN}]\nepsilon = 2\n")
    assert list(ask(ALL)["periods"]) == [JAN, FEB, MAR]
    assert [one["epsilon"] for one in report()["periods"]] == [2, 1, 1]
    assert invoke("ledger", "verify").exit_code == 0


def test_verify_names_the_period() -> None:
    ask(ALL)
    text = invoke("ledger", "verify").stdout
    assert "4 entries in 2 periods, all sound." in text
    heads = dict(re.findall(r"^(\S+) +2 entries +([0-9a-f]{64})$", text, re.MULTILINE))
    assert list(heads) == [JAN, FEB]
    ask(OLD)
    noted = [part for head in heads.values() for part in ("--head", head.upper())]
    sound = json.loads(invoke("ledger", "verify", "--json", *noted).stdout)
    assert (sound["sound"], sound["findings"]) == (True, [])
    assert [(one["period"], one["entries"]) for one in sound["periods"]] == [(JAN, 4), (FEB, 2)]
    one = invoke("ledger", "verify", "--period", FEB, "--head", heads[FEB]).stdout
    assert "2 entries in 1 period, all sound." in one
    lost = invoke("ledger", "verify", "--period", FEB, "--head", heads[JAN], code=1).stdout
    assert lost.startswith(f"no entry has the digest {heads[JAN]}: what came after it is lost")
    with closing(sqlite3.connect("lapras.ledger", isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER lapras_entry_update")
        connection.execute("UPDATE lapras_entry SET body = replace(body, '<', '>') WHERE dataset = 2")
        connection.execute("UPDATE lapras_entry SET digest = 'no' WHERE dataset = 2 AND position = 1")
    found = invoke("ledger", "verify", code=1).stdout.splitlines()
    assert (
        f"period {FEB}: entry 1: it does not follow from the entry before: one of them was changed" in found
    )
    assert found.count("nothing guards lapras_entry against changes any more") == 1
    changed = json.loads(invoke("ledger", "verify", "--json", code=1).stdout)
    assert [any(each["position"] == 1 for each in one["findings"]) for one in changed["periods"]] == [
        False,
        True,
    ]


def test_settings_of_a_period_that_were_changed() -> None:
    ask(ALL)
    with closing(sqlite3.connect("lapras.ledger", isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER lapras_dataset_update")
        connection.execute("UPDATE lapras_dataset SET settings = settings || ' ' WHERE id = 2")
    what = f"the settings of t@{FEB} were changed after it was begun: verify it and restore a backup"
    assert what in invoke("ask", ALL, code=1).stderr
    lines = invoke("ledger", "verify", code=1).stdout.splitlines()
    assert any(line.startswith(f"period {FEB}: ") and what in line for line in lines)
    assert any("2 entries in 1 period, all sound." in line for line in lines)


def test_an_export_holds_every_period() -> None:
    ask(ALL)
    ask(OLD)
    done = invoke("ledger", "export")
    heads = [json.loads(line) for line in done.stdout.splitlines() if '"settings"' in line]
    assert [head["dataset"] for head in heads] == [f"t@{JAN}", f"t@{FEB}"]
    Path("all.jsonl").write_text(done.stdout)
    Path("one.jsonl").write_text(invoke("ledger", "export", "--period", FEB).stdout)
    for file, expected in (("all.jsonl", [(JAN, 4), (FEB, 2)]), ("one.jsonl", [(FEB, 2)])):
        replay = subprocess.run([sys.executable, "-I", "-S", SCRIPT, file], capture_output=True, text=True)
        assert replay.returncode == 0, replay.stdout
        for line, (period, count) in zip(replay.stdout.splitlines(), expected, strict=True):
            assert line.startswith(f"t@{period}: {count} entries, all sound; ")
            assert line.split()[-1] in done.stderr
    Path("all.jsonl").write_text(done.stdout.replace("> 0", "> 1").replace("measured", "measurer"))
    replay = subprocess.run([sys.executable, "-I", "-S", SCRIPT, "all.jsonl"], capture_output=True, text=True)
    assert replay.returncode == 1


@pytest.mark.parametrize("command", [["budget"], ["ledger", "verify"], ["ledger", "export"]])
def test_a_period_that_is_not_there(command: list[str]) -> None:
    if command != ["budget"]:
        assert "there is no ledger lapras.ledger yet" in invoke(*command, code=1).stderr
    ask(ALL)
    (line,) = invoke(*command, "--period", "2024-01-02", code=1).stderr.splitlines()
    assert re.match(rf"lapras: .* no period that begins on 2024-01-02( of t)?; there are {JAN}, {FEB}$", line)
    declare(DECLARED.replace('"t.csv"', '"t.csv"\nname = "other"'))
    if command != ["budget"]:
        assert "has no period of other" in invoke(*command, code=1).stderr
    declare(re.sub(r"\[windows\]\n.*\n.*\n", "", DECLARED))
    (line,) = invoke(*command, "--period", JAN, code=1).stderr.splitlines()
    assert line == f"lapras: lapras.toml declares no [windows], so there is no period {JAN}"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("[windows.budgets]\n2024-01-02 = { epsilon = 2 }", "[windows]: budgets: no period of day begins on"),
        ("[windows.budgets]\n2024-01-01 = 2", "[windows.budgets]: 2024-01-01 is a section"),
        ("[windows.budgets.2024-01-01]\nepsilon = -1", "[windows.budgets.2024-01-01]: ε must be positive"),
        ("[windows.budgets.2024-01-01]\neps = 1", "[windows.budgets.2024-01-01]: unknown key eps"),
    ],
)
def test_budgets_that_are_declared_wrongly(more: str, says: str) -> None:
    declare(DECLARED + more)
    with pytest.raises(lp.LaprasError, match=re.escape(says)):
        read_config()


def test_a_dataset_and_windows_contradict_each_other() -> None:
    declare(DECLARED + 'dataset = "main"\n')
    with pytest.raises(lp.ConfigError, match="each period is a dataset by its date: leave dataset out"):
        read_config()


def test_a_table_that_was_asked_as_a_whole_is_told() -> None:
    declare(re.sub(r"\[windows\]\n.*\n.*\n", "", DECLARED))
    ask(ALL)
    declare(DECLARED)
    first = invoke("ask", ALL).stderr.splitlines()[0]
    assert first == (
        "lapras: warning: beside this ledger, lapras.ledger has dataset main over the same attributes: "
        "two ledgers for one table are two budgets"
    )
    declare(re.sub(r"\[windows\]\n.*\n.*\n", "", DECLARED))
    assert f"has dataset t@{JAN} and 1 more over the same attributes" in invoke("ask", ALL).stderr


def test_a_plan_has_the_budget_of_its_period() -> None:
    plain = json.loads(invoke("plan", "--json").stdout)
    declare(DECLARED + f"[windows.budgets]\n{FEB} = {{ epsilon = 2 }}\n")
    raised = json.loads(invoke("plan", "--json").stdout)
    assert (plain["epsilon"], raised["epsilon"]) == (1, 2)
    aimed = json.loads(invoke("plan", "--json", "--target-std", "20").stdout)
    assert aimed["epsilon"] < 2
