"""A ledger that a curator begins: predictions are set before, and nothing is read or asked until then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from office import COUNT, Office, write_office

from laprasdp.config import read_config
from laprasdp.config.begun import has_begun
from laprasdp.config.serving import Serving
from laprasdp.errors import ConfigError
from laprasdp.service.door import FIELD

LATER = Serving(rate=1e5, burst=100_000, begin="curator")
WHERE = f"{COUNT} WHERE n < 3"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, serving=LATER)
    yield made
    made.close()


def put(office: Office, *statements: str) -> Any:
    wanted = [{"statement": one} for one in statements]
    return office.send("cleo", "PUT", "predictions", json={"predictions": wanted})


def begin(office: Office, name: str = "cleo", confirm: str = "begin") -> Any:
    return office.send(name, "POST", "begin", json={"confirm": confirm})


def statements(office: Office) -> list[str]:
    return [one["statement"] for one in office.get("ada", "predictions").json()["predictions"]]


def test_nothing_is_read_and_nothing_is_asked_until_a_curator_begins(office: Office, tmp_path: Path) -> None:
    (tmp_path / "t.csv").rename(tmp_path / "away.csv")  # nothing reads it
    assert not (tmp_path / "t.ledger").exists()
    for method, path in [("POST", "ask"), ("POST", "price"), ("GET", "answers"), ("GET", "budget"),
                         ("GET", "schema")]:  # fmt: skip
        more = {"json": {"statement": COUNT}} if method == "POST" else {}
        refused = office.send("ada", method, path, **more)
        body = refused.json()
        assert (refused.status_code, body["code"], body["charge"]) == (503, "waiting", 0)
        assert "a curator has not begun" in body["detail"]
        assert refused.headers["retry-after"] == "60"
    assert office.client.get("/readyz").text == "ready; a curator has not begun t\n"
    assert "lapras_requests" in office.client.get("/metrics").text
    assert office.get("otto", "ledger/verify").status_code == 503
    plan = office.get("ada", "plan").json()
    assert [one["query"] for one in plan["predicted"]] == [COUNT]
    assert not (tmp_path / "t.ledger").exists()


def test_a_curator_sets_predictions_and_begins(office: Office) -> None:
    assert office.get("ada", "predictions").json()["begun"] is False
    before = office.get("ada", "plan").json()
    told = put(office, COUNT, WHERE)
    assert told.status_code == 200
    assert statements(office) == [COUNT, WHERE]
    after = office.get("ada", "plan").json()
    assert [one["query"] for one in after["predicted"]] == [COUNT, WHERE]
    assert after["predicted"][0]["std"] > before["predicted"][0]["std"]
    assert put(office, WHERE).status_code == 200  # again, and all of them anew
    begun = begin(office)
    assert (begun.status_code, begun.json()["begun"]) == (200, True)
    assert office.client.get("/readyz").text == "ready\n"
    assert office.ask("ada", WHERE).json()["rows"][0]["source"] == "predicted"
    assert (put(office, COUNT).status_code, put(office, WHERE).status_code) == (409, 200)
    assert (again := begin(office)).status_code == 409
    assert again.json()["code"] == "begun"
    assert office.get("otto", "ledger/verify").json()["sound"]


def test_what_was_set_outlives_the_service_before_and_after_it_is_begun(office: Office) -> None:
    put(office, WHERE)
    office.close()
    office.open()
    assert statements(office) == [WHERE]
    begin(office)
    first = office.ask("ada", WHERE).json()["rows"]
    office.close()
    office.open()
    assert office.get("ada", "predictions").json() == {
        "predictions": [{"statement": WHERE, "expected": None}], "begun": True
    }  # fmt: skip
    assert office.ask("ada", WHERE).json()["rows"][0]["value"] == first[0]["value"]


def test_only_a_curator_may_and_only_by_the_word(office: Office) -> None:
    for name in ("ada", "otto", "bot"):
        assert begin(office, name).status_code == 403
        assert office.send(name, "PUT", "predictions", json={"predictions": []}).status_code == 403
    refused = begin(office, confirm="yes")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert not has_begun(office.config)


def test_what_cannot_be_asked_or_paid_is_not_set(office: Office) -> None:
    refused = put(office, COUNT, "SELECT MAX(n) FROM t")
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported-query")
    assert "prediction 2" in refused.json()["detail"]
    assert statements(office) == [COUNT]


def test_a_table_that_cannot_be_opened_begins_nothing(office: Office, tmp_path: Path) -> None:
    (tmp_path / "t.csv").rename(tmp_path / "away.csv")
    refused = begin(office)
    assert refused.json()["code"] == "data"
    assert not has_begun(office.config)
    assert put(office, WHERE).status_code == 200  # they can still be changed
    (tmp_path / "away.csv").rename(tmp_path / "t.csv")
    assert begin(office).status_code == 200
    assert statements(office) == [WHERE]


def test_another_process_sees_what_is_set_and_that_it_was_begun(office: Office) -> None:
    beside = Office.__new__(Office)
    beside.config, beside.serving, beside.tokens = office.config, office.serving, office.tokens
    beside.open()
    put(office, WHERE)
    assert statements(beside) == [WHERE]
    assert begin(beside).status_code == 200
    assert put(office, COUNT).status_code == 409
    first = beside.ask("ada", WHERE).json()["rows"][0]
    assert office.ask("ada", WHERE).json()["rows"][0]["value"] == first["value"]
    assert begin(office).status_code == 409
    beside.close()


def test_nobody_changes_what_another_process_is_just_beginning_with(office: Office) -> None:
    table = office.desk.tables["t"]
    table._drafted.settle()
    refused = put(office, WHERE)
    assert (refused.status_code, refused.json()["code"]) == (409, "begun")
    assert "a curator has pressed Begin" in refused.json()["detail"]
    assert begin(office).status_code == 200  # the other one may have died
    assert statements(office) == [COUNT]


def test_a_ledger_that_is_begun_is_opened_at_once(tmp_path: Path) -> None:
    first = Office(tmp_path)
    first.close()
    first.serving = LATER
    first.open()
    assert first.ask("ada", COUNT).status_code == 200
    first.close()


def test_the_pages_of_a_table_that_waits(office: Office) -> None:
    client = office.client
    client.post("/sign-in", data={"token": office.tokens["ada"]})
    refused = client.get("/d/t/ask")
    assert refused.status_code == 503
    assert "a curator has not begun" in refused.text
    assert "Set the predictions" not in client.get("/d/t/plan").text
    client.post("/sign-in", data={"token": office.tokens["cleo"]})
    assert client.get("/d/t/budget").headers["location"] == "/d/t/plan"
    page = client.get("/d/t/plan").text
    assert "A curator has not begun" in page
    token = {FIELD: page.partition(f'name="{FIELD}" value="')[2].partition('"')[0]}
    set_ = {**token, "act": "predict", "statements": f"{COUNT} WHERE n = 1\n{COUNT} WHERE m = '<b>y</b>'"}
    page = client.post("/d/t/plan", data=set_).text
    assert "n = 1" in page
    assert "<b>y</b>" not in page
    assert len(statements(office)) == 2
    file = {"file": ("mine.sql", f"-- mine\n{WHERE};\n".encode())}
    client.post("/d/t/plan", data={**set_}, files=file)
    assert statements(office) == [WHERE]
    for wrong, told in [
        ({"statements": "SELECT MAX(n) FROM t"}, "MAX"),
        ({"statements": "SELECT 'open FROM t"}, "line 1"),
        ({"act": "begin", "confirm": "yes"}, "confirm it by the word"),
    ]:
        refused = client.post("/d/t/plan", data={**token, "act": "predict", **wrong})
        assert refused.status_code == 422
        assert told in refused.text
    broken = client.post("/d/t/plan", data=set_, files={"file": ("x", b"\xff\xfe")})
    assert "the file is not UTF-8 text" in broken.text
    assert client.post("/d/t/plan", data={"act": "begin", "confirm": "begin"}).status_code == 403
    assert not has_begun(office.config)
    page = client.post("/d/t/plan", data={**token, "act": "begin", "confirm": "begin"}).text
    assert "nobody can change them here" in page
    assert "Set the predictions" not in page
    client.post("/sign-in", data={"token": office.tokens["ada"]})
    assert client.get("/d/t/ask").status_code == 200
    page = client.get("/d/t/plan").text
    token = {FIELD: page.partition(f'name="{FIELD}" value="')[2].partition('"')[0]}
    assert client.post("/d/t/plan", data={**token, "act": "begin", "confirm": "begin"}).status_code == 403


def test_a_configuration_says_who_begins(tmp_path: Path) -> None:
    path = write_office(tmp_path, more='[server]\nbegin = "curator"\n')
    assert read_config(path).serving.begin == "curator"
    write_office(tmp_path, more='[server]\nbegin = "never"\n')
    with pytest.raises(ConfigError, match='begin is "start" or "curator", not \'never\''):
        read_config(path)


def test_periods_wait_too(tmp_path: Path) -> None:
    rows = "".join(f"2024-01-{1 + i % 28:02},{i % 7},x\n" for i in range(60))
    more = (
        '[domain.day]\ntype = "dates"\nfirst = "2024-01-01"\nlast = "2024-01-31"\n'
        '[windows]\nattribute = "day"\nstep = "month"\n'
    )
    path = write_office(tmp_path, more=more)
    (tmp_path / "t.csv").write_text("day,n,m\n" + rows)
    assert not has_begun(read_config(path))
    office = Office(tmp_path, serving=LATER)
    put(office, WHERE)
    assert office.ask("ada", COUNT).status_code == 503
    assert begin(office).status_code == 200
    assert has_begun(office.config)
    assert office.ask("ada", WHERE).status_code == 200
    office.close()
