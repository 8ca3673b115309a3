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


def test_a_class_name_has_one_meaning():
    places: dict[str, list[Path]] = {}
    for path in set(PACKAGE.rglob("*.py")) - {PACKAGE / "dbapi/faults.py"}:  # PEP 249 names those
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            alias = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            name = node.targets[0].id if alias else node.name if isinstance(node, ast.ClassDef) else ""
            if not name.isupper() and name[:1].isupper():
                places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_a_file_name_occurs_once_unless_the_folders_say_why():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    stems = [path.stem for path in PACKAGE.rglob("*.py") if path.parent.name not in ("cli", "config")]
    twice = {stem for stem in stems if stems.count(stem) > 1} - {"__init__"}
    assert twice == {"env", "memory", "opening"}  # each migrates, keeps or opens what its room is about
    faces = [path.stem for room in ("cli", "config") for path in (PACKAGE / room).glob("[a-z]*.py")]
    shared = {stem for stem in faces if stem in stems} | {stem for stem in faces if faces.count(stem) > 1}
    commands = {"budget", "ledger", "periods", "plan", "predict", "spent"}
    sections = {"dialect", "periods", "predictions", "stream"}
    assert shared - rooms <= commands | sections  # a face has the name of what it reads or prints
