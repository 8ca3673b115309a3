"""Makes the gallery's notebooks and pictures from its pages, whose code is run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pages

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(python|text(?: noisy)?)\n(.*?)^```\n", re.M | re.S)


def notebook(page: str) -> str:
    """
    The notebook of a page, as JSON.

    Each ``python`` block is a cell, the ``text`` block behind it what the cell prints, all else is prose.
    """
    cells: list[dict[str, Any]] = []
    end = 0
    for block in BLOCK.finditer(page):
        _prose(cells, page[end : block.start()])
        kind, text = block.groups()
        if kind == "python":
            _add(cells, "code", text, execution_count=None, outputs=[])
        else:
            printed = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
            cells[-1]["outputs"] = [printed]
        end = block.end()
    _prose(cells, page[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _prose(cells: list[dict[str, Any]], text: str) -> None:
    if text.strip():
        _add(cells, "markdown", re.sub(r" *\(\[notebook\].*?\)\)?$", "", text.strip("\n"), flags=re.M))


def _add(cells: list[dict[str, Any]], kind: str, text: str, **more: Any) -> None:
    lines = text.rstrip("\n").splitlines(keepends=True)
    cells.append({"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, **more, "source": lines})


def main(names: list[str]) -> int:
    """Run the pages that are named, or all; write what they print, their pictures and notebooks."""
    for page in sorted(DOCS.glob("gallery/*.md")):
        if not names or page.stem in names:
            told, again = pages.run(page, pictures=DOCS / "images" / "gallery")
            print(f"{page.stem}: {len(told)} differences", *told, sep="\n")
            page.write_text(again, encoding="utf-8")
            page.with_suffix(".ipynb").write_text(notebook(again), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
