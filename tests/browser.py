"""A real Chromium, and a service in a process of its own for it; shared by the tests of the pages."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from laprasdp.service.accounts import Accounts

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROLES = {"ada": "analyst", "ben": "analyst", "cleo": "curator", "otto": "auditor"}


def needs_browser() -> Any:
    """Skips where there is no browser, and says what to install."""
    missing = [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
    reason = f"{', '.join(missing)} is not installed" if missing else "no chromium: apt-get install chromium"
    return pytest.mark.skipif(bool(missing) or CHROMIUM is None, reason=reason)


class Service:
    """`lapras serve` over the table of `office`, in a process of its own; `settings` are of [server]."""

    def __init__(self, folder: Path, **settings: str) -> None:
        given = {"RATE": "1000", "BURST": "10000", **settings}
        self._folder, self._settings = folder, {f"LAPRAS_SERVER_{name}": text for name, text in given.items()}
        accounts = Accounts(settings.get("ACCOUNTS") or folder / "lapras.accounts")
        for name, role in ROLES.items():
            accounts.add(name, role)
        self.tokens = {name: accounts.issue(name, "test") for name in ROLES}
        accounts.close()
        self.port = int(settings.get("PORT", "0"))
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with open(self._folder / "log", "a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "laprasdp", "serve", "--port", str(self.port)],
                cwd=self._folder, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **self._settings},
            )  # fmt: skip
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise AssertionError((self._folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.send_signal(how)
        return self.ended()

    def send_signal(self, how: signal.Signals) -> None:
        self._process.send_signal(how)

    def ended(self) -> int:
        """How it ended."""
        code = self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def ask(self, name: str, statement: str, **more: Any) -> Any:
        """Ask over HTTP, as a program does."""
        import httpx2

        return httpx2.post(
            f"{self.url}/api/v1/ask", headers={"Authorization": f"Bearer {self.tokens[name]}"},
            json={"statement": statement, **more}, timeout=60,
        )  # fmt: skip

    def get(self, name: str, path: str) -> Any:
        import httpx2

        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx2.get(f"{self.url}/api/v1/{path}", headers=headers, timeout=60)


class Browser:
    """One Chromium; each `enter` is a browser of its own, which hears of all complaints and requests."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.complaints: list[str] = []
        self.requests: list[str] = []

    @contextlib.contextmanager
    def fresh(self, **options: Any) -> Iterator[Any]:
        """A page of nobody who is signed in."""
        context = self._chromium.new_context(**options)
        page = context.new_page()
        page.on("console", lambda told: self.complaints.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        try:
            yield page
        finally:
            context.close()

    @contextlib.contextmanager
    def enter(self, service: Service, token: str, **options: Any) -> Iterator[Any]:
        """A page of whom a token lets in."""
        with self.fresh(**options) as page:
            page.goto(f"{service.url}/sign-in")
            page.fill("#token", token)
            page.click("main button")
            page.wait_for_url("**/d/**")
            yield page


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Browser(started)
        started.close()


def waited(what: Any, seconds: float = 20.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
