"""The site builds strictly, twice the same, asks nobody for anything, and has every public name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import laprasdp as lp
from laprasdp.config.serving import Serving

ROOT = Path(__file__).parent.parent


def built(folder: Path) -> dict[str, bytes]:
    """Every file of the site, by its name; a warning of Sphinx is an error."""
    site = folder / "site"
    for command in (
        ["-m", "sphinx", "-q", "-E", "-W", "-b", "html", "-d", str(folder / "trees"), "docs", str(site)],
        ["scripts/llms.py", str(site)],
    ):
        made = subprocess.run(
            [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr
    return {p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tmp_path_factory.mktemp("once"))


def test_two_builds_are_the_same_bytes(site: dict[str, bytes], tmp_path: Path) -> None:
    again = built(tmp_path)
    assert {name for name in site if site[name] != again.get(name)} == set()
    assert site.keys() == again.keys()


def test_a_page_asks_nobody_for_anything(site: dict[str, bytes]) -> None:
    foreign = re.compile(
        rb"""(?:src|srcset)=["']?(?:https?:)?//|<link[^>]*href=["'](?:https?:)?//|url\(["']?(?:https?:)?//|@import"""
    )
    asking = {
        name for name, text in site.items() if name.endswith((".html", ".css")) and foreign.search(text)
    }
    assert asking == set()
    assert foreign.search(b'<script src="https://cdn.example/x.js">')  # it would be found


def test_every_public_name_has_a_place(site: dict[str, bytes]) -> None:
    page = site["api.html"].decode()
    assert {name for name in lp.__all__ if f'id="laprasdp.{name}"' not in page} == set()
    assert 'id="laprasdp.Nobody"' not in page


def members() -> Iterator[tuple[type, str]]:
    """What a program may use of each public class: methods, properties and fields."""
    for name in lp.__all__:
        kind = getattr(lp, name)
        if isinstance(kind, type):
            yield from ((kind, member) for member in vars(kind) if not member.startswith("_"))


def test_every_public_member_has_a_place(site: dict[str, bytes]) -> None:
    page = site["api.html"].decode()
    for_the_house = {"kind", "simulation"}  # by which modules tell the kinds apart
    missing = {
        f"{kind.__name__}.{member}"
        for kind, member in members()
        if f'id="laprasdp.{kind.__name__}.{member}"' not in page  # a parameter stands in the class's entry
        and not re.search(rf"^\s*(\w+, )*{member}\b.* : ", inspect.getdoc(kind) or "", re.M)
        and member not in for_the_house
    }
    assert missing == set()
    assert 'id="laprasdp.Session.nothing"' not in page


def test_every_key_of_the_file_and_every_code_of_an_error_has_a_place() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/laprasdp/config").glob("*.py"))
    read = set(re.findall(r'\.take\(\s*"(\w+)"', code)) | {one.name for one in dataclasses.fields(Serving)}
    read.remove("oidc")  # a section
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    shown = re.search(r"## lapras.toml.*?```toml\n(.*?)```", page, re.S)
    assert shown is not None
    keys = set(re.findall(r"\b(\w+) = ", shown[1]))
    assert len(read) > 35
    assert read - keys == set()
    errors = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    told = set(re.findall(r'refusal\("([a-z-]+)"', (ROOT / "src/laprasdp/cli/app.py").read_text()))
    assert told >= {"file", "interrupted"}
    assert {name for name in told if f"`{name}`" not in errors} == set()


def test_programs_find_every_page(site: dict[str, bytes]) -> None:
    listed = set(re.findall(r"\]\(([^)]+\.html)\)", site["llms.txt"].decode()))
    pages = {name for name in site if name.endswith(".html")}
    assert pages - listed == {"index.html", "genindex.html", "search.html"}
    assert listed <= pages
