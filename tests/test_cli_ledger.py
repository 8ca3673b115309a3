"""The command on a ledger that lasts: ask, run that goes on, budget, raise, verify, export."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command import ROW, SMALL, invoke, lapras, write_small

from laprasdp.config import read_config
from laprasdp.errors import LaprasError

ROOT = Path(__file__).parent.parent
KEPT = SMALL + '[ledger]\nfile = "lapras.ledger"\n'
CAPS = "[analysts]\nalice = 0.2\nbob = 0.9\n"
ASKED = [f"SELECT COUNT(*) FROM t WHERE n > {low}" for low in range(5)]
SHOWN = ("line", "query", "value", "std", "low", "high")


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    (tmp_path / "lapras.toml").write_text(KEPT)
    (tmp_path / "q.sql").write_text(";\n".join(ASKED))
    return tmp_path


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def shown(text):
    return [{key: row[key] for key in SHOWN} for row in rows(text)]


def copied(file="lapras.ledger"):
    """A copy of a ledger that nobody has open."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(file).read_bytes()


def test_a_run_that_was_interrupted_goes_on(small):
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write(";\n".join(ASKED[:3]) + ";\n")
        process.stdin.flush()
        before = "".join(process.stdout.readline() for _ in range(3))
        process.send_signal(signal.SIGKILL)
    again = invoke("run", "q.sql", "--json")
    assert shown(again.stdout)[:3] == shown(before)
    marks = [(row["source"], row["charge"] > 0) for row in rows(again.stdout)]
    assert marks == [("replay", False)] * 3 + [("measured", True)] * 2
    assert "5 answered, 0 refused (3 answered before, for free); spent" in again.stderr
    once_more = invoke("run", "q.sql", "--json")
    assert shown(once_more.stdout) == shown(again.stdout)
    assert {(row["source"], row["charge"]) for row in rows(once_more.stdout)} == {("replay", 0)}
    assert {row["remaining"] for row in rows(once_more.stdout)} == {rows(again.stdout)[-1]["remaining"]}


def test_ask(small):
    first, again = (json.loads(invoke("ask", ASKED[0], "--json").stdout) for _ in range(2))
    assert first.keys() == (ROW | {"columns"}) - {"line"}
    assert (first["source"], again["source"]) == ("measured", "replay")
    assert (first["charge"] > 0, again["charge"]) == (True, 0)
    assert first["value"] == again["value"]
    text = invoke("ask", "SELECT n, COUNT(*) FROM t GROUP BY n", "--level", "0.5")
    assert len(text.stdout.splitlines()) == 2 + 11 + 1  # the last says what was released with it
    assert "n = NULL" in text.stdout
    assert re.fullmatch(r"spent ε = 0\.\d+ of 1 .*", text.stderr.strip())
    assert "MAX" in invoke("ask", "SELECT MAX(n) FROM t", code=1).stderr


@pytest.mark.parametrize(
    "command", [["ask", ASKED[0]], ["budget"], ["budget", "raise", "--epsilon", "2", "--yes"],
                ["ledger", "verify"], ["ledger", "export"]],
)  # fmt: skip
def test_without_a_ledger_nothing_is_kept(small, command):
    (small / "lapras.toml").write_text(SMALL)
    (line,) = invoke(*command, code=1).stderr.splitlines()
    assert line.startswith("lapras: lapras.toml names no ledger, so nothing is kept: write [ledger]")
    assert "what is spent is forgotten" in invoke("run", "q.sql").stderr
    public = SMALL.replace("[privacy]", "public = true\n[privacy]")
    (small / "lapras.toml").write_text(public)
    assert "forgotten" not in invoke("run", "q.sql").stderr


@pytest.mark.parametrize(
    "command", [["budget", "raise", "--epsilon", "2", "--yes"], ["ledger", "verify"], ["ledger", "export"]]
)
def test_a_ledger_that_was_not_begun(small, command):
    (line,) = invoke(*command, code=1).stderr.splitlines()
    assert line == "lapras: there is no ledger lapras.ledger yet: the first `lapras ask` or `run` begins it"
    assert not (small / "lapras.ledger").exists()


def test_analysts_have_caps_and_share_answers(small):
    (small / "lapras.toml").write_text(KEPT + CAPS)
    for command in (["ask", ASKED[0]], ["run", "q.sql"], ["ask", ASKED[0], "--analyst", "eve"]):
        result = invoke(*command, code=1)
        assert result.stdout == ""
        assert re.search("lapras: .*there are alice, bob", result.stderr)
    done = invoke("run", "q.sql", "--analyst", "alice", code=1)
    assert "the cap of alice, ε = 0.2, has no room for this" in done.stderr
    assert json.loads(invoke("ask", ASKED[0], "--analyst", "bob", "--json").stdout)["source"] == "replay"
    invoke("ask", ASKED[4], "--analyst", "bob")
    report = json.loads(invoke("budget", "--json").stdout)
    people = {one["name"]: one for one in report["analysts"]}
    assert set(people) == {"alice", "bob"}
    assert (people["alice"]["count"], people["bob"]["count"]) == (5, 2)
    assert people["alice"]["refused"] == report["refused"] > 0
    assert 0 < people["alice"]["epsilon_spent"] <= 0.2
    assert report["caps"] == {"alice": 0.2, "bob": 0.9}
    assert re.search(r"^alice +5 +\d +[\d.]+ +0\.1\d+ +0\.2 *$", invoke("budget").stdout, re.MULTILINE)


def test_the_budget_says_what_was_spent_on_what(small):
    fresh = json.loads(invoke("budget", "--json").stdout)
    assert (fresh["statements"], fresh["epsilon_spent"], fresh["queries"]) == (0, 0, [])
    assert fresh["forecast"]["queries"] > 10
    assert not (small / "lapras.ledger").exists()
    answers = rows(invoke("run", "q.sql", "--json").stdout)
    (small / "t.csv").unlink()  # the table is not opened
    report = json.loads(invoke("budget", "--json", "--out", "new/out").stdout)
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    assert report["remaining"] == pytest.approx(answers[-1]["remaining"])
    charges = {row["query"]: row["charge"] for row in answers if row["charge"]}
    assert {one["statement"]: one["charge"] for one in report["queries"]} == pytest.approx(charges)
    assert [one["charge"] for one in report["queries"]] == sorted(charges.values(), reverse=True)
    sources = {one["name"]: one for one in report["sources"]}
    assert sources["measured"]["count"] == len(charges)
    assert sources["opening"]["spent"] + sources["measured"]["spent"] >= report["spent"]
    course = [one["epsilon_spent"] for one in report["over_time"]]
    assert course == sorted(course)
    assert course[-1] == report["epsilon_spent"] <= 1
    text = invoke("budget").stdout
    for expected in (
        "Budget",
        "opening (",
        "most expensive first",
        "Forecast",
        "about",
        "Picture: out/budget",
    ):
        assert expected in text


@pytest.mark.parametrize("policy", ["smooth", "independent", "histogram", "offline"])
def test_the_forecast_counts_what_fits(small, policy):
    text = KEPT.replace("horizon = 10", f'horizon = 10\npolicy = "{policy}"')
    (small / "lapras.toml").write_text(text)
    invoke("ask", ASKED[0] if policy != "offline" else "SELECT COUNT(*) FROM t")
    found = json.loads(invoke("budget", "--json").stdout)["forecast"]
    if policy == "independent":  # equal shares: one of ten is used
        assert (found["queries"], found["more"], found["free"]) == (9, False, 0)
        spent = json.loads(invoke("ask", ASKED[1], "--json").stdout)["std"]
        assert found["mean_std"] == pytest.approx(spent)
    elif policy == "smooth":
        assert 0 < found["queries"] < 40
        assert not found["more"]
        assert found["first_std"] < found["last_std"]
    elif policy == "histogram":
        assert found["more"]
        assert found["free"] == found["queries"] > 10
    else:
        assert found == {
            "queries": 0, "free": 0, "more": False, "mean_std": None, "first_std": None, "last_std": None,
            "kinds": {},
        }  # fmt: skip
        assert "no typical query that has to be measured fits any more" in invoke("budget").stdout


def test_a_raise_is_confirmed_recorded_and_declared(small):
    before = rows(invoke("run", "q.sql", "--json").stdout)
    assert "is not above" in invoke("budget", "raise", "--epsilon", "0.5", "--yes", code=1).stderr
    assert "confirm by --yes" in lapras("budget", "raise", "--epsilon", "2", code=1, input="").stderr
    invoke("budget", "raise", code=2)
    invoke("budget", "--json", "raise", "--epsilon", "2", code=2)
    made = invoke("budget", "raise", "--epsilon", "2", "--analyst", "ada", "--yes", "--json")
    assert json.loads(made.stdout)["new"] == {"epsilon": 2.0, "delta": 1e-6}
    assert "now write epsilon = 2.0 and delta = 1e-06 in [privacy] of lapras.toml" in made.stderr
    assert "the ledger's budget is ε = 2" in invoke("ask", ASKED[0], code=1).stderr
    report = invoke("budget")
    assert "lapras.toml declares ε = 1" in report.stderr
    assert re.search(r"raised \d{4}-\d\d-\d\d by ada: from ε = 1.* to ε = 2", report.stdout)
    (small / "lapras.toml").write_text(KEPT.replace("epsilon = 1.0", "epsilon = 2"))
    after = rows(invoke("run", "q.sql", "--json").stdout)
    assert [row["value"] for row in after] == [row["value"] for row in before]
    assert after[0]["remaining"] > before[-1]["remaining"]
    assert invoke("ledger", "verify").exit_code == 0


def test_a_raise_on_a_terminal_asks_first(small, monkeypatch):
    import pty

    invoke("ask", ASKED[0])
    command = [sys.executable, "-m", "laprasdp", "budget", "raise", "--epsilon", "2"]
    for answer, code, budget in (("n", 1, 1.0), ("y", 0, 2.0)):
        ours, theirs = pty.openpty()
        with (
            subprocess.Popen(command, stdin=theirs, stdout=-1, stderr=-1, text=True) as process,
            open(ours, "w", closefd=True) as terminal,
        ):
            terminal.write(answer + "\n")
            terminal.flush()
            _, noise = process.communicate(timeout=30)
        os.close(theirs)
        assert process.returncode == code, noise
        assert "private for ε = 2" in noise
        assert ("nothing was changed" in noise) == (answer == "n")
        assert json.loads(invoke("budget", "--json").stdout)["epsilon"] == budget


def test_verify_finds_a_change_and_an_older_copy(small):
    invoke("ask", ASKED[0])
    text = invoke("ledger", "verify").stdout
    early = text.split()[-1]
    older = copied()
    invoke("ask", ASKED[1])
    late = json.loads(invoke("ledger", "verify", "--json", "--head", early.upper()).stdout)
    assert (late["sound"], late["entries"], late["findings"]) == (True, 5, [])
    invoke("ledger", "verify", "--head", "few", code=2)
    kept = copied()
    (small / "lapras.ledger").write_bytes(older)
    invoke("ledger", "verify")  # an older copy is sound in itself
    found = invoke("ledger", "verify", "--head", late["head"], code=1).stdout.splitlines()
    assert found == [
        f"no entry has the digest {late['head']}: what came after it is lost, or this is an older copy"
    ]
    (small / "lapras.ledger").write_bytes(kept)
    with closing(sqlite3.connect("lapras.ledger")) as connection:
        connection.execute("DROP TRIGGER lapras_entry_update")
        connection.execute("UPDATE lapras_entry SET body = replace(body, '>', '<') WHERE position = 1")
        connection.commit()
    changed = json.loads(invoke("ledger", "verify", "--json", code=1).stdout)
    assert not changed["sound"]
    assert any(one["position"] == 1 and "was changed" in one["what"] for one in changed["findings"])
    refused = invoke("ask", ASKED[2], code=1)
    assert (refused.stdout, "verify it" in refused.stderr) == ("", True)


def test_a_session_keeps_what_it_says_after_another_process_has_come_and_gone(small):
    lapras("ask", ASKED[0])
    session = read_config("lapras.toml").open()  # it looks for twins
    lapras("ask", ASKED[1])
    shown = session.ask(ASKED[2]).value
    again = json.loads(lapras("ask", ASKED[2], "--json").stdout)
    assert (again["value"], again["source"]) == (shown, "replay")


def test_two_ledgers_for_one_table_are_told(small):
    invoke("ask", ASKED[0])
    (small / "lapras.toml").write_text(KEPT.replace("lapras.ledger", "second.ledger"))
    (small / "another.db").write_bytes(b"SQLite format 3\0 but no more")
    line = (
        "lapras: warning: beside this ledger, lapras.ledger has dataset main over the same attributes: "
        "two ledgers for one table are two budgets"
    )
    assert invoke("ask", ASKED[0]).stderr.splitlines()[0] == line
    (small / "lapras.toml").write_text(KEPT + 'dataset = "copy"\n')
    told = [line for line in invoke("ask", ASKED[0]).stderr.splitlines() if "two ledgers" in line]
    assert len(told) >= 2  # the other file, and the other dataset in this one
    head, _, _ = SMALL.partition("predictions")
    (small / "lapras.toml").write_text(
        f'{head}[domain.m]\ntype = "categories"\nvalues = ["x"]\n[ledger]\nfile = "of_m.ledger"\n'
    )
    assert "two ledgers" not in invoke("ask", "SELECT COUNT(*) FROM t WHERE m = 'x'").stderr


def test_a_ledger_of_other_settings_is_refused_and_says_in_what(small):
    invoke("ask", ASKED[0])
    for old, new, what in (
        ("max = 9", "max = 8", "attribute n is declared differently"),
        ("horizon = 10", "horizon = 11", "horizon is 10, not 11"),
        ("epsilon = 1.0", "epsilon = 1.5", "the ledger's budget is ε = 1, .* not ε = 1.5"),
    ):
        (small / "lapras.toml").write_text(KEPT.replace(old, new))
        (line,) = invoke("ask", ASKED[0], code=1).stderr.splitlines()
        assert re.match(f"lapras: .*{what}", line)


PLACES = {
    "none": ("[ledger]\n", "name the ledger by one of file or url"),
    "both": ('[ledger]\nfile = "a"\nurl = "postgresql://h/d"\n', "name the ledger by one of file or url"),
    "key": ('[ledger]\nfiles = "a"\n', "unknown key files; did you mean file"),
    "url as file": ('[ledger]\nfile = "postgresql://h/d"\n', "for PostgreSQL give url"),
    "file as url": ('[ledger]\nurl = "sqlite:///a"\n', "for SQLite give file"),
    "cap": ('[analysts]\nada = 0\n', r"\[analysts\]: ada: ε must be positive"),
    "cap as text": ('[analysts]\nada = "few"\n', r"\[analysts\]: ada must be a number"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), PLACES.values(), ids=PLACES)
def test_a_mistake_is_named(text, message, small):
    (small / "lapras.toml").write_text(SMALL + text)
    with pytest.raises(LaprasError, match=message):
        read_config("lapras.toml")


BAD = {
    "newer tables": (
        "UPDATE lapras_version SET version_num = '99'",
        "it is of schema 99, which this version",
    ),
    "newer entries": (
        "UPDATE lapras_dataset SET format = 99",
        "the entries of main are of format 99: update",
    ),
    "another database": ("DROP TABLE lapras_version", "it is another SQLite database, not a ledger: name a"),
    "no head": ("DELETE FROM lapras_head", "where its chain ends is lost: verify it and restore a backup"),
}


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_what_is_no_ledger_of_this_version_is_named(change, says, small):
    invoke("ask", ASKED[0])
    with closing(sqlite3.connect("lapras.ledger", isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER lapras_dataset_update")
        connection.execute(change)
    for command in (["ask", ASKED[0]], ["budget"], ["ledger", "verify"], ["run", "q.sql"]):
        done = invoke(*command, code=1)
        assert f"lapras.ledger: {says}" in done.stderr + done.stdout


def test_a_damaged_log_of_writes_stops_every_command(small):
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write(";\n".join(ASKED[:3]) + ";\n")
        process.stdin.flush()
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    log = Path("lapras.ledger-wal")
    whole = log.read_bytes()
    place = len(whole) // 2
    log.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    damaged = log.read_bytes()
    for command in (
        ["ask", ASKED[0]],
        ["budget"],
        ["ledger", "verify"],
        ["ledger", "export"],
        ["run", "q.sql"],
    ):
        (line,) = invoke(*command, code=1).stderr.splitlines()
        assert "its log of writes, lapras.ledger-wal, breaks off at frame" in line
        assert log.read_bytes() == damaged
    log.write_bytes(whole)
    assert "all sound" in invoke("ledger", "verify").stdout


def test_a_secret_is_never_printed(small):
    url = "postgresql://ada:topsecret@127.0.0.1:9/none"
    (small / "lapras.toml").write_text(f'{SMALL}[ledger]\nurl = "{url}"\n')
    for command in (["ask", ASKED[0]], ["budget"], ["ledger", "verify"], ["run", "q.sql"]):
        result = lapras(*command, code=1)
        (line,) = result.stderr.splitlines()
        assert line.startswith("lapras: the ledger postgresql://ada@127.0.0.1:9/none: ")
        assert "topsecret" not in result.stdout + result.stderr


def test_a_folder_that_is_not_there(small):
    (small / "lapras.toml").write_text(KEPT.replace("lapras.ledger", "no/lapras.ledger"))
    (line,) = invoke("ask", ASKED[0], code=1).stderr.splitlines()
    assert "check that the folder is there" in line
