"""PRIMM where a pure release is better: it takes the whole budget, and nothing but a raise comes after."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Grant
from laprasdp.policy.primm_dense import PrimmDense
from laprasdp.policy.primm_factored import PrimmFactored, factored
from laprasdp.policy.primm_product import PrimmProduct
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.accounting import GaussianAccounting
from laprasdp.privacy.filter import CellCharge, GaussianFilter
from laprasdp.privacy.gaussian import mu_of_pure
from laprasdp.privacy.law import half_width
from laprasdp.privacy.noise import ExactNoise, SeededNoise
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.strategy.measurement import Rows
from laprasdp.stream.audit import bounds
from laprasdp.stream.opening import open_session

LINE = lp.Domain(cell=lp.Integers(1, 24))
BUDGET = lp.Budget(1, 1e-6)
COUNTS = np.arange(24) * 7
TABLE = MemoryTable(LINE, COUNTS)
RANGES = [Query.count(LINE, cell=range(low, low + 6)) for low in range(1, 18, 2)]
OTHERS = [Query.count(LINE, cell=[k]) for k in (1, 9)] + [Query(LINE, {"cell": range(24)}, np.arange(24) % 3)]


def opened(**more: object) -> lp.Session:
    given: dict[str, object] = {"budget": BUDGET, "horizon": 100, "predictions": RANGES, "policy": "primm"}
    return open_session(TABLE, LINE, **given | more)


def test_it_is_taken_where_its_worst_ratio_is_less() -> None:
    def pure(cells: int, delta: float, **more: object) -> bool:
        domain = lp.Domain(cell=lp.Integers(1, cells))
        ranges = tuple(Query.count(domain, cell=range(low, low + 9)) for low in range(1, cells - 10, 3))
        setting = Setting(domain, lp.Budget(1, delta), 100, ranges, **more)
        grant = policy_named("primm", setting).due()
        assert grant is not None
        assert isinstance(grant.charge, CellCharge)
        return grant.charge.pure

    for overlap in (None, 0.0, 0.5, 0.99, 1.0):
        assert pure(74, 1e-6, overlap=overlap)
    assert pure(74, 1e-3)
    assert not pure(74, 0.2)  # Gaussian noise has hardly less μ than ε


def test_on_more_cells_it_is_taken_where_a_stream_is_better_off() -> None:
    """Half of a stream is predicted: where a half is worse off, the other one gains more."""
    domain, rng = lp.Domain(cell=lp.Integers(1, 260)), np.random.default_rng(5)
    drawn = {tuple(np.sort(rng.choice(261, 2, replace=False)).tolist()) for _ in range(30)}
    ranges = [Query.count(domain, cell=range(low + 1, high + 1)) for low, high in sorted(drawn)]
    asked = [ranges[place] for place in rng.permutation(len(ranges))[:20]]
    own = np.array([query in ranges[::2] for query in asked])
    for delta, better in ((1e-6, PrimmFactored), (3e-2, PrimmProduct)):
        setting = Setting(domain, lp.Budget(1, delta), 20, tuple(ranges[::2]))
        chosen = policy_named("primm", setting)
        assert type(chosen) is better
        other = PrimmProduct(setting) if better is PrimmFactored else factored(setting)[0]
        mine, theirs = (np.array(play(policy, asked), dtype=float) for policy in (chosen, other))
        ratios = [mine[part].mean() / theirs[part].mean() for part in (own, ~own)]
        assert max(ratios) * min(ratios) < 1


def test_without_an_order_of_cells_it_is_counts() -> None:
    """Nobody asks for prefixes or ranges of countries."""
    countries = lp.Domain(country=lp.Categories([f"c{n}" for n in range(42)]))
    ages = lp.Domain(age=lp.Integers(1, 42))
    for predicted in (0, 5):
        rows = []
        for domain in (countries, ages):
            (name,) = domain.names
            sets = [
                Query(domain, {name: np.arange(42) % k == 0}, np.array([0, 1]))
                for k in range(2, 2 + predicted)
            ]
            grant = policy_named("primm", Setting(domain, lp.Budget(1, 1e-3), 100, tuple(sets))).due()
            assert grant is not None
            assert isinstance(grant.charge, CellCharge)
            assert grant.charge.pure
            rows.append(grant.measurement.draws)
        assert rows[0] == 42 < rows[1]


def test_it_is_one_release_of_the_whole_epsilon() -> None:
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    for query in [*RANGES, *OTHERS, *RANGES]:
        answer = session.ask(query)
        assert isinstance(answer, lp.Answer)
        assert answer.charge == 0
        vector = query.vector().astype(float)
        squares = vector**2
        assert answer.law == ("geometric" if vector.max() == 1 else "laplace")
        assert answer.std == pytest.approx(np.sqrt(squares.sum() / 2) / np.sinh(0.5), rel=1e-6)
        assert answer.parts == pytest.approx(squares.sum() ** 2 / (squares**2).sum())
        assert answer.value == round(answer.value)  # a count of persons, not only for whoever rounds it
    (release,) = (kept.entry for kept in ledger.since(0) if isinstance(kept.entry, Release))
    strength = release.measurement.laplace_epsilon(1)
    assert Fraction(1) - Fraction(1, 2**20) < strength <= Fraction(BUDGET.epsilon)
    assert session.epsilon_spent == pytest.approx(1)
    assert session.remaining == 0
    again = opened(ledger=ledger)
    assert [again.ask(q).value for q in RANGES] == [session.ask(q).value for q in RANGES]


def test_a_budget_is_raised_after_it(tmp_path: Path) -> None:
    """By a second pure release of what was added; together they are least squares over both."""
    ledger = SQLLedger(tmp_path / "raised.ledger")
    with opened(ledger=ledger) as session:
        first = session.ask(OTHERS[0])
        session.raise_budget(lp.Budget(1, 1e-5))  # adds no ε: nothing is released
        assert session.ask(OTHERS[1]).released == ()
        session.raise_budget(lp.Budget(3, 1e-5))
        fresh = session.ask(RANGES[0])
        assert [one.reason for one in fresh.released] == ["raise"]
        assert session.remaining == 0
        assert session.ask(OTHERS[0]).value == first.value
        six = 6 / (2 * np.sinh(0.5) ** 2), 6 / (2 * np.sinh(1) ** 2)
        assert fresh.std**2 == pytest.approx(1 / (1 / six[0] + 1 / six[1]), rel=1e-5)
        assert fresh.law == "laplace"
        assert session.epsilon_spent == pytest.approx(3)
        assert verify(ledger) == []
        strong = [kept.entry for kept in ledger.since(0) if isinstance(kept.entry, Release)]
        assert [round(float(one.measurement.laplace_epsilon()), 4) for one in strong] == [1, 2]


@pytest.mark.parametrize("cells", [24, 300])
def test_a_ledger_from_before_goes_on_with_its_noise(cells: int) -> None:
    """Its settings name no kind of release: it was Gaussian noise, over few cells or over queries."""
    line = lp.Domain(cell=lp.Integers(1, cells))
    table, ledgers = MemoryTable(line, np.arange(cells)), {}
    more: dict[str, Any] = {
        "budget": BUDGET,
        "horizon": 20,
        "clock": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    }
    asked = [Query.count(line, cell=range(low, low + cells // 4)) for low in (1, 9, 17)]
    fresh = open_session(table, line, **more)
    assert fresh.ask(asked[0]).law != "gaussian"  # or there would be nothing to keep to
    sessions = []
    for release in ("gaussian", "either"):
        ledger = ledgers[release] = MemoryLedger()
        sessions.append(open_session(table, line, ledger=ledger, release=release, **more))
    before = sessions[0].ask(asked[0])
    for kept in ledgers["gaussian"].since(0):
        with ledgers["either"].transaction(kept.stamp) as transaction:
            transaction.append(kept.entry)
    assert {session.ask(asked[0]).value for session in sessions} == {before.value}
    priced = [session.price(asked[1]) for session in sessions]
    assert priced[0] == priced[1]
    for session in sessions:
        session.raise_budget(lp.Budget(2, 1e-6))
    answers = [[session.ask(query) for query in asked[1:]] for session in sessions]
    assert [(one.std, one.law, one.charge) for one in answers[0]] == [
        (one.std, one.law, one.charge) for one in answers[1]
    ]


@pytest.mark.parametrize("epsilon", [0.01, 8.0, 30.0])
def test_whatever_the_budget(epsilon: float) -> None:
    session = opened(budget=lp.Budget(epsilon, 1e-6), predictions=[], policy="laplace-counts")
    assert session.ask(OTHERS[0]).std <= np.sqrt(2) / epsilon * (1 + 1e-6)
    assert (session.remaining, session.epsilon_spent) == (0, pytest.approx(epsilon, rel=1e-6))


def test_persons_with_several_rows_get_more_noise() -> None:
    unit = lp.PrivacyUnit("id", 3)
    table = MemoryTable(LINE, COUNTS, unit=unit)
    session = open_session(table, LINE, budget=BUDGET, predictions=RANGES, policy="primm", unit=unit)
    assert session.ask(OTHERS[0]).std == pytest.approx(np.sqrt(0.5) / np.sinh(0.5 / 3), rel=1e-6)


def test_nothing_fits_beside_it() -> None:
    accounting = GaussianAccounting(BUDGET, LINE)
    cell = CellCharge(Query.count(LINE, cell=[3]).canonical(), 1)  # one unit on one cell
    whole = accounting.pure_charge(Fraction(1), 24)
    first = GaussianFilter(BUDGET, LINE)
    first.spend(whole)
    with pytest.raises(lp.BudgetExhausted):
        first.spend(cell)
    with pytest.raises(lp.BudgetExhausted):
        first.spend(whole)
    second = GaussianFilter(BUDGET, LINE)
    second.spend(cell)
    with pytest.raises(lp.BudgetExhausted):
        second.spend(whole)
    raised = lp.Budget(1.5, 1e-6)
    first.widen(raised)
    after, taken = GaussianAccounting(raised, LINE), first.taken
    assert taken == BUDGET
    with pytest.raises(lp.BudgetExhausted, match="another pure one"):
        first.check(cell)
    with pytest.raises(lp.BudgetError, match="stronger"):
        after.pure_charge(Fraction(1, 2) + Fraction(1, 2**39), 24, taken)
    first.spend(after.pure_charge(Fraction(1, 2), 24, taken))
    assert first.remaining == 0
    with pytest.raises(lp.BudgetExhausted):
        first.spend(after.pure_charge(Fraction(1, 2), 24, taken))
    with pytest.raises(lp.BudgetError, match="stronger"):
        accounting.pure_charge(Fraction(1) + Fraction(1, 2**39), 24)


@pytest.mark.parametrize("noise", [SeededNoise(5), ExactNoise()])
def test_errors_are_as_stated(noise: object) -> None:
    asked = [*RANGES[:2], *OTHERS]
    true = np.array([int(query.vector() @ COUNTS) for query in asked])
    inside, errors = np.zeros((600, len(asked), 2)), np.zeros((600, len(asked)))
    for place in range(len(errors)):
        session = opened(
            policy="laplace-counts", noise=noise, public=True
        )  # as primm, and without its design
        answers = [session.ask(query) for query in asked]
        errors[place] = [answer.value for answer in answers] - true
        for column, answer in enumerate(answers):
            for k, level in enumerate((0.5, 0.95)):
                low, high = answer.interval(level)
                inside[place, column, k] = low <= true[column] <= high
    expected = np.array([answer.expected_error for answer in answers])
    spread = np.abs(errors).std(axis=0) / np.sqrt(len(errors))
    assert (np.abs(np.abs(errors).mean(axis=0) - expected) < 4.5 * spread).all()
    for k, level in enumerate((0.5, 0.95)):
        slack = 4.5 * np.sqrt(level * (1 - level) / len(errors))
        assert (inside[:, :, k].mean(axis=0) > level - slack).all()
        narrower = np.abs(errors) < [half_width(level, one.std, one.law, one.parts) for one in answers]
        assert (narrower.mean(axis=0) < level + slack).all()  # no whole number less would do


SUMS = lp.Domain(cell=lp.Integers(1, 74))
WIDE = [Query.count(SUMS, cell=range(low, low + 25)) for low in (1, 20)]


@lru_cache
def of_sums() -> tuple[PrimmDense, Grant]:
    """A policy that releases sums beside the cells, and that release."""
    policy = policy_named("primm", Setting(SUMS, lp.Budget(1, 1e-3), 100))
    assert isinstance(policy, PrimmDense)
    grant = policy.due()
    assert grant is not None
    return policy, grant


def test_a_p_identity_strategy_is_released_on_the_grid() -> None:
    policy, grant = of_sums()
    measurement = grant.measurement
    assert isinstance(measurement, Rows)
    assert len(measurement.queries) > SUMS.size
    weights = np.array([query.vector() for query in measurement.queries])
    norms = [Fraction(int(total)) for total in np.abs(weights).sum(axis=0)]
    assert max(norms) / measurement.steps == measurement.laplace_epsilon()
    assert Fraction(1) - Fraction(1, 2**18) < measurement.laplace_epsilon() <= 1
    asked = WIDE[0]
    rows = weights / (2.0**measurement.bits * np.sqrt(measurement.noise_variance))
    oracle = asked.vector() @ np.linalg.inv(rows.T @ rows) @ asked.vector()
    assert policy.expected_variance(asked) == pytest.approx(float(oracle), rel=1e-9)
    assert measurement.noise_variance == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize(("strength", "sound"), [(1, True), (3, False)])
def test_a_p_identity_release_tells_no_more_than_its_epsilon(strength: int, sound: bool) -> None:
    """An audit by the likelihood ratio itself; a third of the noise is caught."""
    _, grant = of_sums()
    measurement = grant.measurement
    counts, noise = np.zeros(SUMS.size, dtype=np.int64), ExactNoise()
    scores = []
    moves = np.array([query.vector()[7] for query in measurement.queries], dtype=float)
    for more in (0, 1):
        counts[7] = more
        table = MemoryTable(SUMS, counts)
        exact = np.array(measurement.exact(table.marginal), dtype=float)
        drawn = np.array(
            [measurement.release([0] * measurement.draws, noise) for _ in range(2_000)], dtype=float
        )
        seen = exact + drawn / strength
        scores.append((np.abs(seen) - np.abs(seen - moves)).sum(axis=1))
    epsilon, mu = bounds(*scores, delta=0.0, failure=1e-6)
    assert mu > 0.2  # it tells something
    assert (epsilon <= 1 and mu <= mu_of_pure(1.0)) == sound


def test_answers_from_sums_err_as_stated() -> None:
    policy, grant = of_sums()
    measurement = grant.measurement
    assert isinstance(measurement, Rows)
    asked = [*WIDE, Query.count(SUMS, cell=[30]), Query.count(SUMS, cell=range(1, 40))]
    noise, errors = SeededNoise(11), []
    for _ in range(3_000):
        belief = copy.deepcopy(policy.belief)
        noisy = measurement.release([0] * measurement.draws, noise)
        belief.learn(measurement, measurement.values(noisy))
        errors.append([belief.estimate(query)[0] for query in asked])
    found = np.abs(np.array(errors))
    for column, query in enumerate(asked):
        law = belief.law(query)
        std = belief.variance(query) ** 0.5
        assert law[0] == "laplace"
        for level in (0.5, 0.95):
            inside = float((found[:, column] <= half_width(level, std, *law)).mean())
            assert abs(inside - level) < 5 * np.sqrt(level * (1 - level) / len(found))
        wrong = float((found[:, column] <= half_width(0.5, 0.8 * std, *law)).mean())
        assert abs(wrong - 0.5) > 5 * np.sqrt(0.25 / len(found))  # negative control
