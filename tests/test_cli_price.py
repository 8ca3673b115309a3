"""`lapras ask --price`: one line before the question, and asking then comes as it was told."""

import json

import pytest
from command import invoke, write_small

COUNT = "SELECT COUNT(*) FROM t"


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    settings = (tmp_path / "lapras.toml").read_text()
    (tmp_path / "lapras.toml").write_text(settings + '[ledger]\nfile = "t.ledger"\n')
    return tmp_path


def test_a_price_is_one_line_and_keeps_nothing(small):
    line = invoke("ask", "--price", f"{COUNT} WHERE n < 3").stdout
    assert line.startswith("charge μ² ")
    assert ", std " in line
    assert "; also released first: the first release, before the stream, charge μ² " in line
    assert line.count("\n") == 1
    assert line == invoke("ask", f"{COUNT} WHERE n < 3", "--price").stdout
    assert invoke("ledger", "export").stdout.count("\n") == 1  # its settings alone


@pytest.mark.parametrize("statement", [f"{COUNT} WHERE n < 3", COUNT, f"{COUNT} GROUP BY n"])
def test_a_price_as_json_is_what_is_charged_then(small, statement):
    price = json.loads(invoke("ask", "--price", statement, "--json").stdout)
    assert list(price) == ["query", "unit", "charge", "std", "released", "refusal"]
    rows = [json.loads(line) for line in invoke("ask", statement, "--json").stdout.splitlines()]
    assert [row["std"] for row in rows] == pytest.approx(price["std"])
    assert sum(row["charge"] for row in rows) == pytest.approx(price["charge"])
    assert rows[0]["released"] == price["released"]
    assert (price["query"], price["unit"], price["refusal"]) == (statement, "μ²", None)
    again = json.loads(invoke("ask", "--price", statement, "--json").stdout)
    assert (again["charge"], again["released"]) == (0, [])
    assert invoke("ask", "--price", statement).stdout.startswith("charge μ² free, std ")


def test_a_refusal_is_told_and_is_no_failure(small):
    settings = (small / "lapras.toml").read_text()
    (small / "lapras.toml").write_text(settings.replace("[stream]", '[stream]\npolicy = "offline"'))
    told = invoke("ask", "--price", f"{COUNT} WHERE n < 3").stdout
    assert told.startswith("it would be refused: offline has nothing left for queries outside")
    price = json.loads(invoke("ask", "--price", f"{COUNT} WHERE n < 3", "--json").stdout)
    assert (price["charge"], price["std"], bool(price["refusal"])) == (0, [None], True)
    assert price["refusal"] in invoke("ask", f"{COUNT} WHERE n < 3", code=1).stderr
    assert "MAX" in invoke("ask", "--price", "SELECT MAX(n) FROM t", code=1).stderr


def test_a_statement_at_a_std_costs_what_that_needs(small):
    plain = json.loads(invoke("ask", "--price", COUNT + " WHERE n < 3", "--json").stdout)
    wanted = 2 * plain["std"][0]
    for wish in (
        [f"{COUNT} WHERE n < 3 at std {wanted:.6f};"],
        [f"{COUNT} WHERE n < 3", "--max-std", str(wanted)],
    ):
        price = json.loads(invoke("ask", "--price", "--json", *wish).stdout)
        assert price["query"] == f"{COUNT} WHERE n < 3"
        assert plain["std"][0] < price["std"][0] <= wanted
        assert price["charge"] < plain["charge"]
    refused = invoke("ask", f"{COUNT} WHERE n < 3 AT STD 0.001", code=1).stderr
    assert "a standard deviation of 0.001 cannot be met now" in refused
    assert "AT STD takes a number" in invoke("ask", f"{COUNT} AT STD 1.2.3", code=1).stderr
    assert invoke("ledger", "export").stdout.count("\n") == 2  # its settings and the refusal


def test_a_statement_is_measured_again(small):
    first, again = (
        json.loads(invoke("ask", f"{COUNT} WHERE n < 3", "--json", *wish).stdout)
        for wish in ((), ("--remeasure",))
    )
    assert again["std"] < first["std"]
    assert again["charge"] > 0
    assert json.loads(invoke("ask", f"{COUNT} WHERE n < 3", "--json").stdout)["value"] == again["value"]
    assert "all sound" in invoke("ledger", "verify").stdout


def test_a_price_of_several_values_names_each(small):
    line = invoke("ask", "--price", "SELECT COUNT(*) AS c, AVG(n) AS mean FROM t").stdout
    assert ", c std " in line
    assert ", mean std known once it is answered" in line
