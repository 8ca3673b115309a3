"""Running: a desk from configurations, processes that let open requests end before they stop, and the log."""

from __future__ import annotations

import gc
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from laprasdp.config import read_config
from laprasdp.config.config import Config
from laprasdp.config.serving import ACCOUNTS, Serving
from laprasdp.errors import ConfigError, LaprasError
from laprasdp.service.accounts import Accounts
from laprasdp.service.application import JsonLines, application
from laprasdp.service.bucket import Buckets
from laprasdp.service.desk import Desk
from laprasdp.service.door import Door
from laprasdp.service.served import ServedTable

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENVIRONMENT = "LAPRAS_SERVED"  # the files that processes beside the first one read, as JSON


def accounts_of(config: Config, serving: Serving) -> Accounts:
    """Who may do what, in the file or the database that is declared."""
    return Accounts(serving.accounts or config.path.parent / ACCOUNTS)


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
    accounts = accounts_of(configs[0], serving)
    door = Door(accounts, Buckets(serving.rate, serving.burst), tls=serving.tls)
    provider = None
    if serving.oidc is not None:
        from laprasdp.service.identity import IdentityProvider  # the extra `oidc`

        provider = IdentityProvider(serving.oidc, accounts)
    tables = [ServedTable(config, accounts, begin=serving.begin) for config in configs]
    return Desk(tables, accounts, door, serving, provider)


def closed(desk: Desk) -> None:
    """End the sessions and let go of the accounts."""
    for table in desk.tables.values():
        table.close()
    desk.accounts.close()
    desk.threads.shutdown(wait=False)


def run(desk: Desk, sockets: list[socket.socket]) -> None:
    """Serve until a signal; then everything is closed."""
    for number in _SIGNALS:  # uvicorn sends them again once it has ended: by then there is nothing to end
        signal.signal(number, lambda *_: None)
    uvicorn.Server(uvicorn_config(lambda: served(desk), desk.serving)).run(sockets=sockets)


def served(desk: Desk) -> FastAPI:
    """The application of a process that serves nothing else: signals drain it, its end closes the desk."""
    drain_on_signals(desk)
    made = application(desk, at_end=lambda: closed(desk))
    gc.freeze()  # it stays to the end: nobody waits while it is looked through for garbage
    return made


def drain_on_signals(desk: Desk) -> None:
    """
    Have a signal that ends the server refuse what is new, and let end what is open, before it does.

    A second signal does not wait.  Called once the server listens to signals: as it loads its application.
    """

    def drain(end: Callable[[], None]) -> None:
        last = time.monotonic() + desk.serving.drain_seconds
        while desk.open and time.monotonic() < last:
            time.sleep(0.02)
        time.sleep(0.2)  # for whoever asks right now to be told that it stops
        end()

    def on_signal(ends: Any, number: int, frame: FrameType | None) -> None:
        if desk.stopping:
            for _ in range(2):  # the second time, uvicorn waits for nobody
                ends(signal.SIGINT, frame)
            return
        desk.stopping = True
        threading.Thread(target=drain, args=[partial(ends, number, frame)], daemon=True).start()

    for number in _SIGNALS:
        signal.signal(number, partial(on_signal, signal.getsignal(number)))


def check_shared(configs: Sequence[Config], serving: Serving) -> None:
    """
    Whether several processes may serve these tables.

    Raises
    ------
    ConfigError
        A ledger or the accounts are a file: only PostgreSQL is for several.
    """
    places = [config.kept().where for config in configs] + [serving.accounts]
    if not all(isinstance(place, str) for place in places):
        raise ConfigError("several workers need PostgreSQL: give url in [ledger], and accounts in [server]")


def run_workers(paths: Sequence[Path], serving: Serving, sockets: list[socket.socket]) -> None:
    """Serve by several processes on one port, until a signal."""
    os.environ[_ENVIRONMENT] = json.dumps([str(path) for path in paths])
    Multiprocess(uvicorn_config("laprasdp.service.running:from_environment", serving), sockets).run()


def from_environment() -> FastAPI:
    """The application of one of several processes."""
    paths = json.loads(os.environ[_ENVIRONMENT])
    log_to(sys.stderr)
    try:
        configs = [read_config(path) for path in paths]
        desk = opened(configs, configs[0].serving)
    except LaprasError as error:
        print(f"lapras: {error}", file=sys.stderr)
        sys.exit(STARTUP_FAILURE)  # so that it is not begun again and again
    found = served(desk)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the first one passes it on
    threading.Thread(target=_end_with_first, daemon=True).start()
    return found


def _end_with_first() -> None:
    """Once the first process is gone, however it ended, end as it would have told this one to."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os.kill(os.getpid(), signal.SIGTERM)


def uvicorn_config(made: Callable[[], FastAPI] | str, serving: Serving) -> uvicorn.Config:
    """How uvicorn runs; it trusts no header of a proxy, and logs no address with a query."""
    return uvicorn.Config(
        made,
        factory=True,
        workers=serving.workers,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_worker_healthcheck=60,  # seconds: to begin may take some
        timeout_graceful_shutdown=max(1, round(serving.drain_seconds)),
        lifespan="on",
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
