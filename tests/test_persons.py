"""Counts of persons of whom several rows count: what they mean, what they cost, what a ledger holds."""

import itertools
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tries import tries

import laprasdp as lp
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.errors import BudgetExhausted, LedgerError, UnsupportedQuery
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.filter import charged
from laprasdp.privacy.noise import ExactNoise
from laprasdp.queries.distinct import Persons
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.record.format import read_entry, write_entry
from laprasdp.sql.reader import Reader
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.person_rows import PersonRows
from laprasdp.strategy.strength import one_by_one
from laprasdp.stream.opening import open_session

SMALL = lp.Domain(x=lp.Integers(0, 3), y=lp.Booleans())
WIDE = lp.Domain(
    age=lp.Integers(18, 49), state=lp.Categories(["CA", "NY", "TX"]), visits=lp.Integers(0, 9, nullable=True)
)
UNIT = lp.PrivacyUnit("who", 4)
LOUD = lp.Budget(20.0, 1e-6)


def rows_of(seed: int, rows: int, people: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    visits = [None if one > 9 else int(one) for one in rng.integers(0, 12, rows)]
    return pa.table(
        {
            "who": [f"p{one}" for one in rng.integers(0, people, rows)],
            "age": rng.integers(16, 50, rows),
            "state": rng.choice(["CA", "NY", "TX", "DC"], rows),
            "visits": pa.array(visits, pa.int64()),
        }
    )


def at_most(given_rows: pa.Table, most: int) -> pa.Table:
    """The first rows in the domain of each person, so that which rows count is known."""
    kept = duckdb.sql(
        "SELECT who, age, state, visits FROM (SELECT *, row_number() OVER (PARTITION BY who) AS place FROM"
        f" given_rows WHERE age BETWEEN 18 AND 49 AND state <> 'DC') WHERE place <= {most}"
    )
    return kept.to_arrow_table()


TABLE = at_most(rows_of(1, 6_000, 1_500), UNIT.max_rows)

# What it means

STATEMENTS = [
    "SELECT COUNT(DISTINCT who) FROM t",
    "SELECT COUNT(DISTINCT who) FROM t WHERE age < 30 AND state <> 'TX'",
    "SELECT COUNT(DISTINCT who) AS people, COUNT(*) AS n, COUNT(who) AS same FROM t WHERE visits > 2",
    "SELECT state, COUNT(DISTINCT who) FROM t GROUP BY state ORDER BY state",
    "SELECT age // 10 AS decade, COUNT(DISTINCT who) AS people FROM t GROUP BY decade ORDER BY decade",
    "SELECT state, visits, COUNT(DISTINCT t.who) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT COUNT(DISTINCT who) FILTER (WHERE state = 'CA') AS ca, COUNT(DISTINCT who) AS all_of FROM t",
    "SELECT state, COUNT(DISTINCT who) FROM t GROUP BY ROLLUP (state) ORDER BY state NULLS LAST",
    "SELECT COUNT(*) * 1.0 / COUNT(DISTINCT who) FROM t",
    (
        "SELECT state, COUNT(DISTINCT who) * 100.0 / (SELECT COUNT(DISTINCT who) FROM t) FROM t"
        " GROUP BY state ORDER BY state"
    ),
    (
        "WITH old AS (SELECT * FROM t WHERE age > 40) SELECT state, COUNT(DISTINCT who) FROM old"
        " GROUP BY state ORDER BY state"
    ),
    (
        "SELECT state, COUNT(DISTINCT who) AS n FROM t GROUP BY state HAVING COUNT(DISTINCT who) > 100"
        " ORDER BY n DESC"
    ),
]


@pytest.fixture(scope="module", params=["primm", "smooth-cache", "independent"])
def session(request: pytest.FixtureRequest) -> lp.Session:
    return open_session(TABLE, WIDE, budget=LOUD, horizon=20, policy=request.param, name="t", unit=UNIT)


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_means_what_duckdb_makes_of_it(text: str, session: lp.Session) -> None:
    """Within the interval that misses once in a hundred million, of DuckDB on the rows that count."""
    price = session.price(text)
    answer = session.ask(text)
    assert price.charge == answer.charge
    again = session.ask(text)
    assert again.charge == 0
    assert again.to_pandas().equals(answer.to_pandas())
    database = duckdb.connect()
    database.register("t", TABLE)
    found = database.execute(text)
    names, wanted = [one[0] for one in found.description], found.fetchall()
    rows = list(answer)
    assert answer.names == tuple(names)
    assert len(rows) == len(wanted)
    if "HAVING" in text:
        return
    for row, line in zip(rows, wanted, strict=True):
        for name, exact in zip(names, line, strict=True):
            low, high = row[name].interval(1 - 1e-8) if hasattr(row[name], "std") else (row[name],) * 2
            assert low == exact if low is None or isinstance(low, str) else low <= exact <= high


def test_only_rows_that_count_are_looked_at() -> None:
    """Of persons with more rows than count, those of the others are not seen; of none, there is none."""
    given_rows = rows_of(2, 4_000, 300)
    read = DuckDBTable(given_rows, WIDE, unit=lp.PrivacyUnit("who", 2), key="k")
    rows = {age: Query.count(WIDE, age=[age]) for age in range(18, 50)}
    persons = [Persons.of(query).answer(read.marginal(Persons.of(query).reads)) for query in rows.values()]
    counted = [query.answer(read.marginal(query.axes)) for query in rows.values()]
    whole = Persons.of(Query.constant(WIDE, 1))
    people = whole.answer(read.marginal(whole.reads))
    assert all(p <= n <= 2 * p for p, n in zip(persons, counted, strict=True))
    assert people <= 300
    assert sum(counted) <= 2 * people
    assert sum(persons) >= people
    exact = duckdb.sql(
        "SELECT COUNT(DISTINCT who) FROM given_rows WHERE age BETWEEN 18 AND 49 AND state <> 'DC'"
    )
    assert exact.fetchall() == [(people,)]


# What it costs

cells = [(x, y) for x in range(4) for y in (False, True)]


def query_of(inside: list[int]) -> Query:
    return Query(SMALL, {"x": [0, 1, 2, 3], "y": [0, 1]}, np.array(inside).reshape(4, 2))


zero_one = st.lists(st.integers(0, 1), min_size=8, max_size=8).filter(any)
weighted = st.lists(st.integers(-3, 3), min_size=8, max_size=8).filter(any)
releases = st.lists(
    st.tuples(
        st.lists(zero_one, min_size=1, max_size=4),
        st.lists(weighted, max_size=2),
        st.integers(1, 5),
        st.lists(st.integers(1, 9), max_size=6),
    ),
    min_size=1,
    max_size=3,
)


def moved(release: PersonRows, places: tuple[int, ...]) -> int:
    """Squared norm of what a person with rows in these cells changes."""
    total = 0
    for query, times in zip(release.queries, release.times or [1] * len(release.queries), strict=True):
        weights = query.vector()[list(places)]
        change = int(weights.any()) if isinstance(query, Persons) else int(weights.sum())
        total += (release.matrix * times * change) ** 2
    return total


@settings(derandomize=True, deadline=None, max_examples=tries(40))
@given(releases, st.integers(1, 4))
def test_no_person_moves_more_than_is_charged(drawn: list[Any], most: int) -> None:
    """Over all releases together, wherever the rows of a person lie, as docs/proofs/persons.md says."""
    made = []
    for people, rows, multiple, often in drawn:
        queries = (*(Persons.of(query_of(one)) for one in people), *map(query_of, rows))
        times = tuple(often[: len(queries)]) if len(often) >= len(queries) else ()
        made.append(PersonRows(queries, multiple, bits=0, times=times))
    total = Query.constant(SMALL, 0)
    for release in made:
        amounts = release.amounts(most)
        assert int(amounts.weights.max()) == release.largest(most) * release.matrix**2 << MU_BITS
        total = charged(total, amounts)
    limit = int(total.weights.max())
    for count in range(1, most + 1):
        for places in itertools.combinations_with_replacement(range(8), count):
            assert sum(moved(release, places) for release in made) << MU_BITS <= limit
            change = [
                often * (int(query.vector()[list(places)].any()) if isinstance(query, Persons)
                else abs(int(query.vector()[list(places)].sum())))
                for query, often in zip(made[0].queries, made[0].times or [1] * 9, strict=False)
            ]  # fmt: skip
            times = made[0].times
            laplace = one_by_one(made[0].queries, 0, law="laplace", scale=1, scale_bits=0, times=times)
            assert sum(change) <= laplace.laplace_epsilon(most)


def test_a_charge_as_of_one_row_would_be_seen() -> None:
    """Negative control: charged as if a person were in one cell alone, two groups would cost too little."""
    groups = [Persons.of(Query.count(SMALL, x=[x])) for x in range(4)]
    release = PersonRows(tuple(groups), 1, bits=0)
    places = (0, 2, 4)
    cheap = Rows(tuple(group.rows for group in groups), 1, bits=0).amounts(1)
    assert moved(release, places) << MU_BITS > int(cheap.weights.max())
    assert moved(release, places) << MU_BITS <= int(release.amounts(3).weights.max())


@pytest.mark.parametrize(
    ("groups", "most", "units"), [(1, 4, 1), (3, 4, 3), (4, 4, 4), (4, 2, 2), (1, 1, 1), (4, 1, 1)]
)
def test_groups_are_charged_no_more_than_a_person_can_be_in(groups: int, most: int, units: int) -> None:
    asked = [Persons.of(Query.count(SMALL, x=[x])) for x in range(groups)]
    release = PersonRows(tuple(asked), 1, bits=0)
    assert release.largest(most) == units
    rows = Rows(tuple(one.rows for one in asked), 1, bits=0)
    assert rows.largest(most) == most**2
    outside = release.amounts(most).vector()[-1]  # x = 3, in which there is no group but of four
    assert (outside > 0) == (groups < most or groups == 4)


def test_a_person_is_no_linear_function_of_cells() -> None:
    rows = Query.count(SMALL, x=[1, 2])
    persons = Persons.of(rows)
    assert persons.rows == rows
    assert persons != rows
    assert hash(persons) != hash(rows)
    assert persons.mark != rows.mark
    assert persons.canonical() == persons
    assert not isinstance(persons.combine(rows, np.add), Persons)
    assert "Persons" in repr(persons)
    with pytest.raises(UnsupportedQuery, match="once or not at all"):
        Persons.of(Query(SMALL, {"x": [0, 1, 2, 3]}, [0, 1, 2, 0]))


# What a ledger holds


@pytest.mark.parametrize("policy", ["primm", "smooth-cache", "independent", "laplace"])
def test_a_ledger_goes_on_and_every_entry_is_worked_out_again(policy: str, tmp_path: Path) -> None:
    accounting = "basic" if policy == "laplace" else "gaussian"
    given: dict[str, Any] = {
        "budget": lp.Budget(2.0, 1e-6), "horizon": 20, "policy": policy, "name": "t", "unit": UNIT,
        "ledger": tmp_path / "ledger", "accounting": accounting,
    }  # fmt: skip
    texts = [STATEMENTS[0], STATEMENTS[2], STATEMENTS[3], STATEMENTS[8]]
    with open_session(TABLE, WIDE, **given) as session:
        told = [session.ask(text).to_pandas() for text in texts]
        spent = session.spent
    with open_session(TABLE, WIDE, **given) as session:
        assert session.spent == spent
        for text, before in zip(texts, told, strict=True):
            answer = session.ask(text)
            assert answer.charge == 0
            assert answer.to_pandas().equals(before)
        renewed = session.ask(texts[0], remeasure=True)
        assert renewed.charge > 0
        column = "count(DISTINCT who)"
        assert renewed[0][column].std < session.ask(texts[1])[0]["people"].std or policy == "laplace"
        sharp = session.ask("SELECT COUNT(DISTINCT who) FROM t WHERE age = 20", max_std=200)
        assert sharp[0][column].std <= 200
    assert verify(SQLLedger(tmp_path / "ledger")) == []


def test_entries_read_as_they_were_written() -> None:
    ledger = MemoryLedger()
    session = open_session(
        TABLE, WIDE, budget=LOUD, horizon=3, policy="independent", name="t", unit=UNIT, ledger=ledger
    )
    session.ask(STATEMENTS[2])
    kept = [one for one in ledger.since(0) if isinstance(one.entry, Release)][-1]
    line = write_entry(kept)
    assert '"persons":true' in line
    assert '"format":7' in line
    again = read_entry(line, WIDE)
    assert isinstance(again.entry.measurement, PersonRows)
    assert write_entry(again) == line
    for forged in [line.replace('"persons":true', '"persons":1'), line.replace('"format":7,', "")]:
        with pytest.raises(LedgerError):
            read_entry(forged, WIDE)


def test_what_was_spent_before_the_stream_tells_nothing_of_persons() -> None:
    domain = lp.Domain(age=lp.Integers(18, 49), state=lp.Categories(["CA", "NY", "TX"]))
    for policy in ("histogram", "laplace-counts"):
        session = open_session(TABLE, domain, budget=LOUD, horizon=3, policy=policy, name="t", unit=UNIT)
        assert session.ask("SELECT COUNT(*) FROM t") is not None
        with pytest.raises(BudgetExhausted, match="tells nothing of persons"):
            session.ask("SELECT COUNT(DISTINCT who) FROM t")


def test_a_table_of_few_cells_keeps_budget_for_persons_where_that_is_declared() -> None:
    domain = lp.Domain(age=lp.Integers(18, 49), state=lp.Categories(["CA", "NY", "TX"]))
    session = open_session(TABLE, domain, budget=LOUD, horizon=4, name="t", unit=UNIT, release="gaussian")
    for text in (STATEMENTS[0], STATEMENTS[3], STATEMENTS[8]):
        price = session.price(text)
        answer = session.ask(text)
        assert answer.charge == price.charge > 0
    people = len(set(TABLE["who"].to_pylist()))
    found = session.ask(STATEMENTS[0])[0]["count(DISTINCT who)"]
    assert abs(found.value - people) < 8 * found.std


def test_persons_are_not_predicted() -> None:
    given: dict[str, Any] = {"budget": LOUD, "horizon": 9, "name": "t", "unit": UNIT}
    session = open_session(TABLE, WIDE, predictions=[STATEMENTS[2]], **given)
    assert not any(isinstance(query, Persons) for query in session.setting.predictions)
    assert session.setting.predictions
    with pytest.raises(UnsupportedQuery, match="are not predicted"):
        open_session(TABLE, WIDE, predictions=[STATEMENTS[0]], **given)


def test_noise_has_the_standard_deviation_that_is_said() -> None:
    """200 answers: a χ² test whose false alarms are 1 in a million, which a σ 35% off would fail."""
    exact, scores = len(set(TABLE["who"].to_pylist())), []
    table = DuckDBTable(TABLE, WIDE, unit=UNIT, name="t")
    reader = Reader(WIDE, "t", table.types, unit=UNIT)
    given_setting = Setting(WIDE, lp.Budget(1.0, 1e-6), 4, unit=UNIT)
    for _ in range(200):
        policy = policy_named("independent", given_setting)
        session = lp.Session(
            table, policy, noise=ExactNoise(), ledger=MemoryLedger(), reader=reader, public=True
        )
        (row,) = session.ask("SELECT COUNT(DISTINCT who) AS n FROM t")
        scores.append((row["n"].value - exact) / row["n"].std)
    assert 0.57 < sum(score**2 for score in scores) / 200 < 1.58
    assert abs(sum(scores)) < 5 * math.sqrt(200)


# Periods


def test_persons_of_periods_are_counted_apart() -> None:
    when = ["2024-01-01", "2024-01-02", "2024-02-01", "2024-01-05", "2024-02-03", "2024-02-04"]
    table = pa.table(
        {
            "who": ["a", "a", "a", "b", "b", "c"],
            "day": pa.array(np.array(when, dtype="datetime64[D]")),
            "n": pa.nulls(6, pa.int64()),
        }
    )
    domain = lp.Domain(day=lp.Dates("2024-01-01", "2024-02-29"), n=lp.Integers(0, 9, nullable=True))
    session = lp.open_windows(
        table, domain, attribute="day", periods="month", budget=LOUD, horizon=4, name="t",
        unit=lp.PrivacyUnit("who", 3), policy="independent",
    )  # fmt: skip
    text = "SELECT COUNT(DISTINCT who) AS n FROM t WHERE day < '2024-02-01'"
    assert session.ask(text)[0]["n"].value == pytest.approx(2, abs=6 * session.ask(text)[0]["n"].std)
    monthly = session.ask("SELECT month(day) AS m, COUNT(DISTINCT who) AS n FROM t GROUP BY m ORDER BY m")
    for row, exact in zip(monthly, [2, 3], strict=True):
        assert row["n"].value == pytest.approx(exact, abs=6 * row["n"].std)
    with pytest.raises(UnsupportedQuery, match="within a period"):
        session.ask("SELECT COUNT(DISTINCT who) FROM t")
    with pytest.raises(UnsupportedQuery, match="within a period"):
        session.price("SELECT COUNT(DISTINCT who) FROM t")
