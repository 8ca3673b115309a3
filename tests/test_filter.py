"""Filters add exactly and refuse exactly; the oracle is a second sum and an independent accountant."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from draw import domains, queries
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.privacy import filter as filters
from laprasdp.privacy.accounting import BasicAccounting, GaussianAccounting, accounting_named
from laprasdp.privacy.budget import DELTA_BITS, EPSILON_BITS, MU_BITS
from laprasdp.privacy.filter import BasicCharge, BasicFilter, CellCharge, Filter, GaussianFilter
from laprasdp.queries.query import Query
from laprasdp.strategy.strength import measure

BUDGET = lp.Budget(1, 1e-3)


@given(st.data())
def test_cells_add_exactly_and_the_largest_decides(data: st.DataObject) -> None:
    domain = data.draw(domains)
    with pytest.MonkeyPatch.context() as patch:  # cell by cell from the start, or over classes that are found
        patch.setattr(filters, "_FEW_CELLS", data.draw(st.sampled_from([0, 4_096])))
        spent = GaussianFilter(BUDGET, domain)
    limit, total = BUDGET.mu_squared_units, [0] * domain.size
    for _ in range(data.draw(st.integers(1, 8))):
        amounts = data.draw(queries(domain, 0, 3))
        scale = data.draw(st.integers(1, limit // 4))
        charge = CellCharge(amounts.spread(amounts.weights * scale), 1)
        after = [a + int(b) for a, b in zip(total, charge.amounts.vector(), strict=True)]
        if max(after) <= limit:
            spent.spend(charge)
            total = after
        else:
            with pytest.raises(lp.BudgetExhausted, match="μ² would be passed"):
                spent.spend(charge)
        assert spent.spent_units == max(total)
    assert spent.sums["cells"] == _cells(domain, total).canonical().key
    assert spent.spent + spent.remaining == pytest.approx(limit / 2**MU_BITS, rel=1e-15)


def _cells(domain: lp.Domain, amounts: list[int]) -> Query:
    labels = {name: np.arange(size) for name, size in zip(domain.names, domain.shape, strict=True)}
    every = Query(domain, labels, np.arange(domain.size).reshape(domain.shape))
    return Query.over(domain, every.axes, every.steps, np.array(amounts)[every.weights])


@given(st.lists(st.tuples(st.sampled_from(["check", "spend", "record"]), st.integers(0, 2)), max_size=12))
def test_a_charge_that_was_looked_at_is_added_to_what_is_spent_now(acts: list[tuple[str, int]]) -> None:
    domain = lp.Domain(a=lp.Integers(0, 2))
    tenth = BUDGET.mu_squared_units // 10
    charges = [CellCharge(lp.Query.count(domain, a=[a]).spread(np.array([0, tenth])), 1) for a in range(3)]
    charges[2] = CellCharge(lp.Query.constant(domain, 1).spread(np.array(tenth)), 1)
    spent, total = GaussianFilter(BUDGET, domain), np.zeros(3, dtype=int)
    for act, which in acts:
        after = total + charges[which].amounts.vector()
        if act != "record" and after.max() > BUDGET.mu_squared_units:
            with pytest.raises(lp.BudgetExhausted):
                getattr(spent, act)(charges[which])
        else:
            getattr(spent, act)(charges[which])
            total = total if act == "check" else after
        assert spent.spent_units == total.max()


@given(st.lists(st.tuples(st.integers(0, 2**39), st.integers(0, 2**90)), max_size=8))
def test_epsilon_and_delta_add_exactly(charges: list[tuple[int, int]]) -> None:
    spent, total = BasicFilter(BUDGET), (0, 0)
    for epsilon, delta in charges:
        after = (total[0] + epsilon, total[1] + delta)
        fits = after[0] <= BUDGET.epsilon_units and after[1] <= BUDGET.delta_units
        if fits:
            spent.spend(BasicCharge(epsilon, delta, 1))
            total = after
        else:
            with pytest.raises(lp.BudgetExhausted):
                spent.spend(BasicCharge(epsilon, delta, 1))
    assert spent.spent == total[0] / 2**EPSILON_BITS


def test_ten_tenths_are_one() -> None:
    budget = lp.Budget(1.0, 1e-6)
    domain = lp.Domain(a=lp.Booleans())
    accounting, spent = BasicAccounting(budget, domain, 10), BasicFilter(budget)
    tenth = accounting.total // 10
    for _ in range(10):
        spent.spend(BasicCharge(tenth, accounting.delta_units, 1))
    assert spent.remaining < 1e-11
    with pytest.raises(lp.BudgetExhausted):
        spent.spend(BasicCharge(tenth, 0, 1))


def test_disjoint_queries_compose_in_parallel_and_overlapping_ones_do_not() -> None:
    domain = lp.Domain(a=lp.Integers(1, 4))
    share = Fraction(BUDGET.mu_squared_units, 2**MU_BITS) * Fraction(9, 10)
    spent = GaussianFilter(BUDGET, domain)
    for value in range(1, 5):
        amounts = measure([Query.count(domain, a=value)], share).amounts()
        spent.spend(CellCharge(amounts, 1))
    everyone = measure([Query.constant(domain, 1)], share).amounts()
    with pytest.raises(lp.BudgetExhausted):
        spent.spend(CellCharge(everyone, 1))


def test_beyond_the_class_limit_the_bound_is_never_less() -> None:
    domain = lp.Domain(a=lp.Integers(1, 2_000), b=lp.Integers(1, 2_000))
    spent = GaussianFilter(BUDGET, domain)
    by_a = Query(domain, {"a": range(2_000)}, np.arange(2_000))
    by_b = Query(domain, {"b": range(2_000)}, np.arange(2_000)[::-1])
    spent.spend(CellCharge(by_a, 1))
    spent.spend(CellCharge(by_b, 1))
    assert spent.spent_units == 1_999 + 1_999  # the exact maximum is there too
    spent.spend(CellCharge(by_a, 1))
    assert spent.spent_units >= 1_999 * 3


def test_noise_values_are_counted() -> None:
    domain = lp.Domain(a=lp.Booleans())
    spent = GaussianFilter(BUDGET, domain)
    nothing = Query.constant(domain, 0)
    spent.spend(CellCharge(nothing, BUDGET.coordinates))
    with pytest.raises(lp.BudgetExhausted, match="noise values"):
        spent.spend(CellCharge(nothing, 1))
    basic = BasicFilter(BUDGET)
    with pytest.raises(lp.BudgetExhausted, match="noise values"):
        basic.check(BasicCharge(0, 0, BUDGET.coordinates + 1))


@pytest.mark.parametrize("name", ["basic", "gaussian"])
def test_a_check_changes_nothing_and_a_wrong_charge_is_a_defect(name: str) -> None:
    domain = lp.Domain(a=lp.Booleans())
    accounting = accounting_named(name, BUDGET, domain, 10)
    spent: Filter = accounting.filter()
    whole = accounting.total
    strongest = Query.constant(domain, int(accounting.mu_squared(whole) * 2**MU_BITS))
    charge = accounting.charge(whole, strongest, 1)
    spent.check(charge)
    assert spent.spent == 0
    spent.spend(charge)
    with pytest.raises(lp.BudgetExhausted):
        spent.check(charge)
    assert accounting.epsilon_of(spent.spent) <= BUDGET.epsilon
    other = CellCharge(Query.constant(domain, 1), 1) if name == "basic" else BasicCharge(1, 1, 1)
    with pytest.raises(TypeError):
        spent.check(other)
    negative = BasicCharge(-1, 0, 1) if name == "basic" else CellCharge(Query.constant(domain, -1), 1)
    with pytest.raises(ValueError, match="never negative"):
        spent.check(negative)


def test_the_gaussian_filter_agrees_with_an_independent_accountant() -> None:
    """dp-accounting's privacy loss distribution on the releases that touch the worst cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dp_accounting.pld import privacy_loss_distribution as pld
    domain = lp.Domain(a=lp.Integers(1, 3))
    accounting = GaussianAccounting(BUDGET, domain)
    spent, sigmas = GaussianFilter(BUDGET, domain), []
    for share, values in ((0.3, [1, 2]), (0.2, [2, 3]), (0.25, [1]), (0.4, [2])):
        measurement = measure(
            [Query.count(domain, a=values)], accounting.mu_squared(int(accounting.total * share))
        )
        spent.spend(accounting.charge(0, measurement.amounts(), 1))
        assert isinstance(measurement.matrix, int)
        if 2 in values:
            sigmas.append(2.0**measurement.bits / measurement.matrix)
    composed = pld.from_gaussian_mechanism(sigmas[0], value_discretization_interval=1e-4)
    for sigma in sigmas[1:]:
        composed = composed.compose(pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4))
    oracle = composed.get_epsilon_for_delta(BUDGET.delta)
    ours = accounting.epsilon_of(spent.spent)
    assert ours == pytest.approx(oracle, abs=2e-3)
    assert ours < oracle + 1e-9 or oracle <= BUDGET.epsilon
    # negative control: with one release forgotten the two disagree
    forgotten = pld.from_gaussian_mechanism(sigmas[0], value_discretization_interval=1e-4)
    assert abs(forgotten.get_epsilon_for_delta(BUDGET.delta) - ours) > 0.1


def test_basic_releases_are_no_stronger_than_their_epsilon_and_delta() -> None:
    from laprasdp.privacy.gaussian import delta_of

    domain = lp.Domain(a=lp.Booleans())
    accounting = BasicAccounting(BUDGET, domain, 100)
    for allowance in (1 << 20, 1 << 30, accounting.total // 100, accounting.total):
        mu = float(accounting.mu_squared(allowance)) ** 0.5
        exact = accounting.delta_units / 2**DELTA_BITS
        assert delta_of(mu * (1 - 1e-12), allowance / 2**EPSILON_BITS) <= exact
        assert delta_of(mu * (1 + 1e-6), allowance / 2**EPSILON_BITS) > exact


def test_a_release_stronger_than_its_allowance_is_a_defect() -> None:
    domain = lp.Domain(a=lp.Booleans())
    accounting = BasicAccounting(BUDGET, domain, 10)
    amounts = measure([Query.constant(domain, 1)], accounting.mu_squared(1 << 36)).amounts()
    assert accounting.charge(1 << 36, amounts, 1).epsilon == 1 << 36
    with pytest.raises(lp.BudgetError, match="stronger than its allowance"):
        accounting.charge(1 << 35, amounts, 1)


def test_unknown_accounting() -> None:
    with pytest.raises(lp.BudgetError, match='"basic" or "gaussian", not \'zcdp\''):
        accounting_named("zcdp", BUDGET, lp.Domain(a=lp.Booleans()), 10)
    with pytest.raises(lp.BudgetError, match=r"below 2\^-100"):
        BasicAccounting(lp.Budget(1, 1e-18), lp.Domain(a=lp.Booleans()), 10**13)


@pytest.mark.parametrize("accounting", ["basic", "gaussian"])
def test_a_filter_goes_on_with_a_larger_budget_and_never_with_a_smaller(accounting: str) -> None:
    domain = lp.Domain(age=lp.Integers(0, 3))
    kept = accounting_named(accounting, BUDGET, domain, 4)
    more = lp.Budget(2, 1e-3)
    amounts = Query.constant(domain, 1).spread(np.array(kept.total))
    whole = BasicCharge(kept.total, 0, 7) if accounting == "basic" else CellCharge(amounts, 7)
    spent = kept.filter()
    spent.spend(whole)
    with pytest.raises(lp.BudgetExhausted):
        spent.check(whole)
    for lower in (BUDGET, lp.Budget(0.5, 1e-3), lp.Budget(2, 1e-4), lp.Budget(0.5, 1e-2)):
        with pytest.raises(lp.BudgetError, match="only ever raised"):
            spent.widen(lower)
    before = spent.spent
    spent.widen(more)
    spent.check(whole)
    assert spent.spent == before
    assert spent.spent + spent.remaining == pytest.approx(2 if accounting == "basic" else more.mu**2)


def test_a_raise_must_allow_the_noise_values_that_were_drawn() -> None:
    domain = lp.Domain(age=lp.Integers(0, 3))
    large = lp.Budget(8, 1e-3)
    assert large.coordinates < BUDGET.coordinates
    spent = GaussianFilter(BUDGET, domain)
    spent.spend(CellCharge(Query.constant(domain, 1), large.coordinates + 1))
    with pytest.raises(lp.BudgetError, match="noise values were drawn"):
        spent.widen(large)
    assert spent.remaining > 0
    spent.widen(lp.Budget(1.5, 1e-3))


def test_what_is_recorded_counts_though_it_does_not_fit() -> None:
    spent = BasicFilter(BUDGET)
    spent.record(BasicCharge(3 * BUDGET.epsilon_units, 0, 1))
    assert (spent.spent, spent.remaining, spent.draws) == (3, -2, 1)
    with pytest.raises(lp.BudgetExhausted):
        spent.check(BasicCharge(1, 0, 1))


def test_a_bound_may_pass_the_limit_of_weights() -> None:
    """With μ² above 1 a sum of charges is larger than any weight of a query may be."""
    domain = lp.Domain(**{f"a{k}": lp.Integers(0, 49) for k in range(6)})
    spent = GaussianFilter(lp.Budget(14.0, 1e-6), domain)
    for k in range(6):  # too many classes together for the exact sum
        amounts = Query(domain, {f"a{k}": np.arange(50)}, np.full(50, 2**39) + np.arange(50))
        spent.spend(CellCharge(amounts, 1))
    assert spent.spent >= 6 * 2**39 / 2**40
