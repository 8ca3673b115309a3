"""What contributors are told is so: limits, tiers, hooks, citation and links agree with the tree."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import laprasdp as lp
from laprasdp import limits

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "laprasdp"
CHECK = (ROOT / "scripts" / "check").read_text()


def test_the_page_of_limits_is_written_from_the_code() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "limits.py"))["page"]()
    assert (ROOT / "docs" / "limits.md").read_text() == page, "it lags: python scripts/limits.py"
    names = {name for name in vars(limits) if name.isupper()}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == names
    assert len(names) >= 15


def test_a_limit_is_read_by_code_and_stated_once() -> None:
    named = re.compile(rf"\b({'|'.join(name for name in vars(limits) if name.isupper())})\b")
    read, elsewhere = set(), set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "limits.py" or not named.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "laprasdp.limits":
                read |= {one.name for one in node.names}
            if isinstance(node, ast.Assign):
                names = {one.id for one in node.targets if isinstance(one, ast.Name)}
                elsewhere |= {(path.name, name) for name in names if named.fullmatch(name)}
    assert read == {name for name in vars(limits) if name.isupper()}
    assert elsewhere <= {("shapes.py", "MAX_LENGTH")}  # of a statement whose shape is kept


def test_tiers_name_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (trusted|trusted numerics|everything else) \| (.+?) \|", text, re.M)
    assert len(rows) == 3
    for _, named in rows:
        for name in re.findall(r"`([\w/]+)`", named):
            places = [SOURCE / name, SOURCE / f"{name}.py", ROOT / name]
            assert any(place.exists() for place in places), name


def test_links_of_the_pages_for_contributors_lead_somewhere() -> None:
    for page in ("CONTRIBUTING.md", "SECURITY.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{page}: {target}"


HOOKS = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text())


def test_hooks_are_local_and_are_what_the_gate_begins_with() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (.+)", text) == ["local"]
    assert re.findall(r"language: (.+)", text) == ["system"] * len(HOOKS)
    gate = re.search(r"^export .+\n((?:(?!#|python).+\n)+)", CHECK, re.M)
    assert gate is not None
    names = len(re.findall(r"pass_filenames: false", text))  # the others are given the changed files for "."
    files = [hook.replace("--force-exclude", ".") for hook in HOOKS[: len(HOOKS) - names]]
    assert [*files, *HOOKS[len(HOOKS) - names :]] == gate[1].splitlines()


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_runs_and_passes(hook: str) -> None:
    tool, *arguments = hook.split()
    files = ["src", "tests"] if "--force-exclude" in arguments else []
    command = [Path(sys.executable).parent / tool, *arguments, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert re.findall(r"^version: (.+)$", text, re.M) == [lp.__version__]
    assert re.findall(r"^license: (.+)$", text, re.M) == [declared["license"]]


def test_coverage_is_of_files_that_are_there() -> None:
    measured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert measured["report"]["fail_under"] >= 90
    for pattern in measured["run"]["include"]:
        assert list(ROOT.glob(pattern)), pattern
    (names,) = re.findall(r"tests/test_\{(.+?)\}\.py", CHECK)
    assert all((ROOT / f"tests/test_{name}.py").exists() for name in names.split(","))
