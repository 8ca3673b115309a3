"""Two tables that differ in one row: all but answers is the same, byte by byte, over HTTP and on pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from office import COUNT, Office, write_office

Told = tuple[int, list[tuple[str, str]], bytes]
STATEMENTS = (
    COUNT, f"{COUNT} WHERE n < 3", "SELECT MAX(n) FROM t", "SELECT COUNT(* FROM", f"{COUNT} WHERE n = 3",
    "SELECT AVG(n) FROM t", f"{COUNT} GROUP BY n",
)  # fmt: skip


def of_both(folder: Path, work: Callable[[Office], list[Told]], row: str) -> list[list[Told]]:
    """What a service tells of a table, and of the same with one row more."""
    told = []
    for name, extra in (("one", ""), ("other", row)):
        (folder / name).mkdir()
        write_office(folder / name, extra)
        office = Office(folder / name)
        office.desk.accounts.clock = lambda: 1e9
        told.append(work(office))
        office.close()
    return told


def of(done: Any) -> Told:
    """Status, headers and body; every browser has a form token of its own, and every token its minute."""
    body = re.sub(rb"20\d\d-\d\d-\d\d \d\d:\d\d", b"-", done.content)
    body = re.sub(rb'(name="form_token" value=")[0-9a-f]{64}"', rb'\1-"', body)
    return done.status_code, sorted(done.headers.items()), body


def programs(office: Office) -> list[Told]:
    own = []
    for statement in STATEMENTS:
        own.append(of(office.price("ada", statement)))
        asked = office.ask("ada", statement)
        if asked.status_code != 200:
            own.append(of(asked))
    for low in range(9):
        asked = office.ask("bot", f"{COUNT} WHERE n = {low} AND m = 'x'")
        if asked.status_code != 200:
            own.append(of(asked))
    own += [of(office.get("ada", path)) for path in ("budget", "plan", "schema", "predictions")]
    return own


def pages(office: Office) -> list[Told]:
    own, client = [], office.client
    for name in ("ada", "bot", "cleo"):
        client.cookies.clear()
        assert client.post("/sign-in", data={"token": office.tokens[name]}).status_code == 303
        if name == "cleo":
            own += [of(client.get(f"/d/t/{page}")) for page in ("budget", "budget?rest=1", "plan", "people")]
            continue
        page = of(client.get("/d/t/ask"))
        own.append(page)
        for headers in ({}, {"HX-Request": "true"}):
            for place, statement in enumerate([*STATEMENTS, *(f"{COUNT} WHERE n > {n}" for n in range(9))]):
                form = {"form_token": token_of(client), "statement": statement}
                own.append(of(client.post("/d/t/ask", data={**form, "act": "price"}, headers=headers)))
                wanted = "1e-6" if place == 1 else ""  # more exact than can be
                asked = client.post("/d/t/ask", data={**form, "max_std": wanted}, headers=headers)
                if b'role="alert"' in asked.content:
                    own.append(of(asked))
        own.append(of(client.get("/d/t/ask")))
    return own


def token_of(client: Any) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get("/d/t/ask").text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("work", [programs, pages])
@pytest.mark.parametrize("row", ["3,x\n", ",<b>y</b>\n"])
def test_neighbours_are_told_apart_by_answers_alone(
    tmp_path: Path, work: Callable[[Office], list[Told]], row: str
) -> None:
    one, other = of_both(tmp_path, work, row)
    assert one == other
    assert any(status == 403 for status, *_ in one) or any(b"Refused" in body for *_, body in one)


def test_an_answer_would_be_seen(tmp_path: Path) -> None:
    """The comparison is of what differs where it may: of values."""
    one, other = of_both(tmp_path, lambda office: [of(office.ask("ada", f"{COUNT} WHERE n = 3"))], "3,x\n")
    assert one != other
