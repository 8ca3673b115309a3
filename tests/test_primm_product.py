"""PRIMM on product domains: sound under any stream, replayable, unbiased, and as accurate as promised."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st
from test_product import FLIGHTS, conjunction
from tries import tries

import laprasdp as lp
from laprasdp.errors import BudgetExhausted
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.kinds import typical_queries
from laprasdp.policy.outlook import Refined
from laprasdp.policy.primm_product import PrimmProduct
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.budget import MU_BITS, Budget
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release, Reply
from laprasdp.record.format import read_entry, write_entry
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Rows

DOMAIN = lp.Domain(
    a=lp.Integers(1, 4), b=lp.Categories(["x", "y", "z"]), c=lp.Booleans(), d=lp.Integers(1, 2)
)
BUDGET = Budget(1, 1e-3)
COUNTS = [cell * 5 % 37 for cell in range(DOMAIN.size)]
PAIR = Query(DOMAIN, {"a": range(4), "b": range(3)}, np.arange(12).reshape(4, 3) - 4)
WIDE = Query.count(DOMAIN, a=[1, 2], b="x", c=True, d=1)
POOL = [
    *(Query.count(DOMAIN, a=range(low, high + 1)) for low, high in ((1, 1), (1, 2), (2, 3), (3, 4))),
    *(Query.count(DOMAIN, b=value, c=True) for value in "xyz"),
    *(Query.count(DOMAIN, a=[2, 3], b=value, d=1) for value in "xyz"),
    Query.constant(DOMAIN, 1),
    PAIR,
    WIDE,
    Query.count(DOMAIN, a=1, b=["y", "z"], c=False, d=2),
]


def setting(predictions: Sequence[Query], overlap: float | None = None, **more: Any) -> Setting:
    return Setting(
        DOMAIN, **{"budget": BUDGET, "horizon": 12} | more, predictions=tuple(predictions), overlap=overlap
    )


def opened(
    given: Setting, ledger: MemoryLedger | None = None, seed: int = 3, policy: PrimmProduct | None = None
) -> lp.Session:
    return lp.Session(
        MemoryTable(DOMAIN, COUNTS, given.unit),
        policy or PrimmProduct(given),
        noise=SeededNoise(seed),
        ledger=ledger or MemoryLedger(),
        public=True,
    )


def written(measurement: Any) -> np.ndarray[Any, Any]:
    """The squared column norms of a release on every cell, times 4^bits, in exact integers."""
    if isinstance(measurement, Marginals):
        total = np.zeros(DOMAIN.size, dtype=object)
        for axes, multiplier in zip(measurement.sets, measurement.multipliers, strict=True):
            square: Any = np.array([multiplier**2], dtype=object)
            for axis, size in enumerate(DOMAIN.shape):
                factor = (
                    measurement.factors[axis].astype(object) if axis in axes else np.ones((1, size), object)
                )
                square = np.multiply.outer(square, (factor * factor).sum(axis=0)).reshape(-1)
            total = total + square
        return total
    assert isinstance(measurement, Rows)
    stack = np.stack([query.vector() for query in measurement.queries]).astype(object)
    rows = measurement.matrix * stack if isinstance(measurement.matrix, int) else measurement.matrix @ stack
    return np.asarray((rows * rows).sum(axis=0))


def outcome(session: lp.Session, query: Query) -> object:
    """What the next statement would do, without its noise."""
    known = session.state.policy.recall(query)
    if known is not None:
        return known
    try:
        measurement = session.state.policy.grant([query]).measurement
    except BudgetExhausted:
        return "refused"
    assert isinstance(measurement, Rows)
    return measurement.queries, measurement.matrix


@settings(max_examples=tries(10), deadline=None)
@given(
    stream=st.lists(st.tuples(st.integers(0, len(POOL) - 1), st.booleans()), max_size=25),
    predictions=st.lists(st.sampled_from(POOL), max_size=4, unique=True),
    overlap=st.sampled_from([None, 0.0, 0.5, 1.0]),
    max_rows=st.integers(1, 2),
)
def test_any_adaptive_stream_stays_within_the_budget_and_replays(
    stream: list[tuple[int, bool]], predictions: list[Query], overlap: float | None, max_rows: int
) -> None:
    given_, ledger = setting(predictions, overlap, unit=lp.PrivacyUnit("who", max_rows)), MemoryLedger()
    live, last = opened(given_, ledger), 0.0
    belief: Any = live.state.policy
    before: dict[Query, float] = {}
    for place, adaptive in stream:
        query = POOL[
            (place + (int(last) if adaptive else 0)) % len(POOL)
        ]  # the next question may follow the answers
        try:
            answer = live.ask(query)
        except BudgetExhausted:
            continue
        assert isinstance(answer, lp.Answer)
        assert answer.std > 0
        last = abs(answer.value)
        after = {q: belief.belief.variance(q) for q in POOL}
        assert all(after[q] <= v * (1 + 1e-9) for q, v in before.items())
        before = after
    sums = np.full(DOMAIN.size, Fraction(0))
    for entry in (kept.entry for kept in ledger.since(0)):
        if isinstance(entry, Release):
            scale = Fraction(max_rows**2, 4**entry.measurement.bits)
            sums = sums + np.array([value * scale for value in written(entry.measurement).tolist()])
    assert max(sums) * 2**MU_BITS <= BUDGET.mu_squared_units
    written_out = MemoryLedger()  # the same entries by way of their JSON
    written_out.open(belief.settings())
    for kept in ledger.since(0):
        with written_out.transaction(kept.stamp) as transaction:
            transaction.append(read_entry(write_entry(kept), DOMAIN).entry)
    again = opened(given_, written_out, seed=4)
    assert again.spent == live.spent
    assert [outcome(again, query) for query in POOL] == [outcome(live, query) for query in POOL]


def scores() -> np.ndarray[Any, Any]:
    """(300, 8) z-scores of sessions with lattice noise: predicted, measured and uncovered queries."""
    given_ = setting(POOL[:4], 0.5, horizon=8)
    asked = [POOL[i] for i in (0, 5, 8, 11, 12, 2, 6, 1)]
    fresh, found = PrimmProduct(given_), []
    for seed in range(300):
        session = opened(given_, seed=seed, policy=copy.deepcopy(fresh))
        answers = [session.ask(query) for query in asked]
        true = [int(query.vector() @ COUNTS) for query in asked]
        found.append([(a.value - x) / a.std for a, x in zip(answers, true, strict=True)])
    return np.array(found)


def test_answers_are_unbiased_with_the_stated_deviation() -> None:
    # Each of 8 means of 300 standard normals passes 5.4/√300 with probability 6.7e-8, each mean square
    # 1 ± 0.55 with less than 6e-8 (chi-squared of 300): below 1e-6 in all.
    z = scores()
    assert abs(z.mean(axis=0)).max() < 5.4 / math.sqrt(300)
    assert abs((z**2).mean(axis=0) - 1).max() < 0.55
    assert abs(((z / 0.7) ** 2).mean(axis=0) - 1).max() > 0.55  # negative control: deviation understated


def test_group_bys_are_measured_together() -> None:
    ledger = MemoryLedger()
    session = opened(setting([], horizon=4), ledger)
    grouped = session.ask("SELECT COUNT(*) FROM t WHERE a = 4 GROUP BY b")
    assert isinstance(grouped, lp.GroupedAnswer)
    assert len(grouped.answers) == 3
    entries = ledger.since(0)
    assert sum(isinstance(kept.entry, Release) for kept in entries) == 2  # the prior, and one for all groups
    assert len({answer.charge for answer in grouped.answers}) == 1
    spent = session.spent
    assert session.ask("SELECT COUNT(*) FROM t WHERE a = 4 AND b = 'x'").charge == 0
    assert session.spent == spent


def test_queries_outside_the_prior_are_measured_directly() -> None:
    policy = PrimmProduct(setting(POOL[:4], 0.5))
    assert policy.expected_variance(WIDE) is None
    assert not policy.belief.covers(WIDE)
    session = opened(setting(POOL[:4], 0.5))
    answer = session.ask(WIDE)
    assert isinstance(answer, lp.Answer)
    assert answer.source == "measured"
    assert answer.charge > 0
    assert session.ask(WIDE).value == answer.value


@pytest.mark.parametrize("overlap", [None, 0.0, 1.0])
@pytest.mark.parametrize("predictions", [POOL[:5], []])
def test_the_plan_is_what_the_stream_then_shows(predictions: list[Query], overlap: float | None) -> None:
    given_ = setting(predictions, overlap)
    policy, session = PrimmProduct(given_), opened(given_)
    shares = policy.design.shares
    assert shares.background > 0
    assert shares.background + shares.prediction + shares.stream == pytest.approx(1)
    assert (shares.prediction == 0) or predictions
    rehearsed = policy.rehearse([True, False, True])
    assert len(rehearsed) == 2
    assert all(v is not None and v > 0 for v in rehearsed)
    for query in predictions:
        answer = session.ask(query)
        assert isinstance(answer, lp.Answer)
        expected = policy.expected_variance(query)
        assert expected is not None
        assert answer.charge == 0
        assert answer.std <= math.sqrt(expected) * (1 + 1e-9)


def test_the_design_is_the_same_every_time() -> None:
    first, second = (PrimmProduct(setting(POOL[:5])).design for _ in range(2))
    assert first.shares == second.shares
    assert first.prior.multipliers == second.prior.multipliers
    assert first.typical == second.typical


def test_typical_queries_keep_the_shape_of_the_predicted_ones() -> None:
    drawn = typical_queries(FLIGHTS, [conjunction(np.random.default_rng(1), 2)], 20, np.random.default_rng(2))
    like = conjunction(np.random.default_rng(1), 2)
    assert {query.axes for query in drawn} == {like.axes}
    assert len(set(drawn)) > 10


def test_a_posterior_is_the_inverse_of_added_precision() -> None:
    rng = np.random.default_rng(0)
    half, rows = rng.normal(size=(5, 5)), rng.normal(size=(2, 3))
    joint = half @ half.T
    wide = np.pad(rows, [(0, 0), (0, 2)])
    true = np.linalg.inv(np.linalg.inv(joint) + 0.7 * wide.T @ wide)
    told, places = Refined(joint, rows), np.arange(len(joint))
    assert told.covariances(*np.ix_(places, places), 0.7) == pytest.approx(true, rel=1e-8)
    assert told.variances(0.7) == pytest.approx(true.diagonal(), rel=1e-8)
    assert told.variances(0.0).tolist() == joint.diagonal().tolist()


def test_what_a_strategy_tells_is_brought_past_further_rows() -> None:
    rng = np.random.default_rng(1)
    half, rows, new = rng.normal(size=(6, 6)), rng.normal(size=(3, 4)), rng.normal(size=(6, 2))
    joint = half @ half.T
    now = Refined(joint + new @ new.T, rows).after(new)
    afresh, places = Refined(joint, rows), np.arange(6)
    for power in (0.0, 0.3, 50.0):
        assert now.variances(power) == pytest.approx(afresh.variances(power), rel=1e-9)
        each = [one.covariances(places, places[::-1], power) for one in (now, afresh)]
        assert each[0] == pytest.approx(each[1], rel=1e-8, abs=1e-9)


def test_batches_are_decided_as_by_the_whole_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two releases of the strategy its eigenvectors are kept."""
    rng = np.random.default_rng(2)
    predictions = tuple(dict.fromkeys(conjunction(rng, 2) for _ in range(40)))
    policy = PrimmProduct(Setting(FLIGHTS, Budget(1, 1e-6), 60, predictions, overlap=0.5))
    better, brought, decided = PrimmProduct._better_share, list[bool](), list[float]()

    def both(self: PrimmProduct, *given: Any) -> float:
        afresh, kept = copy.copy(self), self._telling
        afresh._telling = None
        decided.append(better(self, *given))
        brought.append(kept is not None and self._telling is kept)
        if brought[-1]:
            new = self.belief.further(self._lot[0], kept._belief.rows)
            taken = kept._belief.covariance(self._lot[0]) - self.belief.covariance(self._lot[0])
            assert np.nan_to_num(taken) == pytest.approx(
                new @ new.T, rel=1e-6, abs=1e-6 * np.abs(new).max() ** 2
            )
        assert decided[-1] == better(afresh, *given)
        return decided[-1]

    monkeypatch.setattr(PrimmProduct, "_better_share", both)
    play(policy, [predictions[i // 2] if i % 2 else conjunction(rng, 2) for i in range(60)])
    assert sum(brought) > 3


def test_the_catalog_takes_the_belief_that_fits_the_domain() -> None:
    assert isinstance(policy_named("primm", Setting(FLIGHTS, BUDGET, 10)), PrimmProduct)
    assert not isinstance(policy_named("primm", setting([])), PrimmProduct)


def test_flights_with_known_overlap() -> None:
    """(1, 1e-6), 100 predicted conjunctions, S = 100, overlap 0.9: mean absolute error of at most 11.8."""
    rng = np.random.default_rng(0)
    predictions = list(dict.fromkeys(conjunction(rng, 2) for _ in range(100)))
    stream = [
        conjunction(rng, 2) if place % 10 == 4 else predictions[place % len(predictions)]
        for place in range(100)
    ]
    policy = PrimmProduct(Setting(FLIGHTS, Budget(1, 1e-6), 100, tuple(predictions), overlap=0.9))
    errors = []
    for query in stream:
        while (grant := policy.due()) is not None:
            policy.learn(blank(grant, opening=True))
        estimate = policy.recall(query)
        measured = estimate is None
        if measured:
            policy.learn(blank(policy.grant([query]), opening=False))
            estimate = policy.latest(query)
        policy.learn(Reply((query,), (estimate,), measured))
        errors.append(math.sqrt(2 / math.pi * estimate.variance))
    assert np.mean(errors) < 9.5
    assert policy.allowance(101) >= 0


def blank(grant: Any, *, opening: bool) -> Release:
    """A release of noiseless zeros: its variances are the true ones."""
    measurement = grant.measurement
    return Release(measurement, (0,) * measurement.draws, grant.charge, grant.allowance, opening)
