"""A service that is told to stop: what was begun is answered, what is new is told to come again."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psycopg
import pytest
from browser import Service, waited
from office import COUNT, write_office
from postgres import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    made = Server()
    yield made
    made.remove()


def refused(service: Service) -> httpx2.Response:
    """A request on a connection of its own, once the service is stopping."""
    found: list[httpx2.Response] = []

    def look() -> bool:
        found.append(httpx2.get(f"{service.url}/readyz", timeout=60))
        return found[-1].status_code == 503

    waited(look)
    return found[-1]


def stopped(service: Service) -> float:
    """Ask, stop it meanwhile, see what becomes of another question, and give the answer."""
    assert service.get("ada", "schema").status_code == 200
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(service.ask, "ada", f"{COUNT} WHERE n = 4")
        time.sleep(1)  # it is answered no sooner than after four seconds
        service.send_signal(signal.SIGTERM)
        late = refused(service)
        assert (late.json()["code"], late.json()["charge"]) == ("stopping", 0)
        assert int(late.headers["retry-after"]) > 0
        assert not begun.done()
        answer = begun.result()
    assert answer.status_code == 200
    assert service.ended() == 0
    value: float = answer.json()["rows"][0]["value"]
    return value


def test_an_open_question_is_answered_and_a_new_one_is_told_to_come_again(tmp_path: Path) -> None:
    write_office(tmp_path)
    service = Service(tmp_path, ANSWER_AFTER="4s")
    value = stopped(service)
    service.start()
    again = service.ask("ada", f"{COUNT} WHERE n = 4").json()
    assert (again["charge"], again["rows"][0]["value"]) == (0, value)
    assert service.get("otto", "ledger/verify").json()["sound"]
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(service.ask, "ada", f"{COUNT} WHERE n = 5")
        time.sleep(1)
        service.send_signal(signal.SIGINT)
        refused(service)
        assert service.stop(signal.SIGINT) == 0  # a second signal does not wait
        assert begun.exception() is not None or begun.result().status_code >= 500


def test_several_processes_drain_as_one(tmp_path: Path, server: Server) -> None:
    write_office(tmp_path)
    path = tmp_path / "lapras.toml"
    path.write_text(path.read_text().replace('file = "t.ledger"', f"url = {json.dumps(server.url)}"))
    stopped(Service(tmp_path, ANSWER_AFTER="4s", WORKERS="2", ACCOUNTS=server.url))


def test_processes_end_when_the_first_one_was_killed(tmp_path: Path, server: Server) -> None:
    """It can tell them nothing: they see that it is gone, and let end what is open."""
    with psycopg.connect(server.url, autocommit=True) as database:
        database.execute("CREATE DATABASE killed")
    url = server.url.replace("/postgres?", "/killed?")
    write_office(tmp_path)
    path = tmp_path / "lapras.toml"
    path.write_text(path.read_text().replace('file = "t.ledger"', f"url = {json.dumps(url)}"))
    service = Service(tmp_path, ANSWER_AFTER="4s", WORKERS="2", ACCOUNTS=url)
    assert service.get("ada", "schema").status_code == 200
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(service.ask, "ada", f"{COUNT} WHERE n = 4")
        time.sleep(1)
        service.stop(signal.SIGKILL)
        assert begun.result().status_code == 200

    def gone() -> bool:
        try:
            httpx2.get(f"{service.url}/healthz", timeout=60)
        except httpx2.TransportError:
            return True
        return False

    waited(gone)
