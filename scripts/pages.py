"""Runs what a page of the documentation shows, and holds it against what the page says comes of it.

A fence of a page begins with a language and, after a space, a word more:

- ``python`` is run; what it prints has to stand in a ``text`` block behind it;
- ``console``: lines after ``$`` are commands, the lines below each are what it prints; a line ``…`` stands
  for any lines, and where nothing is shown the command has to succeed;
- any other language with a file name, as in ``toml lapras.toml``, writes that file;
- ``noisy`` behind ``text`` or ``console``: numbers need not be the same, all else does.

``python scripts/pages.py PAGE…`` writes anew what is printed.  Nothing else of a page changes.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

NUMBER = re.compile(r"\b[0-9a-f]{64}\b|[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?")
ESTIMATE = re.compile(r"(\babout\s+)[\d,.]*\d")
SURROUNDINGS = {"COLUMNS": "110", "NO_COLOR": "1", "MPLBACKEND": "Agg"}
INSTALLS = ("pip", "uvx")
"""Commands that are shown and not run: they fetch."""

_FENCES = RawFencedCodeBlockLexer(re.compile(r"(?P<info>[^\n]*)\n"))


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, the word behind that, its text, and where the text begins."""

    language: str
    word: str
    text: str
    start: int
    prefix: str = ""


def fences(document: Document) -> Iterator[Region]:
    """Every fenced block of a page in order, as Sybil wants them."""
    for region in _FENCES(document):
        language, _, word = region.lexemes["info"].strip().partition(" ")
        source = region.lexemes["source"]
        start = region.start + source.offset
        fence = Fence(language, word.strip(), str(source), start)
        yield Region(region.start, region.end, fence, evaluate)


def evaluate(example: Example) -> str | None:
    """What is wrong with one block, or None."""
    fence, namespace = example.parsed, example.namespace
    printed = namespace.setdefault("printed of", {})
    waiting = namespace.pop("waiting", None)
    if waiting is not None and fence.language != "text":
        return f"what is printed is not shown:\n{waiting}"
    if fence.language == "python":
        namespace["waiting"] = _here(_python(fence.text, example.namespace)) or None
        return None
    if fence.language == "text":
        if waiting is None:
            return "this text comes of nothing"
        printed[fence.start] = (fence, _again(fence.text, waiting))
        return compare(fence.text, waiting, noisy=fence.word == "noisy")
    if fence.language == "console":
        shown = [
            (command, output, _here(_console(command, quiet=not output)))
            for command, output in commands(fence.text)
        ]
        written = (f"$ {command}\n" + (output and _again(output, found)) for command, output, found in shown)
        printed[fence.start] = (fence, "".join(written))
        faults = [compare(output, found, noisy=fence.word == "noisy") for _, output, found in shown if output]
        return "\n".join(filter(None, faults)) or None
    if fence.word:
        Path(fence.word).write_text(fence.text, encoding="utf-8")
        return None
    return f"a block of {fence.language or 'nothing'} has no file name: nothing would test it"


def compare(shown: str, found: str, *, noisy: bool = False) -> str | None:
    """What differs, or None: a line ``…`` stands for any lines, a number behind *about* for any number."""
    shown, found = (shape(text) if noisy else ESTIMATE.sub(r"\1#", text) for text in (shown, found))
    wanted = [re.escape(line.rstrip()) for line in shown.strip("\n").splitlines()]
    pattern = "\n".join("(?:.*\n)*?.*" if line == "…" else line for line in wanted)
    told = "\n".join(line.rstrip() for line in found.strip("\n").splitlines())
    return None if re.fullmatch(pattern, told) else f"shown:\n{shown}\nfound:\n{found}"


def shape(text: str) -> str:
    """A text without its numbers, bars and the widths of its columns."""
    lines = (NUMBER.sub("#", re.sub("[▇█░━─]+", "", line)) for line in text.splitlines())
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in lines)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.strip("\n")


def _again(shown: str, found: str) -> str:
    """What was printed, of which a page that has a line ``…`` shows as much at either end as before."""
    lines = [line.rstrip() for line in found.strip("\n").splitlines()]
    if "…" in (before := shown.strip("\n").splitlines()):
        head, tail = before.index("…"), len(before) - before.index("…") - 1
        lines = [*lines[:head], "…", *lines[len(lines) - tail :]]
    return "".join(f"{line}\n" for line in lines)


def _python(text: str, namespace: dict[str, Any]) -> str:
    """What a block prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "<page>", "exec"), namespace)
    return out.getvalue()


def _here(text: str) -> str:
    """A text without the folder where a page is run."""
    return text.replace(f"{Path.cwd()}/", "")


def _console(command: str, *, quiet: bool) -> str:
    """What a command prints, `lapras` in this process where no shell is needed."""
    words = shlex.split(command, comments=True)
    if words[0] in INSTALLS:
        return ""
    if words[0] == "lapras" and not re.search(r"[|<>] ", command):
        return _lapras(words[1:], quiet=quiet)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"$ {command}\n{done.stdout}")
    return done.stdout


def _lapras(arguments: list[str], *, quiet: bool) -> str:
    from laprasdp.cli.app import app

    code: Any = 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            app(arguments, prog_name="lapras")
        except SystemExit as end:
            code = end.code or 0
    told = out.getvalue()
    refused = code == 1 and not quiet and re.search("^(lapras|line [0-9]+): ", told, re.M)
    if code and not refused:
        raise AssertionError(f"$ lapras {shlex.join(arguments)} ended with {code}\n{told}")
    return told


def run(
    page: Path, names: Mapping[str, str] | None = None, *, pictures: Path | None = None
) -> tuple[list[str], str]:
    """
    Run a page in a new folder.

    Parameters
    ----------
    page : Path
    names : mapping, optional
        What stands on the page for what is really there, such as a server's address.
    pictures : Path, optional
        Where pictures are kept that it draws.

    Returns
    -------
    (list of str, str)
        What is wrong, by line; and the page with what was printed this time.
    """
    names, examples = names or {}, Path(__file__).parent.parent / "examples"
    text = page.read_text(encoding="utf-8")
    for name, real in names.items():
        text = text.replace(name, real)
    faults, namespace = [], {}
    before = Path.cwd(), os.environ.copy()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "page", page.name)
        copy.parent.mkdir()
        copy.write_text(text, encoding="utf-8")
        os.chdir(copy.parent)
        os.environ.update(SURROUNDINGS)
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        Path("examples").symlink_to(examples)
        try:
            document = Sybil([fences], encoding="utf-8").parse(copy)
            document.namespace = namespace
            for example in document.examples():
                fault = evaluate(example)
                if fault is not None:
                    faults.append(f"{page.name}:{example.line}: {fault}")
            for drawn in Path.cwd().glob("*.png") if pictures else ():
                shutil.copy(drawn, pictures)
            if namespace.get("waiting"):
                faults.append(f"{page.name}: what is printed last is not shown")
        finally:
            os.chdir(before[0])
            os.environ.clear()
            os.environ.update(before[1])
    return faults, _written(text, namespace.get("printed of", {}), names)


def _written(text: str, printed: Mapping[int, tuple[Fence, str]], names: Mapping[str, str]) -> str:
    for start, (fence, found) in sorted(printed.items(), reverse=True):
        text = text[:start] + found + text[start + len(fence.text) :]
    for name, real in names.items():
        text = text.replace(real, name)
    return text


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        told, again = run(Path(argument))
        print(f"{argument}: {len(told)} differences", *told, sep="\n")
        Path(argument).write_text(again, encoding="utf-8")
