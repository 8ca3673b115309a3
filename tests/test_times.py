"""Queries of several widths in one statement: each class has noise of its own width, charged together."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.errors import LedgerError
from laprasdp.ledger.claim import check_claim
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.privacy.accounting import GaussianAccounting
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.distinct import Persons
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.record.estimate import one_by_one
from laprasdp.record.format import read_entry, write_entry
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.strength import measure, measure_laplace, times_of
from laprasdp.stream.opening import open_session

SMALL = lp.Domain(x=lp.Integers(0, 3), y=lp.Booleans())
UNIT = Fraction(1)


def query_of(weights: list[int]) -> Query:
    return Query(SMALL, {"x": [0, 1, 2, 3], "y": [0, 1]}, np.array(weights).reshape(4, 2))


COUNT = Query.constant(SMALL, 1)
SUM = query_of([0, 0, 1, 1, 2, 2, 3, 3])
WIDE = query_of([0, 800, 0, 640_000, 1, 1, -7, 2])

# What it costs

widths = st.sampled_from([1, 3, 10, 800, 2**20, 2**30])
rows = st.lists(
    st.tuples(widths, st.lists(st.integers(-3, 3), min_size=8, max_size=8).filter(any)),
    min_size=1,
    max_size=5,
)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(rows, st.fractions(Fraction(1, 50), 20), st.integers(1, 3))
def test_no_rows_of_a_unit_move_more_than_is_charged(drawn: list[Any], power: Fraction, most: int) -> None:
    """By what the exact answers of two tables differ in: all sets of up to `most` rows, integers alone."""
    queries = list(dict.fromkeys(query_of([width * one for one in weights]) for width, weights in drawn))
    made = measure(queries, power, most)
    charged = made.amounts(most).vector()
    empty = np.zeros(8, dtype=np.int64)
    for count in range(1, most + 1):
        for places in itertools.combinations_with_replacement(range(8), count):
            table = empty.copy()
            np.add.at(table, list(places), 1)
            change = made.exact(MemoryTable(SMALL, table).marginal)
            moved = Fraction(sum(one * one for one in change) << MU_BITS, 4**made.bits)
            assert moved <= max(int(charged[place]) for place in places)
    assert (
        power * (1 - Fraction(1, 10**4))
        <= Fraction(int(charged.max()), 2**MU_BITS)
        <= power + UNIT / 2**MU_BITS
    )


def test_charged_as_if_once_each_would_be_seen() -> None:
    """Negative control."""
    made = measure([COUNT, SUM], UNIT)
    assert made.times
    table = np.zeros(8, dtype=np.int64)
    table[7] = 1
    change = made.exact(MemoryTable(SMALL, table).marginal)
    once = Rows(made.queries, made.matrix, bits=made.bits)
    moved = Fraction(sum(one * one for one in change) << MU_BITS, 4**made.bits)
    assert int(once.amounts().weights.max()) < moved <= int(made.amounts().weights.max())


@settings(derandomize=True, deadline=None, max_examples=40)
@given(rows, st.integers(2**30, 2**41), st.integers(1, 3))
def test_laplace_noise_covers_what_a_unit_moves(drawn: list[Any], epsilon: int, most: int) -> None:
    queries = list(dict.fromkeys(query_of([width * one for one in weights]) for width, weights in drawn))
    made = measure_laplace(queries, epsilon, most)
    for places in itertools.combinations_with_replacement(range(8), most):
        table = np.bincount(places, minlength=8)
        change = sum(map(abs, made.exact(MemoryTable(SMALL, table).marginal)))
        assert change / made.steps <= made.laplace_epsilon(most) <= Fraction(epsilon, 2**40)


# How exact it is


def test_what_is_of_one_class_is_measured_once_each() -> None:
    """Counts beside counts, groups, and a query alone: as every earlier ledger has them."""
    two = Query.count(SMALL, x=[1])
    for queries in ([COUNT, two], [SUM], [Persons.of(COUNT), Persons.of(two)]):
        assert times_of(queries, 3) == ()
    assert times_of([COUNT, Persons.of(COUNT)], 4) == (1, 4)
    assert times_of([COUNT, WIDE], 1) == (round(640_000 / math.sqrt(2)), 1)


@pytest.mark.parametrize("width", [9, 60, 800])
def test_an_average_of_half_the_width_has_nearly_its_least_variance(width: int) -> None:
    """Against every split of the same charge: the variance of a ratio n·mean/n, up to 1/n²."""
    domain = lp.Domain(x=lp.Integers(0, width))
    queries = [Query.constant(domain, 1), Query(domain, {"x": np.arange(width + 1)}, np.arange(width + 1))]
    one, other = (1 / measure(queries, UNIT).scales ** 2).tolist()
    found = other + (width / 2) ** 2 * one
    share = np.linspace(0.01, 0.99, 981)
    best = (width**2 / share + (width / 2) ** 2 / (1 - share)).min()
    assert best * 0.999 <= found <= best * 1.05
    plain = (1 / measure(queries[1:], UNIT).scales ** 2).item() * (1 + (width / 2) ** 2 / width**2)
    assert best < 2 * plain


def test_sums_that_meet_nowhere_have_noise_of_their_own() -> None:
    near, far = query_of([0, 0, 8, 1, 0, 0, 0, 0]), query_of([0, 0, 0, 0, 0, 800, 0, 0])
    scales = measure([near, far], UNIT).scales
    assert scales[0] == pytest.approx(measure([near], UNIT).scales[0], rel=1e-6)
    assert scales[1] == pytest.approx(measure([far], UNIT).scales[0], rel=1e-6)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("shrunk", [1.0, 0.9])
def test_errors_are_as_large_as_is_told(law: str, shrunk: float) -> None:
    """Mean squared error and mean product of errors; false alarm below 1e-6, and a control that fails."""
    table = MemoryTable(SMALL, np.arange(8))
    queries = [COUNT, SUM, WIDE]
    made = measure(queries, UNIT) if law == "gaussian" else measure_laplace(queries, 2**40)
    assert len(set(made.times)) == 3
    exact, noise, count = made.exact(table.marginal), SeededNoise(5), 4_000
    truth = np.array([one.answer(table.marginal(one.axes)) for one in queries], dtype=float)
    told = np.sqrt([one.variance for one in one_by_one(made, made.release(exact, noise))])
    errors = (
        np.array([[one.value for one in one_by_one(made, made.release(exact, noise))] for _ in range(count)])
        - truth
    )
    errors /= told * shrunk
    excess = 3.0 if law == "gaussian" else 6.0  # fourth moment
    squares = (errors**2).mean(axis=0)
    within = np.abs(squares - 1) < 5.2 * math.sqrt((excess - 1) / count)
    assert within.all() == (shrunk == 1.0)
    products = [(errors[:, i] * errors[:, j]).mean() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert np.abs(products).max() < 5.2 / math.sqrt(count)


# In a session

WIDTH = 800
DOMAIN = lp.Domain(x=lp.Integers(0, WIDTH), g=lp.Categories(["a", "b", "c"]))
PEOPLE = lp.PrivacyUnit("who", 3)


def table_of(rows_: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "who": np.arange(rows_) // 3,
            "x": np.minimum(rng.gamma(2, 80, rows_).astype(int), WIDTH),
            "g": rng.choice(["a", "b", "c"], rows_),
        }
    )


TEXTS = [
    "SELECT COUNT(*) AS n, SUM(x) AS total FROM t",
    "SELECT AVG(x) AS mean FROM t WHERE g = 'a'",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS people, SUM(x) AS total FROM t WHERE g <> 'a'",
    "SELECT g, STDDEV(x) AS spread, COUNT(DISTINCT who) AS people FROM t GROUP BY g ORDER BY g",
    "SELECT COUNT(*) + 2 * SUM(x) AS both_of FROM t WHERE g <> 'b'",
]


@pytest.mark.parametrize("policy", ["primm", "smooth-cache", "static", "independent", "laplace"])
def test_a_statement_costs_its_price_and_every_entry_is_worked_out_again(policy: str, tmp_path: Any) -> None:
    given_: dict[str, Any] = {
        "budget": lp.Budget(4.0, 1e-6), "horizon": 12, "policy": policy, "name": "t", "unit": PEOPLE,
        "ledger": tmp_path / "ledger", "accounting": "basic" if policy == "laplace" else "gaussian",
    }  # fmt: skip
    with open_session(table_of(), DOMAIN, **given_) as session:
        told = []
        for text in TEXTS:
            price = session.price(text)
            told.append(session.ask(text))
            assert price.charge == told[-1].charge > 0
            for name, stds in price.columns.items():
                assert all(
                    std is None or std == row[name].std for std, row in zip(stds, told[-1], strict=False)
                )
        spent = session.spent
    with open_session(table_of(), DOMAIN, **given_) as session:
        assert session.spent == spent
        for text, before in zip(TEXTS, told, strict=True):
            again = session.ask(text)
            assert again.charge == 0
            for name in set(before.names) - {"g"}:
                assert [row[name].value for row in again] == [row[name].value for row in before]
        renewed = session.ask(TEXTS[0], remeasure=True)
        assert renewed[0]["n"].std < told[0][0]["n"].std
    assert verify(SQLLedger(tmp_path / "ledger")) == []


@pytest.mark.parametrize("policy", ["smooth-cache", "static", "independent"])
def test_a_combination_of_both_has_its_exact_deviation(policy: str) -> None:
    session = open_session(
        table_of(), DOMAIN, budget=lp.Budget(1.0, 1e-6), horizon=4, policy=policy, name="t", unit=PEOPLE
    )
    parts = session.ask("SELECT COUNT(*) AS n, SUM(x) AS total FROM t")[0]
    both = session.ask("SELECT COUNT(*) + 2 * SUM(x) AS both_of FROM t")
    assert both.charge == 0
    assert both[0]["both_of"].std == pytest.approx(math.hypot(parts["n"].std, 2 * parts["total"].std))
    assert parts["total"].std / parts["n"].std == pytest.approx(WIDTH / math.sqrt(2), rel=0.01)


def test_what_was_measured_at_different_times_has_a_known_joint_law() -> None:
    """Also of answers measured again, but not where a prediction is joined to it."""
    settings_: dict[str, Any] = {"budget": lp.Budget(2.0, 1e-6), "horizon": 9, "name": "t"}
    session = open_session(table_of(), DOMAIN, policy="independent", **settings_)
    session.ask("SELECT COUNT(*) FROM t")
    session.ask("SELECT SUM(x) FROM t")
    n, total = session.ask("SELECT COUNT(*) FROM t", remeasure=True), session.ask("SELECT SUM(x) FROM t")
    both = session.ask("SELECT COUNT(*) + SUM(x) AS both_of FROM t")[0]["both_of"]
    assert both.std == pytest.approx(math.hypot(n.std, total.std))
    session = open_session(
        table_of(), DOMAIN, policy="static", predictions=["SELECT COUNT(*) FROM t"], **settings_
    )
    n, total = session.ask("SELECT COUNT(*) FROM t", remeasure=True), session.ask("SELECT SUM(x) FROM t")
    both = session.ask("SELECT COUNT(*) + SUM(x) AS both_of FROM t")[0]["both_of"]
    assert both.std == pytest.approx(n.std + total.std)  # the largest that it may be


# What a ledger holds


def kept_line() -> str:
    ledger = MemoryLedger()
    session = open_session(
        table_of(), DOMAIN, budget=lp.Budget(1.0, 1e-6), horizon=4, policy="independent", name="t",
        ledger=ledger, unit=PEOPLE,
    )  # fmt: skip
    session.ask(TEXTS[2])
    return write_entry(next(one for one in ledger.since(0) if isinstance(one.entry, Release)))


def test_an_entry_reads_as_it_was_written_and_no_other_one_is_taken() -> None:
    line, accounting = kept_line(), GaussianAccounting(lp.Budget(1.0, 1e-6), DOMAIN)
    again = read_entry(line, DOMAIN)
    assert write_entry(again) == line
    form = json.loads(line)
    assert form["format"] == 7
    times = form["measurement"]["times"]
    assert min(times) == 1 < max(times)
    check_claim(again.entry, accounting, PEOPLE.max_rows)
    cheaper = [1] * (len(times) - 1) + [max(times)]
    for forged in (times[:-1], [0, *times[1:]], [-one for one in times], [2 * one for one in times], cheaper):
        other = json.dumps({**form, "measurement": {**form["measurement"], "times": forged}})
        with pytest.raises(lp.LaprasError):
            check_claim(read_entry(other, DOMAIN).entry, accounting, PEOPLE.max_rows)
    for forged in (["a"], [1.5] * len(times), None):
        with pytest.raises(LedgerError):
            read_entry(json.dumps({**form, "measurement": {**form["measurement"], "times": forged}}), DOMAIN)
    with pytest.raises(LedgerError, match="7 where it measures queries several times"):
        read_entry(line.replace('"format":7', '"format":6'), DOMAIN)


def test_a_query_that_is_0_everywhere_hinders_nothing() -> None:
    none = query_of([0] * 8)
    assert times_of([none, COUNT], 1) == times_of([none, none], 1) == ()
    assert times_of([none, COUNT, SUM], 1) == (times_of([COUNT, SUM], 1)[0], *times_of([COUNT, SUM], 1))
