"""The printed numbers, the reasons, the pictures and the page of the experiments."""

from __future__ import annotations

import doctest
import itertools
import math
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments import claim, picture, printed, reason
from experiments.claim import Claim, claims
from experiments.experiment import Comparison, Row, Size
from experiments.page import UNEXPLAINED, page
from experiments.reason import Pattern, differs, explain, unexplained
from laprasdp.privacy.gaussian import sigma_of

HERE = Path(__file__).resolve().parent
SIZES = {"1": 16, "2": 66, "3": 30, "4": 12, "5": 30, "6": 24, "7": 18, "8": 36, "9": 36, "text": 12}


def tex() -> str:
    """The paper's source, in ``shared`` beside this checkout or beside the one that it is a worktree of."""
    asked = subprocess.run(
        ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    homes = [*HERE.parents, *Path(asked.stdout.strip()).parents]
    for home in homes:
        path = home / "shared" / "paper" / "lapras.tex"
        if path.exists():
            return path.read_text(encoding="utf-8")
    pytest.skip("no shared/paper/lapras.tex beside the checkout")


def tables() -> list[tuple[str, list[list[float]]]]:
    """(label, rows of numbers) of each table of the paper, settings included, straight from its source."""
    found = []
    for body in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", tex(), re.DOTALL):
        label = re.search(r"\\label\{(tab:[^}]*)\}", body)
        assert label
        lines = body.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
        lines = re.sub(r"\\textbf\{([^}]*)\}", r"\1", lines)
        lines = re.sub(r"\\(midrule|lowrow|highrow)|\\epsilon|[$%\\+]", "", lines.replace(r"\\", "\n"))
        cells = [[cell.strip() for cell in line.split("&")] for line in lines.splitlines() if line.strip()]
        found.append(
            (label[1], [[value for cell in line if (value := number(cell)) is not None] for line in cells])
        )
    return found


def number(cell: str) -> float | None:
    """A decimal, or a share "/6" of ε; None for words."""
    if re.fullmatch(r"/\d", cell):
        return 1 / int(cell[1])
    return float(cell) if re.fullmatch(r"-?\d+(\.\d+)?", cell) else None


def test_every_printed_table_is_transcribed_number_by_number() -> None:
    found = tables()
    settings = {"1": 0, "2": 1, "3": 2, "4": 2, "5": 1, "6": 2, "7": 1, "8": 1, "9": 1}
    assert [label for label, _ in found] == [printed.rows(table)[0].label for table in settings]
    for (table, count), (label, lines) in zip(settings.items(), found, strict=True):
        numbers = list(printed.rows(table))
        assert {number.label for number in numbers} == {label}
        for line in lines:
            heads, values = line[:count], line[count:]
            mine, numbers = numbers[: len(values)], numbers[len(values) :]
            if table == "3":  # the false positives come before the errors in our row, as in the paper's
                assert mine[0].metric == "false_positive_percent"
            assert [number.printed for number in mine] == values
            for row in mine:
                assert heads == stated(row)[: len(heads)] or not heads
        assert not numbers


def stated(row: printed.Number) -> list[float]:
    """What the first columns of the row's table say."""
    overlap = -1.0 if row.overlap is None else row.overlap
    kinds: dict[str, list[float | None]] = {
        "3": [row.P, overlap],
        "4": [row.P, row.Q],
        "6": [row.P, 100 * overlap],
    }
    return [float(-1 if value is None else value) for value in kinds.get(row.table, [overlap])]


def test_the_transcription_has_every_row_once() -> None:
    assert Counter(row.table for row in printed.rows()) == SIZES
    assert len({tuple(vars(row).items()) for row in printed.rows()}) == len(printed.rows())


def test_printed_shares_of_a_split_add_up_to_the_budget() -> None:
    shares = Counter[str]()
    for row in printed.rows(1):
        shares[row.split] += row.printed  # type: ignore[assignment]
    assert shares == {
        name: pytest.approx(1) for name in ("equal", "matrix-heavy", "query-heavy", "reserve-heavy")
    }


@pytest.mark.parametrize(
    ("table", "better", "than"), [(8, "smooth", "static"), (9, "smooth-cache", "smooth")]
)
def test_printed_improvements_follow_from_the_printed_errors(table: int, better: str, than: str) -> None:
    for row in printed.rows(table):
        if row.metric == "improvement_percent":
            given: dict[str, Any] = {"table": table, "split": row.split, "overlap": row.overlap}
            mine, theirs = printed.lookup(method=better, **given), printed.lookup(method=than, **given)
            assert mine is not None
            assert theirs is not None
            assert row.printed == pytest.approx(
                100 * (1 - mine / theirs), abs=0.15
            )  # printed from unrounded errors


def test_lookup_finds_what_the_paper_prints_and_nothing_else() -> None:
    given: dict[str, Any] = {"table": 5, "overlap": 0.0, "method": "smooth", "split": "matrix-heavy"}
    assert printed.lookup(**given, dataset="gowalla-grid", order="bad-first") == 334.4
    assert printed.lookup(**given, dataset="gowalla-grid", order="random") is None
    assert printed.lookup(**given, dataset="adult-age") is None
    assert (
        printed.lookup(table=2, dataset="adult", overlap=0.3, method="independent", split="equal") == 193.1964
    )
    assert printed.lookup(table=2, dataset="adult", overlap=0.3, method="static", split="equal") is None
    assert printed.lookup(table=3, P=100, overlap=0.5, method="smooth") == 107.0
    assert printed.lookup(table="text", dataset="idebench", overlap=0.5, method="static") == 129.7
    with pytest.raises(LookupError, match="fits the printed numbers"):
        printed.lookup(table=2, dataset="adult", overlap=0.3, method="static")
    with pytest.raises(LookupError, match="no table 10"):
        printed.rows(10)


def test_examples_of_lookup() -> None:
    assert doctest.testmod(printed).failed == 0


STATIC = "adult-age, overlap 0, |P| = 100, random, static query-heavy (basic), MAE"
FOUND = Comparison("Table 2", STATIC, 201.7689, 348.3, 348.3 / 201.7689)
NEAR = Comparison("Table 2", "adult-age, overlap 0, random, independent (basic), MAE", 186.5, 194.7, 1.044)
STRANGE = Comparison("Table 2", "adult-age, overlap 0, random, <i>other</i> & co, MAE", 10.0, 30.0, 3.0)


def test_what_differs_has_a_reason_or_is_named() -> None:
    assert differs(FOUND)
    assert "ε_badInit" in (explain(FOUND) or "")
    assert not differs(NEAR)
    assert unexplained([FOUND, NEAR, STRANGE]) == [STRANGE]
    own = Comparison("Table 2", STRANGE.what, 10.0, 30.0, 3.0, "because")
    assert explain(own) == "because"
    assert unexplained([own]) == []
    assert differs(Comparison("Table 2", STATIC, 0.0, 1.0, math.nan))


def test_a_reason_covers_only_the_ratios_and_overlaps_that_it_accounts_for() -> None:
    below = Comparison("Table 2", STATIC, 200.0, 20.0, 0.1)
    late = Comparison("Table 2", STATIC.replace("overlap 0,", "overlap 0.9,"), 62.2, 124.4, 2.0)
    other = Comparison("Table 7", STATIC, 200.0, 1.0, 0.005)
    assert unexplained([below, late]) == [below, late]
    assert explain(other) != explain(FOUND)


def test_patterns_read_the_method_and_not_its_namesakes() -> None:
    static = Pattern(("2",), ("static", "query-heavy"), without=("primm",), overlap=(0.0, 0.2))
    assert static.fits(FOUND)
    for what in (
        STATIC.replace("static", "published_unsound-static"),
        STATIC.replace("query-heavy", "matrix-heavy"),
        STATIC.replace("overlap 0,", "overlap 0.3,"),
        STATIC.replace("overlap 0,", ""),
        f"{STATIC}: primm in its place",
    ):
        assert not static.fits(Comparison("Table 2", what, 1.0, 1.0, 1.0))
    assert not static.fits(Comparison("Table 3", STATIC, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("path", "kind", "more"),
    [
        (reason.PATH, "reason", {"why"}),
        (claim.PATH, "claim", {"why", "where", "says", "stands", "at_least", "at_most"}),
    ],
)
def test_lists_of_reasons_and_claims_have_no_misspelt_fields(path: Path, kind: str, more: set[str]) -> None:
    fields = {"tables", "words", "without", "overlap", "ratio"}
    listed = tomllib.loads(path.read_text(encoding="utf-8"))
    assert list(listed) == [kind]
    for one in listed[kind]:
        assert set(one) <= fields | more
        assert one["why"].strip()
        assert set(one.get("tables", ())) <= set(SIZES)
        for name in ("overlap", "ratio"):
            low, high = one.get(name, (0, 1))
            assert low <= high
        assert one.get("stands", "holds") in {"holds", "cannot hold", "not shown"}
        assert kind == "reason" or ("stands" in one) != bool({"at_least", "at_most"} & set(one))


def test_a_claim_is_judged_by_the_run() -> None:
    asked = Claim("Table 2", "says", "why", "", Pattern(("2",), ("independent",)), 0.9, 1.1)
    far = Comparison("Table 2", NEAR.what, 100.0, 150.0, 1.5)
    assert asked.judge([FOUND])[0] == "not run"
    assert asked.judge([FOUND, NEAR]) == ("holds", "1 of 1 numbers; ours over printed 1.04")
    assert asked.judge([NEAR, far]) == ("holds in part", "1 of 2 numbers; ours over printed 1.04 to 1.5")
    assert asked.judge([far])[0] == "fails"
    settled = Claim("Abstract", "says", "why", "cannot hold", Pattern(), 0.0, math.inf)
    assert settled.judge([NEAR]) == ("cannot hold", "")


def error(epsilon: float) -> float:
    """Expected absolute error of one answer at ε and δ/101, in records."""
    return math.sqrt(2 / math.pi) * sigma_of(epsilon, 1e-3 / 101)


def test_the_numbers_in_the_reasons_follow_from_the_budget_and_from_what_is_printed() -> None:
    exact = {194.7: 1 / 100, 228.6: 5 / 600, 277.9: 2 / 300, 505.5: 1 / 300, 357: 1 / 200, 135: 1 / 66}
    for stated_error, epsilon in exact.items():
        assert error(epsilon) == pytest.approx(stated_error, rel=2e-3)
    query_heavy = (22 * error(1 / 3 / 22) + 78 * error(1 / 3 / 78)) / 100  # Static, B = B̂ = S, T = 22
    assert query_heavy == pytest.approx(348, rel=2e-3)
    assert error(1 / 6 / 32) == pytest.approx(360, rel=0.05)
    found: Any = printed.lookup
    mae = found(table=3, P=100, overlap=0.0, method="static")
    assert mae / found(table=7, metric="nmae", overlap=0.0, method="static") == pytest.approx(
        102_000, rel=0.01
    )
    smooth = found(table=3, P=50, overlap=0.0, method="smooth")
    nmae = found(table=6, P=50, overlap=0.0, metric="nmae_percent", method="smooth") / 100
    assert smooth / nmae == pytest.approx(267, rel=0.01)
    pairs = {
        row.overlap: row.printed
        for row in printed.rows(5)
        if (row.method, row.split[:5]) == ("static", "query")
    }
    worst = max(
        row.printed / pairs[row.overlap]
        for row in printed.rows(5)
        if (row.method, row.split) == ("smooth", "query-heavy")
    )
    assert worst == pytest.approx(1.45, abs=0.005)
    seconds = [found(table=4, P=size, method="lapras-mm", metric="seconds") for size in (50, 500)]
    assert math.log10(seconds[1] / seconds[0]) == pytest.approx(0.67, abs=0.005)


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
    assert links == {"claims", "overlap", "runtime"}
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
    assert [cells[place + 1 :][:3] for place, cell in enumerate(cells) if cell == "Table 2"] == [
        ["10.0", "30.0", "3.00"],
        ["202", "348", "1.73"],
        ["186", "195", "1.04"],
    ]
    tally = "3 printed numbers compared: 1 within 15%, 1 further off with a reason, 1 unexplained."
    assert sum(text == tally for _, text in reader.texts) == 2


def test_every_claim_is_in_the_table_at_the_top(tmp_path: Path) -> None:
    _, reader = read([], tmp_path)
    said = [text for _, text in reader.texts]
    for one in claims():
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
    assert "date 2026-11-28; cores 2; seconds 1.5; numpy 2.3" in said


def test_an_experiment_without_rows_and_cells_that_were_not_run_are_shown_as_such(tmp_path: Path) -> None:
    skipped = {"gowalla/a": "no file <x>", "gowalla/b": "no file <x>", "adult/c": "too large"}
    _, reader = read([Run(skipped=skipped)], tmp_path)
    said = " ".join(words for _, words in reader.texts)
    assert "No cell of this experiment has rows." in said
    assert "It falls." not in said
    assert "2 of its cells: no file <x> gowalla/a, gowalla/b" in re.sub(r"\s+", " ", said)
    assert "1 of its cells: too large" in said
    assert not any(tag == "img" for tag, _, _ in reader.attributes)
