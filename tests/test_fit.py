"""The prior around independence and the fit: each formula against one that writes the domain out."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from draw import MemoryTable, queries
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.arrays import Floats
from laprasdp.belief.cell_fit import CellFit
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.entropy import widest
from laprasdp.belief.fit import Fit, fitted_by, fitted_each
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.belief.independence import Independence
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.strength import measure

DOMAIN = lp.Domain(a=lp.Integers(0, 4), b=lp.Categories(["x", "y", "z"]), c=lp.Integers(0, 3))
SETS = {s: 1.0 for size in (0, 1, 2) for s in itertools.combinations(range(3), size)}
SOME = settings(deadline=None, max_examples=30)


def table(seed: int = 1, rows: int = 4_000) -> MemoryTable:
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.ones(size)) for size in DOMAIN.shape]
    product = np.einsum("i,j,k->ijk", *shares)
    return MemoryTable(DOMAIN, rng.poisson(rows * product * rng.gamma(4, 0.25, product.shape)).reshape(-1))


def released(given: MemoryTable, seed: int = 2, strength: float = 0.05) -> tuple[GroupedBelief, Marginals]:
    """A belief that has learned a release of all pairs."""
    prior = design_marginals(DOMAIN, SETS, {}, Fraction(strength))
    exact = np.array(prior.exact(given.marginal), dtype=float) / 2.0**prior.bits
    belief = GroupedBelief(prior)
    belief.learn(prior, exact + np.random.default_rng(seed).standard_normal(len(exact)))
    return belief, prior


def measured(belief: GroupedBelief, given: MemoryTable, asked: list[Query], seed: int) -> Rows:
    rows = measure(asked, Fraction(1, 50))
    exact = np.array(rows.exact(given.marginal), dtype=float) / 2.0**rows.bits
    belief.learn(rows, exact + np.random.default_rng(seed).standard_normal(len(exact)))
    return rows


def written(prior: Independence) -> tuple[Floats, Floats]:
    """Mean and covariance of all cells before any row, but for what only queries of unreleased sets have."""
    shares = [prior.margins[axis].shares for axis in range(3)]
    mean = prior.rows * np.einsum("i,j,k->ijk", *shares).reshape(-1)
    covariance = np.zeros((DOMAIN.size, DOMAIN.size))
    for s in SETS:
        bases = [prior.margins[a].basis if a in s else shares[a][:, np.newaxis] for a in range(3)]
        wide = np.kron(np.kron(bases[0], bases[1]), bases[2])
        weights = prior.weights[s].reshape(-1)
        mean = mean + wide @ prior.means[s].reshape(-1)
        covariance += (wide * weights**2) @ wide.T
    return mean, covariance


def pairs() -> list[Query]:
    """Queries of at most two attributes."""
    found = [Query.constant(DOMAIN, 1), Query.count(DOMAIN, a=[1, 2]), Query.count(DOMAIN, b="x", c=[0, 3])]
    weights = np.array([[1, 0, 2], [0, 3, -1]])
    return [*found, Query(DOMAIN, {"a": [0, 0, 1, 1, 1], "b": [0, 1, 2]}, weights)]


def test_the_widest_table_has_its_pairs_and_no_factor_of_three() -> None:
    rng = np.random.default_rng(3)
    true, start = rng.gamma(2.0, size=(3, 4, 2)), np.full((3, 4, 2), 2.0)
    true *= start.sum() / true.sum()
    found = widest(start, [true.sum(axis=axis) for axis in (2, 1, 0)])
    for axis in range(3):
        assert found.sum(axis=axis) == pytest.approx(true.sum(axis=axis), rel=1e-3)
    logs = np.log(found)
    odds = logs - logs[:1] - logs[:, :1] - logs[:, :, :1]
    odds += logs[:1, :1] + logs[:1, :, :1] + logs[:, :1, :1] - logs[:1, :1, :1]
    assert np.abs(odds).max() < 1e-9
    negative = true.sum(axis=2)
    negative[0, 0] = -5.0
    assert (widest(start, [negative, *(true.sum(axis=axis) for axis in (1, 0))]) > 0).all()


def test_three_attributes_depart_from_what_their_pairs_make_of_them() -> None:
    given_table, sets = table(), SETS | {(0, 1, 2): 1.0}
    prior = design_marginals(DOMAIN, sets, {}, Fraction(1, 20))
    exact = np.array(prior.exact(given_table.marginal), dtype=float) / 2.0**prior.bits
    released = prior.split(exact + np.random.default_rng(2).standard_normal(len(exact)))
    found = Independence(prior, released)
    bases = [found.margins[axis].basis for axis in range(3)]
    shares = [found.margins[axis].shares for axis in range(3)]
    start = found.rows * np.einsum("i,j,k->ijk", *shares)
    flat = start.copy()
    for s in SETS:
        if s:
            wide = [bases[a] if a in s else shares[a][:, np.newaxis] for a in range(3)]
            shape = [found.means[s].shape[s.index(a)] if a in s else 1 for a in range(3)]
            flat += np.einsum("abc,ia,jb,kc->ijk", found.means[s].reshape(shape), *wide)
    middle = widest(start, [flat.sum(axis=axis) for axis in (2, 1, 0)]) - flat
    for axis, basis in enumerate(bases):  # its part in the set's own subspace
        own = basis @ np.linalg.pinv(basis)
        middle = np.moveaxis(np.tensordot(own, middle, axes=(1, axis)), 0, axis)
    gain = prior.multipliers[prior.sets.index((0, 1, 2))] / 2.0**prior.bits
    factor = np.array(1.0)
    spread = np.array(found.rows)
    for axis in range(3):
        factor = np.kron(factor, prior.factors[axis].astype(float))
        spread = np.kron(spread, bases[axis] @ bases[axis].T)

    def posterior(share: float, strength: float) -> tuple[float, Floats]:
        """Likelihood of the values, and mean departure, of a share of the middle and a strength."""
        short = released[0, 1, 2].reshape(-1) - gain * factor @ (flat + share * middle).reshape(-1)
        covariance = gain**2 * strength * factor @ spread @ factor.T + np.eye(len(short))
        pulled = np.linalg.solve(covariance, short)
        moved = gain * strength * spread @ factor.T @ pulled
        return -float(np.linalg.slogdet(covariance)[1] + short @ pulled), share * middle.reshape(-1) + moved

    strength, shown = found.strengths[0, 1, 2], np.einsum("abc,ia,jb,kc->ijk", found.means[0, 1, 2], *bases)
    each = {share: posterior(share, strength) for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
    near = [share for share, (_, mean) in each.items() if np.abs(mean - shown.reshape(-1)).max() < 1e-2]
    assert len(near) == 1
    best = max(posterior(share, strength * by)[0] for share in each for by in (0.5, 1, 2))
    assert each[near[0]][0] >= best - 1e-2


def test_a_query_is_seen_as_when_all_cells_are_written_out() -> None:
    belief, design = released(table())
    prior = Independence(design, belief.released)
    mean, covariance = written(prior)
    seen = [prior.see(query) for query in pairs()]
    for one, query in zip(seen, pairs(), strict=True):
        assert one is not None
        assert one.mean == pytest.approx(float(query.vector() @ mean))
        for other, beside in zip(seen, pairs(), strict=True):
            inner = sum(float(one.parts[s] @ other.parts[s]) for s in one.parts.keys() & other.parts.keys())
            assert inner == pytest.approx(float(query.vector() @ covariance @ beside.vector()))


def test_the_posterior_of_a_pair_is_that_of_its_values() -> None:
    belief, prior = released(table())
    found = Independence(prior, belief.released)
    one = found.margins
    s, gain = (0, 1), prior.multipliers[prior.sets.index((0, 1))] / 2.0**prior.bits
    factor = np.kron(prior.factors[0].astype(float), prior.factors[1].astype(float))
    spread = np.kron(one[0].basis @ one[0].basis.T, one[1].basis @ one[1].basis.T) * found.rows
    singles = [prior.multipliers[prior.sets.index((a,))] / 2.0**prior.bits for a in (0, 1)]
    middle = found.rows * np.outer(one[0].shares, one[1].shares)
    for axis, alone in enumerate(singles):  # what one-way parts add to the shares, nearly nothing
        own = prior.factors[axis].astype(float)
        short = belief.released[axis,] - alone * own @ (found.rows * one[axis].shares)
        wide = 1e4 * found.rows * one[axis].basis @ one[axis].basis.T
        part = wide @ own.T @ np.linalg.solve(own @ wide @ own.T * alone**2 + np.eye(len(own)), short) * alone
        beside = one[1 - axis].shares
        middle = middle + (np.outer(part, beside) if axis == 0 else np.outer(beside, part))
    values = belief.released[s].reshape(-1) - gain * factor @ middle.reshape(-1)

    def likelihood(strength: float) -> float:
        covariance = gain**2 * strength * factor @ spread @ factor.T + np.eye(len(values))
        return -float(np.linalg.slogdet(covariance)[1] + values @ np.linalg.solve(covariance, values))

    best = found.strengths[s]
    assert all(likelihood(best) >= likelihood(best * by) - 1e-6 for by in (0.1, 0.8, 1.25, 10))
    covariance = gain**2 * best * factor @ spread @ factor.T + np.eye(len(values))
    table_ = gain * best * spread @ factor.T @ np.linalg.solve(covariance, values)
    mean = np.einsum("ij,ai,bj->ab", found.means[s], one[0].basis, one[1].basis)
    assert mean.reshape(-1) == pytest.approx(table_, abs=1e-6 * np.abs(table_).max())


@SOME
@given(st.data())
def test_a_fit_is_the_posterior_of_cells_that_are_written_out(data: st.DataObject) -> None:
    given_table = table(data.draw(st.integers(0, 5)))
    belief, _ = released(given_table)
    fit = Fit(belief)
    assert fit.follow(belief)
    mean, covariance = written(fit.prior)
    narrow = queries(DOMAIN).filter(lambda q: 0 < len(q.axes) < 3)
    for step in range(data.draw(st.integers(0, 3))):
        asked = data.draw(st.lists(narrow, min_size=1, max_size=3))
        rows = measured(belief, given_table, asked, seed=10 + step)
        wide = rows.coefficients @ np.stack([query.vector() for query in asked])
        values = belief.releases[-1][2] if len(belief.releases) > step else None
        assert values is not None
        gain = covariance @ wide.T @ np.linalg.inv(wide @ covariance @ wide.T + np.eye(len(wide)))
        mean, covariance = mean + gain @ (values - wide @ mean), covariance - gain @ wide @ covariance
    assert fit.follow(belief)
    query = data.draw(narrow)
    found = fit.estimate(query)
    assert found is not None
    scale = np.sqrt(float(query.vector() @ query.vector()))
    assert found[0] == pytest.approx(float(query.vector() @ mean), abs=1e-2 * scale, rel=1e-5)
    assert found[1] == pytest.approx(float(query.vector() @ covariance @ query.vector()), rel=1e-3)


def test_what_no_release_tells_of_is_as_uncertain_as_the_largest_sets() -> None:
    belief, _ = released(table())
    fit, query = Fit(belief), Query.count(DOMAIN, a=[1, 2], b="x", c=[0, 3])
    prior, seen = fit.prior, fit.prior.see(query)
    assert seen is not None
    own = prior.rows * max(v for s, v in prior.strengths.items() if len(s) == 2)
    for axis, levels in ((0, [1, 2]), (1, [0]), (2, [0, 3])):
        own *= float((prior.margins[axis].basis[levels].sum(axis=0) ** 2).sum())
    assert seen.parts[query.mark] == pytest.approx([np.sqrt(own)])
    value, variance = belief.estimate(query) or (10.0, 4.0)
    alone = fit.estimate(query)
    assert alone is not None
    fitted = fitted_by(fit, belief, query, 10.0, 4.0)
    assert fitted == pytest.approx((alone[0] * 4 + 10 * alone[1]) / (4 + alone[1]))
    assert not belief.covers(query)
    assert (value, variance) == (10.0, 4.0)


def test_groups_are_fitted_at_once_as_one_by_one() -> None:
    given_table = table()
    belief, _ = released(given_table)
    measured(belief, given_table, pairs()[1:], seed=5)
    fit = Fit(belief)
    assert fit.follow(belief)
    whole = Query.count(DOMAIN, c=[1, 2])
    for groups in (
        Groups(whole, (0,), [3, 1]),
        Groups(whole, (0, 1), np.arange(15)),
        Groups(whole, (2,), [1]),
    ):
        found = fit.estimates(groups)
        assert found is not None
        for query, value, variance in zip(groups, *found, strict=True):
            one, seen = fit.estimate(query), fit.prior.see(query)
            assert one is not None
            assert seen is not None
            assert value == pytest.approx(one[0], rel=1e-5, abs=1e-3)
            assert variance == pytest.approx(seen.variance, rel=1e-9)
        values = np.full(len(groups), 7.0)
        each = fitted_each(fit, belief, groups, values, np.full(len(groups), 9.0))
        assert each is not None
        assert len(each) == len(groups)


def test_a_fit_follows_its_own_belief_only() -> None:
    given_table = table()
    belief, _ = released(given_table)
    fit, before = Fit(belief), belief.copy()
    measured(belief, given_table, pairs()[:2], seed=5)
    assert fit.follow(belief)
    assert not fit.follow(before)  # the transaction was taken back
    measured(before, given_table, pairs()[:2], seed=6)
    assert not fit.follow(before)
    assert not fit.follow(released(given_table, seed=9)[0])
    again = Fit(belief)
    assert again.follow(belief)
    assert again.estimate(pairs()[2]) == fit.estimate(pairs()[2])


@pytest.mark.parametrize("sets", [{(): 1.0, (0,): 1.0, (1,): 1.0}, {(0,): 1.0, (1,): 1.0, (0, 1): 1.0}])
def test_a_release_that_tells_too_little_is_refused(sets: dict[tuple[int, ...], float]) -> None:
    prior = design_marginals(DOMAIN, sets, {}, Fraction(1, 20))
    values = prior.split(np.zeros(prior.draws))
    with pytest.raises(ValueError, match="release"):
        Independence(prior, values)


def test_cells_are_fitted_as_the_formula_says() -> None:
    domain = lp.Domain(a=lp.Integers(0, 4), b=lp.Categories(["x", "y", "z"]))
    rng = np.random.default_rng(4)
    belief, errors = DenseBelief(15), rng.normal(size=(15, 15))
    rows = np.eye(15) / 8 + 0.02 * errors
    counts = rng.poisson(300 * np.outer(rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(3)))).reshape(-1)
    belief.add(rows, rows @ counts + rng.normal(size=15))
    fit = CellFit(belief, domain)
    y, noise = belief.mean.reshape(5, 3), belief.inverse
    total = y.sum()
    p, q = (np.maximum(one, 0.5) / np.maximum(one, 0.5).sum() for one in (y.sum(axis=1), y.sum(axis=0)))
    cp, cq = np.diag(p) - np.outer(p, p), np.diag(q) - np.outer(q, q)
    two = total * np.kron(cp, cq)
    one = np.kron(cp, np.outer(q, q)) + np.kron(np.outer(p, p), cq) + np.kron(np.outer(p, p), np.outer(q, q))
    one = total * one
    short = y.reshape(-1) - total * np.kron(p, q)

    def likelihood(strength: float) -> float:
        covariance = noise + strength * two + 1e4 * one
        return -float(np.linalg.slogdet(covariance)[1] + short @ np.linalg.solve(covariance, short))

    assert all(likelihood(fit.strength) >= likelihood(fit.strength * by) - 1e-2 for by in (0.5, 2.0))
    prior = fit.strength * two + 1e4 * one
    wanted = total * np.kron(p, q) + prior @ np.linalg.solve(prior + noise, short)
    for query in (Query.count(domain, a=2), Query.count(domain, a=[0, 1], b="y")):
        assert fit.estimate(query) == pytest.approx(float(query.vector() @ wanted), rel=1e-6)
    assert fit.follows(belief)
    belief.add(rows[:1], np.ones(1))
    assert not fit.follows(belief)
    with pytest.raises(ValueError, match="independent"):
        CellFit(DenseBelief(5), lp.Domain(a=lp.Integers(0, 4), b=lp.Integers(1, 1)))


def test_a_fit_is_nearer_to_tables_near_independence() -> None:
    """By 30%, over 20 tables and 400 counts of fixed seeds."""
    plain, fitted = [], []
    for seed in range(20):
        given_table = table(seed)
        belief, _ = released(given_table, seed=100 + seed, strength=0.002)
        fit = Fit(belief)
        for a, c in itertools.product(range(5), range(4)):
            query = Query.count(DOMAIN, a=a, c=c)
            exact = query.answer(given_table.marginal(query.axes))
            told, found = belief.estimate(query), fit.estimate(query)
            assert told is not None
            assert found is not None
            plain.append(told[0] - exact)
            fitted.append(found[0] - exact)
    assert np.abs(fitted).mean() < 0.7 * np.abs(plain).mean()
