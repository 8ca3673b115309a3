"""lapras.toml: what it means, and that every mistake in it is named by file, section and key."""

import datetime as dt
import re
import tomllib
from pathlib import Path

import pytest

from laprasdp import (
    Bins,
    Booleans,
    Budget,
    Categories,
    Dates,
    Domain,
    Integers,
    LaprasError,
    Reading,
    Stream,
    datasets,
)
from laprasdp.config import read_config
from laprasdp.config.attributes import toml_key
from laprasdp.privacy.unit import PrivacyUnit

SOURCE = '[source]\ndataset = "adult"\n'
PRIVACY = "[privacy]\nepsilon = 1\ndelta = 1e-6\n"
AGE = '[domain.age]\ntype = "integers"\nmin = 17\nmax = 90\n'
EXAMPLES = Path(__file__).parent.parent / "examples"


def write(folder: Path, text: str) -> Path:
    path = folder / "lapras.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults(tmp_path):
    config = read_config(write(tmp_path, SOURCE + PRIVACY + AGE))
    assert config.source == datasets.path("adult")
    assert (config.name, config.table, config.public) == ("adult", None, True)
    assert config.domain == Domain(age=Integers(17, 90))
    assert config.budget == Budget(1.0, 1e-6)
    assert config.unit == PrivacyUnit()
    assert config.stream == Stream(100, policy="primm", accounting="gaussian", split="matrix-heavy")
    assert (config.stream.reading, config.stream.predictions) == (Reading(), ())


def test_everything(tmp_path):
    (tmp_path / "expected.sql").write_text(
        "-- first\nSELECT COUNT(*) FROM p WHERE n < 3;\n\nSELECT COUNT(*) FROM p\n"
    )
    text = """
        [source]
        database = "some.duckdb"
        table = "staff.people"
        name = "p"
        [privacy]
        epsilon = 0.5
        delta = 1e-9
        column = "id"
        max_rows = 3
        [stream]
        horizon = 7
        policy = "static"
        accounting = "basic"
        split = "query-heavy"
        predictions = "expected.sql"
        warm_up = 2
        estimate = "continuous"
        overflow = "leftover"
        repeats = "pay"
        [domain.n]
        type = "integers"
        min = 0
        max = 9
        nullable = true
        [domain."odd name.with \\"quotes\\""]
        type = "bins"
        start = 0
        stop = 0.3
        width = 0.1
        [domain.edges]
        type = "bins"
        edges = [0, 5, 10]
        whole = true
        [domain.city]
        type = "categories"
        values = ["", "Łódź"]
        other = true
        [domain.day]
        type = "dates"
        first = 2024-01-01
        last = "2024-03-31"
        step = "month"
        [domain.ok]
        type = "booleans"
    """
    config = read_config(write(tmp_path, text))
    assert config.source == tmp_path / "some.duckdb"
    assert (config.table, config.name, config.public) == ("staff.people", "p", False)
    assert config.domain == Domain(
        {
            "n": Integers(0, 9, nullable=True),
            'odd name.with "quotes"': Bins([0, 0.1, 0.2, 0.3]),
            "edges": Bins([0, 5, 10], whole=True),
            "city": Categories(["", "Łódź"], other=True),
            "day": Dates(dt.date(2024, 1, 1), "2024-03-31", "month"),
            "ok": Booleans(),
        }
    )
    assert config.unit == PrivacyUnit("id", 3)
    assert config.stream.reading == Reading(2, "continuous", "leftover", "pay")
    assert [p.text for p in config.stream.predictions] == [
        "SELECT COUNT(*) FROM p WHERE n < 3",
        "SELECT COUNT(*) FROM p",
    ]
    assert config.plan().horizon == 7  # the database does not exist: a plan does not open it
    assert config.plan(predictions=False).predicted == ()


@pytest.mark.parametrize(
    "name", ["age", "hours-per-week", "hours per week", "a.b", 'say "x"', "Größe", "7", "\t", "-"]
)
def test_any_attribute_name_is_a_key(name, tmp_path):
    text = f'{SOURCE}{PRIVACY}[domain.{toml_key(name)}]\ntype = "booleans"\n'
    assert read_config(write(tmp_path, text)).domain.names == (name,)


HEAD = SOURCE + PRIVACY
STREAM = HEAD + AGE + "[stream]\n"
BINS = HEAD + '[domain.x]\ntype = "bins"\n'
TEXTS = HEAD + '[domain.x]\ntype = "categories"\n'
WRONG = {
    "not TOML": (SOURCE + "epsilon = \n", r"lapras.toml is not TOML: .*line 3"),
    "section": (HEAD + AGE + "[strem]\n", r"unknown section strem; did you mean stream\?"),
    "section far": (HEAD + AGE + "[xyz]\n", r"unknown section xyz; known are source, domain, "),
    "section as key": ("source = 3\n", r"source is a section: write \[source\]"),
    "key": (SOURCE + "[privacy]\nepsilom = 1\n", r"\[privacy\]: unknown key epsilom; did you mean eps"),
    "key of source": ('[source]\nfil = "x"\n', r"\[source\]: unknown key fil; did you mean file\?"),
    "key of stream": (STREAM + "horizont = 3\n", r"\[stream\]: unknown key horizont; did you mean horizon\?"),
    "key of integers": (HEAD + AGE + "mx = 3\n", r"\[domain.age\]: unknown key mx; did you mean max"),
    "key of another type": (HEAD + AGE + "edges = []\n", r"unknown key edges; known are type"),
    "no source": (PRIVACY + AGE, r"\[source\]: name the table by one of file, database, url or dataset"),
    "two sources": ('[source]\nfile = "a"\ndataset = "adult"\n', "name the table by one of"),
    "database without table": ('[source]\ndatabase = "a.db"\n', r"\[source\]: table is missing"),
    "file with table": ('[source]\nfile = "a.csv"\ntable = "t"\n', "table is for a database"),
    "no such dataset": ('[source]\ndataset = "iris"\n', "no packaged table 'iris'; there are adult, flights"),
    "no budget": (SOURCE + AGE, r"\[privacy\]: epsilon is missing"),
    "no delta": (SOURCE + "[privacy]\nepsilon = 1\n", r"\[privacy\]: delta is missing"),
    "epsilon as text": (SOURCE + '[privacy]\nepsilon = "1"\ndelta = 1e-6\n', "epsilon must be a number"),
    "epsilon true": (SOURCE + "[privacy]\nepsilon = true\ndelta = 1e-6\n", "epsilon must be a number"),
    "epsilon 0": (SOURCE + "[privacy]\nepsilon = 0\ndelta = 1e-6\n" + AGE, r"\[privacy\]: ε must be pos"),
    "epsilon nan": (SOURCE + "[privacy]\nepsilon = nan\ndelta = 1e-6\n" + AGE, r"cy\]: ε must be a fin"),
    "delta 0": (SOURCE + "[privacy]\nepsilon = 1\ndelta = 0\n" + AGE, "δ must lie strictly between 0 and 1"),
    "delta 1": (SOURCE + "[privacy]\nepsilon = 1\ndelta = 1\n" + AGE, "δ must lie strictly between 0 and 1"),
    "unit": (HEAD + 'unit = "person"\n', 'unit is "row"; for persons give column and max_rows'),
    "unit and column": (HEAD + 'unit = "row"\ncolumn = "id"\n', "contradict"),
    "column without rows": (HEAD + 'column = "id"\n', "max_rows is missing"),
    "rows without column": (HEAD + "max_rows = 3\n", r"\[privacy\]: max_rows needs the column"),
    "no rows": (HEAD + 'column = "id"\nmax_rows = 0\n', "max_rows must be a whole number"),
    "horizon 0": (STREAM + "horizon = 0\n", "horizon is a whole number of at least 1, or \"unknown\", not 0"),
    "horizon in parts": (STREAM + "horizon = 1.5\n", "whole number or text in quotes, not 1.5"),
    "warm-up": (STREAM + 'warm_up = "hot"\n', r"\[stream\]: no reading 'hot' of the warm-up"),
    "split": (STREAM + 'split = "mine"\n', r"\[stream\]: no split 'mine'"),
    "accounting": (STREAM + 'accounting = "zcdp"\n', r"accounting must be .basic. or .gaussian., not 'zcdp'"),
    "repeats": (STREAM + 'repeats = "free"\n', r"\[stream\]: repeats is replay or pay, not 'free'"),
    "predictions as number": (STREAM + "predictions = 3\n", "predictions must be a list of statements"),
    "a prediction as number": (STREAM + "predictions = [3]\n", "predictions are texts in quotes, not 3"),
    "predictions missing": (STREAM + 'predictions = "no.sql"\n', "predictions: .*no.sql: no such file"),
    "no domain": (HEAD, r"\[domain\]: no attribute is declared"),
    "attribute as key": (HEAD + "[domain]\nage = 3\n", r"age is a section: write \[domain.age\]"),
    "no type": (HEAD + "[domain.age]\nmin = 1\n", r"\[domain.age\]: type is missing"),
    "type": (HEAD + '[domain.age]\ntype = "int"\n', "no type 'int'; there are integers"),
    "no max": (HEAD + '[domain.age]\ntype = "integers"\nmin = 1\n', "max is missing; fill it in"),
    "min above max": (HEAD + AGE.replace("17", "99"), r"\[domain.age\]: min 99 is above max 90"),
    "min as text": (HEAD + AGE.replace("17", '"x"'), r"\[domain.age\]: min must be a whole number"),
    "nullable": (HEAD + AGE + "nullable = 1\n", r"nullable must be true or false, not 1"),
    "no edges": (BINS, r"\[domain.x\]: edges are missing"),
    "no width": (BINS + 'start = 0\nstop = 1\n', "width is missing"),
    "edges and width": (BINS + 'edges = [0, 1]\nwidth = 1\n', "not both"),
    "edges overlap": (BINS + 'edges = [0, 1, 1]\n', r"x\]: edges 1, 1 overlap"),
    "uneven": (BINS + 'start = 0\nstop = 1\nwidth = 0.3\n', "whole number of widths"),
    "infinite": (BINS + 'start = 0\nstop = inf\nwidth = 1\n', "must be finite"),
    "too many bins": (BINS + 'start = 0\nstop = 1\nwidth = 1e-9\n', "limit"),
    "no values": (TEXTS + 'values = []\n', r"\[domain.x\]: categories need"),
    "values twice": (TEXTS + 'values = ["a", "a"]\n', "declared twice"),
    "date": (HEAD + '[domain.x]\ntype = "dates"\nfirst = "May"\nlast = "June"\n', r"x\]: first must be"),
    "case only": (HEAD + AGE + AGE.replace("age", "AGE"), r"\[domain\]: attribute AGE is declared bes"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named(text, message, tmp_path):
    with pytest.raises(LaprasError, match=message) as caught:
        read_config(write(tmp_path, text))
    assert str(tmp_path / "lapras.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


LATER = {
    "policy": ('policy = "smoth"\n', "no policy 'smoth'; there are static, smooth"),
    "outside": ('predictions = ["SELECT COUNT(*) FROM adult WHERE age > 95"]\n', "prediction 1: no cell of"),
    "unknown column": (
        'predictions = ["SELECT COUNT(*) FROM adult", "SELECT COUNT(*) FROM adult WHERE sex = 1"]\n',
        r"\[stream\]: prediction 2: .*sex",
    ),
    "in a file": ('predictions = "p.sql"\n', r"p.sql, line 4: .*sex"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "message"), LATER.values(), ids=LATER)
def test_what_only_a_plan_can_see(line, message, tmp_path):
    (tmp_path / "p.sql").write_text(
        "SELECT COUNT(*) FROM adult;\n\n-- not declared\nSELECT COUNT(*) FROM adult WHERE sex = 1"
    )
    config = read_config(write(tmp_path, STREAM + line))
    for action in (config.plan, config.open):
        with pytest.raises(LaprasError, match=message):
            action()


def test_files_that_are_none(tmp_path):
    with pytest.raises(LaprasError, match="there is no such file; `lapras init TABLE` writes one"):
        read_config(tmp_path / "no.toml")
    with pytest.raises(LaprasError, match="is a directory"):
        read_config(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe9"')
    with pytest.raises(LaprasError, match="not UTF-8"):
        read_config(tmp_path / "latin.toml")


def test_the_flights_example_has_334152_cells():
    config = read_config(EXAMPLES / "flights" / "lapras.toml")
    assert config.domain.shape == (14, 54, 17, 26)
    assert config.domain.size == 334_152


def test_the_documented_file_is_read(tmp_path):
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    block = re.search(r"## lapras.toml.*```toml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    assert tomllib.loads(block[1])
    (tmp_path / "expected.sql").write_text("SELECT COUNT(*) FROM adult WHERE active;\n")
    (tmp_path / "states.csv").write_text("abr,region\nCA,West\n")
    assert read_config(write(tmp_path, block[1])).plan().predicted[0].std is not None
