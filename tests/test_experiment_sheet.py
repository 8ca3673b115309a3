"""The final tables in Markdown, PRIMM's margins, and the report that is written anew from finished cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import NAMES, main, named
from experiments.comparison import IN_ITS_PLACE, compare
from experiments.experiment import Comparison, Row
from experiments.margin import margins
from experiments.reason import explain
from experiments.run import Result
from experiments.sheet import SHEETS, sheet
from experiments.store import Store, facts, whole

MANIFEST = {"date": "2026-11-28", "cell_seconds": 2.5, "machine": {"cores": 2, "memory_gib": 24}}


def row(method: str, split: str | None, accounting: str, mae: float, **more: Any) -> Row:
    """A row of Table 2 at overlap 0."""
    given = {"dataset": "adult-age", "S": 100, "Q": 100, "P": 100, "overlap": 0.0, "order": "random"}
    given |= {"family": "random", "method": method, "split": split, "accounting": accounting, "mae": mae}
    return given | {"expected_mae": mae, "expected_mae_median": mae, "epsilon_true": 1.0, "runs": 25} | more


ROWS = [
    row("static", "query-heavy", "basic", 348.0, printed=201.7689, expected_mae=350.0),
    row("published_unsound", "query-heavy", "unsound", 204.0, printed=201.7689, epsilon_true=1.16667),
    row("primm", None, "gaussian", 10.0, printed=None),
]


def results(rows: list[Row]) -> list[Result]:
    """The overlap experiment with these rows."""
    return [Result(named("overlap"), tuple(rows), tuple(compare(rows, "2")), {}, MANIFEST)]


def cells(text: str, head: str) -> dict[str, str]:
    """The first line of the table under a heading, by column."""
    lines = text.split(f"## {head}")[1].splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("| "))
    names, values = ([cell.strip() for cell in lines[at].split(" | ")] for at in (place, place + 2))
    return dict(zip((name.strip("| ") for name in names), (one.strip("| ") for one in values), strict=True))


def test_a_cell_has_the_printed_number_ours_the_exact_value_the_ratio_and_the_reason(tmp_path: Path) -> None:
    text = sheet(results(ROWS), tmp_path).read_text(encoding="utf-8")
    line = cells(text, "Table 2")
    assert line["static QH"] == "202 → 348 (350) 1.72 [1]"
    assert line["published_unsound QH"] == "202 → 204 (204) 1.01, ε 1.17"
    assert line["primm"] == "10.0 (10.0)"
    assert "static MH" not in line
    why = explain(compare(ROWS, "2")[0])
    assert why
    assert f"\n1. {why}\n" in text
    assert "date 2026-11-28; cores 2; memory in GiB 24; seconds in cells 2; runs" in text


def test_a_difference_that_nothing_explains_has_a_question_mark(tmp_path: Path) -> None:
    odd = row("static", "query-heavy", "basic", 2_000.0, printed=201.7689)
    text = sheet(results([odd]), tmp_path).read_text(encoding="utf-8")
    assert cells(text, "Table 2")["static QH"].endswith("9.91 [?]")
    assert text.endswith("No number needs one.\n")


def test_what_the_paper_has_under_one_accounting_is_told_apart_under_the_other(tmp_path: Path) -> None:
    about = {"dataset": "flights", "S": 100, "overlap": 0.5, "epsilon_true": 1.0, "runs": 2}
    found = [
        about | {"method": method, "split": split, "accounting": accounting, "expected_mae": error}
        for method, split, accounting, error in (
            ("primm", None, "gaussian", 13.9),
            ("static", "matrix-heavy", "gaussian", 27.2),
            ("static", "matrix-heavy", "basic", 282.0),
        )
    ]
    result = Result(named("flights"), tuple(found), (), {}, MANIFEST)
    line = cells(sheet([result], tmp_path).read_text(encoding="utf-8"), "Four attributes")
    wanted = {"S": "100", "overlap": "0.5", "primm": "13.9", "static MH GDP": "27.2", "static MH": "282"}
    assert line == wanted


def test_every_experiment_with_printed_numbers_has_its_table() -> None:
    printed = [one for one in SHEETS if one.table]
    tables = {one.experiment: one.table for one in printed}
    swept = {name: getattr(named(name), "table", None) for name in NAMES}
    assert tables == {name: table for name, table in swept.items() if table}
    for one in printed:
        assert tuple(one.metrics) == named(one.experiment).metrics  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ours", "expected", "epsilon", "verdict"),
    [
        (10.0, 10.0, 1.0, "holds in part"),
        (90.0, 10.0, 1.0, "fails"),
        (10.0, 90.0, 1.0, "fails"),
        (10.0, 10.0, 1.2, "fails"),
    ],
)
def test_primm_has_to_be_below_by_median_and_exactly_at_the_promised_budget(
    ours: float, expected: float, epsilon: float, verdict: str
) -> None:
    place = f"adult-age, overlap 0, static query-heavy (basic){IN_ITS_PLACE}"
    one = Comparison("Table 2", place, 201.7689, ours, 0.0, expected=expected, epsilon=epsilon)
    (found,) = margins([one, Comparison("Table 7", place, 1.0, 1.0, 1.0)])
    assert (found.table, found.compared, found.printed, found.verdict) == ("Table 2", 1, 44, verdict)
    assert found.least == pytest.approx(201.7689 / ours)


def test_the_report_is_written_anew_from_cells_of_other_source(tmp_path: Path) -> None:
    store = Store(tmp_path / "overlap", {"name": "overlap", "seed": 99})
    for place, one in enumerate(ROWS):
        store.add(f"cell {place}", 0.1, [one | {"n": 74, "mae_min": 1.0, "mae_max": 400.0, "answered": 1.0}])
    before = (tmp_path / "overlap" / "rows.jsonl").read_bytes()
    with (tmp_path / "overlap" / "rows.jsonl").open("a") as file:
        file.write('{"key": "half')
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "overlap" / "rows.jsonl").read_bytes() == before + b'{"key": "half'
    assert "202 → 348 (350)" in (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "1 of 44" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "overlap.svg").exists()
    assert main(["report", "--out", str(tmp_path / "nothing")]) == 1


def test_a_manifest_of_a_whole_run_adds_up_its_cells() -> None:
    assert facts(whole([MANIFEST, MANIFEST])).endswith("seconds in cells 5")
    assert facts(whole([])) == ""
