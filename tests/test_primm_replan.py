"""What PRIMM reckons with at re-plan points: hits so far against what was expected of each query."""

import math
from fractions import Fraction

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.pacing.pacing import Reading
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.primm import Primm
from laprasdp.policy.setting import Setting
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release, Reply
from laprasdp.record.estimate import Estimate

LINE = lp.Domain(cell=lp.Integers(0, 9))
PREDICTED = tuple(Query.count(LINE, cell=range(end)) for end in (2, 4, 6, 8))
OTHER = Query.count(LINE, cell=[9])
SHOWN = Estimate(0.0, 1.0, "predicted", "gaussian")


def after(asked: list[Query], expected: tuple[float, ...] = (4, 2, 1, 1), **more: object) -> Primm:
    """PRIMM after some statements; those that were not predicted were measured."""
    setting = Setting(LINE, lp.Budget(1, 1e-3), 40, PREDICTED, expected=expected, **more)  # type: ignore[arg-type]
    policy = policy_named("primm", setting)
    assert isinstance(policy, Primm)
    for query in asked:
        policy.learn(Reply((query,), (SHOWN,), query not in PREDICTED))
    return policy


def test_before_the_stream_weights_are_those_of_the_log() -> None:
    weights, predicted = after([]).still_to_come(24.0)
    assert weights == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    assert predicted == 24


def test_weights_are_the_gamma_poisson_posterior_and_what_was_answered_is_free() -> None:
    asked = [PREDICTED[0], OTHER, PREDICTED[0], PREDICTED[0], OTHER, OTHER, PREDICTED[2], OTHER]
    weights, predicted = after(asked).still_to_come(16.0)
    rate = Fraction(16, 40 - 8)  # predicted statements a statement, still to come
    means = [rate * share / (1 + rate * share * 8) for share in (Fraction(1, 4), Fraction(1, 8))]
    assert weights[[0, 2]] == pytest.approx([0, 0])
    assert weights[[1, 3]] == pytest.approx([float(mean / sum(means)) for mean in means])
    assert predicted == pytest.approx(16 * (1 + 2) / (1 + 4))  # two of four hits were first times


def test_a_gamma_prior_of_shape_one_has_this_posterior_mean() -> None:
    rate, seen = 0.3, 7
    rates = np.linspace(0, 40, 2_000_001)
    density = np.exp(-rates / rate) * np.exp(-rates * seen)  # none came in so many statements
    assert (rates * density).sum() / density.sum() == pytest.approx(rate / (1 + rate * seen), rel=1e-3)


def test_no_batch_is_made_for_queries_that_are_all_answered() -> None:
    policy = after([])
    grant = policy.due()
    assert grant is not None  # the first release
    policy.learn(
        Release(grant.measurement, (0,) * grant.charge.draws, grant.charge, grant.allowance, opening=True)
    )
    for query in [*PREDICTED] * 2:
        policy.learn(Reply((query,), (SHOWN,), False))
    assert policy.still_to_come(30.0)[1] == 0
    assert policy.designs  # it is a point where a batch may be made
    assert policy.due() is None


def test_where_repeats_are_paid_for_nothing_is_free() -> None:
    policy = after([PREDICTED[0]] * 8, reading=Reading(repeats="pay"))
    assert policy.still_to_come(16.0)[0] == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    assert policy.still_to_come(16.0)[1] == 16


def test_following_the_hits_is_worth_it_where_few_queries_are_popular(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A skewed stream, half predicted: less error than with the weights of the log until the end."""
    line = lp.Domain(cell=lp.Integers(0, 73))

    def error(seed: int) -> float:
        rng = np.random.default_rng(seed)
        places = np.arange(74)
        ends = np.sort([rng.choice(75, 2, replace=False) for _ in range(100)], axis=1)
        predicted = list(
            dict.fromkeys(Query(line, {"cell": places}, 1 * ((places >= a) & (places < b))) for a, b in ends)
        )
        shares = (1 + np.arange(len(predicted))) ** -1.2
        shares /= shares.sum()
        session = lp.open_session(
            MemoryTable(line, np.zeros(line.size, dtype=np.int64)),
            line,
            budget=lp.Budget(1, 1e-3),
            horizon=100,
            predictions=predicted,
            expected=shares.tolist(),
            public=True,
            noise=lp.SeededNoise(0),
            release="gaussian",
        )
        stream = [
            predicted[rng.choice(len(predicted), p=shares)]
            if rng.random() < 0.5
            else Query(line, {"cell": places}, rng.integers(0, 2, 74))
            for _ in range(100)
        ]
        return math.fsum(answer.std for answer in session.ask_many(stream) if isinstance(answer, lp.Answer))

    followed = sum(map(error, (1, 2)))
    monkeypatch.setattr(Primm, "still_to_come", lambda self, p: (self.setting.importance, p))
    assert followed < 0.99 * sum(map(error, (1, 2)))
