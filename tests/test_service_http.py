"""The service over HTTP: who may do what, what is charged, and what a refusal looks like."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from office import COUNT, PEOPLE, Office

import laprasdp as lp
from laprasdp.config.serving import Serving
from laprasdp.service.application import LOG, JsonLines
from laprasdp.service.problem import CODES
from laprasdp.wire import read_told


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path)
    yield made
    made.close()


def problem(response: object, status: int, code: str) -> str:
    """The detail of a refusal, which is a problem of this code that costs nothing."""
    assert response.status_code == status, response.text  # type: ignore[attr-defined]
    assert response.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
    body = response.json()  # type: ignore[attr-defined]
    charge = None if code in ("internal", "ledger") else 0
    assert (body["status"], body["code"], body["charge"]) == (status, code, charge)
    detail: str = body["detail"]
    return detail


def test_a_price_is_told_before_and_asking_again_is_free(office: Office) -> None:
    question = f"{COUNT} WHERE n < 3"
    price = office.price("ada", question).json()
    first = office.ask("ada", question).json()
    assert first["charge"] == price["charge"] > 0
    assert first["rows"][0]["std"] == price["std"][0]
    again = office.ask("ben", question).json()
    assert again["charge"] == 0
    assert again["rows"][0]["value"] == first["rows"][0]["value"]
    assert office.price("ada", question).json()["charge"] == 0
    left = office.get("ada", "budget").json()["accounts"][0]
    assert left["remaining"] == pytest.approx(first["remaining"])


def test_who_asked_is_in_the_ledger_and_sees_only_their_own(office: Office) -> None:
    office.ask("ada", f"{COUNT} WHERE n < 3")
    office.ask("ben", COUNT)
    own = office.get("ada", "answers").json()["answers"]
    assert [(one["analyst"], one["statement"]) for one in own] == [("ada", f"{COUNT} WHERE n < 3")]
    everybody = office.get("otto", "answers").json()["answers"]
    assert [one["analyst"] for one in everybody] == ["ben", "ada"]
    other = everybody[0]["position"]
    problem(office.get("ada", f"answers/{other}"), 404, "not-found")
    assert office.get("ben", f"answers/{other}").json()["measured"][0]["std"] > 0
    assert office.get("ada", "answers", params={"q": "N < 3"}).json()["answers"] == own
    assert office.get("ada", "answers", params={"q": "nothing"}).json() == {"answers": [], "more": False}


ALLOWED = {
    ("POST", "price"): {"ada", "ben", "bot"},
    ("POST", "ask"): {"ada", "ben", "bot"},
    ("GET", "answers"): {"ada", "ben", "bot", "otto"},
    ("GET", "principals"): {"cleo"},
    ("POST", "principals"): {"cleo"},
    ("PATCH", "principals/ada"): {"cleo"},
    ("POST", "tokens"): {"cleo"},
    ("POST", "budget/raise"): {"cleo"},
    ("GET", "ledger/verify"): {"otto"},
    ("GET", "ledger/export"): {"otto"},
    ("GET", "schema"): set(PEOPLE),
    ("GET", "plan"): set(PEOPLE),
    ("GET", "predictions"): set(PEOPLE),
    ("PUT", "predictions"): {"cleo"},
    ("GET", "budget"): set(PEOPLE),
}
BODIES = {
    "predictions": {"predictions": [{"statement": COUNT}]},
    "price": {"statement": COUNT},
    "ask": {"statement": COUNT},
    "principals": {"name": "eve", "role": "analyst"},
    "principals/ada": {"cap": 0.5},
    "tokens": {"principal": "ada"},
    "budget/raise": {"epsilon": 2.0, "confirm": "raise"},
}


@pytest.mark.parametrize(("method", "path"), ALLOWED)
def test_roles(office: Office, method: str, path: str) -> None:
    for name in PEOPLE:
        body = {} if method == "GET" else {"json": BODIES[path]}
        done = office.send(name, method, path, **body)
        if name in ALLOWED[method, path]:
            assert done.status_code in (200, 201), (name, done.text)
        else:
            problem(done, 403, "forbidden")
    nobody = office.client.request(
        method, f"/api/v1/{path}", **({} if method == "GET" else {"json": BODIES[path]})
    )
    problem(nobody, 401, "unauthenticated")
    assert nobody.headers["www-authenticate"].startswith("Bearer")


def test_every_address_has_its_roles_here(office: Office) -> None:
    described = office.client.get("/api/v1/openapi.json").json()["paths"]
    there = {
        (method.upper(), path.removeprefix("/api/v1/"))
        for path, methods in described.items()
        if path.startswith("/api/v1/")
        for method in methods
    }
    own = {
        ("GET", "answers/{position}"),
        ("GET", "tokens"),
        ("DELETE", "tokens/{number}"),
        ("POST", "begin"),  # in test_service_begin.py
    }  # tested above and below
    assert there == {(method, path.replace("/ada", "/{name}")) for method, path in ALLOWED} | own


def test_a_token_is_shown_once_and_dies_at_once(office: Office) -> None:
    made = office.send(
        "cleo", "POST", "tokens", json={"principal": "ada", "name": "laptop", "days": 1}
    ).json()
    office.tokens["laptop"] = made["token"]
    assert len(made["token"]) >= 43
    assert office.get("laptop", "schema").json()["you"] == {"name": "ada", "role": "analyst"}
    listed = office.get("ada", "tokens").json()["tokens"]
    assert [one["name"] for one in listed] == ["laptop", "test"]
    assert made["token"] not in json.dumps(listed)
    kept = office.desk.accounts.database.file
    assert kept is not None
    for file in Path(office.desk.accounts.database.name).parent.glob("lapras.accounts*"):
        assert made["token"].encode() not in file.read_bytes()
    problem(office.send("ben", "DELETE", f"tokens/{listed[0]['number']}"), 404, "not-found")
    problem(office.send("ben", "DELETE", "tokens/1?principal=ada"), 403, "forbidden")
    office.send("ada", "DELETE", f"tokens/{listed[0]['number']}")
    problem(office.get("laptop", "schema"), 401, "unauthenticated")
    assert office.get("ada", "schema").status_code == 200
    office.send("cleo", "PATCH", "principals/ada", json={"active": False})
    problem(office.get("ada", "schema"), 401, "unauthenticated")


def test_a_token_expires(tmp_path: Path) -> None:
    from laprasdp.service.accounts import Accounts

    now = [0.0]
    accounts = Accounts(tmp_path / "a.accounts", clock=lambda: now[0])
    accounts.add("ada", "analyst")
    secret = accounts.issue("ada", "one", days=1)
    cookie = accounts.sign_in(secret, hours=1)
    assert cookie is not None
    now[0] = 3599.0
    assert accounts.by_browser(cookie) is not None
    now[0] = 3601.0
    assert accounts.by_browser(cookie) is None
    assert accounts.by_token(secret) is not None
    now[0] = 86401.0
    assert accounts.by_token(secret) is None
    assert accounts.sign_in(secret, hours=1) is None
    accounts.close()


def test_refusals_cost_nothing_and_say_what_to_do(office: Office) -> None:
    assert "MAX" in problem(office.ask("ada", "SELECT MAX(n) FROM t"), 422, "unsupported-query")
    problem(office.ask("ada", "SELECT COUNT(* FROM t"), 400, "query-syntax")
    problem(office.ask("ada", "SELECT COUNT(*) FROM s"), 404, "other-table")
    problem(office.ask("ada", COUNT, max_std=1e-9), 403, "too-imprecise")
    problem(office.ask("ada", COUNT, max_std=-1), 422, "invalid")
    problem(office.ask("ada", COUNT + "\0"), 422, "invalid")
    problem(office.send("ada", "POST", "ask", json={"statement": COUNT, "other": 1}), 422, "invalid")
    problem(office.send("ada", "POST", "ask", content=b"{"), 422, "invalid")
    problem(office.send("ada", "POST", "ask", content=b"x" * 2_000_001), 413, "too-large")
    problem(office.get("ada", "nothing"), 404, "not-found")
    problem(office.send("ada", "PUT", "ask"), 405, "method")
    problem(office.client.get("/d/other/api/v1/schema", headers=bearer(office, "ada")), 404, "not-found")
    assert office.client.get("/d/t/api/v1/schema", headers=bearer(office, "ada")).json()["table"] == "t"
    problem(office.send("cleo", "POST", "principals", json={"name": "p", "role": "service"}), 400, "domain")
    problem(office.send("cleo", "POST", "principals", json={"name": "ada", "role": "analyst"}), 400, "domain")
    problem(
        office.send("cleo", "POST", "budget/raise", json={"epsilon": 2, "confirm": "yes"}), 422, "invalid"
    )
    problem(
        office.send("cleo", "POST", "budget/raise", json={"epsilon": 0.5, "confirm": "raise"}), 400, "budget"
    )


def bearer(office: Office, name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {office.tokens[name]}"}


def test_a_cap_that_is_used_up_stops_one_and_nobody_else(office: Office) -> None:
    office.send("cleo", "PATCH", "principals/ben", json={"cap": 0.05})
    shown = {}
    for low in range(10):
        question = f"{COUNT} WHERE n = {low}"
        done = office.ask("ben", question)
        if done.status_code == 403:
            assert "the cap of ben" in problem(done, 403, "budget-exhausted")
            break
        shown[question] = done.json()["rows"][0]["value"]
    else:
        pytest.fail("the cap was never used up")
    for question, value in shown.items():
        again = office.ask("ben", question).json()
        assert (again["charge"], again["rows"][0]["value"]) == (0, value)
    assert office.ask("ada", f"{COUNT} WHERE n > 2").json()["charge"] > 0
    cap = office.get("ben", "budget").json()["cap"]
    assert 0 <= cap["epsilon_spent"] <= cap["epsilon"] == 0.05
    office.send("cleo", "PATCH", "principals/ben", json={"cap": 0.9})
    assert office.ask("ben", f"{COUNT} WHERE n = 9 AND m = 'x'").status_code == 200


def test_a_refusal_names_what_was_released_before_it(office: Office) -> None:
    office.send("cleo", "PATCH", "principals/ben", json={"cap": 1e-4})
    refused = office.ask("ben", f"{COUNT} WHERE n = 5")
    assert "opening release" in problem(refused, 403, "budget-exhausted")
    (released,) = refused.json()["released"]
    assert released["reason"] == "opening"
    spent = office.get("ada", "budget").json()["accounts"][0]["spent"]
    assert spent == pytest.approx(released["charge"])
    assert spent > 0
    again = office.ask("ben", f"{COUNT} WHERE n = 5")
    problem(again, 403, "budget-exhausted")
    assert again.json()["released"] == []
    assert office.get("ada", "budget").json()["accounts"][0]["spent"] == spent


def test_whether_it_was_charged_is_open_where_the_ledger_fails(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise lp.LedgerError("the ledger is lost")

    monkeypatch.setattr(office.desk.tables["t"].session, "ask", lost)
    lost_answer = office.ask("ada", COUNT)
    problem(lost_answer, 503, "ledger")
    assert int(lost_answer.headers["retry-after"]) > 0


def test_what_was_shown_is_there_after_a_restart_and_a_raise(office: Office) -> None:
    first = office.ask("ada", f"{COUNT} WHERE n < 3").json()
    office.send("cleo", "POST", "budget/raise", json={"epsilon": 2.0, "confirm": "raise"})
    office.close()
    office.open()
    again = office.ask("ada", f"{COUNT} WHERE n < 3").json()
    assert (again["charge"], again["rows"][0]["value"]) == (0, first["rows"][0]["value"])
    account = office.get("ada", "budget").json()["accounts"][0]
    assert account["budget"]["epsilon"] == 2.0
    assert office.get("otto", "ledger/verify").json()["sound"]


def test_a_key_measures_once(office: Office) -> None:
    key = {"Idempotency-Key": "k1"}
    office.ask("ada", f"{COUNT} WHERE n < 3")
    first = office.ask("ada", f"{COUNT} WHERE n < 3", remeasure=True, headers=key)
    again = office.ask("ada", f"{COUNT} WHERE n < 3", remeasure=True, headers=key)
    assert first.json() == again.json()
    assert first.json()["charge"] > 0
    problem(office.ask("ada", COUNT, headers=key), 409, "mismatch")
    assert office.ask("ben", COUNT, headers=key).status_code == 200  # the key is each one's own
    entries = office.desk.tables["t"].entries()
    cut = {"Idempotency-Key": "k2"}  # a request that ends after the ledger kept it and before it is answered
    kept = office.desk.repeated.end
    office.desk.repeated.end = lambda *_: (_ for _ in ()).throw(RuntimeError)  # type: ignore[assignment,method-assign]
    problem(office.ask("ada", f"{COUNT} WHERE n < 3", remeasure=True, headers=cut), 500, "internal")
    office.desk.repeated.end = kept  # type: ignore[method-assign]
    measured = office.desk.tables["t"].entries()
    assert measured > entries
    spent = office.get("ada", "budget").json()["accounts"][0]["spent"]
    assert office.ask("ada", f"{COUNT} WHERE n < 3", remeasure=True, headers=cut).json()["charge"] == 0
    assert office.get("ada", "budget").json()["accounts"][0]["spent"] == spent


def test_groups_come_line_by_line_and_are_the_same_answer(office: Office) -> None:
    question = f"{COUNT} GROUP BY m"
    whole = read_told(office.ask("ada", question).json())
    lines = office.ask("ada", question, headers={"Accept": "application/x-ndjson"})
    head, *rows = map(json.loads, lines.text.splitlines())
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert (head["form"], head["rows"], head["charge"]) == ("groups", len(rows), 0)
    assert [row["value"] for row in rows] == [one.value for one in whole]  # type: ignore[union-attr]
    assert [row["group"] for row in rows] == [{"m": "x"}, {"m": "<b>y</b>"}]


def test_requests_of_one_principal_are_rationed(tmp_path: Path) -> None:
    office = Office(tmp_path, serving=Serving(rate=0.001, burst=3))
    assert [office.get("ada", "schema").status_code for _ in range(4)] == [200, 200, 200, 429]
    late = office.get("ada", "schema")
    problem(late, 429, "rate")
    assert int(late.headers["retry-after"]) > 0
    assert office.get("ben", "schema").status_code == 200
    office.close()


def test_many_at_once_stay_within_the_budget(office: Office) -> None:
    def ask(place: int) -> tuple[int, float]:
        name = ("ada", "ben", "bot")[place % 3]
        done = office.ask(name, f"{COUNT} WHERE n = {place % 8}")
        return done.status_code, done.json()["charge"] if done.status_code == 200 else 0.0

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(ask, range(48)))
    assert {status for status, _ in done} <= {200, 403}
    spending = office.get("cleo", "budget").json()["spending"][0]
    assert spending["epsilon_spent"] <= 1.0
    asked = next(one["spent"] for one in spending["sources"] if one["name"] == "measured")
    assert asked <= sum(charge for _, charge in done) + 1e-12
    found = office.get("otto", "ledger/verify").json()
    assert found["sound"]
    assert found["ledgers"][0]["entries"] == spending["statements"] + len(spending["over_time"])
    lines = office.get("otto", "ledger/export").text.splitlines()
    assert json.loads(lines[-1])["digest"] == found["ledgers"][0]["head"]


def test_machines_see_public_counts(office: Office) -> None:
    office.ask("ada", COUNT)
    assert office.client.get("/healthz").text == "ok\n"
    assert office.client.get("/readyz").text == "ready\n"
    text = office.client.get("/metrics").text
    assert text.endswith("# EOF\n")
    assert 'lapras_requests_total{status="200"} 3\n' in text
    assert 'lapras_epsilon{dataset="t",part="budget"} 1.0\n' in text
    assert "ada" not in text
    office.desk.stopping = True
    stopped = office.ask("ada", COUNT)
    problem(stopped, 503, "stopping")
    assert stopped.headers["retry-after"]
    assert office.client.get("/healthz").text == "ok\n"
    problem(office.client.get("/readyz"), 503, "stopping")


def test_every_answer_is_guarded_by_its_headers(office: Office) -> None:
    for done in (office.get("ada", "schema"), office.get("ada", "nothing"), office.client.get("/healthz")):
        assert done.headers["content-security-policy"].startswith("default-src 'none'")
        assert done.headers["cache-control"] == "no-store"
        assert done.headers["x-content-type-options"] == "nosniff"
    office.client.cookies.set("lapras_session", "anything")
    assert office.client.get("/api/v1/schema").status_code == 401


def test_answers_come_no_sooner_than_is_said(tmp_path: Path) -> None:
    office = Office(tmp_path, serving=Serving(answer_after=0.15, rate=1e5, burst=1000))
    office.ask("ada", COUNT)
    for done in (office.ask("ada", COUNT), office.ask("ada", "no SQL"), office.price("ada", COUNT)):
        assert done.elapsed.total_seconds() >= 0.15
    office.close()


def test_the_log_holds_neither_statements_nor_values(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    LOG.addHandler(caplog.handler)
    caplog.set_level(logging.INFO, "laprasdp.service")
    value = office.ask("ada", f"{COUNT} WHERE n < 3").json()["rows"][0]["value"]
    office.ask("ada", "SELECT MAX(n) FROM t WHERE m = 'secret'")
    LOG.removeHandler(caplog.handler)
    lines = [JsonLines().format(record) for record in caplog.records if record.name == LOG.name]
    told = [json.loads(line) for line in lines]
    assert {(one["path"], one["status"], one["code"], one["principal"]) for one in told} == {
        ("/api/v1/ask", 200, None, "ada"),
        ("/api/v1/ask", 422, "unsupported-query", "ada"),
    }
    assert not any(
        part in line for line in lines for part in ("SELECT", "secret", str(value), office.tokens["ada"])
    )


def test_of_a_defect_nothing_is_told(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the count is 4711")

    office.desk.ask = broken  # type: ignore[assignment,method-assign]
    LOG.addHandler(caplog.handler)
    detail = problem(office.ask("ada", COUNT), 500, "internal")
    LOG.removeHandler(caplog.handler)
    lines = [JsonLines().format(record) for record in caplog.records if record.name == LOG.name]
    assert any("RuntimeError" in line and "traceback" in line for line in lines)
    assert "4711" not in detail + "".join(lines)


def test_the_page_has_every_address_and_every_code(office: Office) -> None:
    page = (Path(__file__).parent.parent / "docs" / "service.md").read_text(encoding="utf-8")
    for path in office.client.get("/api/v1/openapi.json").json()["paths"]:
        if not path.startswith("/d/"):
            assert path.removeprefix("/api/v1/") in page, path
    for code, (status, meaning) in CODES.items():
        assert f"| `{code}` | {status} | {meaning} |\n" in page
