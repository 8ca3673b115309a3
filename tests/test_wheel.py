"""What a stranger installs: the wheel's files, what it says of itself, and types that a checker believes."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONSUMER = """
from typing import assert_type

import laprasdp as lp

domain = lp.Domain(age=lp.Integers(17, 90), sex=lp.Categories(["Female", "Male"]))
session = lp.open_session("adult.parquet", domain, budget=lp.Budget(epsilon=1.0, delta=1e-6))
assert_type(session, lp.Session)
answer = session.ask("SELECT COUNT(*) FROM adult")
assert_type(answer, lp.Answer | lp.GroupedAnswer | lp.ResultSet)
assert_type(answer.charge, float)
assert_type(lp.Budget(1, 1e-6).mu, float)
"""


def _built(folder: Path, epoch: str = "1700000000") -> dict[str, Path]:
    """Wheel and sdist of this tree by their suffix; nothing is fetched."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env=environment)
    return {made.suffix: made for made in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _built(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: dict[str, Path]) -> Path:
    return built[".whl"]


def test_what_is_published_is_the_same_bytes_again(built: dict[str, Path], tmp_path: Path) -> None:
    again, later = _built(tmp_path / "again"), _built(tmp_path / "later", "1800000000")
    assert built.keys() == again.keys() == {".whl", ".gz"}
    for suffix, made in built.items():
        assert made.read_bytes() == again[suffix].read_bytes()
        assert made.read_bytes() != later[suffix].read_bytes()  # the time is in it: the comparison can fail


def test_the_source_holds_what_its_tests_need(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"Makefile", "constraints.txt", "scripts/check", "tests/test_wheel.py", "docs/conf.py"} <= names
    assert {name for name in names if "__pycache__" in name or name.startswith(("out/", ".venv"))} == set()


def _check(wheel: Path, folder: Path, *, without: str = "", code: str = CONSUMER) -> str:
    """What `mypy --strict` says of a consumer, beside an environment that holds the wheel alone."""
    venv.create(folder / "env", symlinks=True)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site, [name for name in packed.namelist() if name != without])
    (folder / "consumer.py").write_text(code)
    python = ["--python-executable", str(folder / "env/bin/python"), "--cache-dir", str(folder / "cache")]
    checked = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", *python, "consumer.py"]
    return subprocess.run(checked, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_an_installed_wheel_brings_its_types(wheel: Path, tmp_path: Path) -> None:
    assert _check(wheel, tmp_path) == "Success: no issues found in 1 source file\n"


def test_without_the_marker_no_checker_believes_them(wheel: Path, tmp_path: Path) -> None:
    assert "py.typed" in _check(wheel, tmp_path, without="laprasdp/py.typed")


def test_the_wheel_says_who_made_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        says = HeaderParser().parsestr(packed.read(name).decode())
        licences = [name for name in packed.namelist() if "/licenses/" in name]
    assert says["Author"] == "The LAPRAS developers"
    assert says["License-Expression"] == "Apache-2.0"
    assert {Path(name).name for name in licences} == {"LICENSE", "NOTICE"}


def test_the_wheel_holds_what_the_pages_need(wheel: Path) -> None:
    service = ROOT / "src/laprasdp/service"
    wanted = {path.relative_to(ROOT / "src").as_posix() for path in service.glob("static/*")}
    wanted |= {path.relative_to(ROOT / "src").as_posix() for path in service.glob("templates/*")}
    assert {
        "laprasdp/service/static/htmx-4.0.1.min.js",
        "laprasdp/service/static/htmx-4.0.1.LICENSE.txt",
    } <= wanted
    with zipfile.ZipFile(wheel) as packed:
        assert wanted <= set(packed.namelist())
    served = [path.read_text() for path in service.glob("templates/*.html")]
    assert not any(
        "http:" in text or "https:" in text or "<script>" in text or " style=" in text for text in served
    )
