"""A stream is declared once: each field is a key, a keyword, a setting of the ledger and a line of docs."""

from dataclasses import fields
from pathlib import Path

import pyarrow
import pytest

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.policy.setting import Options
from laprasdp.sql import reader

DOMAIN = lp.Domain(a=lp.Integers(0, 9))
TABLE = pyarrow.table({"a": [1, 2, 2]})
BUDGET = lp.Budget(1, 1e-6)
TOML = """
[source]
file = "t.parquet"
[privacy]
epsilon = 1
delta = 1e-6
[domain.a]
type = "integers"
min = 0
max = 9
[stream]
predictions = "p.sql"
"""
OTHER = {
    "horizon": 7,
    "predictions": ["SELECT COUNT(*) FROM t WHERE a < 3"],
    "policy": "smooth",
    "post": "fitted",
    "accounting": "basic",
    "split": "equal",
    "overlap": 0.5,
    "reading": lp.Reading(repeats="pay"),
    "release": "pure",
    "shapes": ["ranges of one attribute"],
}
NAMES = [one.name for one in fields(lp.Stream)]


def test_every_field_is_tried_here():
    assert sorted(OTHER) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_is_a_field(name):
    value = OTHER[name]
    one = lp.Stream(**{name: value})
    assert one == lp.Stream.of(None, {name: value}) != lp.Stream()
    assert lp.Stream.of(one, {}) == one


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_keeps_every_field_that_changes_a_release(name):
    def settings(stream):
        opened = lp.open_session(TABLE, DOMAIN, budget=BUDGET, stream=stream, name="t")
        return opened.setting.settings() | {"policy": opened.policy}

    begun = {"policy": "smooth"} if name != "policy" else {}
    plain, other = settings(lp.Stream(**begun)), settings(lp.Stream(**begun | {name: OTHER[name]}))
    kept = {name} - {"post"}  # which changes nothing that is released
    assert {key for key in plain | other if plain.get(key) != other.get(key)} == kept


@pytest.mark.parametrize("name", NAMES)
def test_the_file_has_a_key_for_every_field_and_the_page_a_line(name, tmp_path):
    keys = [one.name for one in fields(lp.Reading)] if name == "reading" else [name]
    page = (Path(__file__).parent.parent / "docs/cli.md").read_text(encoding="utf-8")
    for key in keys:
        assert f"\n{key} = " in page or f"\n# {key} = " in page, key
        value = {"warm_up": 3, "estimate": "continuous", "overflow": "leftover", "repeats": "pay"}
        given = value.get(key, OTHER.get(key))
        text = TOML.replace('predictions = "p.sql"', f"{key} = {given!r}".replace("True", "true"))
        (tmp_path / "lapras.toml").write_text(text.replace("'", '"'), encoding="utf-8")
        assert read_config(tmp_path / "lapras.toml").stream != lp.Stream()


def test_options_reach_the_policy():
    stream = lp.Stream(**{name: OTHER[name] for name in OTHER if name != "predictions"})
    setting = stream.setting(DOMAIN, BUDGET, lp.PrivacyUnit(), [])
    assert {one.name for one in fields(Options)} < set(OTHER)
    for one in fields(Options):
        assert getattr(setting, one.name) == getattr(stream, one.name) != one.default


def test_what_is_no_option_is_named():
    with pytest.raises(lp.ConfigError, match="unknown option horizont; did you mean horizon\\?"):
        lp.open_session(TABLE, DOMAIN, budget=BUDGET, horizont=3)
    with pytest.raises(lp.ConfigError, match="stream must be a Stream, not 3"):
        lp.open_session(TABLE, DOMAIN, budget=BUDGET, stream=3)


@pytest.mark.parametrize("verb", ["open", "plan"])
def test_a_file_of_predictions_is_parsed_once(verb, tmp_path, monkeypatch):
    import pyarrow.parquet

    pyarrow.parquet.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "lapras.toml").write_text(TOML, encoding="utf-8")
    texts = [f"SELECT COUNT(*) FROM t WHERE a < {i}" for i in range(1, 6)]
    (tmp_path / "p.sql").write_text(";\n".join(texts), encoding="utf-8")
    parsed, true = [], reader.parse

    def counted(text, *rest):
        parsed.append(text)
        return true(text, *rest)

    monkeypatch.setattr(reader, "parse", counted)
    config = read_config(tmp_path / "lapras.toml")
    if verb == "open":
        config.open().ask("SELECT COUNT(*) FROM t WHERE a = 9")
        assert parsed.pop() == "SELECT COUNT(*) FROM t WHERE a = 9"
    else:
        read = config.read()
        read.plan()
        read.plan(predictions=False)
        read.open()
    assert parsed == texts
