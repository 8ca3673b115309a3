"""The service under load: asks a second and latency beside asks in process, and what kill -9 loses."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from laprasdp.config import read_config
from tests.postgres import Server

SIZE = 3_000
CLIENTS = (1, 8, 64)
_KILLS = 20  # of one ledger, which takes some seconds to open again when it has become long
_WHOLE = 60.0  # seconds of load
SETTINGS = """
[source]
file = "t.csv"
[privacy]
epsilon = 1.0
delta = 1e-6
[stream]
policy = "independent"
horizon = 1_000_000
[ledger]
{ledger}
[server]
rate = 1e6
burst = 1_000_000
{accounts}
[domain.n]
type = "integers"
min = 0
max = 2999
"""


def rows(*, full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    One row a ledger, number of workers, number of clients and kind of statement.

    Parameters
    ----------
    full : bool
        Kill the server 200 times, not 20.
    quick : bool
        10 s each, 5 kills, and one after the load of each ledger instead of one for each row.

    Yields
    ------
    dict
        `lost` answers were shown and are others after kill -9; of `doubled` statements one was charged twice.
    """
    seconds = 10.0 if quick else _WHOLE
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="lapras-bench-")))
        yield from _of_ledger(folder, "sqlite", None, (1,), seconds)
        yield _killed(folder / "killed", 200 if full else 5 if quick else 20)
        server = _postgres(ends)
        if server is not None:
            yield from _of_ledger(folder, "postgresql", server, (1, 2), seconds)


def _of_ledger(
    folder: Path, ledger: str, url: str | None, workers: tuple[int, ...], seconds: float
) -> Iterator[dict[str, Any]]:
    for several in workers:
        here = folder / f"{ledger}{several}"
        written(here, url, f"bench{several}")
        alone: dict[str, float] = {}
        with Served(here, several) as service:
            place, loads = count(1), list[Load]()
            for clients in CLIENTS:
                for kind in ("new", "repeated"):
                    load, around = Load(service, clients, kind, place), list[float]()
                    if kind not in alone:
                        around.append(_in_process(here, kind, seconds / 12, place))
                    load.run(seconds)
                    if kind not in alone:  # before and after: a machine that is shared is not always as fast
                        around.append(_in_process(here, kind, seconds / 12, place))
                        alone[kind] = sum(around) / 2
                    loads.append(load)
                if seconds < _WHOLE and clients != CLIENTS[-1]:
                    continue  # for some seconds, one kill is enough
                service.kill()
                service.start()
                doubled = service.doubled()
                for load in loads:
                    yield {
                        "ledger": ledger, "workers": several, "clients": load.clients, "kind": load.kind,
                        **load.row(seconds), "in_process_p50_ms": alone[load.kind],
                        "lost": load.lost(), "doubled": doubled,
                    }  # fmt: skip
                loads.clear()


def _killed(folder: Path, times: int) -> dict[str, Any]:
    """What kill -9 under load loses; after `_KILLS` of them a new ledger is begun."""
    start, kills, doubled = time.monotonic(), range(times), 0
    lost = shown = errors = 0
    latencies: list[float] = []
    for ledger, first in enumerate(kills[::_KILLS]):
        here, place = folder / str(ledger), count()
        written(here, None, "killed")
        with Served(here, 1) as service:
            for _ in kills[first : first + _KILLS]:
                load = Load(service, 8, "new", place)
                load.begin()
                time.sleep(1.5)
                service.kill()
                load.end()
                service.start()
                lost, shown = lost + load.lost(), shown + len(load.shown)
                errors += sum(status != 200 for status in load.statuses)
                latencies += load.latencies
            doubled += service.doubled()
    ordered = sorted(latencies) or [0.0]
    return {
        "ledger": "sqlite", "workers": 1, "clients": 8, "kind": f"new, {times} times kill -9",
        "asks_per_second": shown / (time.monotonic() - start), "p50_ms": ordered[len(ordered) // 2],
        "p99_ms": ordered[len(ordered) * 99 // 100], "errors": errors, "in_process_p50_ms": None,
        "lost": lost, "doubled": doubled,
    }  # fmt: skip


def written(folder: Path, url: str | None, dataset: str) -> None:
    """A table of two rows a level and its lapras.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "t.csv").write_text("n\n" + "".join(f"{n}\n{n}\n" for n in range(SIZE)))
    ledger = f'url = "{url}"\ndataset = "{dataset}"' if url else 'file = "t.ledger"'
    accounts = f'accounts = "{url}"' if url else ""
    (folder / "lapras.toml").write_text(SETTINGS.format(ledger=ledger, accounts=accounts))


def statement(place: int) -> str:
    """A range of its own for each of four million places."""
    low = place % SIZE
    high = low + (place // SIZE * 7919 + low) % (SIZE - low)
    return f"SELECT COUNT(*) FROM t WHERE n BETWEEN {low} AND {high}"


def _in_process(folder: Path, kind: str, seconds: float, places: count[int]) -> float:
    """Median latency of a session on the same ledger, in ms, while nobody else asks."""
    with read_config(folder / "lapras.toml").open() as session:
        session.ask(statement(0))
        latencies, end = [], time.monotonic() + seconds
        while True:
            text = statement(next(places) if kind == "new" else 0)
            start = time.perf_counter()
            session.ask(text)
            latencies.append(1000 * (time.perf_counter() - start))
            if time.monotonic() > end:
                return sorted(latencies)[len(latencies) // 2]


class Served:
    """`lapras serve` in a process of its own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._workers, self.port = folder, workers, 0
        self.tokens: dict[str, str] = {}

    def __enter__(self) -> Served:
        for name, role in (("ada", "analyst"), ("otto", "auditor")):
            command = [sys.executable, "-m", "laprasdp", "token", name, "--role", role]
            made = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=True)
            self.tokens[name] = made.stdout.strip()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.port = self.port or _free_port()
        command = [sys.executable, "-m", "laprasdp", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--workers", str(self._workers)], cwd=self._folder, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError, http.client.HTTPException):
                if self.request("GET", "/readyz")[0] == 200:
                    return
            time.sleep(0.02)
        raise RuntimeError("the service does not start")

    def kill(self) -> None:
        """End it and its workers without a warning."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def request(self, method: str, path: str, name: str = "ada") -> tuple[int, Any]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers={"Authorization": f"Bearer {self.tokens[name]}"})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def doubled(self) -> int:
        """Statements that were charged more than once."""
        charged: Counter[str] = Counter()
        before = ""
        while True:
            _, body = self.request("GET", f"/api/v1/answers?limit=1000{before}", "otto")
            page = json.loads(body)
            charged.update(one["statement"] for one in page["answers"] if one["charge"])
            if not page["more"]:
                return sum(times > 1 for times in charged.values())
            before = f"&before={page['answers'][-1]['position']}"


@dataclass
class Load:
    """
    Clients that ask, each as soon as it is answered.

    Attributes
    ----------
    shown : dict of statement to value
    latencies : list of float
        In ms, of what was answered.
    statuses : list of int
        0 where the connection was lost.
    """

    service: Served
    clients: int
    kind: str
    place: count[int]
    shown: dict[str, float] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Ask for a while."""
        self.begin()
        time.sleep(seconds)
        self.end()

    def begin(self) -> None:
        """Start the clients."""
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._client) for _ in range(self.clients)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each end what it has asked."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def row(self, seconds: float) -> dict[str, Any]:
        """The figures."""
        ordered = sorted(self.latencies) or [0.0]
        return {
            "asks_per_second": len(self.latencies) / seconds,
            "p50_ms": ordered[len(ordered) // 2],
            "p99_ms": ordered[len(ordered) * 99 // 100],
            "errors": sum(status != 200 for status in self.statuses),
        }

    def lost(self) -> int:
        """Answers that were shown and are not what is answered now, for nothing; of at most 200 of them."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        asked = list(self.shown.items())
        wrong = 0
        for text, value in asked[:: max(len(asked) // 200, 1)]:
            _, found = self._ask(connection, text)
            wrong += found is None or found["rows"][0]["value"] != value or found["charge"] != 0
        connection.close()
        return wrong

    def _client(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        while not self._stop.is_set():
            text = statement(0 if self.kind == "repeated" else next(self.place))
            start = time.perf_counter()
            try:
                status, found = self._ask(connection, text)
            except (OSError, http.client.HTTPException):
                break  # it was killed: what was not shown is not lost
            self.statuses.append(status)
            if found is not None:
                self.latencies.append(1000 * (time.perf_counter() - start))
                self.shown[text] = found["rows"][0]["value"]
        connection.close()

    def _ask(self, connection: http.client.HTTPConnection, text: str) -> tuple[int, Any]:
        headers = {
            "Authorization": f"Bearer {self.service.tokens['ada']}", "Content-Type": "application/json"
        }  # fmt: skip
        connection.request("POST", "/api/v1/ask", json.dumps({"statement": text}), headers)
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if response.status == 200 else None


def _free_port() -> int:
    import socket

    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def _postgres(ends: ExitStack) -> str | None:
    """The address of a PostgreSQL of our own, if one can be started here."""
    try:
        server = Server()
    except (ImportError, OSError, subprocess.SubprocessError):
        return None
    ends.callback(server.remove)
    return server.url
