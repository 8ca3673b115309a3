"""What every engine must do with a plan: count what plain Python counts.  A new engine is one line below."""

import datetime as dt
import hashlib
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import ibis
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres import Server
from sources import as_dict, level_of
from spark import Cluster

from laprasdp.data.cells import CellTable
from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb_engine import DuckDBEngine
from laprasdp.data.duckdb_words import DUCKDB
from laprasdp.data.engine import Engine
from laprasdp.data.ibis_source import open_backend
from laprasdp.data.postgres_engine import PostgresEngine
from laprasdp.data.scan import plan
from laprasdp.data.schema import open_source
from laprasdp.data.spark_engine import SparkEngine
from laprasdp.data.words import WORDS
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

Opener = Callable[[pa.Table, Path], Engine]
number = count()


def duckdb_in_memory(table: pa.Table, _: Path) -> Engine:
    return DuckDBEngine(open_source(table))


def duckdb_parquet(table: pa.Table, folder: Path) -> Engine:
    path = folder / f"{next(number)}.parquet"
    pa.parquet.write_table(table, path)
    return DuckDBEngine(open_source(path))


def duckdb_database(table: pa.Table, folder: Path) -> Engine:
    path = folder / f"{next(number)}.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS FROM given")
    return DuckDBEngine(open_source(path))


def ibis_duckdb(table: pa.Table, _: Path) -> Engine:
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.con.execute("CREATE TABLE t AS FROM given")
    with pytest.warns(match="t of duckdb is read through Ibis, which is experimental"):
        return DuckDBEngine(open_backend(connection, "t"))


POSTGRES_TYPES = {
    pa.int32(): "integer", pa.int64(): "bigint", pa.float64(): "double precision", pa.string(): "text",
    pa.date32(): "date", pa.bool_(): "boolean",
}  # fmt: skip


def copied(server: Server, table: pa.Table, name: str) -> None:
    """The table in PostgreSQL, which has no text with a NUL: another sign stands there."""
    columns = ", ".join(f"{field.name} {POSTGRES_TYPES[field.type]}" for field in table.schema)
    with psycopg.connect(server.url) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*table.to_pydict().values(), strict=True):
                copy.write_row([v.replace("\0", "\1") if isinstance(v, str) else v for v in row])


def postgresql(server: Server) -> Opener:
    def opened(table: pa.Table, _: Path) -> Engine:
        name = f"t{next(number)}"
        copied(server, table, name)
        return PostgresEngine(server.url, name)

    return opened


DUCKDB_OPENERS: list[Opener] = [duckdb_in_memory, duckdb_parquet, duckdb_database, ibis_duckdb]


def spark(cluster: Cluster) -> Opener:
    def opened(table: pa.Table, folder: Path) -> Engine:
        path = folder / f"{next(number)}.parquet"
        pa.parquet.write_table(table, path)
        return SparkEngine(cluster.session, str(path))

    return opened


SERVERS = {postgresql: "postgres", spark: "cluster"}


@pytest.fixture(
    params=[*DUCKDB_OPENERS, postgresql, pytest.param(spark, marks=pytest.mark.xdist_group("spark"))],
    ids=lambda opener: opener.__name__,
)
def opened(request: pytest.FixtureRequest) -> Opener:
    """How each engine opens a table."""
    server = SERVERS.get(request.param)
    return request.param if server is None else request.param(request.getfixturevalue(server))


DOMAIN = Domain(
    n=Integers(-1, 3, nullable=True),
    x=Bins([-1, 0, 0.5, 9], nullable=True),
    fine=Bins(range(-100, 100)),
    city=Categories(["", "a", "A", "é", 'q"\\{},', "NULL", "b\0"], other=True, nullable=True),
    day=Dates("2019-12-31", "2020-03-31", step="month"),
    ok=Booleans(nullable=True),
)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("fine", pa.float64()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("who", pa.string()),
    ]
)
Row = tuple[Any, ...]


def drawn(seed: int) -> list[Row]:
    """Rows mostly in the domain, some of them several times: equal rows of a person meet its limit."""
    rng = random.Random(seed)
    days = [dt.date(2019, 12, 31) + dt.timedelta(days=n) for n in range(92)]
    values: list[list[Any]] = [
        [None, *range(-2, 5), -(2**63), 2**63 - 1],
        [None, -1.0, -0.0, 0.5, 8.9, 9.0, math.nan, math.inf],
        [-100.0, -0.5, 0.0, 1.0, 99.0, 99.5, 100.0, math.nan, math.inf],
        [None, "", "a", "A", "é", "e\u0301", "a ", "a\0", "%", 'q"\\{},', "NULL", "null"],
        [*days, dt.date.min, dt.date.max],
        [None, True, False],
        ["p", "P", "p|1", "", "ü", None],
    ]
    rows = [tuple(map(rng.choice, values)) for _ in range(40)]
    return [row for row in rows for _ in range(rng.randint(1, 4))]


rows_of = st.integers(0, 2**32).map(drawn)
units = st.just(PrivacyUnit()) | st.integers(1, 3).map(lambda most: PrivacyUnit("who", most))
Apart = tuple[str, Sequence[int]] | None
aparts = st.sampled_from([None, ("day", [0]), ("day", [0, 1, 3])])


def arrow(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def expected(domain: Domain, rows: Sequence[Row], unit: PrivacyUnit, key: str, apart: Apart) -> Counter[Row]:
    """What a scan counts, by the words of docs/proofs/table.md alone."""
    return Counter(levels for _, levels in kept(domain, rows, unit, key, apart))


def kept(
    domain: Domain, rows: Sequence[Row], unit: PrivacyUnit, key: str, apart: Apart
) -> list[tuple[str | None, Row]]:
    """The rows that count: whose they are, and their levels."""
    found: list[tuple[str | None, Row]] = []
    of_person: defaultdict[tuple[str, int], list[tuple[Any, ...]]] = defaultdict(list)
    copies: Counter[Row] = Counter()
    for row in rows:
        by_name = dict(zip(SCHEMA.names, row, strict=True))
        read = [level_of(domain[name], by_name[name]) for name in domain]
        levels = tuple(level for level in read if level is not None)
        if len(levels) < len(read):
            continue
        if unit.column is None:
            found.append((None, levels))
            continue
        who = by_name[unit.column]
        if who is None:
            continue
        copies[(who, *levels)] += 1
        said, period = list(levels), 0
        if apart is not None:
            place = list(domain).index(apart[0])
            period = max(start for start in apart[1] if start <= levels[place])
            said[place] -= period
        copy = copies[(who, *levels)]
        text = "|".join(map(str, [key, who, *said, copy]))
        order = hashlib.md5(text.encode()).hexdigest()
        of_person[who, period].append((order, levels, copy))
    for (who, _), own in of_person.items():
        found += [(who, levels) for _, levels, _ in sorted(own)[: unit.max_rows]]
    return found


@contextmanager
def running(
    engine: Engine, domain: Domain, unit: PrivacyUnit, key: str, apart: Apart = None
) -> Iterator[list[pa.RecordBatch]]:
    """The batches of one run, with the engine closed."""
    try:
        columns, person = engine.columns(list(domain), unit.column)
        periods = None if apart is None else (domain.axis(apart[0]), apart[1])
        scan = plan(domain, columns, person, unit=unit, key=key, apart=periods, dialect=Dialect())
        assert list(engine.types(scan)) == list(domain)
        batches = list(engine.run(scan))
    finally:
        engine.close()
    yield batches


def counted(batches: Sequence[pa.RecordBatch], domain: Domain) -> Counter[Row]:
    """The counts of batches, each of which has the names and types of the contract."""
    found: Counter[Row] = Counter()
    names = [f"a{i}" for i in range(len(domain))]
    for batch in batches:
        assert sorted({*batch.schema.names, "rows", "who"}) == sorted([*names, "rows", "who"])
        assert all(pa.types.is_integer(field.type) for field in batch.schema)
        for line in batch.to_pylist():
            rows = line["rows"] if "rows" in line or "who" not in line else 1
            assert rows > 0
            found[tuple(line[name] for name in names)] += rows
    return found


def test_a_run_counts_what_plain_python_counts(opened: Opener, tmp_path: Path) -> None:
    examples = 5 if opened.__qualname__.startswith("spark") else 20
    assert_runs_count(opened, tmp_path, DOMAIN, examples)


def assert_runs_count(opened: Opener, folder: Path, domain: Domain, examples: int) -> None:
    """Of tables that are drawn, with every kind of unit; periods where the domain has dates."""
    rows_that_count: list[int] = []

    @settings(
        derandomize=True, deadline=None, max_examples=examples, database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(
        rows=rows_of,
        unit=units,
        key=st.sampled_from(["k", "", "k|p"]),
        apart=aparts if "day" in domain else st.none(),
    )
    def counts(rows: list[Row], unit: PrivacyUnit, key: str, apart: Apart) -> None:
        with running(opened(arrow(rows), folder), domain, unit, key, apart) as batches:
            whose = kept(domain, rows, unit, key, apart)
            wanted = Counter(levels for _, levels in whose)
            rows_that_count.append(wanted.total())
            assert counted(batches, domain) == wanted
            several = unit.max_rows > 1
            assert all(("who" in batch.schema.names) == several for batch in batches)
            cells = CellTable("t", domain, batches, persons=several)
        for axes in [(), (3,), (0, len(domain) - 2), tuple(range(len(domain)))]:
            parts: Counter[Row] = Counter()
            for levels, n in wanted.items():
                parts[tuple(levels[axis] for axis in axes)] += n
            found = as_dict(cells.marginal(axes), axes)
            assert found == (dict(parts) or ({} if axes else {(): 0}))
            if several:  # each person once
                people = {(who, tuple(row[axis] for axis in axes)) for who, row in whose}
                marginal = cells.marginal((*axes, len(domain)))
                columns = [marginal.levels[axis].tolist() for axis in (*axes, len(domain))]
                found_people = Counter(line[:-1] for line in zip(*columns, strict=True))
                assert found_people == Counter(levels for _, levels in people)
                held = len({who for who, _ in people})
                assert sorted(set(marginal.levels[len(domain)].tolist())) == list(range(held))
        cells.close()

    counts()
    assert sum(rows_that_count) > examples


def test_the_key_and_the_periods_decide_and_the_order_of_rows_does_not(
    opened: Opener, tmp_path: Path
) -> None:
    """40 persons with eight rows of which two count: another choice for each key, and for periods."""
    domain = Domain(n=Integers(0, 9), day=Dates("2020-01-01", "2020-02-29", step="month"))
    rows: list[Row] = [
        (n, None, 0.0, None, dt.date(2020, 1 + n % 2, 1), None, f"p{who}")
        for who in range(40)
        for n in range(8)
    ]
    unit = PrivacyUnit("who", 2)

    def run(rows: Sequence[Row], key: str, apart: Apart = None) -> Counter[Row]:
        with running(opened(arrow(rows), tmp_path), domain, unit, key, apart) as batches:
            found = counted(batches, domain)
        assert found == expected(domain, rows, unit, key, apart)
        return found

    first = run(rows, "a")
    assert first.total() == 80
    assert run(rows[::-1], "a") == first != run(rows, "b")
    assert run(rows, "a", ("day", [0, 1])).total() == 160


def test_persons_of_other_types_are_what_the_engine_writes(opened: Opener, tmp_path: Path) -> None:
    rows = [(n, None, 0.0, None, dt.date(2020, 1, 1), None, str(n % 3)) for n in range(4)] * 2
    table = arrow(rows).set_column(6, "who", pa.array([int(row[6]) for row in rows], pa.int32()))
    domain, unit = Domain(n=Integers(0, 3)), PrivacyUnit("who", 1)
    with running(opened(table, tmp_path), domain, unit, "k") as batches:
        assert counted(batches, domain) == expected(domain, rows, unit, "k", None)


def test_more_levels_than_one_number_holds(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10²⁴ cells, whose levels are grouped and put in order as several numbers."""
    names = [f"c{k}" for k in range(8)]
    wide = pa.schema([*((name, pa.int32()) for name in names), ("who", pa.string())])
    monkeypatch.setattr("test_engine.SCHEMA", wide)
    rng, domain = random.Random(5), Domain(**dict.fromkeys(names, Integers(0, 999)))
    lines = [(*rng.choices((0, 1, 999), k=8), str(rng.randrange(9))) for _ in range(40)]
    rows = [*lines, *lines, (1000, *lines[0][1:])]
    for unit in (PrivacyUnit(), PrivacyUnit("who", 3)):
        with running(opened(arrow(rows), tmp_path), domain, unit, "k") as batches:
            assert counted(batches, domain) == expected(domain, rows, unit, "k", None)


def test_what_the_schema_does_not_have_is_named(opened: Opener, tmp_path: Path) -> None:
    table = arrow([(1, None, 0.0, "SECRET", dt.date(2020, 1, 1), None, "SECRET")])
    for domain, unit, message in [
        (Domain(nothing=Integers(0, 1)), PrivacyUnit(), "no column nothing"),
        (Domain(n=Integers(0, 1)), PrivacyUnit("nobody"), "no privacy unit's column nobody"),
        (Domain(ok=Integers(0, 1)), PrivacyUnit(), "column ok holds BOOLEAN, which cannot be read as"),
        (Domain(n=Integers(0, 1)), PrivacyUnit("x"), "column x holds DOUBLE, which cannot name a person"),
    ]:
        engine = opened(table, tmp_path)
        with pytest.raises(DataError, match=message) as caught, running(engine, domain, unit, "k"):
            pass
        assert "SECRET" not in str(caught.value)
        engine.close()


@pytest.mark.parametrize("wrong", [{"most": 3}, {"most": 1}, {"key": "l"}, {"apart": None}])
def test_an_engine_that_reads_another_plan_would_be_seen(wrong: dict[str, Any]) -> None:
    """Negative control: another limit, another key, and no periods give other counts than expected."""
    rows: list[Row] = [
        (n, None, 0.0, None, dt.date(2020, 1 + n % 2, 1), None, f"p{who}")
        for who in range(9)
        for n in range(8)
    ]
    domain = Domain(n=Integers(0, 9), day=Dates("2020-01-01", "2020-02-29", step="month"))
    unit, apart = PrivacyUnit("who", 2), ("day", [0, 1])
    engine = duckdb_in_memory(arrow(rows), Path())
    columns, person = engine.columns(list(domain), unit.column)
    right = plan(domain, columns, person, unit=unit, key="k", apart=(1, [0, 1]), dialect=Dialect())
    found = counted(list(engine.run(replace(right, **wrong))), domain)
    engine.close()
    assert found != expected(domain, rows, unit, "k", apart)


def test_duckdb_spells_every_word() -> None:
    assert set(DUCKDB) == set(WORDS)
