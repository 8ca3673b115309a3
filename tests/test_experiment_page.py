"""The printed numbers, the reasons, the pictures and the page of the experiments."""

from __future__ import annotations

import doctest
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments import printed

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
