"""Promises about the package as a whole: what it imports, how long its files are, what its documents say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

import laprasdp as lp
from laprasdp import datasets

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
BINARY = {".png", ".parquet", ".gz"}
CONTROL = rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xef\xbb\xbf"
"""Bytes of UTF-8 that nobody sees: control characters but tab and line feed, marks of direction, BOM."""


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("duckdb", "typer", "matplotlib", "ibis", "opendp")
    code = f"import sys, laprasdp; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    touched = code.replace("laprasdp;", "laprasdp; [getattr(laprasdp, n) for n in laprasdp.__all__];")
    result = subprocess.run([sys.executable, "-c", touched], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_is_there_and_documented() -> None:
    for name in lp.__all__:
        assert getattr(lp, name).__doc__, name
    assert set(lp.__all__) <= set(dir(lp))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lp.nothing  # noqa: B018


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_files_are_short_and_open_with_a_sentence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert not text or text.lstrip("r").startswith('"""')


def test_the_only_file_that_touches_opendp() -> None:
    assert [p.name for p in SOURCES if re.search(r"^\s*(import|from) opendp", p.read_text(), re.M)] == [
        "noise.py"
    ]


def test_private_code_never_draws_from_numpy() -> None:
    """Generators are for plans, designs, the demo's queries, draws around what was released, seeded noise."""
    drawing = {
        p.relative_to(ROOT / "src/laprasdp").as_posix() for p in SOURCES if "default_rng" in p.read_text()
    }
    designs = {
        "policy/design.py", "policy/design_product.py", "policy/primm_factored.py", "strategy/search.py"
    }  # fmt: skip
    assert drawing == {
        "stream/plan.py",
        "stream/rehearsal.py",
        "privacy/noise.py",
        "cli/office.py",
        "cli/scene.py",
        "derive/draws.py",
        *designs,
    }


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert code is not None
    scope: dict[str, object] = {}
    exec(code[1], scope)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("}")[0] for line in printed] == ["{'sex': 'Female'", "{'sex': 'Male'"]
    answer = scope["answer"]
    assert isinstance(answer, lp.Answer)
    assert answer.source == "predicted"
    exact = duckdb.read_parquet(str(datasets.path("adult"))).filter("age BETWEEN 30 AND 39").shape[0]
    assert abs(answer.value - exact) < 6 * answer.std


def test_numeric_libraries_are_pinned_to_ranges_and_constraints_are_plain() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in ("numpy", "scipy", "sqlglot", "duckdb"):
        assert any(re.match(rf"{name}>=[\d.]+,<[\d.]+$", d) for d in project["dependencies"]), name
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_no_source_has_a_control_character() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in tracked.stdout.split("\0") if name]
    texts = {name: (ROOT / name).read_bytes() for name in names if Path(name).suffix not in BINARY}
    assert len(texts) > 200
    found = [name for name, text in texts.items() if re.search(CONTROL, text)]
    assert found == []
    assert re.search(CONTROL, rb"\mu\," + b"\x0crac") and re.search(CONTROL, "\u200b\u202e".encode())  # noqa: PT018
