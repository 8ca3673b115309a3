"""The path of somebody who has only the wheel: every step of two tutorials, in a new environment, timed.

``python scripts/stranger.py dist/*.whl`` makes a virtual environment in an empty folder, installs the wheel
where the pages say ``pip install lapras-dp``, and runs the blocks of both pages in order: a first answer, an
own CSV file, a budget that outlives its process, and a service, whose first page is opened in Chromium if it
is there.  A step that fails ends it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
PAGES = ("first-answer", "a-service-for-a-team")
FENCE = re.compile(r"^```(\w+) ?(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
INSTALL = re.compile(r'^pip install "?lapras-dp(\[\w+\])?"?')
SURVIVES = ("console", "", "$ lapras budget\n")
"""Asked by a new process between the pages."""


def steps() -> Iterator[tuple[str, str, str]]:
    """Every block of the pages in order: its language, the word behind that, its text."""
    for name in PAGES:
        yield from FENCE.findall((TUTORIALS / f"{name}.md").read_text(encoding="utf-8"))
        yield SURVIVES


def walk(wheel: str) -> None:
    """Run them in the folder and the interpreter that we are in."""
    begun, names = time.monotonic(), dict[str, Any]()

    def tell(step: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {step}", flush=True)

    for language, word, text in steps():
        if language == "python":
            known = "url" in names
            with contextlib.redirect_stdout(io.StringIO()):
                exec(text, names)
            tell(next(line for line in text.splitlines() if line and not line.startswith(("import", "from"))))
            if "url" in names and not known:
                tell(f"the service's first page, by {opened(names['url'])}")
        elif language == "console":
            for command in re.findall(r"^\$ (.+)$", text, re.M):
                real = INSTALL.sub(lambda found: f"pip install -q '{wheel}{found[1] or ''}'", command)
                shell = ["bash", "-euo", "pipefail", "-c", real]
                subprocess.run(shell, check=True, stdout=subprocess.DEVNULL)
                tell(f"$ {command}")
        elif language != "text":
            Path(word).write_text(text, encoding="utf-8")
            tell(f"{word} written")


def opened(url: str) -> str:
    """Open a page, and say by what."""
    browser = shutil.which("chromium")
    if browser is None:
        with urllib.request.urlopen(url) as reply:
            page, name = reply.read().decode(), "urllib"
    else:
        command = [browser, "--headless", "--no-sandbox", "--dump-dom", url]
        page, name = subprocess.run(command, check=True, capture_output=True, text=True).stdout, "Chromium"
    if "<form" not in page:
        raise SystemExit(f"no page to sign in: {page[:200]}")
    return name


def main(wheel: str, *inside: str) -> None:
    """Walk in a new environment; `inside` says that this is it."""
    if inside:
        return walk(wheel)
    with tempfile.TemporaryDirectory(prefix="stranger-") as folder:
        place = Path(folder, "venv")
        venv.create(place, with_pip=True)
        around = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
        around.pop("PYTHONPATH", None)
        there = Path(folder, "here")
        there.mkdir()
        paths = (place / "bin" / "python", Path(__file__).resolve(), Path(wheel).resolve())
        sys.exit(subprocess.run([*map(str, paths), "inside"], cwd=there, env=around).returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
