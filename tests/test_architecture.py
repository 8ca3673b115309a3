"""The page about the house and the gate say the same, and every room says what question it answers."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/laprasdp"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
FLOORS = [sorted(floor.split(" | ")) for floor in CONTRACTS["contracts"][0]["layers"] if floor != "__main__"]


def test_the_page_has_the_floors_of_the_gate():
    drawn = re.search(r"```text floors\n(.*?)```", PAGE, re.DOTALL)
    assert drawn is not None
    assert [sorted(line.split(" | ")) for line in drawn[1].splitlines()] == FLOORS


def test_every_room_has_its_line_on_the_page_and_says_what_it_answers():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    told = set(re.findall(r"^\| `(\w+)/?` \|", PAGE, re.MULTILINE))
    assert rooms - {"datasets"} <= told
    for room in rooms:
        first = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8")))
        assert first is not None, room


def test_the_modules_that_the_page_names_are_there():
    for name in re.findall(r"`((?:\w+\.)+\w+)`", PAGE):
        parts = name.split(".")
        module = PACKAGE.joinpath(*parts[: 2 if (PACKAGE / parts[0]).is_dir() else 1])
        assert module.with_suffix(".py").exists() or module.name[0].isupper() or "toml" in name, name
