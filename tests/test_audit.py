"""The audit stays below a true claim, through the whole path, and catches a session whose noise is halved.

False-alarm rate of each audit: 1e-6, stated to `audit` itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.data.table import Table
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.setting import Setting
from laprasdp.privacy.gaussian import epsilon_of
from laprasdp.privacy.noise import ExactNoise, NoiseSource
from laprasdp.queries.query import Query
from laprasdp.stream.audit import audit, bounds
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(age=lp.Integers(0, 3))
BUDGET = lp.Budget(4, 1e-3)
WITHOUT = MemoryTable(DOMAIN, [5, 0, 7, 2])
WITH = MemoryTable(DOMAIN, [5, 1, 7, 2])
STATEMENTS = [Query.count(DOMAIN, age=1), Query.count(DOMAIN, age=[0, 1]), Query.count(DOMAIN, age=range(4))]


class Halved:
    """What an implementation mistake would do: noise of half the deviation."""

    simulation = False

    def __init__(self, inner: NoiseSource | None = None) -> None:
        self.inner = inner or ExactNoise()

    def gaussian(self, count: int) -> list[int]:
        return [step // 2 for step in self.inner.gaussian(count)]

    def laplace(self, count: int, scale_units: int) -> list[int]:
        return [step // 2 for step in self.inner.laplace(count, scale_units)]


@pytest.mark.parametrize(
    ("policy", "accounting", "predictions"),
    [
        ("independent", "gaussian", []),
        ("histogram-total", "gaussian", []),
        ("offline", "gaussian", STATEMENTS),
        ("independent", "basic", []),
        ("laplace", "basic", []),
        ("smooth-cache", "gaussian", []),
    ],
)
def test_a_sound_session_passes_and_half_the_noise_is_caught(
    policy: str, accounting: str, predictions: list[Query]
) -> None:
    setting = Setting(DOMAIN, BUDGET, 3, tuple(predictions), accounting=accounting)
    designed = policy_named(policy, setting)  # no data goes into it, so that sessions begin from copies
    designed.due()

    def opener(noise: NoiseSource) -> Callable[[Table], lp.Session]:
        return lambda table: lp.Session(
            table,
            copy.deepcopy(designed, {id(setting): setting}),
            noise=noise,
            ledger=MemoryLedger(),
            public=True,
        )

    sound = audit(opener(ExactNoise()), WITHOUT, WITH, STATEMENTS, runs=600)
    assert sound.passed, sound
    if accounting == "gaussian" and policy != "smooth-cache":  # the others leave part of the budget unused
        assert sound.mu > 0
        halved = audit(opener(Halved()), WITHOUT, WITH, STATEMENTS, runs=1_200)
        assert halved.mu > (halved.claimed_mu or 0), halved
        assert not halved.passed


@pytest.mark.parametrize(("policy", "accounting"), [("laplace-counts", "gaussian"), ("laplace", "basic")])
def test_pure_noise_is_held_to_its_own_claim(policy: str, accounting: str) -> None:
    """It is ε-DP and more than the μ of (ε, δ); a quarter of it is not ε-DP."""
    budget = lp.Budget(2, 1e-6)

    def opener(noise: NoiseSource) -> Callable[[Table], lp.Session]:
        return lambda table: open_session(
            table, DOMAIN, budget=budget, horizon=1, policy=policy, accounting=accounting, noise=noise
        )

    sound = audit(opener(ExactNoise()), WITHOUT, WITH, STATEMENTS[:1], runs=500)
    assert sound.passed, sound
    assert sound.mu > 1.5 * budget.mu  # so it must not be held to that
    if accounting == "gaussian":
        quarter = audit(opener(Halved(Halved(ExactNoise()))), WITHOUT, WITH, STATEMENTS[:1], runs=500)
        assert not quarter.passed, quarter


def test_the_bounds_are_sharp_on_plain_gaussians() -> None:
    rng = np.random.default_rng(5)
    low, high = rng.normal(0, 1, 100_000), rng.normal(1, 1, 100_000)
    epsilon, mu = bounds(low, high, delta=1e-3, failure=1e-6)
    assert 0.9 < mu < 1
    assert 1.5 < epsilon < epsilon_of(1, 1e-3)
    none = bounds(low, rng.normal(0, 1, 100_000), delta=1e-3, failure=1e-6)
    assert max(none) < 0.05


def test_statements_that_tell_nothing_are_refused() -> None:
    with pytest.raises(lp.ConfigError, match="do not tell"):
        audit(lambda table: None, WITHOUT, WITH, [Query.count(DOMAIN, age=3)])
