"""The shape of a log is found, kept with its predictions, and declared with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke
from query_logs import DOMAIN, made

from laprasdp import Categories, ConfigError, Domain, Integers, Stream
from laprasdp.config import read_config
from laprasdp.policy.query_shapes import kept_shapes, shapes_of
from laprasdp.predict.logged_shapes import covered, logged_shapes, shape_of
from laprasdp.sql.reader import Reader

COUNT = "SELECT COUNT(*) FROM t"
SHAPES: dict[str, tuple[str, ...]] = {
    "ranges of a": tuple(f"{COUNT} WHERE a >= {n} AND a < {n + 9}" for n in range(50)),
    "ranges of a and b": tuple(f"{COUNT} WHERE a < {n + 2} AND b >= {5 * (n % 9)}" for n in range(50)),
    "values of s": tuple(f"{COUNT} WHERE s = 'x{n % 20}'" for n in range(50)),
    "sets of s": tuple(f"{COUNT} WHERE s IN ('x{n % 20}', 'x{(n + 3) % 20}')" for n in range(50)),
    "conjunctions of a and s": tuple(f"{COUNT} WHERE a < {n + 5} AND s = 'x{n % 20}'" for n in range(50)),
    "group-by of s": ("SELECT s, COUNT(*) FROM t GROUP BY s",) * 50,
    "group-by of a and s": tuple(
        f"SELECT s, COUNT(*) FROM t WHERE a < {n + 5} GROUP BY s" for n in range(50)
    ),
}
TOML = """
[source]
file = "t.csv"
[privacy]
epsilon = 1.0
delta = 1e-6
unit = "row"
[stream]
horizon = 40
predictions = "predictions.json"
{stream}
[domain.a]
type = "integers"
min = 0
max = 99
[domain.c]
type = "integers"
min = 0
max = 9
"""


@pytest.mark.parametrize(("shape", "texts"), SHAPES.items())
def test_a_log_of_one_shape_has_that_shape(shape: str, texts: tuple[str, ...]) -> None:
    log = made(texts * 10)
    found = logged_shapes(log, 50)
    assert max(found, key=found.__getitem__) == shape
    assert found[shape] == pytest.approx(10 / 12, abs=1e-3)  # ten streams, and two of what is not known
    assert sum(found.values()) == pytest.approx(1, abs=1e-3)
    assert len(found) == 2
    assert covered(found, log) == 1
    assert covered({"sets of one attribute": 1.0}, log) == (shape.startswith(("sets", "values")))
    assert shapes_of(found)


def test_shapes_are_those_of_the_beginnings_of_sessions() -> None:
    first, later = SHAPES["ranges of a"], SHAPES["values of s"]
    texts = [text for n in range(20) for text in (*first[n : n + 10], *later, *later)]
    sessions = [n for n in range(20) for _ in range(110)]
    assert "values of s" not in logged_shapes(made(texts, sessions=sessions), 10)
    assert logged_shapes(made(texts, sessions=sessions), 10)["ranges of a"] > 0.85
    assert logged_shapes(made(texts, sessions=sessions), 110)["values of s"] > 0.7
    assert logged_shapes(made(texts), 10)["values of s"] > 0.7  # without sessions a stream begins anywhere


def test_shares_are_those_of_the_lines_and_a_range_of_one_level_is_one() -> None:
    single = tuple(f"{COUNT} WHERE a = {n}" for n in range(50))
    texts = (*SHAPES["ranges of a"] * 6, *single * 2, *SHAPES["group-by of s"] * 2)
    found = logged_shapes(made(texts), 5)
    assert found["ranges of a"] / found["group-by of s"] == pytest.approx(4, rel=0.01)
    assert not [shape for shape in found if shape.startswith("values")]


def test_what_has_no_shape_is_told_by_nothing() -> None:
    either = tuple(f"{COUNT} WHERE a < {n} OR s = 'x1'" for n in range(1, 51))
    assert logged_shapes(made((*SHAPES["ranges of a"], *either)), 10) == {}
    assert logged_shapes(made((*SHAPES["ranges of a"] * 4, *either)), 10)
    assert logged_shapes(made((COUNT,) * 9), 3) == {}
    reader = Reader(DOMAIN, "t")
    assert shape_of(reader.parse(COUNT), DOMAIN) == ""
    assert shape_of(reader.parse(f"{COUNT} WHERE a < 3 OR s = 'x1'"), DOMAIN) is None
    assert shape_of(reader.parse("SELECT SUM(a) FROM t"), DOMAIN) is None


def test_an_attribute_that_is_called_like_a_number_has_no_shape() -> None:
    domain = Domain({"one": Integers(0, 9), "up to two": Categories(list("abcd")), "b": Integers(0, 9)})
    reader = Reader(domain, "t")
    assert shape_of(reader.parse(f"{COUNT} WHERE one < 3"), domain) is None
    assert shape_of(reader.parse(f"{COUNT} WHERE \"up to two\" = 'a'"), domain) is None


def fitted(folder: Path, **options: Any) -> dict[str, Any]:
    """predictions.json of a log of ranges of a."""
    (folder / "lapras.toml").write_text(TOML.format(stream=""))
    rng = np.random.default_rng(0)
    lines = [f"{COUNT} WHERE a >= {n} AND a < {n + 9}" for n in rng.integers(0, 60, 400).tolist()]
    (folder / "log.csv").write_text("sql\n" + "".join(f'"{line}"\n' for line in lines))
    arguments = ["predict", "fit", folder / "log.csv", "--log-is", "public", "-c", folder / "lapras.toml"]
    said = invoke(*arguments, "-o", folder / "predictions.json").stdout
    assert "ranges of a" in said
    found: dict[str, Any] = json.loads((folder / "predictions.json").read_text())
    return found


def test_shapes_go_from_a_log_to_a_stream(tmp_path: Path) -> None:
    shapes = fitted(tmp_path)["shapes"]
    assert shapes["ranges of a"] == pytest.approx(10 / 12, abs=1e-3)
    stream = read_config(tmp_path / "lapras.toml").stream
    assert kept_shapes(stream.families) == pytest.approx(shapes)
    assert stream.families == Stream(shapes=shapes).families
    for text, own in (("shapes = []", ()), ('shapes = ["values of c"]', shapes_of(["values of c"]))):
        (tmp_path / "lapras.toml").write_text(TOML.format(stream=text))
        assert read_config(tmp_path / "lapras.toml").stream.families == own


def test_a_file_from_before_shapes_has_none_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    row, path = fitted(tmp_path), tmp_path / "predictions.json"
    for wrong in (["rangs of a"], {"ranges of a": "much"}, 3, {"ranges of a": -1}):
        path.write_text(json.dumps(row | {"shapes": wrong}))
        with pytest.raises(ConfigError, match="not sound; run `lapras predict fit` again"):
            read_config(tmp_path / "lapras.toml")
    path.write_text(json.dumps({key: value for key, value in row.items() if key != "shapes"}))
    assert read_config(tmp_path / "lapras.toml").stream.families == ()
