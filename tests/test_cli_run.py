"""`lapras run`: what is answered, what is refused, and how a stream ends."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from command import ROW, SMALL, invoke, lapras, write_small

FLIGHTS = Path(__file__).parent.parent / "examples" / "flights"


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    return tmp_path


def test_flights_as_json(monkeypatch):
    monkeypatch.chdir(FLIGHTS)
    rows = [json.loads(line) for line in invoke("run", "queries.sql", "--json").stdout.splitlines()]
    assert all(row.keys() - {"group", "columns"} == ROW for row in rows)
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    groups = [row["group"] for row in rows if row["line"] == 8]
    assert len(groups) == 54  # every declared group, also one flight or none
    carriers = [row for row in rows if row["line"] == 20]
    assert [row["group"]["UNIQUE_CARRIER"] for row in carriers][:2] == ["AA", "AS"]
    assert [row["value"] for row in carriers] == [row["value"] for row in rows if row["line"] == 22]
    assert [row["group"] for row in rows if row["line"] == 38][-1] == {"ARR_DELAY": None}
    assert {row["source"] for row in rows} == {"predicted", "measured", "replay"}
    total = rows[0]
    assert abs(total["value"] - 55_105) < 8 * total["std"]
    free = [row for row in rows if row["source"] != "measured"]
    assert all(row["charge"] == 0 for row in free)
    remaining = [row["remaining"] for row in rows]
    assert remaining == sorted(remaining, reverse=True)


def test_run_as_csv_and_as_table(small):
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t GROUP BY n;\nSELECT COUNT(*) FROM t")
    rows = list(csv.DictReader(io.StringIO(invoke("run", "q.sql", "--csv").stdout)))
    assert set(rows[0]) == ROW | {"group", "column"}
    assert [json.loads(row["group"])["n"] for row in rows[:-1]] == [*range(10), None]
    assert rows[-1]["group"] == ""
    text = invoke("run", "q.sql").stdout
    assert "n = NULL" in text
    assert "\x1b" not in text


def test_the_level_is_that_of_the_interval(small):
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t")
    for level, quantile in ((0.5, 0.6745), (0.99, 2.5758)):
        row = json.loads(invoke("run", "q.sql", "--json", "--level", level).stdout)
        assert (row["high"] - row["value"]) / row["std"] == pytest.approx(quantile, abs=1e-4)


@pytest.mark.parametrize("post", ["nonnegative", "rounded", "consistent"])
def test_an_adjusted_value_beside_the_unbiased_one(small, post):
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t GROUP BY n;")
    rows = [json.loads(x) for x in invoke("run", "q.sql", "--json", "--post", post).stdout.splitlines()]
    assert all(row.keys() - {"group", "columns"} == ROW | {"post"} for row in rows)
    assert all(row["low"] < row["value"] < row["high"] and row["post"] >= 0 for row in rows)
    total, *groups = rows
    if post == "consistent":
        assert sum(row["post"] for row in groups) == pytest.approx(total["post"])
        assert total["post"] == total["nonnegative"]
    else:
        assert all(row["post"] == pytest.approx(row["nonnegative"], abs=0.5) for row in rows)
    if post == "rounded":
        assert all(isinstance(row["post"], int) for row in rows)
    header, *lines = csv.reader(io.StringIO(invoke("run", "q.sql", "--csv", "--post", post).stdout))
    assert header[-1] == "post"
    assert all(float(line[-1]) >= 0 for line in lines)
    text = invoke("run", "q.sql", "--post", post).stdout
    assert post in text.splitlines()[0]


def test_one_bad_line_among_good_ones(small):
    good = ["SELECT COUNT(*) FROM t WHERE n < 3;", "SELECT COUNT(*) FROM t WHERE n > 5;"]
    (small / "bad.sql").write_text(
        f"-- a comment\n{good[0]}\n\nSELECT MAX(n)\nFROM t;\n{good[1]}\nSELECT 'open;\n"
    )
    (small / "good.sql").write_text("\n".join(good))
    done = lapras("run", "bad.sql", "--json", code=1)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["line"] for row in rows] == [2, 6]
    refused = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [row["line"] for row in refused] == [4, 7]
    assert "MAX" in refused[0]["message"]
    assert "2 answered, 2 refused" in done.stderr
    clean = invoke("run", "good.sql", "--json")
    assert json.loads(clean.stdout.splitlines()[-1])["remaining"] == rows[-1]["remaining"]  # it cost nothing


def test_a_budget_that_runs_out_refuses_and_goes_on(small):
    (small / "lapras.toml").write_text(SMALL.replace("horizon = 10", 'horizon = 2\npolicy = "static"'))
    asked = [f"SELECT COUNT(*) FROM t WHERE n IN ({i}, {j});" for i in range(9) for j in range(i)]
    (small / "q.sql").write_text("\n".join([*asked, "SELECT COUNT(*) FROM t"]))
    done = lapras("run", "q.sql", "--json", code=1)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert '{"line": 36, "code": "budget-exhausted", "message": "static has nothing left' in done.stderr
    assert 3 < len(rows) < 30
    assert (rows[-1]["line"], rows[-1]["source"]) == (37, "predicted")


def test_statements_from_a_pipe_are_answered_at_once(small):
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write("SELECT COUNT(*) FROM t WHERE n < 3;\n")
        process.stdin.flush()
        first = json.loads(process.stdout.readline())  # stdin is still open
        process.stdin.write("SELECT COUNT(*) FROM t\n")
        rest, noise = process.communicate(timeout=30)
    assert first["line"] == 1
    assert json.loads(rest)["line"] == 2
    assert process.returncode == 0
    assert "2 answered, 0 refused" in noise


def test_ctrl_c_keeps_the_answers_and_says_what_was_spent(small):
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write("SELECT COUNT(*) FROM t WHERE n < 3;\n")
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, noise = process.communicate(timeout=30)
    assert process.returncode == 130
    assert first["charge"] > 0
    assert rest == ""
    assert "1 answered, 0 refused; spent ε = 0." in noise
    assert "Traceback" not in noise


def test_ctrl_c_lets_the_answer_at_work_finish():
    from laprasdp.cli.run import Patience

    done = []

    def interrupted(times):
        with Patience() as patience, patience.hold():
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
            done.append(times)

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            interrupted(times)
    assert done == [1]


@pytest.mark.parametrize("form", ["--json", "--csv", None])
def test_a_closed_pipe_ends_quietly(small, form):
    (small / "q.sql").write_text(
        ";\n".join(f"SELECT COUNT(*) FROM t WHERE n = {i % 10}" for i in range(2_000))
    )
    with subprocess.Popen(
        [sys.executable, "-m", "laprasdp", "run", "q.sql", *([form] if form else [])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdout.readline()
        process.stdout.close()
        noise = process.stderr.read()
        process.wait(timeout=30)
    assert process.returncode == 1
    notice, summary = noise.splitlines()
    assert (
        notice == "lapras: lapras.toml names no [ledger]: what is spent is forgotten when this process ends"
    )
    assert re.match(r"\d+ answered, \d+ refused; spent ε = 0\.\d+ of 1", summary)


SOURCES = {
    "missing": ("no.parquet", "no.parquet: there is no such file"),
    "directory": ("folder", "folder is a directory; name one file"),
    "not a table": ("noise.parquet", "noise.parquet is not a readable Parquet file"),
    "no kind": ("noise.bin", "noise.bin is of no known kind"),
    "empty file": ("nothing.csv", "nothing.csv is an empty file"),
    "another table": ("other.csv", "other.csv: the first line names none of the declared columns"),
    "text for numbers": ("text.parquet", "column n holds VARCHAR, which cannot be read as integers"),
}


@pytest.mark.parametrize(("file", "message"), SOURCES.values(), ids=SOURCES)
def test_a_bad_source(file, message, small):
    (small / "folder").mkdir()
    (small / "noise.parquet").write_bytes(bytes(range(256)))
    (small / "noise.bin").write_bytes(bytes(range(256)))
    (small / "nothing.csv").write_text("")
    (small / "other.csv").write_text("a,b\n1,2\n")
    pa.parquet.write_table(pa.table({"n": ["few", "many"]}), small / "text.parquet")
    (small / "lapras.toml").write_text(
        SMALL.replace("t.csv", file).replace("[privacy]", 'name = "t"\n[privacy]')
    )
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t")
    done = lapras("run", "q.sql", code=1)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("lapras: ")
    assert message in line


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable for the superuser")
def test_an_unreadable_source(small):
    (small / "t.csv").chmod(0)
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t")
    assert "permission denied" in lapras("run", "q.sql", code=1).stderr


def test_an_empty_table_is_answered_like_any_other(small):
    pa.parquet.write_table(pa.table({"n": pa.array([], pa.int64())}), small / "t.parquet")
    (small / "lapras.toml").write_text(SMALL.replace("t.csv", "t.parquet"))
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t WHERE n = 3;")
    for line in invoke("run", "q.sql", "--json").stdout.splitlines():
        row = json.loads(line)
        assert row["std"] > 1
        assert abs(row["value"]) < 8 * row["std"]


def test_a_bad_stream(small):
    (small / "latin.sql").write_bytes(b"SELECT COUNT(*) FROM t;\n\xe9")
    for file, message in (("no.sql", "No such file"), (".", "Is a directory"), ("latin.sql", "not UTF-8")):
        assert message in invoke("run", file, code=1).stderr
    (small / "none.sql").write_text("-- nothing\n")
    assert "0 answered, 0 refused; spent ε = 0 of 1" in invoke("run", "none.sql").stderr
