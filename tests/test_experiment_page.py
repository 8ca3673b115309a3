"""The pictures, and the page of the experiments."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments import picture
from experiments.claim import checks, claims
from experiments.comparison import IN_ITS_PLACE
from experiments.experiment import Comparison, Row, Size
from experiments.page import UNEXPLAINED, page
from experiments.reason import explain

STATIC = "adult-age, overlap 0, |P| = 100, random, static query-heavy (basic), MAE"
FOUND = Comparison("Table 2", STATIC, 201.7689, 348.3, 348.3 / 201.7689)
NEAR = Comparison("Table 2", "adult-age, overlap 0, random, independent (basic), MAE", 186.5, 194.7, 1.044)
STRANGE = Comparison("Table 2", "adult-age, overlap 0, random, <i>other</i> & co, MAE", 10.0, 30.0, 3.0)


def crowded() -> Figure:
    """Eight lines that end close together, over three decades."""
    figure = picture.figure()
    (axes,) = picture.panels(figure)
    names = [
        "primm",
        "histogram",
        "static, query-heavy",
        "static, matrix-heavy",
        "smooth",
        "offline",
        "other",
    ]
    lines = [
        picture.Series(name, [0.0, 0.5, 1.0], [900.0 + place, None, 10.0 + place / 50], [800.0], [1000.0])
        for place, name in enumerate(names)
    ]
    picture.lines(axes, lines, title="One sentence " * 12, x="share", y="mean absolute error, records")
    return figure


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the picture ``overlap``."""
    out = tmp_path_factory.mktemp("drawn")
    picture.save(crowded(), out / "overlap")
    return out


def test_pictures_have_the_same_bytes_each_time(tmp_path: Path, drawn: Path) -> None:
    picture.save(crowded(), tmp_path / "two")
    for suffix in ("png", "svg"):
        assert (drawn / f"overlap.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()
    assert b"<dc:date>" not in (drawn / "overlap.svg").read_bytes()


def test_labels_at_the_lines_do_not_overlap(tmp_path: Path) -> None:
    figure = crowded()
    (axes,) = figure.axes

    def boxes() -> list[Any]:
        figure.draw_without_rendering()
        return [Text.get_window_extent(text) for text in axes.texts]

    assert any(one.overlaps(two) for one, two in itertools.combinations(boxes(), 2))
    picture.save(figure, tmp_path / "crowded")
    assert len(boxes()) == 7
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes(), 2))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes())
    assert "\n" in axes.get_title("left")


def test_errors_over_decades_are_on_a_log_scale_and_others_start_at_zero() -> None:
    for high, scale in ((1000.0, "log"), (20.0, "linear")):
        one, two = picture.panels(picture.figure(), 1, 2)
        picture.lines(one, [picture.Series("a", [0, 1], [high, 10.0])], title="", x="", y="")
        picture.bars(two, [picture.Bar("a", high), picture.Bar("b", 10.0, printed=12.0)], title="", x="")
        assert (one.get_yscale(), two.get_xscale()) == (scale, scale)
        if scale == "linear":
            assert (one.get_ylim()[0], two.get_xlim()[0]) == (0, 0)


def test_the_least_and_the_largest_of_the_runs_are_inside_the_axes() -> None:
    (axes,) = picture.panels(picture.figure())
    series = picture.Series("a", [0.0, 1.0], [100.0, 10.0], [90.0, 2.0], [5000.0, 11.0])
    picture.lines(axes, [series], title="", x="", y="", log=True)
    assert axes.get_ylim()[0] <= 2.0
    assert axes.get_ylim()[1] >= 5000.0


def test_bars_say_what_has_no_value_and_what_is_printed() -> None:
    (axes,) = picture.panels(picture.figure())
    picture.bars(axes, [picture.Bar("a", None), picture.Bar("b", 10.0, printed=1234.5)], title="", x="")
    assert [text.get_text() for text in axes.texts] == ["no value", "10.0  (printed 1,234)"]


def test_methods_differ_without_colour() -> None:
    (axes,) = picture.panels(picture.figure())
    names = [
        "static, query-heavy",
        "static, matrix-heavy",
        "smooth",
        "primm",
        "histogram",
        "independent",
        "offline",
    ]
    picture.lines(axes, [picture.Series(name, [0, 1], [1.0, 2.0]) for name in names], title="", x="", y="")
    assert len({(line.get_marker(), line.get_linestyle()) for line in axes.lines}) == len(names)


@dataclass
class Question:
    name: str = "overlap"
    title: str = "Error <against> overlap"
    question: str = "How & why?"
    claim: str = "It falls."
    columns: Sequence[str] = ("method", "mae")

    def cells(self, size: Size, data: Any, seed: int) -> list[Any]:
        return []

    def draw(self, rows: Sequence[Row], figure: Figure) -> None: ...

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        return []


@dataclass
class Run:
    experiment: Question = field(default_factory=Question)
    rows: list[Row] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)


class Reader(HTMLParser):
    """Checks that elements nest, and collects what the tests ask about."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self._said: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
            self._said.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            tag, text = self._said[-1]
            self._said[-1] = (tag, text + data)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(element, what follows its start up to the next one)."""
        return [(tag, text.strip()) for tag, text in self._said]


def read(results: Sequence[Run], out: Path) -> tuple[str, Reader]:
    """The page of some results, well-formed."""
    text = page(results, out).read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return text, reader


def a_run() -> Run:
    """A run with rows and three comparisons."""
    rows: list[Row] = [{"method": "<b>primm</b>", "mae": 9.87654}, {"method": "static", "mae": None}]
    manifest = {"date": "2026-11-28", "seconds": 1.5, "machine": {"cores": 2}, "versions": {"numpy": "2.3"}}
    return Run(rows=rows, comparisons=[NEAR, FOUND, STRANGE], manifest=manifest)


def test_the_page_needs_no_other_file(drawn: Path) -> None:
    text, reader = read([a_run()], drawn)
    assert not re.search(r"https?:|@import|url\(|<script|<link", text)
    for _, name, value in reader.attributes:
        assert name not in {"src", "href"} or value.startswith(("data:image/", "#"))
    assert sum(name == "src" for _, name, _ in reader.attributes) == 1


def test_the_page_is_built_for_every_reader(drawn: Path) -> None:
    empty = Run(Question(name="runtime"))
    _, reader = read([a_run(), empty], drawn)
    assert ("html", "lang", "en") in reader.attributes
    assert all(value for tag, name, value in reader.attributes if (tag, name) == ("img", "alt"))
    levels = [int(tag[1]) for tag, _ in reader.texts if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    names = [value for _, name, value in reader.attributes if name == "id"]
    assert len(names) == len(set(names))
    links = {value[1:] for _, name, value in reader.attributes if name == "href"}
    assert links == {"claims", "checks", "margins", "overlap", "runtime", "words"}
    assert links <= set(names)
    tables = Counter(tag for tag, _ in reader.texts)["table"]
    boxes = sum((name, value) == ("class", "scroll") for _, name, value in reader.attributes)
    assert boxes == tables


def test_every_comparison_that_differs_shows_a_reason_or_unexplained(drawn: Path) -> None:
    _, reader = read([a_run()], drawn)
    under: dict[str, str] = {}
    last = ""
    for tag, text in reader.texts:
        last = text if tag == "p" else last
        under.setdefault(text, last)
    assert under[FOUND.what] == explain(FOUND)
    assert under[STRANGE.what] == UNEXPLAINED
    assert under[NEAR.what] == "Within 15% of the printed number."
    cells = [text for tag, text in reader.texts if tag == "td"]
    assert [cells[place - 3 : place] for place, cell in enumerate(cells) if cell == "Table 2"] == [
        ["10.0", "30.0", "3.00"],
        ["202", "348", "1.73"],
        ["186", "195", "1.04"],
    ]
    tally = "3 printed numbers compared: 1 within 15%, 1 further off with a reason, 1 unexplained."
    assert sum(text == tally for _, text in reader.texts) == 2


def test_primm_in_the_place_of_lapras_is_no_difference_of_a_reproduction(drawn: Path) -> None:
    better = Comparison("Table 2", STATIC + IN_ITS_PLACE, 201.7689, 9.0, 0.0446, expected=10.0, epsilon=1.0)
    asked = a_run()
    asked.comparisons.append(better)
    _, reader = read([asked], drawn)
    said = [text for _, text in reader.texts]
    tally = "3 printed numbers compared: 1 within 15%, 1 further off with a reason, 1 unexplained."
    assert said.count(f"{tally} Beside 1 of LAPRAS's stands PRIMM too, which is another algorithm.") == 2
    least = said.index("22.42")
    assert said[least - 2 : least + 4] == ["holds in part", "1 of 44", "22.42", STATIC, "20.18", STATIC]


def test_every_claim_is_in_the_table_at_the_top(tmp_path: Path) -> None:
    _, reader = read([], tmp_path)
    said = [text for _, text in reader.texts]
    for one in (*claims(), *checks()):
        assert one.says in said
        assert one.why in said
    assert "No experiment was run." in said


def test_what_is_written_is_escaped_and_what_is_missing_is_said(drawn: Path) -> None:
    text, reader = read([a_run()], drawn)
    for raw in ("<against>", "<b>primm", "<i>other", "How & why"):
        assert raw not in text
    said = [words for _, words in reader.texts]
    assert "<b>primm</b>" in said
    assert [words for tag, words in reader.texts if tag == "td" and words in {"9.88", "—"}] == ["9.88", "—"]
    assert "date 2026-11-28; cores 2; seconds since the last start 1.5; numpy 2.3" in said


def test_an_experiment_without_rows_and_cells_that_were_not_run_are_shown_as_such(tmp_path: Path) -> None:
    skipped = {"gowalla/a": "no file <x>", "gowalla/b": "no file <x>", "adult/c": "too large"}
    _, reader = read([Run(skipped=skipped)], tmp_path)
    said = " ".join(words for _, words in reader.texts)
    assert "No cell of this experiment has rows." in said
    assert "It falls." not in said
    assert "2 of its cells: no file <x> gowalla/a, gowalla/b" in re.sub(r"\s+", " ", said)
    assert "1 of its cells: too large" in said
    assert not any(tag == "img" for tag, _, _ in reader.attributes)
