"""What analysts write on a dashboard: how much of it is answered, how well, and why the rest is refused.

``python -m benchmarks dashboard``: ``dashboards`` in the data directory, where there is one, or the packaged
flights and the statements of ``tests/dashboard.sql``.  With ``--data FOLDER`` the folder holds
``lapras.toml``, the table that it names, the lookup ``states.csv`` and ``statements.jsonl``, with one object
``{"kind", "sql"}`` a line.
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
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from experiments.data import find
from laprasdp import datasets
from laprasdp.config import Config, read_config
from laprasdp.errors import LaprasError
from laprasdp.queries.attribute import Attribute, Bins, Categories, Dates, Integers, spell
from laprasdp.queries.prediction import Prediction
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader
from laprasdp.stream.answer import Answer, GroupedAnswer
from laprasdp.stream.asking import Told
from laprasdp.stream.predictions import read_prediction

ROOT = Path(__file__).parent.parent
SIGMAS = 6.0
Row = tuple[tuple[Any, ...], tuple[tuple[float | None, float | None], ...]]
"""Keys of a result row, and its values with their standard deviations."""


_MADE = """SELECT
    CAST(DATE '2001-01-01' + CAST(row_number() OVER () * 7919 % 181 AS INTEGER) AS DATE) AS flight_date,
    CAST(DEP_TIME // 100 % 24 AS TINYINT) AS hour, ORIGIN_STATE_ABR AS origin_state,
    CAST(ARR_DELAY AS SMALLINT) AS arr_delay, CAST(DISTANCE AS SMALLINT) AS distance
FROM '{path}' WHERE DEP_TIME IS NOT NULL AND ARR_DELAY BETWEEN -60 AND 240 AND DISTANCE < 5000
    AND ORIGIN_STATE_ABR IN ({states})"""
_DECLARED = """[source]
file = "flights.parquet"
[privacy]
epsilon = 1.0
delta = 1e-7
unit = "row"
[stream]
horizon = 400
[domain.flight_date]
type = "dates"
first = 2001-01-01
last = 2001-07-31
[domain.hour]
type = "integers"
min = 0
max = 23
[domain.origin_state]
type = "categories"
values = {states}
[domain.arr_delay]
type = "integers"
min = -60
max = 240
[domain.distance]
type = "bins"
start = 0
stop = 5000
width = 250
whole = true
"""


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


def rows(full: bool, quick: bool, data: str = "") -> Iterator[dict[str, Any]]:
    """
    One row a policy and kind of statement, one for all; and one for each reason of a refusal.

    Parameters
    ----------
    full : bool
        The same: primm that knows nothing, primm with a log of the even lines, and independent noise.
    quick : bool
        Only read the statements: how many can be asked, and why the others cannot.
    data : str
        The folder; without, that of the data directory, or the packaged flights where there is none.
    """
    beside = find().root
    if data or (beside is not None and (beside / "dashboards").is_dir()):
        yield from _three_ways(
            Path(data) if data or beside is None else beside / "dashboards", only_read=quick
        )
        return
    with TemporaryDirectory() as made:
        write_packaged(Path(made))
        yield from _three_ways(Path(made), only_read=quick)


def write_packaged(folder: Path) -> None:
    """
    A folder of the packaged flights: a day, an hour, a state, a delay and a distance of each.

    The days are spread over half a year, for the file has three.
    """
    states = (ROOT / "tests/states.csv").read_text(encoding="utf-8")
    (folder / "states.csv").write_text(states, encoding="utf-8")
    flown = ", ".join(f"'{line.partition(',')[0]}'" for line in states.splitlines()[1:])
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        made = _MADE.format(path=datasets.path("flights"), states=flown)
        database.execute(f"COPY ({made}) TO '{folder / 'flights.parquet'}'")
        found = database.execute(
            f"SELECT DISTINCT origin_state FROM '{folder / 'flights.parquet'}' ORDER BY 1"
        )
        known = [one for (one,) in found.fetchall()]
    (folder / "lapras.toml").write_text(_DECLARED.format(states=known), encoding="utf-8")
    kind, lines = "", []
    for line in (ROOT / "tests/dashboard.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("--"):
            kind = line[2:].strip()
        else:
            lines.append(json.dumps({"kind": kind, "sql": line}))
    (folder / "statements.jsonl").write_text("\n".join(lines), encoding="utf-8")


def _three_ways(folder: Path, *, only_read: bool) -> Iterator[dict[str, Any]]:
    asked = [json.loads(line) for line in (folder / "statements.jsonl").read_text().splitlines()]
    config = dashboard(folder)
    policies = {"primm": (config, asked)}
    if not only_read:
        even, odd = asked[1::2], asked[::2]
        known = [Prediction(one["sql"]) for one in even if _askable(config, one["sql"])]
        logged = replace(config, stream=replace(config.stream, predictions=tuple(known)))
        policies["primm, even lines as a log"] = (logged, odd)
        policies["independent"] = (
            replace(config, stream=replace(config.stream, policy="independent")), asked
        )  # fmt: skip
    for name, (chosen, statements) in policies.items():
        yield from _policy(name, chosen, statements, only_read=only_read)


def dashboard(folder: Path) -> Config:
    """The declared session, with the folder's lookup of states."""
    config = read_config(folder / "lapras.toml")
    return replace(config, lookups={"states": Lookup.read(folder / "states.csv", "abr"), **config.lookups})


def _askable(config: Config, text: str) -> bool:
    """Whether a line of a log can be predicted; a log leaves out what cannot be, or asks nothing."""
    try:
        read_prediction(Prediction(text), Reader(config.domain, config.name, lookups=config.lookups))
    except LaprasError:
        return False
    return True


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
