"""Running: a desk from configurations, a server that lets open requests end before it stops, and its log."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from laprasdp.config import read_config
from laprasdp.config.config import Config
from laprasdp.config.serving import Serving
from laprasdp.errors import ConfigError
from laprasdp.service.accounts import Accounts
from laprasdp.service.application import JsonLines, application
from laprasdp.service.bucket import Buckets
from laprasdp.service.desk import Desk
from laprasdp.service.door import Door
from laprasdp.service.served import ServedTable

_ENVIRONMENT = "LAPRAS_SERVED"  # what processes beside the first one serve, as JSON


def opened(configs: Sequence[Config], serving: Serving) -> Desk:
    """
    The desk of some tables, opened.

    Raises
    ------
    ConfigError
        Two tables have one name, or a ledger is in memory.
    """
    names = [config.name for config in configs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two tables are called {twice}: give one another [source] name")
    where = serving.accounts or configs[0].path.parent / "lapras.accounts"
    accounts = Accounts(where)
    door = Door(accounts, Buckets(serving.rate, serving.burst), tls=serving.tls)
    return Desk([ServedTable(config, accounts) for config in configs], accounts, door, serving)


def closed(desk: Desk) -> None:
    """End the sessions and let go of the accounts."""
    for table in desk.tables.values():
        table.close()
    desk.accounts.close()


class Serve(uvicorn.Server):
    """A server that refuses what is new and lets end what is open, for a while, when it is told to stop."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains; a second one does not wait for what is open."""
        if self._desk.stopping:
            self.should_exit = self.force_exit = True
            return
        self._desk.stopping = True
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        end = time.monotonic() + self._desk.serving.drain_seconds
        while self._desk.open and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.2)  # for whoever asks right now to be told that it stops
        self.should_exit = True


def run(desk: Desk, sockets: list[socket.socket]) -> None:
    """Serve until a signal; then everything is closed."""
    server = Serve(uvicorn_config(application(desk), desk.serving), desk)
    try:
        server.run(sockets=sockets)
    finally:
        closed(desk)


def run_workers(paths: Sequence[Path], serving: Serving) -> None:
    """
    Serve by several processes on one port.

    Raises
    ------
    ConfigError
        A ledger or the accounts are a file: only PostgreSQL is for several.
    """
    configs = [read_config(path) for path in paths]
    places = [config.kept().where for config in configs] + [serving.accounts]
    if not all(isinstance(place, str) for place in places):
        raise ConfigError("several workers need PostgreSQL: give url in [ledger], and accounts in [server]")
    served = {"paths": [str(path) for path in paths], "serving": asdict(serving)}
    os.environ[_ENVIRONMENT] = json.dumps(served)
    config = uvicorn.Config(
        "laprasdp.service.running:from_environment",
        factory=True,
        workers=serving.workers,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(serving.drain_seconds)),
        lifespan="off",
    )
    Multiprocess(config, [listening(serving)]).run()


def from_environment() -> FastAPI:
    """The application of one of several processes."""
    served = json.loads(os.environ[_ENVIRONMENT])
    log_to(sys.stderr)
    return application(opened([read_config(path) for path in served["paths"]], Serving(**served["serving"])))


def uvicorn_config(app: FastAPI, serving: Serving) -> uvicorn.Config:
    """How uvicorn runs; it trusts no header of a proxy, and logs no address with a query."""
    return uvicorn.Config(
        app,
        host=serving.host,
        port=serving.port,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(serving.drain_seconds)),
        lifespan="off",
    )


def listening(serving: Serving) -> socket.socket:
    """
    The socket of a service.

    Raises
    ------
    ConfigError
        The address is taken, or none of this machine.
    """
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    # asyncio sends without delay only what says that it is TCP
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((serving.host, serving.port))
        made.listen(2048)  # whoever comes early waits
    except OSError as error:
        made.close()
        raise ConfigError(f"{serving.host}:{serving.port}: {error.strerror or error}") from None
    return made


def log_to(stream: Any, level: int = logging.INFO) -> None:
    """Send the service's log to a stream, a JSON object a line."""
    sent = logging.StreamHandler(stream)
    sent.setFormatter(JsonLines())
    for name in ("laprasdp.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [sent], False
        logger.setLevel(level if name.startswith("laprasdp") else logging.WARNING)
