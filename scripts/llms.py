"""Writes llms.txt beside the site's pages: one line a page, for programs that read documentation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def listing(docs: Path) -> str:
    """The site in one file: what it is, and each page with its title and first sentence."""
    index = (docs / "index.md").read_text(encoding="utf-8")
    lines = ["# LAPRAS", "", "> " + _first(index), ""]
    for caption, entries in re.findall(r":caption: (.*?)\n(?::glob:\n)?\n(.*?)```", index, re.S):
        lines += [f"## {caption}", ""]
        for entry in entries.split():
            for page in sorted(docs.glob(f"{entry}.md")):
                name = page.relative_to(docs).with_suffix(".html").as_posix()
                text = page.read_text(encoding="utf-8")
                title = re.search(r"^# (.*)$", text, re.M)
                lines.append(
                    f"- [{title[1] if title else page.stem}]({name}): {_first(text)}".removesuffix(": ")
                )
        lines.append("")
    return "\n".join(lines)


def _first(text: str) -> str:
    """The first sentence of a page, below its title."""
    prose = re.search(r"^#.*\n+([^`#|\-\n][^\n]*)", text, re.M)
    sentence = re.split(r"(?<=[.:]) ", prose[1])[0] if prose else ""
    return re.sub(r"\]\([^)]*\)|[\[`*]", "", sentence)


if __name__ == "__main__":
    (Path(sys.argv[1]) / "llms.txt").write_text(listing(DOCS), encoding="utf-8")
