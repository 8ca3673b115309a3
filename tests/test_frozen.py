"""Answers that were kept as they were shown have their exact joint covariance, whatever was learned since."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from test_product import SMALL, prior_over, random_query

import laprasdp as lp
from laprasdp.belief import dense
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.belief.product import ProductBelief
from laprasdp.policy.lapras import Lapras
from laprasdp.policy.primm_dense import PrimmDense
from laprasdp.policy.primm_product import PrimmProduct
from laprasdp.privacy.noise import SeededNoise
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.strength import measure

WIDE = lp.Domain(a=lp.Integers(0, 29), b=lp.Integers(0, 19), c=lp.Integers(0, 9))
GROUPED = lp.Domain(a=lp.Integers(0, 11), b=lp.Integers(0, 10), c=lp.Booleans())
FEW = lp.Domain(a=lp.Integers(0, 5), b=lp.Integers(0, 7), c=lp.Integers(0, 3))
COUNTS = np.random.default_rng(0).integers(0, 90, WIDE.size)


def whole(rng: np.random.Generator) -> Query:
    """A query over all three attributes, which a prior over two does not span."""
    found = random_query(rng, SMALL, 3)
    return found if len(found.axes) == 3 else whole(rng)


@pytest.mark.parametrize("seed", range(4))
def test_the_covariance_of_two_times_is_that_of_the_responses_to_the_noise(seed: int) -> None:
    """Theorem 1c of docs/proofs/primm.md; each source of noise is moved by one, all else is still."""
    rng = np.random.default_rng(seed)
    prior = prior_over(SMALL, 2)
    asked = [random_query(rng, SMALL, 2) for _ in range(5)] + [whole(rng)]
    steps = [
        measure(queries, Fraction(int(rng.integers(1, 9))))
        for queries in ([asked[5]], [asked[0]], [random_query(rng, SMALL, 2), asked[1]], [asked[2]])
    ]
    keys, responses = told(ProductBelief, prior, steps, asked)
    belief = learned(ProductBelief, prior, steps)
    found = belief.covariance([asked[place] for place, _ in keys], [when for _, when in keys])
    assert len({when for _, when in keys}) == 4
    assert found == pytest.approx(responses @ responses.T, rel=1e-7, abs=1e-9)
    now = belief.covariance([asked[place] for place, _ in keys])
    assert not np.allclose(now, found, rtol=1e-3)  # the times count


def test_a_block_of_groups_may_come_between() -> None:
    """Each answer has the share of the block that it had when it was told."""
    prior = prior_over(GROUPED, 2, Fraction(1, 4))
    under = [Query.count(GROUPED, a=range(4), b=range(n)) for n in (9, 2, 11)]
    groups = Groups(Query.constant(GROUPED, 1), (0, 1), np.arange(132))
    steps = [measure([under[0]], Fraction(1)), measure(groups, Fraction(1)), measure([under[1]], Fraction(9))]
    keys, responses = told(GroupedBelief, prior, steps, under)
    belief = learned(GroupedBelief, prior, steps)
    assert {when for _, when in keys} == {1, 2, 3}
    found = belief.covariance([under[place] for place, _ in keys], [when for _, when in keys])
    assert found == pytest.approx(responses @ responses.T, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_belief_over_cells_knows_it_too(seed: int) -> None:
    """By the precision less what was learned since; of the last releases, whose rows are kept."""
    rng = np.random.default_rng(seed)
    half, asked = rng.normal(size=(24, 24)), [random_query(rng, SMALL, 3) for _ in range(4)]
    steps = [half, *(rng.normal(size=(rows, 24)) for rows in (1, 3, 1))]
    found: dict[tuple[int, int], list[float]] = {}
    for source in range(sum(map(len, steps))):
        parts = np.split(np.eye(sum(map(len, steps)))[source], np.cumsum([*map(len, steps)])[:-1])
        belief = DenseBelief(24)
        for rows, part in zip(steps, parts, strict=True):
            belief.add(rows, part)
            for place, query in enumerate(asked):
                found.setdefault((place, belief.age), []).append(belief.estimate(query)[0])
    responses, queries = np.array(list(found.values())), [asked[place] for place, _ in found]
    when = [age for _, age in found]
    assert belief.covariance(queries, when) == pytest.approx(responses @ responses.T, rel=1e-6, abs=1e-9)
    assert not np.allclose(belief.covariance(queries), responses @ responses.T, rtol=1e-3)


def test_what_is_too_long_ago_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_KEPT", 2)
    belief, query = DenseBelief(24), Query.constant(SMALL, 1)
    for row in (np.eye(24), *np.eye(24)[:4, np.newaxis]):
        belief.add(row, np.zeros(len(row)))
    joint = belief.covariance([query] * 3, [2, 3, 5])
    assert np.isnan(joint[0, 0])
    assert np.isfinite(joint[1:]).all()


def learned(kind: type[ProductBelief], prior: Marginals, steps: Sequence[Rows]) -> ProductBelief:
    """A belief after some releases, without values."""
    belief = kind(prior)
    for release in (prior, *steps):
        belief.learn(release, None)
    return belief


def told(
    kind: type[ProductBelief], prior: Marginals, steps: Sequence[Rows], asked: Sequence[Query]
) -> tuple[list[tuple[int, int]], np.ndarray[Any, Any]]:
    """Each query after each step; and how its value answers to each source of noise, of its deviation."""
    stds = [np.ones(prior.draws), *(np.sqrt(step.noise_variance) * np.ones(step.draws) for step in steps)]
    whole, ends = np.concatenate(stds), np.cumsum([len(each) for each in stds])[:-1]
    found: dict[tuple[int, int], list[float]] = {}
    for source in range(len(whole)):
        first, *parts = np.split(np.eye(len(whole))[source] * whole, ends)
        belief = kind(prior)
        belief.learn(prior, first)
        for step, part in zip(steps, parts, strict=True):
            belief.learn(step, part)
            for place, query in enumerate(asked):
                estimate = belief.estimate(query)
                assert estimate is not None
                found.setdefault((place, belief.age), []).append(estimate[0])
    return list(found), np.array(list(found.values()))


def session(domain: lp.Domain = WIDE, policy: str = "primm", **more: object) -> lp.Session:
    return lp.open_session(
        MemoryTable(domain, np.resize(COUNTS, domain.size)),
        domain,
        budget=lp.Budget(1, 1e-6),
        horizon=40,
        policy=policy,
        noise=SeededNoise(3),
        public=True,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("kind", "domain", "more"),
    [
        (PrimmProduct, WIDE, {}),
        (PrimmProduct, WIDE, {"predictions": ["SELECT COUNT(*) FROM t WHERE a < 2 AND b < 7"]}),
        (PrimmDense, FEW, {"release": "gaussian"}),
        (Lapras, WIDE, {"policy": "smooth-cache"}),
    ],
)
def test_a_statement_that_is_asked_again_has_the_same_interval(
    kind: type[object], domain: lp.Domain, more: dict[str, object]
) -> None:
    opened = session(domain, **more)  # type: ignore[arg-type]
    assert isinstance(opened.state.policy, kind)
    ratio = "SELECT c, AVG(a) AS mean FROM t WHERE b < 7 GROUP BY c"
    first = opened.ask(ratio)
    for level in range(4):
        opened.ask(f"SELECT COUNT(*) FROM t WHERE a < {1 + level} AND b < 7")
    again = opened.ask(ratio)
    assert again.charge == 0
    for one, other in zip(first, again, strict=True):
        pair = one.columns["mean"], other.columns["mean"]
        assert pair[0].value == pair[1].value
        assert pair[1].interval(0.9) == pytest.approx(pair[0].interval(0.9), rel=1e-9)


def test_a_new_count_beside_old_ones_has_a_joint_law() -> None:
    """A share of what was shown before has the error that there is, not the largest that there may be."""
    opened = session()
    opened.ask("SELECT COUNT(*) FROM t WHERE b < 7")
    opened.ask("SELECT COUNT(*) FROM t WHERE a < 5 AND b < 7")
    opened.ask("SELECT COUNT(*) FROM t WHERE b < 12")
    (row,) = opened.ask(
        "SELECT COUNT(*) FILTER (WHERE a < 5) AS few, COUNT(*) AS every, "
        "COUNT(*) FILTER (WHERE a < 5) / COUNT(*) AS share FROM t WHERE b < 7"
    )
    few, every, share = (row.columns[name] for name in ("few", "every", "share"))
    most = (few.std + share.value * every.std) / every.value
    assert share.std < 0.95 * most
