"""The report as one page: each experiment with its picture, its claim and the printed numbers beside ours."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from experiments.claim import Claim, checks, claims
from experiments.comparison import IN_ITS_PLACE
from experiments.experiment import Comparison, Finished
from experiments.margin import FACTOR, margins
from experiments.picture import number
from experiments.reason import LIMIT, differs, explain
from experiments.store import facts, whole

HOME = Path(__file__).parent
UNEXPLAINED = "unexplained"
VERDICTS = {
    "holds": "holds",
    "holds in part": "open",
    "not run": "open",
    "fails": "fails",
    "cannot hold": "fails",
}
HEADS = ("what", "printed", "ours", "ratio", "where")
FIGURES = (False, True, True, True, False)
LEGIBLE = 0.7
"""Pictures are shown at this share of their size at least, and scroll in their box where that is too wide."""
OPEN, SHORT = 8, 24
"""Tables of comparisons, and of all rows, are shown unfolded up to this many lines."""


def page(results: Sequence[Finished], out: Path) -> Path:
    """
    Write ``index.html``, which needs no other file.

    Parameters
    ----------
    results : sequence of Finished
    out : Path
        Where the pictures ``NAME.svg`` (or ``NAME.png``) lie; the page is written beside them.

    Returns
    -------
    Path
        Of the page.
    """
    every = [one for result in results for one in result.comparisons]
    text = Template((HOME / "page.html").read_text(encoding="utf-8")).substitute(
        css=(HOME / "page.css").read_text(encoding="utf-8"),
        facts=_facts(whole([result.manifest for result in results if result.manifest])),
        contents="\n".join(
            f'<li><a href="#{escape(name)}">{escape(title)}</a></li>'
            for name, title in [
                ("claims", "Which printed claims hold"),
                ("checks", "Where the paper's arithmetic is sound"),
                ("margins", "PRIMM against every printed LAPRAS number"),
                *((result.experiment.name, result.experiment.title) for result in results),
                ("words", "Words and columns"),
            ]
        ),
        tally=escape(_tally(every)),
        claims=_claims(claims(), every, "The paper's claims, what this run shows of them, and why."),
        checks=_claims(
            checks(), every, "What has to agree, whether it does in this run, and how it is judged."
        ),
        margins=_margins(every),
        experiments="\n".join(_section(result, out) for result in results) or "<p>No experiment was run.</p>",
        note="— stands for no value. The rows of each experiment, with further columns, lie beside this page "
        "as CSV; its settings and versions as JSON.",
    )
    path = out / "index.html"
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _tally(every: Sequence[Comparison]) -> str:
    own = [one for one in every if not one.what.endswith(IN_ITS_PLACE)]
    if not own:
        return "No printed number was compared."
    off = [one for one in own if differs(one)]
    unknown = sum(explain(one) is None for one in off)
    said = (
        f"{len(own)} printed numbers compared: {len(own) - len(off)} within {LIMIT:.0%}, "
        f"{len(off) - unknown} further off with a reason, {unknown} {UNEXPLAINED}."
    )
    if len(own) < len(every):
        said += f" Beside {len(every) - len(own)} of LAPRAS's stands PRIMM too, which is another algorithm."
    return said


def _claims(listed: Sequence[Claim], every: Sequence[Comparison], caption: str) -> str:
    lines = []
    for claim in listed:
        word, measured = claim.judge(every)
        lines.append(
            f'<tr><th scope="row">{escape(claim.says)}{_soft(claim.where)}</th>'
            f"<td>{_verdict(word)}{_soft(measured)}</td>"
            f'<td class="why">{escape(claim.why)}</td></tr>'
        )
    return _table(("claim", "verdict", "why"), lines, caption, "claims")


def _verdict(word: str) -> str:
    return f'<span class="verdict {VERDICTS.get(word, "open")}">{escape(word)}</span>'


def _margins(every: Sequence[Comparison]) -> str:
    """Of each table the least ratio of a printed error to PRIMM's."""
    found = margins(every)
    if not found:
        return "<p>No stream of these tables was run.</p>"
    lines = [
        f'<tr><th scope="row">{escape(one.table)}</th><td>{_verdict(one.verdict)}</td>'
        f'<td class="number">{one.compared} of {one.printed}</td>'
        f'<td class="number">{one.least:.2f}</td><td class="place">{escape(one.where)}</td>'
        f'<td class="number">{one.least_exact:.2f}</td><td class="place">{escape(one.where_exact)}</td>'
        f'<td class="number">{one.epsilon:g}</td></tr>'
        for one in found
    ]
    heads = (
        "table",
        f"{FACTOR}× or more",
        "numbers compared",
        "least",
        "where",
        "least, exact",
        "where",
        "ε spent",
    )
    marks = (False, False, True, True, False, True, False, True)
    return _table(heads, lines, "Printed over PRIMM's, the least of each table", figures=marks)


def _soft(words: str) -> str:
    return f'<br><span class="soft">{escape(words)}</span>' if words else ""


def _section(result: Finished, out: Path) -> str:
    asked = result.experiment
    question = re.sub("`([^`]+)`", r"<code>\1</code>", escape(asked.question))
    parts = [f"<p>{question}</p>", _picture(result, out)]
    if result.rows:
        parts.append(f'<p class="claim">{escape(asked.claim)}</p>')
    parts += [
        _skipped(result.skipped),
        _comparisons(result.comparisons),
        _rows(result),
        _facts(result.manifest),
    ]
    name = escape(asked.name)
    body = "\n".join(filter(None, parts))
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(asked.title)}</h2>\n{body}\n</section>'
    )


def _picture(result: Finished, out: Path) -> str:
    asked = result.experiment
    for suffix, kind in (("svg", "image/svg+xml"), ("png", "image/png")):
        path = out / f"{asked.name}.{suffix}"
        if result.rows and path.exists():
            drawn = path.read_bytes()
            data, wide = (
                base64.b64encode(drawn).decode(),
                re.search(rb'<svg [^>]*\bwidth="([\d.]+)pt"', drawn),
            )
            least = LEGIBLE * float(wide[1]) if wide else 0.0
            alt = escape(f"{asked.title}. {asked.claim} The numbers are in the table of all rows.")
            caption = escape(f"{asked.title}. Thin bars: least and largest over the runs.")
            return (
                '<figure><div class="card" tabindex="0" role="group" aria-label="picture">'
                f'<img src="data:{kind};base64,{data}" style="min-width:{least:.0f}pt" alt="{alt}"></div>\n'
                f"<figcaption>{caption}</figcaption></figure>"
            )
    return "<p>No picture was drawn.</p>" if result.rows else ""


def _skipped(skipped: Mapping[str, str]) -> str:
    if not skipped:
        return ""
    lines = []
    for reason in dict.fromkeys(skipped.values()):
        keys = [key for key, why in skipped.items() if why == reason]
        lines.append(f"<li>{len(keys)} of its cells: {escape(reason)}{_soft(', '.join(keys))}</li>")
    return f"<h3>Not run</h3>\n<ul>{''.join(lines)}</ul>"


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    """Grouped by reason: what nothing explains first, what agrees last."""
    if not comparisons:
        return ""
    groups: dict[str, list[Comparison]] = {}
    for one in sorted(comparisons, key=lambda one: (not differs(one), explain(one) is not None)):
        words = (explain(one) or UNEXPLAINED) if differs(one) else ""
        groups.setdefault(words, []).append(one)
    return f"<h3>Printed and ours</h3>\n<p>{escape(_tally(comparisons))}</p>\n" + "\n".join(
        map(_group, groups.items())
    )


def _group(group: tuple[str, list[Comparison]]) -> str:
    reason, members = group
    ratios = [one.ratio for one in members]
    spread = f"ours over printed {number(min(ratios))}"
    if number(max(ratios)) != number(min(ratios)):
        spread += f" to {number(max(ratios))}"
    kind = f' class="{UNEXPLAINED}"' if reason == UNEXPLAINED else ""
    head = f"<p{kind}>{escape(reason)}</p>" if reason else f"<p>Within {LIMIT:.0%} of the printed number.</p>"
    lines = [
        _line(one.what, [*map(number, (one.printed, one.ours, one.ratio)), one.table], FIGURES[1:])
        for one in members
    ]
    table = _table(HEADS, lines, "", figures=FIGURES)
    unfolded = reason == UNEXPLAINED or (reason and len(members) <= OPEN)
    count = f"{len(members)} number{'s' * (len(members) != 1)}, {spread}"
    return f"{head}\n<details{' open' * bool(unfolded)}><summary>{escape(count)}</summary>{table}</details>"


def _rows(result: Finished) -> str:
    if not result.rows:
        return "<p>No cell of this experiment has rows.</p>"
    columns = tuple(result.experiment.columns)
    figures = [all(isinstance(row.get(name), int | float | None) for row in result.rows) for name in columns]
    figures[0] = False  # it names the row
    lines = [
        _line(_value(row.get(columns[0])), [_value(row.get(name)) for name in columns[1:]], figures[1:])
        for row in result.rows
    ]
    table = _table(columns, lines, result.experiment.title, figures=figures)
    unfolded = " open" * (len(lines) <= SHORT)
    return f"<details{unfolded}><summary>All {len(lines)} rows</summary>{table}</details>"


def _table(
    heads: Sequence[str], lines: Iterable[str], caption: str, kind: str = "", figures: Sequence[bool] = ()
) -> str:
    """In a box of its own that scrolls, so that the page does not; `figures` are the columns of numbers."""
    marks = figures or [False] * len(heads)
    top = "".join(_cell("th", head, mark, ' scope="col"') for head, mark in zip(heads, marks, strict=True))
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    named, kind = escape(caption or "printed and ours"), f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{named}"><table{kind}>{title}'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _line(head: str, cells: Iterable[str], figures: Iterable[bool]) -> str:
    """A row of text, of which the first cell names it."""
    rest = "".join(_cell("td", cell, mark) for cell, mark in zip(cells, figures, strict=True))
    return "<tr>" + _cell("th", head, False, ' scope="row"') + rest + "</tr>"


def _cell(tag: str, text: str, figure: bool, more: str = "") -> str:
    kind = ' class="number"' if figure else ""
    return f"<{tag}{more}{kind}>{escape(text)}</{tag}>"


def _value(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _facts(manifest: Mapping[str, Any]) -> str:
    words = facts(manifest)
    return f'<p class="facts">{escape(words)}</p>' if words else ""
