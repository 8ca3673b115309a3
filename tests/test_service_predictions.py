"""Predictions over HTTP: shown to all, and settled once the ledger was begun."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from office import COUNT, Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path)
    yield made
    made.close()


def put(office: Office, *predictions: dict[str, Any]) -> Any:
    return office.send("cleo", "PUT", "predictions", json={"predictions": list(predictions)})


def test_the_same_predictions_are_taken_again(office: Office) -> None:
    there = office.get("ada", "predictions").json()
    assert there == {"predictions": [{"statement": COUNT, "expected": None}], "begun": True}
    again = put(office, *there["predictions"])
    assert (again.status_code, again.json()) == (200, there)
    assert put(office, {"statement": "select count(*) from t"}).json() == there  # it asks the same


@pytest.mark.parametrize(
    "predictions",
    [
        [],
        [{"statement": COUNT}, {"statement": f"{COUNT} WHERE n < 3"}],
        [{"statement": f"{COUNT} WHERE n < 3"}],
        [{"statement": COUNT, "expected": 2.0}],
    ],
)
def test_others_are_refused_since_the_ledger_was_begun(
    office: Office, predictions: list[dict[str, Any]]
) -> None:
    refused = put(office, *predictions)
    body = refused.json()
    assert (refused.status_code, body["code"], body["charge"]) == (409, "begun", 0)
    assert "a new budget" in body["detail"]
    assert len(office.get("ada", "predictions").json()["predictions"]) == 1
    plan = office.get("ada", "plan").json()
    assert len(plan["predicted"]) == 1


def test_what_cannot_be_asked_cannot_be_predicted(office: Office) -> None:
    refused = put(office, {"statement": COUNT}, {"statement": "SELECT MAX(n) FROM t"})
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported-query")
    assert "prediction 2" in refused.json()["detail"]


def test_the_plan_says_that_they_stay(office: Office) -> None:
    office.client.post("/sign-in", data={"token": office.tokens["cleo"]})
    assert "nobody can change them here" in office.client.get("/d/t/plan").text


def test_nobody_waits_while_a_plan_is_made(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    table, begun, end = office.desk.tables["t"], threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> Any:
        begun.set()
        end.wait(60)
        raise RuntimeError("it is stopped")

    monkeypatch.setattr("laprasdp.service.served.make_plan", slow)
    with ThreadPoolExecutor(1) as pool:
        planning = pool.submit(table.curve)
        assert begun.wait(60)
        office.send("cleo", "PATCH", "principals/ben", json={"cap": 0.25})
        assert office.ask("ben", COUNT).status_code == 200
        assert len(office.get("ben", "answers").json()["answers"]) == 1
        assert not planning.done()
        end.set()
        assert isinstance(planning.exception(), RuntimeError)
