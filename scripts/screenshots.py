"""Draws the pages of the service: `python scripts/screenshots.py docs/images/service`; needs Chromium."""

from __future__ import annotations

import io
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from laprasdp.service.demonstration import prepare

PEOPLE = {
    "ada": ("analyst", "0.8"),
    "ben": ("analyst", "0.3"),
    "cleo": ("curator", None),
    "otto": ("auditor", None),
}
LATE = "SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 60"


def main(out: Path) -> None:
    """Serve the demonstration's table and walk through the pages."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        command = [sys.executable, "-m", "laprasdp"]
        tokens = {}
        for who, (role, cap) in PEOPLE.items():
            more = [] if cap is None else ["--cap", cap]
            made = subprocess.run(
                [*command, "token", who, "--role", role, *more],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            tokens[who] = made.stdout.strip()
        served = subprocess.Popen(
            [*command, "serve", "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert served.stdout is not None
            (url,) = re.findall(r"on (http://\S+);", served.stdout.readline())
            walk(url, tokens, out)
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait()


def walk(url: str, tokens: dict[str, str], out: Path) -> None:
    """Ask, look, and draw."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def enter(who: str, **options: Any) -> Any:
            page = browser.new_context(viewport={"width": 1040, "height": 640}, **options).new_page()
            page.goto(f"{url}/sign-in")
            page.fill("#token", tokens[who])
            page.click("main button")
            page.wait_for_url("**/d/**")
            return page

        def ask(page: Any, statement: str, button: str = "main button.main") -> None:
            page.evaluate("document.getElementById('told').innerHTML = ''")
            page.fill("#statement", statement)
            page.click(button)
            page.wait_for_selector("#told .sheet")

        ada = enter("ada")
        ask(ada, f"{LATE} AND DISTANCE < 600", "text=Show the price")
        draw(ada, out / "price.png")
        ask(ada, f"{LATE} AND DISTANCE < 600")
        ask(ada, LATE)
        ask(ada, f"{LATE} GROUP BY UNIQUE_CARRIER")
        draw(ada, out / "ask.png")
        ada.click("nav >> text=History")
        draw(ada, out / "history.png")
        ada.click("nav >> text=Plan")
        ada.click("text=Work it out")
        ada.wait_for_selector("#curve svg", timeout=300_000)
        draw(ada, out / "plan.png")
        ben = enter("ben")
        ask(ben, "SELECT COUNT(*) FROM flights WHERE ARR_DELAY IS NULL")
        cleo = enter("cleo")
        cleo.click("text=Work it out")
        cleo.wait_for_selector("#rest table", timeout=300_000)
        draw(cleo, out / "budget.png")
        cleo.click("nav >> text=People")
        draw(cleo, out / "people.png")
        otto = enter("otto", color_scheme="dark")
        otto.click("text=Verify it")
        otto.wait_for_selector("#verified .figure")
        draw(otto, out / "audit.png")
        browser.close()


def draw(page: Any, path: Path) -> None:
    """The whole page, in few colours."""
    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    image.quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
