"""What analysts write on a dashboard: how much of it is answered, how well, and why the rest is refused.

``python -m benchmarks dashboard --data FOLDER``: the folder holds ``lapras.toml``, the table that it names,
the lookup ``states.csv`` and ``statements.jsonl``, one object ``{"kind", "sql"}`` a line.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from laprasdp.config import Config, read_config
from laprasdp.errors import LaprasError
from laprasdp.queries.attribute import Attribute, Bins, Categories, Dates, Integers, spell
from laprasdp.queries.prediction import Prediction
from laprasdp.sql.lookup import Lookup
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.asking import Told

SIGMAS = 6.0
Row = tuple[tuple[Any, ...], tuple[tuple[float | None, float | None], ...]]
"""Keys of a result row, and its values with their standard deviations."""


@dataclass
class Kind:
    """What came of the statements of one kind."""

    asked: int = 0
    answered: int = 0
    exact: int = 0
    errors: list[float] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def row(self, policy: str, kind: str) -> dict[str, Any]:
        """As the benchmark prints it."""
        return {
            "policy": policy,
            "kind": kind,
            "asked": self.asked,
            "answered": self.answered,
            "exact": self.exact,
            "mae": statistics.fmean(self.errors) if self.errors else None,
            "relative": statistics.median(self.relative) if self.relative else None,
            "seconds_p50": statistics.median(self.seconds) if self.seconds else None,
        }


def rows(full: bool, quick: bool, data: str) -> Iterator[dict[str, Any]]:
    """
    One row a policy and kind of statement, one for all; and one for each reason of a refusal.

    Parameters
    ----------
    full : bool
        Also what takes minutes: primm with a log of the even lines, and independent noise.
    quick : bool
        Only read the statements: how many can be asked, and why the others cannot.
    data : str
        The folder.
    """
    folder = Path(data)
    asked = [json.loads(line) for line in (folder / "statements.jsonl").read_text().splitlines()]
    config = dashboard(folder)
    policies = {"primm": (config, asked)}
    if full:
        even, odd = asked[1::2], asked[::2]
        known = [Prediction(one["sql"]) for one in even]
        logged = replace(config, stream=replace(config.stream, predictions=tuple(known)))
        policies["primm, even lines as a log"] = (logged, odd)
        policies["independent"] = (
            replace(config, stream=replace(config.stream, policy="independent")), asked
        )  # fmt: skip
    for name, (chosen, statements) in policies.items():
        yield from _policy(name, chosen, statements, only_read=quick)


def dashboard(folder: Path) -> Config:
    """The declared session, with the folder's lookup of states."""
    config = read_config(folder / "lapras.toml")
    return replace(config, lookups={"states": Lookup.read(folder / "states.csv", "abr"), **config.lookups})


def _policy(
    name: str, config: Config, asked: Sequence[Mapping[str, str]], *, only_read: bool
) -> Iterator[dict[str, Any]]:
    kinds: dict[str, Kind] = {}
    refused: dict[str, list[str]] = {}
    whole = Kind()
    with config.open() as session, truth(config) as database:
        for one in asked:
            for kind in (kinds.setdefault(one["kind"], Kind()), whole):
                kind.asked += 1
            started = time.perf_counter()
            try:
                told = None if only_read and session.parse(one["sql"]) else session.ask(one["sql"])
            except LaprasError as error:
                refused.setdefault(str(error), []).append(one["sql"])
                continue
            seconds = time.perf_counter() - started
            found = None if told is None else compared(told, one["sql"], database)
            for kind in (kinds[one["kind"]], whole):
                kind.answered += 1
                kind.seconds.append(seconds)
                if found is not None:
                    kind.exact += found[0]
                    kind.errors += found[1]
                    kind.relative += found[2]
    for kind_name, kind in kinds.items():
        yield kind.row(name, kind_name)
    yield whole.row(name, "all")
    for reason, texts in sorted(refused.items(), key=lambda pair: -len(pair[1])):
        yield {"policy": name, "refused": len(texts), "reason": reason, "example": texts[0]}


def truth(config: Config) -> duckdb.DuckDBPyConnection:
    """DuckDB on the table itself, its rows inside the domain, and on the lookups; the table is public."""
    database = duckdb.connect()
    database.execute("SET threads = 1")
    inside = " AND ".join(_inside(name, config.domain[name]) for name in config.domain)
    database.execute(f"CREATE TABLE {config.name} AS SELECT * FROM '{config.source}' WHERE {inside}")
    for name, lookup in config.lookups.items():
        database.register(name, lookup.rows)
    return database


def _inside(name: str, attribute: Attribute) -> str:
    """The condition that a row lies inside the domain in one attribute."""
    column = f'"{name}"'
    match attribute:
        case Integers(min=low, max=high):
            inside = f"{column} BETWEEN {low} AND {high}"
        case Bins(edges=edges):
            inside = f"{column} >= {edges[0]} AND {column} < {edges[-1]}"
        case Dates(first=first, last=last):
            inside = f"{column} BETWEEN '{first}' AND '{last}'"
        case Categories(names=names, other=False):
            inside = f"{column} IN ({', '.join(map(spell, names))})"
        case _:
            inside = f"{column} IS NOT NULL"
    return f"({inside} OR {column} IS NULL)" if attribute.nullable else f"({inside})"


def compared(
    told: Told, text: str, database: duckdb.DuckDBPyConnection
) -> tuple[bool, list[float], list[float]]:
    """
    Whether an answer is DuckDB's within six standard deviations; absolute and relative errors of its values.

    Notes
    -----
    Groups that DuckDB does not list have no row, so their counts and sums are 0 there.  Keys that are labels
    of bins have no counterpart in DuckDB, so such results are not compared.
    """
    ours, theirs = shown(told), database.execute(text).fetchall()
    keys = len(ours[0][0]) if ours else 0
    listed = {tuple(map(plain, row[:keys])): row[keys:] for row in theirs}
    if ours and keys and not any(key in listed for key, _ in ours):
        return False, [], []
    good, errors, relative = True, list[float](), list[float]()
    for key, values in ours:
        true = listed.get(key)
        for place, (value, std) in enumerate(values):
            if true is not None and (value is None or not isinstance(plain(true[place]), float)):
                good = good and value == plain(true[place])
                continue
            right = 0.0 if true is None else plain(true[place])
            if value is None or std is None:
                continue
            errors.append(abs(value - right))
            relative += [abs(value - right) / abs(right)] if right else []
            good = good and abs(value - right) <= SIGMAS * std + 1e-6 * max(1.0, abs(right))
    return good and set(listed) <= {key for key, _ in ours}, errors, relative


def shown(told: Told) -> list[Row]:
    """The rows of an answer: keys, and values with their standard deviations."""
    if isinstance(told, Answer | GroupedAnswer):
        answers = [told] if isinstance(told, Answer) else list(told)
        return [(tuple(map(plain, (one.group or {}).values())), ((one.value, one.std),)) for one in answers]
    return [
        (
            tuple(map(plain, row.group.values())),
            tuple((plain(one.value), one.std) for one in row.columns.values()),
        )
        for row in told
    ]


def plain(value: Any) -> Any:
    """A value of DuckDB or of ours, so that both compare."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return float(value) if math.isfinite(value) else None
    return str(value)
