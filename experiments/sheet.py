"""The final tables in Markdown: beside each printed number ours, its exact value, ratio and reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from experiments.claim import Claim, checks, claims
from experiments.comparison import beside
from experiments.experiment import Comparison, Finished, Row
from experiments.margin import FACTOR, margins
from experiments.picture import number
from experiments.reason import LIMIT, differs, explain
from experiments.store import facts, whole

HEAVY = ("query-heavy", "matrix-heavy")
SHORT = {"query-heavy": "QH", "matrix-heavy": "MH", "equal": "EQ", "reserve-heavy": "RH"}
OWN = (
    ("primm", None, "gaussian"),
    ("histogram", None, "gaussian"),
    ("histogram-total", None, "gaussian"),
    ("laplace-counts", None, "gaussian"),
)
BASELINES = (("independent", None, "basic"), ("offline", None, "basic"))
LEGEND = " ".join(
    f"""
A cell reads **printed → ours (exact) ratio [reason]**: the paper's number; our median over runs; the
expectation of our error by exact variances, mean over runs, where it is known; ours over printed; and,
beyond {LIMIT:.0%}, the number of the reason at the end, a question mark where none is known. Where nothing
is printed: ours (exact), or ours alone for laplace-counts, cachedp and primm-default, whose errors are sums
of Laplace variables. The expectation is far above the median where more queries came than B̂ in some run and
the reserve was halved for each. Errors are in records unless said. ε is given where more than the promised 1
is spent. QH is query-heavy, MH matrix-heavy, EQ equal, RH reserve-heavy. PRIMM, histograms, PMW, PrivateSQL
and what is marked GDP are under Gaussian accounting, all else under basic composition. Adult's printed
numbers stand beside both attributes, Gowalla's beside both tables.""".split()
)
BASIC = ("static", "smooth", "smooth-cache", "independent", "offline")
"""In the paper under basic composition."""
LAPLACE = ("laplace-counts", "cachedp", "primm-default")
"""Their errors are sums of Laplace variables, some more and some fewer; only medians of them are shown."""

Column = tuple[str, str | None, str]


def lapras(*methods: str, splits: Sequence[str] = HEAVY, accounting: str = "basic") -> tuple[Column, ...]:
    """A column for each method and split."""
    return tuple((method, split, accounting) for method in methods for split in splits)


UNSOUND = lapras("published_unsound", accounting="unsound")


@dataclass(frozen=True)
class Sheet:
    """
    One of the paper's tables.

    Attributes
    ----------
    table, experiment, says : str
        By number, "text", or nothing where nothing is printed; whose rows it shows; its heading.
    columns : sequence of (method, split, accounting)
    heads : sequence of str
        Columns of the rows that name a line.
    only : mapping
        What the rows shown have.
    metrics : sequence of str
        As of the experiment.  Where there are several each has a line.
    """

    table: str
    experiment: str
    says: str
    columns: Sequence[Column]
    heads: Sequence[str] = ("overlap",)
    only: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[str] = ("mae",)


SHEETS = (
    Sheet(
        "2",
        "overlap",
        "Table 2: MAE against overlap, S = |P| = 100",
        (*lapras("static"), *UNSOUND, *lapras("smooth"), *BASELINES, *OWN),
        ("dataset", "overlap"),
    ),
    Sheet(
        "3",
        "prediction-size",
        "Table 3: size of the prediction set, Adult's ages, S = 100, 50 statements",
        (*lapras("static", "smooth", splits=HEAVY[:1]), *BASELINES, *OWN),
        ("P", "overlap"),
    ),
    Sheet(
        "5",
        "order",
        "Table 5: what was not predicted comes first, S = |P| = 100",
        (*lapras("static"), *UNSOUND, *lapras("smooth"), BASELINES[0], *OWN),
        ("dataset", "overlap"),
        {"order": "bad-first"},
    ),
    Sheet(
        "6",
        "normalized",
        "Table 6: normalized errors, S = 100, 50 statements (fractions, not percent)",
        (*lapras("smooth", splits=HEAVY[:1]), BASELINES[0], *OWN),
        ("dataset", "P", "overlap"),
        metrics=("nmae", "nrmse", "mape", "smape"),
    ),
    Sheet(
        "7",
        "cachedp",
        "Table 7: beside CacheDP and other systems, Adult's ages, S = |P| = 100 (fractions)",
        (
            *lapras("static", "smooth"),
            ("cachedp", None, "basic"),
            *(("pmw", None, "gaussian"), ("privatesql", None, "gaussian")),
            *OWN,
        ),
        metrics=("nmae", "nrmse"),
    ),
    Sheet(
        "8",
        "static-vs-smooth",
        "Table 8: Static against Smooth, Adult's ages, S = 100, 50 statements, |P| = 50",
        (*lapras("static", "static-T32", "smooth"), *OWN),
    ),
    Sheet(
        "9",
        "cache",
        "Table 9: the query cache, S = 100, 50 statements, |P| = 100",
        (*lapras("smooth", "smooth-cache"), *OWN),
        ("dataset", "overlap"),
    ),
    Sheet(
        "text",
        "idebench",
        "IDEBench (text), flights by state of origin, S = |P| = 100",
        (*lapras("static", "smooth"), ("cachedp", None, "basic"), BASELINES[0], *OWN),
    ),
    Sheet(
        "",
        "primm",
        "PRIMM as it is by default, pure releases allowed, S = |P| = 100",
        tuple((method, None, "gaussian") for method in ("primm-default", "primm", "laplace-counts")),
        ("dataset", "order", "overlap"),
    ),
    Sheet(
        "",
        "splits",
        "All splits, Adult's ages, S = |P| = 100",
        lapras("static", "smooth", "smooth-cache", splits=tuple(SHORT)),
    ),
    Sheet(
        "",
        "robustness",
        "Families and orders, Adult's ages, S = |P| = 100, all under Gaussian accounting",
        (
            *(("primm-known", None, "gaussian"), *OWN, *lapras("smooth", accounting="gaussian")),
            *((method, None, "gaussian") for method in ("independent", "offline")),
        ),
        ("family", "order", "overlap"),
    ),
    Sheet(
        "",
        "flights",
        "Four attributes of flights, 334,152 cells: expectations, at (1, 1e-6)",
        (
            *(
                (method, None, "gaussian")
                for method in ("primm", "primm-known", "clairvoyant", "independent")
            ),
            *lapras("static", "smooth", splits=HEAVY[1:], accounting="gaussian"),
            *(("independent", None, "basic"), *lapras("static", "smooth", splits=HEAVY[1:])),
        ),
        ("S", "overlap"),
        metrics=("expected_mae",),
    ),
)


class _Reasons:
    """Numbers of the reasons, by first use."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def mark(self, comparison: Comparison) -> str:
        """The number in brackets; empty where none is needed, a question mark where none is known."""
        if not differs(comparison):
            return ""
        why = explain(comparison)
        return " [?]" if why is None else f" [{self.used.setdefault(why, len(self.used) + 1)}]"


def sheet(results: Sequence[Finished], out: Path) -> Path:
    """
    Write ``tables.md``.

    Parameters
    ----------
    results : sequence of Finished
    out : Path

    Returns
    -------
    Path
        Of the file.
    """
    named = {result.experiment.name: result for result in results}
    every = [one for result in results for one in result.comparisons]
    reasons = _Reasons()
    lines = ["# Reproduction: final tables", "", *_head(results), ""]
    lines += ["## PRIMM against every printed LAPRAS number", "", *_margins(every)]
    lines += ["## Where the paper's arithmetic is sound", "", *_claims(checks(), every)]
    for one in SHEETS:
        if one.experiment in named and named[one.experiment].rows:
            lines += [f"## {one.says}", "", *_table(one, named[one.experiment].rows, reasons), ""]
    for name, title in (("runtime", "Table 4: seconds"), ("estimator", "Theorems 4.2 and 4.3: B̂")):
        if name in named and named[name].rows:
            lines += [f"## {title}", "", *_plain(named[name], reasons), ""]
    lines += ["## The paper's claims", "", *_claims(claims(), every)]
    lines += ["## Reasons", ""]
    lines += [f"{place}. {why}" for why, place in reasons.used.items()] or ["No number needs one."]
    path = out / "tables.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _head(results: Sequence[Finished]) -> list[str]:
    """Where and with what the numbers were found, and how they are written."""
    told = facts(whole([result.manifest for result in results if result.manifest]))
    runs = sorted(
        {row["runs"] for result in results for row in result.rows if "printed" in row and "runs" in row}
    )
    ran = ", ".join(map(str, runs)) or "none"
    words = "; ".join(filter(None, (told, f"runs where something is printed: {ran}")))
    return [f"{words}.", "", LEGEND]


def _margins(every: Sequence[Comparison]) -> list[str]:
    heads = ("table", "numbers compared", f"printed ≥ {FACTOR} × primm", "least ratio", "where")
    heads += ("least by exact value", "where, exact", "ε of primm")
    lines = [
        (
            one.table,
            f"{one.compared} of {one.printed}",
            one.verdict,
            *(f"{one.least:.2f}", one.where, f"{one.least_exact:.2f}", one.where_exact, f"{one.epsilon:g}"),
        )
        for one in margins(every)
    ]
    return [*_markdown(heads, lines), ""]


def _claims(listed: Sequence[Claim], every: Sequence[Comparison]) -> list[str]:
    lines = []
    for one in listed:
        word, measured = one.judge(every)
        lines.append((one.says, one.where, word, measured or "by argument"))
    return [*_markdown(("claim", "where", "verdict", "measured"), lines), ""]


def _table(asked: Sheet, rows: Sequence[Row], reasons: _Reasons) -> Iterator[str]:
    kept = [row for row in rows if all(row[name] == value for name, value in asked.only.items())]
    ways = {(row["method"], row["split"], row["accounting"]) for row in kept}
    columns = [column for column in asked.columns if column in ways]
    several = len(asked.metrics) > 1
    heads = [*asked.heads, *(["metric"] if several else []), *map(_label, columns)]

    def place(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in asked.heads)

    lines = []
    for values, group in groupby(sorted(kept, key=place), key=place):
        found = {(row["method"], row["split"], row["accounting"]): row for row in group}
        for metric in asked.metrics:
            cells = [
                _cell(found[column], asked, metric, reasons) if column in found else "—" for column in columns
            ]
            lines.append([*map(_value, values), *([metric.upper()] if several else []), *cells])
    yield from _markdown(heads, lines)


def _label(column: Column) -> str:
    method, split, accounting = column
    marks = (SHORT[split] if split else "", "GDP" if accounting == "gaussian" and method in BASIC else "")
    return " ".join(filter(None, (method, *marks)))


def _cell(row: Row, asked: Sheet, metric: str, reasons: _Reasons) -> str:
    words = number(row[metric])
    if metric == "mae" and row["expected_mae"] is not None and row["method"] not in LAPLACE:
        words += f" ({number(row['expected_mae'])})"
    one = beside(row, asked.table, metric, asked.metrics) if asked.table else None
    if one is not None:
        words = f"{number(one.printed)} → {words} {number(one.ratio)}{reasons.mark(one)}"
    return words + (f", ε {row['epsilon_true']:.3g}" if row["epsilon_true"] > 1 + 1e-9 else "")


def _plain(result: Finished, reasons: _Reasons) -> Iterator[str]:
    """What was asked, the rows as they are, and the ratio where something is printed."""
    yield result.experiment.question
    yield ""
    names = [name for name in result.experiment.columns if name not in ("note", "printed")]
    about = {one.what: one for one in result.comparisons}
    lines = []
    for row in result.rows:
        line = [_value(row.get(name)) for name in names]
        if "printed" in row:
            what = f"{row['method']}, |P| = {row['P']}, Q = {row['Q']}, seconds"
            one = about.get(what)
            line.append(
                f"{number(one.printed)} → {number(one.ours)}, {number(one.ratio)}{reasons.mark(one)}"
                if one
                else row.get("note") or "—"
            )
        lines.append(line)
    yield from _markdown([*names, *(["printed → ours, ratio"] if "printed" in result.rows[0] else [])], lines)


def _value(value: Any) -> str:
    if value is None:
        return "—"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; what divides its cells is escaped."""
    yield _joined(heads)
    yield "|" + "---|" * len(heads)
    yield from map(_joined, lines)


def _joined(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
