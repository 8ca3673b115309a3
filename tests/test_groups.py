"""Groups of a statement all at once are what they are one by one: queries, answers, charges, estimates."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable, domains, queries
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_kronecker import written
from test_product import SMALL, prior_over, random_query

import laprasdp as lp
from laprasdp.belief.direct import centred
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.errors import DomainError
from laprasdp.periods.period import Part, Period
from laprasdp.privacy.budget import MU_BITS, Budget
from laprasdp.privacy.filter import CellCharge, GaussianFilter
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy import group_block, span
from laprasdp.strategy.group_block import GroupBlock, block_of
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.span import Span
from laprasdp.strategy.strength import measure, measure_laplace

ALPHA = 1e-7
WIDE = lp.Domain(a=lp.Integers(0, 11), b=lp.Integers(0, 10), c=lp.Integers(0, 9))


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    """Some groups of a function of a small domain, in any order."""
    domain = draw(domains)
    by = tuple(sorted(draw(st.sets(st.integers(0, len(domain) - 1), min_size=1))))
    count = math.prod(domain.shape[axis] for axis in by)
    places = draw(st.permutations(range(count)))[: draw(st.integers(1, count))]
    return Groups(draw(queries(domain)).canonical(), by, places)


def vectors(group: Groups) -> np.ndarray[Any, Any]:
    """(g, n) the groups written out, from the definition alone."""
    domain = group.domain
    levels = np.indices(domain.shape).reshape(len(domain), -1)
    rows = []
    for place in group.places.tolist():
        at = np.unravel_index(place, group.shape)
        inside = np.logical_and.reduce([levels[a] == level for a, level in zip(group.by, at, strict=True)])
        rows.append(np.where(inside, group.whole.vector(), 0))
    return np.array(rows)


def of_weights(domain: lp.Domain, weights: Any) -> Query:
    labels = {name: np.arange(size) for name, size in zip(domain.names, domain.shape, strict=True)}
    return Query(domain, labels, np.asarray(weights).reshape(domain.shape))


@given(groups())
def test_a_group_is_the_whole_where_its_levels_are(group: Groups) -> None:
    rows = vectors(group)
    assert len(group) == len(rows)
    for query, row in zip(group, rows, strict=True):
        assert query == of_weights(group.domain, row)  # the same canonical form, and so the same key
        assert (query.vector() == row).all()
    assert (group.live == rows.any(axis=1)).all()
    assert (group.union.vector() == rows.sum(axis=0)).all()
    assert list(group.at(range(0, len(group), 2))) == list(group)[::2]
    assert sorted(place for _, where in group.slices for place in where) == list(range(len(group)))


@given(groups(), st.integers(0, 2**32), st.sampled_from([1, 2**30]))
def test_the_exact_answers_are_those_of_the_queries(group: Groups, seed: int, scale: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 2**32, group.domain.size)
    table = MemoryTable(group.domain, counts)
    heavy = Groups(of_weights(group.domain, scale * group.whole.vector()), group.by, group.places)
    exact = [sum(int(w) * int(c) for w, c in zip(row, counts, strict=True)) for row in vectors(heavy)]
    assert heavy.answers(table.marginal(heavy.axes)) == exact
    assert Rows(heavy, 3, bits=1).exact(table.marginal) == [3 * answer for answer in exact]


@given(groups(), st.integers(1, 3), st.integers(1, 2**40), st.integers(0, 52))
def test_the_charge_of_a_cell_is_that_of_its_one_group(
    group: Groups, max_rows: int, multiple: int, bits: int
) -> None:
    multiple = min(multiple, 2**bits * 8)
    amounts = Rows(group, multiple, bits=bits).amounts(max_rows).vector()
    column = (vectors(group).astype(object) ** 2).sum(axis=0) * (max_rows * multiple) ** 2
    due = [math.ceil(Fraction(int(square) * 2**MU_BITS, 4**bits)) for square in column]
    assert amounts.tolist() == due
    one_by_one = Rows(tuple(group), multiple, bits=bits).amounts(max_rows).vector()
    assert amounts.tolist() == one_by_one.tolist()


@settings(max_examples=50)
@given(st.data())
def test_a_filter_adds_groups_up_cell_by_cell(data: st.DataObject) -> None:
    first = data.draw(groups())
    budget, most = Budget(8.0, 1e-3), Fraction(1, 7)
    spent = GaussianFilter(budget, first.domain)
    total = np.zeros(first.domain.size, dtype=object)
    for group in [first, *data.draw(st.lists(st.just(first), max_size=2))]:
        if not group.union.is_zero:
            measurement = measure(group, most)
            spent.spend(CellCharge(measurement.amounts(), measurement.draws))
            assert isinstance(measurement.matrix, int)
            total += (vectors(group).astype(object) ** 2).sum(axis=0) * measurement.matrix**2
            assert max(total) <= 3 * most * 4**measurement.bits
    exact = Fraction(int(max(total)) * 2**MU_BITS, 4**52)
    assert 0 <= spent.spent_units - exact < 3  # each of three releases is rounded up


@given(groups(), st.integers(1, 2**38), st.integers(1, 3))
def test_laplace_noise_is_as_large_as_one_group_needs(group: Groups, epsilon: int, max_rows: int) -> None:
    if group.union.is_zero:
        return
    found = measure_laplace(group, epsilon + 2**20, max_rows)
    assert found.steps == measure_laplace(tuple(group), epsilon + 2**20, max_rows).steps
    most = int(np.abs(vectors(group)).sum(axis=0).max())
    exact = Fraction(most * max_rows) / Fraction(found.scale, 2**found.scale_bits)
    assert found.laplace_epsilon(max_rows) == exact <= Fraction(epsilon + 2**20, 2**40)


@given(groups(), st.data())
def test_a_sum_of_groups_is_told_from_every_other_function(group: Groups, data: st.DataObject) -> None:
    every = Groups(group.whole, group.by, np.arange(math.prod(group.shape)))
    rows = vectors(every)
    takes = np.array(data.draw(st.lists(st.integers(-2, 3), min_size=len(rows), max_size=len(rows))))
    found = group.shares(of_weights(group.domain, takes @ rows))
    assert found is not None
    assert not found[1].any()
    assert (found[0] @ rows == takes @ rows).all()
    other = data.draw(queries(group.domain)).vector()
    found = group.shares(of_weights(group.domain, other))
    assert found is not None
    ones = vectors(Groups(Query.constant(group.domain, 1), group.by, np.arange(len(rows)))).astype(bool)
    for share, wrong, row, mine in zip(*found, rows, ones, strict=True):
        multiples = {Fraction(int(a), int(b)) for a, b in zip(other[mine], row[mine], strict=True) if b}
        alike = len(multiples) <= 1 and not other[mine & (row == 0)].any()
        assert alike != wrong
        assert wrong or (share * row[mine] == other[mine]).all()


def test_what_are_no_groups() -> None:
    whole = Query.constant(SMALL, 1)
    for by, places in (((), [0]), ((1, 0), [0]), ((3,), [0]), ((0,), [3]), ((0,), [-1]), ((0,), [1, 1])):
        with pytest.raises(DomainError):
            Groups(whole, by, places)


# ---- noise ---------------------------------------------------------------------------------------


class Half:
    """Noise of half the deviation: every test of noise has to notice."""

    simulation = True

    def gaussian(self, count: int) -> list[int]:
        return [step // 2 for step in ExactNoise().gaussian(count)]

    def laplace(self, count: int, scale_units: int) -> list[int]:
        return [step // 2 for step in ExactNoise().laplace(count, scale_units)]


def residuals(noise: NoiseSource, release: Rows, table: MemoryTable) -> np.ndarray[Any, Any]:
    """Noise of each group in standard deviations, as it arrives."""
    exact = np.array(release.exact(table.marginal), dtype=float) / 2.0**release.bits
    values = release.values(release.release(release.exact(table.marginal), noise))
    return (values - exact) / math.sqrt(release.noise_variance)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_groups_have_independent_noise_of_the_stated_variance(law: str) -> None:
    domain = lp.Domain(a=lp.Integers(0, 99), b=lp.Integers(0, 99), c=lp.Booleans())
    group = Groups(Query.count(domain, c=True), (0, 1), np.arange(10_000))
    table = MemoryTable(domain, np.arange(domain.size) % 7)
    release = measure(group, Fraction(1, 50)) if law == "gaussian" else measure_laplace(group, 2**38)

    def p_values(noise: NoiseSource) -> list[float]:
        found = residuals(noise, release, table)
        kurtosis = 0.0 if law == "gaussian" else 3.0
        spread = math.sqrt((kurtosis + 2) / len(found))
        pairs = found.reshape(100, 100)
        score = [
            (float((found**2).mean()) - 1) / spread,
            float((pairs[:, 1:] * pairs[:, :-1]).mean()) * math.sqrt(9_900),
            float((pairs[1:] * pairs[:-1]).mean()) * math.sqrt(9_900),
        ]
        return [float(2 * stats.norm.sf(abs(each))) for each in score]

    assert min(p_values(ExactNoise())) > ALPHA
    assert min(p_values(Half())) < ALPHA


# ---- what is known -------------------------------------------------------------------------------


def weights_of(estimate: Any, count: int) -> np.ndarray[Any, Any]:
    """(q, count) the linear map from measured values to estimates, one value after another."""
    return np.stack([estimate(np.eye(count)[place]) for place in range(count)], axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_groups_are_estimated_as_their_queries_are(seed: int, size: int) -> None:
    """Also those that the prior does not span, before and after rows."""
    rng = np.random.default_rng(seed)
    prior = prior_over(SMALL, size)
    belief = GroupedBelief(prior)
    belief.learn(prior, rng.normal(size=prior.draws))
    for _ in range(3):
        by = tuple(sorted(rng.choice(3, rng.integers(1, 4), replace=False).tolist()))
        count = math.prod(SMALL.shape[axis] for axis in by)
        group = Groups(random_query(rng, SMALL, 3), by, rng.permutation(count)[: rng.integers(1, count + 1)])
        one_by_one = [belief.estimate(query) for query in group]
        together, listed = belief.estimates(group), belief.estimates(list(group))
        assert [each is None for each in listed] == [each is None for each in one_by_one]
        assert [each is None for each in together] == [each is None for each in one_by_one]
        for each, other in zip(together, one_by_one, strict=True):
            assert each is other is None or each == pytest.approx(other, rel=1e-9, abs=1e-8)
        for each, other in zip(listed, one_by_one, strict=True):
            assert each is other is None or each == pytest.approx(other, rel=1e-9, abs=1e-8)
        rows = measure(list(dict.fromkeys(random_query(rng, SMALL, size) for _ in range(2))), Fraction(1, 9))
        belief.learn(rows, rng.normal(size=rows.draws))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_blocks_are_unbiased_and_their_variance_is_exact(seed: int, size: int) -> None:
    """Against every measured value written out: the weight of each in each estimate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_block, "MAX_JOINT", 0)
        rng = np.random.default_rng(seed)
        prior = prior_over(SMALL, size)
        measured: list[Any] = [prior]
        strategy = [written(prior).astype(float) / 2.0**prior.bits]
        asked: list[Query] = [Query.constant(SMALL, 1)]
        for step in range(4):
            by = tuple(sorted(rng.choice(3, rng.integers(1, 4), replace=False).tolist()))
            count = math.prod(SMALL.shape[axis] for axis in by)
            chosen = np.arange(count) if step else rng.permutation(count)[: rng.integers(1, count + 1)]
            group = Groups(random_query(rng, SMALL, 2), by, chosen)
            live = group.at(np.flatnonzero(group.live))
            if len(live) > 1 and step % 2 == 0:
                measured.append(measure(live, Fraction(1, 5)))
                asked += [live.whole, live[0], live[len(live) - 1]]
                rows = vectors(live)
            else:
                query = random_query(rng, SMALL, 3)
                measured.append(measure([query], Fraction(1, 3)))
                asked.append(query)
                rows = query.vector()[np.newaxis]
            strategy.append(rows * (measured[-1].matrix / 2.0 ** measured[-1].bits))
        around = [centred(query)[0] for query in asked]  # known from the number of rows, too
        asked = [query for query in dict.fromkeys([*asked, *around]) if not query.is_zero]

        def known(values: np.ndarray[Any, Any]) -> GroupedBelief:
            belief, place = GroupedBelief(prior), 0
            for each in measured:
                belief.learn(each, values[place : place + each.draws])
                place += each.draws
            return belief

        draws = sum(each.draws for each in measured)
        asked = [query for query in asked if known(np.zeros(draws)).estimate(query) is not None]

        def estimate(values: np.ndarray[Any, Any]) -> list[float]:
            belief = known(values)
            return [found[0] for query in asked if (found := belief.estimate(query)) is not None]

        weights = weights_of(estimate, draws)
        wanted = np.stack([query.vector() for query in asked]).astype(float)
        assert weights @ np.concatenate(strategy) == pytest.approx(wanted, abs=1e-7)  # unbiased
        belief = known(np.zeros(draws))
        exact = weights @ weights.T
        variances = [belief.variance(query) for query in asked]
        assert variances == pytest.approx(exact.diagonal(), rel=1e-7)
        joint = belief.covariance(asked)
        tracked = ~np.isnan(joint)
        assert joint[tracked] == pytest.approx(exact[tracked], rel=1e-6, abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_groups_of_a_block_are_found_together_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = SMALL.shape[0] * SMALL.shape[1]
    whole = random_query(rng, SMALL, 2)
    kept = GroupBlock(Groups(whole, (0, 1), rng.permutation(count)[:10]), rng.normal(size=10), 2.0)
    for by in ((0,), (1,), (0, 1), (0, 2), (2,)):
        size = math.prod(SMALL.shape[axis] for axis in by)
        for other in (whole, random_query(rng, SMALL, 2)):
            group = Groups(other, by, np.arange(size))
            values, variances = kept.find_each(group)
            for query, value, variance in zip(group, values, variances, strict=True):
                if query.is_zero:
                    continue
                found = kept.find(query)
                assert (found is None) == math.isinf(variance)
                if found is not None:
                    assert (found.value, found.variance) == pytest.approx((value, variance), abs=1e-12)


def test_a_span_finds_sums_of_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Groups(Query.count(WIDE, c=range(3, 9)), (0, 1), np.arange(132))
    release = measure(group, Fraction(1, 4))
    values = np.arange(132.0)
    assert block_of(release, values) is not None
    found = Span()
    found.learn(release, values)
    scale = release.matrix / 2.0**release.bits if isinstance(release.matrix, int) else math.nan
    rolled = found.find(Query.count(WIDE, a=5, c=range(3, 9)))
    assert rolled is not None
    assert rolled.value == pytest.approx(values.reshape(12, 11)[5].sum() / scale)
    assert rolled.variance == pytest.approx(11 / scale**2)
    assert found.find(Query.count(WIDE, a=5, c=range(3, 8))) is None
    together = found.find_each(group)
    monkeypatch.setattr(span, "MAX_JOINT", 1_000)  # one by one
    assert together == found.find_each(group)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_groups_of_a_period_are_what_each_counts_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = lp.Dates("2024-01-01", "2024-01-12")
    domain = lp.Domain(a=lp.Integers(0, 2), day=days, b=lp.Booleans())
    part = Part.of(domain, "day", Period("2024-01-03", "2024-01-07"))
    by = tuple(sorted(rng.choice(3, rng.integers(1, 4), replace=False).tolist()))
    count = math.prod(domain.shape[axis] for axis in by)
    group = Groups(random_query(rng, domain, 3), by, rng.permutation(count)[: rng.integers(1, count + 1)])
    mine, places = part.restrict_groups(group)
    lying = dict(zip(places, mine or (), strict=True))
    for place, query in enumerate(group):
        there = part.restrict(query)
        assert there.is_zero if place not in lying else lying[place] == there
