"""`lapras demo`, `plan` and `init`, and what all commands have in common."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from command import SMALL, invoke, lapras, write_small

from laprasdp.cli.app import app
from laprasdp.cli.office import Office
from laprasdp.cli.scene import draw_stream
from laprasdp.config import read_config

ROOT = Path(__file__).parent.parent


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    return tmp_path


def test_demo_json(tmp_path):
    result = invoke("demo", "--table", "adult", "--json", "--out", tmp_path / "new" / "out")
    (line,) = result.stdout.splitlines()
    row = json.loads(line)
    assert (row["policy"], row["accounting"], row["queries"], row["answered"]) == (
        "primm",
        "gaussian",
        100,
        100,
    )
    assert (row["epsilon"], row["delta"]) == (1.0, 1e-6)
    assert 0.5 < row["epsilon_spent"] <= 1
    assert row["independent_gaussian_mae"] == pytest.approx(33.71, abs=0.01)
    assert row["independent_basic_mae"] == pytest.approx(329.18, abs=0.01)
    assert row["expected_mae"] < 6
    assert row["smooth_gaussian_mae"] > 2.5 * row["expected_mae"]
    assert row["smooth_basic_mae"] > 12 * row["expected_mae"]
    assert row["planned_mae"] == pytest.approx(row["expected_mae"], rel=0.25)
    assert 1.5 < row["mae"] < 30  # expected 5.5, standard deviation about 1.5
    assert 0.5 <= row["interval_coverage"] <= 1
    assert row["seconds"] > 0
    assert Path(row["picture"]).read_bytes().startswith(b"\x89PNG")


def test_the_demo_on_flights_shows_what_predictions_are_worth(tmp_path):
    row = json.loads(invoke("demo", "--json", "--out", tmp_path).stdout)
    assert (row["table"], row["policy"], row["queries"], row["answered"]) == ("flights", "primm", 100, 100)
    assert 60 <= row["predicted"] < 100
    assert row["foretold_overlap"] == pytest.approx(row["predicted"] / 100, abs=0.15)
    assert row["expected_mae"] < 0.9 * row["without_predictions_mae"]
    assert row["expected_mae"] < 0.8 * row["smooth_gaussian_mae"]
    assert row["expected_mae"] < 0.4 * row["independent_gaussian_mae"]
    assert Path(row["picture"]).read_bytes().startswith(b"\x89PNG")


def test_an_office_asks_its_habits_most():
    people, again = Office(1), Office(1)
    asked = [people.ask() for _ in range(400)]
    assert asked == [again.ask() for _ in range(400)]
    assert asked != [Office(2).ask() for _ in range(400)]
    counts = sorted((asked.count(text) for text in set(asked)), reverse=True)
    assert sum(counts[:60]) > 0.75 * len(asked) > 200 > counts[0] > 4 * counts[20]


def test_demo_tables_are_plain_in_a_pipe(tmp_path):
    text = invoke(
        "demo", "--table", "adult", "--out", tmp_path, "--policy", "independent", "--accounting", "basic"
    ).stdout
    assert "\x1b" not in text
    assert len(re.findall(r"^ *\d+ +[\d,]+ +-?[\d,]+\.\d ", text, re.MULTILINE)) == 100
    assert "independent noise, basic accounting" in text
    assert "The table is public" in text


@pytest.mark.parametrize("policy", ["static", "smooth", "laplace", "histogram", "histogram-total", "offline"])
def test_demo_under_every_policy(policy, tmp_path):
    accounting = "basic" if policy == "laplace" else "gaussian"
    result = invoke(
        "demo",
        "--table",
        "adult",
        "--json",
        "--policy",
        policy,
        "--accounting",
        accounting,
        "--out",
        tmp_path,
    )
    row = json.loads(result.stdout)
    assert row["policy"] == policy
    assert row["answered"] >= 80
    assert row["epsilon_spent"] <= 1


def test_the_seed_draws_queries_and_never_noise(tmp_path):
    assert draw_stream(3) == draw_stream(3) != draw_stream(4)
    predictions, stream = draw_stream(3)
    assert len(set(predictions)) == len(predictions) == len(stream) == 100
    assert sum(text in predictions for text, _ in stream) == sum(flag for _, flag in stream) == 80
    once, again = (
        json.loads(invoke("demo", "--table", "adult", "--json", "--out", tmp_path).stdout) for _ in range(2)
    )
    assert once["expected_mae"] == again["expected_mae"]
    assert once["mae"] != again["mae"]


SETTINGS = {
    "ε = 0": ("epsilon = 1.0", "epsilon = 0", "ε must be positive"),
    "ε < 0": ("epsilon = 1.0", "epsilon = -1", "ε must be positive"),
    "δ = 0": ("delta = 1e-6", "delta = 0", "δ must lie strictly between 0 and 1"),
    "δ = 1": ("delta = 1e-6", "delta = 1.0", "δ must lie strictly between 0 and 1"),
    "horizon": ("horizon = 10", "horizon = 0", "horizon is a whole number of at least 1"),
    "prediction": (
        "COUNT(*) FROM t",
        "COUNT(*) FROM t WHERE n > 12",
        "no cell of the declared domain can match it",
    ),
    "range": ("max = 9", "", "[domain.n]: max is missing; fill it in"),
    "typo": ("horizon = 10", "horizn = 10", "unknown key horizn; did you mean horizon?"),
}


@pytest.mark.parametrize("command", [["run", "q.sql"], ["plan"], ["plan", "--json"]])
@pytest.mark.parametrize(("old", "new", "message"), SETTINGS.values(), ids=SETTINGS)
def test_a_bad_setting(command, old, new, message, small):
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t")
    (small / "lapras.toml").write_text(SMALL.replace(old, new))
    result = invoke(*command, code=1)
    assert result.stdout == ""
    told = result.stderr.removeprefix("lapras: ")
    if "--json" in command:
        told = json.loads(told)["message"]
    assert told.startswith("lapras.toml")
    assert message in told


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["nothing"], ["run", "q.sql", "--level", "1"], ["run", "q.sql", "--json", "--csv"],
     ["plan", "--no"], ["plan", "--target-std", "0"], ["plan", "--target-std", "few"],
     ["run", "q.sql", "--post", "absolute"],
     ["demo", "--policy", "mine"], ["demo", "--accounting", "zcdp"], ["demo", "--seed", "-1"], ["init"]],
)  # fmt: skip
def test_wrong_usage_is_2(arguments, small):
    assert invoke(*arguments, code=2).stderr


def test_plan_touches_no_data(small):
    (small / "t.csv").unlink()
    row = json.loads(invoke("plan", "--json").stdout)
    assert row["table"] == "t"
    assert row["cells"] == 11
    assert [query["query"] for query in row["predicted"]] == ["SELECT COUNT(*) FROM t"]
    assert len(row["streams"]) == 11
    assert row["without_predictions"]["predicted"] == []
    worth = row["predictions_worth"]
    assert worth["with"] is None  # nobody says how much of the stream they hold
    assert worth["without"] == row["without_predictions"]["streams"][0]["mae"]
    assert row["independent_gaussian_mae"] < row["independent_basic_mae"]
    text = invoke("plan").stdout
    assert "the table was not opened" in text
    assert f"{row['independent_basic_mae']:,.1f}" in text


def test_plan_says_what_predictions_are_worth(small):
    file = small / "lapras.toml"
    larger = SMALL.replace("max = 9", "max = 199")

    def planned(overlap):
        file.write_text(larger.replace("horizon = 10", f"horizon = 10\noverlap = {overlap}"))
        return json.loads(invoke("plan", "--json").stdout)

    sure, row = planned(1.0), planned(0.75)
    worth, streams = row["predictions_worth"], [stream["mae"] for stream in row["streams"]]
    assert worth["with"] == pytest.approx((streams[7] + streams[8]) / 2)
    assert worth["oracle"] == sure["streams"][10]["mae"] == sure["predictions_worth"]["with"]
    assert worth["oracle"] < worth["with"] < worth["without"]
    text = invoke("plan").stdout
    assert f"mean error: about {worth['with']:,.1f} if 75% of the stream is, as expected; about" in text
    file.write_text(SMALL.replace('predictions = ["SELECT COUNT(*) FROM t"]', ""))
    assert json.loads(invoke("plan", "--json").stdout)["predictions_worth"] is None
    assert "are worth" not in invoke("plan").stdout


def test_plan_finds_the_smallest_epsilon(small):
    (small / "t.csv").unlink()
    before = SMALL.replace("horizon = 10", 'horizon = 10\npolicy = "smooth-cache"')
    (small / "lapras.toml").write_text(before)
    row = json.loads(invoke("plan", "--target-std", "3", "--json").stdout)
    assert row["target_std"] == 3
    assert 0.99 * 3 <= row["predicted_std"] <= 3
    assert row["without_predictions_epsilon"] > row["epsilon"] > 1
    assert row["without_predictions"]["epsilon"] == row["epsilon"]
    text = invoke("plan", "--target-std", "3").stdout
    assert f"ε = {row['epsilon']:g} at δ = 1e-06 is the smallest" in text
    assert "the worst has 3.0: SELECT COUNT(*) FROM t." in text
    assert f"Without predictions ε = {row['without_predictions_epsilon']:g} would be needed" in text
    assert (small / "lapras.toml").read_text() == before
    (small / "lapras.toml").write_text(before.replace("epsilon = 1.0", f"epsilon = {row['epsilon']}"))
    assert json.loads(invoke("plan", "--json").stdout)["predicted_std"] == row["predicted_std"]
    assert "which leaves" in invoke("plan", "--target-std", "0.001", code=1).stderr


def test_plan_says_what_is_about(small):
    (small / "lapras.toml").write_text(SMALL.replace("horizon = 10", 'horizon = 10\npolicy = "primm"'))
    assert json.loads(invoke("plan", "--json").stdout)["approximate"] is True
    assert re.search(r"^ *0% +100% +about \d+\.\d +about \d+\.\d", invoke("plan").stdout, re.MULTILINE)
    (small / "lapras.toml").write_text(SMALL.replace('["SELECT COUNT(*) FROM t"]', "[]"))
    text = invoke("plan", "--target-std", "10").stdout
    assert "typical unpredicted queries have about 10.0 on average." in text
    assert "Without predictions" not in text


def test_init_writes_a_file_that_says_what_is_missing(small):
    with duckdb.connect(str(small / "my.duckdb")) as connection:
        names = ("n INTEGER", '"a ""b"" c" DOUBLE', "city VARCHAR", "day DATE", "ok BOOLEAN", "raw BLOB")
        connection.execute(f"CREATE TABLE people ({', '.join(names)})")
        connection.execute("INSERT INTO people (n, city) VALUES (424242, 'secret city')")
    assert "lapras.toml is there already" in invoke("init", "t.csv", code=1).stderr
    row = json.loads(invoke("init", "my.duckdb", "--table", "people", "-o", "new.toml", "--json").stdout)
    assert [column["declared"] for column in row["columns"]] == [
        "integers", "bins", "categories", "dates", "booleans", None,
    ]  # fmt: skip
    text = (small / "new.toml").read_text()
    assert "secret" not in text
    assert "424242" not in text
    assert "[domain.n]: min is missing" in invoke("plan", "-c", "new.toml", code=1).stderr
    for key, value in {
        "min =": "min = 0", "max =": "max = 9", "edges = []": "edges = [0, 1]",
        "values = []": 'values = ["x"]',
        "first =": "first = 2024-01-01", "last =": "last = 2024-01-31",
    }.items():  # fmt: skip
        text = text.replace(f"# {key}", value)
    (small / "new.toml").write_text(text)
    assert read_config(small / "new.toml").domain.shape == (10, 1, 1, 31, 2)
    (small / "q.sql").write_text("SELECT COUNT(*) FROM people;")
    assert json.loads(invoke("run", "q.sql", "-c", "new.toml", "--json").stdout)["std"] > 0
    invoke("init", "t.csv", "--force")
    for arguments in (["no.csv"], ["my.duckdb"], ["."], ["t.csv", "-o", "."]):
        assert invoke("init", *arguments, code=1).stderr.startswith("lapras: ")


def test_start_is_light():
    code = "import sys; import laprasdp.cli.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "duckdb", "matplotlib", "sqlglot", "opendp"} & set(loaded)
    assert re.fullmatch(r"lapras \d+\.\d+\.\d+\n", lapras("--version").stdout)


def test_no_colour_where_none_is_wanted(small):
    for command in (["--help"], ["plan"], ["run", "--help"]):
        assert "\x1b" not in lapras(*command, env=os.environ | {"NO_COLOR": "1"}).stdout


def _commands(command, name=""):
    """Every command that does something, by its words."""
    for word, inner in command.commands.items():
        words, parent = f"{name} {word}".strip(), hasattr(inner, "commands")
        if not parent or inner.invoke_without_command:
            yield words, inner
        if parent:
            yield from _commands(inner, words)


def test_every_command_and_option_is_documented():
    from typer.main import get_command

    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## lapras ([\w ]+)\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))
    commands = dict(_commands(get_command(app)))
    places = {name: name if name in sections else name.split()[0] for name in commands}  # or its group's
    assert set(sections) == set(places.values())
    for name, command in commands.items():
        assert re.search(rf"\[.*`lapras {name}`.*\]\(#lapras-{places[name].replace(' ', '-')}\)", page)
        for parameter in command.params:
            for option in parameter.opts:
                shown = f"`{option}" in sections[places[name]]
                assert shown or not option.startswith("--"), (name, option)
