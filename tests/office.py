"""A service over a small table, and somebody of each role with a token; shared by its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from laprasdp.config import read_config
from laprasdp.config.serving import Serving
from laprasdp.service.application import application
from laprasdp.service.desk import Desk
from laprasdp.service.running import closed, opened

COUNT = "SELECT COUNT(*) FROM t"
PEOPLE = {
    "ada": ("analyst", None),
    "ben": ("analyst", 0.3),
    "cleo": ("curator", None),
    "otto": ("auditor", None),
}
PEOPLE |= {"bot": ("service", 0.2)}
SMALL = """
[source]
file = "t.csv"
[privacy]
epsilon = 1.0
delta = 1e-6
[stream]
horizon = 10
release = "gaussian"
predictions = ["SELECT COUNT(*) FROM t"]
[ledger]
file = "t.ledger"
[domain.n]
type = "integers"
min = 0
max = 9
nullable = true
[domain.m]
type = "categories"
values = ["x", "<b>y</b>"]
"""


def write_office(folder: Path, extra_row: str = "", more: str = "") -> Path:
    """A table of 70 rows and its `lapras.toml`; `extra_row` makes a neighbour of it."""
    rows = "".join(f"{i % 7},{'x' if i % 3 else '<b>y</b>'}\n" for i in range(70))
    (folder / "t.csv").write_text(f"n,m\n{rows}{extra_row}")
    path = folder / "lapras.toml"
    path.write_text(SMALL + more)
    return path


class Office:
    """An open service; `ask` and `get` speak for somebody by name."""

    def __init__(self, folder: Path, *, serving: Serving | None = None) -> None:
        path = folder / "lapras.toml"
        config = read_config(path if path.exists() else write_office(folder))
        self.config, self.serving = config, serving or Serving(rate=1e5, burst=100_000)
        self.tokens: dict[str, str] = {}
        self.open()

    def open(self) -> None:
        """Open it, also again after `close`."""
        self.desk: Desk = opened([self.config], self.serving)
        for name, (role, cap) in PEOPLE.items():
            if self.desk.accounts.named(name) is None:
                self.desk.accounts.add(name, role, cap)
                self.tokens[name] = self.desk.accounts.issue(name, "test")
        self.client = TestClient(
            application(self.desk), raise_server_exceptions=False, follow_redirects=False
        )

    def close(self) -> None:
        self.client.close()
        closed(self.desk)

    def get(self, name: str, path: str, **more: Any) -> Any:
        return self.send(name, "GET", path, **more)

    def ask(self, name: str, statement: str, *, headers: dict[str, str] | None = None, **more: Any) -> Any:
        return self.send(name, "POST", "ask", json={"statement": statement, **more}, headers=headers)

    def price(self, name: str, statement: str, **more: Any) -> Any:
        return self.send(name, "POST", "price", json={"statement": statement, **more})

    def send(self, name: str, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[name]}", **(more.pop("headers", None) or {})}
        return self.client.request(method, f"/api/v1/{path}", headers=headers, **more)
