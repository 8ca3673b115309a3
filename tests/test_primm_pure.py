"""PRIMM where Laplace counts are better: one ε-DP release that takes the whole budget, and nothing after."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.setting import Setting
from laprasdp.privacy.accounting import GaussianAccounting
from laprasdp.privacy.filter import CellCharge, GaussianFilter
from laprasdp.privacy.law import half_width
from laprasdp.privacy.noise import ExactNoise, SeededNoise
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
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


def test_it_is_taken_only_where_it_is_better_for_every_kind_of_query() -> None:
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
    assert not pure(74, 1e-3)  # prefixes would be worse off
    assert not pure(400, 1e-6)  # a sum of so many Laplace counts is worse than an optimised release


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
    with pytest.raises(lp.BudgetError, match="no raise can be added"):
        session.raise_budget(lp.Budget(2, 1e-6))
    again = opened(ledger=ledger)
    assert [again.ask(q).value for q in RANGES] == [session.ask(q).value for q in RANGES]


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
    with pytest.raises(lp.BudgetError, match="stronger"):
        accounting.pure_charge(Fraction(1) + Fraction(1, 2**39), 24)


@pytest.mark.parametrize("noise", [SeededNoise(5), ExactNoise()])
def test_errors_are_as_stated(noise: object) -> None:
    asked = [*RANGES[:2], *OTHERS]
    true = np.array([int(query.vector() @ COUNTS) for query in asked])
    inside, errors = np.zeros((600, len(asked), 2)), np.zeros((600, len(asked)))
    for place in range(len(errors)):
        session = opened(noise=noise, public=True)
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
