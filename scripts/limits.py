"""Writes docs/limits.md from src/laprasdp/limits.py: python scripts/limits.py [--check]"""

import ast
import sys
from itertools import pairwise
from pathlib import Path

from laprasdp import limits

PAGE = Path(__file__).parent.parent / "docs" / "limits.md"
HEAD = """# Limits

Written by `python scripts/limits.py` from `src/laprasdp/limits.py`, which the code reads.
What is not protected, or not supported at all, stands in [known limits](known-limits.md).

| name | limit | of what |
|---|---|---|
"""


def page() -> str:
    """The page, one row a constant: its name, its value and the sentence below it."""
    assert limits.__file__
    rows = []
    for one, after in pairwise(ast.parse(Path(limits.__file__).read_text(encoding="utf-8")).body):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            name = one.targets[0].id
            rows.append(f"| `{name}` | {getattr(limits, name):,} | {after.value.value} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(None if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} lags: python {sys.argv[0]}")
    PAGE.write_text(page(), encoding="utf-8")
