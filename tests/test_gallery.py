"""The gallery's notebooks are made from its pages, run to their ends, print what the pages show, and draw."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "scripts"))

import gallery  # noqa: E402
import pages  # noqa: E402

PAGES = sorted((ROOT / "docs/gallery").glob("*.md"))


def differences(page: str, name: str, folder: Path) -> list[str]:
    """What a page shows that a new kernel does not print, cell by cell."""
    made = nbformat.reads(gallery.notebook(page), as_version=4)
    kinds = [kind for kind, _ in gallery.BLOCK.findall(page) if kind != "python"]
    shown = [
        (place, "".join(cell.outputs[0].text), kinds.pop(0) == "text noisy")
        for place, cell in enumerate(made.cells)
        if cell.cell_type == "code" and cell.outputs
    ]
    places = {place for place, *_ in shown}
    NotebookClient(made, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    found = {
        place: "".join(one.text for one in cell.outputs if one.output_type == "stream")
        for place, cell in enumerate(made.cells)
        if cell.cell_type == "code"
    }
    faults = [pages.compare(text, found[place], noisy=noisy) for place, text, noisy in shown]
    faults += [f"not shown: {text}" for place, text in found.items() if text and place not in places]
    if not (folder / f"{name}.png").exists():
        faults.append("no picture")
    return [fault for fault in faults if fault is not None]


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and kernels that keep their files there."""
    for name, value in pages.SURROUNDINGS.items():
        monkeypatch.setenv(name, value)
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_a_case_runs_and_draws_its_picture(page: Path, surroundings: Path) -> None:
    faults = differences(page.read_text(encoding="utf-8"), page.stem, surroundings)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_a_notebook_is_made_from_its_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.with_suffix(".ipynb").read_text(encoding="utf-8") == gallery.notebook(text), (
        "it lags: python scripts/gallery.py"
    )
    nbformat.validate(nbformat.reads(gallery.notebook(text), as_version=4))
    (picture,) = re.findall(r"!\[.+\]\((.+)\)", text)
    assert (page.parent / picture).read_bytes().startswith(b"\x89PNG")
    assert Path(picture).stem == page.stem


def test_there_are_eight_cases() -> None:
    assert len(PAGES) == 8


def test_a_case_that_lags_is_found(surroundings: Path) -> None:
    page = "# Case\n\n```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\n```python\nprint('more')\n```\n"
    faults = differences(page.replace("42", "43"), "none", surroundings)
    assert [fault.partition(":")[0] for fault in faults] == ["shown", "not shown", "no picture"]
