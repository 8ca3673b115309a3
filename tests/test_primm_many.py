"""PRIMM on many attributes: predictions measured together and clipped, others around half of the total."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from test_clipped import conjunctions

import laprasdp as lp
from laprasdp.belief.direct import centred
from laprasdp.belief.product import ProductBelief
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy import design_product
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.primm_product import PrimmProduct
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.record.format import read_entry, write_entry
from laprasdp.strategy.clipped import Clipped
from laprasdp.strategy.kronecker import design_marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.strength import measure

BUDGET = lp.Budget(1, 1e-6)
PREDICTED, OTHERS = conjunctions(10, 30, 1), conjunctions(10, 60, 8)[30:]
DOMAIN = PREDICTED[0].domain
POLICY = policy_named("primm", Setting(DOMAIN, BUDGET, 40, PREDICTED))
DATA = {name: np.random.default_rng(place).integers(0, 10, 500) for place, name in enumerate(DOMAIN.names)}


def opened(seed: int, ledger: MemoryLedger | None = None) -> lp.Session:
    from laprasdp.data.duckdb import DuckDBTable

    table = DuckDBTable(pa.table(DATA), DOMAIN, name="t")
    policy = copy.deepcopy(POLICY, {id(part): part for part in POLICY.settled()})
    return lp.Session(table, policy, noise=SeededNoise(seed), ledger=ledger or MemoryLedger(), public=True)


def truth(query: Query) -> int:
    levels = {axis: DATA[DOMAIN.names[axis]] for axis in query.axes}
    return query.answer(Marginal(levels, np.ones(500, dtype=np.int64)))


def test_the_belief_knows_a_query_from_what_is_around_half_of_the_total() -> None:
    small = lp.Domain(a=lp.Integers(1, 3), b=lp.Booleans())
    prior = design_marginals(small, {(): 1.0}, {}, Fraction(1, 4))
    belief, total = ProductBelief(prior), Query.constant(small, 1)
    belief.learn(prior, np.array([50.0 * math.sqrt(prior.precisions[()])]))
    q, r = Query.count(small, a=1), Query.count(small, a=[1, 2], b=True)
    assert belief.estimate(q) is None
    rows = [query.spread(2 * query.weights - 1).canonical() for query in (q, r)]
    for row, value in zip(rows, (-30.0, 10.0), strict=True):
        found = measure([row], Fraction(9, 4))
        belief.learn(found, np.array([value * found.matrix / 2.0**found.bits]))
    spread = belief.variance(total)
    assert spread == pytest.approx(4, rel=1e-3)
    for query, row, value in zip((q, r), rows, (-30.0, 10.0), strict=True):
        mean, variance = belief.estimate(query) or (0, 0)
        assert mean == pytest.approx((value + 50) / 2)
        assert variance == pytest.approx((4 / 9 + spread) / 4)
        assert belief.estimate(row) == pytest.approx((value, 4 / 9))
    joint = belief.covariance([q, total, r])
    assert joint[0, 1] == pytest.approx(spread / 2)
    assert joint[0, 2] == pytest.approx(spread / 4)
    assert joint[0, 0] == pytest.approx(belief.variance(q))
    again = measure([q], Fraction(1))  # by itself too: the two are joined, and none is lost
    before = belief.variance(q)
    belief.learn(again, np.array([11.0]))
    assert belief.variance(q) == pytest.approx(1 / (1 + 1 / before), rel=1e-6)


def test_a_query_and_what_is_around_the_total_have_one_centre() -> None:
    q = OTHERS[0]
    around = q.spread(2 * q.weights - 1).canonical()
    assert centred(around) == (q, 2, -1)
    assert centred(q) == (q, 1, 0)
    seven = q.spread(7 * q.weights + 3).canonical()
    assert centred(seven) == (q, 7, 3)


def test_answers_are_unbiased_with_the_stated_deviation_and_replay() -> None:
    # 16 queries, 24 sessions: each mean passes 5.3/√24 with probability 1.2e-7, each mean square of 24 passes
    # 2.9 with probability 3e-6: below 1e-4 in all.
    asked = [*PREDICTED[:8], *OTHERS[:8]]
    scores = []
    for seed in range(24):
        session = opened(seed)
        answers = [session.ask(query) for query in asked]
        scores.append([(a.value - truth(q)) / a.std for a, q in zip(answers, asked, strict=True)])
    found = np.array(scores)
    assert np.abs(found.mean(axis=0)).max() < 5.3 / math.sqrt(24)
    assert (found**2).mean(axis=0).max() < 2.9
    assert 0.7 < (found**2).mean() < 1.35
    ledger = MemoryLedger()
    live = opened(5, ledger)
    shown = [live.ask(query).value for query in asked]
    kinds = {type(kept.entry.measurement) for kept in ledger.since(0) if isinstance(kept.entry, Release)}
    assert {Clipped, Rows} <= kinds
    copied = MemoryLedger()
    copied.open(POLICY.settings())
    for kept in ledger.since(0):
        with copied.transaction(kept.stamp) as transaction:
            transaction.append(read_entry(write_entry(kept), DOMAIN).entry)
    again = opened(6, copied)
    assert [again.ask(query).value for query in asked] == shown
    assert again.spent == live.spent


def test_many_attributes_are_better_than_independent_noise_on_both_sides() -> None:
    assert isinstance(POLICY, PrimmProduct)
    assert POLICY.design.joint is not None
    assert POLICY.design.joint.clipped
    independent = mean_absolute(math.sqrt(40) / BUDGET.mu)
    mixed = [query for pair in zip(PREDICTED[:20], OTHERS[:20], strict=True) for query in pair]
    errors = [mean_absolute(math.sqrt(variance or math.inf)) for variance in play(POLICY, mixed)]
    assert np.mean(errors[::2]) < 0.7 * independent
    assert np.mean(errors[1::2]) < 0.8 * independent
    alone = policy_named("primm", Setting(DOMAIN, BUDGET, 30))
    wide = [mean_absolute(math.sqrt(variance or math.inf)) for variance in play(alone, OTHERS)]
    assert np.mean(wide) < 0.75 * mean_absolute(math.sqrt(30) / BUDGET.mu)


def test_static_smooth_and_offline_take_any_product() -> None:
    for name in ("static", "smooth", "offline"):
        policy = policy_named(name, Setting(DOMAIN, BUDGET, 40, PREDICTED))
        grant = policy.due()
        assert grant is not None
        assert isinstance(grant.measurement, Clipped)
        variance = policy.expected_variance(PREDICTED[3])
        assert variance is not None
        assert variance > 0


def test_very_many_predictions_share_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is answered free and unbiased with its stated variance; no strategy of their own is designed."""
    monkeypatch.setattr("laprasdp.policy.design_product.MANY_PREDICTED", 12)
    policy = policy_named("primm", Setting(DOMAIN, BUDGET, 40, PREDICTED))
    assert isinstance(policy, PrimmProduct)
    assert policy.design.joint is None
    planned = [policy.expected_variance(query) for query in PREDICTED]
    errors, shown = [], []
    for seed in range(6):
        from laprasdp.data.duckdb import DuckDBTable

        own = copy.deepcopy(policy, {id(part): part for part in policy.settled()})
        table = DuckDBTable(pa.table(DATA), DOMAIN, name="t")
        session = lp.Session(table, own, noise=SeededNoise(seed), ledger=MemoryLedger(), public=True)
        for place, query in enumerate(PREDICTED):
            answer = session.ask(query)
            assert isinstance(answer, lp.Answer)
            if planned[place] is None:  # it has no prior, and is measured
                continue
            assert (answer.source, answer.charge if place else 0) == ("predicted", 0)
            errors.append((answer.value - truth(query)) / answer.std)
            shown.append(answer.std**2 / planned[place])
    assert len(errors) > 100
    assert max(shown) <= 1.0001
    assert abs(np.mean(errors)) < 6 * len(errors) ** -0.5 * 2
    assert 0.5 < np.mean(np.square(errors)) < 1.7


def test_more_predictions_than_can_be_searched_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laprasdp.strategy.joint.MAX_SEARCHED", 20)
    policy = policy_named("smooth", Setting(DOMAIN, BUDGET, 40, PREDICTED))
    with pytest.raises(lp.UnsupportedQuery, match=r"30 predicted queries .* the limit is 20"):
        policy.due()


def test_beyond_a_few_predictions_the_outlook_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream is played then; up to there one is, and neither depends on the other's limit."""
    setting = Setting(DOMAIN, BUDGET, 40, PREDICTED)

    def played(*_: object) -> None:
        raise AssertionError("a stream was played")

    with pytest.raises(AssertionError, match="played"):
        design_product.design_product(setting, played)
    monkeypatch.setattr(design_product, "FEW", len(PREDICTED) - 1)
    shares = design_product.design_product(setting, played).shares
    assert shares.background + shares.prediction + shares.stream == pytest.approx(1)
    assert shares.prediction > 0.1
