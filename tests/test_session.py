"""The order inside `ask`: nothing leaves before it is charged."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import numpy as np
import pytest
from draw import MemoryTable
from small_session import BUDGET, COUNTS, DOMAIN, charged_once, opened

import laprasdp as lp
from laprasdp.ledger.ledger import Transaction
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.entries import Kept, Release, Stamp
from laprasdp.strategy.measurement import Rows
from laprasdp.stream.opening import open_session


@pytest.mark.parametrize("policy", ["smooth-cache", "primm"])
def test_sessions_on_one_ledger_are_one_budget(policy: str) -> None:
    ledger = MemoryLedger()
    first, second = (opened(ledger=ledger, policy=policy) for _ in range(2))
    shown = {}
    for place in range(12):
        asked, statement = (first, second)[place % 2], f"SELECT COUNT(*) FROM t WHERE age < {1 + place // 2}"
        answer = asked.ask(statement)
        assert isinstance(answer, lp.Answer)
        assert answer.value == shown.setdefault(statement, answer.value)
    assert first.spent == second.spent
    assert charged_once(first, ledger)
    assert first.state.policy.seen == 12
    third = opened(ledger=ledger, policy=policy)
    for statement, value in shown.items():
        assert third.ask(statement).value == value


def test_every_statement_ends_with_one_outcome() -> None:
    at = datetime(2024, 2, 29, tzinfo=UTC)
    ledger = MemoryLedger()
    session = opened(policy="independent", horizon=1, predictions=[], clock=lambda: at, ledger=ledger)
    statements = [f"SELECT COUNT(*) FROM t WHERE age {which}" for which in ("< 3", "< 3", "< 5", "> 99")]
    for statement in statements:
        with suppress(lp.BudgetExhausted):
            session.ask(statement, analyst="ada")
    kept = list(ledger.since(0))
    names = [type(one.entry).__name__ for one in kept]
    assert names == ["Release", "Reply", "Reply", "Refusal", "Reply"]
    asked = [statements[place] for place in (0, 0, 1, 2, 3)]
    assert kept == [
        Kept(place, Stamp(at, "ada", text), one.entry)
        for place, (text, one) in enumerate(zip(asked, kept, strict=True))
    ]
    assert session.state.policy.seen == 4


def test_a_shown_value_outlives_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine may round otherwise; what was shown is kept as it was shown."""
    statement, ledger = "SELECT COUNT(*) FROM t", MemoryLedger()
    shown = opened(ledger=ledger).ask(statement)
    values = Rows.values
    monkeypatch.setattr(Rows, "values", lambda self, noisy: values(self, noisy) + 1e-9)
    again = opened(ledger=ledger)
    assert again.ask(statement).value == shown.value


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"horizon": 11}, "horizon is 10, not 11"),
        ({"policy": "smooth"}, "policy is 'smooth-cache', not 'smooth'"),
        ({"accounting": "basic"}, "accounting is 'gaussian', not 'basic'"),
        ({"split": "equal"}, "split is 'matrix-heavy', not 'equal'"),
        ({"overlap": 0.5}, "overlap is None, not 0.5"),
        ({"reading": lp.Reading(repeats="pay")}, "reading.repeats is 'replay', not 'pay'"),
        ({"predictions": ["SELECT COUNT(*) FROM t WHERE age = 1"]}, "predicted query 1 is another"),
        ({"predictions": []}, "it has 1 predicted queries, not 0"),
        ({"budget": lp.Budget(2, 1e-6)}, "the ledger's budget is ε = 1, δ = 1e-06 (μ = 0.2367"),
    ],
)
def test_a_ledger_belongs_to_its_settings(more: dict[str, object], says: str) -> None:
    ledger = MemoryLedger()
    opened(ledger=ledger).ask("SELECT COUNT(*) FROM t")
    with pytest.raises(lp.LedgerError, match=re.escape(says)):
        opened(ledger=ledger, **more)


def test_a_ledger_belongs_to_its_domain() -> None:
    ledger = MemoryLedger()
    opened(ledger=ledger)
    other = lp.Domain(age=lp.Integers(0, 14), sex=lp.Categories(["f", "m"]))
    with pytest.raises(lp.LedgerError, match="attribute age is declared differently; attribute sex"):
        open_session(MemoryTable(other, COUNTS), other, budget=BUDGET, horizon=10, ledger=ledger)
    turned = lp.Domain(sex=lp.Categories(["f", "m"], nullable=True), age=lp.Integers(0, 9))
    with pytest.raises(lp.LedgerError, match="the attributes are in another order"):
        open_session(MemoryTable(turned, COUNTS), turned, budget=BUDGET, horizon=10, ledger=ledger)


class Recording:
    """Writes down in which order the doors are used."""

    simulation = False

    def __init__(self, log: list[str]) -> None:
        self.log, self.inner = log, ExactNoise()

    def gaussian(self, count: int) -> list[int]:
        self.log.append("noise" if count else "ready")
        return self.inner.gaussian(count)

    def laplace(self, count: int, scale_units: int) -> list[int]:
        raise AssertionError


def test_the_order_inside_ask() -> None:
    log: list[str] = []

    class Table(MemoryTable):
        def marginal(self, axes: tuple[int, ...]) -> Marginal:
            log.append("data")
            return super().marginal(axes)

    class Ledger(MemoryLedger):
        @contextmanager
        def transaction(self, stamp: Stamp) -> Iterator[Transaction]:
            log.append("begin")
            with super().transaction(stamp) as transaction:
                yield transaction
            log.append("commit")

    noise: NoiseSource = Recording(log)
    session = opened(Table(DOMAIN, COUNTS), ledger=Ledger(), noise=noise, predictions=[])
    check, spend = session.state.filter.check, session.state.filter.spend
    session.state.filter.check = lambda charge: (log.append("filter"), check(charge))[1]
    session.state.filter.spend = lambda charge: (log.append("charge"), spend(charge))[1]
    session.ask("SELECT COUNT(*) FROM t WHERE age < 3")
    assert log == ["ready", "filter", "begin", "filter", "data", "noise", "charge", "commit"]
    log.clear()
    session.ask("SELECT COUNT(*) FROM t WHERE age <= 2")
    assert log == ["ready", "begin", "commit"]  # a repeated question touches neither data nor noise
    log.clear()
    with pytest.raises(lp.UnsupportedQuery):
        session.ask("SELECT MAX(age) FROM t")
    assert log == []


def test_seeded_noise_never_meets_a_private_table() -> None:
    with pytest.raises(lp.ConfigError, match="declared public"):
        opened(noise=lp.SeededNoise(1))
    answer = opened(noise=lp.SeededNoise(1), public=True).ask("SELECT COUNT(*) FROM t")
    assert isinstance(answer, lp.Answer)
    assert answer.simulated
    assert answer.row()["simulated"] is True


def test_groups_are_all_there_and_share_one_charge() -> None:
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    answer = session.ask("SELECT sex, COUNT(*) FROM t WHERE age < 4 GROUP BY sex")
    assert isinstance(answer, lp.GroupedAnswer)
    assert [one.group for one in answer] == [{"sex": "f"}, {"sex": "m"}, {"sex": None}]
    release = ledger.since(0)[-2].entry
    assert isinstance(release, Release)
    assert answer.charge == pytest.approx(release.charge.price)
    excluded = session.ask("SELECT sex, COUNT(*) FROM t WHERE sex = 'f' GROUP BY sex")
    assert isinstance(excluded, lp.GroupedAnswer)
    assert [one.source for one in excluded][1:] == ["constant", "constant"]
    assert excluded[1].std == 0
    assert excluded[1].charge == 0


def test_a_statement_that_no_cell_can_match_is_zero_for_every_table() -> None:
    session = opened()
    answer = session.ask("SELECT COUNT(*) FROM t WHERE age < 3 AND age > 5")
    assert isinstance(answer, lp.Answer)
    assert (answer.value, answer.std, answer.source, answer.charge) == (0, 0, "constant", 0)


def test_degenerate_tables_never_mean_no_noise() -> None:
    one = lp.Domain(only=lp.Categories(["x"]))
    for domain, counts in ((one, [0]), (one, [1000]), (DOMAIN, [0] * 30)):
        errors = list[float]()
        for _ in range(40):
            session = open_session(MemoryTable(domain, counts), domain, budget=BUDGET, horizon=3)
            answer = session.ask("SELECT COUNT(*) FROM t")
            assert isinstance(answer, lp.Answer)
            assert answer.std > 1
            errors.append(answer.value - sum(counts))
        assert any(errors)  # noise on whole numbers is 0 in 46 of 100: never 40 times, but with 1e-13


def test_the_price_before_and_the_charge_after_agree() -> None:
    session = opened(accounting="basic", policy="independent", predictions=[])
    for age in range(5):
        before = session.remaining
        answer = session.ask(f"SELECT COUNT(*) FROM t WHERE age = {age}")
        assert isinstance(answer, lp.Answer)
        assert answer.charge == pytest.approx(before - session.remaining, abs=1e-15)
        assert answer.remaining == session.remaining
    assert session.epsilon_spent == pytest.approx(0.5, abs=1e-9)


def test_many_threads_never_pass_the_budget() -> None:
    session = opened(horizon=200, policy="independent", predictions=[])
    queries = [Query.count(DOMAIN, age=range(low, high)) for low in range(10) for high in range(low + 1, 11)]
    answers: dict[str, set[float]] = {}

    def work() -> None:
        for query in queries:
            answer = session.ask(query)
            assert isinstance(answer, lp.Answer)
            answers.setdefault(query.key, set()).add(answer.value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(values) == 1 for values in answers.values())
    assert session.setting.ledger_unit.total * len(queries) // 200 >= round(session.spent * 2**MU_BITS)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"predictions": ["SELECT COUNT(*) FROM t WHERE age = 99"]}, "prediction 1: no cell of the declared"),
        (
            {"predictions": ["SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE sex = 'x'"]},
            "prediction 2",
        ),
        ({"predictions": "SELECT COUNT(*) FROM t"}, "list of statements"),
        ({"horizon": 0}, "horizon"),
        ({"budget": (1, 1e-6)}, "must be a Budget"),
        ({"accounting": "rdp"}, "accounting"),
        ({"unit": lp.PrivacyUnit("who", 2)}, "differ in their domain or privacy unit"),
    ],
)
def test_wrong_settings_are_one_clear_line(more: dict[str, object], says: str) -> None:
    with pytest.raises(lp.LaprasError, match=says) as caught:
        opened(**more)
    assert "\n" not in str(caught.value)


def test_statements_of_other_kinds_are_refused() -> None:
    session = opened()
    with pytest.raises(lp.UnsupportedQuery, match="not int"):
        session.ask(3)
    with pytest.raises(lp.DomainError, match="another domain"):
        session.ask(Query.constant(lp.Domain(a=lp.Booleans()), 1))
    assert session.spent == 0


def test_ask_many_is_lazy() -> None:
    session, taken = opened(), []

    def stream() -> Iterator[str]:
        for age in range(3):
            taken.append(age)
            yield f"SELECT COUNT(*) FROM t WHERE age = {age}"

    for place, _ in enumerate(session.ask_many(stream())):
        assert taken == list(range(place + 1))


def test_intervals() -> None:
    answer = lp.Answer("q", -3.0, 2.0, "measured", 0.1, 0.9)
    assert answer.nonnegative == 0
    assert answer.interval(0.5)[1] == pytest.approx(-3 + 2 * 0.67449, abs=1e-4)
    with pytest.raises(lp.ConfigError, match="between 0 and 1"):
        answer.interval(1)
    laplace = lp.Answer("q", 0.0, 2**0.5, "measured", 0.1, 0.9, law="laplace")
    assert laplace.interval(0.95)[1] == pytest.approx(-np.log(0.05))
