"""`lapras predict`, predictions.json, and what lapras.toml makes of them."""

import csv
import json
import re

import numpy as np
import pytest
from command import invoke
from query_logs import DOMAIN, made, ranges, zipf

from laprasdp import ConfigError, Domain, Integers
from laprasdp.config import read_config
from laprasdp.predict.forecast import Forecast, make_forecast, read_forecast, write_forecast
from laprasdp.predict.frequency import Frequency
from laprasdp.queries.prediction import Prediction
from laprasdp.sql.parse import parse
from laprasdp.sql.reader import Reader
from laprasdp.stream.predictions import read_predictions

TOML = """
[source]
file = "t.csv"
[privacy]
epsilon = 1.0
delta = 1e-6
[stream]
horizon = 40
{stream}
[domain.a]
type = "integers"
min = 0
max = 99
[domain.s]
type = "categories"
values = ["x0", "x1", "x2"]
"""
GROUPED = "SELECT s, COUNT(*) FROM t GROUP BY s"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,s\n1,x0\n2,x1\n")
    lines = [*zipf(np.random.default_rng(3), [GROUPED, *ranges(30)], 400), "SELECT 1", "DROP TABLE t"]
    with open(tmp_path / "log.csv", "w", newline="") as file:
        csv.writer(file).writerows([("sql", "at"), *((text, 60 * n) for n, text in enumerate(lines))])
    configure(tmp_path, "")
    return tmp_path


def configure(folder, stream):
    (folder / "lapras.toml").write_text(TOML.format(stream=stream))
    return folder / "lapras.toml"


def test_fit_writes_what_the_configuration_reads(folder):
    configure(folder, 'predictions = "predictions.json"\nprediction_count = 20')
    row = json.loads(invoke("predict", "fit", "log.csv", "--log-is", "public", "--json").stdout)
    assert (row["lines"], row["kept"], row["predictions"], row["horizon"]) == (402, 400, 20, 40)
    assert sum(row["refused"].values()) == 2
    assert row["overlap"] == pytest.approx(1 - row["unpredicted"] / 40)
    config = read_config("lapras.toml")
    assert len(config.stream.predictions) == 20
    assert config.stream.overlap == pytest.approx(row["overlap"])
    assert config.stream.predictions[0].text == GROUPED
    predicted = read_predictions(config.stream.declared, Reader(config.domain, "t"))
    assert len(predicted) == 22  # a GROUP BY is three queries
    counts = [one.expected for one in config.stream.declared]
    assert counts == sorted(counts, reverse=True)
    assert {one.expected for one in predicted[:3]} == {counts[0]}
    assert sum(counts) == pytest.approx(40 * config.stream.overlap)
    planned = json.loads(invoke("plan", "--json").stdout)
    assert planned["predicted_mae"] < planned["without_predictions"]["streams"][0]["mae"]
    assert {answer.source for answer in config.open().ask(GROUPED)} == {"predicted"}


def test_fewer_predictions_leave_more_unpredicted(folder):
    invoke("predict", "fit", "log.csv", "--log-is", "public")
    configure(folder, 'predictions = "predictions.json"\nprediction_count = 3\noverlap = 0.5')
    config = read_config("lapras.toml")
    assert (len(config.stream.predictions), config.stream.overlap) == (3, 0.5)
    configure(folder, 'predictions = "predictions.json"\nprediction_count = 3')
    config = read_config("lapras.toml")
    counts = [one.expected for one in config.stream.declared]
    assert config.stream.overlap == pytest.approx(sum(counts) / 40)
    path = folder / "lapras.toml"
    path.write_text(path.read_text().replace("horizon = 40", "horizon = 80"))
    longer = read_config(path)
    assert longer.stream.overlap == pytest.approx(config.stream.overlap)
    assert [one.expected for one in longer.stream.declared] == pytest.approx([2 * count for count in counts])


def test_a_log_in_the_configuration_is_learned_from(folder):
    configure(folder, 'log = "log.csv"\nlog_is = "private-answers"\nprediction_count = 5')
    config = read_config("lapras.toml")
    assert len(config.stream.predictions) == 5
    assert all(one.expected for one in config.stream.declared)
    assert config.stream.predictions[0].text == GROUPED
    assert 0.3 < config.stream.overlap < 0.9


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ('log = "log.csv"', r"\[stream\]: say where the log comes from"),
        ('log = "log.csv"\nlog_is = "raw"', "no provenance 'raw'"),
        ('log_is = "public"', "log_is is there, but no log"),
        ('log = "no.csv"\nlog_is = "public"', "there is no such log"),
        ('log = "log.csv"\nlog_is = "public"\npredictions = []', "give predictions or log, not both"),
        ('predictions = "no.json"', "no.json: no such file"),
        ("prediction_count = 0", "prediction_count must be at least 1, not 0"),
    ],
)
def test_what_the_configuration_refuses(stream, message, folder):
    with pytest.raises(ConfigError, match=message):
        read_config(configure(folder, stream))


def test_the_provenance_has_to_be_given(folder):
    error = invoke("predict", "fit", "log.csv", code=1).output
    assert "`public`, or `private-answers`" in error
    assert "tells what is in it" in error
    assert not (folder / "predictions.json").exists()


def test_fit_prints_what_was_refused(folder):
    text = invoke("predict", "fit", "log.csv", "--log-is", "public", "-o", "p.json", "--count", "7").stdout
    assert re.search(r"402 lines, 400 of them can be asked: \d+ different statements", text)
    assert "a statement that begins with DROP is not supported" in text
    assert GROUPED in text
    assert "7 statements are expected to be" in text


def test_score_prints_and_draws(folder):
    arguments = ("predict", "score", "log.csv", "--log-is", "public", "--windows", "2")
    row = json.loads(invoke(*arguments, "--json").stdout)
    assert set(row["scores"]) == {"mixture", "frequency"}
    for found in row["scores"].values():
        assert (found["windows"], found["horizon"]) == (2, 40)
        assert [size["size"] for size in found["sizes"]] == [50, 100, 200, 500]
        assert found["sizes"][-1]["overlap"] > 0.9
        assert 0 < found["log_loss"] < np.log(31)
    assert (folder / "out/predictions.png").read_bytes().startswith(b"\x89PNG")
    text = invoke(*arguments, "--model", "frequency", "--picture", "x.png").stdout
    assert "log-loss" in text
    assert "mixture" not in text


def test_columns_by_option(folder):
    (folder / "odd.csv").write_text(f'what\n"{GROUPED}"\n"{GROUPED}"\n')
    fit = ("predict", "fit", "odd.csv", "--log-is", "public", "--json")
    assert json.loads(invoke(*fit, "--column", "query=what").stdout)["kept"] == 2
    invoke(*fit, code=1)
    invoke(*fit, "--column", "wrong=what", code=2)


@pytest.fixture
def forecast():
    log = made([GROUPED, GROUPED, *ranges(3)])
    predictor = Frequency()
    predictor.fit(log)
    return make_forecast(predictor, log, 10, 3)


def test_a_forecast_is_read_back_as_it_was_written(forecast, tmp_path):
    write_forecast(forecast, tmp_path / "p.json", {"note": "ž"})
    assert read_forecast(tmp_path / "p.json", DOMAIN, "t") == forecast
    assert forecast.unpredicted + sum(one.expected for one in forecast.predictions) == pytest.approx(10)
    assert len(forecast.predictions[0].queries) == 20
    row = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert (row["format"], row["version"], row["provenance"]) == ("laprasdp predictions", 1, "public")
    assert row["domain"] == DOMAIN.fingerprint


def test_a_forecast_for_another_domain_table_or_version_is_refused(forecast, tmp_path):
    path = tmp_path / "p.json"
    write_forecast(forecast, path)
    with pytest.raises(ConfigError, match="made for another domain than the declared one; run `lapras"):
        read_forecast(path, Domain(a=Integers(0, 9)), "t")
    assert read_forecast(path, DOMAIN, "T").horizon == 10
    with pytest.raises(ConfigError, match="made for the table t, not u"):
        read_forecast(path, DOMAIN, "u")
    row = json.loads(path.read_text())
    for change, message in (
        ({"version": 2}, "has version 2; this is for version 1"),
        ({"format": "?"}, "holds no predictions"),
        ({"horizon": "x"}, "not sound"),
        ({"unpredicted": -1}, "not sound"),
        ({"predictions": [{"query": GROUPED, "expected": -1}]}, "not sound"),
        ({"predictions": [{"query": "SELECT 1", "expected": 1}]}, "prediction 1: "),
        ({"predictions": 3}, "not sound"),
        ({"provenance": None}, "say where the log comes from"),
    ):
        path.write_text(json.dumps(row | change))
        with pytest.raises(ConfigError, match=message):
            read_forecast(path, DOMAIN, "t")
    path.write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        read_forecast(path, DOMAIN, "t")


def test_the_top_of_a_forecast_moves_the_rest_to_the_unpredicted():
    expected = tuple(
        Prediction(text, parse(text, DOMAIN, "t").queries, expected=count)
        for text, count in zip(ranges(3), (5.0, 3.0, 1.0), strict=True)
    )
    forecast = Forecast(expected, 1.0, 10, "t", DOMAIN, "public")
    assert forecast.top(1) == Forecast(expected[:1], 5.0, 10, "t", DOMAIN, "public")
    assert (forecast.overlap, forecast.top(1).overlap) == (0.9, 0.5)
    longer = forecast.stretched(20)
    assert ([one.expected for one in longer.predictions], longer.unpredicted) == ([10.0, 6.0, 2.0], 2.0)
    assert (longer.horizon, longer.overlap) == (20, 0.9)


def test_statements_that_mean_the_same_are_expected_together():
    same = ["SELECT COUNT(*) FROM t WHERE a BETWEEN 0 AND 4", "SELECT COUNT(*) FROM t WHERE a < 5"]
    log = made([*same, same[1], "SELECT COUNT(*) FROM t WHERE a < 0"])
    predictor = Frequency()
    predictor.fit(log)
    forecast = make_forecast(predictor, log, 8, 10)
    known = 8 * (1 - predictor.missing_mass)
    assert [one.expected for one in forecast.predictions] == [pytest.approx(known * 3 / 4)]
    assert forecast.unpredicted == pytest.approx(8 - known * 3 / 4)  # what no cell can match is not in P
    with pytest.raises(ConfigError, match="at least 1, not 0 and 3"):
        make_forecast(predictor, log, 0, 3)
