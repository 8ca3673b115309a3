"""Real numbers on a grid: what a value counts as, on every engine, and what statements make of it."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from exact import Beside, same
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import Server
from sources import level_of
from test_engine import DUCKDB_OPENERS, postgresql

import laprasdp as lp
from laprasdp.config.attributes import read_domain
from laprasdp.config.section import Section
from laprasdp.data.cells import CellTable
from laprasdp.data.dialect import Dialect
from laprasdp.data.scan import plan
from laprasdp.errors import ConfigError, DomainError
from laprasdp.queries.attribute.ordered import Ordered
from laprasdp.record.settings import domain_of
from laprasdp.sql.reader import Reader

FARE = lp.Reals(-10, 120, 0.25, nullable=True)

# What it declares

steps = st.sampled_from([0.25, 0.1, 0.01, 1.0, 2.5, 5.0, 1e-05, 3.0])


@settings(derandomize=True, deadline=None, max_examples=200)
@given(step=steps, low=st.integers(-500, 500), more=st.integers(0, 500))
def test_levels_are_the_multiples_of_the_step(step: float, low: int, more: int) -> None:
    unit = Fraction(repr(step))
    attribute = lp.Reals(float(low * unit), float((low + more) * unit), step)
    assert attribute.values == more + 1
    for level in {0, more // 2, more}:
        value = attribute.value(level)
        assert Fraction(value) == (low + level) * unit
        assert Decimal(str(attribute.label(level))) == value
        assert duckdb.sql(f"SELECT CAST('{value}' AS {attribute.type})").fetchall() == [(value,)]
    assert attribute.label(more + 1) is None
    assert isinstance(attribute, Ordered)
    for op in ("<", "<=", "=", "<>", ">", ">="):
        point = (low + more // 2) * unit
        python = {"=": "==", "<>": "!="}.get(op, op)
        expected = [eval(f"a {python} b", {"a": (low + k) * unit, "b": point}) for k in range(more + 1)]
        assert attribute.holds(op, point).tolist() == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, 1, 0), "step must be above 0"),
        ((0, 1, math.nan), "step must be a finite number"),
        ((0, True, 1), "upper must be a finite number"),
        ((2, 1, 1), "lower 2.0 is above upper 1.0"),
        ((0.1, 1, 0.25), "lower 0.1 is no multiple of the step 0.25"),
        ((0, 1e9, 0.01), "levels; the limit is 2,000,000"),
        ((1e15, 1e15, 1e-05), "digits are too long"),
    ],
)
def test_what_is_no_grid_is_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        lp.Reals(*given)


def test_a_declaration_is_read_as_it_is_written() -> None:
    domain = lp.Domain(fare=FARE)
    assert domain_of({"domain": [["fare", FARE.settings()]]}) == domain
    told = {"fare": {"type": "reals", "lower": -10, "upper": 120, "step": 0.25, "nullable": True}}
    assert read_domain(Section("lapras.toml", told)) == domain
    with pytest.raises(ConfigError, match="step is missing"):
        read_domain(Section("lapras.toml", {"fare": {"type": "reals", "lower": 0, "upper": 1}}))


# What a value counts as

VALUES = [
    None, -1e300, -10.126, -10.0, -0.125, -0.0, 0.0, 0.1249999, 0.125, 0.3, 12.5, 119.9, 120.0, 120.125, 1e18,
]  # fmt: skip
COLUMNS = [
    pa.array([*VALUES, math.nan, math.inf, -math.inf], pa.float64()),
    pa.array([*VALUES[:1], *VALUES[2:], math.nan, math.inf], pa.float32()),
    pa.array([None, -20, -10, -1, 0, 7, 119, 120, 121, 2**62], pa.int64()),
    pa.array(
        [None, Decimal("-10.13"), Decimal("0.12"), Decimal("0.13"), Decimal("99999.99")], pa.decimal128(9, 2)
    ),
]


def check_steps(opened: Any, column: pa.Array, folder: Path) -> None:
    domain = lp.Domain(fare=FARE)
    engine = opened(pa.table({"fare": column}), folder)
    try:
        columns, _ = engine.columns(["fare"], None)
        scan = plan(domain, columns, None, unit=lp.PrivacyUnit(), key="k", dialect=Dialect())
        found = CellTable("t", domain, engine.run(scan)).marginal((0,))
    finally:
        engine.close()
    wanted: dict[int, int] = {}
    for value in column.to_pylist():
        level = level_of(FARE, value)
        if level is not None:
            wanted[level] = wanted.get(level, 0) + 1
            near = min(max(float(value), -10), 120) if value is not None else None
            assert near is None or abs(float(FARE.value(level)) - near) <= 0.125 + 1e-9
    assert dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("column", COLUMNS, ids=[str(one.type) for one in COLUMNS])
@pytest.mark.parametrize("opened", DUCKDB_OPENERS)
def test_a_value_is_brought_to_its_step(opened: Any, column: pa.Array, tmp_path: Path) -> None:
    check_steps(opened, column, tmp_path)


@pytest.mark.parametrize("column", [COLUMNS[0], COLUMNS[2]], ids=["float8", "int8"])
def test_and_by_postgresql_to_the_same(column: pa.Array, postgres: Server, tmp_path: Path) -> None:
    check_steps(postgresql(postgres), column, tmp_path)


def test_a_text_is_read_as_the_number_that_it_spells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("fare,n\n12.49,1\n1e3,1\nabc,1\n,1\n-4,1\n")
    domain = lp.Domain(fare=FARE, n=lp.Integers(0, 1))
    with lp.open_session(
        path, domain, budget=lp.Budget(20.0, 1e-6), horizon=1, policy="independent"
    ) as session:
        assert float(session.ask("SELECT SUM(fare) FROM t")) == pytest.approx(12.5 + 120 - 4, abs=600)


# What statements make of it

STATEMENTS = [
    "SELECT SUM(fare) FROM t",
    "SELECT AVG(fare) AS a, STDDEV(fare) AS s, COUNT(fare) AS n FROM t WHERE h < 12",
    "SELECT h, SUM(fare) AS s FROM t GROUP BY h ORDER BY h",
    "SELECT COUNT(*) FROM t WHERE fare > 12.3 AND fare <= 99.75",
    "SELECT COUNT(*) FROM t WHERE fare IN (0.25, 7, 7.1) OR fare IS NULL",
    "SELECT CAST(FLOOR(fare / 10) AS INTEGER) * 10 AS b, COUNT(*) AS n FROM t GROUP BY b ORDER BY b",
    "SELECT SUM(fare * 2 + h) FROM t WHERE ABS(fare) < 50",
    "SELECT MEDIAN(fare) AS m, QUANTILE_DISC(fare, 0.9) AS q FROM t",
    "SELECT SUM(CASE WHEN fare >= 0 THEN fare ELSE 0 END) FROM t",
    "SELECT CAST(ROUND(fare) AS INTEGER) AS r, COUNT(*) AS n FROM t WHERE fare < 3 GROUP BY 1 ORDER BY 1",
    "SELECT COUNT_IF(fare > h) FROM t",
]


@pytest.fixture(scope="module")
def beside() -> Beside:
    rng = np.random.default_rng(3)
    levels = {"fare": rng.integers(0, FARE.size, 5_000), "h": rng.integers(0, 24, 5_000)}
    fares = [None if one == FARE.values else FARE.value(int(one)) for one in levels["fare"]]
    database = duckdb.connect()
    database.register("t", pa.table({"fare": pa.array(fares, pa.decimal128(5, 2)), "h": levels["h"]}))
    domain = lp.Domain(fare=FARE, h=lp.Integers(0, 23))
    return Beside(database, levels, Reader(domain, "t"))


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_means_what_duckdb_makes_of_the_grid(text: str, beside: Beside) -> None:
    beside.check(text, ordered="ORDER BY" in text)


def test_groups_of_the_column_itself_are_its_steps(beside: Beside) -> None:
    ours = beside.ours("SELECT fare, COUNT(*) FROM t WHERE fare < 5 GROUP BY fare ORDER BY fare")
    theirs = beside.theirs("SELECT fare, COUNT(*) FROM t WHERE fare < 5 GROUP BY fare ORDER BY fare")
    found = [(float(one[0]), one[1]) for one in ours if one[0] is not None and one[1]]
    assert len(found) == len(theirs)
    for mine, other in zip(found, theirs, strict=True):
        assert all(map(same, mine, other))


def test_one_row_moves_a_sum_by_the_larger_end(beside: Beside) -> None:
    (query,) = beside.reader.parse("SELECT SUM(fare) FROM t").queries
    assert query.sensitivity * FARE.unit == 120
    wide = Reader(lp.Domain(fare=lp.Reals(-300, 20, 0.5)), "t").parse("SELECT SUM(fare) FROM t").queries[0]
    assert wide.sensitivity * Fraction(1, 2) == 300
