"""How answers are printed: a table that grows line by line, JSON lines, or CSV."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from laprasdp.cli.show import price, records, shorten
from laprasdp.config.config import Config
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.asking import Asking, Told
from laprasdp.stream.resultset import Figure, ResultRow, ResultSet

Format = Literal["json", "csv", "text"]
Post = Literal["nonnegative", "rounded", "consistent", "fitted"]
REASONS = {
    "opening": "the first release, before the stream",
    "batch": "more for the predicted queries still to come",
    "raise": "what the raised budget has room for",
}
Write = Callable[[int | None, Told], None]
FIELDS = (
    *("line", "query", "group", "column", "value", "nonnegative", "std"),
    *("low", "high", "source", "charge", "remaining", "released"),
)


def fitting(config: Config, post: Post | None) -> tuple[Config, Post | None]:
    """What is declared, with fitted values if they are asked for; and what is printed beside each value."""
    if post == "fitted":
        config = replace(config, stream=replace(config.stream, post="fitted"))
    return config, post or ("fitted" if config.stream.post else None)


def writer(form: Format, level: float, session: Asking, post: Post | None = None) -> Write:
    """What prints the answers of one statement after another, with the line where each stands."""
    return {"json": _json_lines, "csv": _csv, "text": _text}[form](level, session, post)


def adjusted(answer: Told, post: Post) -> list[float]:
    """
    One value an answer, to stand beside the unbiased one.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """
    if isinstance(answer, GroupedAnswer) and post == "consistent":
        return list(answer.consistent())
    if post == "fitted":
        return [one.nonnegative if one.fitted is None else one.fitted for one in members(answer)]
    return [one.rounded if post == "rounded" else one.nonnegative for one in members(answer)]


def members(answer: Told) -> list[Answer]:
    """The answers of a statement, one each group; none of a result that is worked out from several."""
    if isinstance(answer, ResultSet):
        return []
    return list(answer) if isinstance(answer, GroupedAnswer) else [answer]


def _rows(line: int | None, answer: Told, post: Post | None, level: float) -> Iterator[dict[str, Any]]:
    if isinstance(answer, ResultSet):
        yield from ({**({} if line is None else {"line": line}), **row} for row in answer.json_rows(level))
        return
    values = None if post is None else adjusted(answer, post)
    for place, one in enumerate(members(answer)):
        row = one.row(level) if line is None else {"line": line, **one.row(level)}
        yield row if values is None else row | {"post": values[place]}


def _json_lines(level: float, session: Asking, post: Post | None) -> Write:
    def write(line: int | None, answer: Told) -> None:
        for row in _rows(line, answer, post, level):
            print(json.dumps(row))

    return write


def _values(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A line for each value of each row, with the name of its column."""
    for row in rows:
        for name, figure in row["columns"].items():
            yield {**row, **figure, "column": name}


def _csv(level: float, session: Asking, post: Post | None) -> Write:
    fields = FIELDS if post is None else (*FIELDS, "post")
    made = csv.DictWriter(sys.stdout, fields, extrasaction="ignore", lineterminator="\n")
    made.writeheader()
    sys.stdout.flush()

    def write(line: int | None, answer: Told) -> None:
        for row in _values(_rows(line, answer, post, level)):
            if "group" in row:
                row["group"] = json.dumps(row["group"], ensure_ascii=False)
            row["released"] = json.dumps(row["released"]) if row["released"] else ""
            made.writerow(row)

    return write


def _text(level: float, session: Asking, post: Post | None) -> Write:
    column = "" if post is None else "  {:>11}"
    layout = "{:>4}  {:>11}  {:>8}  {:>11} … {:<11}" + column + " {:<9} {:>9}  {}"
    width = 74 if post is None else 87
    limit = shutil.get_terminal_size().columns - width if sys.stdout.isatty() else None
    charge, added = f"charge {session.unit}", [] if post is None else [post]
    header = layout.format("line", "answer", "std", "low", "high", *added, "source", charge, "statement")
    print(header, flush=True)

    def write(line: int | None, answer: Told) -> None:
        values = None if post is None else adjusted(answer, post)
        number = "" if line is None else line
        if isinstance(answer, GroupedAnswer):
            print(f"{number:>4}  {shorten(answer.query, limit and limit + width - 6)}")
        if isinstance(answer, ResultSet):
            _table(answer, level, number, limit and limit + width - 6)
        most = max((abs(one.value) for one in members(answer)), default=0.0)
        for place, one in enumerate(members(answer)):
            what = one.query if one.group is None else _group(one.group)
            numbers = [records(value) for value in (one.value, one.std, *one.interval(level))]
            if values is not None:
                numbers.append(f"{values[place]:,}" if post == "rounded" else records(values[place]))
            shown = shorten(what, limit and max(limit, 12))
            bars = f"{_bar(one.value, most)}  " if isinstance(answer, GroupedAnswer) else ""
            print(layout.format(number, *numbers, one.source, price(one.charge), bars + shown).rstrip())
        for released in answer.released:
            where = "" if released.period is None else f" in the period from {released.period}"
            why, cost = REASONS[released.reason], price(released.charge)
            print(f"      also released{where}: {why}, {charge} {cost}")

    return write


def _table(answer: ResultSet, level: float, number: int | str, width: int | None) -> None:
    """The rows of a result, aligned: each value with the ends of its interval, and bars where they fit."""
    print(f"{number:>4}  {shorten(answer.query, width)}")
    columns = [_column(answer, name, level) for name in answer.names]
    if any(row.belongs is not None for row in answer):
        columns.append(["belongs", *("" if row.belongs is None else _chance(row.belongs) for row in answer)])
    lines = [_line(cells, columns) for cells in zip(*columns, strict=True)] if len(answer) else []
    for line, bar in zip(lines, ["", *_bars(answer)], strict=True) if lines else ():
        fits = width is None or max(map(len, lines)) + 16 <= width + 6
        print(f"      {line}{'  ' + bar if fits else ''}".rstrip())
    if answer.left_out:
        others = "; ".join(f"{_group(one.group)} ({_chance(one.belongs)})" for one in answer.left_out)
        print(f"      left out, and may belong: {others}")
    print(f"      {answer.source}, {price(answer.charge)}")


def _column(answer: ResultSet, name: str, level: float) -> list[str]:
    """A column as text, its name first: keys as they are, values right-aligned beside their intervals."""
    cells = [_spelled(row, name, level) for row in answer]
    if any(name in row.group for row in answer):
        return [name, *cells]
    pairs = [cell.partition(" ")[::2] for cell in cells]
    wide = max((len(value) for value, _ in pairs), default=0)
    return [name.rjust(wide), *(f"{value:>{wide}} {rest}".rstrip() for value, rest in pairs)]


def _line(cells: Sequence[str], columns: Sequence[list[str]]) -> str:
    wide = [max(map(len, column)) for column in columns]
    return "  ".join(cell.ljust(size) for cell, size in zip(cells, wide, strict=True)).rstrip()


def _bars(answer: ResultSet) -> list[str]:
    """A bar a row for the first column of numbers; none for a single row."""
    for name in answer.names if len(answer) > 1 else ():
        values = [row.columns[name].value if name in row.columns else None for row in answer]
        numbers = [float(value) if isinstance(value, float | int) else math.nan for value in values]
        if any(map(math.isfinite, numbers)):
            most = max(abs(value) for value in numbers if math.isfinite(value))
            return [_bar(value if math.isfinite(value) else 0.0, most) for value in numbers]
    return [""] * len(answer)


def _spelled(row: ResultRow, name: str, level: float) -> str:
    if name in row.group:
        key = row.group[name]
        return "NULL" if key is None else str(key).lower() if isinstance(key, bool) else str(key)
    return _figure(row.columns[name], level)


def _figure(figure: Figure, level: float) -> str:
    if figure.parts:
        return f"[{'; '.join(_figure(part, level) for part in figure.parts)}]"
    if not isinstance(figure.value, float | int):
        return "NULL" if figure.value is None else str(figure.value)
    low, high = figure.interval(level)
    if math.isinf(low) or math.isinf(high):
        return f"{figure.value:,.6g} (unbounded)"
    return f"{figure.value:,.6g} ({low:,.6g} … {high:,.6g})"


def _chance(probability: float) -> str:
    """A probability from some hundred draws: never quite none or all."""
    return "> 99%" if probability > 0.99 else "< 1%" if probability < 0.01 else f"{probability:.0%}"


def _bar(value: float, most: float) -> str:
    """A bar of eight signs at most, as long as the value beside the largest."""
    return ("▇" * round(8 * max(value, 0.0) / most if most else 0)).ljust(8)


def _group(group: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in group.items())
