"""Windows: what may be declared, which rows count, and windows in lapras.toml."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command import invoke
from draw import MemoryTable
from growing import (
    APR,
    BUDGET,
    COUNT,
    FEB,
    JAN,
    MAR,
    SPAN,
    Silent,
    domain,
    opened,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.ledger.sql import SQLLedger, SQLShelf
from laprasdp.ledger.verify import verify
from laprasdp.periods import Period, open_windows
from laprasdp.periods.period import Part, periods_of
from laprasdp.periods.slice import Slice


def test_a_reopened_ledger_gives_the_same_state(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    more = {"ledger": file, "policy": "primm", "predictions": [COUNT]}
    session = opened(**more)
    shown = {
        text: session.ask(text).value for text in (COUNT, SPAN, f"{COUNT} WHERE n = 2 AND day < '{FEB}'")
    }
    again = opened(**more)
    assert again.spent == session.spent
    assert {text: again.ask(text).value for text in shown} == shown
    assert again.spent == session.spent
    assert [str(period) for period in again.periods] == [str(period) for period in session.periods]
    for name in (JAN, FEB, MAR):
        ledger = SQLLedger(file, dataset=f"t@{name}")
        assert verify(ledger) == []
        assert len(ledger.everything()[1]) > 3


@pytest.mark.parametrize("automatic", [True, False])
def test_a_new_period_brings_its_own_budget(automatic: bool, tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    session = opened(ledger=file, horizon=2, predictions=[], policy="independent")
    for n in range(2):
        session.ask(f"{COUNT} WHERE n = {n}")
    with pytest.raises(lp.BudgetExhausted):
        session.ask(f"{COUNT} WHERE n = 2")
    spent = session.spent
    old = session.ask(f"{COUNT} WHERE n = 1")
    if automatic:
        session = opened(last="2024-04-30", ledger=file, horizon=2)
    else:
        added = session.add_period(source=month(4))
        assert str(added) == "2024-04-01 to 2024-04-30"
    assert [period.name for period in session.periods] == [JAN, FEB, MAR, APR]
    assert session.spent == spent | {APR: 0}
    answer = session.ask(f"{COUNT} WHERE n = 1")
    assert answer.source == "mixed"
    assert sum(answer.periods[name].value for name in (JAN, FEB, MAR)) == pytest.approx(old.value)
    assert session.ask(f"{COUNT} WHERE day >= '{APR}'").source == "measured"
    assert session.spent[JAN] == spent[JAN]
    with pytest.raises(lp.BudgetExhausted, match="2024-01-01"):
        session.ask(f"{COUNT} WHERE n = 2")
    reopened = opened(last="2024-04-30", ledger=file, horizon=2)
    assert reopened.spent == session.spent


def month(number: int) -> MemoryTable:
    first = dt.date(2024, number, 1)
    last = dt.date(2024, number + 1, 1) - dt.timedelta(days=1)
    own = lp.Domain(n=lp.Integers(0, 2), day=lp.Dates(first, last))
    return MemoryTable(own, [5] * own.size)


def test_periods_of_their_own_length_and_terms() -> None:
    first = Period("2024-01-01", "2024-01-20", lp.Budget(2, 1e-6), [COUNT], "smooth-cache")
    session = opened(periods=[first, Period("2024-01-21", "2024-03-31")])
    assert [len(session.period(name).setting.predictions) for name in (JAN, "2024-01-21")] == [1, 0]
    assert {name: budget.epsilon for name, budget in session.budgets.items()} == {JAN: 2, "2024-01-21": 1}
    assert session.ask(f"{COUNT} WHERE day < '2024-01-21'").source == "predicted"
    with pytest.raises(lp.ConfigError, match="no step: say which one is next"):
        session.add_period()
    with pytest.raises(lp.DomainError, match="begins on 2024-04-01, not on 2024-04-02"):
        session.add_period(Period("2024-04-02", "2024-04-30"), source=month(4))
    session.add_period(Period("2024-04-01", "2024-04-30", lp.Budget(3, 1e-6)), source=month(4))
    assert session.budgets["2024-04-01"].epsilon == 3


def test_a_period_is_declared_once(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    opened(ledger=file)
    names = set(SQLShelf(file).settings())
    assert names == {f"t@{name}" for name in (JAN, FEB, MAR)}
    for more, says in (
        (
            {"budget": lp.Budget(2, 1e-6), "last": "2024-04-30"},
            "2024-01-01 to 2024-01-31: the ledger's budget",
        ),
        ({"periods": "quarter"}, "2024-01-01 to 2024-03-31 overlaps 2024-01-01 to 2024-01-31"),
        ({"periods": 13}, "overlaps"),
        ({"policy": "primm"}, "2024-01-01 to 2024-01-31: the ledger was begun with other settings: policy"),
        ({"predictions": [COUNT]}, "it has 0 predicted queries, not 1"),
    ):
        with pytest.raises(lp.LedgerError, match=says):
            opened(ledger=file, **more)
        assert set(SQLShelf(file).settings()) == names  # nothing new was begun beside it
    renamed = lp.Domain(n=lp.Integers(0, 2), date=lp.Dates(JAN, "2024-03-31"))
    with pytest.raises(lp.LedgerError, match="no period of date"):
        open_windows(
            MemoryTable(renamed, [1] * renamed.size),
            renamed,
            attribute="date",
            periods="month",
            budget=BUDGET,
            ledger=file,
        )


def test_an_old_period_is_raised_only_explicitly(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    session = opened(ledger=file, horizon=1)
    session.ask(COUNT)
    more = lp.Budget(2, 1e-6)
    with pytest.raises(lp.ConfigError, match="no period of day begins on 2024-02-02"):
        session.raise_budget("2024-02-02", more)
    session.raise_budget(JAN, more)
    assert [budget.epsilon for budget in session.budgets.values()] == [2, 1, 1]
    with pytest.raises(lp.LedgerError, match="2024-01-01 to 2024-01-31: the ledger's budget is ε = 2"):
        opened(ledger=file, horizon=1)
    periods = [Period(JAN, "2024-01-31", more), Period(FEB, "2024-02-29"), Period(MAR, "2024-03-31")]
    assert opened(ledger=file, horizon=1, periods=periods).spent == session.spent


def test_caps_hold_in_each_period() -> None:
    session = opened(accounting="basic", caps={"ada": 0.15, "bob": 1})
    for value in (0, 2):  # a half of what is less than two shares, and the other
        session.ask(f"{COUNT} WHERE n = {value}", analyst="ada")
    with pytest.raises(lp.BudgetExhausted, match="the period from 2024-01-01: the cap of ada"):
        session.ask(f"{COUNT} WHERE n = 1", analyst="ada")
    assert session.ask(f"{COUNT} WHERE n = 1", analyst="bob").source == "measured"
    with pytest.raises(lp.ConfigError, match="a statement needs an analyst"):
        session.ask(COUNT)
    with pytest.raises(lp.ConfigError, match="no analyst 'eve'"):
        next(session.ask_many([COUNT], analyst="eve"))


def test_what_cannot_be_declared() -> None:
    def refused(error: type[Exception], says: str, whole: lp.Domain | None = None, **more: Any) -> None:
        given = whole or domain()
        with pytest.raises(error, match=says):
            opened(MemoryTable(given, [1] * given.size), **more) if whole is None else open_windows(
                MemoryTable(given, [1] * given.size), given,
                **{"attribute": "day", "periods": "month", "budget": BUDGET} | more,
            )  # fmt: skip

    refused(lp.DomainError, "n is declared as integers", attribute="n")
    refused(lp.DomainError, "no attribute date", attribute="date")
    nullable = lp.Domain(day=lp.Dates(JAN, "2024-03-31", nullable=True))
    refused(lp.DomainError, "would lie in no period", nullable)
    refused(lp.DomainError, "ends on 2024-03-31, inside the period .* 2024-01-01: let", periods="year")
    refused(lp.DomainError, "such as 2024-03-30", periods=10)
    weeks = lp.Domain(day=lp.Dates(JAN, "2024-03-31", "week"))
    refused(lp.DomainError, "2024-01-01 to 2024-01-31 of day cuts a step of 'week'", weeks)
    refused(
        lp.DomainError, "must begin on 2024-01-01, not on 2024-01-02", periods=[Period("2024-01-02", MAR)]
    )
    refused(lp.DomainError, "must begin on 2024-02-01", periods=[Period(JAN, "2024-01-31"), Period(MAR, MAR)])
    refused(lp.DomainError, "end before 2024-01-06", periods=[Period(JAN, "2024-01-05")])
    with pytest.raises(lp.DomainError, match="first date 2024-02-01 is after last date 2024-01-01"):
        Period(FEB, JAN)
    refused(lp.ConfigError, "laplace has geometric ones", policy="laplace", accounting="basic")
    refused(lp.ConfigError, "budget must be a Budget", budget=1)
    refused(lp.ConfigError, "declared public", noise=Silent())
    whole = domain()
    persons = MemoryTable(whole, [1] * whole.size, lp.PrivacyUnit("who", 2))
    with pytest.raises(lp.ConfigError, match="rows as its unit"):
        opened(persons, unit=lp.PrivacyUnit("who", 2))


def test_queries_made_in_python_are_over_all_periods() -> None:
    session = opened()
    answer = session.ask(lp.Query.count(session.domain, day=["2024-01-05", "2024-03-05"]))
    assert list(answer.periods) == [JAN, MAR]
    with pytest.raises(lp.DomainError, match="another domain"):
        session.ask(lp.Query.count(domain("2024-04-30"), n=1))
    with pytest.raises(lp.UnsupportedQuery, match="not int"):
        session.ask(3)
    assert session.ask(session.parse(COUNT)).source == "measured"


people = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 11), st.integers(0, 2)), max_size=40
)


@settings(max_examples=25)
@given(rows=people, most=st.integers(1, 3), cuts=st.sets(st.integers(1, 11), max_size=3))
def test_a_slice_is_the_table_of_its_period_alone(
    rows: list[tuple[str, int, int]], most: int, cuts: set[int]
) -> None:
    base = dt.date(2024, 2, 25)
    days = [base + dt.timedelta(days=place) for place in (0, *sorted(cuts), 12)]
    whole = lp.Domain(n=lp.Integers(0, 2), day=lp.Dates(base, days[-1] - dt.timedelta(days=1)))
    source = pa.table(
        {
            "who": pa.array([who for who, _, _ in rows], pa.string()),
            "day": pa.array([base + dt.timedelta(days=day) for _, day, _ in rows], pa.date32()),
            "n": pa.array([n for _, _, n in rows], pa.int64()),
        }
    )
    unit, one = lp.PrivacyUnit("who", most), dt.timedelta(days=1)
    parts = [Part.of(whole, "day", Period(a, b - one)) for a, b in itertools.pairwise(days)]
    starts = [part.start for part in parts]
    together = DuckDBTable(source, whole, unit=unit, key="k", apart=("day", starts))
    for part in parts:
        alone, mine = DuckDBTable(source, part.domain, unit=unit, key="k"), Slice(together, part)
        inside = [who for who, day, _ in rows if part.start <= day < part.stop]
        assert mine.marginal(()).counts.tolist() == [sum(min(most, inside.count(who)) for who in "abc")]
        for axes in ((), (0,), (1,), (0, 1)):
            found, expected = mine.marginal(axes), alone.marginal(axes)
            assert found.counts.tolist() == expected.counts.tolist()
            for axis in axes:
                assert found.levels[axis].tolist() == expected.levels[axis].tolist()


def test_a_person_counts_in_each_period_and_reopening_keeps_the_rows(tmp_path: Path) -> None:
    days = [dt.date(2024, month, day) for month in (1, 2, 3) for day in range(1, 21)]
    source = pa.table({"who": ["ada"] * 60, "day": days, "n": [day.day % 3 for day in days]})
    more = {"unit": lp.PrivacyUnit("who", 3), "noise": Silent(), "public": True, "name": "t"}
    asked = [f"{COUNT} WHERE n = {n} AND day < '{FEB}'" for n in range(3)]
    found = []
    for _ in range(4):
        session = opened(source, **more)
        assert [part.value for part in session.ask(COUNT).periods.values()] == pytest.approx([3, 3, 3])
        found.append([round(session.ask(text).value) for text in asked])
    assert found[1:] == found[:-1]
    session = opened(source, **more)
    session.add_period(source=source)
    assert session.ask(f"{COUNT} WHERE day >= '{APR}'").value == pytest.approx(0)


def test_periods_by_step() -> None:
    months = periods_of(lp.Dates("2024-01-15", "2024-04-14"), "day", "month")
    assert [str(period) for period in months][1:] == ["2024-02-15 to 2024-03-14", "2024-03-15 to 2024-04-14"]
    assert len(periods_of(lp.Dates("2024-01-01", "2024-01-31"), "day", 1)) == 31


DECLARED = """
[source]
file = "t.csv"
public = true
[privacy]
epsilon = 1
delta = 1e-6
[stream]
policy = "independent"
horizon = 10
predictions = ["SELECT COUNT(*) FROM t WHERE day > '2024-02-20'"]
[windows]
attribute = "day"
step = "month"
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-02-29
"""


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lapras.toml").write_text(DECLARED)
    (tmp_path / "t.csv").write_text("day\n" + "2024-01-05\n" * 40 + "2024-02-07\n" * 20 + "2024-03-07\n" * 9)
    return tmp_path


def test_lapras_run_with_windows(declared: Path) -> None:
    (declared / "q.sql").write_text(
        "SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t WHERE day < '2024-01-06';\nSELECT MAX(n) FROM t;"
    )
    done = invoke("run", "q.sql", "--json", code=1)
    both, january = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(both["periods"]) == [JAN, FEB]
    assert both["periods"][FEB].keys() == {"value", "std", "source", "charge", "remaining"}
    assert list(january["periods"]) == [JAN]
    assert abs(both["value"] - 60) < 8 * both["std"]
    assert "2 answered, 1 refused; spent ε" in done.stderr
    assert "80% of the budget remains in the period from 2024-01-01, the least of 2" in done.stderr
    text = invoke("run", "q.sql", code=1).stdout
    assert text.splitlines()[0].startswith("line")


def test_lapras_plan_with_windows(declared: Path) -> None:
    row = json.loads(invoke("plan", "--json").stdout)
    assert row["cells"] == 29
    assert "this is the plan of 2024-02-01 to 2024-02-29" in invoke("plan").stdout


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('step = "month"', "", "[windows]: step is missing"),
        ('step = "month"', 'length = "month"', "[windows]: unknown key length"),
        ('step = "month"', 'step = "moon"', "[windows]: step 'moon' must be days"),
        ('attribute = "day"', 'attribute = "date"', "[windows]: no attribute date"),
        ("last = 2024-02-29", "last = 2024-02-28", "[windows]: day ends on 2024-02-28, inside the period"),
    ],
)
def test_windows_that_are_declared_wrongly(declared: Path, old: str, new: str, says: str) -> None:
    (declared / "lapras.toml").write_text(DECLARED.replace(old, new))
    with pytest.raises(lp.LaprasError, match=re.escape(says)):
        read_config()


def test_lapras_run_and_ask_go_on_where_the_ledger_stands(declared: Path) -> None:
    ledger = '[ledger]\nfile = "lapras.ledger"\n'
    (declared / "lapras.toml").write_text(DECLARED + ledger)
    (declared / "q.sql").write_text("SELECT COUNT(*) FROM t;")
    first = json.loads(invoke("run", "q.sql", "--json").stdout)
    done = invoke("run", "q.sql", "--json")
    again = json.loads(done.stdout)
    assert (again["value"], again["source"], again["charge"]) == (first["value"], "replay", 0)
    assert "(1 answered before, for free)" in done.stderr
    asked = json.loads(invoke("ask", "SELECT COUNT(*) FROM t", "--json").stdout)
    assert (asked["value"], list(asked["periods"])) == (first["value"], [JAN, FEB])
    (declared / "lapras.toml").write_text(DECLARED.replace("2024-02-29", "2024-03-31") + ledger)
    grown = json.loads(invoke("ask", "SELECT COUNT(*) FROM t", "--json").stdout)
    assert (grown["source"], list(grown["periods"])) == ("mixed", [JAN, FEB, MAR])
